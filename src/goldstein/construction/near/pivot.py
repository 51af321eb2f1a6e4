"""From a Goldstein certificate to a near certificate: find a pivot, prove what holds there.

A pivot may be where kinks meet that the evidence straddles. The search is in float64 and may be
wrong; `NearCertificate.prove` decides.

From a KKT certificate to a near-KKT certificate: pivots of an exact penalty, proved as KKT.

f plus penalties of bounds and constraints is an expression P. Where limits of gradients of P cancel
at a feasible pivot, those of f and of the constraints at their limits do, with multipliers up to
the weights of the penalty. Everything here is search; the check decides.
"""

import math
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.evaluation import Evaluation, Pieces
from goldstein.calculus.expression import Expression
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.near import Attempt, NearCertificate, prove_near_kkt, separating
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import best_normal
from goldstein.checker.constrained.near import ExactProblem, Limit, as_rationals, exact_problem
from goldstein.checker.enclosed.point import is_small
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.rationals import nearest_float, to_fractions
from goldstein.checker.rounding import distance_upper
from goldstein.checker.sides import Point, Program, point_at
from goldstein.construction.near import flats, kinks
from goldstein.errors import NotCertifiableError, OutOfBudget
from goldstein.numerics.budget import Budget
from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.hull_problems import conic_weights
from goldstein.numerics.streams import stream
from goldstein.oracles.problem import Problem
from goldstein.solvers import Request

Sides = NDArray[np.bool_]

#: Rounds of adding kinks that a projection crossed.
REPAIRS = 12

#: Kinks added, one by one, from one start.
EXCHANGES = 40

#: A point along a flat is good enough once the gradient there is this part of eps.
GOAL = 0.25

#: Part of delta by which a point may miss its flat when it is put there exactly.
SLACK = 1e-6


