"""Evidence for minima, untrusted: supports, radii, sharpness, directions of escape.

Slopes and weights at the kinks next to a point come from one bounded least squares problem, whose
columns are the gradients of the kinks' arguments; then the radius is bisected, and the sharpness
by a few factors. Whatever is found, the checker decides.
"""

import math
import time
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.optimize import lsq_linear

from goldstein.certificates.minimum import MinimumCertificate, Refutation
from goldstein.checker import nodes, rationals
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.near import ExactProblem
from goldstein.checker.enclosed import irrational
from goldstein.checker.enclosed.point import is_small
from goldstein.checker.minimum.curvature import RULES, Curvature, Pass, Region
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.minimum import (
    Minorant,
    Shown,
    convexity,
    minorant,
    rise,
    slope_along,
)
from goldstein.checker.minimum.spans import Span
from goldstein.checker.minimum.supports import Sharp, Support, held, sharpened, slope_of_lines
from goldstein.checker.sides import Program, point_at
from goldstein.errors import GoldsteinError, NotCertifiableError

#: Kinks whose arguments are so near, relative to their size, count as met.
NEAR = 1e-6

#: How often slopes and weights are chosen again, with the adjoints of the last choice.
ROUNDS = 4

#: Parts of the possible sharpness that are tried.
FACTORS = tuple(10.0 ** (-k / 2) for k in range(13))

#: Radii that are tried where 1 works, and where it does not.
UP = tuple(4.0**k for k in range(1, 7))
DOWN = tuple(4.0**-k for k in range(1, 14))

#: How many times the width of an enclosure is allowed for another machine.
ROOM = 4.0

#: Random directions along which a function is tried, at most.
RANDOM = 64

_ONE = Span(np.ones(1))


@dataclass
class Kinks:
    """The kinks next to a point: what may be chosen there, and what was."""

    supports: list[Support]
    #: Bounds of what may be chosen; those of a maximum are weights, of sum 1 in each row.
    low: Vector
    high: Vector

    def chosen(self, values: Any) -> list[Support]:
        return [g._replace(s=s) for g, s in zip(self.supports, values)]


def kinks_near(program: Program, y: Any) -> Kinks:
    """Return the kinks that a point is on, or nearly on."""
    run = Pass(program, Region(y, 0.0))
    found: list[tuple[Support, float, float]] = []
    zero = Fraction(0)
    for k, node in enumerate(program.nodes):
        if isinstance(node, nodes.Piecewise | nodes.Max | irrational.Norm2):
            u = run.values[node.of[0]].lo
            steep = np.linalg.norm(run.slopes[node.of[0]].size, axis=1)
            close = NEAR * np.maximum(1e-6, np.where(np.isfinite(steep), steep, 1.0))
        if isinstance(node, nodes.Piecewise):
            for t, beside in zip(node.breakpoints, node.beside):
                a, b = map(float, beside)
                middle = Fraction((a + b) / 2)
                met = (np.abs(u - float(t)) <= close) & (steep > 0) & (beside[0] != beside[1])
                for i in np.flatnonzero(met).tolist():
                    found.append((Support(k, i, i, t, middle, zero), min(a, b), max(a, b)))
        elif isinstance(node, nodes.Max):
            table = u.reshape(node.size, node.columns)
            for row in range(node.size):
                tied = np.flatnonzero(
                    table[row] >= table[row].max() - 2 * close[row * node.columns]
                )
                for j in tied.tolist() if tied.size > 1 else ():
                    place, share = row * node.columns + j, Fraction(1, tied.size)
                    found.append((Support(k, row, place, zero, share, zero), 0.0, 1.0))
        elif isinstance(node, irrational.Norm2):
            table = np.abs(u).reshape(node.size, node.columns)
            for row in np.flatnonzero((table <= close.reshape(table.shape)).all(axis=1)).tolist():
                places = range(row * node.columns, (row + 1) * node.columns)
                found += [(Support(k, row, j, zero, zero, zero), -1.0, 1.0) for j in places]
    low, high = (np.array([ends[i] for ends in found]) for i in (1, 2))
    return Kinks([support for support, _, _ in found], low, high)


