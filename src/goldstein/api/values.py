"""Runs on values alone: a search that believes in differences, then a claim that does not."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from goldstein.api.constrained import ConstrainedSearch
from goldstein.api.inputs import LONGEST
from goldstein.api.judge import Judge
from goldstein.certificates import KKTCertificate
from goldstein.certificates.kkt_stating import Around
from goldstein.certificates.values import OfFunction, Source, ValuesCertificate
from goldstein.certificates.values_kkt import ValuesKKTCertificate
from goldstein.certificates.values_kkt_stating import (
    multiples_around,
    source_of,
    state_values_kkt,
)
from goldstein.certificates.values_stating import (
    Statistics,
    balanced,
    places_around,
    promise,
    state_values,
)
from goldstein.checker.arrays import Matrix, Vector
from goldstein.constrained.box import Box
from goldstein.constrained.problem import Problem
from goldstein.constrained.reduction import Violation
from goldstein.constrained.system import System, as_system
from goldstein.errors import InputError, OutOfCalls
from goldstein.numerics.hull import min_norm_weights
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.counted import Map
from goldstein.oracles.differences import Differences, Stencil
from goldstein.oracles.function import ValueOracle
from goldstein.result import History, Status
from goldstein.solvers import Evidence, Request, Solver, State
from goldstein.solvers.evolution import evolve
from goldstein.solvers.loop import run, takes_result
from goldstein.solvers.simplex import close_in
from goldstein.solvers.values import CONFIDENCE, Values
from goldstein.solvers.zeroth_order import AVERAGED, TwoPoints
from goldstein.storage.journal import Journal

#: Of the radius, the part that is left to the search; boxes have the rest.
SEARCHED = 0.85

#: The same where values are noisy, and boxes must be large.
SEARCHED_IN_NOISE = 0.5

#: Of the calls, the part kept back for the claim.
KEPT = 0.1

#: Searches, each four times finer than the one before, until the claim meets the request.
ATTEMPTS = 3

#: A few samples as short as this part of eps are worth more of them.
ENOUGH = 0.6

#: Values for each variable without gain, of so many times the noise, before a noisy search ends:
#: soon in few variables.
SOON, LATER, GAIN, FEW = 8, 16, 30.0, 10

#: In so many variables at most a simplex goes on from there, before a population does.
MOST_CLOSED_IN = 8

#: How far the end of a noisy search may be from a minimum, as a part of the way it went: for a
#: simplex, and for a population; and the most variables of a population.
CLOSE, WAY, MOST_EVOLVED = 0.01, 0.015, 200

#: How often a population is doubled where only noise is left, if no claim is possible anyway.
DOUBLINGS = 3

#: Such a search has so many values without gain where a claim is possible: one is not where noise,
#: over the ball, is so many times eps.
AT_LEAST, HOPELESS = 100, 100.0

#: Endings that no claim about the point would change.
FINAL = (Status.STOPPED, Status.UNBOUNDED, Status.INFEASIBLE)

#: Endings after which a finer search may help.
_FINER = (Status.NOT_VERIFIED, Status.STALLED)


@dataclass
class Found:
    """Where a run on values ended."""

    x: Vector
    fun: float
    status: Status
    certificate: ValuesCertificate | None
    history: History
    steps: int


@dataclass
class ValuesSearch:
    """One run, with all that it was asked."""

    values: CountedOracle
    box: Box
    solver: Solver
    request: Request
    meta: dict[str, Any]
    deadline: float
    central: bool
    workers: Map
    callback: Callable[..., Any] | None = None
    watch: Callable[[State, int], None] | None = None
    constraints: Any = ()
    journal: Journal | None = None
    #: f has a gradient, which the search asks for; it is the constraints that have none.
    exact: bool = False

    def __post_init__(self) -> None:
        confidence = getattr(self.solver, "confidence", CONFIDENCE)
        self._how = Statistics(confidence, self.request.lipschitz, self.request.seed, self.workers)
        self._stencil = Stencil(
            self.box.lower, self.box.upper, self.request.seed, central=self.central
        )
        self._differences = Differences(self.values, self._stencil, self.workers, exact=self.exact)
        self._attempts = 0
        self._found: Found | None = None
        self.system = System((), self.box.lower)

    def _read_constraints(self, x: Vector) -> None:
        given = () if self.constraints is None else self.constraints
        self.system = as_system(given, x, self.journal, self._stencil, self.workers)

    def run(self, start: Vector) -> Found:
        """Search and state, until the claim meets the request or a limit is met."""
        x = self.request.stop.x = self.box.clip(start)
        self._read_constraints(x)
        with contextlib.suppress(OutOfCalls):
            self._differences.listen(x)
        try:
            return self._run(x)
        except KeyboardInterrupt as cause:
            if self._found is None or self.request.stop.by:
                raise
            self.request.stop.note(cause)
            return replace(self._found, status=Status.STOPPED)

    def _run(self, x: Vector) -> Found:
        eps = getattr(self.solver, "search_eps", None) or 0.5 * self.request.eps
        for stage in range(ATTEMPTS):
            target = replace(self.request, eps=eps * 0.25**stage, seed=self.request.seed + stage)
            with self.values.reserved(int(KEPT * (self.values.limit - self.values.calls))):
                later, evidence = self._search(x, target)
                if self._lost(later, evidence):
                    later, evidence = self._evolved(x, later), None
            found = later if self._found is None else _joined(self._found, later)
            x, ended = found.x, found.status
            self._found, self.request.stop.x = found, x
            if ended in FINAL:
                return found
            found.certificate = self._state(found.x, evidence)
            found.status = self._verdict(found.certificate, found.x, ended)
            if found.status not in _FINER or self.request.stop.by:
                break
        return found

    def _verdict(self, certificate: ValuesCertificate | None, x: Vector, ended: Status) -> Status:
        met = certificate is not None and certificate.eps <= self.request.eps
        if met and self._problem(self.values).feasible(x):
            empty = isinstance(certificate, ValuesKKTCertificate) and certificate.degenerate
            return Status.DEGENERATE if empty else Status.VERIFIED
        if self._short_of_calls(certificate):
            return Status.OUT_OF_CALLS
        return Status.NOT_VERIFIED if ended is Status.VERIFIED else ended

    def _short_of_calls(self, certificate: ValuesCertificate | None) -> bool:
        left = self.values.limit - self.values.calls
        return left < 0.05 * self.values.limit or (certificate is None and left < 1000)

    @property
    def _reach(self) -> float:
        share = SEARCHED_IN_NOISE if self._stencil.noise else SEARCHED
        return share * self.request.delta

    @property
    def _limited(self) -> bool:
        """Whether there are bounds or constraints."""
        ends = np.concatenate([self.box.lower, self.box.upper])
        return bool(self.system.size or np.isfinite(ends).any())

    def _problem(self, objective: CountedOracle) -> Problem:
        return Problem(objective, self.box, self.system)

    def _search(self, x: Vector, target: Request) -> tuple[Found, Evidence | KKTCertificate | None]:
        target = replace(target, delta=self._reach)
        if hasattr(self.solver, "scaled"):
            return self._zeroth_order(x, target)
        if self._limited:
            return self._inside(x, target)
        oracle = _Translated(self._differences, longest=LONGEST)
        if isinstance(self.solver, Values):
            oracle.patience = (SOON if x.size <= FEW else LATER) * (x.size + 1)
            if not self._hopeless:
                oracle.patience = max(AT_LEAST, oracle.patience)
        judge = _Reasked(oracle, target, self.meta, False)
        outcome = run(
            self.solver, oracle, x, target, judge=judge, max_time=self._time_left(),
            callback=self._callback(), progress=self._progress(),
        )  # fmt: skip
        state, evidence = outcome.state, outcome.certificate
        if evidence is None:
            evidence = self.solver.best_evidence(state) if oracle.gradients else None
        fun, status = state.fx, Status.STALLED if oracle.tired else outcome.status
        history = oracle.in_values(outcome.history)
        return Found(state.x.copy(), fun, status, None, history, state.steps), evidence

    @property
    def _hopeless(self) -> bool:
        """Whether differences over the ball are noise against eps."""
        reached = self._stencil.noise * math.sqrt(self.box.lower.size) / self.request.delta
        return reached > HOPELESS * self.request.eps

    def _lost(self, found: Found, evidence: Any) -> bool:
        """Whether noise ended a search that can go on otherwise, and no claim is in sight."""
        able = isinstance(self.solver, Values) and not self.system.size
        if not (self._stencil.noise and able) or found.status in (Status.VERIFIED, *FINAL):
            return False
        if evidence is None or self._hopeless:
            return True
        try:
            source = self._claim(evidence)[0]
            seen = promise(source, found.x, self.box, self._how, self._attempts)
        except OutOfCalls:
            return True
        return seen > self.request.eps

    def _evolved(self, start: Vector, found: Found) -> Found:
        """Go on by ranks of values where differences of them say no more."""
        x, noise, seed = found.x, self._stencil.noise, self.request.seed + self._attempts
        if x.size > MOST_EVOLVED:
            return found
        way = float(np.linalg.norm(x - start)) / math.sqrt(x.size)
        way = max(way, self._stencil.step(x).max())

        def values_at(points: Matrix) -> Vector:
            return self.values.values_at(points, self.workers)

        def inside(points: Matrix) -> Matrix:
            return self.box.clip(np.array([self.box.reflect(z) for z in points]))

        def late() -> bool:
            return time.perf_counter() > self.deadline

        place = x
        if x.size <= MOST_CLOSED_IN:
            place = close_in(values_at, inside, place, CLOSE * way, noise, seed, late)
        doublings = DOUBLINGS if self._hopeless else 0
        place = evolve(values_at, inside, place, WAY * way, noise, seed, late, doublings)
        fun = self._value(place)
        return replace(found, x=place, fun=fun) if fun <= found.fun + noise else found

    def _inside(self, x: Vector, target: Request) -> tuple[Found, KKTCertificate | None]:
        """Search inside the bounds, on the penalised function; what it proves is a hint."""
        oracle = _Translated(self._differences, longest=LONGEST)
        search = ConstrainedSearch(
            self._problem(oracle), self.solver, target, self.meta, self.deadline, self._callback(),
            self._progress(), checked=False,
        )  # fmt: skip
        answer = search.run(x)
        hint = answer.certificate if isinstance(answer.certificate, KKTCertificate) else None
        status = answer.status
        if status is Status.NOT_DETERMINISTIC:
            # Differences, next to a smooth minimum: better ones next time.
            self._differences.refine()
            status = Status.NOT_VERIFIED
        found = Found(
            answer.x, self._value(answer.x), status, None,
            oracle.in_values(answer.history), answer.steps,
        )  # fmt: skip
        if answer.status is Status.INFEASIBLE and hint is not None:
            found.certificate = self._of_violation(hint)
        return found, hint

    def _of_violation(self, hint: KKTCertificate) -> ValuesCertificate | None:
        """Say how stationary the violation of the constraints is, where they cannot be met."""
        violation = ValueOracle(Violation(self.system, hint.x))
        counted = CountedOracle(violation, int(max(1, self.values.limit - self.values.calls)))
        self._attempts += 1
        most, used = 1.0 - self._reach / self.request.delta, hint.weights > 0
        places = places_around(
            hint.x, hint.points[used], hint.weights[used], self.request.delta, self.box, most
        )
        try:
            return state_values(
                counted, hint.x, places, self.request.delta, self.request.eps, self.box,
                replace(self._how, lipschitz=None), self._attempts,
                {**self.meta, "function": "violation of the constraints"},
            )  # fmt: skip
        except OutOfCalls:
            return None

    def _zeroth_order(self, x: Vector, target: Request) -> tuple[Found, Evidence | None]:
        if self._limited:
            raise InputError(
                "method='zeroth-order' knows no bounds and no constraints; method='values' does."
            )
        radius = AVERAGED * target.delta
        solver: Solver = self.solver.scaled(x.size, self.request.lipschitz)  # type: ignore[attr-defined]
        oracle = _Translated(TwoPoints(self.values, radius), longest=LONGEST)
        oracle.limit = oracle.calls + (self.values.limit - self.values.calls) / 2.5
        windows = replace(target, delta=target.delta - radius)
        outcome = run(
            solver, oracle, x, windows, judge=_none, max_time=self._time_left(),
            callback=self._callback(), progress=self._progress(),
        )  # fmt: skip
        state = outcome.state
        status = Status.NOT_VERIFIED if outcome.status is Status.ESTIMATED else outcome.status
        place = state.x.copy()
        history = oracle.in_values(outcome.history)
        return Found(place, self._value(place), status, None, history, state.steps), None

    def state(self, x: Vector) -> ValuesCertificate | None:
        """Say what can be said of a point as it is."""
        self._read_constraints(x)
        self._differences.listen(x)
        return self._state(x, None)

    def _state(
        self, x: Vector, evidence: Evidence | KKTCertificate | None
    ) -> ValuesCertificate | None:
        """Return what fresh draws support at x; points and weights are fixed before."""
        self._attempts += 1
        try:
            return self._stated(x, evidence)
        except OutOfCalls:
            return None

    def _stated(
        self, x: Vector, evidence: Evidence | KKTCertificate | None
    ) -> ValuesCertificate | None:
        """State the claim whose differences nearly cancel, as far as a few of them show.

        The points of a search are often closer to kinks than boxes are narrow: others are looked
        for then.
        """
        best, shortest = None, math.inf
        for known in (True, False):
            around = evidence if known else self._around(x)
            if around is None or not np.array_equal(around.x, x):
                continue
            source, state = self._claim(around)
            seen = promise(source, x, self.box, self._how, self._attempts)
            if seen < shortest:
                best, shortest = state, seen
            if seen <= ENOUGH * self.request.eps:
                break
        return None if best is None else best()

    def _claim(
        self, around: Evidence | KKTCertificate
    ) -> tuple[Source, Callable[[], ValuesCertificate | None]]:
        """Return what samples of a claim are drawn from, and how it is stated."""
        x, request, how = around.x, self.request, self._how
        most, blur = 1.0 - self._reach / request.delta, self._differences.blur(x)
        last = (request.delta, request.eps)
        if self.system.size:
            assert isinstance(around, KKTCertificate)
            hint, problem = around, self._problem(self.values)
            multiples = multiples_around(hint, self.box, request.delta, most, blur)
            return source_of(self.values, self.system, multiples, how), lambda: state_values_kkt(
                self.values, problem, hint, multiples, *last, how, self._attempts, self.meta
            )
        noisy = bool(self._stencil.noise) and not self._limited
        weights = np.ones_like(around.weights) if noisy else around.weights
        places = places_around(x, around.points, weights, request.delta, self.box, most, blur)

        def values_at(points: Matrix) -> Vector:
            return self.values.values_at(points, how.workers)

        if noisy:
            places = balanced(values_at, places, how, self._attempts)
        source = OfFunction(values_at, places)
        return source, lambda: state_values(
            self.values, x, places, *last, self.box, how, self._attempts, self.meta
        )

    def _around(self, x: Vector) -> Evidence | KKTCertificate | None:
        """Gather differences at random points of the ball until they nearly cancel."""
        self._differences.refine()
        problem = self._problem(CountedOracle(self._differences))
        around = Around(problem, x, self._reach, self.request.seed)
        with self.values.reserved(int(0.6 * (self.values.limit - self.values.calls))):
            patience = max(10, min(2 * x.size, 100))
            found = around.enrich(0.3 * self.request.eps, patience, self.deadline)
            if found is None:
                return None
            if self.system.size:
                return around.state(found, self.meta)
        every = np.ones(len(around.points), dtype=np.bool_)
        return Evidence(x, np.array(around.points), found.weights, every)

    def _value(self, x: Vector) -> float:
        # The answer itself may always be asked for.
        with self.values.reserved(-1):
            return self._differences.value(x)

    def _callback(self) -> Callable[..., Any] | None:
        """Let a callback see how many values were asked for."""
        user = self.callback
        if user is None:
            return None
        modern = takes_result(user)

        def told(intermediate_result: Any) -> Any:
            if not modern:
                return user(intermediate_result.x)
            return user(intermediate_result=replace(intermediate_result, calls=self.values.calls))

        return told

    def _progress(self) -> Callable[[State, int], None] | None:
        watch = self.watch
        return None if watch is None else lambda state, calls: watch(state, self.values.calls)

    def _time_left(self) -> float | None:
        return None if math.isinf(self.deadline) else max(self.deadline - time.perf_counter(), 1e-3)


class _Translated(CountedOracle):
    """Counts questions, as a solver does, and remembers how many values stood behind them."""

    def __init__(self, inner: Differences | TwoPoints, longest: float) -> None:
        super().__init__(inner, None, longest)
        self._source = inner.values
        self._behind: dict[int, int] = {}
        #: Values without one below all others, by more than noise, before a noisy search ends.
        self.patience: float = math.inf
        self.tired = False
        self._lowest, self._since = math.inf, self._source.calls

    def value(self, x: Vector) -> float:
        try:
            found = super().value(x)
        finally:
            self._behind[self.calls] = self._source.calls
        noise = self.inner.stencil.noise if isinstance(self.inner, Differences) else 0.0
        if found < self._lowest - GAIN * noise:
            self._lowest, self._since = found, self._source.calls
        elif noise and self._source.calls - self._since > self.patience:
            self.tired = True
            raise OutOfCalls("value")
        return found

    def _gradient(self, question: Callable[[Vector], Any], y: Vector, what: str) -> Vector:
        try:
            return super()._gradient(question, y, what)
        finally:
            self._behind[self.calls] = self._source.calls

    def in_values(self, history: History) -> History:
        """Return the course of a run with the values that were asked for by then."""
        return replace(history, calls=[self._behind.get(calls, 0) for calls in history.calls])


class _Reasked(Judge):
    """Differences are taken again at displaced points, in another basis, and no more."""

    def __call__(self, evidence: Evidence) -> tuple[Any, Any]:
        stating, fresh = self._ask_again(evidence)
        if stating is None:
            return None, fresh
        bound = stating.bound()
        if bound > self.request.eps:
            return None, fresh
        weights = min_norm_weights(fresh[1])
        return replace(evidence, points=fresh[0], weights=weights, gradients=fresh[1]), None


def _none(evidence: Evidence) -> tuple[Any, Any]:
    return None, None


def _joined(before: Found, later: Found) -> Found:
    history = before.history.followed_by(later.history)
    return replace(later, history=history, steps=before.steps + later.steps)


def certify_values(
    values: Oracle,
    x: Vector,
    delta: float,
    eps: float,
    box: Box,
    budget: int,
    seed: int,
    meta: dict[str, Any],
    deadline: float,
    constraints: Any = (),
    exact: bool = False,
    workers: Map = map,
) -> ValuesCertificate:
    """Say how stationary a point is, from values alone; the point is never moved."""
    if not box.contains(x):
        raise InputError("x is outside its bounds; clip it: np.clip(x, lower, upper).")
    search = ValuesSearch(
        CountedOracle(values, budget), box, Values(), Request(eps, delta, seed), meta, deadline,
        central=True, workers=workers, constraints=constraints, exact=exact,
    )  # fmt: skip
    found = search.state(x)
    if found is None:
        raise InputError(
            f"{budget} values are too few for a claim about {x.size} variables; raise max_calls."
        )
    return found
