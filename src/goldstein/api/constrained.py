"""`minimize` and `certify` with bounds and constraints: apply the reduction, solve, invert."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.api.judge import Judge
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.kkt_stating import Around, state_kkt
from goldstein.certificates.near_kkt import NearKKTCertificate
from goldstein.certificates.stating import NOISE
from goldstein.certificates.verifying import checked
from goldstein.checker.arrays import Vector
from goldstein.checker.rounding import norm_upper
from goldstein.constrained.box import Box, off_bounds
from goldstein.constrained.chart import Chart
from goldstein.constrained.coordinates import Coordinates
from goldstein.constrained.head_start import head_start
from goldstein.constrained.problem import Problem
from goldstein.constrained.reduction import Boxed, Component, Penalised, Violation
from goldstein.constrained.restore import restored
from goldstein.errors import (
    InputError,
    KinkError,
    NotDeterministicError,
    OracleError,
    OutOfCalls,
    OutOfTime,
    UnresolvedError,
    WrongGradientError,
)
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.agreement import gradient_is_wrong
from goldstein.result import History, Status
from goldstein.solvers import Evidence, Request, Solver, State
from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.loop import Outcome, adapt_callback, run, stopped

#: Gradients without gain before a point is given up that may still get better.
EARLY_PATIENCE = 3

#: A head start ends where f falls by less than so many times eps * delta.
EARLY_FALL = 10.0

#: The penalty is solved to this part of eps and of delta: the rest is room to restore and to snap.
SHARE = 0.5

#: What a weight is multiplied by where its constraint stays violated, and how often at most.
RAISE, RAISES = 8.0, 10

#: After so many raises one looks whether there is any feasible point at all.
DOUBT = 3

#: Charts along curved equalities, before penalties take over; none next to a kink of theirs.
CHARTS, BESIDE = 10, 4.0

#: Times that a claim is checked before it is stated.
CHECKS = 3

#: Runs of the solver, all in all.
STAGES = 40

#: Coordinates go onto a bound within this part of delta, all together.
SNAP = 0.4

#: A search begins this part of delta off the bounds.
OFF = 0.01

#: Endings of a run that are none of the penalty's doing.
FINAL = (
    Status.STOPPED,
    Status.OUT_OF_TIME,
    Status.OUT_OF_CALLS,
    Status.NOT_DETERMINISTIC,
    Status.WRONG_GRADIENT,
)

#: Answers that no further stage would change.
DECIDED = (Status.VERIFIED, Status.DEGENERATE, *FINAL)

RUNAWAY = (Status.UNBOUNDED, Status.BALL_TOO_SMALL)


@dataclass
class Answer:
    """Where a constrained search ended, and what was proved there."""

    x: Vector
    status: Status
    certificate: KKTCertificate | NearKKTCertificate | None
    history: History
    steps: int
    detail: str = ""

    def followed_by(self, later: Answer) -> Answer:
        """Return the later answer, with the way to this one before its own."""
        history = self.history.followed_by(later.history)
        return replace(later, history=history, steps=self.steps + later.steps)


@dataclass
class ConstrainedSearch:
    """Runs of a solver on the penalised function, its weights rising until x is feasible."""

    problem: Problem
    solver: Solver
    request: Request
    meta: dict[str, Any]
    deadline: float = math.inf
    callback: Callable[..., Any] | None = None
    watch: Callable[[State, int], None] | None = None
    checked: bool = True
    head_start: bool = True

    def __post_init__(self) -> None:
        self._history = History()
        self._steps = 0
        self._stop = self.request.stop
        self._rho: Vector = np.zeros(0)
        self._wall = 1.0
        self._target = replace(
            self.request, eps=SHARE * self.request.eps, delta=SHARE * self.request.delta
        )
        self._last: Answer | None = None
        #: What was proved while a search was still going on.
        self._proved: Answer | None = None
        self._along: Coordinates | Chart | None = None
        self._charts = CHARTS
        self._raises, self._feasible_known, self._given_up = 0, False, False

    def run(self, start: Vector) -> Answer:
        """Search from the point of the box nearest to `start`."""
        self._stop.x = x = self.problem.box.clip(start)
        try:
            return self._run(x)
        except (StopIteration, KeyboardInterrupt) as cause:
            if self._stop.by:
                raise
            status = stopped(cause, self.problem.objective, self.request)
            return self._judged(self._best, None, status)

    @property
    def _best(self) -> Vector:
        assert self._stop.x is not None
        return self._stop.x

    def _run(self, x: Vector) -> Answer:
        answer = self._begin(x)
        for stage in range(STAGES):
            if answer is None:
                x, answer = self._stage(x, stage)
                self._stop.x = x
            if answer is not None or self._given_up or self.request.stop.by:
                break
        if answer is not None:
            return answer
        if self.request.stop.by:
            return self._judged(x, None, Status.STOPPED)
        if self._last is None:
            return self._answer(x, Status.NOT_VERIFIED, None)
        return replace(self._last, status=Status.NOT_VERIFIED)

    def _begin(self, x: Vector) -> Answer | None:
        """Return the answer where no penalty is needed for it; else choose the first weights."""
        if self.problem.box.fixed.all():
            return self._judged(x, None, Status.NOT_VERIFIED)
        wrong = self._wrong_constraint(x)
        if wrong:
            return self._answer(x, Status.WRONG_GRADIENT, None, f"that of {wrong}")
        try:
            early = self._early(x)
            if early is None:
                self._first_weights(x)
        except OutOfCalls:
            return self._answer(x, Status.OUT_OF_CALLS, None)
        return early

    def _stage(self, x: Vector, stage: int) -> tuple[Vector, Answer | None]:
        """Minimise the penalised function once; return where to go on, or the answer."""
        penalised = Penalised(self.problem, self._rho, self._wall, self._coordinates(x))
        target = replace(self._target, seed=self._target.seed + stage)
        try:
            outcome = self._solve(penalised, x, target, self._proves)
        except OracleError as failure:
            # Far outside the feasible set a function need not be defined.
            if penalised.best is None or not self._rho.size or self._raises >= RAISES:
                raise
            self.problem.excuse(failure)
            return self._steeper(penalised, x), None
        if penalised.steepest > self._wall:
            self._wall = 4.0 * penalised.steepest
        if self._proved is not None:
            return x, replace(self._proved, history=self._history, steps=self._steps)
        if penalised.left is not None:
            self._along, self._charts = None, self._charts - 1
            return penalised.left, None
        if outcome.status in RUNAWAY:
            if penalised.best is not None and penalised.best[0] < VALUE_LIMIT:
                return x, self._answer(penalised.best[1], Status.UNBOUNDED, None)
            if self._raises >= RAISES:
                return x, self._answer(x, outcome.status, None)
            return self._steeper(penalised, x), None
        y = penalised.invert(outcome.state.x)
        if outcome.status in (Status.WRONG_GRADIENT, Status.NOT_DETERMINISTIC):
            return y, self._answer(y, outcome.status, None, self._blame(y, outcome.status))
        self._last = self._judged(y, self._evidence(outcome), outcome.status, penalised)
        if self._last.status in DECIDED or outcome.status in FINAL:
            return y, self._last
        if isinstance(self._along, Chart):
            # It may have led to its own end: penalties decide.
            self._along, self._charts = None, 0
            return y, None
        return self._next(penalised, y, outcome.status)

    def _next(self, penalised: Penalised, y: Vector, ended: Status) -> tuple[Vector, Answer | None]:
        """Decide what a claim that failed calls for: a smaller ball, or larger weights."""
        last = self._last
        assert last is not None
        x = last.x
        if time.perf_counter() > self.deadline:
            return x, replace(last, status=Status.OUT_OF_TIME)
        excess, target = self._excess(y), self._target
        if self.problem.feasible(x):
            # The claim failed for another reason: a smaller ball leaves more room for it.
            if target.delta <= 2.0**-6 * self.request.delta:
                return x, replace(last, status=_unproved(ended))
            self._target = replace(target, eps=0.5 * target.eps, delta=0.25 * target.delta)
            return x, None
        self._raises += 1
        if self._raises >= RAISES or (self._raises == DOUBT and not self._feasible_known):
            infeasible, x = self._least_violation(x)
            if infeasible is not None:
                return x, infeasible
            self._feasible_known = True
        if self._raises >= RAISES:
            self._given_up = True
        else:
            self._raise(excess != 0.0, penalised)
        return x, None

    def _coordinates(self, x: Vector) -> Coordinates | Chart:
        if self._along is None:
            near = BESIDE * self.request.delta
            chart = Chart(self.problem, x, near) if self._charts else None
            along = chart if chart is not None and chart.made else None
            self._along = along or Coordinates(self.problem, x)
        return self._along

    def _steeper(self, penalised: Penalised, x: Vector) -> Vector:
        """Raise all weights and return the best point met."""
        self._raises += 1
        self._raise(np.ones(self._rho.size, dtype=bool), penalised)
        return x if penalised.best is None else penalised.best[1]

    def _early(self, x: Vector) -> Answer | None:
        """Return the answer if a smooth search already finds it."""
        if not (self.head_start and self.solver.name == "auto"):
            return None
        notify = adapt_callback(self.callback)
        begin = time.perf_counter()
        known: list[tuple[Vector, Vector]] = []

        def seen(y: Vector, value: float, gradient: Vector) -> None:
            self._stop.x = y
            known.append((y, gradient))
            self._steps += 1
            calls, now = self.problem.objective.calls, time.perf_counter()
            violation = self.problem.system.violation(y)
            self._history.append(calls, value, math.inf, self.request.delta, now - begin)
            self._history.violation.append(violation)
            if notify is not None:
                notify(State(x=y, fx=value, violation=violation), calls)
            if now > self.deadline:
                raise OutOfTime("value")

        try:
            enough = EARLY_FALL * self.request.eps * self.request.delta
            place = head_start(self.problem, x, enough, seen)
        except OutOfTime:
            return self._judged(self._best, None, Status.OUT_OF_TIME)
        if place is None:
            return None
        answer = self._judged(place, None, Status.NOT_VERIFIED, early=True, known=known)
        return answer if answer.status is Status.VERIFIED else None

    def _proves(self, evidence: Evidence, penalised: Boxed) -> bool:
        """Whether what the search knows so far is KKT: multipliers are freer than weights."""
        y = penalised.invert(evidence.x)
        answer = self._judged(y, evidence, Status.NOT_VERIFIED, penalised, early=True)
        self._proved = answer if answer.status is Status.VERIFIED else None
        return self._proved is not None

    def _first_weights(self, x: Vector) -> None:
        """Start near the ratio of the lengths of the gradients."""
        box, rng = self.problem.box, stream(self.request.seed, 0, "weights")
        jitter = 0.25 * self.request.delta * rng.standard_normal(x.size) / math.sqrt(x.size)
        y = box.reflect(x + jitter)
        try:
            gradient, _, rows = self.problem.answers(y)
        except KinkError:
            gradient, rows = np.ones(x.size), np.ones((self.problem.system.size, x.size))
        length = float(np.linalg.norm(gradient)) or 1.0
        sizes = np.linalg.norm(rows, axis=1)
        sizes[sizes < 1e-6 * sizes.max(initial=0.0)] = sizes.max(initial=0.0)
        sizes[sizes == 0.0] = 1.0
        self._rho = length / sizes
        steepest = np.abs(gradient) + self._rho @ np.abs(rows)
        self._wall = 2.0 * float(steepest.max()) or 1.0

    def _raise(self, which: NDArray[np.bool_], penalised: Penalised) -> None:
        self._rho = np.where(which, RAISE * self._rho, self._rho)
        self._wall = max(self._wall, 4.0 * penalised.steepest)
        if self._rho.size:
            self._wall *= RAISE

    def _excess(self, x: Vector) -> Vector:
        system = self.problem.system
        return system.excess(system.values(x))

    def _solve(
        self,
        penalised: Boxed,
        x: Vector,
        request: Request,
        proves: Callable[[Evidence, Boxed], bool] | None = None,
    ) -> Outcome:
        objective = self.problem.objective
        counted = CountedOracle(penalised)
        judge = _Reasked(counted, request, self.meta, self.checked)
        if proves is not None:
            judge.proves = lambda evidence: proves(evidence, penalised)
        left = max(self.deadline - time.perf_counter(), 1e-3)
        kept = int(min(6 * (x.size + 8), (objective.limit - objective.calls) // 4))
        before, begin = objective.calls, off_bounds(x, OFF * self.request.delta, self.problem.box)
        with objective.reserved(max(kept, 0)):
            outcome = run(
                self.solver, counted, penalised.apply(begin), request, judge=judge,
                suspect=judge.suspect, max_time=None if math.isinf(left) else left,
                callback=self._shown(penalised), progress=self._watched(penalised),
            )  # fmt: skip
        if counted.closed:
            objective.close()
        self._history = self._history.followed_by(_translated(outcome.history, penalised, before))
        self._steps += outcome.state.steps
        return outcome

    def _evidence(self, outcome: Outcome) -> Evidence | None:
        """Return what a run knows about its last point."""
        if not math.isfinite(outcome.state.fx):
            return None  # without a value it has not even started
        found: Evidence | None = outcome.certificate or self.solver.best_evidence(outcome.state)
        return found

    def _shown(self, function: Boxed) -> Callable[..., Any] | None:
        """Callbacks see points of the problem, inside its bounds, with f and the violation."""
        if self.callback is None:
            return None
        notify = adapt_callback(self.callback)

        def shown(intermediate_result: Any) -> None:
            found = intermediate_result
            state = State(x=found.x, fx=found.fun, bound=found.bound)
            assert notify is not None
            notify(_as_seen(state, function), self.problem.objective.calls)

        return shown

    def _watched(self, function: Boxed) -> Callable[[State, int], None] | None:
        """Whoever watches sees the same."""
        if self.watch is None:
            return None
        watch = self.watch
        return lambda state, _: watch(_as_seen(state, function), self.problem.objective.calls)

    def _judged(
        self,
        y: Vector,
        evidence: Evidence | None,
        status: Status,
        penalised: Boxed | None = None,
        early: bool = False,
        known: Sequence[tuple[Vector, Vector]] = (),
    ) -> Answer:
        """Snap, restore, gather and state; decide what the claim is worth.

        `early`: where it is not worth what was asked for, little is spent on it. `known`: points
        with gradients of f, of which those are used that help.
        """
        problem, request, self._stop.x = self.problem, self.request, y
        seeds: list[tuple[Vector, Vector | None]] = []
        if penalised is not None and evidence is not None:
            inside = [penalised.invert(z) for z in evidence.points]
            # What is known of places that were not drawn at random may be known of a kink.
            seeds = [
                (z, penalised.remembered(z) if drawn else None)
                for z, drawn in zip(inside, evidence.perturbed)
            ]
        around = Around(problem, y, request.delta, request.seed)
        certificate = None
        patience = EARLY_PATIENCE if early else max(20, min(4 * y.size, 200))
        try:
            rng = stream(request.seed, len(seeds), "seeds")
            for z, gradient in seeds:
                place = _jittered(rng, z, y, request.delta, problem.box) if gradient is None else z
                around.ask(place, gradient)
            if not around.points:
                around.ask(_jittered(rng, y, y, request.delta, problem.box))
            around = around.moved_to(self._placed(around))
            around.keep(known)
            if early and not problem.feasible(around.x):
                return self._answer(around.x, status, None)
            certificate = state_kkt(
                around, request.eps, self.meta, patience=patience, deadline=self.deadline,
                or_nothing=early,
            )  # fmt: skip
        except OutOfCalls:
            status = Status.OUT_OF_CALLS
        except NotDeterministicError:
            status = Status.NOT_DETERMINISTIC
        except UnresolvedError as failure:
            if early:
                return self._answer(around.x, status, None)
            return self._answer(around.x, Status.BALL_TOO_SMALL, None, str(failure))
        answer = self._decided(around.x, certificate, status)
        unproved = status is Status.VERIFIED and answer.status is Status.NOT_VERIFIED
        # What held for the reduced function and fails here may be a claim about noise.
        if unproved and self._noisy(around):
            return self._answer(around.x, Status.NOT_DETERMINISTIC, None)
        return answer

    def _noisy(self, around: Around) -> bool:
        """Whether a gradient that is asked again differs visibly."""
        objective = self.problem.objective
        with contextlib.suppress(KinkError, OutOfCalls):
            for y, gradient in zip(around.points[:1], around.gradients):
                gap = norm_upper(objective.gradient(y) - gradient)
                return gap > NOISE * max(self.request.eps, norm_upper(gradient))
        return False

    def _decided(self, x: Vector, certificate: KKTCertificate | None, status: Status) -> Answer:
        problem = self.problem
        if certificate is None or certificate.eps > self.request.eps or not problem.feasible(x):
            return self._answer(x, _unproved(status), certificate)
        if certificate.degenerate:
            return self._answer(x, Status.DEGENERATE, certificate)
        before = problem.failures
        for k in range(CHECKS):  # whoever verifies the claim looks elsewhere
            found = checked(
                certificate, problem.objective, problem.box, problem.system,
                self.request.seed + 2 + k, self.checked,
            )  # fmt: skip
            if not found.ok:
                break
        for failure in problem.failures:
            if failure not in before:  # to a check it is one of the function's faults
                raise failure
        if found.ok:
            return self._answer(x, Status.VERIFIED, certificate)
        if problem.objective.calls >= problem.objective.limit:
            return self._answer(x, Status.OUT_OF_CALLS, certificate)
        failed = {check.name: check.message for check in found.checks if not check.ok}
        if "resolution" in failed:
            return self._answer(x, Status.BALL_TOO_SMALL, None, failed["resolution"])
        if "values" in failed:
            return self._answer(x, Status.WRONG_GRADIENT, None, failed["values"])
        if "qualification" in failed:
            return self._answer(x, Status.DEGENERATE, certificate)
        return self._answer(x, _unproved(status), None)

    def _placed(self, around: Around) -> Vector:
        """Return x moved onto the bounds that carry a normal, and back to the constraints."""
        problem, x, delta = self.problem, around.x, self.request.delta
        box = problem.box
        held = np.zeros(x.size, dtype=bool)
        if around.points and not problem.feasible(x):
            # Which bounds push shows only where the constraints hold.
            around = around.moved_to(restored(problem, x, 0.5 * delta, held, self.request.seed))
            x = around.x
        if around.points:
            around.look_for_limits()
            low, high = x - box.lower <= SNAP * delta, box.upper - x <= SNAP * delta
            normal = around.combine(low, high).normal
            target = np.where(normal < 0, box.lower, np.where(normal > 0, box.upper, x))
            order = np.argsort(np.abs(target - x))
            gaps = np.cumsum(np.abs(target - x)[order] ** 2)
            held[order[gaps <= (SNAP * delta) ** 2]] = True
            held &= normal != 0.0
            x = np.where(held, target, x)
        return restored(problem, x, 0.5 * delta, held, self.request.seed)

    def _least_violation(self, x: Vector) -> tuple[Answer | None, Vector]:
        """Minimise the violation alone: a feasible point, or the answer that there is none."""
        problem = self.problem
        violation = Violation(problem.system, x)
        sizes = np.linalg.norm(problem.system.rows(x), axis=1)
        small = float(sizes[sizes > 0].min(initial=1.0))
        alone = Problem(CountedOracle(_Billed(violation, problem)), problem.box, _none(x))
        request = replace(self.request, eps=min(self.request.eps, 1e-3 * small))
        meta = {**self.meta, "function": "violation of the constraints"}
        search = ConstrainedSearch(
            alone, self.solver, request, meta, self.deadline, checked=self.checked,
            head_start=False,
        )  # fmt: skip
        found = search.run(x)
        place = restored(
            problem, found.x, self.request.delta, np.zeros(x.size, dtype=bool), request.seed
        )
        if problem.feasible(place):
            return None, place
        self._history = self._history.followed_by(found.history)
        self._steps += found.steps
        if found.status is Status.VERIFIED:
            if self._nearly_feasible(found.x):
                return self._answer(found.x, Status.DEGENERATE, None), found.x
            return self._answer(found.x, Status.INFEASIBLE, found.certificate), found.x
        if found.status in FINAL:
            return self._answer(found.x, found.status, None), found.x
        return None, found.x

    def _nearly_feasible(self, x: Vector) -> bool:
        """Whether constraints, taken as linear, could all be met within the ball."""
        sizes = np.linalg.norm(self.problem.system.rows(x), axis=1)
        return bool((np.abs(self._excess(x)) <= self.request.delta * sizes).all())

    def _blame(self, x: Vector, status: Status) -> str:
        """Name the function whose gradient is wrong."""
        if status is not Status.WRONG_GRADIENT:
            return ""
        problem = self.problem
        functions: list[Oracle] = [problem.objective]
        functions += [Component(problem.system, i) for i in range(problem.system.size)]
        try:
            wrong = self._wrong(functions, x)
        except OutOfCalls:
            wrong = self._wrong(functions[1:], x)
        return f"that of {', '.join(wrong)}" if wrong else ""

    def _wrong_constraint(self, x: Vector) -> str:
        """Name a constraint whose gradient is wrong next to the start: it would only mislead."""
        system = self.problem.system
        if not self.checked or system.linear.all() or not self._wrong([Component(system)], x):
            return ""
        each: list[Oracle] = [Component(system, i) for i in range(system.size)]
        return ", ".join(self._wrong(each, x))

    def _wrong(self, functions: list[Oracle], x: Vector) -> list[str]:
        radius = max(self.request.delta, 1e-3 * max(1.0, float(np.abs(x).max())))
        return wrong_gradients(functions, self.problem.box, x, radius, self.request.seed)

    def _answer(
        self,
        x: Vector,
        status: Status,
        certificate: KKTCertificate | NearKKTCertificate | None,
        detail: str = "",
    ) -> Answer:
        return Answer(x, status, certificate, self._history, self._steps, detail)


class _Reasked(Judge):
    """KKT is decided at once where it can be; else gradients of the reduced function are asked
    again, and no more: KKT is decided later."""

    proves: Callable[[Evidence], bool] | None = None

    def __call__(self, evidence: Evidence) -> tuple[Any, Any]:
        # What failed may fail again: after the second time more and more seldom.
        due = self.trials & (self.trials + 1) == 0
        if due and self.proves is not None and self.proves(evidence):
            return evidence, None
        stating, fresh = self._ask_again(evidence)
        if stating is None or stating.bound() > self.request.eps:
            return None, fresh
        return replace(evidence, points=fresh[0], gradients=fresh[1]), None


class _Billed(Oracle):
    """The violation as an objective; its calls are paid from the budget of the problem."""

    def __init__(self, inner: Violation, problem: Problem) -> None:
        self.inner, self.problem, self.dim = inner, problem, inner.dim

    @property
    def name(self) -> str:
        return "the violation of the constraints"

    def _pay(self) -> None:
        if self.problem.objective.calls >= self.problem.objective.limit:
            raise OutOfCalls("violation")

    def value(self, x: Vector) -> float:
        self._pay()
        self.problem.objective.spend(1, 0)
        return self.inner.value(x)

    def gradient(self, y: Vector) -> Vector:
        self._pay()
        self.problem.objective.spend(0, 1)
        return self.inner.gradient(y)


def _as_seen(state: State, function: Boxed) -> State:
    """Return the state of a solver in terms of the problem: x, f and the violation."""
    value, violation = function.course.get(state.fx, (state.fx, math.nan))
    return replace(state, x=function.invert(state.x), fx=value, violation=violation)


def _translated(history: History, function: Boxed, before: int) -> History:
    """Return the course of a run on a reduced function in terms of f and the violation."""
    told = [function.course.get(value, (value, math.nan)) for value in history.fun]
    return replace(
        history,
        calls=[before + calls for calls in history.calls],
        fun=[value for value, _ in told],
        violation=[violation for _, violation in told],
    )


def _none(x: Vector) -> Any:
    from goldstein.constrained.system import System

    return System((), x)


def _unproved(status: Status) -> Status:
    """A solver's own success is none of ours."""
    return Status.NOT_VERIFIED if status is Status.VERIFIED else status


