"""MCP and SCAD: l1 terms from which a smooth function is taken away.

They are not convex, so they are no `plus=` of their own. What the theory carries is the split

    f + h = (f - g) + weight |x|_1,     g = weight |x|_1 - h, convex, with a Lipschitz gradient:

`h.split(f, grad)` returns f - g and its gradient, `h.term` the l1 term, and a certificate about the
two is one about f + h, with exact zeros.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.prox.separable import l1
from goldstein.prox.term import Term


def thresholded(penalty: str, x: float, step: float, weight: float, gamma: float) -> float:
    """Return the minimiser of h(z) + (z - x)^2 / (2 step) in one variable."""
    size = abs(x)
    soft = max(size - step * weight, 0.0)
    if penalty == "mcp" and size <= gamma * weight:
        soft /= 1.0 - step / gamma
    elif penalty == "scad" and (1.0 + step) * weight < size <= gamma * weight:
        soft = ((gamma - 1.0) * size - step * gamma * weight) / (gamma - 1.0 - step)
    elif penalty != "l1" and size > gamma * weight:
        soft = size
    return math.copysign(soft, x) if soft else 0.0


@dataclass(frozen=True)
class WeaklyConvex:
    """h(x) = sum_i mcp(x_i) or scad(x_i): curvature at least `-rho`.

    Attributes
    ----------
    name : {"mcp", "scad"}
    weight : float
        The slope at 0.
    gamma : float
        h is constant beyond gamma weight.
    """

    name: str
    weight: float
    gamma: float

    def __post_init__(self) -> None:
        least = 1.0 if self.name == "mcp" else 2.0
        if not (0.0 < self.weight < math.inf and least < self.gamma < math.inf):
            raise InputError(
                f"{self.name} needs weight > 0 and a parameter > {least:g}, finite; got "
                f"weight = {self.weight!r} and {self.gamma!r}."
            )

    @property
    def rho(self) -> float:
        """How concave it is: h + rho/2 |x|^2 is convex."""
        return 1.0 / (self.gamma if self.name == "mcp" else self.gamma - 1.0)

    @property
    def term(self) -> Term:
        """The l1 term of the split."""
        return l1(self.weight)

    def value(self, x: Vector) -> float:
        """h(x)."""
        size = np.abs(np.asarray(x, dtype=np.float64))
        return float(self.weight * size.sum() - self._taken(size).sum())

    def prox(self, x: Vector, step: float) -> Vector:
        """Return the z that minimises h(z) + |z - x|^2 / (2 step), one where step < 1 / rho."""
        if not 0.0 < step * self.rho < 1.0:
            raise InputError(
                f"step must be between 0 and 1 / rho = {1.0 / self.rho:g}, where the minimiser is "
                f"one; got {step!r}."
            )
        found = [thresholded(self.name, float(v), step, self.weight, self.gamma) for v in x]
        return np.array(found)

    def split(
        self, f: Callable[[Vector], Any], grad: Callable[[Vector], Any]
    ) -> tuple[Callable[[Vector], float], Callable[[Vector], Vector]]:
        """Return f - g and its gradient, to be minimised with `plus=self.term`."""

        def lower(x: Vector) -> float:
            return float(f(x)) - float(self._taken(np.abs(x)).sum())

        def slope(x: Vector) -> Vector:
            return np.asarray(grad(x)) - np.sign(x) * self._rate(np.abs(x))

        return lower, slope

    def _taken(self, size: Vector) -> Vector:
        """g entry by entry, where h = weight |x| - g."""
        w, end = self.weight, self.gamma * self.weight
        begin = 0.0 if self.name == "mcp" else w
        inner = np.clip(size, begin, end) - begin
        return self.rho / 2.0 * inner**2 + w * np.maximum(size - end, 0.0)

    def _rate(self, size: Vector) -> Vector:
        """The derivative of g in |x|."""
        begin = 0.0 if self.name == "mcp" else self.weight
        return np.minimum(self.rho * np.maximum(size - begin, 0.0), self.weight)


def mcp(weight: float, gamma: float = 3.0) -> WeaklyConvex:
    """Return the minimax concave penalty weight |x| - x^2/(2 gamma), constant beyond gamma weight.

    Examples
    --------
    >>> h = mcp(1.0, 3.0)
    >>> h.value(np.array([1.0, 9.0])), h.prox(np.array([0.5, 2.0, 9.0]), 1.0)
    (2.333..., array([0. , 1.5, 9. ]))
    """
    return WeaklyConvex("mcp", float(weight), float(gamma))


def scad(weight: float, a: float = 3.7) -> WeaklyConvex:
    """Return the smoothly clipped absolute deviation (Fan and Li 2001), constant beyond a weight.

    Examples
    --------
    >>> h = scad(1.0, 3.0)
    >>> h.value(np.array([0.5, 9.0])), h.prox(np.array([1.5, 9.0]), 1.0)
    (2.5, array([0.5, 9. ]))
    """
    return WeaklyConvex("scad", float(weight), float(a))
