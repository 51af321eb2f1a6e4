"""Rows on their kinks that a certificate can do without."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Vector
from goldstein.fitting.margin_finish import distinct_rows
from goldstein.models.margin_problem import MarginProblem

Places = NDArray[np.intp]

#: Part of eps that steps off kinks may use up.
BUDGET = 0.7


def dispensable(problem: MarginProblem, active: Places, shares: Vector, eps: float) -> Places:
    """Return places among the active rows whose shares may be rounded to 0 or 1, together.

    Rounding a share changes the gradient by a part of the row's slope; as many rows are taken,
    smallest changes first, as fit into the budget. Equal rows can only leave their kink together.
    """
    rows, group = distinct_rows(problem.Z[active])
    changes = (shares - np.round(shares)) * problem.weights[active] / problem.rho
    factors = np.bincount(group, weights=changes, minlength=rows.shape[0])
    # Lengths of the sums of the first changes, from inner products alone: rows can be long.
    gram = rows @ rows.T
    products = factors[:, None] * (gram.toarray() if sparse.issparse(gram) else gram) * factors
    order = np.argsort(np.diag(products), kind="stable")
    products = products[np.ix_(order, order)]
    squares = np.cumsum(2.0 * np.tril(products).sum(axis=1) - np.diag(products))
    size = np.sqrt(np.maximum(squares, 0.0))
    taken = order[: int(np.searchsorted(np.maximum.accumulate(size), BUDGET * eps))]
    if len(order) == len(group):
        return taken
    return np.flatnonzero(np.isin(group, taken))
