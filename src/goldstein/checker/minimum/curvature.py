"""The curvature pass: a matrix M such that f - z'Mz/2 is convex on a convex set C.

Forward, every entry of every node gets an interval of its values on C, and one of its gradients.
Backward, an interval that contains every derivative of f in it, its adjoint. M is the sum, over all
entries, of a lower bound of the adjoint times the entry's own second derivative; kinks need an
adjoint of the right sign and then cost nothing.

Why it is right. On a segment in C every node is piecewise analytic, with finitely many breaks.
Between them the chain rule gives f'' as the sum of adjoints times own second derivatives, each
inside its interval. At a break let p, q be the one-sided derivatives of an entry along h and -h,
and J = p + q. A smooth node has J = slope * J of its argument, a product v J_u + u J_v. A kink of
jump j has J = s J_arg + j c with c >= 0 and s one of its two slopes; a maximum J = J_i + c for the
entry i that attains max p; a norm at 0, |p| + |q| = w.J_arg + c with w = p/|p|. So J of f is the
sum of adjoint * jump * c over all kinks, each adjoint an element of its interval. With the signs
required below J >= 0: the derivative of f along the segment never jumps down, and f'' >= h'Mh.
An end of an entry's interval is never crossed along a segment, so kinks there do not count.

A rule of a kind of node is one entry in `RULES`; nodes without one are refused by their name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker import nodes, rationals, rounding
from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.enclosed import irrational
from goldstein.checker.enclosed.arrays import FUNCTIONS, Enclosure, hypotenuse
from goldstein.checker.enclosed.point import is_small
from goldstein.checker.errors import NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.minimum.spans import Span, moved, over, plus, power_sum, product, times
from goldstein.checker.sides import Program

#: Larger tables of gradients are refused.
MOST = 3 * 10**7

#: Matrices with so few entries are dense here.
SMALL = 2**20

#: Larger than what products lose that underflow; of errors that a large factor meets, and of sums.
LOST, TINY = 2.0**-1060, 2.0**-1000


def summing(place: Any, size: int) -> Any:
    """Return the matrix that adds entries at their places."""
    ones = np.ones(place.size), (place, np.arange(place.size))
    found = sparse.csr_array(ones, shape=(size, place.size))
    return found.toarray() if size * place.size <= SMALL else found


def row_sums(node: Any) -> Any:
    """Return the matrix that adds the entries of each row."""
    return summing(np.repeat(np.arange(node.size), node.columns), node.size)


@dataclass
class Region:
    """The points z with |z - y| <= radius inside bounds, if any; a radius may be infinite."""

    y: Sequence[Any]
    radius: float
    box: Any = None

    def __post_init__(self) -> None:
        self.y = rationals.to_fractions(self.y)
        self.at = Span.of(self.y)
        self.span = self.at + Span(np.full(len(self.y), -self.radius), self.radius)
        if self.box is not None:
            self.span = self.span.meet(Span(self.box.lower, self.box.upper))

    @property
    def everywhere(self) -> bool:
        """Does the ball contain all points inside the bounds?"""
        if math.isinf(self.radius) or self.box is None:
            return math.isinf(self.radius)
        ends = np.array([self.box.lower, self.box.upper])
        if not np.isfinite(ends).all():
            return False
        far = sum(max(q - Fraction(a), Fraction(b) - q) ** 2 for q, (a, b) in zip(self.y, ends.T))
        return far <= Fraction(self.radius) ** 2

    @np.errstate(all="ignore")
    def reach(self, slopes: Span) -> Vector:
        """Return bounds of |g.(z - y)| for rows g and all points z."""
        size, sides = slopes.size, (self.span + -self.at).size
        finite = np.isfinite(size)
        some = np.where(finite, size, 0.0)
        wide = moved(*product(some, np.where(np.isinf(sides), 0.0, sides)), np.inf)
        lost = (np.isinf(size) & (sides > 0)) | (np.isinf(sides) & (size > 0))
        wide = np.where(lost.any(axis=1), np.inf, wide)
        norms = np.where(finite.all(axis=1), rounding.norms_upper(some), np.inf)
        single = (size != 0).sum(axis=1) <= 1  # the norm of one number is exact
        norms = np.where(single, size.max(axis=1, initial=0.0), norms)
        found: Vector = np.minimum(wide, times(norms, np.float64(self.radius), np.inf))
        return found


class Curvature:
    """A symmetric matrix, the sum of what the entries add, and a bound of its error by rows."""

    def __init__(self, dim: int) -> None:
        self.matrix, self.slack = np.zeros((dim, dim)), np.zeros(dim)
        #: Nothing that was added can be negative.
        self.convex = True

    @np.errstate(all="ignore")
    def add(self, c: Vector, rows: Span) -> None:
        """Add lower bounds of the sum of c g g' over rows g: m + error, |error| <= e.

        c g g' >= c m m' - |c| diag(row sums of |m|e' + e|m|' + ee'); for c >= 0 also >= 0.
        """
        mid, rad = rows.mid, rows.rad
        blurred = np.abs(mid).max(axis=1) < 4 * rad.sum(axis=1)
        used = (c != 0) & rows.size.any(axis=1) & ((c < 0) | (np.isfinite(c) & ~blurred))
        c, mid, e = c[used], mid[used], rad[used]
        self.convex &= not (c < 0).any()
        if not np.isfinite(c).all() or np.isinf(e).any():
            raise NotCertifiableError("the curvature is not bounded from below.")
        size = np.abs(mid)
        wide = size * e.sum(axis=1)[:, None] + e * (size + e).sum(axis=1)[:, None]
        total, error, more = _outer(mid, mid, c)
        error = np.maximum(error, error.T) + np.where(
            total == total.T, 0.0, np.abs(total) * 2.0**-52
        )
        felt: Any = (size + e) > 0
        wide = np.where(felt & e.any(axis=1, keepdims=True), wide + LOST, 0.0)
        rough = felt & (more + e).any(axis=1, keepdims=True)
        self._sum((total + total.T) / 2, error, np.abs(c) @ wide, rough.any(axis=0))

    @np.errstate(all="ignore")
    def add_product(self, alpha: Span, a: Span, b: Span) -> None:
        """Add lower bounds of the sum of alpha (a b' + b a'), by midpoints and radii of each."""
        used = (alpha.size > 0) & a.size.any(axis=1) & b.size.any(axis=1)
        alpha, a, b = alpha[used], a[used], b[used]
        self.convex &= not used.any()
        (c, rad), (m, e), (n, f) = ((part.mid, part.rad) for part in (alpha, a, b))
        if any(np.isinf(part).any() for part in (rad, e, f)):
            raise NotCertifiableError("the curvature of a product is not bounded from below.")
        p, q, size = np.abs(m), np.abs(n), np.abs(c) + rad
        # |a b' + b a'| <= p q' + q p'; its errors are at most p f' + e (q + f)', and transposed.
        felt, blurred = (p + q + e + f) > 0, size * (e + f).any(axis=1)
        wide = np.zeros_like(p)
        for by, u, v in ((rad, p, q), (blurred, p, f), (blurred, e, q + f)):
            rows = u * v.sum(axis=1)[:, None] + v * u.sum(axis=1)[:, None]
            wide = wide + by[:, None] * np.where(felt, rows + LOST, 0.0)
        half, error, more = _outer(m, n, c)
        rough = felt & (more + e + f + rad[:, None]).any(axis=1, keepdims=True)
        self._sum(half + half.T, error + error.T, wide.sum(axis=0), rough.any(axis=0))

    def subtract(self, c: float) -> None:
        """Subtract c I."""
        self.slack = plus(self.slack, c, np.inf)
        self.convex &= c == 0

    def _sum(self, mid: Matrix, error: Matrix, wide: Vector, rough: Mask) -> None:
        total = self.matrix + mid
        part = total - self.matrix
        exact = (self.matrix == total - part) & (part == mid)
        lost = error.sum(axis=1) + np.where(exact, 0.0, np.abs(total) * 2.0**-52).sum(axis=1)
        new = (lost + wide) * (1.0 + 2.0**-30)  # no sum here is longer than 2^20
        new = np.where((new > 0) | rough, new + TINY, 0.0)
        self.matrix = total
        self.slack = np.where(new > 0, (self.slack + new) * (1.0 + 2.0**-50), self.slack)

    def at_least(self, least: float) -> bool:
        """Is it certainly at least so many times the identity?"""
        return at_least(self.lower, least) or (least == 0 and self.convex)

    @property
    def lower(self) -> Matrix:
        """A matrix that is certainly below."""
        out = self.matrix.copy()
        np.fill_diagonal(out, plus(np.diag(out), -self.slack, -np.inf))
        return out

    @property
    def smallest(self) -> float:
        """About its smallest eigenvalue."""
        if not np.isfinite(lower := self.lower).all():
            raise NotCertifiableError("the curvature overflows.")
        return float(np.linalg.eigvalsh(lower)[0])


def _outer(a: Matrix, b: Matrix, c: Vector) -> tuple[Matrix, Matrix, Matrix]:
    """Return the sum of c a b' over rows, a bound of its error, and those of the rows c b."""
    scaled, down, up = b * c[:, None], *(times(b, c[:, None], end) for end in (-np.inf, np.inf))
    more = np.where(down == up, 0.0, np.abs(scaled) * 2.0**-52 + LOST)
    total, error = product(a.T, scaled)
    return total, error + np.abs(a).T @ more, more


def at_least(M: Matrix, lam: float = 0.0) -> bool:
    """Is M >= lam I, for a symmetric matrix of floats? No is not proved.

    A Cholesky factorisation in float64 that succeeds on M - lam I - s I, with s above
    (d + 2) u / (1 - (d + 2) u) times the trace, proves it (Rump, BIT 46, 2006). Small matrices
    that are singular are decided in rationals.
    """
    d = len(M)
    if not np.isfinite(M).all():
        return False
    with np.errstate(all="ignore"):
        shifted = M - lam * np.eye(d)
        trace = np.abs(np.diag(shifted)).sum() + d * abs(lam)
        shift = 4 * rounding.gamma(d + 4) * (trace + np.abs(np.diag(M)).sum()) + 2.0**-900
        try:  # NaN counts as positive there
            if np.isfinite(np.linalg.cholesky(shifted - shift * np.eye(d))).all():
                return True
        except np.linalg.LinAlgError:
            pass
    return d <= 24 and _semidefinite(M, Fraction(lam))


def _semidefinite(M: Matrix, lam: Fraction) -> bool:
    """Is M - lam I positive semidefinite? By elimination in rationals."""
    a = [[Fraction(v) for v in row] for row in M.tolist()]
    for k in range(len(a)):
        a[k][k] -= lam
    while a:
        k = max(range(len(a)), key=lambda i: a[i][i])
        if a[k][k] <= 0:
            return not any(any(row) for row in a)
        top, pivot = a[k], a[k][k]
        rest = [i for i in range(len(a)) if i != k]
        a = [[a[i][j] - top[i] * top[j] / pivot for j in rest] for i in rest]
    return True


class Pass:
    """The forward half: values and gradients of every node on a region.

    Parameters
    ----------
    program : Program
    region : Region
    supports : dict, optional
        Substitutes for some nodes (`goldstein.checker.minimum.supports`): intervals then contain
        the values with and without them.
    alone : Pass, optional
        Those with them only; of entries that are equally large the one that this pass keeps.
    """

    def __init__(
        self, program: Program, region: Region, supports: Any = None, alone: Pass | None = None
    ) -> None:
        self.program, self.region, self.supports = program, region, supports or {}
        self.alone = alone
        if max(node.size for node in program.nodes) * program.dim > MOST:
            raise NotCertifiableError("the function is too large for its curvature.")
        d = program.dim
        self.values: list[Span] = [region.span]
        self.slopes: list[Span] = [Span(np.eye(d))]
        point = Region(region.y, 0.0) if region.radius or region.box is not None else None
        #: The same at y alone.
        self.here: Pass = self if point is None else Pass(program, point, supports)
        for k, node in enumerate(program.nodes[1:], 1):
            value, slopes = rule_of(node).forward(self, k, node)
            if point is not None:
                at, far = self.here.values[k], region.reach(slopes)
                value = value.meet(at + Span(-far, far))
            if np.isnan(value.lo).any() or np.isnan(value.hi).any():
                raise NotCertifiableError(f"node {k} ({node.name}) has no finite range.")
            self.values.append(value)
            self.slopes.append(slopes)

    def both(self, without: Span, held: Span) -> Span:
        """Return what contains a node's numbers and those of its substitute, or these alone."""
        return without.hull(held) if self.alone is None else held

    def arguments(self, node: nodes.Node) -> list[tuple[Span, Span]]:
        return [(self.values[a], self.slopes[a]) for a in node.of]

    def exactly(self, k: int) -> list[Fraction]:
        """Return the exact values at y of an affine node."""
        series = {0: [Exact.of(self.region.y)]}
        found: list[Fraction] = self.program.extend(series, {}, k)[0].fractions
        return found

    def backward(self, k: int, start: Span) -> tuple[Curvature, dict[int, Span]]:
        """Return a lower bound of the curvature of start . node k, and all adjoints."""
        total, adjoints = Curvature(self.program.dim), {k: start}
        for b in range(k, 0, -1):
            if b not in adjoints:
                continue
            node, alpha = self.program.nodes[b], adjoints[b]
            for a, part in zip(node.of, rule_of(node).backward(self, b, node, alpha, total)):
                adjoints[a] = adjoints[a] + part if a in adjoints else part
        return total, adjoints

    def require(self, right: Any, k: int, what: str) -> None:
        """Refuse unless all entries of a node have adjoints of the right sign."""
        wrong = np.flatnonzero(~np.asarray(right))
        if wrong.size:
            name = self.program.nodes[k].name
            raise NotCertifiableError(
                f"node {k} ({name}), entry {wrong[0]}: {what} inside, and no sign of the adjoint."
            )


# --- one rule for every kind of node ---------------------------------------------------------


class AffineRule:
    """(A u + offset) / divisor: nothing is added."""

    @staticmethod
    def matrix(node: Any) -> Any:
        if not node.rational:
            raise NotCertifiableError("a matrix that is not in memory has no curvature pass.")
        rows = node.rows
        return rows.toarray() if np.prod(rows.shape) <= SMALL else rows

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        ((u, g),) = run.arguments(node)
        rows = self.matrix(node)
        value, slopes = u.through(rows), g.through(rows)
        if node.offset is not None:
            value = value + Span(node.offset)
        if node.divisor is not None:
            value = value.over(node.divisor)
            slopes = slopes.over(node.divisor[:, None])
        return value, slopes

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        alpha = alpha if node.divisor is None else alpha.over(node.divisor)
        return [alpha.through(self.matrix(node).T)]


class AddRule:
    """The sum of the arguments: nothing is added."""

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        (value, slopes), *more = run.arguments(node)
        for u, g in more:
            value, slopes = value + u, slopes + g
        return value, slopes

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        return [alpha for _ in node.of]


class PiecewiseRule:
    """phi(u) with kinks of jump j: alpha phi'' gg' is added; alpha j >= 0 is required.

    Only pieces that meet the interval of u in more than a point count, and only breakpoints
    strictly inside it. Where u is affine, whether a breakpoint t is inside a ball is decided in
    rationals: it is not if (u(y) - t)^2 >= r^2 |g|^2, and the interval then ends at t.
    """

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        ((u, g),) = run.arguments(node)
        u = run.values[node.of[0]] = self._touching(run, node, u, g)
        value = self.over_pieces(node, u, node.pieces)
        slope = self.over_pieces(node, u, node.slopes)
        held = run.supports.get(k)
        if held is not None:
            value = run.both(value, held.value(u)).where(held.mask, value)
            slope = run.both(slope, held.slope(u)).where(held.mask, slope)
        return value, g * slope[:, None]

    @staticmethod
    def over_pieces(node: Any, u: Span, table: Any) -> Span:
        """Return the hull of the ranges of polynomials, one per piece, on their parts of u."""
        ends = Span.of(node.breakpoints)
        left, right = np.append(-np.inf, ends.lo), np.append(ends.hi, np.inf)
        out = Span(np.full(u.lo.shape, np.inf), np.full(u.lo.shape, -np.inf))
        for piece, a, b in zip(table, left, right):
            part = u.meet(Span(a, b))
            meets = (part.lo < part.hi) | ((u.lo == u.hi) & (part.lo == part.hi))
            part = part.where(meets, Span(u.lo, u.lo))
            out = out.where(~meets, out.hull(power_sum(list(piece), part)))
        return out

    def bend(self, node: Any, u: Span) -> Span:
        """Return the range of the second derivatives of the pieces."""
        bends = [tuple(j * c for j, c in enumerate(s))[1:] or (Fraction(0),) for s in node.slopes]
        return self.over_pieces(node, u, bends)

    @staticmethod
    def kinks(node: Any, u: Span) -> list[tuple[Fraction, Fraction, Any]]:
        """Return breakpoint, jump and the entries strictly inside whose interval it lies."""
        found = []
        for t, jump in zip(node.breakpoints, node.jumps):
            near = Span.of([t])
            if jump:
                found.append((t, jump, (u.lo < near.hi) & (u.hi > near.lo)))
        return found

    def _touching(self, run: Pass, node: Any, u: Span, g: Span) -> Span:
        (arg,) = node.of
        region, lo, hi = run.region, u.lo.copy(), u.hi.copy()
        if not (run.program.affine[arg] and is_small(run.program)) or np.isinf(region.radius):
            return u
        exact, width = None, hi - lo
        for t, _, inside in self.kinks(node, u):
            close = np.minimum(np.abs(lo - float(t)), np.abs(hi - float(t))) <= 1e-9 * width
            for i in np.flatnonzero(inside & close & (g.lo == g.hi).all(axis=1)).tolist():
                exact = exact or run.exactly(arg)
                gap = exact[i] - t
                steep = sum((Fraction(v) ** 2 for v in g.lo[i].tolist()), Fraction(0))
                if gap * gap >= Fraction(region.radius) ** 2 * steep and Fraction(float(t)) == t:
                    lo[i] = max(lo[i], float(t)) if gap >= 0 else lo[i]
                    hi[i] = min(hi[i], float(t)) if gap <= 0 else hi[i]
        return Span(lo, hi)

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        ((u, g),) = run.arguments(node)
        held = run.supports.get(k)
        free = np.ones(node.size, bool) if held is None else ~held.mask
        slope = self.over_pieces(node, u, node.slopes)
        bend = self.bend(node, u)
        for _, jump, inside in self.kinks(node, u):
            right = alpha.lo >= 0 if jump > 0 else alpha.hi <= 0
            run.require(right | ~inside | ~free, k, "a kink")
        if held is not None:
            held.check(run, k, node, alpha, self)
            slope, bend = held.slope(u).where(~free, slope), held.bend.where(~free, bend)
        out.add((alpha * bend).lo, g)
        return [alpha * slope]


class SmoothRule:
    """phi(u), smooth: alpha phi'' gg' is added."""

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        ((u, g),) = run.arguments(node)
        value, slope, _ = self._curve(node)
        return value(u), g * slope(u)[:, None]

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        ((u, g),) = run.arguments(node)
        _, slope, bend = self._curve(node)
        out.add((alpha * bend(u)).lo, g)
        return [alpha * slope(u)]

    @staticmethod
    def _curve(node: Any) -> Any:
        if node.function.name not in CURVES:
            raise NotCertifiableError(f"`{node.function.name}` has no rule for its curvature.")
        return CURVES[node.function.name]


class ProductRule:
    """Sums of products u v: alpha (g_u g_v' + g_v g_u') is added; 2 alpha gg' for equal factors."""

    @staticmethod
    def terms(node: Any) -> tuple[Any, Any, Any]:
        """Return, for every product of two numbers, the places of both and of their sum."""
        n, m = node.shape
        if node.batch * n * m * node.inner > MOST // 10:
            raise NotCertifiableError("a product is too large for its curvature.")
        b, i, p, j = np.indices((node.batch, n, node.inner, m)).reshape(4, -1)
        left, right = (b * n + i) * node.inner + p, (b * node.inner + p) * m + j
        return left, right, (b * n + i) * m + j

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        (u, g), (v, h) = run.arguments(node)
        left, right, place = self.terms(node)
        if left.size * run.program.dim > MOST:
            raise NotCertifiableError("a product is too large for its curvature.")
        ones = summing(place, node.size)
        parts = g[left] * v[right][:, None] + h[right] * u[left][:, None]
        value = u[left] * v[right]
        if node.of[0] == node.of[1]:
            square = (left == right) & (value.lo < 0)
            value = Span(np.where(square, 0.0, value.lo), value.hi)
        return value.through(ones), parts.through(ones)

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        (u, g), (v, h) = run.arguments(node)
        left, right, place = self.terms(node)
        each = alpha[place]
        a, b = g[left], h[right]
        same = ((a.lo == a.hi) & (b.lo == b.hi) & (a.lo == b.lo)).all(axis=1)
        same |= (left == right) & (node.of[0] == node.of[1])
        out.add((each[same] + each[same]).lo, a[same])
        out.add_product(each[~same], a[~same], b[~same])
        sides = (left, v[right], node.sizes[0]), (right, u[left], node.sizes[1])
        return [(each * w).through(summing(to, n)) for to, w, n in sides]


class MaxRule:
    """The largest of a row: of two or more that may be, alpha >= 0 is required.

    One entry j of each row is kept for certain; another one i is dropped if its values are not
    above those of j: if hi_i <= lo_j, or if a bound of u_i - u_j is not positive.
    """

    def kept(self, run: Pass, node: Any) -> Any:
        """Return, as a table, which entries may be the largest."""
        ((u, g),) = run.arguments(node)
        at = node.rows((run.alone or run).here.values[node.of[0]].lo)
        best = at.argmax(axis=1) + node.columns * np.arange(node.size)
        mine = np.repeat(best, node.columns)
        far = run.region.reach(g + -g[mine])
        here = run.here.values[node.of[0]]
        above = (here + -here[mine] + Span(-far, far)).hi
        keep = (u.hi > u.lo[mine]) & (above > 0)
        keep[best] = True
        return node.rows(keep)

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        ((u, g),) = run.arguments(node)
        held, keep = run.supports.get(k), self.kept(run, node)
        value = Span(*(node.rows(end).max(axis=1) for end in (u.lo, u.hi)))
        shape = (node.size, node.columns, -1)
        wide = ~keep.reshape(node.size, node.columns, 1)
        lo = np.where(wide, np.inf, g.lo.reshape(shape)).min(axis=1)
        slopes = Span(lo, np.where(wide, -np.inf, g.hi.reshape(shape)).max(axis=1))
        return (value, slopes) if held is None else held.forward(run, node, value, slopes)

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        keep, held = self.kept(run, node), run.supports.get(k)
        free = np.ones(node.size, bool) if held is None else ~held.mask
        run.require((alpha.lo >= 0) | (keep.sum(axis=1) < 2) | ~free, k, "two entries of a maximum")
        share = Span(keep * (keep.sum(axis=1) == 1)[:, None], keep * 1.0)
        if held is not None:
            held.check(run, k, node, alpha)
            share = held.weights(node).where(~free[:, None], share)
        return [(alpha[:, None] * share).ravel()]


class LogSumExpRule:
    """log sum exp of a row: alpha < 0 adds (alpha / 2) sum g g', as its second derivative is

    diag(p) - pp' for weights p of sum 1, between 0 and I/2."""

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        ((u, g),) = run.arguments(node)
        if run.here is run:  # at y: its own value and derivative
            at = Enclosure(u.mid, u.rad)
            (share,) = node.backward(Enclosure(np.ones(node.size)), [at], None)
            slopes = (g * Span(*share.ends())[:, None]).through(row_sums(node))
            return Span(*node.value(at).ends()), slopes
        low, high = node.rows(u.lo).max(axis=1), node.rows(u.hi).max(axis=1)
        top = plus(high, np.nextafter(np.log(node.columns) * (1 + 2.0**-50), np.inf), np.inf)
        shape = (node.size, node.columns, -1)
        return Span(low, top), Span(
            g.lo.reshape(shape).min(axis=1), g.hi.reshape(shape).max(axis=1)
        )

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        ((_, g),) = run.arguments(node)
        each = node.along(alpha)
        out.add(times(np.minimum(each.lo, 0.0), 0.5, -np.inf), g)
        return [each * Span(np.zeros(each.lo.size), 1.0)]


class NormRule:
    """|u| of a row: alpha < 0 adds (alpha / |u|) sum g g'; refused where u may be 0."""

    def _length(self, node: Any, u: Span) -> Span:
        one = Span(u.least, u.size)
        if node.columns == 1:
            return one
        square = (one * one).through(row_sums(node))
        with np.errstate(all="ignore"):
            root = [np.sqrt(np.maximum(e, 0.0)) for e in (square.lo, square.hi)]
        # Below a root are r with r^2 <= e only, above it those with r^2 >= e.
        ends = zip(root, (square.lo, square.hi), (np.inf, -np.inf))
        exact = [times(r, r, way) == e for r, e, way in ends]
        low = np.where(exact[0], root[0], np.maximum(np.nextafter(root[0], -np.inf), 0.0))
        return Span(low, np.where(exact[1], root[1], np.nextafter(root[1], np.inf)))

    def _weights(self, node: Any, u: Span) -> Span:
        """Return u / |u|."""
        length = node.along(self._length(node, u))
        with np.errstate(all="ignore"):
            ends = [np.where(e > 0, e, 1.0) for e in (length.lo, length.hi)]
            inverse = Span(over(1.0, ends[1], -np.inf), over(1.0, ends[0], np.inf))
        unit = Span(-np.ones(u.lo.size), 1.0)
        return (u * inverse).meet(unit).where(length.lo > 0, unit)

    def forward(self, run: Pass, k: int, node: Any) -> tuple[Span, Span]:
        ((u, g),) = run.arguments(node)
        held, value = run.supports.get(k), self._length(node, u)
        slopes = (g * self._weights(node, u)[:, None]).through(row_sums(node))
        return (value, slopes) if held is None else held.forward(run, node, value, slopes)

    def backward(self, run: Pass, k: int, node: Any, alpha: Span, out: Curvature) -> list[Span]:
        ((u, g),) = run.arguments(node)
        held, length = run.supports.get(k), self._length(node, u)
        free = np.ones(node.size, bool) if held is None else ~held.mask
        run.require((alpha.lo >= 0) | (length.lo > 0) | ~free, k, "the origin of a norm")
        below = np.where(free, np.minimum(alpha.lo, 0.0), 0.0)
        out.add(node.along(over(below, np.where(length.lo > 0, length.lo, 1.0), -np.inf)), g)
        share = self._weights(node, u)
        if held is not None:
            held.check(run, k, node, alpha)
            share = held.weights(node).ravel().where(np.repeat(~free, node.columns), share)
        return [node.along(alpha) * share]


RULES: dict[type[nodes.Node], Any] = {
    nodes.Affine: AffineRule(),
    nodes.Add: AddRule(),
    nodes.Piecewise: PiecewiseRule(),
    irrational.Smooth: SmoothRule(),
    nodes.Product: ProductRule(),
    nodes.Max: MaxRule(),
    irrational.LogSumExp: LogSumExpRule(),
    irrational.Norm2: NormRule(),
}


def rule_of(node: nodes.Node) -> Any:
    """Return the rule of a kind of node, or refuse it by its name."""
    if type(node) not in RULES:
        raise NotCertifiableError(f"a node `{node.name}` has no rule for its curvature.")
    return RULES[type(node)]


# --- smooth functions of one number: ranges of value, slope and second derivative -------------


def _between(function: Any, u: Span) -> Span:
    """Return the range of an increasing function on finite intervals."""
    return Span(function(Enclosure(u.lo)).ends()[0], function(Enclosure(u.hi)).ends()[1])


def _log(u: Span) -> Span:
    _require_positive(u)
    found = _between(FUNCTIONS["log"].at, Span(u.lo, np.where(np.isinf(u.hi), 1.0, u.hi)))
    return Span(found.lo, np.where(np.isinf(u.hi), np.inf, found.hi))


def _inverse(u: Span) -> Span:
    _require_positive(u)
    return Span(np.maximum(over(1.0, u.hi, -np.inf), 0.0), over(1.0, u.lo, np.inf))


def _require_positive(u: Span) -> None:
    if not (u.lo > 0).all():
        raise NotCertifiableError("the argument of log is not proved to be positive there.")


def _cut(u: Span, most: float) -> Span:
    return Span(np.clip(u.lo, -most, most), np.clip(u.hi, -most, most))


def _exp(u: Span) -> Span:
    found = _between(FUNCTIONS["exp"].at, _cut(u, 700.0))
    lo = np.where(u.lo < -700.0, 0.0, np.maximum(found.lo, 0.0))
    return Span(lo, np.where(u.hi > 700.0, np.inf, found.hi))


def _pseudo_huber(u: Span) -> Span:
    found = _between(FUNCTIONS["pseudo_huber"].value, _cut(Span(u.least, u.size), 2.0**200))
    return Span(np.maximum(found.lo, 0.0), np.where(u.size > 2.0**200, np.inf, found.hi))


def _pseudo_huber_slope(u: Span) -> Span:
    unit = Span(np.full(u.lo.shape, -1.0), 1.0)
    found = _between(FUNCTIONS["pseudo_huber"].slope, _cut(u, 2.0**200))
    return found.meet(unit).where(u.size <= 2.0**200, unit)


def _pseudo_huber_bend(u: Span) -> Span:
    size = _cut(Span(u.least, u.size), 2.0**200)
    low, high = (hypotenuse(Enclosure(e)).reciprocal() for e in (size.lo, size.hi))
    least = np.maximum((high * high * high).ends()[0], 0.0)
    most = np.minimum((low * low * low).ends()[1], 1.0)
    return Span(np.where(u.size > 2.0**200, 0.0, least), most)


#: Value, slope and second derivative on intervals, by the name of the function.
CURVES: dict[str, tuple[Any, Any, Any]] = {
    "exp": (_exp, _exp, _exp),
    "log": (_log, _inverse, lambda u: -(_inverse(u) * _inverse(u))),
    "pseudo_huber": (_pseudo_huber, _pseudo_huber_slope, _pseudo_huber_bend),
}
