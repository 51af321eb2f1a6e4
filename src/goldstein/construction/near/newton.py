"""A stationary point of a smooth piece along a flat, by Newton's method in float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.optimize import root

from goldstein.checker.arrays import Matrix, Vector

Slope = Callable[[Vector], Vector]

#: Newton steps.
STEPS = 12

#: The smallest slope that is worth a step.
TINY = 1e-14

#: In more dimensions than this Newton's system is solved by a Krylov method.
DENSE_DIM = 300


def stationary(
    slope: Slope, z: Vector, radius: float, goal: float, guess: Matrix | None = None
) -> Vector:
    """Return a point with |slope| <= goal, or one with a smaller slope than at z.

    Newton's method with differences of slopes, kept within `radius` and while |slope| shrinks.

    Parameters
    ----------
    slope : callable
    z : ndarray
        Start.
    radius : float
        Size of the place: steps are shorter, differences are taken over a small part of it.
    goal : float
        When to stop.
    guess : ndarray, optional
        A derivative of `slope` from nearby: it serves as long as it helps.

    Examples
    --------
    >>> stationary(lambda z: 2.0 * z - 1.0, np.zeros(1), 1.0, 1e-12).round(9)
    array([0.5])
    """
    g = slope(z)
    for _ in range(STEPS):
        size = float(np.linalg.norm(g))
        if size <= goal:
            break
        found = _newton(slope, z, g, guess, radius)
        # Where the radius is in the way, a better derivative is no help.
        if found is None or not (found.cut or found.size < 0.7 * size):
            guess = curvature(partial(_shifted, slope, z), z.size, radius)
            found = _newton(slope, z, g, guess, radius)
        if found is None or not found.size < 0.9 * size:
            break
        z, g = found.z, found.slope
    return z


@dataclass(frozen=True)
class _Step:
    """Where a step leads, the slope there, and whether the radius cut it short."""

    z: Vector
    slope: Vector
    cut: bool

    @property
    def size(self) -> float:
        length = float(np.linalg.norm(self.slope))
        return math.inf if math.isnan(length) else length


def _newton(
    slope: Slope, z: Vector, g: Vector, derivative: Matrix | None, radius: float
) -> _Step | None:
    """Return the best of some Newton steps, shortened to the radius; None without a derivative."""
    if derivative is None or not np.isfinite(derivative).all():
        return None
    left, values, right = np.linalg.svd(derivative)
    room = max(radius - float(np.linalg.norm(z)), 0.0)
    found = []
    # Along directions of little curvature Newton's step is wild: leave out some, or more.
    for cut in (1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3):
        kept = values > cut * values[0]
        step = right[kept].T @ ((left[:, kept].T @ g) / values[kept])
        length = float(np.linalg.norm(step))
        trial = z - step * (room / length) if length > room else z - step
        found.append(_Step(trial, slope(trial), length > room))
    return min(found, key=lambda step: step.size)


def stationary_in_many(slope: Slope, z: Vector, goal: float) -> Vector:
    """Do the same without second differences in every direction."""
    size = float(np.linalg.norm(slope(z)))
    if size <= goal:
        return z
    options = {"maxiter": 20, "disp": False, "fatol": goal, "tol_norm": np.linalg.norm}
    moved: Vector = root(slope, z, method="krylov", options=options).x
    shorter = np.isfinite(moved).all() and float(np.linalg.norm(slope(moved))) < size
    return moved if shorter else z


def curvature(slope: Slope, size: int, radius: float) -> Matrix:
    """Return the derivative of a slope at 0 by central differences."""
    step = 1e-4 * radius
    columns = [(slope(step * e) - slope(-step * e)) / (2 * step) for e in np.eye(size)]
    return np.array(columns).reshape(size, size).T


def _shifted(slope: Slope, origin: Vector, z: Vector) -> Vector:
    return slope(origin + z)


__all__ = ["DENSE_DIM", "TINY", "curvature", "stationary", "stationary_in_many"]