def by_row(supports: list[Support]) -> dict[tuple[int, int], list[int]]:
    """Return which supports belong to each row of each node, by their numbers."""
    rows: dict[tuple[int, int], list[int]] = {}
    for j, g in enumerate(supports):
        rows.setdefault((g.node, g.row), []).append(j)
    return rows


def weighted(program: Program, y: Any, kinks: Kinks, deadline: float = math.inf) -> list[Support]:
    """Choose slopes and weights that make the gradient of the minorant short."""
    values = [g.s for g in kinks.supports]
    for _ in range(ROUNDS if kinks.supports else 0):
        if time.perf_counter() > deadline:
            raise NotCertifiableError("there was no time left for a minorant.")
        chosen = kinks.chosen(values)
        own, here = held(program, chosen, []), Region(y, 0.0)
        run = Pass(program, here, own, alone=Pass(program, here, own))
        adjoints = _adjoints(run, program)
        columns = np.array([
            adjoints[g.node][g.row] * run.slopes[program.nodes[g.node].of[0]].mid[g.place]
            for g in chosen
        ])  # fmt: skip
        now = np.array([float(v) for v in values])
        rest = run.slopes[program.last].mid[0] - now @ columns
        new = _least_squares(program, kinks, columns, rest)
        values = _tidy(program, chosen, new)
        if np.abs(new - now).max() < 1e-12:
            break
    return kinks.chosen(values)


def _adjoints(run: Pass, program: Program) -> dict[int, Vector]:
    """Return the derivatives of the minorant in its nodes, at the point."""
    for own in run.supports.values():
        own.check = lambda *_: None
    run.require = lambda *_: None  # type: ignore[method-assign]
    _, adjoints = run.backward(program.last, _ONE)
    empty = {k: np.zeros(program.nodes[k].size) for k in range(program.last + 1)}
    return empty | {k: (a.lo + a.hi) / 2 for k, a in adjoints.items()}


def _least_squares(program: Program, kinks: Kinks, columns: Any, rest: Vector) -> Vector:
    """Minimise |rest + values @ columns| inside the bounds, with weights of sum 1."""
    together = by_row(kinks.supports).items()
    rows = [own for (k, _), own in together if isinstance(program.nodes[k], nodes.Max)]
    scale = 1e4 * max(1.0, float(np.abs(columns).max(initial=0.0)))
    extra = np.zeros((len(rows), len(kinks.supports)))
    for i, places in enumerate(rows):
        extra[i, places] = scale
    A = np.vstack([columns.T, extra])
    b = np.concatenate([-rest, np.full(len(rows), scale)])
    high = np.maximum(kinks.high, kinks.low + 1e-300)
    found: Vector = lsq_linear(A, b, (kinks.low, high), method="bvls", tol=1e-15).x
    # Once more for those inside their bounds: large numbers have cost digits.
    size = kinks.high - kinks.low
    free = (found > kinks.low + 1e-9 * size) & (found < kinks.high - 1e-9 * size)
    A, b = np.vstack([columns.T, extra / scale]), np.concatenate([-rest, b[len(rest) :] / scale])
    for _ in range(2):
        step = np.linalg.lstsq(A[:, free], b - A @ found, rcond=None)[0]
        found[free] = np.clip(found[free] + step, kinks.low[free], kinks.high[free])
    return found


def _tidy(program: Program, chosen: list[Support], values: Vector) -> list[Fraction]:
    """Return exact numbers: simple fractions where they are near, weights of sum 1."""
    exact = []
    for v in values.tolist():
        simple = Fraction(v).limit_denominator(64)
        exact.append(simple if abs(simple - Fraction(v)) < 1e-13 else Fraction(v))
    for (k, _), places in by_row(chosen).items():
        own = [exact[j] for j in places]
        if isinstance(program.nodes[k], nodes.Max):
            own = [max(v, Fraction(0)) for v in own]
            top = own.index(max(own))
            rest = sum(own[:top] + own[top + 1 :], Fraction(0))
            if not any(own) or rest > 1:
                own = [Fraction(1, len(own))] * len(own)
            else:
                own[top] = 1 - rest
        elif isinstance(program.nodes[k], irrational.Norm2):
            square = sum((v**2 for v in own), Fraction(0))
            if square > 1:
                size = Fraction(math.nextafter(rationals.sqrt_upper(square), math.inf))
                own = [v / size for v in own]
        for j, v in zip(places, own):
            exact[j] = v
    return exact


