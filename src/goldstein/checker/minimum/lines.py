"""A minorant of large functions: one line below every entry that is convex or concave everywhere.

Theorem. Let f(z) = c + a.z + sum of g_i phi_i(u_i(z)), u_i affine, phi_i convex on the whole line
if g_i >= 0 and concave if g_i <= 0. For any s_i between the slopes of phi_i at any t_i, and all z,

    f(z) >= f(y) - loss + (a + sum of g_i s_i grad u_i).(z - y),
    loss = sum of g_i (phi_i(u_i(y)) - phi_i(t_i) - s_i (u_i(y) - t_i)).

Proof. g_i phi_i(u) >= g_i (phi_i(t_i) + s_i (u - t_i)); subtract its value at u_i(y). Likewise a
maximum with g >= 0: max u >= w.u for weights w >= 0 of sum 1, and the loss is g (max u - w.u) at y.

Values and g are enclosed. Where no slope is given t = u(y): nothing is lost, and the slopes of all
pieces that u(y) may be on contain one of the true u(y). The work is that of one value and one
gradient, and no table has a row for every entry.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.errors import NotCertifiableError
from goldstein.checker.minimum.curvature import RULES
from goldstein.checker.minimum.spans import Span
from goldstein.checker.minimum.supports import Support, held
from goldstein.checker.nodes import Add, Affine, Max, Piecewise
from goldstein.checker.rounding import norm_upper
from goldstein.checker.sides import Program

#: From so many numbers on, in a table with a row for every entry of a node, lines are tried first.
LARGE = 2**16

_RULE = RULES[Piecewise]


def is_large(program: Program) -> bool:
    """Would a table with the gradients of all entries of a node be large?"""
    return max(node.size for node in program.nodes) * program.dim >= LARGE


class Line(NamedTuple):
    """f(z) >= f(y) - loss + slope.(z - y) for all z."""

    slope: Enclosure
    loss: Enclosure

    @property
    def ends(self) -> tuple[float, Fraction]:
        """Bounds of the length of the slope, and of the loss."""
        eps, most = norm_upper(self.slope.magnitude), float(self.loss.ends()[1][0])
        if not np.isfinite([eps, most]).all():
            raise NotCertifiableError("value or gradient could not be enclosed; rescale the data.")
        return eps, Fraction(max(most, 0.0))


def _pulled(program: Program, k: int, g: Enclosure) -> dict[int, Enclosure]:
    """Return the derivatives of g . node k in the nearest nodes that are no sums."""
    closed = [b for b, node in enumerate(program.nodes) if not isinstance(node, Affine | Add)]
    found = program.pull_back(k, g, {}, lambda b: None, closed)
    return {b: found[b] for b in closed if b in found}


def terms(program: Program) -> Iterator[tuple[int, Any, Enclosure]]:
    """Yield what f is a sum of, the variable first: nodes of affine arguments, and their g."""
    found = _pulled(program, program.last, Enclosure(np.ones(1)))
    yield 0, program.nodes[0], found.pop(0, Enclosure(np.zeros(program.dim)))
    for k, g in found.items():
        node = program.nodes[k]
        below = [] if len(node.of) != 1 else program.ancestors(node.of[0])[1:]
        sums = all(isinstance(program.nodes[b], Affine | Add) for b in below)
        if not (isinstance(node, Piecewise | Max) and sums):
            raise NotCertifiableError(f"node {k} ({node.name}) is no kink of an affine function.")
        yield k, node, g


def line_below(program: Program, y: Any, supports: Sequence[Support]) -> Line:
    """Derive the line; slopes at breakpoints and weights may be given, others are those at y."""
    own, series = held(program, supports, ()), {0: [Enclosure.of(y)]}
    (_, _, slope), *others = terms(program)
    loss = Enclosure(np.zeros(1))
    for k, node, g in others:
        (arg,) = node.of
        u = program.extend(series, {}, arg)[0]
        part, lost = (_of_rows if isinstance(node, Max) else _of_entries)(k, node, g, u, own.get(k))
        slope, loss = slope + _pulled(program, arg, part)[0], loss + lost.sum().reshape(1)
    return Line(slope, loss)


def _of_entries(k: int, node: Any, g: Enclosure, u: Enclosure, own: Any) -> Any:
    """Return g s and the losses."""
    (low, high), at = g.ends(), Span(*u.ends())
    side = 1 if (low >= 0).all() else -1
    bend = _RULE.bend(node, Span(np.full(1, -np.inf), np.inf))
    least = bend.lo[0] if side > 0 else -bend.hi[0]
    right = (side * high >= 0).all() and least >= 0 and all(side * j >= 0 for j in node.jumps)
    slope, lost = _RULE.over_pieces(node, at, node.slopes), Enclosure(np.zeros(1))
    if own is not None:
        sides = {t: sorted(pair) for t, pair in zip(node.breakpoints, node.beside)}
        kinks = [(sides.get(h.t, [h.s + 1, h.s]), h) for h in own.given]
        right = right and all(a <= h.s <= b and not h.p for (a, b), h in kinks)
        value = _enclosed(_RULE.over_pieces(node, at, node.pieces)) - _enclosed(own.value(at))
        slope, lost = own.slope(at).where(own.mask, slope), (g * value)[own.mask]
    if not right:
        raise NotCertifiableError(f"node {k} ({node.name}): no line is known below it, or above.")
    return g * _enclosed(slope), lost


def _of_rows(k: int, node: Any, g: Enclosure, u: Enclosure, own: Any) -> Any:
    """Return g w and the losses; w is 1 for the entry that seems largest, or given."""
    (low, high), owner = u.ends(), np.repeat(np.arange(node.size), node.columns)
    if not (g.ends()[0] >= 0).all():
        raise NotCertifiableError(f"node {k} ({node.name}): no line is known below it.")
    top = node.rows(u.mid).argmax(axis=1)
    table = Span((np.arange(node.columns) == top[:, None]) * 1.0)
    if own is not None:
        own.check(None, k, node, Span(*g.ends()))
        table = own.weights(node).where(own.mask[:, None], table)
    share = _enclosed(table.ravel()) * g[owner]
    highest = _enclosed(Span(node.rows(low).max(axis=1), node.rows(high).max(axis=1)))
    return share, share * (highest[owner] - u)


def _enclosed(u: Span) -> Enclosure:
    return Enclosure(u.mid, np.where(np.isfinite(u.lo) & np.isfinite(u.hi), u.rad, np.inf))


__all__ = ["LARGE", "Line", "is_large", "line_below", "terms"]