class PivotSearch:
    """Candidates for a pivot, the most promising first."""

    def __init__(
        self, fun: Expression | Program, certificate: GoldsteinCertificate, delta: float,
        eps: float, budget: Budget,
    ) -> None:  # fmt: skip
        self.delta, self.eps, self.budget = float(delta), float(eps), budget
        self.form = kinks.Kinks(fun)
        self.table = flats.KinkTable(self.form)
        self.curved = flats.CurvedKinks(self.form, budget)
        self.x: Vector = certificate.x
        used = certificate.weights > 0
        self.points: Matrix = certificate.points[used]
        weights = certificate.weights[used]
        self.mean: Vector = (weights / weights.sum()) @ self.points
        self._lengths = np.linalg.norm(certificate.gradients[used], axis=1)
        self._tried: set[Any] = set()

    def single_points(self) -> Iterator[Vector]:
        """Yield points of the evidence that need no company: their own gradients are short."""
        for i in np.argsort(self._lengths, kind="stable")[:2]:
            if self._lengths[i] <= self.eps and self._inside(self.points[i]):
                yield self.points[i]

    def candidates(self) -> Iterator[tuple[flats.Flat, Vector]]:
        """Yield flats, and points of them within delta of x."""
        for equations, base in self._starts():
            for flat, point in self._exchanged(equations, base):
                if self._new(tuple(sorted(e.key for e in flat.equations)), point):
                    yield flat, point

    def curved_points(self) -> Iterator[tuple[list[flats.Surface], Vector]]:
        """Yield points within delta of x where curved kinks meet, in float64."""
        if not is_small(self.form.program) or all(map(self.form.affine, self.form.places)):
            return  # exact arithmetic is too dear, or no kink is curved
        for surfaces, base in self._curved_starts():
            self.budget.spend()
            kept = self.curved.independent(surfaces, base)
            point = self.curved.meeting(kept, base) if kept else None
            if point is None or not self._inside(point):
                continue
            settled = self.curved.settled(kept, point)
            halfway = self.curved.meeting(kept, 0.5 * (point + settled))
            for place in (settled, point, halfway):
                if place is not None and self._inside(place) and self._new(frozenset(kept), place):
                    yield kept, place

    def _new(self, met: Any, point: Vector) -> bool:
        """Whether a point of some kinks was not proposed before; it is now."""
        key = met, point.round(12).tobytes()
        new = key not in self._tried
        self._tried.add(key)
        return new

    def _curved_starts(self) -> Iterator[tuple[list[flats.Surface], Vector]]:
        yield self.curved.holding(self.x, self.delta), self.x
        straddled = self.curved.between(self.points)
        for base in (self.mean, self.x):
            yield straddled, base
        for part in (1.0, 0.1, 0.01):
            for base in (self.mean, self.x):
                yield self.curved.close(base, part * self.delta), base

    def is_hopeful(self, flat: flats.Flat, point: Vector, bound: float) -> bool:
        """True unless the gradient along the flat alone exceeds what is proved already."""
        pieces = self.form.pieces(point)
        return float(np.linalg.norm(flat.along(self.gradient(point, pieces)))) < bound

    def gradient(self, point: Vector, pieces: Pieces) -> Vector:
        """Return the gradient of given pieces; it counts."""
        self.budget.spend()
        return self.form.gradient(point, pieces)

    def _starts(self) -> Iterator[tuple[list[flats.Equation], Vector]]:
        above, below, _, _ = self._evidence_sides
        straddled = self._equations(np.flatnonzero(~above & ~below).tolist())
        straddled += self.table.grouped(self.points)
        for base in (self.mean, self.x):
            yield straddled, base
        for base in (self.mean, self.x):
            for part in (1.0, 0.1, 0.01):
                yield self._close(base, part * self.delta), base
        yield [], self.x

    @cached_property
    def _evidence_sides(self) -> tuple[Sides, Sides, Vector, Vector]:
        """Kinks that all points are above or below, the first point's side, the largest gap."""
        first = self.table.sides(self.points[0])
        above, below, largest = first > 0, first <= 0, np.abs(first)
        for y in self.points[1:]:
            self.budget.spend()
            gaps = self.table.sides(y)
            above, below = above & (gaps > 0), below & (gaps <= 0)
            largest = np.maximum(largest, np.abs(gaps))
        return above, below, np.sign(first), largest

    def _equations(self, places: list[int]) -> list[flats.Equation]:
        found = []
        for i in places:
            self.budget.require(0.0)
            found.append(self.table.equation(i))
        return [equation for equation in found if equation.row]

    def _close(self, base: Vector, radius: float) -> list[flats.Equation]:
        gaps = np.abs(self.table.sides(base))
        # |gap| <= radius |row| needs the row; bounds of the lengths rule out most of them.
        order = np.argsort(gaps, kind="stable")[: 4 * base.size]
        order = order[gaps[order] <= radius * self.table.lengths[order]]
        rows = [(gaps[i], e) for i in order.tolist() for e in self._equations([i])]
        lengths = [math.hypot(*(nearest_float(a) for _, a in e.row)) for _, e in rows]
        return [e for (gap, e), length in zip(rows, lengths) if gap <= radius * length]

    def _exchanged(
        self, equations: list[flats.Equation], base: Vector
    ) -> Iterator[tuple[flats.Flat, Vector]]:
        """Walk from flat to flat, adding the kink that is met, until none is."""
        placed = self._repaired(equations, base)
        if placed is None:
            return
        flat, point = placed
        for _ in range(EXCHANGES):
            target = self._smooth_step(flat, point)
            crossing, stop = self._first_crossing(flat, point, target)
            if crossing is None:
                yield flat, target
                return
            flat = flats.Flat([*flat.equations, crossing], point.size, stop, self.budget)
            point = flat.project(stop)
            if not np.isfinite(point).all():
                return

    def _repaired(
        self, equations: list[flats.Equation], base: Vector
    ) -> tuple[flats.Flat, Vector] | None:
        """Project on the kinks; kinks crossed on the way from the points are added."""
        here = list(equations)
        for _ in range(REPAIRS):
            flat = flats.Flat(here, base.size, base, self.budget)
            point = flat.project(base)
            if not np.isfinite(point).all():
                return None
            crossed = self._crossed(point, {e.key for e in here})
            if not crossed:
                break
            here = here + crossed
        return (flat, point) if self._inside(point) else None

    def _crossed(self, point: Vector, known: set[tuple[int, int, int]]) -> list[flats.Equation]:
        above, below, first, largest = self._evidence_sides
        scale = 1e-12 * (1.0 + largest)
        wrong = (above | below) & (first * self.table.sides(point) < -scale)
        found = self._equations(np.flatnonzero(wrong)[: 2 * point.size].tolist())
        found += self.table.grouped(np.vstack([self.points, point]))
        return [e for e in found if e.key not in known]

    def _inside(self, point: Vector) -> bool:
        return distance_upper(point, self.x) <= self.delta * (1.0 + 1e-12)

    def _first_crossing(
        self, flat: flats.Flat, point: Vector, target: Vector
    ) -> tuple[flats.Equation | None, Vector]:
        """Return the first kink between two points of a flat, and where it is met."""
        before, after = self.table.sides(point), self.table.sides(target)
        scale = 1e-11 * (1.0 + np.abs(before))
        crossed = np.flatnonzero((before * after < 0) & (np.abs(before) > scale))
        known = {e.key for e in flat.equations}
        shares = np.abs(before[crossed]) / np.abs(before[crossed] - after[crossed])
        for i in np.argsort(shares).tolist():
            equation = self.table.equation(int(crossed[i]))
            if equation.row and equation.key not in known:
                return equation, point + shares[i] * (target - point)
        return None, target

    def _smooth_step(self, flat: flats.Flat, point: Vector) -> Vector:
        """Return a stationary point of the present piece along the flat, kept within the ball."""
        if flat.free == 0:
            return point
        pieces = self.form.pieces(point)
        goal = max(GOAL * self.eps, flats.TINY)
        move = flats.stationary(
            lambda z: flat.along(self.gradient(point + z, pieces)), np.zeros(flat.dim), goal
        )
        share = 1.0
        while share > 1e-3:
            candidate = flat.project(point + share * move)
            if self._inside(candidate):
                return candidate
            share *= 0.5
        return point


