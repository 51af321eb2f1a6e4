"""Exact numbers: rationals, vectors of them; roundings in a known direction.

Stored float64 numbers are exact rationals.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.errors import InputError, InputTypeError

Rational = Fraction | float | int
RationalVector = Sequence[Rational] | NDArray[Any]

# --- numbers ---------------------------------------------------------------------------------


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


def exact_floats(values: Any, name: str) -> NDArray[np.float64]:
    """Return numbers as a new float64 array; those that would be rounded are refused.

    Examples
    --------
    >>> exact_floats([1, 0.5], "a limit")
    array([1. , 0.5])
    """
    array = np.asarray(values)
    if array.dtype.kind not in "fiubO" or (array.dtype.kind == "O" and array.size == 0):
        raise InputTypeError(f"{name} must hold numbers, got {str(values)[:60]}.")
    try:
        out = np.array(array, dtype=np.float64)
        pairs = zip(out.ravel().tolist(), array.ravel())
        if array.dtype.itemsize > 4 and array.dtype != np.float64:
            for near, value in pairs:
                if np.isfinite(near) and to_fraction(value) != Fraction(near):
                    raise InputError(
                        f"{name} holds {value}, which is no float64 number: it would become "
                        f"{near!r}. Round it yourself, or rescale the problem."
                    )
    except (TypeError, OverflowError):
        raise InputTypeError(f"{name} must hold numbers, got {str(values)[:60]}.") from None
    return out


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


def fraction_lower(value: Fraction) -> float:
    """Return the largest float that is not above a rational."""
    return -fraction_upper(-value)


def _scaled_root(value: Fraction) -> tuple[int, int, bool]:
    """Return (r, s, exact) with r = floor(sqrt(value) 2^s), carrying at least 64 bits."""
    if value < 0:
        raise InputError(f"got {float(value)}, expected a nonnegative number under the root.")
    size = value.numerator.bit_length() - value.denominator.bit_length()
    shift = max(0, 70 - size // 2)
    top = value.numerator << (2 * shift)
    root = math.isqrt(top // value.denominator)
    return root, shift, root * root * value.denominator == top


def sqrt_upper(value: Fraction) -> float:
    """Return a float that is at least the square root of a rational, within two ulps.

    Examples
    --------
    >>> sqrt_upper(Fraction(9, 4)), Fraction(sqrt_upper(Fraction(2))) ** 2 >= 2
    (1.5, True)
    """
    root, shift, exact = _scaled_root(value)
    return fraction_upper(Fraction(root if exact else root + 1, 1 << shift))


def sqrt_lower(value: Fraction) -> float:
    """Return a float that is at most the square root of a rational, within two ulps."""
    root, shift, _ = _scaled_root(value)
    return fraction_lower(Fraction(root, 1 << shift))


# --- vectors ---------------------------------------------------------------------------------


def exact_dot(left: RationalVector, right: RationalVector) -> Fraction:
    """Return the inner product of two vectors, exactly.

    Examples
    --------
    >>> exact_dot([1e16, 1.0, -1e16], [1.0, 1.0, 1.0])
    Fraction(1, 1)
    """
    same_length(len(left), len(right))
    left_top, left_bottom = common_denominator(left)
    right_top, right_bottom = common_denominator(right)
    return Fraction(integer_dot(left_top, right_top), left_bottom * right_bottom)


def exact_combination(weights: RationalVector, vectors: Sequence[RationalVector]) -> list[Fraction]:
    """Return `sum_j weights[j] vectors[j]`, exactly.

    Examples
    --------
    >>> exact_combination([0.5, 0.5], [[1.0, 0.0], [0.0, 3.0]])
    [Fraction(1, 2), Fraction(3, 2)]
    """
    same_length(len(weights), len(vectors))
    if len(vectors) == 0:
        raise InputError("got no vectors, expected at least one to combine.")
    tops, bottom = common_denominator(weights)
    rows = [common_denominator(vector) for vector in vectors]
    shared = math.lcm(*(row[1] for row in rows))
    total = [0] * len(rows[0][0])
    for weight, (entries, denominator) in zip(tops, rows, strict=True):
        same_length(len(entries), len(total))
        if weight:
            scale = weight * (shared // denominator)
            total = [old + scale * entry for old, entry in zip(total, entries, strict=True)]
    return [Fraction(entry, bottom * shared) for entry in total]


def squared_norm(vector: RationalVector) -> Fraction:
    """Return the square of the Euclidean norm, exactly."""
    entries, denominator = common_denominator(vector)
    return Fraction(integer_dot(entries, entries), denominator * denominator)


def squared_distance(left: RationalVector, right: RationalVector) -> Fraction:
    """Return the square of the Euclidean distance of two vectors, exactly."""
    same_length(len(left), len(right))
    pairs = list(zip(*(v.tolist() if isinstance(v, np.ndarray) else v for v in (left, right))))
    try:
        # Coordinates that agree need no common denominator; ratios are in lowest terms.
        apart = [(a, b) for a, b in pairs if a.as_integer_ratio() != b.as_integer_ratio()]
    except (AttributeError, OverflowError, ValueError):
        apart = pairs  # NumPy's integers, or no numbers at all
    if not apart:
        return Fraction(0)
    return squared_norm(exact_combination([1, -1], list(zip(*apart, strict=True))))


def norm_upper(vector: RationalVector) -> float:
    """Return a float that is at least the Euclidean norm."""
    return sqrt_upper(squared_norm(vector))


def distance_upper(left: RationalVector, right: RationalVector) -> float:
    """Return a float that is at least the Euclidean distance."""
    return sqrt_upper(squared_distance(left, right))


def integer_dot(left: Sequence[int], right: Sequence[int]) -> int:
    return sum(a * b for a, b in zip(left, right, strict=True))


def are_floats(vector: RationalVector) -> bool:
    """Is it a float64 vector?"""
    return isinstance(vector, np.ndarray) and vector.dtype == np.float64 and vector.ndim == 1


def same_length(got: int, expected: int) -> None:
    if got != expected:
        raise InputError(f"got vectors of lengths {got} and {expected}, expected equal lengths.")


def flint() -> ModuleType | None:
    """Return python-flint, or None where it is not installed."""
    try:
        return importlib.import_module("flint")
    except ImportError:
        return None