def bent(program: Program, region: Region, supports: list[Support]) -> list[Support]:
    """Give the parabolas of the supports the curvature that their functions have on a region."""
    if all(program.nodes[g.node].flat for g in supports):
        return supports
    run, rule = Pass(program, region), RULES[nodes.Piecewise]
    found = []
    for g in supports:
        node: Any = program.nodes[g.node]
        p = Fraction(0)
        if isinstance(node, nodes.Piecewise):
            u = run.values[node.of[0]][g.row : g.row + 1].hull(Span.of([g.t]))
            least = rule.bend(replace(node, sizes=(1,), size=1), u).lo[0]
            p = Fraction(float(least)) if math.isfinite(least) else p
        found.append(g._replace(p=p))
    return found


def sharpness(program: Program, supports: list[Support], factor: float) -> list[Sharp]:
    """Return a part of what the supports leave room for."""
    share, found = Fraction(factor), []
    for (k, row), places in by_row(supports).items():
        node: Any = program.nodes[k]
        own = [supports[j] for j in places]
        if isinstance(node, nodes.Piecewise):
            (g,) = own
            a, b = node.beside[node.breakpoints.index(g.t)]
            room = min(abs(g.s - a), abs(b - g.s))
            found += [Sharp(k, row, row, row, share * room)] * (room > 0)
        elif isinstance(node, nodes.Max):
            first, *rest = sorted(own, key=lambda g: -g.s)
            total = sum(g.s for g in rest)
            part = min(Fraction(1), first.s / total) if total else Fraction(0)
            pairs = [(g.place, share * part * g.s) for g in rest if g.s * part > 0]
            found += [Sharp(k, row, first.place, place, sigma) for place, sigma in pairs]
        else:
            room = 1 - Fraction(rationals.sqrt_upper(sum((g.s**2 for g in own), Fraction(0))))
            found += [Sharp(k, row, row, row, share * room)] * (room > 0)
    return found


@dataclass
class Found:
    """What a search has shown about a point."""

    shown: Shown
    supports: list[Support]
    sharp: list[Sharp]

    @property
    def strict(self) -> bool:
        return self.shown.within < self.shown.reach


