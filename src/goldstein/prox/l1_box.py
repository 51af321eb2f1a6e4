"""The l1 norm between bounds: what `plus=gs.prox.l1(...)` and `bounds=` are together."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.prox.box import BoxTerm
from goldstein.prox.l1 import L1
from goldstein.prox.term import Chart, Term


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
