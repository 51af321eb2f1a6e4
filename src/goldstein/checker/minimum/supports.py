"""Supports: substitutes below some nodes, and how sharply the function rises from them.

phi(u) >= phi(t) + s (u - t) + p/2 (u - t)^2 on an interval I around t where phi has no concave kink
and phi'' >= p, for s between the slopes of phi at t; max u >= sum w_i u_i for w >= 0 of sum 1; and
|u| >= w.u for |w| <= 1. (With an adjoint <= 0 everything about phi is turned upside down.)

Why f >= m, the function with the substitutes: replace the nodes one by one, the last one first.
Along (1 - theta) node + theta substitute, df/dtheta = adjoint * (substitute - node) <= 0 if the
adjoint is >= 0, and it is for all theta if it is on the hull of the values of both: the pass has
these hulls. The adjoint is one through substitutes only, as all nodes above are substituted.

Sharpness. If s - sigma and s + sigma will do as well, phi(u) is above the support by sigma |u - t|,
and so f is above m by a sigma |u - t|, a the least adjoint; the same with |u_i - u_j| of a maximum,
where all sigmas of an entry together must not exceed its weight, and with |u| of a norm. Where u is
smooth with second derivatives between -c and c, and |u(y) - t| = tau, this is at least
a sigma (|g.h| - c |h|^2 / 2 - tau) for h = z - y and g the gradient at y, and
|g.h| >= (g.h)^2 / (r |g|) for |h| <= r: a sigma (2 gg' / (r |g|) - c I) is added to the curvature.

Charges. A concave kink at k inside I, of jump j, is left out of phi where that is 0 at y: phi is
above the support minus |j| times how far u is beyond k, and that is at most (l |h| - m)_+ with
m = |u(y) - k| > 0 and l a bound of the gradients of u. It is charged at its worst.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from goldstein.checker import nodes
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.errors import InputError, Irrational, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.minimum.curvature import RULES, Curvature, Pass, Slopes, at_least
from goldstein.checker.minimum.spans import Span, over, plus, power, times
from goldstein.checker.rationals import fraction_upper, sqrt_upper, squared_norm
from goldstein.checker.rounding import norm_upper
from goldstein.checker.sides import Program


class Support(NamedTuple):
    """A substitute for an entry (t, s, p), or a weight s of a place in a row of max or norm."""

    node: int
    row: int
    place: int
    t: Fraction
    s: Fraction
    p: Fraction


class Sharp(NamedTuple):
    """A sigma: of an entry (one = other), of a pair of places in a row of max, or of a norm."""

    node: int
    row: int
    one: int
    other: int
    sigma: Fraction


class Term(NamedTuple):
    """kappa |u - t| below f: u a combination of entries of a node, or the norm of some."""

    node: int
    factors: dict[int, int]
    t: Fraction
    kappa: float
    norm: bool = False


class Held:
    """What is given for one node."""

    def __init__(self, k: int, node: Any, given: Sequence[Support], sharp: Sequence[Sharp]) -> None:
        self.k, self.given, self.sharp = k, given, sharp
        width = node.sizes[0]
        inside = all(0 <= g.row < node.size and 0 <= g.place < width for g in given)
        rows = {g.row for g in given}
        own = all(h.row in rows and 0 <= h.one < width and 0 <= h.other < width for h in sharp)
        twice = len({(g.row, g.place) for g in given}) < len(given)
        if not (inside and own) or twice or any(h.sigma < 0 for h in sharp):
            raise InputError(f"the supports of node {k} do not belong to its entries.")
        self.mask = np.zeros(node.size, bool)
        self.mask[list(rows)] = True
        self.terms: list[Term] = []
        self.charge = 0.0

    def refuse(self, row: int, why: str) -> None:
        raise NotCertifiableError(f"the support of node {self.k}, entry {row}: {why}.")


class HeldPiecewise(Held):
    """Substitutes phi(t) + s (u - t) + p/2 (u - t)^2 of entries."""

    def __init__(self, k: int, node: Any, given: Sequence[Support], sharp: Sequence[Sharp]) -> None:
        super().__init__(k, node, given, sharp)
        if any(g.row != g.place for g in given) or any(h.one != h.row for h in sharp):
            raise InputError(f"the supports of node {k} do not belong to its entries.")
        pieces = [node.pieces[sum(t < g.t for t in node.breakpoints)] for g in given]
        self.at = [power(piece, g.t) for piece, g in zip(pieces, given)]
        self.rows = [g.row for g in given]
        self.t, self.s, self.bend, self.top = (
            self._spread(node.size, column)
            for column in (*([getattr(g, n) for g in given] for n in "tsp"), self.at)
        )

    def _spread(self, size: int, column: list[Fraction]) -> Span:
        lo, hi, some = np.zeros(size), np.zeros(size), Span.of(column)
        lo[self.rows], hi[self.rows] = some.lo, some.hi
        return Span(lo, hi)

    def value(self, u: Span) -> Span:
        step = u + -self.t
        low = np.where((step.lo <= 0) & (step.hi >= 0), 0.0, np.minimum(abs(step.lo), abs(step.hi)))
        square = Span(low, step.size) * Span(low, step.size) * Span(0.5)
        return (self.top + self.s * step + self.bend * square).where(self.mask, u)

    def slope(self, u: Span) -> Span:
        return self.s + self.bend * (u + -self.t)

    def forward(self, node: Any, u: Any, piece: Any) -> Any:
        return _horner(self._columns(piece, node.pieces, False), u)

    def backward(self, node: Any, g: Any, u: Any, piece: Any) -> Any:
        return g * _horner(self._columns(piece, node.slopes, True), u)

    def _columns(self, piece: Any, table: Any, derived: bool) -> list[list[Fraction]]:
        """Return the coefficients of every entry, by powers."""
        rows = [list(table[p]) for p in piece]
        for g, top in zip(self.given, self.at):
            b, c = g.s - g.p * g.t, g.p / 2
            rows[g.row] = [b, g.p] if derived else [top - g.s * g.t + c * g.t**2, b, c]
        width = max(map(len, rows))
        return [[r[j] if j < len(r) else Fraction(0) for r in rows] for j in range(width)]

    def check(self, run: Pass, k: int, node: Any, alpha: Span, rule: Any) -> None:
        """Refuse unless every substitute is a support on the whole interval of its argument."""
        (arg,) = node.of
        u = run.values[arg].hull(self.t).where(self.mask, run.values[arg])
        bend, kinks = rule.bend(node, u), rule.kinks(node, u)
        far, here = run.region.reach(run.slopes[arg]), run.here.values[arg]
        sigma = {h.row: h.sigma for h in self.sharp}
        for g in self.given:
            i, slack = g.row, sigma.get(g.row, Fraction(0))
            side = 1 if alpha.lo[i] >= 0 else -1
            if side < 0 and alpha.hi[i] > 0:
                self.refuse(i, "its adjoint has no sign")
            left = power(node.slopes[sum(t < g.t for t in node.breakpoints)], g.t)
            right = power(node.slopes[sum(t <= g.t for t in node.breakpoints)], g.t)
            if not side * left <= side * g.s - slack or not side * g.s + slack <= side * right:
                self.refuse(i, "its slope is not between those of the kink")
            least = bend.lo[i] if side > 0 else -bend.hi[i]
            if not side * g.p <= least:
                self.refuse(i, "it bends more than the function")
            for t, jump, inside in kinks:
                if inside[i] and t != g.t and side * jump < 0:
                    margin = Span.of([t]) + -here[i : i + 1]
                    margin = margin if g.t < t else -margin
                    if not margin.lo[0] > 0:
                        self.refuse(i, "it is next to a concave kink")
                    worst = plus(far[i], -margin.lo[0], np.inf)
                    weight = times(alpha.size[i], fraction_upper(abs(jump)), np.inf)
                    self.charge = float(
                        plus(self.charge, times(weight, max(worst, 0.0), np.inf), np.inf)
                    )
            if slack:
                least = alpha.lo[i] if side > 0 else -alpha.hi[i]
                kappa = times(least, Span.of([slack]).lo[0], -np.inf)
                self.terms.append(Term(arg, {i: 1}, g.t, max(float(kappa), 0.0)))


class HeldRows(Held):
    """Weights of the places of rows: of a maximum, or of a norm."""

    def weights(self, node: Any) -> Span:
        lo, hi = np.zeros((2, node.size, node.columns))
        some = Span.of([g.s for g in self.given])
        at = [g.row for g in self.given], [g.place - g.row * node.columns for g in self.given]
        lo[at], hi[at] = some.lo, some.hi
        return Span(lo, hi)

    def forward(self, node: Any, u: Any, piece: Any) -> Any:
        rows, places, shares, rest = self._sums(node, type(u))
        whole = (u[places] * shares).scattered(rows, node.size)
        return whole if rest is None else node.forward([[u]], piece)[0] * rest + whole

    def backward(self, node: Any, g: Any, u: Any, piece: Any) -> Any:
        rows, places, shares, rest = self._sums(node, type(g))
        whole = (g[rows] * shares).scattered(places, node.sizes[0])
        return whole if rest is None else node.backward(g * rest, [u], piece)[0] + whole

    def _sums(self, node: Any, numbers: Any) -> tuple[Any, Any, Any, Any]:
        rows, places = (np.array([g[j] for g in self.given], dtype=np.intp) for j in (1, 2))
        rest = None if self.mask.all() else numbers.of([int(not held) for held in self.mask])
        return rows, places, numbers.of([g.s for g in self.given]), rest

    def by_row(self, node: Any) -> dict[int, list[Support]]:
        found: dict[int, list[Support]] = defaultdict(list)
        for g in self.given:
            if g.place // node.columns != g.row:
                self.refuse(g.row, "a weight belongs to another row")
            found[g.row].append(g)
        return found


class HeldMax(HeldRows):
    """Weights of sum 1 of the entries of rows."""

    def check(self, run: Pass, k: int, node: Any, alpha: Span) -> None:
        for row, given in self.by_row(node).items():
            if not alpha.lo[row] >= 0:
                self.refuse(row, "its adjoint has no sign")
            if any(g.s < 0 for g in given) or sum(g.s for g in given) != 1:
                self.refuse(row, "the weights are negative, or their sum is not 1")
            left = defaultdict(Fraction, {g.place: g.s for g in given})
            for h in self.sharp:
                if h.row == row:
                    left[h.one], left[h.other] = left[h.one] - h.sigma, left[h.other] - h.sigma
                    kappa = times(alpha.lo[row], Span.of([h.sigma]).lo[0], -np.inf)
                    factors = {h.one: 1, h.other: -1}
                    self.terms.append(Term(node.of[0], factors, Fraction(0), float(kappa)))
                    if h.one == h.other or left[h.one] < 0 or left[h.other] < 0:
                        self.refuse(row, "the weights leave no room for so much sharpness")


class HeldNorm(HeldRows):
    """Weights of norm at most 1 of the entries of rows."""

    def check(self, run: Pass, k: int, node: Any, alpha: Span) -> None:
        sigma: dict[int, Fraction] = defaultdict(Fraction)
        for h in self.sharp:
            sigma[h.row] += h.sigma
        for row, given in self.by_row(node).items():
            if not alpha.lo[row] >= 0:
                self.refuse(row, "its adjoint has no sign")
            slack = sigma[row]
            if slack > 1 or sum(g.s * g.s for g in given) > (1 - slack) ** 2:
                self.refuse(row, "the weights are longer than 1")
            kappa = times(alpha.lo[row], Span.of([slack]).lo[0], -np.inf)
            places = dict.fromkeys(range(row * node.columns, (row + 1) * node.columns), 1)
            self.terms += [Term(node.of[0], places, Fraction(0), float(kappa), True)] * bool(slack)


def _horner(columns: list[list[Fraction]], u: Any) -> Any:
    out = type(u).of(columns[-1])
    for column in reversed(columns[:-1]):
        out = out * u + type(u).of(column)
    return out


_KINDS: dict[type[nodes.Node], type[Held]] = {
    nodes.Piecewise: HeldPiecewise, nodes.Max: HeldMax, nodes.Norm2: HeldNorm,
}  # fmt: skip


def held(program: Program, given: Sequence[Support], sharp: Sequence[Sharp]) -> dict[int, Any]:
    """Return what is given, by nodes."""
    found: dict[int, Any] = {}
    for k in sorted({g.node for g in given} | {h.node for h in sharp}):
        if not (0 < k <= program.last and type(program.nodes[k]) in _KINDS):
            raise InputError(f"there is no node {k} that could have supports.")
        own = [g for g in given if g.node == k], [h for h in sharp if h.node == k]
        found[k] = _KINDS[type(program.nodes[k])](k, program.nodes[k], *own)
    return found


def sharpened(
    total: Curvature, terms: Sequence[Term], bare: Pass, radius: float
) -> tuple[float, float]:
    """Add what sharpness adds to the curvature; return what it adds to the loss and to eps."""
    loss, eps = 0.0, 0.0
    here = bare.here
    for term in terms:
        places, signs = list(term.factors), np.array(list(term.factors.values()), dtype=float)
        slopes, value = here.slopes[term.node][places], here.values[term.node][places]
        if term.norm:
            if not bare.program.affine[term.node]:
                raise NotCertifiableError("a norm of a curved argument is not sharp here.")
            rows, tau = slopes, norm_upper(value.size)
        else:
            span = slopes.span * Span(signs[:, None])
            summed = span[0] if len(places) == 1 else span[0] + span[1]
            rows = Slopes.of(Span(summed.lo[None], summed.hi[None]))
            at = value[0] if len(places) == 1 else value[0] + -value[1]
            tau = float((at + -Span.of([term.t])).size[0])
        length, blur = norm_upper(rows.mid.ravel()), norm_upper(rows.rad.ravel())
        if length == 0.0 or term.kappa == 0.0:
            continue
        c = 0.0 if bare.program.affine[term.node] else bend_of(bare, term)
        kappa, rows.rad = term.kappa, np.zeros_like(rows.rad)
        factor = over(times(2.0, kappa, -np.inf), times(radius, length, np.inf), -np.inf)
        total.add(np.full(len(rows.mid), float(factor)), rows)
        total.subtract(float(times(kappa, c, np.inf)))
        loss = float(plus(loss, times(kappa, tau, np.inf), np.inf))
        eps = float(plus(eps, times(kappa, blur, np.inf), np.inf))
    return loss, eps


def bend_of(bare: Pass, term: Term) -> float:
    """Return a bound of the second derivatives of a smooth combination of entries."""
    size = bare.program.nodes[term.node].size
    bound = 0.0
    for sign in (1.0, -1.0):
        start = np.zeros(size)
        start[list(term.factors)] = sign * np.array(list(term.factors.values()))
        lower = bare.backward(term.node, Span(start))[0].lower
        guess = max(0.0, -float(np.linalg.eigvalsh(lower)[0])) * (1 + 2.0**-20) + 2.0**-200
        c = guess if at_least(lower, -guess) else norm_upper(lower.ravel())
        bound = max(bound, c)
    return bound


# --- the function with its substitutes at y ----------------------------------------------------


class Point(NamedTuple):
    """Value and gradient at y, enclosed; exact numbers where they are known."""

    low: Fraction
    high: Fraction
    gradient: Slopes
    exact: list[Fraction] | None

    @property
    def length(self) -> float:
        """An upper bound of the norm of the gradient."""
        if self.exact is not None:
            return sqrt_upper(squared_norm(self.exact))
        return norm_upper(self.gradient.size[0])


def evaluate(run: Pass) -> Point:
    """Return value and gradient at y of the function with its substitutes.

    Refused where it may not be differentiable: where an entry without a substitute may be on a
    kink, unless it is constant on the region.
    """
    if run.program.is_small() and all(node.rational for node in run.program.nodes):
        try:
            return _evaluate(run, Exact)
        except Irrational:
            pass
    return _evaluate(run, Enclosure)


def _evaluate(run: Pass, numbers: Any) -> Point:
    program = run.program
    values: dict[int, Any] = {0: numbers.of(run.region.y)}
    pieces: dict[int, Any] = {}
    for k, node in enumerate(program.nodes[1:], 1):
        args, own = [values[a] for a in node.of], run.supports.get(k)
        if isinstance(node, nodes.Piecewise | nodes.Max | nodes.Norm2):
            pieces[k] = _pieces(run, k, node, args[0])
        if own is None:
            values[k] = node.forward([[u] for u in args], pieces.get(k))[0]
        else:
            values[k] = own.forward(node, args[0], pieces[k])
    start = numbers.of([Fraction(1)])
    adjoints: dict[int, Any] = {program.last: start}
    for k in range(program.last, 0, -1):
        if k in adjoints:
            node, g, own = program.nodes[k], adjoints.pop(k), run.supports.get(k)
            args = [values[a] for a in node.of]
            parts = node.backward(g, args, pieces.get(k)) if own is None else [
                own.backward(node, g, args[0], pieces[k])
            ]  # fmt: skip
            for a, part in zip(node.of, parts):
                adjoints[a] = adjoints[a] + part if a in adjoints else part
    return _point(values[program.last], adjoints.get(0), program.dim)


def _point(value: Any, gradient: Any, dim: int) -> Point:
    if isinstance(value, Exact):
        (f,) = value.fractions
        exact = [Fraction(0)] * dim if gradient is None else gradient.fractions
        return Point(f, f, Slopes.of(Span.of(exact)[None]), exact)
    gradient = Enclosure(np.zeros(dim)) if gradient is None else gradient
    (low,), (high,) = value.ends()
    if not (np.isfinite([low, high]).all() and np.isfinite(gradient.rad + gradient.mid).all()):
        raise NotCertifiableError("value or gradient could not be enclosed; rescale the data.")
    slopes = Slopes(gradient.mid[None], gradient.rad[None])
    return Point(Fraction(float(low)), Fraction(float(high)), slopes, None)


def _pieces(run: Pass, k: int, node: Any, u: Any) -> Any:
    """Return the pieces at y; refuse what may be on a kink and is neither held nor constant."""
    piece, ties = node.decide(u)
    own, slopes = run.supports.get(k), run.slopes[node.of[0]]
    for row, tie in ties.items():
        if own is not None and own.mask[row]:
            if isinstance(piece, dict):  # a norm: what is not used must not divide by 0
                piece[row] = Exact.of([1, *[0] * (node.columns - 1)])
        elif isinstance(node, nodes.Piecewise):
            moves = slopes.size[row].any()
            run.require(np.arange(node.size) != (row if moves and node.jumps[tie] else -1), k, _ON)
        elif isinstance(node, nodes.Max):
            (kept,) = np.nonzero(RULES[nodes.Max].kept(run, node)[row])
            run.require(np.arange(node.size) != (row if kept.size > 1 else -1), k, _ON)
            piece[row] = row * node.columns + kept[0]
        else:
            run.require(np.arange(node.size) != row, k, _ON)
    return piece


_ON = "the point may be on a kink without a support there; a kink"


__all__ = ["Point", "Sharp", "Support", "Term", "bend_of", "evaluate", "held", "sharpened"]
