"""The conic perturbation of Algorithm 1: a random point of a segment that is tilted at random."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import daxpy

from goldstein.checker.arrays import Vector
from goldstein.numerics.ball import inner_radius

#: Up to this dimension the cone is as wide as in Algorithm 1.
WIDE = 10


def narrow(ratio: float, dim: int) -> float:
    """Return q = |m|/L as the opening of the cone, smaller in many dimensions.

    The proof needs some tilt, and none larger than q/8. The more variables, the more kinks a tilted
    segment crosses one by one that the straight one crosses together, and it is their joint
    crossing that cancels m.

    Examples
    --------
    >>> narrow(0.5, 2), narrow(0.5, 1000), narrow(3.0, 2)
    (0.5, 0.005, 1.0)
    """
    return min(ratio, 1.0) * min(1.0, WIDE / dim)


def tilt(rng: np.random.Generator, m: Vector, norm: float) -> Vector:
    """Return b: a sphere shadow made orthogonal to m (E|b|^2 = (d-1)/(d+1), |b| <= 1).

    In one dimension b is 0.
    """
    v, share, along = _shadow(rng, m, norm)
    v *= share
    daxpy(m, v, a=-share * along)
    return v


def conic_point(
    rng: np.random.Generator, x: Vector, m: Vector, norm: float, radius: float, ratio: float
) -> Vector:
    """Draw y uniformly from [x, x'] where x' is the tilted trial point of Algorithm 1.

    x' = x - (1 - q/8) delta m/|m| + (delta q/8) b with q = `ratio` = |m|/L and b = `tilt`. Then
    |x' - x| <= delta for 0 <= q <= 8, and y has a density: it almost surely misses any null set.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x, m = np.zeros(2), np.array([3.0, 4.0])
    >>> y = conic_point(rng, x, m, 5.0, 0.1, 1.0)
    >>> bool(0 < np.linalg.norm(y - x) <= 0.1)
    True
    """
    reach = inner_radius(x, radius) * (1.0 - rng.random())  # in (0, 1]: never the apex x itself
    y, share, along = _shadow(rng, m, norm)
    share *= reach * ratio / 8.0
    # y - x = share v - (share along + ...) m: the tilt and the step in one pass over each vector.
    y *= share
    daxpy(m, y, a=-(share * along + reach * (1.0 - ratio / 8.0) / norm))
    y += x
    return y


def _shadow(rng: np.random.Generator, m: Vector, norm: float) -> tuple[Vector, float, float]:
    """Return (v, share, along) with tilt = share (v - along m): no pass more than needed.

    share v is the shadow of a uniform point of the sphere of R^(d+1).
    """
    v: Vector = rng.standard_normal(m.size)
    last = rng.standard_normal()
    if m.size == 1:
        v[0] = 0.0
        return v, 0.0, 0.0
    share = 1.0 / (math.sqrt(v.dot(v) + last * last) or 1.0)
    return v, share, (v.dot(m) / norm) / norm


def trial_point(
    x: Vector, m: Vector, norm: float, radius: float, ratio: float, out: Vector | None = None
) -> Vector:
    """Return x - (1 - q/8) delta m/|m|, the descent trial of Algorithm 1."""
    y: Vector = np.multiply(m, -radius * (1.0 - ratio / 8.0) / norm, out=out)
    y += x
    return y