#: Random directions tried at a pivot, beside a few.
RANDOM_DIRECTIONS = 200

#: Steps of a search unless told otherwise; most of them are gradients in float64.
MAX_WORK = 20_000


def near_certificate(
    fun: Expression,
    certificate: GoldsteinCertificate,
    delta: float,
    eps: float,
    *,
    seed: int = 0,
    deadline: float | None = None,
    max_work: int | None = MAX_WORK,
) -> NearCertificate | None:
    """Turn evidence of Goldstein stationarity into a proof of near stationarity.

    Parameters
    ----------
    fun : Expression
        The function; its kinks are known.
    certificate : GoldsteinCertificate
        Points and weights; only a hint where to look.
    delta : float
        The pivot must lie within this distance of `certificate.x`.
    eps : float
        The search stops at the first proof at least this good.
    seed : int
        Seed of the search for directions.
    deadline : float, optional
        When to stop, as `time.perf_counter()` tells the time.
    max_work : int or None
        Steps after which to stop: gradients in float64, exact projections, directions in a proof.

    Returns
    -------
    NearCertificate or None
        The best proof found with `delta` kept. Its `eps` may exceed the requested one: compare.
        None when no pivot was found. `search_near` also says why.

    Raises
    ------
    NotCertifiableError
        When the function contains parts that are known in float64 only.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> F = sum(abs(Variable(1)))
    >>> around = GoldsteinCertificate.from_gradients(
    ...     np.array([0.05]), np.array([[0.1], [-0.01]]), np.array([[1.0], [-1.0]]))
    >>> near_certificate(F, around, delta=0.1, eps=0.01)
    <NearCertificate (0, 0.05)-near stationary, 2 subgradients at the pivot, certified>
    """
    budget = Budget(deadline, max_work)
    return search_near(fun, certificate, delta, eps, seed, budget).certificate


def search_near(
    fun: Expression | Program, certificate: GoldsteinCertificate, delta: float, eps: float,
    seed: int = 0, budget: Budget | None = None,
) -> Attempt:  # fmt: skip
    """Search as `near_certificate` does, and say how the search ended.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> F = sum(abs(Variable(1)))
    >>> around = GoldsteinCertificate.from_gradients(
    ...     np.array([0.05]), np.array([[0.1], [-0.01]]), np.array([[1.0], [-1.0]]))
    >>> search_near(F, around, delta=0.1, eps=0.01).note
    'proved'
    >>> search_near(F, around, delta=0.01, eps=0.01).note
    'not proved: the best pivot found has eps = 1, asked for 0.01'
    """
    search = PivotSearch(fun, certificate, delta, eps, budget or Budget(None, MAX_WORK))
    prover, stopped = _Prover(search, seed), ""
    try:
        with np.errstate(all="ignore"):  # what overflows is no pivot, and no proof rests on it
            prover.run()
    except OutOfBudget as limit:
        stopped = f"the search for a pivot {limit}"
    best = prover.best
    if best is not None and best.eps <= eps:
        return Attempt(best, "proved")
    if best is None:
        why = stopped or f"no pivot was found within delta = {delta:g}"
    else:
        why = f"{stopped}; t" if stopped else "t"
        why += f"he best pivot found has eps = {best.eps:.3g}, asked for {eps:g}"
    return Attempt(best, f"not proved: {why}")


