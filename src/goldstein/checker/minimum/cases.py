"""A bound of f everywhere, by a tree of cases.

Let f = r + sum_i b_i phi_i(u_i), the phi_i made of pieces of degree 2 at most, the u_i affine, the
b_i numbers, and r - growth/2 |z|^2 convex, growth > 0. For u_i in [lo_i, hi_i] and any slope s_i

    b_i phi_i(u_i) >= b_i (s_i u_i + c_i),   c_i the least phi_i(u) - s_i u (b_i < 0: the largest),

so that f >= m, the function with these lines instead of the phi_i. m is smooth, and as in
`goldstein.checker.minimum.minimum` f(z) >= m(y) - |g| t + growth/2 t^2 for t = |z - y|, g the
gradient of m at any y. Either no z of the case has f(z) < goal: the case is closed; or all such z
are in a ball around y, which makes the intervals of the u_i smaller. Then it is split: u_i <= t
or u_i >= t. Every z is in one of both. In the beginning intervals are infinite. If all cases are
closed, f >= goal everywhere.
"""

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from goldstein.checker import exact, rationals, rounding, sides
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.errors import NotCertifiableError
from goldstein.checker.minimum.curvature import Pass, Region, at_least
from goldstein.checker.minimum.spans import Span, times
from goldstein.checker.near import bound
from goldstein.checker.nodes import Affine, Kinked, Node, Piecewise, polynomial


def farthest_low(eps: float, growth: float, loss: Fraction) -> float:
    """Bound the t > 0 with -loss - eps t + growth/2 t^2 <= 0, for growth > 0; rounded up."""
    slope, lam = Fraction(eps), Fraction(growth)
    root = Fraction(rationals.sqrt_upper(slope * slope + 2 * lam * max(loss, Fraction(0))))
    return rationals.fraction_upper((slope + root) / lam)


class Bounded(NamedTuple):
    """What lines show: f(z) >= low - eps t + growth/2 t^2 around a point, and the u_i there."""

    low: Fraction
    eps: float
    at: Span


