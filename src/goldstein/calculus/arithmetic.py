"""The arithmetics in which an expression can be evaluated.

An expression is written once, with `+`, `*`, `@` and `sum`; the arithmetic decides what the numbers
are: float64 to search, enclosures to prove quickly, rationals to prove exactly.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker.enclosed.arrays import Enclosure, flint
from goldstein.checker.rationals import to_fraction
from goldstein.errors import GoldsteinError


def rational(value: Any) -> Any:
    """Return a float, int or Fraction as an exact rational: of python-flint, or a Fraction."""
    module = flint()
    if module is None:
        return Fraction(*value.as_integer_ratio())
    return module.fmpq(*value.as_integer_ratio())


class Irrational(GoldsteinError):
    """Control flow: the value has no exact rational form; use enclosures."""


class Arithmetic:
    """What differs between the number systems: constants, and functions of one number."""

    name: str

    def constant(self, value: Any) -> Any:
        """Return stored float64 data (or Fractions) in this arithmetic."""
        raise NotImplementedError

    def one(self) -> Any:
        """Return the number 1, an array without dimensions."""
        return np.ones(())

    def zeros(self, shape: tuple[int, ...]) -> Any:
        raise NotImplementedError

    def shaped(self, value: Any, shape: tuple[int, ...]) -> Any:
        """Return a result as an array of its shape."""
        return value


class FloatArithmetic(Arithmetic):
    """Plain float64."""

    name = "float"

    def constant(self, value: Any) -> Any:
        return float(value) if isinstance(value, Fraction) else value

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return np.zeros(shape)


class EnclosureArithmetic(Arithmetic):
    """Float64 midpoints with proved radii."""

    name = "enclosure"

    def constant(self, value: Any) -> Any:
        if isinstance(value, Fraction):
            return Enclosure.of([value]).reshape(())
        return value

    def one(self) -> Any:
        return Enclosure(1.0)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        return Enclosure(np.zeros(shape))


class RationalArithmetic(Arithmetic):
    """Exact rationals in object arrays (python-flint's, where installed: same values, faster)."""

    name = "rational"

    def one(self) -> Any:
        return rationals(np.ones(()))

    def constant(self, value: Any) -> Any:
        if sparse.issparse(value):
            value = value.toarray()
        return rationals(value)

    def zeros(self, shape: tuple[int, ...]) -> Any:
        out = np.empty(shape, dtype=object)
        out.fill(rational(0))
        return out

    def shaped(self, value: Any, shape: tuple[int, ...]) -> Any:
        # NumPy unwraps object arrays without dimensions.
        return np.asarray(value, dtype=object).reshape(shape)


def enclose_function(u: Enclosure, function: Any) -> Enclosure:
    """Apply a function of one ball (python-flint's `arb`) to every entry, rigorously."""
    return u.balls(function)


FLOAT = FloatArithmetic()
ENCLOSURE = EnclosureArithmetic()
RATIONAL = RationalArithmetic()


def rationals(values: Any) -> Any:
    """Return an array of exact rationals, or one for a scalar."""
    array = np.asarray(values, dtype=object) if not isinstance(values, np.ndarray) else values
    out = np.empty(array.shape, dtype=object)
    for place, value in enumerate(array.ravel().tolist()):
        out.flat[place] = rational(value)
    return out


__all__ = [
    "ENCLOSURE",
    "FLOAT",
    "RATIONAL",
    "Arithmetic",
    "Irrational",
    "enclose_function",
    "flint",
    "rational",
    "rationals",
    "to_fraction",
]
