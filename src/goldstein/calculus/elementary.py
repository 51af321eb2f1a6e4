"""Smooth functions of one number in float64: what searches and the theory before a run need.

What they mean is said in `goldstein.checker.enclosed.arrays`. A new one has a row here and there.

A kind of node that the checker does not have: what is known in float64 only.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.nodes import Node


class Elementary(NamedTuple):
    """A function of u, as source over NumPy, and bounds of its derivatives.

    Attributes
    ----------
    value, slope : str
        The slope may use the value, S.
    size, error : str
        Where |u| <= v up to an error e: how large the value is (V, once known), how wrong.
    steepest, sharpest : callable
        (low, high) -> a bound of |derivative|, and of |second derivative|.
    """

    value: str
    slope: str
    size: str
    error: str
    steepest: Callable[[float, float], float] = lambda low, high: 1.0
    sharpest: Callable[[float, float], float] = lambda low, high: 1.0


def _exp(low: float, high: float) -> float:
    return math.exp(high) * (1.0 + 2.0**-40) if high < 700.0 else math.inf


def _least(low: float, high: float, both: bool) -> float:
    """Return a lower bound of |u|; where only positive numbers are allowed, of u."""
    return max(low, -high if both else 0.0, 0.0)


def _power(scale: float, power: float, both: bool = False) -> Callable[[float, float], float]:
    """Return a bound of scale |u|^-power."""

    def bound(low: float, high: float) -> float:
        least = _least(low, high, both)
        return scale * least**-power * (1.0 + 2.0**-40) if least > 1e-90 else math.inf

    return bound


_LARGEST = "top(S)"
_DISTANCE = "max(low(absolute({u})) - {e}, 1e-150)"
_ABOVE = "max(low({u}) - {e}, 1e-300)"

ELEMENTARY = {
    "exp": Elementary(
        "exp({u})", "S", "scalar_exp({v})", "V * scalar_exp({e}) * {e}", _exp, _exp
    ),
    "log": Elementary(
        "log({u})", "1.0 / {u}", _LARGEST, "{e} / " + _ABOVE, _power(1.0, 1.0), _power(1.0, 2.0)
    ),
    "sin": Elementary("sin({u})", "cos({u})", "1.0", "{e}"),
    "cos": Elementary("cos({u})", "-sin({u})", "1.0", "{e}"),
    "tanh": Elementary("tanh({u})", "1.0 - S * S", "1.0", "{e}"),
    "arctan": Elementary("arctan({u})", "1.0 / (1.0 + {u} * {u})", "1.6", "{e}"),
    "sqrt": Elementary(
        "sqrt({u})", "0.5 / S", _LARGEST, "{e} / " + _ABOVE + " ** 0.5",
        _power(0.5, 0.5), _power(0.25, 1.5),
    ),
    "reciprocal": Elementary(
        "1.0 / {u}", "-S * S", _LARGEST, "{e} / " + _DISTANCE + " ** 2",
        _power(1.0, 2.0, True), _power(2.0, 3.0, True),
    ),
    "pseudo_huber": Elementary(
        "{u} * ({u} / (1.0 + hypot(1.0, {u})))", "{u} / hypot(1.0, {u})", "{v}", "{e}"
    ),
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Foreign(Node):
    """User code, entry by entry, with its derivative; or a LinearOperator, which has none.

    Attributes
    ----------
    shape : tuple of int
        That of the argument.
    function, derivative : callable, or LinearOperator and None
    """

    shape: tuple[int, ...]
    function: Any
    derivative: Any = None

    def fits(self) -> bool:
        return True

    def evaluated(self, u: Vector) -> Vector:
        """Return the values."""
        table = u.reshape(self.shape)
        found = self.function @ table if self.derivative is None else self.function(table)
        return np.asarray(found, dtype=np.float64).ravel()

    def pulled_back(self, g: Vector, u: Vector) -> Vector:
        """Return derivatives in the argument, those in the values being given."""
        if self.derivative is None:
            found = self.function.T @ g.reshape(-1, *self.shape[1:])
            return np.asarray(found, dtype=np.float64).ravel()
        slopes = np.asarray(self.derivative(u.reshape(self.shape)), dtype=np.float64)
        return g * np.broadcast_to(slopes, self.shape).ravel()
