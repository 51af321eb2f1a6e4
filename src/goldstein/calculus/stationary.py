"""Where a slope vanishes: Newton's method with differences, for searches of pivots."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import root

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Slope = Callable[[Vector], Vector]

#: Newton steps from one start.
NEWTON_STEPS = 12

#: In more dimensions than this no derivatives are formed by differences.
NEWTON_DIM = 300


def curvature(slope: Slope, size: int, radius: float) -> Matrix:
    """Return the derivative of a slope at 0 by central differences."""
    step = 1e-4 * radius
    columns = [(slope(step * e) - slope(-step * e)) / (2 * step) for e in np.eye(size)]
    return np.array(columns).reshape(size, size).T


def stationary(slope: Slope, z: Vector, radius: float) -> Vector:
    """Return a zero of a slope near z, or where |slope| no longer shrinks.

    Examples
    --------
    >>> stationary(lambda z: 2.0 * z - 1.0, np.zeros(1), 1.0).round(6)
    array([0.5])
    """
    g = slope(z)
    if z.size > NEWTON_DIM:
        solution = root(slope, z, method="krylov", options={"maxiter": 20, "disp": False})
        moved = solution.x
        shorter = np.linalg.norm(slope(moved)) < np.linalg.norm(g)
        return moved if np.isfinite(moved).all() and shorter else z
    for _ in range(NEWTON_STEPS):
        size = float(np.linalg.norm(g))
        if size < 1e-14:
            break
        bend = curvature(partial(_shifted, slope, z), z.size, radius)
        if not np.isfinite(bend).all():
            break
        left, values, right = np.linalg.svd(bend)
        found: list[tuple[float, Vector]] = []
        # Along directions of little curvature Newton's step is wild: leave out some, or more.
        for cut in (1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3):
            kept = values > cut * values[0]
            trial = z - right[kept].T @ ((left[:, kept].T @ g) / values[kept])
            if float(np.linalg.norm(trial)) <= radius:
                found.append((float(np.linalg.norm(slope(trial))), trial))
        if not found:
            break
        shortest, trial = min(found, key=lambda pair: pair[0])
        if not shortest < 0.9 * size:
            break
        z, g = trial, slope(trial)
    return z


def _shifted(slope: Slope, origin: Vector, z: Vector) -> Vector:
    return slope(origin + z)


__all__ = ["NEWTON_DIM", "curvature", "stationary"]