class _Prover:
    """Proofs at the candidates of a search; the best is kept."""

    def __init__(self, search: PivotSearch, seed: int) -> None:
        self.search, self.form = search, search.form
        self.delta, self.eps, self.budget = search.delta, search.eps, search.budget
        self.rng = stream(seed, 0, "near")
        self.best: NearCertificate | None = None

    def run(self) -> None:
        """Try candidates until a proof is as good as asked for."""
        for point in self.search.single_points():
            if self._keep(self.prove(to_fractions(point))):
                return
        for surfaces, place in self.search.curved_points():
            if any(self._keep(proof) for proof in self._on_surfaces(surfaces, place)):
                return
        for flat, point in self.search.candidates():
            if self.best is not None and not self.search.is_hopeful(flat, point, self.best.eps):
                continue
            pivot = flat.project_exactly(point, SLACK * self.delta, self.budget)
            if pivot is not None and self._keep(self.prove(pivot)):
                return

    def _keep(self, proof: NearCertificate | None) -> bool:
        """Keep a proof that is better; return whether it is as good as asked for."""
        if proof is not None and (self.best is None or proof.eps < self.best.eps):
            self.best = proof
        return self.best is not None and self.best.eps <= self.eps

    def _on_surfaces(
        self, surfaces: list[flats.Surface], place: Vector
    ) -> Iterator[NearCertificate | None]:
        """Yield proofs next to a point of curved kinks: at rational points, or else in a box."""
        curved, known = self.search.curved, False
        if all(node.rational for node in self.form.nodes):
            for pivot in curved.exactly(surfaces, place):
                proof = self.prove(pivot)
                known = known or proof is not None
                yield proof
        for box in () if known else curved.boxes(surfaces, place):
            proof = self.prove(to_fractions(place), box)
            yield proof
            if proof is not None:
                return

    def prove(self, pivot: list[Fraction], box: Any = None) -> NearCertificate | None:
        """Return the best proof at a pivot, perhaps one in a box around it; or None."""
        # Whoever checks the proof needs as long again.
        budget = self.budget.half()
        try:
            here = self.form.examine(pivot, box=box)
            evidence = self.evidence(here)
            if evidence is None or not np.isfinite(evidence.directions).all():
                return None
            used = evidence.weights > 0
            directions, place = evidence.directions[used], tuple(pivot)
            here = here if box else self.form.examine(place, len(directions))
            limits = here.limits(directions, budget.spend)
            state = partial(
                NearCertificate.from_limits, self.search.x, place, directions, limits=limits,
                box=box,
            )  # fmt: skip
            proof = state(evidence.weights[used])
            weights = self._better_weights(proof)
            if weights is not None and weights.any():
                again = state(weights)
                proof = again if again.eps < proof.eps else proof
        except NotCertifiableError:
            return None
        return proof if proof.delta <= self.delta else None

    def _better_weights(self, proof: NearCertificate) -> Vector | None:
        """Weights for the proved gradients, which are more accurate than those of the search."""
        if 0.0 < proof.eps < 1e-9 and is_small(self.form.program):
            # Weights that are simple fractions often cancel the gradients exactly.
            return _simple(proof.weights)
        if proof.eps <= self.eps:
            return None
        weights = min_norm_weights(proof.gradients)
        reached = float(np.linalg.norm(weights @ proof.gradients))
        return weights if reached < 0.9 * proof.eps else None

    def evidence(self, here: Point) -> kinks.Evidence | None:
        """Search directions whose limits of gradients nearly cancel."""
        met, point = self.form.active(here), kinks.floats(here.y)
        hints = self.search.points - point
        if self.form.is_additive(met, curved=True):
            model = kinks.local_model(self.form, here)
            if not model.kinks:
                return kinks.Evidence(np.ones((1, point.size)), np.ones(1), 0.0)
            return kinks.additive_evidence(model, hints, self.eps, self.rng, self.budget)
        radius = float(np.linalg.norm(hints, axis=1).max(initial=0.0)) or 1.0
        more = self.rng.standard_normal((min(4 * point.size, RANDOM_DIRECTIONS) + 16, point.size))
        more *= radius / np.sqrt(point.size)
        some = hints, more
        return kinks.generic_evidence(self.form, here, some, self.eps, self.rng, self.budget)


