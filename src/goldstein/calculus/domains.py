"""Is a function defined on a whole ball? Intervals for all nodes, in float64; they may refuse only.

Logarithms, roots and quotients end somewhere, and a claim about a ball speaks of all its points.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from goldstein.calculus.evaluation import SQUARE
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import row_norms
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed import irrational
from goldstein.checker.minimum.curvature import PiecewiseRule
from goldstein.checker.minimum.spans import Span, power_sum

#: Wider than the rounding errors of one step, relative to the ends.
SLACK = 1e-12

_RISING: dict[str, Callable[[Vector], Vector]] = {
    "exp": np.exp, "log": np.log, "sqrt": np.sqrt, "tanh": np.tanh, "arctan": np.arctan,
}  # fmt: skip


def undefined_in(fun: Expression, x: Vector, radius: float) -> str:
    """Return what may be undefined within a radius of x, in words; nothing if all is defined.

    Examples
    --------
    >>> from goldstein.calculus import Variable, log, sum
    >>> F = sum(log(Variable(2)))
    >>> undefined_in(F, np.array([1.0, 2.0]), 0.5)
    ''
    >>> undefined_in(F, np.array([1.0, 2.0]), 1.5)
    'log of an argument that is not shown to be positive (from -0.5 on)'
    """
    made, owners = fun._numbered
    if not any(isinstance(node, irrational.Smooth) and node.function.domain for node in made):
        return ""
    known = [Span(x) + Span(np.full(x.size, -radius), radius)]
    with np.errstate(all="ignore"):
        for node, owner in zip(made[1:], owners[1:]):
            args = [known[a] for a in node.of]
            low, high = args[0].lo, args[0].hi
            wanted = node.function.domain if isinstance(node, irrational.Smooth) else ""
            if wanted and not (low.min() > 0 or (wanted != "positive" and high.max() < 0)):
                end = f"from {low.min():.6g} on"
                return f"{owner.name} of an argument that is not shown to be {wanted} ({end})"
            ends = (
                _affine(node, args[0], x, radius) if node.name == "affine" else _range(node, args)
            )
            wide = [SLACK * np.abs(end) + 1e-300 for end in (ends.lo, ends.hi)]
            known.append(Span(ends.lo - wide[0], ends.hi + wide[1]))
    return ""


def _affine(node: Any, u: Span, x: Vector, radius: float) -> Span:
    table = Span(u.lo.reshape(-1, node.columns), u.hi.reshape(-1, node.columns))
    found = table.through(node.matrix).ravel()
    if node.of == (0,) and node.columns == 1:  # of a ball, not of the box around it
        far = row_norms(node.matrix) * (radius * (1.0 + SLACK))
        found = found.meet(Span(x).through(node.matrix) + Span(-far, far))
    found = found if node.offset is None else found + Span(node.offset)
    return found if node.divisor is None else found.over(node.divisor)


def _product(node: Any, u: Span, v: Span) -> Span:
    if node.of[0] == node.of[1] and node.inner == 1 and node.shape == (1, 1):
        return power_sum(list(SQUARE[0]), u)
    (n, m), k = node.shape, node.inner
    (a, r), (b, s) = (
        [part.reshape(-1, *shape) for part in (w.mid, w.rad)]
        for w, shape in ((u, (n, k)), (v, (k, m)))
    )
    centre, reach = (a @ b).ravel(), (np.abs(a) @ s + r @ np.abs(b) + r @ s).ravel()
    return Span(centre - reach, centre + reach)


def _smooth(name: str, u: Span) -> Span:
    if name in _RISING:
        return Span(_RISING[name](u.lo), _RISING[name](u.hi))
    if name == "reciprocal":
        return Span(1.0 / u.hi, 1.0 / u.lo)
    if name in ("sin", "cos"):
        mid = getattr(np, name)(u.mid)
        return Span(np.maximum(mid - u.rad, -1.0), np.minimum(mid + u.rad, 1.0))
    return Span(np.hypot(1.0, u.least) - 1.0, np.hypot(1.0, u.size) - 1.0)  # pseudo_huber


def _range(node: Any, args: list[Span]) -> Span:
    u = args[0]
    if node.name == "add":
        return reduce(operator.add, args)
    if node.name == "piecewise":
        return PiecewiseRule.over_pieces(node, u, node.pieces)
    if node.name == "product":
        return _product(node, *args)
    if node.name == "smooth":
        return _smooth(node.function.name, u)
    if node.name not in ("max", "norm2", "logsumexp", "order"):
        return Span(np.full(node.size, -np.inf), np.full(node.size, np.inf))
    if node.name == "order":
        rows = [np.sort(end.reshape(-1, node.columns), axis=1).T for end in (u.lo, u.hi)]
        found = Span(*rows).through(node.weights)
        return Span(found.lo.T.ravel(), found.hi.T.ravel())
    reduced = {"max": np.maximum.reduce, "logsumexp": np.logaddexp.reduce, "norm2": np.hypot.reduce}
    ends = (u.least, u.size) if node.name == "norm2" else (u.lo, u.hi)
    return Span(*(reduced[node.name](node.rows(end), axis=1) for end in ends))
