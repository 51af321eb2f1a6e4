"""Sparsity penalties: capped_l1, scad, mcp, log_sum. Each acts entry by entry."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.arithmetic import (
    ENCLOSURE,
    RATIONAL,
    Arithmetic,
    Irrational,
    enclose_function,
    rational,
)
from goldstein.calculus.atoms.base import (
    Elementwise,
    PiecewisePolynomial,
    ScalarFunction,
    require_range,
)
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Indices, Vector
from goldstein.checker.enclosed.arrays import Enclosure, enclose
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError
from goldstein.numerics.directed import fraction_lower
from goldstein.numerics.exact_floats import exact_number, positive


def capped_l1(u: Expression, threshold: float = 1.0) -> Expression:
    """Return min(|u|, threshold).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> capped_l1(Variable(2))(np.array([-3.0, 0.5]))
    array([1. , 0.5])
    """
    t = positive("threshold", threshold)
    function = PiecewisePolynomial(
        "capped_l1", [-t, 0, t], [[t], [0, -1], [0, 1], [t]], pivot_limit=fraction_lower(t / 2)
    )
    return Elementwise(function, u)


def scad(u: Expression, lam: float = 1.0, a: float = 3.7) -> Expression:
    """Return the smoothly clipped absolute deviation (Fan and Li 2001), a > 2.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> scad(Variable(2), 1.0, 3.0)(np.array([0.5, 9.0]))
    array([0.5, 2. ])
    """
    l, k = positive("lam", lam), exact_number(a, "a")
    if k <= 2:
        raise InputError(f"scad needs a > 2, got {a!r}.")
    outer = l * l * (k + 1) / 2
    bend = 1 / (2 * (k - 1))
    right = [-l * l * bend, 2 * k * l * bend, -bend]
    left = [right[0], -right[1], right[2]]
    pieces: list[list[Any]] = [[outer], left, [0, -l], [0, l], right, [outer]]
    return Elementwise(PiecewisePolynomial("scad", [-k * l, -l, 0, l, k * l], pieces), u)


def mcp(u: Expression, lam: float = 1.0, gamma: float = 2.0) -> Expression:
    """Return the minimax concave penalty (Zhang 2010), gamma > 1.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> mcp(Variable(2), 1.0, 2.0)(np.array([1.0, 9.0]))
    array([0.75, 1.  ])
    """
    l, g = positive("lam", lam), positive("gamma", gamma)
    if g <= 1:
        raise InputError(f"mcp needs gamma > 1, got {gamma!r}.")
    outer, bend = g * l * l / 2, -1 / (2 * g)
    pieces: list[list[Any]] = [[outer], [0, -l, bend], [0, l, bend], [outer]]
    return Elementwise(PiecewisePolynomial("mcp", [-g * l, 0, g * l], pieces), u)


class LogSum(ScalarFunction):
    """lam log(1 + |u|/eps): its slope is rational, its value is not."""

    name = "log_sum"

    def __init__(self, lam: Any, eps: Any) -> None:
        self.lam, self.eps = positive("lam", lam), positive("eps", eps)
        self.breakpoints = (Fraction(0),)
        require_range(self.name, [self.lam, self.eps, self.lam / self.eps])
        self.jumps = (2 * self.lam / self.eps,)
        self.lipschitz = fraction_upper(self.lam / self.eps)
        self.curvature = fraction_upper(self.lam / self.eps**2)

    def anew(self) -> LogSum:
        return LogSum(self.lam, self.eps)

    def value(self, u: Vector) -> Vector:
        answer: Vector = float(self.lam) * np.log1p(np.abs(u) / float(self.eps))
        return answer

    def slope(self, u: Vector, piece: Indices) -> Vector:
        side = 2.0 * piece - 1.0
        answer: Vector = side * float(self.lam) / (float(self.eps) + side * u)
        return answer

    def value_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        if arithmetic is RATIONAL:
            raise Irrational("log_sum")
        ratio = u * (2.0 * piece - 1.0) / enclose(self.eps)
        log = enclose_function(ratio, lambda b: (1 + b).log())
        return log * enclose(self.lam)

    def slope_in(self, u: Any, piece: Indices, arithmetic: Arithmetic) -> Any:
        side = 2 * piece - 1
        if arithmetic is ENCLOSURE:
            flank: Enclosure = u * side.astype(float) + enclose(self.eps)
            return flank.reciprocal() * (side.astype(float) * enclose(self.lam))
        out = np.empty(piece.shape, dtype=object)
        lam, eps = rational(self.lam), rational(self.eps)
        for place, (s, x) in enumerate(zip(side.ravel().tolist(), u.ravel().tolist())):
            out.flat[place] = s * lam / (eps + s * x)
        return out

    def steepest(self, low: float, high: float) -> float:
        nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
        return float(self.lam) / (float(self.eps) + nearest) if math.isfinite(nearest) else 0.0


def log_sum(u: Expression, lam: float = 1.0, eps: float = 1.0) -> Expression:
    """Return lam log(1 + |u|/eps).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> log_sum(Variable(1), 1.0, 0.5)(np.array([0.0]))
    array([0.])
    """
    return Elementwise(LogSum(lam, eps), u)


__all__ = ["LogSum", "capped_l1", "log_sum", "mcp", "scad"]
