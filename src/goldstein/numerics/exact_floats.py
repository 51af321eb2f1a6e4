"""Numbers that a claim is about, taken exactly or refused, as the checker reads them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from goldstein.checker.exact_floats import exact_float, exact_floats, exact_number, exact_sparse
from goldstein.errors import InputError


def positive(name: str, value: Any) -> Fraction:
    """Return a positive parameter exactly, or refuse it."""
    number = exact_number(value, name)
    if number <= 0:
        raise InputError(f"{name} must be a positive finite number, got {value!r}.")
    return number


__all__ = ["exact_float", "exact_floats", "exact_number", "exact_sparse", "positive"]
