"""BFGS in few variables, where what costs is the number of NumPy calls."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg.blas import dger

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.simplex_qp import SquaresOnSimplex, minimise_on_simplex


class SmallMetric:
    """BFGS with a factor of the matrix: H = J J'.

    A step s = -t H g, with J's own coordinates r = -J'g of its direction, changes J by one rank:

        J + s (sqrt(s'y) r/|r| - J'y)' / s'y,

    the inverse of Dennis and Schnabel's update of a factor of the Hessian (Numerical Methods for
    Unconstrained Optimization, 1983, section 9.2). H cannot lose its sign to rounding, and the
    model becomes a problem of least squares.
    """

    def __init__(self, rows: Matrix) -> None:
        self.rows = rows
        self.dim = rows.shape[1]
        self.factor: Matrix | None = None
        self._kept: Matrix | None = None
        # J'g for the direction -H g that was returned last.
        self._behind: Vector = np.zeros(self.dim)
        self._model = SquaresOnSimplex(self.dim, 1)

    def reset(self) -> None:
        self.factor = None

    def replaced(self, slot: int) -> None:
        """Nothing is kept that a new row could make wrong."""

    def apply(self, g: Vector) -> Vector:
        if self.factor is None:
            return g.copy()
        self._behind = g.dot(self.factor)
        image: Vector = self.factor.dot(self._behind)
        return image

    def square(self, v: Vector) -> float:
        if self.factor is None:
            return float(v.dot(v))
        behind = v.dot(self.factor)
        return float(behind.dot(behind))

    def scale(self, factor: float) -> None:
        if self.factor is not None:
            self.factor *= math.sqrt(factor)

    def keep(self) -> None:
        self._kept = None if self.factor is None else self.factor.copy(order="F")

    def restore(self) -> None:
        self.factor, self._kept = self._kept, None

    def minimise(self, errors: Vector, start: Vector) -> tuple[Vector, Vector, float]:
        factor, rows = self.factor, self.rows[: errors.size]
        assert factor is not None
        if errors.size != self._model.columns.shape[1]:
            self._model = SquaresOnSimplex(self.dim, errors.size)
        np.dot(factor.T, rows.T, out=self._model.columns)
        weights = self._model.minimise(errors)
        if weights is None:
            columns = rows.dot(factor)
            weights = minimise_on_simplex(columns.dot(columns.T), errors, start)
        behind = weights.dot(rows).dot(factor)
        self._behind = behind
        return weights, factor.dot(behind), float(behind.dot(behind))

    def update(self, s: Vector, y: Vector, sy: float, rows_s: Vector) -> None:
        if self.factor is None:
            # Fortran order lets BLAS work in place.
            self.factor = np.asfortranarray(np.eye(self.dim) * math.sqrt(sy / float(y @ y)))
            self._behind = -s
        square = float(self._behind.dot(self._behind))
        if not 0.0 < square < math.inf:
            return
        change = self._behind * -math.sqrt(sy / square)
        change -= y.dot(self.factor)
        change /= sy
        self.factor = dger(1.0, s, change, a=self.factor, overwrite_a=1)
