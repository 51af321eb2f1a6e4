"""Rows of data: equal ones together, and how far they are spread."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Vector
from goldstein.sklearn.chunked import is_dask_array

#: Entries up to which a sparse matrix is written out to put equal rows together.
WRITTEN_OUT = 2_000_000

#: Rows that are centred at a time.
BLOCK = 4096


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


@np.errstate(over="ignore", invalid="ignore")
def spread(X: Any, weights: Vector, *, centred: bool) -> float:
    """Return the weighted mean of |x_i - c|^2, where c is the mean row, or 0 if not centred.

    1 where that is 0 or not a number float64 can hold.

    Examples
    --------
    >>> spread(np.array([[1.0, 0.0], [3.0, 0.0]]), np.ones(2), centred=True)
    1.0
    """
    shares = weights / weights.sum()
    centre = np.asarray(_computed(X.T @ shares)).ravel() if centred else np.zeros(X.shape[1])
    if sparse.issparse(X):
        total = float(X.power(2).T.dot(shares).sum() - centre @ centre)
    elif is_dask_array(X):
        total = float(_computed((((X - centre) ** 2).sum(axis=1) * shares).sum()))
    else:
        total = 0.0
        for start in range(0, X.shape[0], BLOCK):
            part = X[start : start + BLOCK] - centre
            total += float(shares[start : start + BLOCK] @ np.einsum("ij,ij->i", part, part))
    return total if 0.0 < total < math.inf else 1.0


def _computed(answer: Any) -> Any:
    return answer.compute() if is_dask_array(answer) else answer