def _simple(weights: Vector) -> Vector:
    """Return integers in the ratio of nearby simple fractions."""
    fractions = [Fraction(float(w)).limit_denominator(48) for w in weights]
    whole = math.lcm(*(f.denominator for f in fractions))
    answer = np.array([float(f * whole) for f in fractions])
    return answer if answer.any() and np.isfinite(answer).all() else weights


#: How often the weights of the penalty are raised where a pivot violates a constraint, and by what.
RAISES, RAISE = 3, 8.0

#: A gradient of a constraint at the pivot: component, sign of the multiplier, direction, gradient.
Owned = tuple[int, float, Vector, Vector]


def search_near_kkt(
    fun: Expression, limits: Problem, hint: KKTCertificate, request: Request, deadline: float
) -> Attempt:
    """Search a pivot within `delta` of `hint.x` that is feasible and KKT up to `eps`.

    Parameters
    ----------
    fun : Expression
    limits : Problem
        Its bounds, and constraints that are expressions or linear.
    hint : KKTCertificate
        Where to look.
    request : Request
        What to prove.
    deadline : float
        When to stop, as `time.perf_counter()` tells the time.
    """
    program, eps = fun.program(), request.eps
    problem = exact_problem(hint.x, limits.box, limits.constraints, separating)
    penalty = _Penalty(program, problem, hint, request.delta)
    for _ in range(1 + RAISES):
        whole, budget = penalty.function(), Budget(deadline, MAX_WORK)
        found = search_near(whole, penalty.hint(whole), request.delta, eps, request.seed, budget)
        if found.certificate is None:
            return found
        violated = _violated(problem, found.certificate.exact_pivot)
        if not violated:
            return _proved(program, problem, hint, found.certificate, eps)
        penalty.weights[violated] *= RAISE
    name = problem.system.name(violated[0])
    return Attempt(None, f"not proved: {name} is violated at the pivots that were found")


class _Penalty:
    """P as a program: f, and what bounds and constraints are violated by, with weights."""

    def __init__(
        self, program: Program, problem: ExactProblem, hint: KKTCertificate, delta: float
    ) -> None:
        self.program, self.problem, self.known = program, problem, hint
        steep = float(np.linalg.norm(hint.gradients, axis=1).max()) or 1.0
        used = np.flatnonzero(hint.constraint_weights)
        lengths = np.linalg.norm(hint.constraint_gradients[used], axis=1)
        short = float(lengths[lengths > 0].min(initial=1.0))
        slope = steep + float(np.abs(hint.constraint_weights[used]) @ lengths)
        # Larger than the multipliers, so that no limit is worth crossing; powers of two, so that
        # rationals stay short. Bounds that no pivot can reach are left out.
        rho = np.abs(hint.multipliers) + steep / max(short, 1e-6)
        gaps = np.minimum(hint.x - problem.box.lower, problem.box.upper - hint.x)
        wall = np.where(gaps <= 2.0 * delta, slope, 0.0)
        found = 2.0 ** np.ceil(np.log2(np.maximum(4.0 * np.append(rho, wall), 2.0**-40)))
        self.weights: Vector = np.where(np.append(rho, wall) > 0.0, found, 0.0)

    def function(self) -> Program:
        """Return P."""
        return Feasible(self.program, self.problem, self.weights).program

    def hint(self, whole: Program) -> GoldsteinCertificate:
        """Return points around x on both sides of the kinks of P that matter, as evidence.

        The points of a KKT certificate stay inside the bounds: each gets a mirror image beyond the
        bounds that x is on.
        """
        known, box = self.known, self.problem.box
        places = np.concatenate([known.points, known.constraint_points])
        shares = np.concatenate([known.weights, np.abs(known.constraint_weights)])
        on = (known.x == box.lower) | (known.x == box.upper)
        if on.any():
            mirrored = np.where(on, 2.0 * known.x - places, places)
            places, shares = np.concatenate([places, mirrored]), np.concatenate([shares, shares])
        # Witnesses that a limit is reached carry no weight, but they straddle it.
        shares = np.maximum(shares, 1e-3 * shares.max())
        found = Evaluation(whole.nodes)
        gradients = [found.gradient(found.tape(y)) for y in places]
        return GoldsteinCertificate(
            x=known.x, delta=known.delta, eps=known.eps, points=places,
            gradients=np.array(gradients), weights=shares / shares.sum(),
        )  # fmt: skip


