"""Numbers, taken exactly or refused: rationals, vectors of them; roundings in a known direction.

Claims are about the real numbers that stored float64 data are. What a user gives must therefore be
exactly such a number; where it is not, an error says so, and nothing is rounded.
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError, InputTypeError

RationalVector = Sequence[Any] | NDArray[Any]

#: Integers below are float64 numbers, all of them.
_ALL_FLOATS = 2**53


def to_fraction(value: Any, what: str = "a number") -> Fraction:
    """Return a finite number as an exact Fraction.

    Examples
    --------
    >>> to_fraction(0.5), to_fraction(np.float32(0.1))
    (Fraction(1, 2), Fraction(13421773, 134217728))
    """
    if isinstance(value, np.integer | np.bool_):  # these lack the method
        value = int(value)
    try:
        return Fraction(*value.as_integer_ratio())
    except AttributeError:
        kind = type(value).__name__
        raise InputTypeError(f"{what} must be a real number, got {kind} {value!r:.40}.") from None
    except (OverflowError, ValueError):
        raise InputError(f"{what} is {value}, expected a finite number.") from None


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
    except (AttributeError, OverflowError, ValueError):
        # NumPy's integers; or it says what is wrong
        ratios = [value.as_integer_ratio() for value in to_fractions(entries)]
    denominator = math.lcm(*(ratio[1] for ratio in ratios))
    return [top * (denominator // bottom) for top, bottom in ratios], denominator


def exact_floats(data: Any, what: str = "a constant", *, finite: bool = True) -> Vector:
    """Return numbers as a float64 array, every one of them exactly, or refuse them.

    Truth values count as 0 and 1, as in NumPy.

    Examples
    --------
    >>> exact_floats(np.array([200], dtype=np.uint8))
    array([200.])
    >>> exact_floats(2**53 + 1)
    Traceback (most recent call last):
        ...
    goldstein.errors.InputError: a constant is 9007199254740993, which is not a float64 number...
    """
    try:
        array = np.asarray(data)
    except Exception as failure:  # whatever a foreign class raises
        raise InputTypeError(f"{what} is not an array of numbers: {failure}") from failure
    kind = array.dtype.kind
    if isinstance(data, np.ma.MaskedArray) or kind not in "biufO":
        name = "masked" if isinstance(data, np.ma.MaskedArray) else array.dtype.name
        raise InputTypeError(f"{what} holds {name} entries, expected real numbers.")
    short = kind != "O" and array.dtype.itemsize <= 8
    floats: Vector = array.astype(np.float64, copy=False) if short else array
    # Integers may have more digits; where they stand next to floats NumPy has rounded them.
    known = kind == "f" and isinstance(data, np.ndarray)
    if not (short and (known or (np.abs(floats) < _ALL_FLOATS).all())):
        entries = np.asarray(data, dtype=object)
        exact = [_exact_float(entry, what, finite) for entry in entries.ravel().tolist()]
        floats = np.array(exact, dtype=np.float64).reshape(entries.shape)
    if finite and not np.isfinite(floats).all():
        raise InputError(f"{what} has a NaN or an infinity; every entry must be finite.")
    return floats


def _exact_float(value: Any, what: str, finite: bool) -> float:
    if not finite and isinstance(value, float | np.floating) and not np.isfinite(value):
        return float(value)
    exact = to_fraction(value, what)
    near = nearest_float(exact)
    if near != exact:
        raise InputError(
            f"{what} is {exact}, which is not a float64 number (the nearest is {near!r}), and "
            "proofs are about exact numbers; give float(...) of it if the nearest will do. In "
            "expressions dividing by integers and Fractions is exact: w / 3."
        )
    return near


def exact_sparse(data: Any, what: str) -> Any:
    """Return a sparse matrix with float64 entries, every one of them exactly, or refuse it."""
    plain = data if hasattr(data, "indptr") else data.tocoo()
    exact_floats(plain.data, what)
    # Duplicates are added up, which must not happen in a short integer type.
    return plain.astype(np.float64, copy=False)


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
    nearest = nearest_float(value)  # compared exactly
    return nearest if nearest >= value else math.nextafter(nearest, math.inf)


def sqrt_upper(value: Fraction) -> float:
    """Return a float that is at least the square root of a rational, within two ulps.

    Examples
    --------
    >>> sqrt_upper(Fraction(9, 4)), Fraction(sqrt_upper(Fraction(2))) ** 2 >= 2
    (1.5, True)
    """
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
