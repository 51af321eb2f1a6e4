"""Numbers that a claim is about, taken exactly or refused, as the checker reads them."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.rationals import exact_floats, exact_sparse, to_fraction
from goldstein.errors import InputError, InputTypeError


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
    if not isinstance(value, int | float | Fraction | Decimal | np.generic):
        try:
            array = np.asarray(value)
        except Exception as failure:  # whatever a foreign class raises
            raise InputTypeError(f"{what} must be a real number: {failure}") from failure
        if array.dtype == object or array.ndim:
            raise InputTypeError(f"{what} must be a real number, got {type(value).__name__}.")
        value = array[()]
    if isinstance(value, bool | np.bool_) and not truth:
        raise InputTypeError(f"{what} must be a real number, got the truth value {value}.")
    return to_fraction(value, what)


def exact_float(value: Any, what: str) -> float:
    """Return one finite real number as a float, exactly, or refuse it."""
    return float(exact_floats(exact_number(value, what), what))


def positive(name: str, value: Any) -> Fraction:
    """Return a positive parameter exactly, or refuse it."""
    number = exact_number(value, name)
    if number <= 0:
        raise InputError(f"{name} must be a positive finite number, got {value!r}.")
    return number


__all__ = ["exact_float", "exact_floats", "exact_number", "exact_sparse", "positive"]
