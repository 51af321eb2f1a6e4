"""Uniform points of balls and spheres."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from goldstein.checker.arrays import Matrix, Vector

#: Longest points, radii and gradients that a search computes with: it needs their squares.
LONGEST = 1e152

#: Smallest radius, in units of rounding at x: below it a ball has hardly any points.
_FLOOR = 1e4 * 2.0**-53


def size_of(x: Vector) -> float:
    """Return the size of the largest entry."""
    return abs(x.item(np.abs(x).argmax()))


def smallest_delta(x: Vector) -> float:
    """Return the smallest radius that float64 can sample at a point of this size."""
    return _FLOOR * max(1.0, size_of(x))


def shrink(dim: int) -> float:
    """Return the factor by which balls are sampled smaller, so that rounding stays inside."""
    return 1.0 - 2.0**-40 - dim * 2.0**-50


def inner_radius(centre: Vector, radius: float) -> float:
    """Return a slightly smaller radius: what is drawn within it stays in the ball after rounding.

    Adding an offset to the centre rounds each coordinate to a unit of |y_i| <= |x_i| + radius. In a
    ball too small for that to matter half of the radius is kept.
    """
    return _inside(radius, centre.size, math.sqrt(centre.dot(centre)))


def _inside(radius: float, dim: int, length: float) -> float:
    """The same where the length of the centre is known."""
    return max(radius * shrink(dim) - 2.0**-51 * (length + radius), 0.5 * radius)


def uniform_in_ball(rng: np.random.Generator, centre: Vector, radius: float) -> Vector:
    """Draw a uniform point of the closed ball, safely inside it in floating point.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = uniform_in_ball(rng, np.zeros(3), 2.0)
    >>> bool(np.linalg.norm(y) <= 2.0)
    True
    """
    direction: Vector = rng.standard_normal(centre.size)
    length = math.sqrt(direction.dot(direction))
    # |U|^(1/d) is the radial law; a zero Gaussian vector has probability 0 but must not divide.
    share = rng.random() ** (1.0 / centre.size)
    scale = inner_radius(centre, radius) * share / (length or 1.0)
    direction *= scale
    direction += centre
    return direction


def uniform_in_balls(rng: np.random.Generator, centres: Matrix, radii: Sequence[float]) -> Matrix:
    """Draw a point of each ball: up to rounding those that `uniform_in_ball` draws one by one.

    Examples
    --------
    >>> one, many = np.random.default_rng(0), np.random.default_rng(0)
    >>> centres = np.eye(3)
    >>> each = [uniform_in_ball(one, centre, 2.0) for centre in centres]
    >>> np.allclose(uniform_in_balls(many, centres, [2.0] * 3), each, rtol=1e-14, atol=1e-14)
    True
    """
    dim = centres.shape[1]
    directions = np.empty(centres.shape)
    shares = []
    for direction in directions:
        rng.standard_normal(out=direction)
        shares.append(rng.random() ** (1.0 / dim))
    lengths = np.vecdot(directions, directions).tolist()
    scales = [
        _inside(radius, dim, math.sqrt(far)) * share / (math.sqrt(length) or 1.0)
        for radius, far, share, length in zip(
            radii, np.vecdot(centres, centres).tolist(), shares, lengths
        )
    ]
    directions *= np.array(scales)[:, None]
    directions += centres
    return directions


def sphere_shadow(rng: np.random.Generator, dim: int) -> Vector:
    """Draw the first `dim` coordinates of a uniform point of the unit sphere of R^(dim+1).

    For every subspace the orthogonal projection of this vector has a density, which is what makes
    the conic perturbation of Algorithm 1 avoid null sets.
    """
    v: Vector = rng.standard_normal(dim)
    last = rng.standard_normal()
    v *= 1.0 / (math.sqrt(v @ v + last * last) or 1.0)
    return v
