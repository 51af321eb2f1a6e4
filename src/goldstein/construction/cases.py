"""The search for a tree of cases: a bound of f everywhere, untrusted (branch and bound).

In every case the kinked functions are replaced by their convex envelopes on their intervals. The
slopes of the lines that make the bound largest solve the dual problem, one slope after the other.

Cuts on the faces of a box: evidence for a minimum of a black box of declared curvature.
"""

import heapq
import math
import time
from dataclasses import dataclass, replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy.optimize import linprog

from goldstein.certificates.minimum import MinimumCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.minimum.box import check_box, consistent
from goldstein.checker.minimum.cases import Cases, split
from goldstein.checker.minimum.curvature import Pass, Region
from goldstein.checker.minimum.spans import Span
from goldstein.checker.rationals import to_fractions
from goldstein.checker.rounding import combination_norm_upper
from goldstein.checker.sides import Program, point_at
from goldstein.errors import InputError, KinkError, NotCertifiableError, OutOfCalls
from goldstein.oracles import CountedOracle

#: Cases that are looked at, rounds over all slopes of each, and the gap that is as good as none,
#: relative to the size of f.
MOST, SWEEPS, CLOSED = 200, 60, 1e-6

#: Without being asked for it, functions of more concave kinks, or of more entries that have kinks,
#: are not looked at: the table of the latter is quadratic.
KINKS, ENTRIES = 40, 1000


class Quadratic:
    """r(z) = z'Qz/2 + q'z + const and u = A z + e of a function, in float64."""

    def __init__(self, cases: Cases) -> None:
        self.cases, zero = cases, np.zeros(cases.size)
        d = cases.program.dim
        smooth, rows = cases.lines(zero, zero), np.eye(d)
        places = np.array([0 * rows[0], *rows, 3 * np.ones(d)])
        gradients = [point_at(smooth, z.tolist()).limits(rows[:1]).mid[0] for z in places]
        self.q, self.Q = gradients[0], np.array(gradients[1:-1]) - gradients[0]
        wanted = self.q + self.Q @ places[-1]
        if np.abs(gradients[-1] - wanted).max() > 1e-9 * (1 + np.abs(wanted).max()):
            raise NotCertifiableError("the search for cases is for quadratic functions with kinks.")
        run = Pass(cases.program, Region([0] * d, 0.0))
        self.A = np.concatenate([run.slopes[n.of[0]].mid for _, n in cases.nodes])
        self.e = np.concatenate([run.values[n.of[0]].lo for _, n in cases.nodes])
        self.b = (cases.factor.lo + cases.factor.hi) / 2
        self.inverse = np.linalg.inv(self.Q)
        self.K = self.A @ self.inverse @ self.A.T
        self.functions = [_values(node) for node, _ in cases.entries()]
        self.concave = concave_kinks(cases)
        slopes = [[float(n.slopes[i][0]) for i in (0, -1)] for n, _ in cases.entries()]
        self.outer = np.array(slopes).reshape(-1, 2) * self.b[:, None]
        self.knots = [np.array([float(t) for t in n.breakpoints]) for n, _ in cases.entries()]

    def envelope(self, j: int, lo: float, hi: float) -> tuple[Vector, Vector]:
        """Return the corners of the convex envelope of b_j phi_j on an interval."""
        knots = self.knots[j]
        u = np.concatenate([[lo], knots[(knots > lo) & (knots < hi)], [hi] if hi > lo else []])
        v = self.b[j] * np.array([self.functions[j](t) for t in u])
        keep: list[int] = []
        for i in range(u.size):
            while len(keep) > 1 and (v[keep[-1]] - v[keep[-2]]) * (u[i] - u[keep[-2]]) >= (
                v[i] - v[keep[-2]]
            ) * (u[keep[-1]] - u[keep[-2]]):
                keep.pop()
            keep.append(i)
        return u[keep], v[keep]

    def solve(self, ranges: Span, sigma: Vector) -> tuple[Vector, Vector, list[Any]]:
        """Return slopes of b_j phi_j for the best bound, its point, and the envelopes."""
        if not np.isfinite([ranges.lo, ranges.hi]).all():  # a line below all of it, flat if it can
            sigma = np.clip(0.0, self.outer[:, 0], self.outer[:, 1])
            return sigma, -self.inverse @ (self.q + self.A.T @ sigma), []
        hulls = [self.envelope(j, *ends) for j, ends in enumerate(zip(ranges.lo, ranges.hi))]
        sigma = sigma.copy()
        u = self.e - self.A @ (self.inverse @ (self.q + self.A.T @ sigma))
        for _ in range(SWEEPS):
            moved = 0.0
            for j, (corners, values) in enumerate(hulls):
                step = _one_slope(corners, values, sigma[j], u[j], self.K[j, j])
                if step:
                    sigma[j] += step
                    u -= self.K[:, j] * step
                    moved = max(moved, abs(step) * math.sqrt(self.K[j, j]))
            if moved < 1e-10:
                break
        return sigma, -self.inverse @ (self.q + self.A.T @ sigma), hulls