class MinimumSearch:
    """Searches evidence for a minimum at a pivot.

    Parameters
    ----------
    program : Program
    y : sequence of numbers
        The pivot, exact.
    deadline : float
        When to stop, as `time.perf_counter()` tells the time.
    problem : ExactProblem, optional
        Bounds and constraints: the function is then the one with penalties for them.
    """

    def __init__(
        self, program: Program, y: Any, deadline: float = math.inf,
        problem: ExactProblem | None = None,
    ) -> None:  # fmt: skip
        self.program, self.y, self.deadline = program, rationals.to_fractions(y), deadline
        self.limits, self.box = None, None if problem is None else problem.box
        if problem is not None:
            self.limits = penalised(program, problem, self.y)
            self.program = self.limits.program
        if time.perf_counter() > deadline:
            raise NotCertifiableError("there was no time left for a minorant.")
        self.kinks = kinks_near(self.program, self.y)
        self.supports = weighted(self.program, self.y, self.kinks, deadline)

    @property
    def far(self) -> float:
        """A ball so large contains all points inside the bounds."""
        if self.box is None or not np.isfinite([self.box.lower, self.box.upper]).all():
            return math.inf
        return float(np.linalg.norm(self.box.upper - self.box.lower)) * (1 + 1e-12)

    def at(self, reach: float) -> Found | None:
        """Return what is shown on a ball, with the sharpness that makes it grow most."""
        if time.perf_counter() > self.deadline:
            return None
        try:
            region, box = Region(self.y, reach, self.box), self.box
            supports = bent(self.program, region, self.supports)
            plain = minorant(self.program, self.y, reach, supports, (), box)
            sharp = self._sharp(region, supports, plain) if math.isfinite(reach) else []
            found = minorant(self.program, self.y, reach, supports, sharp, box) if sharp else plain
            return Found(found.show(_below(found.curvature)), supports, sharp)
        except GoldsteinError:
            return None

    def _sharp(self, region: Region, supports: list[Support], plain: Minorant) -> list[Sharp]:
        """Choose the part of the sharpness by which the smallest eigenvalue grows most."""
        room = sharpness(self.program, supports, 1.0)
        if not room:
            return []
        own = held(self.program, supports, room)
        Pass(self.program, region, own).backward(self.program.last, _ONE)
        terms = [term for part in own.values() for term in part.terms]
        more = Curvature(self.program.dim)
        try:
            sharpened(more, terms, Pass(self.program, region), region.radius)
        except GoldsteinError:
            return []
        base, extra = plain.curvature.lower, more.lower
        least = [np.linalg.eigvalsh(base + f * extra)[0] for f in FACTORS]
        best = int(np.argmax(least))
        if least[best] <= np.linalg.eigvalsh(base)[0] + 1e-14 * np.abs(base).max(initial=0.0):
            return []
        return sharpness(self.program, supports, FACTORS[best])

    def best(self) -> Found | None:
        """Return the strict claim of the largest radius; else the largest one that is not lower."""
        found, flat = self.at(1.0), None
        up = found is not None and found.strict
        radii = UP if up else DOWN
        best = found if up else None
        for reach in radii:
            if found is not None and flat is None and found.shown.growth >= 0:
                flat = found
            found = self.at(reach)
            if found is not None and found.strict:
                best = found
            if (found is not None and found.strict) != up:
                break
        if best is None:
            return flat
        low, high = best.shown.reach, 4 * best.shown.reach
        for _ in range(5):
            found = self.at(math.sqrt(low * high))
            if found is not None and found.strict:
                low, best = found.shown.reach, found
            else:
                high = math.sqrt(low * high)
        return best

    def convexity(self, reach: float) -> float | None:
        """Return a number c >= 0 such that f - c/2 |z|^2 is convex on a ball; None for none."""
        if time.perf_counter() > self.deadline:
            return None
        try:
            run = Pass(self.program, Region(self.y, reach, self.box))
            total, _ = run.backward(self.program.last, _ONE)
            c = _below(total)
            return c if c >= 0 and convexity(self.program, self.y, reach, c, self.box) else None
        except GoldsteinError:
            return None


def _below(total: Any) -> float:
    """Return a number that the eigenvalues of a curvature are certainly above."""
    lower, least = total.lower, total.smallest
    # What the proof by a factorisation in float64 costs, see `at_least`.
    cost = 4e-15 * (len(lower) + 4) * float(np.abs(np.diag(lower)).sum())
    if least > 4 * cost:
        return least * (1 - 1e-9) - cost
    if total.convex or (least > -4 * cost and len(lower) <= 24):
        return 0.0
    return least * (1 + 1e-9) - 2 * cost


def prove_minimum(
    program: Program, x: Vector, pivot: Any, deadline: float = math.inf,
    problem: ExactProblem | None = None,
) -> MinimumCertificate | None:  # fmt: skip
    """Return the strongest claim about a minimum at a pivot near x that is found, or None."""
    search = MinimumSearch(program, pivot, deadline, problem)
    everywhere = search.convexity(math.inf)
    direct = search.at(math.inf)
    if direct is not None and direct.shown.gap is None:
        direct = None
    if everywhere is not None:  # a local minimum is global: any ball that is strict will do
        for reach in (1.0, 2.0**-6, 2.0**-12, 2.0**-20):
            found = search.at(reach)
            if found is not None and found.strict:
                return _stated(x, search, found, "global", everywhere)
    if direct is None and search.far < math.inf:
        direct = search.at(search.far)
    if direct is not None:
        return _stated(x, search, direct, "global", everywhere)
    found = search.best()
    if found is None:
        return None
    for part in (1.0, 0.25, 0.0625) if found.strict else ():
        own = search.convexity(part * found.shown.reach)
        smaller = found if part == 1.0 else search.at(part * found.shown.reach)
        if own and smaller is not None and smaller.strict:  # unique is worth a smaller ball
            return _stated(x, search, smaller, "ball", own)
    return _stated(x, search, found, "ball", None)


