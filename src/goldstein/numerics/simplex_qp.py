"""A small convex quadratic programme on the simplex: the model of a bundle step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_RIDGE = 1e-14
_SLACK = 1e-11
_TINY = 1e-300


def minimise_on_simplex(gram: Matrix, linear: Vector, start: Vector | None = None) -> Vector:
    """Return w on the simplex minimising w'Kw/2 + a'w, by a primal active-set method.

    Only a proposal is made of the answer, so the method may stop early: it returns feasible
    weights whatever happens. `start` are the weights of a similar problem (any scale; zeros: none).

    Examples
    --------
    >>> minimise_on_simplex(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([0.0, 0.5])).round(12)
    array([0.75, 0.25])
    """
    count = linear.size
    weights = np.zeros(count)
    diagonal = gram.diagonal()
    first = int((0.5 * diagonal + linear).argmin())
    if count == 1:
        weights[first] = 1.0
        return weights
    scale = float(diagonal.max())
    total = 0.0 if start is None else float(start.sum())
    if start is not None and 0.0 < total < math.inf:
        np.divide(start, total, out=weights)
        support = np.flatnonzero(weights).tolist()
        support = _descend(gram, linear, support, weights, scale)
    else:
        weights[first] = 1.0
        support = [first]
    for _ in range(4 * count):
        slopes = gram @ weights
        slopes += linear
        level = float(slopes @ weights)
        entering = int(slopes.argmin())
        if slopes[entering] >= level - _SLACK * (abs(level) + 1e-4 * scale) or entering in support:
            return weights
        support.append(entering)
        support = _descend(gram, linear, support, weights, scale)
        if not support:
            return weights
    return weights


def _descend(
    gram: Matrix, linear: Vector, support: list[int], weights: Vector, scale: float
) -> list[int]:
    """Minimise over the face of the support, leaving it where a weight vanishes.

    Changes the weights; returns the support that is left, or nothing when rounding stops the walk.
    """
    while True:
        if len(support) == 1:
            weights[:] = 0.0
            weights[support] = 1.0
            return support
        target = _affine(gram, linear, support, scale)
        if target is None:
            return []
        if target.min() > 0.0:
            weights[:] = 0.0
            weights[support] = target
            return support
        # Walk towards the affine solution until the first weight vanishes.
        current = weights[support]
        falling = np.flatnonzero(target <= 0.0)
        have = current[falling]
        ratios = np.where(have > 0.0, have / np.maximum(have - target[falling], _TINY), 0.0)
        place = int(ratios.argmin())
        leaving = int(falling[place])
        moved = current + float(ratios[place]) * (target - current)
        moved[leaving] = 0.0
        weights[support] = np.maximum(moved, 0.0)
        support = [s for s in support if weights[s] > 0.0]
        if not support:
            weights[int(linear.argmin())] = 1.0
            return []


def _affine(gram: Matrix, linear: Vector, support: list[int], scale: float) -> Vector | None:
    """Minimise over the affine hull of the support, ignoring signs."""
    size = len(support)
    block = gram[np.ix_(support, support)]
    block.flat[:: size + 1] += _RIDGE * scale
    sides = np.empty((size, 2), order="F")
    sides[:, 0] = 1.0
    sides[:, 1] = -linear[support]
    _, z, info = dposv(block, sides, overwrite_a=1, overwrite_b=1)
    if info != 0:
        return None
    ones, shift = z[:, 0], z[:, 1]
    total = ones.sum()
    if not total > 0.0:
        return None
    solution: Vector = shift + ((1.0 - shift.sum()) / total) * ones
    return solution if np.isfinite(solution).all() else None
