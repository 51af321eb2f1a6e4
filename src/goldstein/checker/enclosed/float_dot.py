"""Long inner products as exact rationals, without an integer per entry.

A product of two floats is the sum of two floats. Of all of these the leading digits are summed, so
few that nothing is rounded; then those of what is left (Rump, Ogita, Oishi, SIAM J. Sci. Comput.
31, 2008: with 2^M > n + 1 and all terms at most 2^-M s, s a power of two, (s + p) - s has the
digits of p from 2^-53 s on, and sums of n such numbers are exact, in any order).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError
from goldstein.checker.rationals import exact_dot, nearest_float
from goldstein.checker.rounding import product_error


def float_dot(left: Vector, right: Vector) -> Fraction:
    """Return the inner product of two float64 vectors, exactly.

    Examples
    --------
    >>> float_dot(np.array([1e16, 1.0, -1e16]), np.array([1.0, 0.5, 1.0]))
    Fraction(1, 2)
    """
    if left.shape != right.shape:
        raise InputError(f"got vectors of shapes {left.shape} and {right.shape}, expected equal.")
    with np.errstate(all="ignore"):
        product = left * right
        safe = np.abs(product).sum() < 2.0**1000  # so no sum overflows
    error = product_error(left, right, product)
    if not (safe and np.isfinite(error).all()):
        return exact_dot(left, right)
    total, rest = Fraction(0), np.concatenate([product, error])
    while rest.any():
        top = math.frexp(np.abs(rest).max())[1] + rest.size.bit_length() + 1
        part = (math.ldexp(1.0, top) + rest) - math.ldexp(1.0, top)
        total += Fraction(float(part.sum()))
        rest = rest - part
    return total


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
