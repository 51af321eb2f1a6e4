"""Several sparse polynomials at once: the language of the penalised classical problems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import largest
from goldstein.problems.problem import Objective

#: coefficient, variable (from 1, as in the literature), power, centre: c (x_i - centre)^power
Term = tuple[float, int, int, float]
#: coefficient and two variables: c x_i x_j
Product = tuple[float, int, int]
#: constant, terms, products
Polynomial = tuple[float, Sequence[Term], Sequence[Product]]


class SparsePolynomials:
    """A vector of polynomials, evaluated in a few array operations."""

    def __init__(self, polynomials: Sequence[Polynomial]) -> None:
        self.constants = np.array([p[0] for p in polynomials])
        terms = [(k, *term) for k, p in enumerate(polynomials) for term in p[1]]
        products = [(k, *product) for k, p in enumerate(polynomials) for product in p[2]]
        self._owner = np.array([t[0] for t in terms])
        self._coefficient = np.array([float(t[1]) for t in terms])
        self._variable = np.array([t[2] - 1 for t in terms])
        self._power = np.array([t[3] for t in terms])
        self._centre = np.array([float(t[4]) for t in terms])
        self._products = [(k, c, i - 1, j - 1) for k, c, i, j in products]

    def values(self, x: Vector) -> Vector:
        """Return all polynomials at x."""
        powers = self._coefficient * (x[self._variable] - self._centre) ** self._power
        out = self.constants + np.bincount(self._owner, powers, self.constants.size)
        for k, c, i, j in self._products:
            out[k] += c * x[i] * x[j]
        return np.asarray(out)

    def gradient(self, x: Vector, k: int) -> Vector:
        """Return the gradient of polynomial k."""
        mine = self._owner == k
        variable, power = self._variable[mine], self._power[mine]
        slopes = self._coefficient[mine] * power * (x[variable] - self._centre[mine]) ** (power - 1)
        g = np.bincount(variable, slopes, x.size)
        for owner, c, i, j in self._products:
            if owner == k:
                g[i] += c * x[j]
                g[j] += c * x[i]
        return np.asarray(g)


def penalised(polynomials: Sequence[Polynomial], penalty: float = 10.0) -> Objective:
    """max{p_0, p_0 + penalty p_1, ...}: p_0 under the constraints p_k <= 0, exactly penalised."""
    system = SparsePolynomials(polynomials)

    def pieces(x: Vector) -> Vector:
        p = system.values(x)
        v = p[0] + penalty * p
        v[0] = p[0]
        return np.asarray(v)

    def row(x: Vector, k: int) -> Vector:
        g = system.gradient(x, 0)
        return g if k == 0 else g + penalty * system.gradient(x, k)

    return largest(pieces, row)


def rosen_suzuki_polynomials() -> list[Polynomial]:
    """Rosen and Suzuki's objective and its three constraints, Comm. ACM 8 (1965), 113."""
    squares = ((1, 1, 2, 1), (1, 1, 1, 1), (1, 2, 1, 2), (1, 1, 1, 0))
    linear = ((-5, -5, -21, 7), (1, -1, 1, -1), (-1, 0, 0, -1), (2, -1, 0, -1))
    return [
        (
            -constant,
            [(float(q), i, 2, 0.0) for i, q in enumerate(square, 1)]
            + [(float(b), i, 1, 0.0) for i, b in enumerate(slope, 1)],
            [],
        )
        for constant, square, slope in zip((0.0, 8.0, 10.0, 5.0), squares, linear, strict=True)
    ]