class Cases:
    """A function as a sum of r and of pieces of affine arguments."""

    #: What r - growth/2 |z|^2 is convex with; see `require`.
    growth: float

    def __init__(self, program: sides.Program) -> None:
        self.program = program
        self.nodes = [
            (k, node) for k, node in enumerate(program.nodes)
            if isinstance(node, Kinked) and not _smooth(node)
        ]  # fmt: skip
        self._require_form()
        self.size = sum(node.size for _, node in self.nodes)
        d, zero = program.dim, np.zeros(self.size)
        run = Pass(self.lines(zero, zero), Region([0] * d, math.inf))
        total, adjoints = run.backward(program.last, Span(np.ones(1)))
        self.curvature = total.lower
        self.factor = joined(adjoints[k] for k, _ in self.nodes if k in adjoints)
        self.sign = np.where(self.factor.lo >= 0, 1, -1)
        if self.sign.size < self.size or ((self.sign < 0) & (self.factor.hi > 0)).any():
            raise NotCertifiableError("the sign of a kink's factor is not known.")
        steep = [rounding.norms_upper(run.slopes[node.of[0]].size) for _, node in self.nodes]
        self.steep = np.concatenate([np.zeros(0), *map(np.array, steep)])

    def require(self, growth: float) -> None:
        """Refuse a growth that is not proved."""
        if not (growth > 0 and at_least(self.curvature, growth)):
            raise NotCertifiableError("what is left without kinks is not as strongly convex.")
        self.growth = growth

    def _require_form(self) -> None:
        above: set[int] = set()
        own = {k for k, _ in self.nodes}
        for k, node in enumerate(self.program.nodes):
            if k in own:
                pieces = isinstance(node, Piecewise) and max(map(len, node.pieces)) <= 3
                if not (pieces and self.program.affine[node.of[0]]):
                    raise NotCertifiableError(f"cases have no rule for node {k} ({node.name}).")
            elif above & set(node.of) and not node.affine:
                raise NotCertifiableError(f"cases end at node {k} ({node.name}).")
            if k in own or above & set(node.of):
                above.add(k)

    def lines(self, slopes: Vector, offsets: Vector) -> sides.Program:
        """Return the function with lines instead of its kinks."""
        nodes, start = list(self.program.nodes), 0
        for k, node in self.nodes:
            own = slice(start, start + node.size)
            places = np.arange(node.size)
            line = sparse.csr_array((slopes[own], (places, places)), shape=(node.size, node.size))
            nodes[k] = Affine(node.of, node.sizes, node.size, line, 1, offsets[own])
            start += node.size
        return sides.Program(nodes)

    def entries(self) -> list[tuple[Any, int]]:
        """Return node and entry of all that a case is about."""
        return [(node, i) for _, node in self.nodes for i in range(node.size)]

    def shown(self, ranges: Span, slopes: Vector, y: Vector) -> Bounded | None:
        """Return what lines of some slopes show around y; None if no u can be in the ranges."""
        if (ranges.lo > ranges.hi).any():
            return None
        offsets = np.zeros(self.size)
        parts = zip(self.entries(), self.sign.tolist(), slopes.tolist())
        for j, ((node, _), sign, s) in enumerate(parts):
            low = _least(node, sign, Fraction(s), float(ranges.lo[j]), float(ranges.hi[j]))
            offsets[j] = sign * -rationals.fraction_upper(-low)
        point = sides.point_at(self.lines(slopes, offsets), y.tolist())
        eps = bound(point.limits(np.eye(1, y.size)), np.ones(1))
        at = joined(as_span(point.value(node.of[0])) for _, node in self.nodes)
        return Bounded(point.between()[0], eps, at)

    def smaller(self, ranges: Span, found: Bounded, goal: Fraction) -> Span | None:
        """Return the ranges where f may be below a goal; None if it is not."""
        eps = Fraction(found.eps)
        if found.low - eps * eps / (2 * Fraction(self.growth)) >= goal:
            return None
        within = farthest_low(found.eps, self.growth, goal - found.low)
        far = times(self.steep, np.float64(within), np.inf)
        return ranges.meet(found.at + Span(-far, far))

    def all_closed(
        self, points: Matrix, slopes: Matrix, splits: Matrix, goal: Fraction
    ) -> tuple[bool, str]:
        """Decide a tree, its cases in preorder, by how they are split: (entry, t).

        An entry of -1 says that a case is closed, -2 that it is looked at again in its ball.
        """
        left, nowhere = [self.everything], Span(self.everything.hi, self.everything.lo)
        for k, (y, s, (entry, t)) in enumerate(zip(points, slopes, splits)):
            if not left:
                return False, "there are more cases than splits lead to"
            ranges = left.pop()
            found = self.shown(ranges, s, y)
            rest = None if found is None else self.smaller(ranges, found, goal)
            if entry not in range(-2, self.size) or (entry == -1 and rest is not None):
                return False, f"case {k} is not closed, or split at an entry that does not exist"
            if entry != -1:
                rest = nowhere if rest is None else rest  # closed before: so are its parts
                left += [rest] if entry == -2 else split(rest, int(entry), float(t))
        return not left, "a case is missing" if left else f"{len(points)} cases, all closed"

    @property
    def everything(self) -> Span:
        return Span(np.full(self.size, -np.inf), np.full(self.size, np.inf))


def as_span(numbers: Any) -> Span:
    """Return exact numbers, or enclosures, as intervals with ends."""
    return Span.of(numbers.fractions) if isinstance(numbers, exact.Exact) else Span(*numbers.ends())


def joined(parts: Iterable[Span]) -> Span:
    """Return arrays of intervals as one."""
    return Span(*np.hstack([np.zeros((2, 0)), *(np.array([s.lo, s.hi]) for s in parts)]))


def split(ranges: Span, entry: int, t: float) -> list[Span]:
    """Return both sides of a split: above and below."""
    lo, hi = ranges.lo.copy(), ranges.hi.copy()
    lo[entry], hi[entry] = max(lo[entry], t), min(hi[entry], t)
    return [Span(lo, ranges.hi), Span(ranges.lo, hi)]


def _smooth(node: Node) -> bool:
    return isinstance(node, Piecewise) and not any(node.jumps)


def _least(node: Any, sign: int, s: Fraction, lo: float, hi: float) -> Fraction:
    """Return the least sign * (phi(u) - s u) on [lo, hi]; refuse if there is none."""
    ends, found = [-math.inf, *node.breakpoints, math.inf], list[Fraction]()
    for piece, a, b in zip(node.pieces, ends, ends[1:]):
        c = [sign * v for v in (*piece, 0, 0, 0)[:3]]
        c[1] -= sign * s
        a, b = max(a, lo), min(b, hi)
        if a > b:
            continue
        for end, way in ((a, -1), (b, 1)):
            if math.isinf(end) and (c[2] < 0 or (c[2] == 0 and way * c[1] < 0)):
                raise NotCertifiableError("a line is not below its kink: an interval is infinite.")
        points = [Fraction(e) for e in (a, b) if math.isfinite(e)]
        if c[2] > 0:
            points.append(min(max(-c[1] / (2 * c[2]), a), b))
        found += [polynomial(c, Fraction(p)) for p in points]
    return min(found)
