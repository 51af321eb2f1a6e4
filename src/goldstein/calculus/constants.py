"""Numbers that become part of an expression: taken exactly or refused, and kept from changing.

An expression is about the real numbers that its stored float64 data are. What a user gives must
therefore be exactly such a number; where it is not, an error says so, and nothing is rounded.
"""

from __future__ import annotations

import copy
import math
from decimal import Decimal
from fractions import Fraction
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import nearest_float
from goldstein.errors import InputError, InputTypeError

#: Integers up to here are float64 numbers, all of them.
_ALL_FLOATS = 2**53

#: Sparse formats whose entries stand in one array.
_WITH_ENTRIES = frozenset({"bsr", "coo", "csc", "csr", "dia"})

#: Arrays that nobody outside writes to; an array that is gone leaves no entry behind.
_PRIVATE: WeakValueDictionary[int, NDArray[Any]] = WeakValueDictionary()


# --- conversion --------------------------------------------------------------------------------


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
    array = _as_array(data, what)
    kind = array.dtype.kind
    if kind == "O":
        entries = [exact_number(entry, what, truth=True) for entry in array.ravel().tolist()]
        floats = np.array([nearest_float(entry) for entry in entries]).reshape(array.shape)
        _refuse_rounded(entries, floats, what)
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


def exact_float(value: Any, what: str) -> float:
    """Return one finite real number as a float, exactly, or refuse it."""
    number = exact_number(value, what)
    near = nearest_float(number)
    _refuse_rounded([number], np.array([near]), what)
    return near


def positive(name: str, value: Any) -> Fraction:
    """Return a positive parameter exactly, or refuse it."""
    number = exact_number(value, name)
    if number <= 0:
        raise InputError(f"{name} must be a positive finite number, got {value!r}.")
    return number


def _as_array(data: Any, what: str) -> NDArray[Any]:
    if isinstance(data, np.ma.MaskedArray):
        raise InputTypeError(f"{what} is a masked array; fill in the masked entries first.")
    try:
        return np.asarray(data)
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
                "proofs are about exact numbers; give float(...) of it if the nearest will do, and "
                "divide by integers and Fractions, which is exact: w / 3."
            )


# --- ownership ---------------------------------------------------------------------------------


def own(data: Any, what: str = "a constant") -> Vector:
    """Return exact float64 numbers in an array that nobody else writes to.

    An array that is private already needs no second copy. That it is read-only does not make it
    so: older views of it may be written to.
    """
    if _is_private(data):
        return np.asarray(data)
    floats = exact_floats(data, what)
    if isinstance(data, np.ndarray):
        made_here = not np.may_share_memory(floats, data)
    else:  # arrays of other libraries may share their memory
        made_here = isinstance(data, int | float | np.generic | list | tuple)
    return hand_over(floats if made_here else floats.copy(order="K"))


def own_integers(data: Any) -> NDArray[np.intp]:
    """Return indices in an array that nobody else writes to."""
    return data if _is_private(data) else hand_over(np.array(data, dtype=np.intp))


def own_sparse(data: Any, what: str = "the matrix") -> Any:
    """Return a private copy of a sparse matrix, by rows and without duplicates."""
    if isinstance(data, sparse.csr_array) and all(
        _is_private(part) for part in (data.data, data.indices, data.indptr)
    ):
        # A handle of its own on the same arrays: a new entry replaces the arrays of one handle.
        return copy.copy(data)
    plain = data if data.format in _WITH_ENTRIES else sparse.csr_array(data)
    exact_floats(plain.data, what)
    # Duplicates are added up, which must not happen in a short integer type.
    return hand_over_sparse(sparse.csr_array(plain.astype(np.float64, copy=False), copy=True))


def hand_over(data: NDArray[Any]) -> NDArray[Any]:
    """Return an array as a private one; the caller promises never to write to it.

    The answer is a view that cannot be made writeable again.
    """
    if _is_private(data):
        return data
    data.setflags(write=False)
    guarded = np.asarray(memoryview(data).toreadonly())  # type: ignore[arg-type]
    _PRIVATE[id(guarded)] = guarded
    return guarded


def hand_over_sparse(matrix: Any) -> Any:
    """Make the arrays of a CSR array private to expressions."""
    matrix.sum_duplicates()
    for part in ("data", "indices", "indptr"):
        setattr(matrix, part, hand_over(getattr(matrix, part)))
    return matrix


def _is_private(data: Any) -> bool:
    return isinstance(data, np.ndarray) and _PRIVATE.get(id(data)) is data


__all__ = [
    "exact_float",
    "exact_floats",
    "exact_number",
    "hand_over",
    "hand_over_sparse",
    "own",
    "own_integers",
    "own_sparse",
    "positive",
]
