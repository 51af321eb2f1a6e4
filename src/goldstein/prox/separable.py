"""Terms of single entries: the l1 norm (exact zeros), a box, and both together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.prox.term import Chart, Term, numbers, plain, same_size, weight_of


class Separable(Term):
    """h(x) = sum_i weight_i |x_i| where lower <= x <= upper, infinity elsewhere.

    `l1` has no bounds, `box` no weights, `l1_box` both.
    """

    def __init__(
        self, name: str, weight: Any = 0.0, lower: Any = -math.inf, upper: Any = math.inf
    ) -> None:
        self.name, self.weight = name, weight_of("weight", weight)
        self.lower, self.upper = numbers("lower", lower), numbers("upper", upper)
        low, high = self.lower, self.upper
        if low.size > 1 and high.size > 1 and low.size != high.size:
            raise InputError(f"box: {low.size} lower and {high.size} upper bounds.")
        if (low > high).any() or (low == math.inf).any() or (high == -math.inf).any():
            raise InputError("box: a lower bound is above the upper one; there is no such point.")

    def value(self, x: Vector) -> float:
        inside = ((x >= self.lower) & (x <= self.upper)).all()
        return math.fsum((self.weight * np.abs(x)).tolist()) if inside else math.inf

    def prox(self, x: Vector, step: float) -> Vector:
        # In one variable the minimiser of a convex function in an interval is the clipped one.
        shrunk = np.sign(x) * np.maximum(np.abs(x) - step * self.weight, 0.0)
        return np.clip(shrunk, self.lower, self.upper) + 0.0

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        beside = self.weight * np.sign(x)
        left = np.where(x == self.lower, -np.inf, np.where(x == 0.0, -self.weight, beside))
        right = np.where(x == self.upper, np.inf, np.where(x == 0.0, self.weight, beside))
        return np.clip(wish, left, right) + 0.0

    def slope(self, x: Vector) -> Vector:
        # The bounds have none: the search minds them itself.
        return self.weight * np.sign(x) + 0.0

    def record(self) -> dict[str, Any]:
        names = {"l1": ["weight"], "box": ["lower", "upper"]}
        return {n: plain(vars(self)[n]) for n in names.get(self.name, ["weight", *names["box"]])}

    def check(self, size: int) -> None:
        for name in self.record():
            same_size(self.name, name, vars(self)[name].size, size)

    def snap(self, x: Vector, width: float) -> Vector:
        inside = (self.lower <= 0.0) & (self.upper >= 0.0)
        return np.where(inside & (np.abs(x) <= width) & (self.weight > 0), 0.0, x)

    def chart(self, x: Vector) -> Chart | None:
        free = (x != 0.0) | (self.weight == 0)
        return None if self.name == "box" else self._between(Chart(self, x, free))

    def everywhere(self, x: Vector) -> Chart:
        return self._between(super().everywhere(x))

    def _between(self, chart: Chart) -> Chart:
        if self.name == "l1_box":
            bounds = self._bounds(chart.base.size)
            chart.bounds = [bounds[k] for k in chart.free]
        return chart

    def _bounds(self, size: int) -> list[tuple[float, float]]:
        lower, upper = (np.broadcast_to(side, size) for side in (self.lower, self.upper))
        return list(zip(lower.tolist(), upper.tolist()))

    def limits(self, size: int) -> dict[str, Any] | None:
        return {"bounds": self._bounds(size)} if self.name == "box" else None

    def structure(self, x: Vector) -> str:
        zeros = f"{int((x == 0.0).sum())} of {x.size} entries are 0"
        ends = f"{int(((x == self.lower) | (x == self.upper)).sum())} of {x.size} on their bounds"
        return {"l1": zeros, "box": ends}.get(self.name, f"{zeros}, {ends}")

    def bounded(self, lower: Vector, upper: Vector) -> Term:
        name = "box" if self.name == "box" else "l1_box"
        low, high = np.maximum(self.lower, lower), np.minimum(self.upper, upper)
        return Separable(name, self.weight, low, high)

    def added_to(self, f: Any) -> tuple[Any, list[tuple[float, float]] | None]:
        bounds = None if self.name == "l1" else self._bounds(f.dim)
        if self.name == "box":
            return f, bounds
        # Between bounds of one sign |x_i| has no kink; at a bound of 0 it would only be in the way.
        weight, lower, upper = (
            np.broadcast_to(side, f.dim) for side in (self.weight, self.lower, self.upper)
        )
        known = np.where(lower >= 0.0, 1.0, np.where(upper <= 0.0, -1.0, 0.0))
        whole = f if bounds is None else f + (weight * known) @ f.variable
        across = np.flatnonzero(known == 0.0)
        if across.size:
            whole = whole + weight[across] @ abs(f.variable[across])
        return whole, bounds


def l1(weight: ArrayLike | float) -> Term:
    """Return h(x) = sum_i weight_i |x_i|.

    Parameters
    ----------
    weight : float or array_like
        One number for all entries, or one for each; 0 where an entry is free.

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.l1(0.5).prox(np.array([2.0, -0.25]), 1.0)
    array([1.5, 0. ])
    """
    return Separable("l1", weight)


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
    return Separable("box", 0.0, lower, upper)


def l1_box(weight: ArrayLike | float, lower: ArrayLike | float, upper: ArrayLike | float) -> Term:
    """Return h(x) = sum_i weight_i |x_i| where lower <= x <= upper, infinity elsewhere.

    Examples
    --------
    >>> l1_box(0.5, -1.0, 1.0).prox(np.array([2.0, -0.25, -0.75]), 1.0)
    array([ 1.  ,  0.  , -0.25])
    """
    return Separable("l1_box", weight, lower, upper)