def _violated(problem: ExactProblem, pivot: Sequence[Fraction]) -> list[int]:
    """Return the components that the pivot does not satisfy for certain."""
    found = []
    for i, part in enumerate(problem.parts):
        low, high = point_at(part, pivot).between()
        if low < float(problem.system.lower[i]) or high > float(problem.system.upper[i]):
            found.append(i)
    return found


def _proved(
    program: Program, problem: ExactProblem, hint: KKTCertificate, near: NearCertificate, eps: float
) -> Attempt:
    """Combine limits of gradients of f and of the constraints anew, and state what they show."""
    pivot, box = near.exact_pivot, problem.box
    here = point_at(program, pivot, len(near.directions))
    hull = _floats(as_rationals(here.limits(near.directions)))
    cone = list(_at_limits(problem, pivot, near.directions))
    low = np.array([q == b for q, b in zip(pivot, box.lower.tolist())])
    high = np.array([q == b for q, b in zip(pivot, box.upper.tolist())])
    weights, shares, normal = _combined(hull, cone, low, high)
    if any(problem.system.equal):
        # One sign for each constraint: with two, opposite gradients would cancel anything.
        totals = np.zeros(problem.system.size)
        for share, (i, sign, _, _) in zip(shares.tolist(), cone):
            totals[i] += sign * share
        cone = [one for one in cone if one[1] * totals[one[0]] >= 0.0]
        weights, shares, normal = _combined(hull, cone, low, high)
    used = np.flatnonzero(weights > 0)
    rows = [(i, v, sign * w) for w, (i, sign, v, _) in zip(shares.tolist(), cone) if w > 0]
    certificate = prove_near_kkt(
        program, problem, hint.x, pivot, near.directions[used], weights[used], rows, normal
    )  # fmt: skip
    certificate = replace(certificate, meta=dict(hint.meta), digest="")
    if certificate.eps <= eps:
        return Attempt(certificate, "proved")
    return Attempt(
        certificate,
        f"not proved: the best pivot found has eps = {certificate.eps:.3g}, asked for {eps:g}",
    )


def _at_limits(
    problem: ExactProblem, pivot: Sequence[Fraction], directions: Matrix
) -> Iterator[Owned]:
    """Yield gradients of the constraints that are exactly at a limit, times the sign of it."""
    system = problem.system
    for i, part in enumerate(problem.parts):
        here = point_at(part, pivot)
        value, high = here.between()
        sides = ((1.0, system.upper[i]), (-1.0, system.lower[i]))
        signs = [sign for sign, limit in sides if value == high == float(limit)]
        some = directions[: 1 if part.affine[-1] else None] if signs else ()
        for direction in some:
            with suppress(NotCertifiableError):  # along it the constraint stays on a kink
                gradient = _floats(as_rationals(here.limits(direction[None])))[0]
                if gradient.any():
                    yield from ((i, sign, direction, sign * gradient) for sign in signs)


def _combined(
    hull: Matrix, cone: list[Owned], low: NDArray[np.bool_], high: NDArray[np.bool_]
) -> tuple[Vector, Vector, Vector]:
    """Return weights of f, of the constraints, and the normal that make the shortest vector."""
    eye = np.eye(low.size)
    columns = np.array([g for _, _, _, g in cone]).reshape(-1, low.size)
    a, b = conic_weights(hull, np.concatenate([columns, -eye[low], eye[high]]))
    b = b[: len(cone)]
    return a, b, best_normal(a @ hull + b @ columns, low, high)


def _floats(limits: list[Limit]) -> Matrix:
    return np.array([[nearest_float(m) for m in mid] for mid, _ in limits])
