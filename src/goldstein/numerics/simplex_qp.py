"""A small convex quadratic programme on the simplex: the model of a bundle step."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dposv

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_RIDGE = 1e-14
_SLACK = 1e-9


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
    diagonal = gram.diagonal()
    scale = diagonal.item(int(diagonal.argmax()))
    total = 0.0 if start is None else sum(start.tolist())
    weights = np.zeros(count)
    support: list[int] = []
    if start is not None and 0.0 < total < math.inf:
        np.divide(start, total, out=weights)
        support = weights.nonzero()[0].tolist()
        support = _descend(gram, linear, support, weights, scale)
    else:
        support = [int((0.5 * diagonal + linear).argmin())]
        weights[support[0]] = 1.0
    for _ in range(4 * count):
        slopes = gram.dot(weights)
        slopes += linear
        level = float(slopes.dot(weights))
        entering = int(slopes.argmin())
        slack = _SLACK * (abs(level) + 1e-4 * scale)
        if not slopes.item(entering) < level - slack or entering in support:
            break
        support.append(entering)
        support = _descend(gram, linear, support, weights, scale)
        if not support:
            break
    weights /= np.add.reduce(weights)
    return weights


def _descend(
    gram: Matrix, linear: Vector, support: list[int], weights: Vector, scale: float
) -> list[int]:
    """Minimise over the face of the support, leaving it where a weight vanishes.

    Changes the weights; returns the support that is left, or nothing when rounding stops the walk.
    """
    while len(support) > 1:
        target = _affine(gram, linear, support, scale)
        if target is None:
            return []
        if target.item(int(target.argmin())) > 0.0:
            weights[support] = target
            return support
        # Walk towards the affine solution until the first weight vanishes.
        current = weights[support]
        step, leaving = math.inf, 0
        for place, (have, want) in enumerate(zip(current.tolist(), target.tolist())):
            if want <= 0.0:
                ratio = have / (have - want) if have > 0.0 else 0.0
                if ratio < step:
                    step, leaving = ratio, place
        current += step * (target - current)
        current[leaving] = 0.0
        weights[support] = np.maximum(current, 0.0, out=current)
        del support[leaving]
    weights[:] = 0.0
    weights[support[0]] = 1.0
    return support


def _affine(gram: Matrix, linear: Vector, support: list[int], scale: float) -> Vector | None:
    """Minimise over the affine hull of the support, ignoring signs."""
    size = len(support)
    block = gram.take(support, 0).take(support, 1)
    block.flat[:: size + 1] += _RIDGE * scale
    sides = np.empty((size, 2), order="F")
    sides[:, 0] = 1.0
    sides[:, 1] = linear.take(support)
    _, z, failed = dposv(block.T, sides, overwrite_a=1, overwrite_b=1)
    if failed:
        return None
    ones, shift = z[:, 0], z[:, 1]
    total = sum(ones.tolist())
    if not 0.0 < total < math.inf:
        return None
    solution: Vector = ((1.0 + sum(shift.tolist())) / total) * ones
    solution -= shift
    return solution if math.isfinite(sum(solution.tolist())) else None
