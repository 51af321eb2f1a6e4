"""The indicator function of a box."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.prox.term import Term, numbers, plain, same_size


class BoxTerm(Term):
    """h(x) = 0 where lower <= x <= upper, infinity elsewhere."""

    name = "box"

    def __init__(self, lower: ArrayLike | float, upper: ArrayLike | float) -> None:
        self.lower, self.upper = numbers("lower", lower), numbers("upper", upper)
        low, high = self.lower, self.upper
        if low.size > 1 and high.size > 1 and low.size != high.size:
            raise InputError(f"box: {low.size} lower and {high.size} upper bounds.")
        if (low > high).any() or (low == math.inf).any() or (high == -math.inf).any():
            raise InputError("box: a lower bound is above the upper one; there is no such point.")

    def value(self, x: Vector) -> float:
        return 0.0 if ((x >= self.lower) & (x <= self.upper)).all() else math.inf

    def prox(self, x: Vector, step: float) -> Vector:
        return np.clip(x, self.lower, self.upper) + 0.0

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        below = np.where(x == self.lower, np.minimum(wish, 0.0), 0.0)
        return below + np.where(x == self.upper, np.maximum(wish, 0.0), 0.0)

    def record(self) -> dict[str, Any]:
        return {"lower": plain(self.lower), "upper": plain(self.upper)}

    def check(self, size: int) -> None:
        same_size(self.name, "lower", self.lower.size, size)
        same_size(self.name, "upper", self.upper.size, size)

    def limits(self, size: int) -> dict[str, Any]:
        lower, upper = (np.broadcast_to(side, size) for side in (self.lower, self.upper))
        return {"bounds": list(zip(lower.tolist(), upper.tolist()))}

    def bounded(self, lower: Vector, upper: Vector) -> Term:
        return BoxTerm(np.maximum(self.lower, lower), np.minimum(self.upper, upper))

    def added_to(self, f: Any) -> tuple[Any, list[tuple[float, float]] | None]:
        return f, self.limits(f.dim)["bounds"]

    def structure(self, x: Vector) -> str:
        return f"{int(((x == self.lower) | (x == self.upper)).sum())} of {x.size} on their bounds"


def box(lower: ArrayLike | float, upper: ArrayLike | float) -> Term:
    """Return the indicator function of lower <= x <= upper.

    f is asked within delta of the box. Where it must not be, use `bounds=` of `minimize`.

    Parameters
    ----------
    lower, upper : float or array_like
        Infinite where there is no bound.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.box(0.0, 1.0).prox(np.array([2.0, -0.25, 0.5]), 1.0)
    array([1. , 0. , 0.5])
    """
    return BoxTerm(lower, upper)
