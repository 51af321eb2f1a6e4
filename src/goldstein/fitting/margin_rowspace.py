"""Fewer rows than variables: the same problem in the span of the rows.

A minimiser's penalised part is a combination of the rows. Let the columns of Q be an orthonormal
basis of their span, so that Z' = Q R on the penalised variables. In the coordinates s of w = Q s
the rows are those of R', and lengths, margins and the objective stay what they are: the search runs
in as many variables as there are rows. Nothing here is trusted; certificates are about Z.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from goldstein.checker.arrays import Matrix, Vector
from goldstein.models.margin_svm import MarginProblem

#: The span is used where there are this many times more variables than rows.
WIDE = 2

#: Variables that are reduced at a time, at least.
BLOCK_COLUMNS = 1024

#: Rows whose triangular factor falls off by more than this are left alone.
CONDITION = 1e-7


@dataclass(frozen=True)
class RowSpace:
    """A problem in the span of its rows.

    Attributes
    ----------
    problem : MarginProblem
        The same objective in the coordinates s, and in the variables without penalty after them.
    """

    problem: MarginProblem
    whole: MarginProblem
    triangle: Matrix

    @property
    def _penalised(self) -> NDArray[np.bool_]:
        return self.whole.ridge > 0

    def lift(self, s: Vector) -> Vector:
        """Return the point of the whole space that has coordinates s."""
        count = len(self.triangle)
        # Q = Z' R^-1 need not be formed.
        shares = linalg.solve_triangular(self.triangle, s[:count], check_finite=False)
        v = self.whole.transposed_product(shares)
        v[~self._penalised] = s[count:]
        return v

    def coordinates(self, v: Vector) -> Vector:
        """Return the coordinates of the projection of a point onto the span."""
        penalised = self._penalised
        products = self.whole.product(np.where(penalised, v, 0.0))
        s = linalg.solve_triangular(self.triangle, products, trans="T", check_finite=False)
        return np.concatenate([s, v[~penalised]])


def row_space(problem: MarginProblem) -> RowSpace | None:
    """Return the problem in the span of its rows, or None where that is no gain.

    Examples
    --------
    >>> Z = np.array([[3.0, 4.0, 0.0, 0.0]])
    >>> P = MarginProblem.from_rows(Z, np.ones(1), np.ones(4), rho=1.0)
    >>> small = row_space(P)
    >>> abs(small.problem.Z), small.lift(small.coordinates(np.array([3.0, 4.0, 7.0, 0.0])))
    (array([[5.]]), array([3., 4., 0., 0.]))
    """
    Z, ridge = problem.Z, problem.ridge
    penalised = ridge > 0
    if not isinstance(Z, np.ndarray) or WIDE * problem.rows > penalised.sum():
        return None
    level = float(ridge.max())
    if problem.slope.any() or not (ridge[penalised] == level).all():
        return None
    triangle = _triangle(Z, np.flatnonzero(penalised))
    size = np.abs(np.diag(triangle))
    if not size.min() > CONDITION * size.max():
        return None
    reduced = MarginProblem(
        np.column_stack([triangle.T, Z[:, ~penalised]]), problem.weights,
        np.concatenate([np.full(len(triangle), level), ridge[~penalised]]), problem.rho,
        problem.shift, problem.row_norms, np.zeros(problem.rows + int((~penalised).sum())),
        problem.constant,
    )  # fmt: skip
    return RowSpace(reduced, problem, triangle)


def _triangle(Z: Matrix, columns: NDArray[np.intp]) -> Matrix:
    """Return R of Z' = Q R for some columns of Z, block by block: at once it would copy them."""
    triangle = np.zeros((0, len(Z)))
    step = max(BLOCK_COLUMNS, 2 * len(Z))
    for start in range(0, columns.size, step):
        block = Z[:, columns[start : start + step]].T
        triangle = np.asarray(np.linalg.qr(np.concatenate([triangle, block]), mode="r"))
    return triangle


def least_norm(rows: Matrix, levels: Matrix) -> Matrix:
    """Return X of least norm with rows @ X = levels, as nearly as the rows allow.

    Examples
    --------
    >>> least_norm(np.array([[1.0, 1.0]]), np.array([4.0]))
    array([2., 2.])
    """
    with suppress(linalg.LinAlgError):
        factor = linalg.cho_factor(rows @ rows.T, lower=True, check_finite=False)
        size = np.abs(np.diag(factor[0]))
        if not size.min() <= CONDITION * size.max():
            shares = linalg.cho_solve(factor, levels, check_finite=False)
            return np.asarray((shares.T @ rows).T)
    return np.asarray(np.linalg.pinv(rows) @ levels)
