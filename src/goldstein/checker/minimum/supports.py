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

from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from goldstein.checker import errors, exact, nodes, rounding
from goldstein.checker.enclosed import irrational
from goldstein.checker.minimum.curvature import Curvature, Pass, row_sums
from goldstein.checker.minimum.spans import Span, over, plus, times
from goldstein.checker.rationals import fraction_upper
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
        width, columns = node.sizes[0], node.sizes[0] // node.size
        inside = all(0 <= g.place < width and g.row == g.place // columns for g in given)
        rows = {g.row for g in given}
        own = all(h.row in rows and 0 <= h.one < width and 0 <= h.other < width for h in sharp)
        twice = len({(g.row, g.place) for g in given}) < len(given)
        if not (inside and own) or twice or any(h.sigma < 0 for h in sharp):
            raise errors.InputError(f"the supports of node {k} do not belong to its entries.")
        self.mask = np.zeros(node.size, bool)
        self.mask[list(rows)] = True
        self.terms: list[Term] = []
        self.charge = 0.0

    def pulled_back(self, node: Any, g: exact.Exact) -> exact.Exact | None:
        """Return the derivatives in the argument; None unless lines are all there is."""
        if not self.mask.all() or any(h.p for h in self.given):
            return None
        rows, places = (np.array([h[j] for h in self.given], dtype=np.intp) for j in (1, 2))
        shares = exact.Exact.of([h.s for h in self.given])
        return (g[rows] * shares).scattered(places, node.sizes[0])

    def refuse(self, row: int, why: str) -> None:
        raise errors.NotCertifiableError(f"the support of node {self.k}, entry {row}: {why}.")


class HeldPiecewise(Held):
    """Substitutes phi(t) + s (u - t) + p/2 (u - t)^2 of entries."""

    def __init__(self, k: int, node: Any, given: Sequence[Support], sharp: Sequence[Sharp]) -> None:
        super().__init__(k, node, given, sharp)
        if any(h.one != h.row for h in sharp):
            raise errors.InputError(f"the supports of node {k} do not belong to its entries.")
        pieces = [node.pieces[sum(t < g.t for t in node.breakpoints)] for g in given]
        self.at = [nodes.polynomial(piece, g.t) for piece, g in zip(pieces, given)]
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
        size = Span(step.least, step.size)
        square = size * size * Span(0.5)
        return (self.top + self.s * step + self.bend * square).where(self.mask, u)

    def slope(self, u: Span) -> Span:
        return self.s + self.bend * (u + -self.t)

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
            left = nodes.polynomial(node.slopes[sum(t < g.t for t in node.breakpoints)], g.t)
            right = nodes.polynomial(node.slopes[sum(t <= g.t for t in node.breakpoints)], g.t)
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
                    cost = times(weight, max(worst, 0.0), np.inf)
                    self.charge = float(plus(self.charge, cost, np.inf))
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

    def forward(self, run: Pass, node: Any, value: Span, slopes: Span) -> tuple[Span, Span]:
        """Return what contains values and gradients of a node and of its weighted sums."""
        ((u, g),) = run.arguments(node)
        share, sums = self.weights(node).ravel(), row_sums(node)
        mine, steep = (u * share).through(sums), (g * share[:, None]).through(sums)
        value = run.both(value, mine).where(self.mask, value)
        return value, run.both(slopes, steep).where(self.mask[:, None], slopes)

    def by_row(self, alpha: Span) -> Iterable[tuple[int, list[Support]]]:
        found: dict[int, list[Support]] = defaultdict(list)
        for g in self.given:
            if not alpha.lo[g.row] >= 0:
                self.refuse(g.row, "its adjoint has no sign")
            found[g.row].append(g)
        return found.items()


class HeldMax(HeldRows):
    """Weights of sum 1 of the entries of rows."""

    def check(self, run: Pass, k: int, node: Any, alpha: Span) -> None:
        for row, given in self.by_row(alpha):
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
        for row, given in self.by_row(alpha):
            slack = sigma[row]
            if slack > 1 or sum(g.s * g.s for g in given) > (1 - slack) ** 2:
                self.refuse(row, "the weights are longer than 1")
            kappa = times(alpha.lo[row], Span.of([slack]).lo[0], -np.inf)
            places = dict.fromkeys(range(row * node.columns, (row + 1) * node.columns), 1)
            self.terms += [Term(node.of[0], places, Fraction(0), float(kappa), True)] * bool(slack)


_KINDS: dict[type[nodes.Node], type[Held]] = {
    nodes.Piecewise: HeldPiecewise, nodes.Max: HeldMax, irrational.Norm2: HeldNorm,
}  # fmt: skip


def held(program: Program, given: Sequence[Support], sharp: Sequence[Sharp]) -> dict[int, Any]:
    """Return what is given, by nodes."""
    found: dict[int, Any] = {}
    for k in sorted({g.node for g in given} | {h.node for h in sharp}):
        if not (0 < k <= program.last and type(program.nodes[k]) in _KINDS):
            raise errors.InputError(f"there is no node {k} that could have supports.")
        own = [g for g in given if g.node == k], [h for h in sharp if h.node == k]
        found[k] = _KINDS[type(program.nodes[k])](k, program.nodes[k], *own)
    return found


def slope_of_lines(program: Program, own: dict[int, Any]) -> list[Fraction] | None:
    """Return the gradient of a minorant that is affine, exactly; None of any other."""
    found: dict[int, Any] = {program.last: exact.Exact.of([1])}
    for k in range(program.last, 0, -1):
        if k not in found:
            continue
        node, g = program.nodes[k], found.pop(k)
        if k in own:
            parts = [own[k].pulled_back(node, g)]
        else:
            plain = isinstance(node, nodes.Affine | nodes.Add) and node.rational
            parts = node.backward(g, [], None) if plain else [None]
        for a, part in zip(node.of, parts):
            if part is None:
                return None
            found[a] = found[a] + part if a in found else part
    return found[0].fractions if 0 in found else [Fraction(0)] * program.dim


def sharpened(
    total: Curvature, terms: Sequence[Term], bare: Pass, radius: float
) -> tuple[float, float]:
    """Add what sharpness adds to the curvature; return what it adds to the loss and to eps."""
    found = []
    for term in terms:
        rows, tau = _argument(term, bare)
        length, blur = rounding.norm_upper(rows.mid.ravel()), rounding.norm_upper(rows.rad.ravel())
        if length and term.kappa:
            c = 0.0 if bare.program.affine[term.node] else bend_of(bare, term)
            found.append((term.kappa, length, c, tau, blur, rows.mid))
    if not found:
        return 0.0, 0.0
    *numbers, mids = zip(*found)
    kappa, lengths, *more = map(np.array, numbers)
    factor = over(times(2.0, kappa, -np.inf), times(radius, lengths, np.inf), -np.inf)
    total.add(np.repeat(factor, [len(m) for m in mids]), Span(np.concatenate(mids)))
    parts = np.array([times(kappa, part, np.inf) for part in more])
    if not np.isfinite(parts).all():
        raise errors.NotCertifiableError("a sharpness overflows.")
    bent, loss, eps = (fraction_upper(sum(map(Fraction, p), Fraction(0))) for p in parts.tolist())
    total.subtract(bent)
    return loss, eps


def _argument(term: Term, bare: Pass) -> tuple[Span, float]:
    """Return the gradients of what a term is the size of, at y, and |u(y) - t|."""
    here, places = bare.here, list(term.factors)
    slopes, value = here.slopes[term.node][places], here.values[term.node][places]
    if term.norm:
        if not bare.program.affine[term.node]:
            raise errors.NotCertifiableError("a norm of a curved argument is not sharp here.")
        return slopes, rounding.norm_upper(value.size)
    signs = np.array([list(term.factors.values())], dtype=float)
    at = value.through(signs) + -Span.of([term.t])
    return slopes.through(signs), float(at.size[0])


def bend_of(bare: Pass, term: Term) -> float:
    """Return a bound of the second derivatives of a smooth combination of entries."""
    size = bare.program.nodes[term.node].size
    bound = 0.0
    for sign in (1.0, -1.0):
        start = np.zeros(size)
        start[list(term.factors)] = sign * np.array(list(term.factors.values()))
        total, _ = bare.backward(term.node, Span(start))
        guess = max(0.0, -total.smallest) * (1 + 2.0**-20) + 2.0**-200
        c = guess if total.at_least(-guess) else rounding.norm_upper(total.lower.ravel())
        bound = max(bound, c)
    return bound
