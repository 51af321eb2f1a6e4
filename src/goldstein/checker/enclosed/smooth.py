"""Smooth functions of one number, by name: enclosures of the value, the slope, the domain."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from goldstein.checker.errors import NotCertifiableError


@dataclass(frozen=True)
class Function:
    """A function that is smooth on its domain.

    Attributes
    ----------
    name : str
    slope : callable
        The derivative of an array, enclosed or exact.
    exact : callable
        The value at a rational number where it is rational and known, else None.
    domain : str
        What the arguments must be: "positive", "nonzero", or "" for any number.
    value : callable or str
        The function of an `Enclosure`, or what python-flint calls it; by default its name.
    """

    name: str
    slope: Callable[[Any], Any]
    exact: Callable[[Fraction], Fraction | None]
    domain: str = ""
    value: Callable[[Any], Any] | str = ""

    def enclosure(self, u: Any) -> Any:
        """Return the function of an `Enclosure` inside the domain."""
        self.require_domain(u)
        return self.value(u) if callable(self.value) else u.balls(self.value or self.name)

    @property
    def keeps_zero(self) -> bool:
        """Is it 0 at 0?"""
        return not self.domain and self.exact(Fraction(0)) == 0

    def require_domain(self, u: Any) -> None:
        """Refuse arguments that are not proved to be inside the domain."""
        signs = u.signs() if self.domain else None
        inside = signs is None or (signs > 0 if self.domain == "positive" else signs != 0).all()
        if not inside:
            raise NotCertifiableError(
                f"the argument of {self.name} is not proved to be {self.domain}."
            )

    def slope_of(self, u: Any) -> Any:
        """Return the derivative, inside the domain."""
        self.require_domain(u)
        return self.slope(u)


def _numbers(u: Any, *values: int) -> Any:
    return type(u).of(list(values))


def hypotenuse(u: Any) -> Any:
    return (u * u + _numbers(u, 1)).root()


def _of(name: str, u: Any) -> Any:
    return u.apply(FUNCTIONS[name])


def _squared(name: str, u: Any) -> Any:
    return _of(name, u) * _of(name, u)


def _negative(u: Any) -> Any:
    return u * _numbers(u, -1)


def _square_root(q: Fraction) -> Fraction | None:
    """Return the root of the square of a rational."""
    if q < 0:
        return None
    root = Fraction(math.isqrt(q.numerator), math.isqrt(q.denominator))
    return root if root * root == q else None


def _at(q: int, value: int) -> Callable[[Fraction], Fraction | None]:
    return lambda at: Fraction(value) if at == q else None


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("exp", lambda u: _of("exp", u), _at(0, 1)),
        Function("log", lambda u: u.reciprocal(), _at(1, 0), "positive"),
        Function("sin", lambda u: _of("cos", u), _at(0, 0)),
        Function("cos", lambda u: _negative(_of("sin", u)), _at(0, 1)),
        Function("tanh", lambda u: _numbers(u, 1) + _negative(_squared("tanh", u)), _at(0, 0)),
        Function("arctan", lambda u: (u * u + _numbers(u, 1)).reciprocal(), _at(0, 0), "", "atan"),
        Function(
            "sqrt", lambda u: (_of("sqrt", u) * _numbers(u, 2)).reciprocal(), _square_root,
            "positive", lambda u: u.root(),
        ),
        Function(
            "reciprocal", lambda u: _negative(_squared("reciprocal", u)),
            lambda q: 1 / q if q else None, "nonzero", lambda u: u.reciprocal(),
        ),
        Function(
            "pseudo_huber", lambda u: u * hypotenuse(u).reciprocal(), _at(0, 0),
            value=lambda u: u * u * (hypotenuse(u) + 1.0).reciprocal(),  # nothing cancels
        ),
    )
}  # fmt: skip

__all__ = ["FUNCTIONS", "Function"]