def concave_kinks(cases: Cases) -> list[list[float]]:
    """Return the concave kinks of every entry."""
    return [
        [float(t) for t, jump in zip(n.breakpoints, n.jumps) if jump * sign < 0]
        for (n, _), sign in zip(cases.entries(), cases.sign.tolist())
    ]


def _values(node: Any) -> Any:
    knots, pieces = node.breakpoints, [[float(c) for c in p] for p in node.pieces]
    return lambda t: sum(c * t**k for k, c in enumerate(pieces[sum(t > a for a in knots)]))


def _one_slope(corners: Vector, values: Vector, sigma: float, u: float, K: float) -> float:
    """Return the change of one slope after which it is one of the envelope at the argument."""
    if K <= 0:
        return 0.0
    slopes = np.diff(values) / np.diff(corners)
    for slope, a, b in zip(slopes.tolist(), corners.tolist(), corners[1:].tolist()):
        if a <= u - K * (slope - sigma) <= b:
            return float(slope - sigma)
    ends = [-math.inf, *slopes.tolist(), math.inf]
    for v, low, high in zip(corners.tolist(), ends, ends[1:]):
        step = (u - v) / K
        if low <= sigma + step <= high:
            return float(step)
    return 0.0


@dataclass
class Case:
    """A node of the tree: where it is, its line, and how it is split."""

    ranges: Span
    sigma: Vector
    y: Vector
    slopes: Vector
    low: float
    split: tuple[float, float] = (-1.0, 0.0)
    parts: tuple[Any, ...] = ()


class Tree:
    """Branch and bound, the lowest case first."""

    def __init__(self, cases: Cases, goal: Fraction) -> None:
        self.cases, self.goal = cases, goal
        least = float(np.linalg.eigvalsh(self.cases.curvature)[0])
        cost = 1e-13 * float(np.abs(np.diag(self.cases.curvature)).sum())
        self.cases.require(least * (1 - 1e-9) - cost)
        self.model = Quadratic(self.cases)
        self.heap: list[tuple[float, int, Case, Any]] = []
        self.made = 0
        #: The lowest value that was met, and where.
        self.lowest: tuple[float, Any] = math.inf, None

    def add(self, ranges: Span, sigma: Vector) -> Case:
        """Bound f in a case, and keep it open where that is below the goal."""
        model, self.made = self.model, self.made + 1
        if (ranges.lo > ranges.hi).any():  # nothing is there
            return Case(ranges, sigma, 0 * model.q, 0 * sigma, math.inf)
        sigma, y, hulls = model.solve(ranges, sigma)
        slopes = sigma / np.where(model.b != 0, model.b, 1.0)
        found, case = self.cases.shown(ranges, slopes, y), Case(ranges, sigma, y, slopes, math.inf)
        if found is None:
            return case
        value = float(point_at(self.cases.program, y.tolist()).between()[1])
        self.lowest = min(self.lowest, (value, y), key=lambda pair: pair[0])
        case.low = float(found.low) - found.eps**2 / (2 * self.cases.growth)
        rest = self.cases.smaller(ranges, found, self.goal)
        if rest is None:
            return case
        case.ranges = rest
        if self._undecided(rest) < self._undecided(ranges):
            case.split, case.parts = (-2.0, 0.0), (self.add(rest, sigma),)
        else:
            heapq.heappush(self.heap, (case.low, self.made, case, hulls))
        return case

    def _undecided(self, ranges: Span) -> int:
        ends = zip(self.model.concave, ranges.lo.tolist(), ranges.hi.tolist())
        return sum(lo < t < hi for kinks, lo, hi in ends for t in kinks) + (
            self.cases.size if np.isinf(ranges.lo).any() else 0
        )

    def _choice(self, case: Case, hulls: list[Any]) -> tuple[float, float] | None:
        """Return where an envelope is farthest below its function, and a concave kink there."""
        model, ranges = self.model, case.ranges
        u, best, found = model.A @ case.y + model.e, -math.inf, None
        for j, kinks in enumerate(model.concave):
            inside = [t for t in kinks if ranges.lo[j] < t < ranges.hi[j]]
            if inside:
                lost = model.b[j] * model.functions[j](u[j]) - np.interp(u[j], *hulls[j])
                if lost > best:
                    best, found = lost, (float(j), min(inside, key=lambda t: abs(t - u[j])))
        return found

    def grow(self, most: int, deadline: float) -> Case:
        """Split until nothing is open, or the budget ends."""
        root = self.add(self.cases.everything, np.zeros(self.cases.size))
        while self.heap and self.made < most and time.perf_counter() < deadline:
            _, _, case, hulls = self.heap[0]
            choice = self._choice(case, hulls)
            if choice is None:
                break
            heapq.heappop(self.heap)
            case.split, entry = choice, int(choice[0])
            above, below = split(case.ranges, entry, choice[1])
            case.parts = (self.add(below, case.sigma), self.add(above, case.sigma))
        return root