def with_gap(
    program: Program, x: Vector, pivot: Any, reach: float, problem: ExactProblem | None = None
) -> MinimumCertificate | None:
    """Return what is shown on one ball, however large its gap."""
    search = MinimumSearch(program, pivot, math.inf, problem)
    found = search.at(reach)
    return None if found is None else _stated(x, search, found, "ball", None)


def penalised(program: Program, problem: ExactProblem, y: Any) -> Feasible:
    """Penalise what is at its limit at y, with weights large enough for its multipliers."""
    box, system, at = problem.box, problem.system, np.array([rationals.nearest_float(q) for q in y])
    runs = [Pass(part, Region(y, 0.0)) for part in (program, *problem.parts)]
    steep, *slopes = (float(np.linalg.norm(run.slopes[-1].size)) for run in runs)
    sizes = np.append(slopes, np.ones(at.size))
    values = np.append([run.values[-1].lo[0] for run in runs[1:]], at)
    lower, upper = np.append(system.lower, box.lower), np.append(system.upper, box.upper)
    close = NEAR * np.maximum(1e-6, sizes)
    active = (values <= lower + close) | (values >= upper - close)
    weight = 8.0 * max(steep, 1.0) * math.sqrt(at.size) / np.maximum(sizes, 2.0**-20)
    return Feasible(program, problem, np.where(active, np.exp2(np.ceil(np.log2(weight))), 0.0))


def _rounding(program: Program, y: Any, x: Vector, found: Found) -> tuple[float, float, float]:
    """Return how far slopes, values at y, and those of x may be off where sums are rounded.

    Another machine adds in another order: its enclosures are others, and all contain the truth.
    """
    here, own = Region(y, 0.0), held(program, found.supports, [])
    bare = Pass(program, here)
    run = Pass(program, here, own, alone=Pass(program, here, own))
    at = bare.values[-1], run.values[-1], Pass(program, Region(x.tolist(), 0.0)).values[-1]
    top, low, other = (float(v.hi[0] - v.lo[0]) for v in at)
    lines = slope_of_lines(program, own) if math.isinf(found.shown.reach) else None
    exact = lines is not None and is_small(program)  # then eps is no enclosure
    blur = 0.0 if exact else ROOM * float(np.linalg.norm(run.slopes[-1].rad))
    return blur, ROOM * (top + low), ROOM * (top + other)


def _stated(
    x: Vector, search: MinimumSearch, found: Found, scope: str, convex: float | None
) -> MinimumCertificate | None:
    shown, y, limits, fields = found.shown, search.y, search.limits, dict[str, Any]()
    delta = rationals.sqrt_upper(rationals.squared_distance(y, x))
    rest = rise(search.program, y, x)
    blur, wide, most = _rounding(search.program, y, x, found)
    if blur or wide or most:
        more = 1 + Fraction(2.0**-30)
        eps = rationals.fraction_upper(more * Fraction(shown.eps) + Fraction(blur))
        loss = shown.loss * more
        shown, rest = shown._replace(eps=eps, loss=loss + Fraction(wide)), rest + Fraction(most)
    assert shown.gap is not None
    gap = rationals.fraction_upper(max(shown.gap + rest, Fraction(0)))
    strict = shown.within < shown.reach
    unique = strict and bool(convex)
    if limits is not None:
        strict = strict and not limits.violation(y)
        unique = unique and strict and limits.flat
        m, forces = len(limits.problem.parts), limits.multipliers(found.supports)
        fields = {
            "penalties": limits.weights, "multipliers": forces[:m], "normal": forces[m:],
            "violation": rationals.fraction_upper(limits.violation(x.tolist())),
        }  # fmt: skip
    radius = math.inf
    if scope == "ball":
        radius = rationals.nearest_float(Fraction(shown.reach) - Fraction(delta))
        radius = math.nextafter(radius, 0.0) if delta else radius
        if radius <= 0:
            return None
    within = rationals.fraction_upper(Fraction(shown.within) + Fraction(delta)) if strict else None
    if within is not None and within >= radius:  # the lowest points may be outside this ball
        strict, unique, within = False, False, None
    return MinimumCertificate(
        x=x, exact_pivot=tuple(y), delta=delta, eps=shown.eps, radius=radius, gap=gap,
        within=within, scope=scope, strict=strict, unique=unique, reach=shown.reach,
        growth=shown.growth, convexity=convex, supports=tuple(found.supports),
        sharp=tuple(found.sharp), **fields,
    )  # fmt: skip


