"""How far the rows of a data matrix are spread: the scale that a default penalty refers to."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker.arrays import Vector
from goldstein.sklearn.chunked import is_dask_array

#: Rows that are centred at a time.
BLOCK = 4096


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
