"""Quasi-Newton metrics H, and the step to the minimum of a model made of linear pieces.

The step is posed by inner products g_i' H g_j of the pieces. In few variables they come from a
factor of H. In more of them what they need is kept up to date: computing it afresh costs a product
of matrices, and a change of H a product of two vectors.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from scipy.linalg.blas import dger
from scipy.linalg.lapack import dtrtrs

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull_problems import factor_of_gram, quadratic_weights

#: After this many updates J'g is computed afresh for all rows, to forget rounding errors.
_REFRESH = 30


class Metric(ABC):
    """An approximation H of the inverse Hessian, and its products with the rows of a matrix.

    `update` learns from a step s, against the H g that was returned last, and a change y of the
    gradient; `scale` multiplies H by a number; `reset` forgets everything: H is the identity.
    """

    def __init__(self, rows: Matrix) -> None:
        self.rows = rows
        self.dim = rows.shape[1]
        self._stale: set[int] = set()

    @abstractmethod
    def apply(self, g: Vector) -> Vector:
        """Return H g."""

    @abstractmethod
    def columns(self, count: int) -> Matrix | None:
        """Return vectors whose inner products are g_i' H g_j, for the first `count` rows."""

    @abstractmethod
    def combine(self, weights: Vector) -> tuple[Vector, float]:
        """Return H g and g'Hg for the combination g of the first rows."""

    def replaced(self, slot: int) -> None:
        """Take note that a row has been overwritten."""
        self._stale.add(slot)

    def square(self, v: Vector) -> float:
        """Return v'Hv."""
        return float(v.dot(self.apply(v)))

    def minimise(self, errors: Vector) -> tuple[Vector, float]:
        """Minimise the model made of the first rows g, with these errors.

        Returns H g and g'Hg for the combination g of rows that is its solution.
        """
        columns = self.columns(errors.size)
        weights = None if columns is None else quadratic_weights(columns, errors)
        if weights is None:
            weights = np.zeros(errors.size)
            weights[int(errors.argmin())] = 1.0
        return self.combine(weights)


class FactorMetric(Metric):
    """BFGS with a factor of the matrix, H = J J'.

    A step s = -t H g, with J's own coordinates r = -J'g of its direction, changes J by one rank:

        J + s (sqrt(s'y) r/|r| - J'y)' / s'y,

    the inverse of Dennis and Schnabel's update of a factor of the Hessian (Numerical Methods for
    Unconstrained Optimization, 1983, section 9.2). H cannot lose its sign to rounding, and the
    model becomes a problem of least squares. With more variables than rows J'g is kept for each
    row, and least squares see only the inner products of these.
    """

    def __init__(self, rows: Matrix) -> None:
        super().__init__(rows)
        self.factor: Matrix | None = None
        # J'g for the direction -H g that was returned last.
        self._behind: Vector = np.zeros(self.dim)
        self._many = self.dim > len(rows)
        self._columns: Matrix = np.zeros((0, 0))
        self._age = _REFRESH

    def reset(self) -> None:
        self.factor = None
        self._age = _REFRESH

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
            self._columns *= math.sqrt(factor)

    def columns(self, count: int) -> Matrix | None:
        assert self.factor is not None
        if not self._many:
            columns: Matrix = self.factor.T.dot(self.rows[:count].T)
            return columns
        if self._age >= _REFRESH:
            self._columns, self._age = np.asfortranarray(self.factor.T @ self.rows.T), 0
        else:
            for slot in self._stale:
                self._columns[:, slot] = self.rows[slot].dot(self.factor)
        self._stale.clear()
        kept = self._columns[:, :count]
        return factor_of_gram(kept.T @ kept)

    def combine(self, weights: Vector) -> tuple[Vector, float]:
        image = self.apply(weights.dot(self.rows[: weights.size]))
        return image, float(self._behind.dot(self._behind))

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
        if self._age < _REFRESH:
            self._columns = dger(1.0, change, rows_s, a=self._columns, overwrite_a=1)
            self._age += 1


