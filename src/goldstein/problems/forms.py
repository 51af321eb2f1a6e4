"""The three outer functions most test problems share, with one gradient row per call."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.problem import Objective

Pieces = Callable[[Vector], Vector]
Row = Callable[[Vector, int], Vector]
Pullback = Callable[[Vector, Vector], Vector]


def signs(v: Vector) -> Vector:
    """Return +1 where v >= 0 and -1 elsewhere: a kink is resolved to its right side."""
    return np.where(v >= 0.0, 1.0, -1.0)


def unit_vector(d: int, i: int, entry: float = 1.0) -> Vector:
    """Return the vector with one nonzero entry."""
    e = np.zeros(d)
    e[i] = entry
    return e


def largest(pieces: Pieces, row: Row) -> Objective:
    """f = max_i pieces_i; `row(x, i)` is the gradient of piece i."""

    def both(x: Vector) -> tuple[float, Vector]:
        v = pieces(x)
        i = int(np.argmax(v))
        return float(v[i]), row(x, i)

    return Objective(lambda x: float(np.max(pieces(x))), lambda x: both(x)[1], both)


def largest_modulus(residuals: Pieces, row: Row) -> Objective:
    """f = max_i |residuals_i|; `row(x, i)` is the gradient of residual i."""

    def both(x: Vector) -> tuple[float, Vector]:
        v = residuals(x)
        i = int(np.argmax(np.abs(v)))
        if v[i] >= 0.0:
            return float(v[i]), row(x, i)
        return float(-v[i]), -row(x, i)

    def value(x: Vector) -> float:
        v = residuals(x)
        return float(max(np.max(v), -np.min(v)))

    return Objective(value, lambda x: both(x)[1], both)


def sum_of_moduli(residuals: Pieces, pullback: Pullback) -> Objective:
    """f = sum_i |residuals_i|; `pullback(x, s)` is the gradient of s . residuals at x."""

    def both(x: Vector) -> tuple[float, Vector]:
        v = residuals(x)
        return float(np.sum(np.abs(v))), pullback(x, signs(v))

    return Objective(lambda x: float(np.sum(np.abs(residuals(x)))), lambda x: both(x)[1], both)
