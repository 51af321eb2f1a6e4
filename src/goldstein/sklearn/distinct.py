"""The same data written once: equal rows together, in one order."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Vector

#: Entries up to which a sparse matrix is written out for it.
WRITTEN_OUT = 2_000_000


def merged_rows(
    X: Any, labels: NDArray[np.intp], weights: Vector
) -> tuple[Any, NDArray[np.intp], Vector]:
    """Return equal rows of one class once, with their weights added, in an order of their own.

    A search on them ends at the same point to the last bit, whether a row is repeated or has a
    weight, and however the rows are ordered. A large sparse matrix stays as it is.

    Examples
    --------
    >>> X = np.array([[2.0], [1.0], [2.0]])
    >>> merged_rows(X, np.array([0, 1, 0]), np.ones(3))
    (array([[2.], [1.]]), array([0, 1]), array([2., 1.]))
    """
    if sparse.issparse(X):
        if X.shape[0] * X.shape[1] > WRITTEN_OUT:
            return X, labels, weights
        X = X.toarray()
    whole = np.column_stack([labels, X])
    rows, group = np.unique(whole, axis=0, return_inverse=True)
    together = np.bincount(group.ravel(), weights=weights, minlength=len(rows))
    return rows[:, 1:].copy(), rows[:, 0].astype(np.intp), together.astype(np.float64)
