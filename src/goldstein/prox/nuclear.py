"""The nuclear norm: matrices of low rank."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.fenchel import singular_upper
from goldstein.errors import InputError
from goldstein.prox.term import Chart, Term, plain, weight_of

#: Singular values below this part of the largest are rounding errors.
ROUNDING = 1e-12


class _Factors(Chart):
    """Matrices of a rank as products A B'; h is (|A|^2 + |B|^2) / 2 for the best factors."""

    def __init__(self, term: Nuclear, U: Matrix, s: Vector, W: Matrix) -> None:
        self.weight, self.shape, self.rank = float(term.weight[0]), term.shape, s.size
        root = np.sqrt(s)
        self.start = np.concatenate([(U * root).ravel(), (W.T * root).ravel()])

    def _factors(self, u: Vector) -> tuple[Matrix, Matrix]:
        rows, columns = self.shape
        cut = rows * self.rank
        return u[:cut].reshape(rows, self.rank), u[cut:].reshape(columns, self.rank)

    def point(self, u: Vector) -> Vector:
        A, B = self._factors(u)
        return (A @ B.T).ravel()

    def pull(self, g: Vector, u: Vector) -> Vector:
        A, B = self._factors(u)
        G = g.reshape(self.shape)
        return np.concatenate([(G @ B).ravel(), (G.T @ A).ravel()])

    def value(self, u: Vector) -> float:
        return 0.5 * self.weight * float(u @ u)

    def slope(self, u: Vector) -> Vector:
        return self.weight * u


class Nuclear(Term):
    """h(X) = weight times the sum of the singular values of X."""

    name = "nuclear"

    def __init__(self, weight: float, shape: tuple[int, int]) -> None:
        self.weight = weight_of("weight", weight)
        if self.weight.size != 1:
            raise InputError(f"nuclear: weight must be one number, got {weight!r}.")
        sizes = tuple(shape) if isinstance(shape, list | tuple) else ()
        whole = all(isinstance(n, int | np.integer) and n > 0 for n in sizes)
        if len(sizes) != 2 or not whole:
            raise InputError(f"nuclear: shape must be (rows, columns), got {shape!r}.")
        self.shape = (int(sizes[0]), int(sizes[1]))

    def _parts(self, x: Vector, width: float = 0.0) -> tuple[Matrix, Vector, Matrix]:
        """Return the singular values above rounding and `width`, with their vectors."""
        U, s, W = np.linalg.svd(x.reshape(self.shape), full_matrices=False)
        kept = s > max(ROUNDING * float(s.max(initial=0.0)), width)
        return U[:, kept], s[kept], W[kept]

    def value(self, x: Vector) -> float:
        s = np.linalg.svd(x.reshape(self.shape), compute_uv=False)
        return float(self.weight[0]) * math.fsum(s.tolist())

    def prox(self, x: Vector, step: float) -> Vector:
        less = step * float(self.weight[0])
        U, s, W = self._parts(x, less)
        return ((U * (s - less)) @ W).ravel()

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        weight = float(self.weight[0])
        U, _, W = self._parts(x)
        rest = wish.reshape(self.shape)
        rest = rest - U @ (U.T @ rest)
        rest = rest - (rest @ W.T) @ W
        P, t, Q = np.linalg.svd(rest, full_matrices=False)
        whole = weight * (U @ W) + (P * np.minimum(t, weight)) @ Q
        while (longest := singular_upper(whole)[0]) > weight:  # rounding: a little shorter
            whole = whole * (weight / longest * (1.0 - 2.0**-48))
        return np.asarray(whole).ravel()

    def record(self) -> dict[str, Any]:
        return {"weight": plain(self.weight), "shape": list(self.shape)}

    def check(self, size: int) -> None:
        if size != self.shape[0] * self.shape[1]:
            raise InputError(f"nuclear: shape {self.shape} for a point of {size} entries.")

    def snap(self, x: Vector, width: float) -> Vector:
        U, s, W = self._parts(x, width)
        return ((U * s) @ W).ravel()

    def chart(self, x: Vector) -> Chart:
        return _Factors(self, *self._parts(x))

    def structure(self, x: Vector) -> str:
        return f"rank {self._parts(x)[1].size} of {min(self.shape)}"


def nuclear(weight: float, shape: tuple[int, int]) -> Term:
    """Return h(X) = weight times the sum of the singular values of X.

    Parameters
    ----------
    weight : float
    shape : (int, int)
        Of the matrix; x0 may be a matrix of this shape, or its entries row by row.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.nuclear(1.0, (2, 2)).prox(np.array([3.0, 0.0, 0.0, 0.5]), 1.0)
    array([2., 0., 0., 0.])
    """
    return Nuclear(weight, shape)
