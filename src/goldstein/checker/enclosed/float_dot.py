"""Long inner products as exact rationals, without an integer per entry.

A float64 number is an integer of 53 bits times a power of two. Products of halves of such integers
fit into 64 bits; they are cut into digits of 27 bits, which are added up separately for every
exponent. Nothing is ever rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError
from goldstein.checker.rationals import exact_dot, nearest_float

Integers = NDArray[np.int64]

_DIGIT = 27
_MASK = 2**_DIGIT - 1

#: Terms at a time. Far fewer than 2^26, so that float64 sums of their digits are exact; so few that
#: what is computed for them stays in the cache.
_MOST_TERMS = 2048


def float_dot(left: Vector, right: Vector) -> Fraction:
    """Return the inner product of two float64 vectors, exactly.

    Examples
    --------
    >>> float_dot(np.array([1e16, 1.0, -1e16]), np.array([1.0, 0.5, 1.0]))
    Fraction(1, 2)
    """
    if left.shape != right.shape:
        raise InputError(f"got vectors of shapes {left.shape} and {right.shape}, expected equal.")
    if not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InputError(
            "got a NaN or an infinity, expected finite numbers; exact arithmetic needs them."
        )
    used = np.flatnonzero((left != 0) & (right != 0))
    total = Fraction(0)
    for start in range(0, used.size, _MOST_TERMS):
        some = used[start : start + _MOST_TERMS]
        total += _short_dot(left[some], right[some])
    return total


def _short_dot(left: Vector, right: Vector) -> Fraction:
    high_a, low_a, exponent_a = _halves(left)
    high_b, low_b, exponent_b = _halves(right)
    # With B = 2^27 the product is high_a high_b B^2 + (mixed terms) B + low_a low_b; high parts are
    # at most 2^26 in size and low parts less than 2^27, so that no sum here reaches 2^56.
    lowest = low_a * low_b
    middle = high_a * low_b + low_a * high_b + (lowest >> _DIGIT)
    top = high_a * high_b + (middle >> _DIGIT)
    digits = (lowest & _MASK, middle & _MASK, top & _MASK, top >> _DIGIT)
    exponent = exponent_a + exponent_b
    least = int(exponent.min())
    sums = [
        np.bincount(exponent - least, weights=digit.astype(np.float64)).tolist() for digit in digits
    ]
    value = 0
    for parts in zip(*(reversed(part) for part in sums), strict=True):
        here = sum(int(part) << (_DIGIT * place) for place, part in enumerate(parts))
        value = (value << 1) + here
    # Both mantissas were scaled by 2^53.
    power = least - 106
    return Fraction(value << power) if power >= 0 else Fraction(value, 1 << -power)


def _halves(values: Vector) -> tuple[Integers, Integers, NDArray[np.intp]]:
    """Return (high, low, e) with values = (high 2^27 + low) 2^(e - 53) and 0 <= low < 2^27."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    return whole >> _DIGIT, whole & _MASK, exponent.astype(np.intp)


def row_products(rows: Any, vector: Vector | Sequence[Fraction]) -> list[Fraction]:
    """Return the products of a sparse float64 matrix with a vector, exactly.

    Of a vector of rationals the nearest floats are multiplied, and what these leave of it.
    """
    found, spans = [], list(pairwise(rows.indptr.tolist()))
    if isinstance(vector, np.ndarray):
        return [float_dot(rows.data[a:b], vector[rows.indices[a:b]]) for a, b in spans]
    floats = np.array([nearest_float(v) if abs(v) < 2**1023 else 0.0 for v in vector])
    left = np.array([v - Fraction(a) for v, a in zip(vector, floats.tolist())], dtype=object)
    for a, b in spans:
        places, numbers = rows.indices[a:b], rows.data[a:b]
        some = np.flatnonzero(left[places])
        rest = exact_dot(numbers[some], left[places[some]])
        found.append(float_dot(numbers, floats[places]) + rest)
    return found


__all__ = ["float_dot", "row_products"]
