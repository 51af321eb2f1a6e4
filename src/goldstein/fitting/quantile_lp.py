"""Linear quantiles by linear programming (HiGHS): untrusted starts.

The dual is solved, whose rows are the coefficients: max y'u with A'u = 0 and one bounded u per row
of the data. Its multipliers are the coefficients; rows with u inside its bounds are met exactly.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import GoldsteinError

#: Parts of its range by which a multiplier counts as inside.
INSIDE = 1e-9


def quantile_coefficients(
    A: Matrix, y: Vector, weights: Vector, quantiles: Vector, price: Vector, *, ordered: bool
) -> tuple[Matrix, float]:
    """Return one row of coefficients per quantile, and the largest multiplier of the order.

    They minimise sum_k sum_i weights_i pinball_k(y_i - a_i.c_k) + sum_kj price_j |c_kj|, if
    `ordered` with a_i.c_k <= a_i.c_(k+1) for all rows.

    Examples
    --------
    >>> A, y = np.ones((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 50.0])
    >>> half = np.array([0.5])
    >>> quantile_coefficients(A, y, np.full(5, 0.2), half, np.zeros(1), ordered=False)[0]
    array([[3.]])
    """
    n, p = A.shape
    count = len(quantiles)
    blocks = sparse.block_diag([A.T] * count, format="csr")
    low = np.concatenate([weights * (tau - 1.0) for tau in quantiles])
    high = low + np.tile(weights, count)
    bounds, reward = np.column_stack([low, high]), np.tile(y, count)
    if ordered and count > 1:  # columns of the multipliers of the order: + in k + 1, - in k
        step = sparse.eye(count - 1, count, k=1) - sparse.eye(count - 1, count)
        blocks = sparse.hstack([blocks, sparse.kron(step.T, A.T)], format="csr")
        free = np.column_stack([np.zeros(n * (count - 1)), np.full(n * (count - 1), np.inf)])
        bounds = np.vstack([bounds, free])
        reward = np.concatenate([reward, np.zeros(len(free))])
    # A price is a pair of slopes at 0: two more columns, of opposite sign, without reward.
    paid = np.flatnonzero(np.tile(price, count))
    costs = np.tile(price, count)[paid]
    pick = sparse.csr_matrix(
        (np.ones(paid.size), (paid, np.arange(paid.size))), (p * count, paid.size)
    )
    blocks = sparse.hstack([blocks, pick], format="csr")
    bounds = np.vstack([bounds, np.column_stack([-costs, costs])])
    reward = np.concatenate([reward, np.zeros(paid.size)])
    found = linprog(-reward, A_eq=blocks, b_eq=np.zeros(p * count), bounds=bounds, method="highs")
    if found.x is None:
        raise GoldsteinError(f"the linear program of the quantiles failed: {found.message}")
    width = np.where(np.isfinite(bounds[:, 1]), bounds[:, 1] - bounds[:, 0], 1.0)
    inside = np.minimum(found.x - bounds[:, 0], bounds[:, 1] - found.x) > INSIDE * width
    start = -np.asarray(found.eqlin.marginals)
    c = _refined(blocks[:, inside].T.toarray(), reward[inside], start)
    first_paid = len(found.x) - paid.size
    c[paid[inside[first_paid:]]] = 0.0
    order = found.x[n * count : first_paid]
    return c.reshape(count, p), float(order.max(initial=0.0))


def _refined(rows: Matrix, targets: Vector, start: Vector) -> Vector:
    """Return the coefficients nearest to a start that meet the rows; the start if none do."""
    better: Vector = start + np.linalg.lstsq(rows, targets - rows @ start, rcond=None)[0]
    near = np.abs(better - start).max() <= 1e-7 * max(1.0, float(np.abs(start).max()))
    return better if near else start
