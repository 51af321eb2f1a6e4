"""Numbers that a claim is about: taken exactly, or refused.

Claims are about the real numbers that stored float64 data are. What a user gives must therefore be
exactly such a number; where it is not, an error says so, and nothing is rounded.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError, InputTypeError
from goldstein.checker.rationals import nearest_float

#: Integers up to here are float64 numbers, all of them.
_ALL_FLOATS = 2**53

#: Sparse formats whose entries stand in one array.
_WITH_ENTRIES = frozenset({"bsr", "coo", "csc", "csr", "dia"})


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
    plain = type(data) is np.ndarray and data.dtype == np.float64
    array = data if plain else _as_array(data, what)
    kind = array.dtype.kind
    if plain:
        floats = array
    elif kind == "O":
        entries = [_exact_entry(entry, what, finite) for entry in array.ravel().tolist()]
        floats = np.array(entries, dtype=np.float64).reshape(array.shape)
    elif kind in "iu":
        floats = array.astype(np.float64)
        large = np.abs(floats) >= _ALL_FLOATS
        if large.any():
            _refuse_rounded([Fraction(v) for v in array[large].tolist()], floats[large], what)
    elif kind in "fb":
        with np.errstate(over="ignore"):
            floats = array.astype(np.float64, copy=False)
        if array.dtype.itemsize > 8:
            finite_entries = np.isfinite(array)
            exact = [Fraction(*v.as_integer_ratio()) for v in array[finite_entries].ravel()]
            _refuse_rounded(exact, floats[finite_entries], what)
    else:
        raise InputTypeError(f"{what} holds {array.dtype.name} entries, expected real numbers.")
    if finite and not np.isfinite(floats).all():
        raise InputError(f"{what} has a NaN or an infinity; every entry must be finite.")
    return floats


def exact_number(value: Any, what: str, *, truth: bool = False) -> Fraction:
    """Return one finite real number as an exact rational, or refuse it.

    Parameters
    ----------
    truth : bool
        Whether True and False count as 1 and 0; as a parameter they are a mistake.

    Examples
    --------
    >>> exact_number(np.float32(0.1), "slope")
    Fraction(13421773, 134217728)
    """
    if isinstance(value, Fraction):
        return value
    if not isinstance(value, int | float | Decimal | np.generic):
        array = _as_array(value, what)
        if array.dtype == object or array.ndim != 0:
            raise InputTypeError(f"{what} must be a real number, got {_described(value)}.")
        value = array[()]
    if isinstance(value, bool | np.bool_):
        if not truth:
            raise InputTypeError(f"{what} must be a real number, got the truth value {value}.")
        return Fraction(int(value))
    if not isinstance(value, int | float | Decimal | np.integer | np.floating):
        raise InputTypeError(f"{what} must be a real number, got {_described(value)}.")
    number = int(value) if isinstance(value, np.integer) else value
    try:
        # Exact for NumPy's floats too, shorter and longer ones.
        return Fraction(*number.as_integer_ratio())
    except (OverflowError, ValueError):
        raise InputError(f"{what} is {value}, expected a finite number.") from None


def exact_float(value: Any, what: str, *, truth: bool = False) -> float:
    """Return one finite real number as a float, exactly, or refuse it."""
    if type(value) is float and math.isfinite(value):
        return value
    number = exact_number(value, what, truth=truth)
    near = nearest_float(number)
    _refuse_rounded([number], np.array([near]), what)
    return near


def _exact_entry(value: Any, what: str, finite: bool) -> float:
    if not finite and isinstance(value, float | np.floating) and not np.isfinite(value):
        return float(value)
    return exact_float(value, what, truth=True)


def exact_sparse(data: Any, what: str) -> Any:
    """Return a sparse matrix with float64 entries, every one of them exactly, or refuse it."""
    plain = data if data.format in _WITH_ENTRIES else data.tocsr()
    exact_floats(plain.data, what)
    # Duplicates are added up, which must not happen in a short integer type.
    return plain.astype(np.float64, copy=False)


def _as_array(data: Any, what: str) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        raise InputTypeError(f"{what} is a masked array; fill in the masked entries first.")
    try:
        array = np.asarray(data)
        if isinstance(data, np.ndarray) or array.dtype != np.float64:
            return array
        # Integers next to floats: NumPy has rounded them.
        large = (np.abs(array) >= _ALL_FLOATS).any()
        return np.asarray(data, dtype=object) if large else array
    except Exception as failure:  # whatever a foreign class raises
        raise InputTypeError(
            f"{what} is {_described(data)}, which is not an array of numbers: {failure}"
        ) from failure


def _described(value: Any) -> str:
    if isinstance(value, str | bytes | complex | np.generic):
        return f"{type(value).__name__} {value!r}"
    shape = getattr(value, "shape", None)
    return type(value).__name__ + ("" if shape is None else f" of shape {tuple(shape)}")


def _refuse_rounded(exact: list[Fraction], floats: Vector, what: str) -> None:
    for entry, near in zip(exact, floats.ravel().tolist(), strict=True):
        if not math.isfinite(near) or Fraction(near) != entry:
            raise InputError(
                f"{what} is {entry}, which is not a float64 number (the nearest is {near!r}), and "
                "proofs are about exact numbers; give float(...) of it if the nearest will do. In "
                "expressions dividing by integers and Fractions is exact: w / 3."
            )


__all__ = ["exact_float", "exact_floats", "exact_number", "exact_sparse"]
