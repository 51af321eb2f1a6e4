"""Smooth functions of one number, by name: enclosures of the value, the slope, the domain."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


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
    """

    name: str
    value: Callable[[Any], Any]
    slope: Callable[[Any], Any]
    positive: bool = False

    def require_domain(self, u: Any) -> None:
        """Refuse arguments that are not proved to be inside the domain."""
        if self.positive:
            u.require_positive(self.name)


def _pseudo_huber(u: Any) -> Any:
    """sqrt(1 + u^2) - 1, written so that nothing cancels."""
    return u * u * ((u * u + 1.0).root() + 1.0).reciprocal()


FUNCTIONS = {
    function.name: function
    for function in (
        Function("exp", lambda u: u.balls("exp"), lambda u: u.apply(FUNCTIONS["exp"])),
        Function("log", lambda u: u.balls("log"), lambda u: u.reciprocal(), positive=True),
        Function("pseudo_huber", _pseudo_huber, lambda u: u * (u * u + 1.0).root().reciprocal()),
    )
}

__all__ = ["FUNCTIONS", "Function"]
