"""Exact numbers: rationals, vectors of them; roundings in a known direction.

Stored float64 numbers are exact rationals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.errors import InputError

Rational = Fraction | float | int
RationalVector = Sequence[Rational] | NDArray[Any]


def to_fraction(value: Any) -> Fraction:
    """Return a finite number as an exact Fraction.

    Examples
    --------
    >>> to_fraction(0.5)
    Fraction(1, 2)
    """
    if isinstance(value, Fraction):
        return value
    if isinstance(value, np.integer):
        return Fraction(int(value))
    if hasattr(value, "p") and hasattr(value, "q"):  # a rational of python-flint
        return Fraction(int(value.p), int(value.q))
    try:
        return Fraction(*value.as_integer_ratio())
    except (AttributeError, OverflowError, ValueError):
        raise InputError(
            f"got {value!r}, expected a finite number; exact arithmetic needs one."
        ) from None


def to_fractions(values: RationalVector) -> list[Fraction]:
    """Return every entry of a vector as an exact Fraction.

    Examples
    --------
    >>> to_fractions([0.5, 2])
    [Fraction(1, 2), Fraction(2, 1)]
    """
    entries = values.tolist() if isinstance(values, np.ndarray) else values
    return [to_fraction(value) for value in entries]


def common_denominator(values: RationalVector) -> tuple[list[int], int]:
    """Write a vector as integers over one positive denominator.

    Examples
    --------
    >>> common_denominator([0.5, 0.75, 1])
    ([2, 3, 4], 4)
    """
    entries = values.tolist() if isinstance(values, np.ndarray) else values
    try:
        ratios = [value.as_integer_ratio() for value in entries]
    except AttributeError:  # NumPy's integers lack the method
        return common_denominator(to_fractions(entries))
    except (OverflowError, ValueError):
        raise InputError(
            "got a NaN or an infinity, expected finite numbers; exact arithmetic needs them."
        ) from None
    denominator = math.lcm(*(ratio[1] for ratio in ratios))
    return [top * (denominator // bottom) for top, bottom in ratios], denominator


def nearest_float(value: Any) -> float:
    """Return the float nearest to a rational, an infinity beyond the largest one.

    Examples
    --------
    >>> nearest_float(Fraction(1, 3)), nearest_float(Fraction(-(10**400)))
    (0.3333333333333333, -inf)
    """
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def fraction_upper(value: Fraction) -> float:
    """Return the smallest float that is not below a rational (`inf` past the largest float).

    Examples
    --------
    >>> fraction_upper(Fraction(1, 10)), fraction_upper(Fraction(1, 3)) > 1 / 3
    (0.1, True)
    """
    try:
        nearest = float(value)
    except OverflowError:
        return math.inf if value > 0 else -float(np.finfo(np.float64).max)
    return nearest if Fraction(nearest) >= value else math.nextafter(nearest, math.inf)


def sqrt_upper(value: Fraction) -> float:
    """Return a float that is at least the square root of a rational, within two ulps.

    Examples
    --------
    >>> sqrt_upper(Fraction(9, 4)), Fraction(sqrt_upper(Fraction(2))) ** 2 >= 2
    (1.5, True)
    """
    if value < 0:
        raise InputError(f"got {float(value)}, expected a nonnegative number under the root.")
    # r = floor(root 2^shift) carries at least 64 bits.
    shift = max(0, 70 - (value.numerator.bit_length() - value.denominator.bit_length()) // 2)
    top = value.numerator << (2 * shift)
    r = math.isqrt(top // value.denominator)
    return fraction_upper(Fraction(r + (r * r * value.denominator != top), 1 << shift))


def exact_dot(left: RationalVector, right: RationalVector) -> Fraction:
    """Return the inner product of two vectors, exactly.

    Examples
    --------
    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    Fraction(1, 1)
    """
    (a, p), (b, q) = common_denominator(left), common_denominator(right)
    return Fraction(sum(s * t for s, t in zip(a, b, strict=True)), p * q)


def squared_norm(vector: RationalVector) -> Fraction:
    """Return the square of the Euclidean norm, exactly."""
    return exact_dot(vector, vector)


def squared_distance(left: RationalVector, right: RationalVector) -> Fraction:
    """Return the square of the Euclidean distance of two vectors, exactly."""
    pairs = zip(to_fractions(left), to_fractions(right), strict=True)
    return squared_norm([a - b for a, b in pairs if a != b])
