"""Outer functions that test problems share, and how to put functions together."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.problem import Objective, PairFunction, ValueFunction

Pieces = Callable[[Vector], Any]
Row = Callable[[Vector, int], Any]
#: Up to here the dense product is exact to the last bits and as fast as the FFT.
DENSE_LIMIT = 512
#: The vector-Jacobian product: the gradient of s . residuals at x.
Pullback = Callable[[Vector, Vector], Any]


def signs(v: Vector) -> Vector:
    """Return +1 where v >= 0 and -1 elsewhere: a kink is resolved to its right side."""
    return np.where(v >= 0.0, 1.0, -1.0)


def sign(t: float) -> float:
    """Return the same of one number."""
    return 1.0 if t >= 0.0 else -1.0


def unit_vector(d: int, i: int, entry: float = 1.0) -> Vector:
    """Return the vector with one nonzero entry."""
    e = np.zeros(d)
    e[i] = entry
    return e


def together(both: PairFunction, value: ValueFunction | None = None) -> Objective:
    """A function of a pair (value, gradient); `value` is for those whose value alone is cheaper."""
    return Objective(value or (lambda x: both(x)[0]), lambda x: both(x)[1], both)


def plane_pair(both: Callable[..., tuple[Any, Any]]) -> Objective:
    """A function of few numbers: `both(a, b, ...)` is its value and its derivatives."""
    return together(lambda x: both(*x))


def largest(pieces: Pieces, row: Row) -> Objective:
    """f = max_i pieces_i; `row(x, i)` is the gradient of piece i."""

    def both(x: Vector) -> tuple[float, Any]:
        v = pieces(x)
        i = int(np.argmax(v))
        return v[i], row(x, i)

    return together(both, lambda x: np.max(pieces(x)))


def largest_modulus(residuals: Pieces, row: Row) -> Objective:
    """f = max_i |residuals_i|; `row(x, i)` is the gradient of residual i."""

    def both(x: Vector) -> tuple[float, Any]:
        v = residuals(x)
        i = int(np.argmax(np.abs(v)))
        return (v[i], row(x, i)) if v[i] >= 0.0 else (-v[i], -np.asarray(row(x, i)))

    def value(x: Vector) -> float:
        v = residuals(x)
        return float(max(np.max(v), -np.min(v)))

    return together(both, value)


def sum_of_moduli(residuals: Pieces, pullback: Pullback) -> Objective:
    """f = sum_i |residuals_i|."""

    def both(x: Vector) -> tuple[float, Any]:
        v = residuals(x)
        return float(np.sum(np.abs(v))), pullback(x, signs(v))

    return together(both, lambda x: float(np.sum(np.abs(residuals(x)))))


def sum_of_positive_parts(residuals: Pieces, pullback: Pullback) -> Objective:
    """f = sum_i max{0, residuals_i}."""

    def both(x: Vector) -> tuple[float, Any]:
        v = residuals(x)
        return float(np.sum(np.maximum(v, 0.0))), pullback(x, (v > 0.0).astype(np.float64))

    return together(both, lambda x: float(np.sum(np.maximum(residuals(x), 0.0))))


def weighted_modulus(weight: float) -> Objective:
    """f = weight |x|_1."""
    return sum_of_moduli(lambda x: weight * x, lambda _, s: weight * s)


def added(first: Objective, second: Objective) -> Objective:
    """f = first + second."""

    def both(x: Vector) -> tuple[float, Any]:
        value, gradient = _pair(first, x)
        more, further = _pair(second, x)
        return value + more, gradient + further

    return together(both, lambda x: first.value(x) + second.value(x))


def _pair(f: Objective, x: Vector) -> tuple[float, Any]:
    return (f.value(x), f.gradient(x)) if f.both is None else f.both(x)


def hilbert_product(d: int) -> Pieces:
    """Return x -> Hx with H_ij = 1/(i+j-1), at O(d log d) cost for large d."""
    if d <= DENSE_LIMIT:
        index = np.arange(d)
        matrix = 1.0 / (index[:, None] + index + 1.0)
        return lambda x: np.asarray(matrix @ x)

    from scipy import fft  # imported here: only large problems pay for it

    # Hx is a convolution of 1/k with x reversed; wrap-around only reaches entries we drop.
    length = fft.next_fast_len(2 * d - 1, real=True)
    spectrum = fft.rfft(1.0 / np.arange(1.0, 2 * d), length)

    def product(x: Vector) -> Vector:
        full = fft.irfft(spectrum * fft.rfft(x[::-1], length), length)
        return np.asarray(full[d - 1 : 2 * d - 1])

    return product


def hilbert_row(d: int, i: int) -> Vector:
    """Return row i (counted from 0) of the d x d Hilbert matrix."""
    return 1.0 / np.arange(i + 1.0, i + 1.0 + d)
