"""The l1 norm: exact zeros in x."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.prox.term import Chart, Term, plain, same_size, weight_of


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
        from goldstein.prox.l1_box import l1_box

        return l1_box(self.weight, lower, upper)

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
