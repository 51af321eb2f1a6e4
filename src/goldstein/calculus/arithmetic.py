"""The arithmetics in which an expression can be evaluated.

An expression is written once, with `+`, `*`, `@` and `sum`; the arithmetic decides what the numbers
are: float64 to search, enclosures to prove quickly, rationals to prove exactly.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from fractions import Fraction
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.calculus.enclosures import Enclosure
from goldstein.errors import GoldsteinError
from goldstein.extras import missing_extra

Objects = NDArray[np.object_]


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
            return Enclosure.from_fractions([value]).reshape(())
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


FLOAT = FloatArithmetic()
ENCLOSURE = EnclosureArithmetic()
RATIONAL = RationalArithmetic()


def flint() -> ModuleType | None:
    """Return python-flint, or None where it is not installed."""
    try:
        return importlib.import_module("flint")
    except ImportError:
        return None


def rational(value: Any) -> Any:
    """Return one float, int or Fraction as an exact rational number."""
    return _maker()(*value.as_integer_ratio())


def rationals(values: Any) -> Any:
    """Return an array of exact rationals, or one for a scalar."""
    array = np.asarray(values, dtype=object) if not isinstance(values, np.ndarray) else values
    out = np.empty(array.shape, dtype=object)
    make = _maker()
    for place, value in enumerate(array.ravel().tolist()):
        out.flat[place] = make(*value.as_integer_ratio())
    return out


def _maker() -> Callable[[int, int], Any]:
    module = flint()
    return Fraction if module is None else module.fmpq


def to_fraction(value: Any) -> Fraction:
    """Return a rational of either kind as a Fraction."""
    if isinstance(value, Fraction):
        return value
    return Fraction(int(value.p), int(value.q))


def enclose_function(u: Enclosure, function: Callable[[Any, Any], Any]) -> Enclosure:
    """Apply a function of one ball (python-flint's `arb`) to every entry, rigorously.

    Parameters
    ----------
    function : callable
        Called as `function(flint_module, ball)`.
    """
    module = flint()
    if module is None:
        raise missing_extra(
            "the enclosure of a transcendental function", "ball arithmetic (python-flint)", "exact"
        )
    mid, rad = np.empty(u.size), np.empty(u.size)
    pairs = zip(u.mid.ravel().tolist(), u.rad.ravel().tolist())
    for place, (m, r) in enumerate(pairs):
        ball = function(module, module.arb(m, r))
        centre = float(ball.mid())
        # `rad` of a ball is rounded up by python-flint; the conversion of the centre errs by u |m|.
        radius = float(ball.rad()) * (1.0 + 2.0**-20) + 2.0**-52 * abs(centre) + 2.0**-1000
        mid[place], rad[place] = centre, radius
    return Enclosure(mid.reshape(u.shape), rad.reshape(u.shape))


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
