"""The conic perturbation of Algorithm 1: a random point of a segment that is tilted at random."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.numerics.ball import inner_radius, sphere_shadow

Vector = NDArray[np.float64]


def tilt(rng: np.random.Generator, m: Vector, norm: float) -> Vector:
    """Return b: a sphere shadow made orthogonal to m (E|b|^2 = (d-1)/(d+1), |b| <= 1).

    In one dimension b is 0.
    """
    b = sphere_shadow(rng, m.size)
    if m.size == 1:
        b[0] = 0.0
        return b
    b -= ((b @ m) / (norm * norm)) * m
    return b


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
    y = tilt(rng, m, norm)
    y *= reach * ratio / 8.0
    y -= (reach * (1.0 - ratio / 8.0) / norm) * m
    y += x
    return y


def trial_point(x: Vector, m: Vector, norm: float, radius: float, ratio: float) -> Vector:
    """Return x - (1 - q/8) delta m/|m|, the descent trial of Algorithm 1."""
    y: Vector = m * (-radius * (1.0 - ratio / 8.0) / norm)
    y += x
    return y