def with_cases(
    program: Program, cert: MinimumCertificate, most: int = MOST, deadline: float = math.inf
) -> tuple[MinimumCertificate, Vector | None]:
    """Add a bound of f everywhere to a claim; it becomes a global one where the gap closes.

    `program` has the penalties of the claim, where there are some. Also returned is a lower point,
    if one was met.
    """
    cases, top = Cases(program), point_at(program, cert.x).between()[1]
    many = cases.size > ENTRIES or sum(map(len, concave_kinks(cases))) > KINKS
    if most == MOST and many:
        return cert, None
    size = abs(float(top))
    small = CLOSED * max(size, 1e-3)
    tree = Tree(cases, top - Fraction(small))
    root = tree.grow(most, deadline)
    gap = small
    if tree.heap:
        gap = max(small, (float(top) - tree.heap[0][0]) * (1 + 1e-9) + 1e-12 * size)
    rows = _preorder(root)
    found = replace(
        cert, global_gap=gap, case_growth=tree.cases.growth,
        case_points=np.array([c.y for c in rows]), case_slopes=np.array([c.slopes for c in rows]),
        case_splits=np.array([c.split for c in rows]),
    )  # fmt: skip
    value, lower = tree.lowest
    if tree.heap:
        return found, lower if value < float(top) - small else None
    found = replace(found, scope="global", radius=math.inf, gap=max(gap, cert.gap), convexity=None)
    return replace(found, strict=False, unique=False, within=None), None


def _preorder(case: Case) -> list[Case]:
    found, stack = list[Case](), [case]
    while stack:
        found.append(stack.pop())
        stack += reversed(found[-1].parts)
    return found


#: Half widths of boxes that are tried, relative to the size of x; and calls for one of them.
WIDTHS = (0.3, 0.03, 0.003)
PER_FACE = 40

#: Calls that make the gap smaller once the faces are done.
AFTER = 30

#: A black box has this proof up to so many variables: calls grow like their square.
MOST_VARIABLES = 40


@dataclass
class Cuts:
    """The cuts so far, as affine functions of t = z - y."""

    f: CountedOracle
    y: Vector
    curvature: float
    deadline: float

    def __post_init__(self) -> None:
        self.rho = max(0.0, -self.curvature)
        self.points, self.values, self.gradients = list[Vector](), list[float](), list[Vector]()
        self.b, self.c = list[float](), list[Vector]()

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    def add(self, point: Vector) -> bool:
        """Add the cut at a point; not where there is a kink."""
        try:
            value, g = self.f.value(point), self.f.gradient(point)
        except KinkError:
            return False
        s = point - self.y
        self.points.append(point)
        self.values.append(value)
        self.gradients.append(g)
        self.b.append(float(value - g @ s - self.rho / 2 * s @ s))
        self.c.append(g + self.rho * s)
        return True

    def lowest(self, low: Vector, high: Vector) -> tuple[float, Vector, Vector]:
        """Return the least of the largest cut on a box, where it is, and the weights."""
        k, d = len(self.b), len(low)
        rows = np.column_stack([np.array(self.c), -np.ones(k)])
        bounds = [*zip(low, high), (None, None)]
        cost = np.append(np.zeros(d), 1.0)
        found = linprog(cost, A_ub=rows, b_ub=-np.array(self.b), bounds=bounds, method="highs")
        if found.x is None:
            return -math.inf, low, np.ones(k)
        weights = np.maximum(-found.ineqlin.marginals, 0.0)
        return found.fun, found.x[:d], weights if weights.any() else np.ones(k)