def _jittered(rng: np.random.Generator, z: Vector, x: Vector, delta: float, box: Box) -> Vector:
    """Move a point a little at random, off faces and kinks, inside ball and box."""
    moved = z + 1e-4 * delta * rng.standard_normal(z.size) / math.sqrt(z.size)
    pulled: Vector = box.clip(box.reflect(x + 0.999 * (moved - x)))
    return pulled


def wrong_gradients(
    functions: list[Oracle], box: Box, x: Vector, radius: float, seed: int
) -> list[str]:
    """Return the names of functions whose gradients differences of values contradict."""
    return [f.name for f in functions if gradient_is_wrong(f, x, radius, seed, box)]


def certify_constrained(
    problem: Problem,
    x: Vector,
    delta: float,
    eps: float,
    seed: int,
    meta: dict[str, Any],
    deadline: float,
) -> KKTCertificate:
    """State how close to KKT a point is, without moving it."""
    if not problem.box.contains(x):
        outside = int(np.flatnonzero((x < problem.box.lower) | (x > problem.box.upper))[0])
        raise InputError(
            f"x[{outside}] = {x[outside]:g} is outside its bounds; a KKT point is inside them, "
            "exactly. Clip it: np.clip(x, lower, upper)."
        )
    around = Around(problem, x, delta, seed)
    patience = max(30, min(4 * x.size, 400))
    certificate = state_kkt(around, eps, meta, patience=patience, deadline=deadline)
    if certificate is None:
        raise InputError(
            f"no gradient could be had within {delta:g} of x; raise max_calls or delta."
        )
    functions: list[Oracle] = [
        Component(problem.system, i) for i in certificate.active if not problem.system.linear[i]
    ]
    wrong = wrong_gradients(functions, problem.box, x, delta, seed)
    with contextlib.suppress(OutOfCalls):
        wrong += wrong_gradients([problem.objective], problem.box, x, delta, seed)
    if wrong:
        raise WrongGradientError(wrong[0])
    return certificate
