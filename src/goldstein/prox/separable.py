"""Terms of single entries: the l1 norm (exact zeros), a box, and both together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.prox.term import Chart, Term, numbers, plain, same_size, weight_of


class L1(Term):
    """h(x) = sum_i weight_i |x_i|."""

    name = "l1"

    def __init__(self, weight: ArrayLike | float) -> None:
        self.weight = weight_of("weight", weight)

    def value(self, x: Vector) -> float:
        return math.fsum((self.weight * np.abs(x)).tolist())

    def prox(self, x: Vector, step: float) -> Vector:
        return np.sign(x) * np.maximum(np.abs(x) - step * self.weight, 0.0) + 0.0

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        clipped = np.clip(wish, -self.weight, self.weight)
        return np.where(x == 0.0, clipped, self.weight * np.sign(x))

    def record(self) -> dict[str, Any]:
        return {"weight": plain(self.weight)}

    def check(self, size: int) -> None:
        same_size(self.name, "weight", self.weight.size, size)

    def snap(self, x: Vector, width: float) -> Vector:
        return np.where((np.abs(x) <= width) & (self.weight > 0), 0.0, x)

    def chart(self, x: Vector) -> Chart:
        return Chart(self, x, (x != 0.0) | (self.weight == 0))

    def structure(self, x: Vector) -> str:
        return f"{int((x == 0.0).sum())} of {x.size} entries are 0"

    def bounded(self, lower: Vector, upper: Vector) -> Term:
        return L1Box(self.weight, lower, upper)

    def added_to(self, f: Any) -> tuple[Any, list[tuple[float, float]] | None]:
        weights = np.broadcast_to(self.weight, (f.dim,))
        return f + weights @ abs(f.variable), None


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
    return L1(weight)


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


class L1Box(Term):
    """h(x) = sum_i weight_i |x_i| where lower <= x <= upper, infinity elsewhere."""

    name = "l1_box"

    def __init__(
        self, weight: ArrayLike | float, lower: ArrayLike | float, upper: ArrayLike | float
    ) -> None:
        self.norm, self.box = L1(weight), BoxTerm(lower, upper)

    def value(self, x: Vector) -> float:
        return self.norm.value(x) if self.box.value(x) == 0.0 else math.inf

    def prox(self, x: Vector, step: float) -> Vector:
        # In one variable the minimiser of a convex function in an interval is the clipped one.
        return self.box.prox(self.norm.prox(x, step), step)

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        weight = self.norm.weight
        left = np.where(x == 0.0, -weight, weight * np.sign(x))
        right = np.where(x == 0.0, weight, weight * np.sign(x))
        left = np.where(x == self.box.lower, -np.inf, left)
        right = np.where(x == self.box.upper, np.inf, right)
        return np.clip(wish, left, right)

    def slope(self, x: Vector) -> Vector:
        # The bounds have none: the search minds them itself.
        return self.norm.slope(x)

    def record(self) -> dict[str, Any]:
        return {**self.norm.record(), **self.box.record()}

    def check(self, size: int) -> None:
        self.norm.check(size)
        self.box.check(size)

    def snap(self, x: Vector, width: float) -> Vector:
        inside = (self.box.lower <= 0.0) & (self.box.upper >= 0.0)
        return np.where(inside, self.norm.snap(x, width), x)

    def chart(self, x: Vector) -> Chart:
        return self._between(Chart(self, x, (x != 0.0) | (self.norm.weight == 0)), x.size)

    def everywhere(self, x: Vector) -> Chart:
        return self._between(super().everywhere(x), x.size)

    def _between(self, chart: Chart, size: int) -> Chart:
        bounds = self.box.limits(size)["bounds"]
        chart.bounds = [bounds[k] for k in chart.free]
        return chart

    def structure(self, x: Vector) -> str:
        return f"{self.norm.structure(x)}, {self.box.structure(x)}"

    def bounded(self, lower: Vector, upper: Vector) -> Term:
        low, high = np.maximum(self.box.lower, lower), np.minimum(self.box.upper, upper)
        return L1Box(self.norm.weight, low, high)

    def added_to(self, f: Any) -> tuple[Any, list[tuple[float, float]] | None]:
        # Between bounds of one sign |x_i| has no kink; at a bound of 0 it would only be in the way.
        lower, upper = (np.broadcast_to(side, f.dim) for side in (self.box.lower, self.box.upper))
        weight = np.broadcast_to(self.norm.weight, f.dim)
        known = np.where(lower >= 0.0, 1.0, np.where(upper <= 0.0, -1.0, 0.0))
        whole = f + (weight * known) @ f.variable
        across = np.flatnonzero(known == 0.0)
        if across.size:
            whole = whole + weight[across] @ abs(f.variable[across])
        return whole, self.box.limits(f.dim)["bounds"]


def l1_box(weight: ArrayLike | float, lower: ArrayLike | float, upper: ArrayLike | float) -> Term:
    """Return h(x) = sum_i weight_i |x_i| where lower <= x <= upper, infinity elsewhere.

    Examples
    --------
    >>> l1_box(0.5, -1.0, 1.0).prox(np.array([2.0, -0.25, -0.75]), 1.0)
    array([ 1.  ,  0.  , -0.25])
    """
    return L1Box(weight, lower, upper)
