"""Minimise f + h, where h is a convex term known exactly: find the structure, then search in it.

Forward-backward steps find the structure of the answer (its zeros, its rank) where f is smooth; the
solver itself where it is not, and what it leaves next to 0 is set to 0. Then the solver searches
among the points of this structure, in which h is smooth, and the certificate layer decides about f
plus the exact subgradients of h. Where it does not agree, the structure was not the right one.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from goldstein.certificates.goldstein import PlusCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.fenchel import term_share
from goldstein.checker.rounding import distance_upper
from goldstein.construction.cold import farther
from goldstein.construction.goldstein_claim import Construction
from goldstein.construction.judge import Judge, last_calls
from goldstein.errors import InputError, KinkError, OutOfCalls
from goldstein.numerics.hull_problems import shortest_sum
from goldstein.numerics.streams import stream, uniform_in_ball
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.base import Wrapper
from goldstein.oracles.problem import Problem
from goldstein.prox.term import Chart, OnChart, Term
from goldstein.reductions import base
from goldstein.reductions.penalty import Penalty
from goldstein.result import Status
from goldstein.solvers import Request
from goldstein.solvers.gather import Enrichment, enrich
from goldstein.solvers.loop import ENDINGS, ended_by

#: Steps at most; and steps without a change of structure after which it is taken for found.
MOST, SETTLED = 300, 15

#: A move this small against delta that does not fit a parabola, although its step is so much
#: smaller than one that did, shows a kink of f.
KINK, SMALLER = 0.1, 2.0**-6

#: Before the first step that did: this part of a step as long as x.
UNKNOWN = 2.0**-20


def forward_backward(
    f: CountedOracle,
    term: Term,
    x: Vector,
    eps: float,
    delta: float,
    better: Callable[[Vector], object],
) -> tuple[Vector, bool]:
    """Return a better point, and whether f looked smooth on the way, where `better` is told more.

    For a norm the steps end when the structure is found; in a set they go on, and f is asked in it.
    """
    in_set = term.limits(x.size) is not None
    best = x
    total = f.value(x) + term.value(x)
    ahead, momentum, step, good = x, 1.0, 0.0, 0.0
    pattern, since = term.structure(x), 0
    for _ in range(MOST):
        try:
            here, g = f.value(ahead), f.gradient(ahead)
        except KinkError:  # f is not smooth where h leads
            return best, False
        length = float(np.linalg.norm(g))
        step = step * 1.3 if step else (1.0 + float(np.linalg.norm(x))) / max(length, 1e-300)
        good = good or UNKNOWN * step
        while True:
            z = term.prox(ahead - step * g, step)
            move = z - ahead
            far = float(np.linalg.norm(move))
            there = f.trial_value(z)
            rounding = 2.0**-48 * (abs(here) + abs(there)) if math.isfinite(there) else 0.0
            if there <= here + float(g @ move) + far**2 / (2.0 * step) + rounding:
                break
            if far <= KINK * delta and step <= SMALLER * good:
                return best, False
            step *= 0.5
        good = step
        new = there + term.value(z)
        if new > total and momentum > 1.0:
            ahead, momentum = best, 1.0  # too fast: begin again
            continue
        if new >= total and far <= eps * step:
            return best, True
        faster = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum**2))
        ahead = z + (momentum - 1.0) / faster * (z - best)
        if in_set:
            ahead = term.prox(ahead, 0.0)
        momentum = faster
        if new <= total:
            best, total = z, new
            better(best)
        now = term.structure(z)
        since = since + 1 if now == pattern else 0
        pattern = now
        if far <= 0.1 * eps * step or (since >= SETTLED and not in_set):
            break
    return best, True


#: By how much targets shrink from stage to stage.
SHRINK = 0.25

#: The search inside a structure aims at this part of eps and delta: the claim needs some room.
SHARE = 0.25

#: The point next to x where its own gradient is taken, as a part of delta.
JITTER = 1e-3

#: Times that gradients are added to a claim, and the subgradient of h chosen anew.
LOOKS = 4


#: Endings of a search that end the run, and leave nothing to claim.
_FINAL = (Status.NOT_DETERMINISTIC, Status.WRONG_GRADIENT, Status.UNBOUNDED)


class _Ended(Exception):
    """Control flow inside a run, with the status: there is no point in another stage."""


class Tilted(Wrapper):
    """f(x) + <slope, x>: the kinks are those of f.

    Examples
    --------
    >>> from goldstein.oracles import FunctionOracle
    >>> tilted = Tilted(FunctionOracle(lambda x: abs(x).sum(), np.sign), np.array([0.5, 0.0]))
    >>> tilted.gradient(np.array([1.0, -1.0]))
    array([ 1.5, -1. ])
    """

    def __init__(self, inner: Oracle, slope: Vector) -> None:
        super().__init__(inner)
        self.slope = slope

    @property
    def plain(self) -> Oracle:
        return self

    def value(self, x: Vector) -> float:
        return float(self.inner.value(x) + self.slope @ x)

    def gradient(self, y: Vector) -> Vector:
        return self.inner.gradient(y) + self.slope


@base.register_reduction
class ProxTerm(base.Reduction):
    """Structure and search take turns; the claim is about f plus subgradients of the term."""

    stages = 10

    @classmethod
    def accepts(cls, problem: Problem, options: base.Options) -> bool:
        return problem.term is not None

    def __init__(self, run: base.Run) -> None:
        super().__init__(run)
        assert self.problem.term is not None
        self.f, self.term = self.problem.f, self.problem.term
        self.value = self.problem.value
        self.certificate: PlusCertificate | None = None
        self._judge = Judge(self.f, self.request, {}, run.options.check_gradient)
        self._kinked = False
        self._near: list[Vector] = []

    def apply(self, start: Vector) -> Vector:
        return self.term.prox(start, 0.0)

    def stage(self, x: Vector, stage: int) -> Vector | base.Answer:
        try:
            with self.f.reserved(last_calls(self.f, x.size)):
                self._near = self._improve(stage)
                if self._proved_simpler(self._near, stage) or self._proved(self._near, stage):
                    return base.Answer(self.best, Status.VERIFIED, self.certificate)
        except _Ended as end:
            return self.ended(self.best, end.args[0])
        if self.run.late:
            return self.ended(self.best, Status.OUT_OF_TIME)
        return self.best if stage < self.stages - 1 else self.ended(self.best, Status.STALLED)

    def ended(self, x: Vector, status: Status) -> base.Answer:
        """Prove what can be proved of the last point."""
        if status in _FINAL:
            return base.Answer(x, status)
        found, detail, self.certificate = self.certificate, "", None
        try:
            if found is None or not np.array_equal(found.x, x):
                status = Status.VERIFIED if self._proved(self._near, self.stages) else status
                found = self.certificate
            if found is not None and status not in (Status.VERIFIED, Status.OUT_OF_TIME):
                found = self._judge.left_of(found)
        except OutOfCalls:  # nobody has looked
            found = None
        except tuple(ENDINGS) as ending:
            found, (status, detail) = None, ended_by(ending)
        return base.Answer(x, status, found, detail)

    def claim(self, x: Vector) -> PlusCertificate:
        """State how stationary a point is, without moving it."""
        if not np.isfinite(self.term.value(x)):
            raise InputError(
                f"{self.term.name} is infinite at x; a stationary point is in its domain. "
                "Project it: term.prox(x, 0.0)."
            )
        self.stop.x = x
        claim = self._claim([], 0)
        if claim is None:
            raise base.no_gradient(self.request.delta)
        return self._judge.left_of(claim)

    def _moved(self, x: Vector) -> None:
        """Go to x, and tell those who watch."""
        self.stop.x = x
        self.run.moved(x, self.value(x))

    def _improve(self, turn: int) -> list[Vector]:
        """Find a structure and search in it; return points whose gradients may cancel."""
        term, request = self.term, self.request
        target = replace(
            request, eps=SHARE * request.eps * SHRINK ** (turn / 2),
            delta=SHARE * request.delta * SHRINK**turn, seed=request.seed + turn,
        )  # fmt: skip
        limits, x = term.limits(self.best.size), self.best
        if not self._kinked and (limits is None or turn == 0):
            x, smooth = forward_backward(
                self.f, term, x, request.eps, request.delta, partial(setattr, self.stop, "x")
            )
            self._kinked = not smooth
            self._moved(x)
            if smooth and limits is not None:
                return []
        if limits is not None:
            return self._inside(limits, target)
        if self._kinked:
            x, near = self._search(term.everywhere(x), target)
            self._moved(x)
            snapped = term.snap(x, 0.5 * target.delta)  # without what is small
            if np.array_equal(snapped, x):
                return near
            self._moved(snapped)
        chart = term.chart(self.best)
        assert chart is not None
        x, near = self._search(chart, target)
        self._moved(x)
        return near

    def _search(self, chart: Chart, target: Request) -> tuple[Vector, list[Vector]]:
        """Let the solver search in these coordinates, between their bounds if they have some."""
        if chart.start.size == 0:
            return chart.point(chart.start), []
        counted = CountedOracle(OnChart(self.f, chart))
        if chart.bounds is not None:
            found = self._limited(counted, chart.start, target, {"bounds": chart.bounds})
        else:
            run = self.run.apart(Problem.of(counted, chart.start), target)
            judge = Judge(counted, target, {}, run.options.check_gradient)
            outcome = run.solve(counted, chart.start, target, judge)
            found = base.Answer(outcome.state.x, outcome.status, outcome.certificate)
        x = chart.point(found.x)
        self._end_if_final(found.status, x)
        points = () if found.certificate is None else found.certificate.points
        return x, [chart.point(u) for u in points]

    def _limited(self, f: Oracle, x: Vector, aim: Request, limits: dict[str, Any]) -> base.Answer:
        counted = CountedOracle(f, max(1, int(self.f.limit - self.f.calls)))
        run = self.run.apart(Problem.of(counted, x, **limits), aim)
        with counted.reserved(1):
            found = Penalty(run).search(x)
        self.stop.by = run.request.stop.by
        return found

    def _inside(self, limits: dict[str, Any], target: Request) -> list[Vector]:
        """Search in the domain of an indicator function."""
        found = self._limited(self.f, self.best, target, limits)
        inside = self.term.prox(found.x, 0.0)
        self._end_if_final(found.status, inside)
        self._moved(inside)
        return [] if found.certificate is None else list(found.certificate.points)

    def _end_if_final(self, status: Status, x: Vector) -> None:
        if status in (Status.STOPPED, *_FINAL):
            self.stop.x = x
            raise _Ended(status)

    def _proved_simpler(self, near: list[Vector], turn: int) -> bool:
        """Try the point without what is smaller than delta: the claim may hold of it as well."""
        x, simpler = self.best, self.term.snap(self.best, self.request.delta)
        far = float(np.linalg.norm(simpler - x))
        if far == 0.0 or self.term.structure(simpler) == self.term.structure(x):
            return False
        if self.value(simpler) > self.value(x) + self.request.eps * far:
            return False
        self.stop.x = simpler
        if self._proved(near, turn):
            self._moved(simpler)
            return True
        self.stop.x, self.certificate = x, None
        return False

    def _proved(self, near: list[Vector], turn: int) -> bool:
        """State what can be proved of x; return whether it is what was asked for."""
        claim = self._claim(near, turn)
        if claim is not None and claim.eps <= self.request.eps:
            claim = self._judge.confirmed(claim)
        if claim is None:
            return False
        known = self.certificate
        if known is None or not np.array_equal(known.x, self.best) or claim.eps < known.eps:
            self.certificate = claim
        return claim.eps <= self.request.eps

    def _claim(self, near: list[Vector], turn: int) -> PlusCertificate | None:
        x, request, term = self.best, self.request, self.term
        rng = stream(request.seed, turn, "plus")
        self.f.require_visible(x, request.delta)
        points, gradients = self._asked(rng, near)
        if not points:
            return None
        for look in range(LOOKS):
            length, weights, v = shortest_sum(
                np.array(gradients), lambda wish: term.subgradient(x, wish)
            )
            enough = 0.9 * request.eps
            if length <= enough or look == LOOKS - 1:
                break
            found = Enrichment(list(points), [g + v for g in gradients])
            before = len(points)
            enrich(
                CountedOracle(Tilted(self.f, v)), x,
                replace(request, eps=enough, seed=request.seed + look), found,
                patience=x.size + 10, deadline=self.run.deadline,
            )  # fmt: skip
            points += found.points[before:]
            gradients += [g - v for g in found.gradients[before:]]
            if len(points) == before:
                break
        rows = np.array(gradients) + v
        share = term_share(term.to_record(), x, v, request.delta, weights, rows)
        if request.eps > 0 and not share < request.eps:
            return None
        built = Construction(
            CountedOracle(Tilted(self.f, v)), x, request.delta, np.array(points), rows, request.seed
        )
        if length <= enough or request.eps == 0.0:
            known = [(y, g - v) for y, g in built.rests_on()]
            steps = self._judge.look(x, known)
            built.place.resolution = steps if request.eps else farther(steps, request.delta)
        tilted = built.claim(max(request.eps - 2.0 * share, 0.0), self.run.meta, weights=weights)
        if tilted is None:
            return None
        own = {y.tobytes(): g for y, g in zip(points, gradients)}
        pairs = zip(tilted.points, tilted.gradients)
        kept = np.array([own.get(y.tobytes(), g - v) for y, g in pairs])
        return PlusCertificate.from_tilted(tilted, kept, v, term, request.delta)

    def _asked(
        self, rng: np.random.Generator, near: list[Vector]
    ) -> tuple[list[Vector], list[Vector]]:
        """Ask for gradients next to x, and next to points that others found useful."""
        delta = self.request.delta
        points: list[Vector] = []
        gradients: list[Vector] = []
        for place in (self.best, *near):
            y = uniform_in_ball(rng, place, JITTER * delta)
            if distance_upper(y, self.best) <= delta:
                with suppress(KinkError):
                    gradients.append(self.f.gradient(y))
                    points.append(y)
        return points, gradients