def prove_box(
    f: CountedOracle, x: Vector, curvature: float, hints: Any, eps: float, deadline: float
) -> MinimumCertificate | None:
    """Return a claim about a box around x, or about everything where f is convex; or None."""
    if x.size > MOST_VARIABLES:
        return None
    for width in WIDTHS:
        cuts = Cuts(f, x, curvature, deadline)
        try:
            found = _tried(cuts, width * max(1.0, float(np.abs(x).max())), hints, eps)
        except OutOfCalls:
            found = None
        if not cuts.b:
            return None
        told = SimpleNamespace(points=np.array(cuts.points), curvature=curvature)
        obeyed, why = consistent(told, cuts.values, cuts.gradients)
        if not obeyed:
            raise InputError(f"{why}.")
        if found is not None or cuts.late:
            return found
    return None


def _tried(cuts: Cuts, width: float, hints: Any, eps: float) -> MinimumCertificate | None:
    here, r = cuts.f.value(cuts.y), np.full(cuts.y.size, width)
    for point in [*hints[:8], cuts.y]:
        cuts.add(np.asarray(point, dtype=float))
    weights = _faces(cuts, r, here) if cuts.b else None
    if weights is None:
        return None
    cert = _stated(cuts, r, weights, here, eps)
    return cert if check_box(cert, cuts.f).ok else None


def _faces(cuts: Cuts, r: Vector, here: float) -> list[Vector] | None:
    lost = cuts.rho / 2 * float(r @ r)
    found: list[Vector] = []
    for i in range(r.size):
        for sign in (-1.0, 1.0):
            low, high = -r.copy(), r.copy()
            low[i] = high[i] = sign * r[i]
            for _ in range(PER_FACE):
                bound, t, weights = cuts.lowest(low, high)
                if bound - lost > here + 1e-12 * (1.0 + abs(here)):
                    found.append(weights)
                    break
                if cuts.late or cuts.f.value(cuts.y + t) <= here:
                    return None  # the face is not higher
                if not cuts.add(cuts.y + t):
                    return None
            else:
                return None
    return found


def _stated(
    cuts: Cuts, r: Vector, faces: list[Vector], here: float, eps: float
) -> MinimumCertificate:
    small = 1e-12 * (1.0 + abs(here))
    for _ in range(AFTER):
        bound, t, weights = cuts.lowest(-r, r)
        if here - bound <= small or cuts.late:
            break
        cuts.add(cuts.y + t)
    k = len(cuts.b)
    table = np.array([np.append(w, np.zeros(k - w.size)) for w in [*faces, weights]])
    gap = max(0.0, here - bound + cuts.rho / 2 * float(r @ r)) * (1 + 1e-9) + small
    convex, slopes = cuts.curvature >= 0, np.array(cuts.c)
    steep = combination_norm_upper(weights, slopes[: weights.size])
    steep += 2.0**-44 * float(np.abs(slopes).max())  # another machine rounds gradients otherwise
    far, strong = float(np.linalg.norm(r)), cuts.curvature
    if strong > 0:
        far = min(far, math.sqrt(2 * gap / strong))
    return MinimumCertificate(
        x=cuts.y, exact_pivot=tuple(to_fractions(cuts.y)), delta=0.0, eps=max(eps, steep),
        radius=math.inf if convex else float(r.min()), gap=gap,
        within=far * (1 + 2.0**-30), scope="global" if convex else "box",
        strict=True, unique=strong > 0, label="conditional", curvature=cuts.curvature, widths=r,
        points=np.array(cuts.points), weights=table,
    )  # fmt: skip