# --- refutation --------------------------------------------------------------------------------


def escapes(program: Program, y: Any, more: Any = ()) -> list[Vector]:
    """Return directions along which a function may fall: of its kinks, and of its gradients."""
    here = Region(y, 0.0)
    run = Pass(program, here)
    found = [np.asarray(h, dtype=float) for h in more]
    kinks = kinks_near(program, y)
    for g in kinks.supports:
        a = run.slopes[program.nodes[g.node].of[0]].mid[g.place]
        found += [a, -a]
    for ends in (kinks.high, kinks.low):
        with suppress(GoldsteinError):
            own = held(program, kinks.chosen([Fraction(v) for v in ends.tolist()]), [])
            run = Pass(program, here, own, alone=Pass(program, here, own))
            found.append(-run.slopes[program.last].mid[0])
    size = min(2 * program.dim + 8, RANDOM), program.dim
    draw = np.random.default_rng(0).standard_normal(size)
    found += list(draw)
    lengths = [float(np.linalg.norm(h)) for h in found]
    return [h / n for h, n in zip(found, lengths) if 0 < n < math.inf]


def refuted(
    program: Program, x: Vector, pivot: Any, eps: float, more: Any = (),
    problem: ExactProblem | None = None, deadline: float = math.inf,
) -> Refutation | None:  # fmt: skip
    """Return a direction in which f falls from the pivot faster than eps, with a lower point.

    With bounds or constraints, that of f with penalties proposes it; the point must be feasible.
    """
    y, plain, limits = rationals.to_fractions(pivot), program, None
    if problem is not None:
        limits = penalised(program, problem, y)
        program = limits.program
    slopes: list[tuple[Fraction, Vector]] = []
    at, directions = point_at(program, y), escapes(program, y, more)
    for h in directions:
        if time.perf_counter() > deadline:
            break
        with suppress(NotCertifiableError):
            slopes.append((slope_along(at, h), h))
    slope, h = min(slopes, key=lambda pair: pair[0], default=(Fraction(0), x))
    if not (slope < -Fraction(eps) * 2 and slope < 0):
        return None
    delta = rationals.sqrt_upper(rationals.squared_distance(y, x))
    here = point_at(plain, x).between()[0]
    base = np.array([rationals.nearest_float(q) for q in y])
    points = [base + 4.0**-k * h for k in range(-1, 30)]
    if limits is not None:
        points = [limits.problem.box.clip(point) for point in points]
        points = [point for point in points if not limits.violation(point.tolist())]
    falls = [(here - point_at(plain, point).between()[1], point) for point in points]
    fall, lowest = max(falls, key=lambda pair: pair[0], default=(Fraction(0), x))
    least = -rationals.fraction_upper(-fall)
    if not least > 0:
        return None
    return Refutation(
        x=x, point=lowest, direction=h, fall=least, exact_pivot=tuple(y), delta=delta,
        slope=rationals.fraction_upper(slope) if limits is None else None,
    )  # fmt: skip
