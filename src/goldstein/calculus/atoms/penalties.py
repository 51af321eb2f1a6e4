"""Sparsity penalties: capped_l1, scad, mcp, log_sum. Each acts entry by entry."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

from goldstein.calculus.atoms.base import (
    Atom,
    Curve,
    Elementwise,
    PiecewisePolynomial,
    require_range,
)  # fmt: skip
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import rational_scale
from goldstein.checker import nodes
from goldstein.checker.rationals import fraction_upper
from goldstein.errors import InputError
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
    pieces: list[list[Any]] = [[t], [0, -1], [0, 1], [t]]
    return Elementwise(PiecewisePolynomial("capped_l1", [-t, 0, t], pieces), u)


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


def log_sum(u: Expression, lam: float = 1.0, eps: float = 1.0) -> Expression:
    """Return lam log(1 + |u|/eps).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> log_sum(Variable(1), 1.0, 0.5)(np.array([0.0]))
    array([0.])
    """
    u, l, e = as_expression(u, "log_sum"), positive("lam", lam), positive("eps", eps)
    require_range("log_sum", [l, e, l / e])
    inner = Elementwise(PiecewisePolynomial("log_sum", [0], [[1, -1 / e], [1, 1 / e]]), u)
    log = Expression(nodes.Smooth, (inner,), u.shape, ("log",), "log")
    curve = Curve(partial(_flank, l, e), fraction_upper(l / e**2), (Fraction(0),))
    return Atom(rational_scale(log, l), u, "log_sum", curve)


def _flank(lam: Fraction, eps: Fraction, low: float, high: float) -> float:
    nearest = 0.0 if low <= 0.0 <= high else min(abs(low), abs(high))
    if nearest == 0.0:
        return fraction_upper(lam / eps)
    return float(lam) / (float(eps) + nearest) if math.isfinite(nearest) else 0.0


__all__ = ["capped_l1", "log_sum", "mcp", "scad"]
