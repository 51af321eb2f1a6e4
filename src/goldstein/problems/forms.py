"""Outer functions that test problems share, and how to put functions together."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.problem import Objective

Pieces = Callable[[Vector], Vector]
Row = Callable[[Vector, int], Vector]
Pullback = Callable[[Vector, Vector], Vector]
Both = Callable[[Vector], tuple[float, Vector]]


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


def together(both: Both) -> Objective:
    """A function whose value costs about as much alone as with its gradient."""
    return Objective(lambda x: both(x)[0], lambda x: both(x)[1], both)


def added(first: Objective, second: Objective) -> Objective:
    """f = first + second."""

    def both(x: Vector) -> tuple[float, Vector]:
        value, gradient = _pair(first, x)
        more, further = _pair(second, x)
        return value + more, gradient + further

    return Objective(
        lambda x: first.value(x) + second.value(x),
        lambda x: first.gradient(x) + second.gradient(x),
        both,
    )


def _pair(f: Objective, x: Vector) -> tuple[float, Vector]:
    return (f.value(x), f.gradient(x)) if f.both is None else f.both(x)


def sum_of_positive_parts(residuals: Pieces, pullback: Pullback) -> Objective:
    """f = sum_i max{0, residuals_i}; `pullback` as in `sum_of_moduli`."""

    def both(x: Vector) -> tuple[float, Vector]:
        v = residuals(x)
        return float(np.sum(np.maximum(v, 0.0))), pullback(x, (v > 0.0).astype(np.float64))

    def value(x: Vector) -> float:
        return float(np.sum(np.maximum(residuals(x), 0.0)))

    return Objective(value, lambda x: both(x)[1], both)


def weighted_modulus(weight: float) -> Objective:
    """f = weight |x|_1."""
    return sum_of_moduli(lambda x: weight * x, lambda _, s: weight * s)
