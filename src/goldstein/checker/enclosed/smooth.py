"""Smooth functions of one number, by name: enclosures of the value, the slope, the domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
    positive : bool
        Defined for positive numbers only.
    keeps_zero : bool
        0 at 0.
    """

    name: str
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    positive: bool = False
    keeps_zero: bool = False

    def require_domain(self, u: Any) -> None:
        """Refuse arguments that are not proved to be inside the domain."""
        if self.positive and not (u.signs() > 0).all():
            raise NotCertifiableError(f"the argument of {self.name} is not proved to be positive.")

    def slope_of(self, u: Any) -> Any:
        """Return the derivative, inside the domain."""
        self.require_domain(u)
        return self.slope(u)


def _pseudo_huber(u: Any) -> Any:
    """sqrt(1 + u^2) - 1, written so that nothing cancels."""
    return u * u * (_hypotenuse(u) + 1.0).reciprocal()


def _hypotenuse(u: Any) -> Any:
    return (u * u + type(u).of([1])).root()


FUNCTIONS: dict[str, Function] = {
    function.name: function
    for function in (
        Function("exp", lambda u: u.balls("exp"), lambda u: u.apply(FUNCTIONS["exp"])),
        Function("log", lambda u: u.balls("log"), lambda u: u.reciprocal(), positive=True),
        Function(
            "pseudo_huber", _pseudo_huber, lambda u: u * _hypotenuse(u).reciprocal(),
            keeps_zero=True,
        ),
    )
}  # fmt: skip

__all__ = ["FUNCTIONS", "Function"]