class LimitedMetric(Metric):
    """L-BFGS in the compact form of Byrd, Nocedal and Schnabel (1994): the last pairs only.

    H = c I + [S Y] M [S Y]' needs only inner products between pairs and rows, each computed once.
    """

    def __init__(self, rows: Matrix, pairs: int) -> None:
        super().__init__(rows)
        self.pairs = pairs
        count, dim = rows.shape
        self._s: Matrix = np.zeros((pairs, dim))
        self._y: Matrix = np.zeros((pairs, dim))
        self._sy: Matrix = np.zeros((pairs, pairs))
        self._yy: Matrix = np.zeros((pairs, pairs))
        self._rows_s: Matrix = np.zeros((count, pairs))
        self._rows_y: Matrix = np.zeros((count, pairs))
        self._rows_rows: Matrix = np.zeros((count, count))
        self.reset()

    def reset(self) -> None:
        self._added = 0
        self._order: list[int] = []  # slots of the pairs, oldest first
        self._scale = 1.0

    def update(self, s: Vector, y: Vector, sy: float, rows_s: Vector) -> None:
        slot = self._added % self.pairs
        self._added += 1
        if slot in self._order:
            self._order.remove(slot)
        self._order.append(slot)
        self._s[slot], self._y[slot] = s, y
        used = min(self._added, self.pairs)
        self._sy[slot, :used] = self._y[:used] @ s
        self._sy[:used, slot] = self._s[:used] @ y
        yy = self._y[:used] @ y
        self._yy[slot, :used] = yy
        self._yy[:used, slot] = yy
        self._rows_s[:, slot] = rows_s
        self._rows_y[:, slot] = self.rows @ y
        self._scale = sy / float(yy[slot])

    def scale(self, factor: float) -> None:
        self._scale *= factor

    def apply(self, g: Vector) -> Vector:
        if not self._order:
            return g.copy()
        used = len(self._order)
        return self._image(g, self._s[:used] @ g, self._y[:used] @ g)

    def columns(self, count: int) -> Matrix | None:
        return factor_of_gram(self.products(count))

    def products(self, count: int) -> Matrix:
        """Return g_i' H g_j for the first `count` rows."""
        used = len(self._order)
        for slot in self._stale:
            if slot < count:
                row = self.rows[slot]
                products = self.rows @ row
                self._rows_rows[slot], self._rows_rows[:, slot] = products, products
                self._rows_s[slot, :used] = self._s[:used] @ row
                self._rows_y[slot, :used] = self._y[:used] @ row
        self._stale.clear()
        gram = self._scale * self._rows_rows[:count, :count]
        if used:
            triangle, middle = self._inner()
            solved = dtrtrs(triangle, self._rows_s[:count, self._order].T)[0]
            mixed = self._rows_y[:count, self._order] @ solved
            mixed *= self._scale
            gram += solved.T @ middle @ solved
            gram -= mixed
            gram -= mixed.T
        return gram

    def combine(self, weights: Vector) -> tuple[Vector, float]:
        count, used = weights.size, len(self._order)
        image = g = weights @ self.rows[:count]
        if used:
            image = self._image(
                g, weights @ self._rows_s[:count, :used], weights @ self._rows_y[:count, :used]
            )
        return image, float(image.dot(g))

    def _inner(self) -> tuple[Matrix, Matrix]:
        """Return R, the upper triangle of S'Y, and D + c Y'Y, oldest pair first."""
        order = np.array(self._order)
        triangle = self._sy[order[:, None], order]
        middle = self._scale * self._yy[order[:, None], order]
        middle.flat[:: order.size + 1] += triangle.diagonal()
        return triangle, middle

    def _image(self, g: Vector, s_g: Vector, y_g: Vector) -> Vector:
        """Return H g from g, S'g and Y'g."""
        order = np.array(self._order)
        triangle, middle = self._inner()
        solved = dtrtrs(triangle, s_g[order])[0]
        inner = dtrtrs(triangle, middle @ solved - self._scale * y_g[order], trans=1)[0]
        along_s, along_y = np.empty(order.size), np.empty(order.size)
        along_s[order] = inner
        along_y[order] = solved
        image = g * self._scale
        image += along_s @ self._s[: order.size]
        image -= self._scale * (along_y @ self._y[: order.size])
        return image
