"""Few points are enough: convex combinations in R^d need at most d + 1 of them (Caratheodory)."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull import min_norm_weights


def sparse_weights(weights: Vector, rows: Matrix) -> Vector:
    """Return convex weights with at most d + 1 positive entries and no longer combination.

    The min-norm weights of the used rows are tried first: an active-set solver returns an
    affinely independent support. Where rounding left more, weight is moved along null vectors.

    Examples
    --------
    >>> rows = np.array([[1.0], [-1.0], [2.0], [-2.0]])
    >>> int((sparse_weights(np.full(4, 0.25), rows) > 0).sum())
    2
    """
    w = np.zeros(weights.size)
    used = np.flatnonzero(weights > 0)
    w[used] = min_norm_weights(rows[used])
    d = rows.shape[1]
    while True:
        used = np.flatnonzero(w > 0)
        if used.size <= d + 1:
            w /= w.sum()
            return w
        # d + 2 vectors of R^d are affinely dependent: a null vector moves weight off one of them.
        few = used[: d + 2]
        scale = np.abs(rows[few]).max() or 1.0
        system = np.vstack([rows[few].T / scale, np.ones(few.size)])
        null = np.linalg.svd(system, full_matrices=True)[2][-1]
        if not (null > 0).any():
            null = -null
        positive = np.flatnonzero(null > 0)
        ratios = w[few[positive]] / null[positive]
        first = int(np.argmin(ratios))
        w[few] = np.maximum(w[few] - ratios[first] * null, 0.0)
        w[few[positive[first]]] = 0.0
