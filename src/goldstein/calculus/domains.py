"""Is a function defined on a whole ball? Intervals for all nodes; they may refuse only.

Logarithms, roots and quotients end somewhere, and a claim about a ball speaks of all its points.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.calculus.expression import Expression
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
    known = [Span(x - radius, x + radius)]
    with np.errstate(all="ignore"):
        for node, owner in zip(made[1:], owners[1:]):
            args = [known[a] for a in node.of]
            u = args[0]
            wanted = node.function.domain if isinstance(node, irrational.Smooth) else ""
            if wanted and not (u.lo.min() > 0 or (wanted != "positive" and u.hi.max() < 0)):
                end = f"from {u.lo.min():.6g} on"
                return f"{owner.name} of an argument that is not shown to be {wanted} ({end})"
            found = _affine(node, u, radius) if node.name == "affine" else _range(node, args)
            ends = (found.lo, -1.0), (found.hi, 1.0)
            known.append(Span(*(end + side * (SLACK * np.abs(end) + 1e-300) for end, side in ends)))
    return ""


def _affine(node: Any, u: Span, radius: float) -> Span:
    mid, rad = (part.reshape(-1, node.columns) for part in (u.mid, u.rad))
    size = abs(node.matrix)
    reach = np.ravel(size @ rad)
    if node.of == (0,) and node.columns == 1:  # of a ball, not of the box around it
        squares = np.asarray((size.power(2) if sparse.issparse(size) else size**2).sum(axis=1))
        reach = np.minimum(reach, np.sqrt(squares.ravel()) * radius)
    centre = np.ravel(node.matrix @ mid) + (0.0 if node.offset is None else node.offset)
    found = Span(centre - reach, centre + reach)
    return found if node.divisor is None else found.over(node.divisor)


def _squared(u: Span) -> Span:
    return power_sum([Fraction(0), Fraction(0), Fraction(1)], u)


def _product(node: Any, u: Span, v: Span) -> Span:
    if node.inner == 1 and node.shape == (1, 1):
        return _squared(u) if node.of[0] == node.of[1] else u * v
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
    square = _squared(u)  # pseudo_huber
    return Span(np.sqrt(1.0 + square.lo) - 1.0, np.sqrt(1.0 + square.hi) - 1.0)


def _range(node: Any, args: list[Span]) -> Span:
    u = args[0]
    if node.name == "add":
        return sum(args[1:], u)
    if node.name == "piecewise":
        return PiecewiseRule.over_pieces(node, u, node.pieces)
    if node.name == "product":
        return _product(node, *args)
    if node.name == "smooth":
        return _smooth(node.function.name, u)
    if node.name not in ("max", "norm2", "logsumexp", "order"):
        return Span(np.full(node.size, -np.inf), np.full(node.size, np.inf))
    rows = [end.reshape(-1, node.columns) for end in (u.lo, u.hi)]
    if node.name == "max":
        return Span(*(end.max(axis=1) for end in rows))
    if node.name == "logsumexp":
        return Span(*(np.logaddexp.reduce(end, axis=1) for end in rows))
    if node.name == "norm2":
        square = _squared(u)
        return Span(*(np.sqrt(node.rows(end).sum(axis=1)) for end in (square.lo, square.hi)))
    up, down = np.maximum(node.weights, 0.0).T, np.minimum(node.weights, 0.0).T
    low, high = (np.sort(end, axis=1) for end in rows)
    return Span((low @ up + high @ down).ravel(), (high @ up + low @ down).ravel())
