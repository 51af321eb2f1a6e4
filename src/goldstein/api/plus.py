"""Minimise f + h, where h is a convex term known exactly: find the structure, then search in it.

Forward-backward steps find the structure of the answer (its zeros, its rank) where f is smooth; the
solver itself where it is not, and what it leaves next to 0 is set to 0. Then the solver searches
among the points of this structure, in which h is smooth, and the certificate layer decides about f
plus the exact subgradients of h. Where it does not agree, the structure was not the right one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

from goldstein.api.forward_backward import forward_backward
from goldstein.api.judge import Judge, last_calls
from goldstein.certificates.plus import PlusCertificate
from goldstein.certificates.stating import Stating, heaviest
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.fenchel import term_share
from goldstein.checker.rounding import distance_upper
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.hull_problems import shortest_sum
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.tilted import Tilted
from goldstein.prox.term import Chart, Term
from goldstein.result import History, Status
from goldstein.solvers import Request, Solver, State
from goldstein.solvers.enrich import Enrichment, enrich
from goldstein.solvers.loop import ENDINGS, adapt_callback, run, stopped

#: How often structure and search take turns, and by how much targets shrink from turn to turn.
ROUNDS, SHRINK = 10, 0.25

#: The search inside a structure aims at this part of eps and delta: the claim needs some room.
SHARE = 0.25

#: The point next to x where its own gradient is taken, as a part of delta.
JITTER = 1e-3

#: Gradients that differ by this part of the longest, so close to each other, show kinks of f.
JUMP = 0.05

#: Times that gradients are added to a claim, and the subgradient of h chosen anew.
LOOKS = 4


#: Endings of a search that end the run.
_FINAL = (Status.STOPPED, Status.NOT_DETERMINISTIC, Status.WRONG_GRADIENT, Status.UNBOUNDED)


class _Ended(Exception):
    """Control flow inside a run: there is no point in another turn."""

    def __init__(self, status: Status) -> None:
        super().__init__(status)
        self.status = status


class _OnChart(Oracle):
    """f + h in the coordinates of a structure."""

    def __init__(self, f: CountedOracle, chart: Chart) -> None:
        self.f, self.chart = f, chart

    @property
    def name(self) -> str:
        return self.f.name

    def value(self, x: Vector) -> float:
        return self.f.value(self.chart.point(x)) + self.chart.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self.chart.pull(self.f.gradient(self.chart.point(y)), y) + self.chart.slope(y)


@dataclass
class PlusSearch:
    """One run: the point, its value, and what is proved of it so far."""

    f: CountedOracle
    term: Term
    solver: Solver
    request: Request
    meta: dict[str, Any]
    deadline: float
    callback: Callable[..., Any] | None
    watch: Callable[[State, int], None] | None
    checked: bool
    history: History = field(default_factory=History)
    certificate: PlusCertificate | None = None
    steps: int = 0

    @property
    def x(self) -> Vector:
        """The best point so far."""
        assert self.request.stop.x is not None
        return self.request.stop.x

    @x.setter
    def x(self, x: Vector) -> None:
        self.request.stop.x = x

    def run(self, start: Vector) -> tuple[Vector, Status]:
        """Return the point and the status; `certificate` is about this point."""
        self.x = self.term.prox(start, 0.0)
        self._begin = time.perf_counter()
        self._notify = adapt_callback(self.callback)
        self._judge = Judge(self.f, self.request, {}, self.checked)
        self._kinked = False
        status = Status.STALLED
        near: list[Vector] = []
        try:
            with self.f.reserved(last_calls(self.f, start.size)):
                for turn in range(ROUNDS):
                    near = self._improve(turn)
                    if self._proved_simpler(near, turn) or self._proved(near, turn):
                        return self.x, Status.VERIFIED
                    if time.perf_counter() > self.deadline:
                        status = Status.OUT_OF_TIME
                        break
        except OutOfCalls:
            status = Status.OUT_OF_CALLS
        except (StopIteration, KeyboardInterrupt) as cause:
            status = stopped(cause, self.f, self.request)
        except _Ended as end:
            status = end.status
        except tuple(ENDINGS) as ending:
            status = ENDINGS[type(ending)]
        return self.x, self._last_word(near, status)

    def _last_word(self, near: list[Vector], status: Status) -> Status:
        """Prove what can be proved of the last point; return how the run ended then."""
        if status in _FINAL[1:]:
            self.certificate = None
            return status
        if self.certificate is not None and np.array_equal(self.certificate.x, self.x):
            return status
        self.certificate = None
        try:
            return Status.VERIFIED if self._proved(near, ROUNDS) else status
        except OutOfCalls:
            return status
        except tuple(ENDINGS) as ending:
            return ENDINGS[type(ending)]

    def value(self, x: Vector) -> float:
        return self.f.value(x) + self.term.value(x)

    def _moved(self, x: Vector, bound: float = math.inf) -> None:
        """Go to x, and tell those who watch."""
        self.x, self.steps = x, self.steps + 1
        state = State(x=x, fx=self.value(x), bound=bound, radius=self.request.delta)
        self.history.append(
            self.f.calls, state.fx, bound, state.radius, time.perf_counter() - self._begin
        )
        if self.watch is not None:
            self.watch(state, self.f.calls)
        if self._notify is not None:
            self._notify(state, self.f.calls)

    def _improve(self, turn: int) -> list[Vector]:
        """Find a structure and search in it; return points whose gradients may cancel."""
        term, request = self.term, self.request
        target = replace(
            request, eps=SHARE * request.eps * SHRINK ** (turn / 2),
            delta=SHARE * request.delta * SHRINK**turn, seed=request.seed + turn,
        )  # fmt: skip
        limits, x = term.limits(self.x.size), self.x
        if not self._kinked and (limits is None or turn == 0):
            x, smooth = forward_backward(
                self.f, term, x, request.eps, request.delta, partial(setattr, self, "x")
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
            snapped = self._snapped(x, target)
            if np.array_equal(snapped, x):
                return near
            self._moved(snapped)
        chart = term.chart(self.x)
        assert chart is not None
        x, near = self._search(chart, target)
        self._moved(x)
        return near

    def _snapped(self, x: Vector, target: Request) -> Vector:
        """Remove what is small, as much as f + h does not mind."""
        here = self.value(x)
        for width in (8.0 * target.delta, 2.0 * target.delta, 0.5 * target.delta):
            z = self.term.snap(x, width)
            far = float(np.linalg.norm(z - x))
            if far == 0.0 or self.value(z) <= here + 4.0 * self.request.eps * far:
                return z
        return self.term.snap(x, 0.1 * target.delta)

    def _search(self, chart: Chart, target: Request) -> tuple[Vector, list[Vector]]:
        """Let the solver search in these coordinates."""
        if chart.start.size == 0:
            return chart.point(chart.start), []
        counted = CountedOracle(_OnChart(self.f, chart))
        if chart.bounds is not None:
            return self._between(counted, chart, chart.bounds, target)
        judge = Judge(counted, target, {}, self.checked)
        outcome = run(
            self.solver, counted, chart.start, target, judge=judge, suspect=judge.suspect,
            max_time=self._time_left(),
        )  # fmt: skip
        self._end_if_final(outcome.status, chart.point(outcome.state.x))
        points = [] if outcome.certificate is None else list(outcome.certificate.points)
        return chart.point(outcome.state.x), [chart.point(u) for u in points]

    def _between(
        self, oracle: Oracle, chart: Chart, bounds: list[tuple[float, float]], target: Request
    ) -> tuple[Vector, list[Vector]]:
        """Let the solver search in these coordinates, between their bounds."""
        result = self._limited(oracle, chart.start, target, {"bounds": bounds})
        self._end_if_final(result.status, chart.point(result.x))
        points = [] if result.certificate is None else list(result.certificate.points)
        return chart.point(result.x), [chart.point(u) for u in points]

    def _limited(self, f: Oracle, x: Vector, target: Request, limits: dict[str, Any]) -> Any:
        from goldstein.api.minimize import minimize

        result = minimize(
            f, x, eps=target.eps, delta=target.delta, rng=target.seed, method=self.solver,
            max_calls=max(1, int(self.f.limit - self.f.calls)), max_time=self._time_left(),
            **limits,
        )  # fmt: skip
        self.request.stop.by = result.stopped_by or ""
        return result

    def _inside(self, limits: dict[str, Any], target: Request) -> list[Vector]:
        """Search in the domain of an indicator function."""
        result = self._limited(self.f, self.x, target, limits)
        inside = self.term.prox(result.x, 0.0)
        self._end_if_final(result.status, inside)
        self._moved(inside)
        return [] if result.certificate is None else list(result.certificate.points)

    def _time_left(self) -> float | None:
        left = self.deadline - time.perf_counter()
        return None if math.isinf(left) else max(left, 1e-3)

    def _end_if_final(self, status: Status, x: Vector) -> None:
        if status in _FINAL:
            self.x = x
            raise _Ended(status)

    def _proved_simpler(self, near: list[Vector], turn: int) -> bool:
        """Try the point without what is smaller than delta: the claim may hold of it as well."""
        x, simpler = self.x, self.term.snap(self.x, self.request.delta)
        far = float(np.linalg.norm(simpler - x))
        if far == 0.0 or self.term.structure(simpler) == self.term.structure(x):
            return False
        if self.value(simpler) > self.value(x) + self.request.eps * far:
            return False
        self.x = simpler
        if self._proved(near, turn):
            self._moved(simpler)
            return True
        self.x, self.certificate = x, None
        return False

    def _proved(self, near: list[Vector], turn: int) -> bool:
        """State what can be proved of x; return whether it is what was asked for."""
        claim = self._claim(near, turn)
        if claim is None:
            return False
        known = self.certificate
        if known is None or not np.array_equal(known.x, self.x) or claim.eps < known.eps:
            self.certificate = claim
        if claim.eps > self.request.eps:
            return False
        self._judge.look(self.x, heaviest(claim))
        return True

    def _claim(self, near: list[Vector], turn: int) -> PlusCertificate | None:
        x, request, term = self.x, self.request, self.term
        rng = stream(request.seed, turn, "plus")
        self.f.require_visible(x, request.delta)
        points, gradients = self._asked(rng, near)
        if not points:
            return None
        self._kinked = self._kinked or _jump(gradients)
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
                CountedOracle(Tilted(self.f, v)), x, request.delta, enough, request.seed + look,
                found, patience=x.size + 10, deadline=self.deadline,
            )  # fmt: skip
            points += found.points[before:]
            gradients += [g - v for g in found.gradients[before:]]
            if len(points) == before:
                break
        rows = np.array(gradients) + v
        share = term_share(term.to_record(), x, v, request.delta, weights, rows)
        if not share < request.eps:
            return None
        stating = Stating(
            CountedOracle(Tilted(self.f, v)), x, request.delta, np.array(points), rows, request.seed
        )
        if length <= enough:
            known = [(y, g - v) for y, g in stating.rests_on()]
            stating.resolution = self._judge.look(x, known)
        tilted = stating.claim(request.eps - 2.0 * share, self.meta, weights=weights)
        if tilted is None:
            return None
        own = {y.tobytes(): g for y, g in zip(points, gradients)}
        kept: Matrix = np.array([own[y.tobytes()] for y in tilted.points])
        return PlusCertificate.from_tilted(tilted, kept, v, term, request.delta)

    def _asked(
        self, rng: np.random.Generator, near: list[Vector]
    ) -> tuple[list[Vector], list[Vector]]:
        """Ask for gradients next to x, and next to points that others found useful."""
        delta = self.request.delta
        points: list[Vector] = []
        gradients: list[Vector] = []
        for place in (self.x, *near):
            y = uniform_in_ball(rng, place, JITTER * delta)
            if distance_upper(y, self.x) > delta:
                continue
            try:
                gradients.append(self.f.gradient(y))
                points.append(y)
            except KinkError:
                continue
        return points, gradients


def _jump(gradients: list[Vector]) -> bool:
    longest = max(float(np.linalg.norm(g)) for g in gradients)
    apart = max(float(np.linalg.norm(g - gradients[0])) for g in gradients)
    return apart > JUMP * longest
