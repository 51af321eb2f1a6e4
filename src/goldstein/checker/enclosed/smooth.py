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
    value : callable
        The function of an `Enclosure`.
    slope : callable
        The derivative of an array, enclosed or exact.
    domain : str
        What the arguments must be: "positive", "nonzero", or "" for any number.
    exact : callable
        The value at a rational number where it is rational and known, else None.
    """

    name: str
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    domain: str = ""
    exact: Callable[[Fraction], Fraction | None] = lambda q: None

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


def _pseudo_huber(u: Any) -> Any:
    """sqrt(1 + u^2) - 1, written so that nothing cancels."""
    return u * u * (_hypotenuse(u) + 1.0).reciprocal()


def _hypotenuse(u: Any) -> Any:
    return (u * u + _numbers(u, 1)).root()


def _of(name: str, u: Any) -> Any:
    return u.apply(FUNCTIONS[name])


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
        Function("exp", lambda u: u.balls("exp"), lambda u: _of("exp", u), exact=_at(0, 1)),
        Function(
            "log", lambda u: u.balls("log"), lambda u: u.reciprocal(), "positive", _at(1, 0)
        ),
        Function("sin", lambda u: u.balls("sin"), lambda u: _of("cos", u), exact=_at(0, 0)),
        Function(
            "cos", lambda u: u.balls("cos"), lambda u: _negative(_of("sin", u)), exact=_at(0, 1)
        ),
        Function(
            "tanh", lambda u: u.balls("tanh"),
            lambda u: _numbers(u, 1) + _negative(_of("tanh", u) * _of("tanh", u)),
            exact=_at(0, 0),
        ),
        Function(
            "arctan", lambda u: u.balls("atan"),
            lambda u: (u * u + _numbers(u, 1)).reciprocal(), exact=_at(0, 0),
        ),
        Function(
            "sqrt", lambda u: u.root(), lambda u: (_of("sqrt", u) * _numbers(u, 2)).reciprocal(),
            "positive", _square_root,
        ),
        Function(
            "reciprocal", lambda u: u.reciprocal(),
            lambda u: _negative(u.reciprocal() * u.reciprocal()), "nonzero",
            lambda q: 1 / q if q else None,
        ),
        Function(
            "pseudo_huber", _pseudo_huber, lambda u: u * _hypotenuse(u).reciprocal(),
            exact=_at(0, 0),
        ),
    )
}  # fmt: skip

__all__ = ["FUNCTIONS", "Function"]
