"""Bounds and constraints: exact penalties that rise until the point is feasible.

The solver gets the penalised function in coordinates along equalities; what it finds is snapped to
bounds, restored to the constraints, and claimed to be KKT.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.verifying import CHECKS, checked, confirmed
from goldstein.checker.arrays import Vector
from goldstein.checker.blackbox.differences import NOISE
from goldstein.checker.constrained.box import Box
from goldstein.checker.rounding import norm_upper
from goldstein.construction.judge import Judge
from goldstein.construction.kkt_claim import Around, state_kkt
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
from goldstein.oracles.constraints import System
from goldstein.oracles.problem import Problem
from goldstein.reductions.base import DECIDED, FINAL, Answer, Reduced, Reduction, Run
from goldstein.reductions.chart import Chart
from goldstein.reductions.coordinates import Coordinates
from goldstein.reductions.functions import Boxed, Component, Penalised, Violation, off_bounds
from goldstein.reductions.head_start import head_start
from goldstein.reductions.restore import restored
from goldstein.result import Status
from goldstein.solvers import Evidence, Request
from goldstein.solvers.base import VALUE_LIMIT
from goldstein.solvers.loop import Outcome

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

#: Coordinates go onto a bound within this part of delta, all together.
SNAP = 0.4

#: A search begins this part of delta off the bounds.
OFF = 0.01

RUNAWAY = (Status.UNBOUNDED, Status.BALL_TOO_SMALL)


class Limited(Reduction):
    """What searches inside bounds and constraints share: how they end, and what they claim."""

    def __init__(self, run: Run) -> None:
        super().__init__(run)
        request = self.request
        self._rho: Vector = np.zeros(0)
        self._wall = 1.0
        self._target = replace(request, eps=SHARE * request.eps, delta=SHARE * request.delta)

    def begin(self, x: Vector) -> Vector | Answer:
        if self.problem.box.fixed.all():
            return self.judged(x, None, Status.NOT_VERIFIED)
        wrong = self._wrong_constraint(x)
        if wrong:
            return Answer(x, Status.WRONG_GRADIENT, detail=f"that of {wrong}")
        return x

    def ended(self, x: Vector, status: Status) -> Answer:
        return self.judged(x, None, status)

    def first_weights(self, x: Vector) -> None:
        """Start near the ratio of the lengths of the gradients."""
        box, rng = self.problem.box, stream(self.request.seed, 0, "weights")
        jitter = 0.25 * self.request.delta * rng.standard_normal(x.size) / math.sqrt(x.size)
        y = box.reflect(x + jitter)
        try:
            gradient, _, rows = self.problem.answers(y)
        except KinkError:
            gradient, rows = np.ones(x.size), np.ones((self.problem.constraints.size, x.size))
        length = float(np.linalg.norm(gradient)) or 1.0
        sizes = np.linalg.norm(rows, axis=1)
        sizes[sizes < 1e-6 * sizes.max(initial=0.0)] = sizes.max(initial=0.0)
        sizes[sizes == 0.0] = 1.0
        self._rho = length / sizes
        steepest = np.abs(gradient) + self._rho @ np.abs(rows)
        self._wall = 2.0 * float(steepest.max()) or 1.0

    def excess(self, x: Vector) -> Vector:
        system = self.problem.constraints
        return system.excess(system.values(x))

    def solve(
        self,
        function: Boxed,
        x: Vector,
        request: Request,
        proves: Callable[[Evidence, Boxed], bool] | None = None,
    ) -> Outcome:
        """Let the solver search on a function that stands for the problem."""
        f = self.problem.f
        counted = Reduced(function, f)
        judge = _AskAgain(counted, request, self.run.meta, self.run.options.check_gradient)
        if proves is not None:
            judge.proves = lambda evidence: proves(evidence, function)
        spare = int(min(6 * (x.size + 8), (f.limit - f.calls) // 4))
        start = off_bounds(x, OFF * self.request.delta, self.problem.box)
        with f.reserved(max(spare, 0)):
            return self.run.solve(counted, function.apply(start), request, judge)

    def evidence(self, outcome: Outcome) -> Evidence | None:
        """Return what a run knows about its last point."""
        if not math.isfinite(outcome.state.fx):
            return None  # without a value it has not even started
        found: Evidence | None = outcome.certificate or self.run.solver.best_evidence(outcome.state)
        return found

    def judged(
        self,
        y: Vector,
        evidence: Evidence | None,
        status: Status,
        function: Boxed | None = None,
        early: bool = False,
        known: Sequence[tuple[Vector, Vector]] = (),
    ) -> Answer:
        """Snap, restore, gather and claim; decide what the claim is worth.

        `early`: where it is not worth what was asked for, little is spent on it. `known`: points
        with gradients of f, of which those are used that help.
        """
        problem, request, self.stop.x = self.problem, self.request, y
        around = Around(problem, y, request.delta, request.seed)
        certificate = None
        patience = EARLY_PATIENCE if early else max(20, min(4 * y.size, 200))
        try:
            self._ask_around(around, evidence, function)
            around = around.moved_to(self.placed(around))
            around.keep(known)
            if early and not problem.feasible(around.x):
                return Answer(around.x, status)
            certificate = state_kkt(
                around, request.eps, self.run.meta, patience=patience, deadline=self.run.deadline,
                or_nothing=early,
            )  # fmt: skip
        except OutOfCalls:
            status = Status.OUT_OF_CALLS
        except NotDeterministicError:
            status = Status.NOT_DETERMINISTIC
        except UnresolvedError as failure:
            if early:
                return Answer(around.x, status)
            return Answer(around.x, Status.BALL_TOO_SMALL, None, str(failure))
        answer = self._decided(around.x, certificate, status)
        unproved = status is Status.VERIFIED and answer.status is Status.NOT_VERIFIED
        # What held for the reduced function and fails here may be a claim about noise.
        if unproved and self._noisy(around):
            return Answer(around.x, Status.NOT_DETERMINISTIC)
        return answer

    def _ask_around(
        self, around: Around, evidence: Evidence | None, function: Boxed | None
    ) -> None:
        """Ask at the points that a search found useful; those not drawn at random are moved."""
        seeds: list[tuple[Vector, Vector | None]] = []
        if function is not None and evidence is not None:
            inside = [function.invert(z) for z in evidence.points]
            # What is known of places that were not drawn at random may be known of a kink.
            seeds = [
                (z, function.remembered(z) if drawn else None)
                for z, drawn in zip(inside, evidence.perturbed)
            ]
        y, delta, box = around.x, self.request.delta, self.problem.box
        rng = stream(self.request.seed, len(seeds), "seeds")
        for z, gradient in seeds:
            place = _jittered(rng, z, y, delta, box) if gradient is None else z
            around.ask(place, gradient)
        if not around.points:
            around.ask(_jittered(rng, y, y, delta, box))

    def _noisy(self, around: Around) -> bool:
        """Whether a gradient that is asked again differs visibly."""
        with contextlib.suppress(KinkError, OutOfCalls):
            for y, gradient in zip(around.points[:1], around.gradients):
                gap = norm_upper(self.problem.f.gradient(y) - gradient)
                return gap > NOISE * max(self.request.eps, norm_upper(gradient))
        return False

    def _decided(self, x: Vector, certificate: KKTCertificate | None, status: Status) -> Answer:
        problem, unproved = self.problem, _unproved(status)
        if certificate is None or certificate.eps > self.request.eps or not problem.feasible(x):
            return Answer(x, unproved, certificate)
        if certificate.degenerate:
            return Answer(x, Status.DEGENERATE, certificate)
        before = problem.failures
        for k in range(CHECKS):  # whoever verifies the claim looks elsewhere
            found = checked(
                certificate, problem.f, problem.box, problem.constraints,
                self.request.seed + 2 + k, self.run.options.check_gradient,
            )  # fmt: skip
            if not found.ok:
                break
        for failure in problem.failures:
            if failure not in before:  # to a check it is one of the function's faults
                raise failure
        if found.ok:
            return Answer(x, Status.VERIFIED, certificate)
        if problem.f.calls >= problem.f.limit:
            return Answer(x, Status.OUT_OF_CALLS, certificate)
        failed = {check.name: check.message for check in found.checks if not check.ok}
        if "resolution" in failed:
            return Answer(x, Status.BALL_TOO_SMALL, None, failed["resolution"])
        if "values" in failed:
            return Answer(x, Status.WRONG_GRADIENT, None, failed["values"])
        if "qualification" in failed:
            return Answer(x, Status.DEGENERATE, certificate)
        return Answer(x, unproved)

    def placed(self, around: Around) -> Vector:
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

    def blame(self, x: Vector, status: Status) -> Answer:
        """Name the function whose gradient is wrong."""
        if status is not Status.WRONG_GRADIENT:
            return Answer(x, status)
        system = self.problem.constraints
        functions: list[Oracle] = [self.problem.f]
        functions += [Component(system, i) for i in range(system.size)]
        try:
            wrong = self._wrong(functions, x)
        except OutOfCalls:
            wrong = self._wrong(functions[1:], x)
        return Answer(x, status, detail=f"that of {', '.join(wrong)}" if wrong else "")

    def _wrong_constraint(self, x: Vector) -> str:
        """Name a constraint whose gradient is wrong next to the start: it would only mislead."""
        system, checks = self.problem.constraints, self.run.options.check_gradient
        if not checks or system.linear.all() or not self._wrong([Component(system)], x):
            return ""
        each: list[Oracle] = [Component(system, i) for i in range(system.size)]
        return ", ".join(self._wrong(each, x))

    def _wrong(self, functions: list[Oracle], x: Vector) -> list[str]:
        """Return the names of functions whose gradients differences of values contradict."""
        radius = max(self.request.delta, 1e-3 * max(1.0, float(np.abs(x).max())))
        return [f.name for f in functions if self._is_wrong(f, x, radius)]

    def _is_wrong(self, f: Oracle, x: Vector, radius: float) -> bool:
        return gradient_is_wrong(f, x, radius, self.request.seed, self.problem.box)

    def state(self, x: Vector) -> KKTCertificate:
        """State how close to KKT a point is, without moving it."""
        problem, request = self.problem, self.request
        if not problem.box.contains(x):
            outside = int(np.flatnonzero((x < problem.box.lower) | (x > problem.box.upper))[0])
            raise InputError(
                f"x[{outside}] = {x[outside]:g} is outside its bounds; a KKT point is inside them, "
                "exactly. Clip it: np.clip(x, lower, upper)."
            )
        certificate = self._stated(x, look=True)
        if certificate is None:
            raise InputError(
                f"no gradient could be had within {request.delta:g} of x; raise max_calls or delta."
            )
        system = problem.constraints
        functions: list[Oracle] = [
            Component(system, i) for i in certificate.active if not system.linear[i]
        ]
        for f in [*functions, problem.f]:
            with contextlib.suppress(OutOfCalls):
                if self._is_wrong(f, x, request.delta):
                    raise WrongGradientError(f.name)
        with contextlib.suppress(OutOfCalls):
            stated = confirmed(certificate, problem.f, problem.box, system, request.seed, True)
            certificate = stated or certificate
        return certificate

    def hint(self, x: Vector) -> KKTCertificate | None:
        return self._stated(x)

    def _stated(self, x: Vector, look: bool = False) -> KKTCertificate | None:
        around = Around(self.problem, x, self.request.delta, self.request.seed)
        patience = max(30, min(4 * x.size, 400))
        return state_kkt(
            around, self.request.eps, self.run.meta, patience=patience, deadline=self.run.deadline,
            look=look,
        )  # fmt: skip


class Penalty(Limited):
    """Runs of a solver on the penalised function, its weights rising until x is feasible."""

    stages = 40

    def __init__(self, run: Run, early: bool = True) -> None:
        super().__init__(run)
        self._early_too = early and run.solver.name == "auto"
        self._last: Answer | None = None
        #: What was proved while a search was still going on.
        self._proved: Answer | None = None
        self._along: Coordinates | Chart | None = None
        self._charts = CHARTS
        self._raises, self._feasible_known = 0, False

    def begin(self, x: Vector) -> Vector | Answer:
        """Return the answer where no penalty is needed for it; else choose the first weights."""
        found = super().begin(x)
        if isinstance(found, Answer):
            return found
        try:
            early = self._early(x) if self._early_too else None
            if early is None:
                self.first_weights(x)
        except OutOfCalls:
            return Answer(x, Status.OUT_OF_CALLS)
        return x if early is None else early

    def ended(self, x: Vector, status: Status) -> Answer:
        if status is not Status.NOT_VERIFIED:
            return super().ended(x, status)
        return replace(self._last or Answer(x, status), status=status)

    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        """Minimise the penalised function once."""
        penalised = Penalised(self.problem, self._rho, self._wall, self._coordinates(x))
        target = replace(self._target, seed=self._target.seed + stage)
        try:
            outcome = self.solve(penalised, x, target, self._proves)
        except OracleError as failure:
            # Far outside the feasible set a function need not be defined.
            if penalised.best is None or not self._rho.size or self._raises >= RAISES:
                raise
            self.problem.excuse(failure)
            return self._steeper(penalised, x)
        if penalised.steepest > self._wall:
            self._wall = 4.0 * penalised.steepest
        if self._proved is not None:
            return self._proved
        if penalised.left is not None:
            self._along, self._charts = None, self._charts - 1
            return penalised.left
        if outcome.status in RUNAWAY:
            return self._ran_away(penalised, x, outcome.status)
        y = penalised.invert(outcome.state.x)
        if outcome.status in (Status.WRONG_GRADIENT, Status.NOT_DETERMINISTIC):
            return self.blame(y, outcome.status)
        last = self._last = self.judged(y, self.evidence(outcome), outcome.status, penalised)
        if last.status in DECIDED or outcome.status in FINAL:
            return last
        if isinstance(self._along, Chart):
            # It may have led to its own end: penalties decide.
            self._along, self._charts = None, 0
            return y
        return self._next(penalised, y, outcome.status, last)

    def _ran_away(self, penalised: Penalised, x: Vector, status: Status) -> Vector | Answer:
        if penalised.best is not None and penalised.best[0] < VALUE_LIMIT:
            return Answer(penalised.best[1], Status.UNBOUNDED)
        return Answer(x, status) if self._raises >= RAISES else self._steeper(penalised, x)

    def _next(
        self, penalised: Penalised, y: Vector, ended: Status, last: Answer
    ) -> Vector | Answer:
        """Decide what a claim that failed calls for: a smaller ball, or larger weights."""
        x, target = last.x, self._target
        if self.run.late:
            return replace(last, status=Status.OUT_OF_TIME)
        excess = self.excess(y)
        if self.problem.feasible(x):
            # The claim failed for another reason: a smaller ball leaves more room for it.
            if target.delta <= 2.0**-6 * self.request.delta:
                return replace(last, status=_unproved(ended))
            self._target = replace(target, eps=0.5 * target.eps, delta=0.25 * target.delta)
            return x
        self._raises += 1
        if self._raises >= RAISES or (self._raises == DOUBT and not self._feasible_known):
            found = self._least_violation(x)
            if isinstance(found, Answer):
                return found
            x, self._feasible_known = found, True
        if self._raises >= RAISES:
            return replace(last, status=Status.NOT_VERIFIED)
        self._raise(excess != 0.0, penalised)
        return x

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

    def _raise(self, which: NDArray[np.bool_], penalised: Penalised) -> None:
        self._rho = np.where(which, RAISE * self._rho, self._rho)
        self._wall = max(self._wall, 4.0 * penalised.steepest)
        if self._rho.size:
            self._wall *= RAISE

    def _early(self, x: Vector) -> Answer | None:
        """Return the answer if a smooth search already finds it."""
        known: list[tuple[Vector, Vector]] = []

        def seen(y: Vector, value: float, gradient: Vector) -> None:
            self.stop.x = y
            known.append((y, gradient))
            self.run.moved(y, value, self.problem.constraints.violation(y))
            if self.run.late:
                raise OutOfTime("value")

        try:
            enough = EARLY_FALL * self.request.eps * self.request.delta
            place = head_start(self.problem, x, enough, seen)
        except OutOfTime:
            return self.judged(self.best, None, Status.OUT_OF_TIME)
        if place is None:
            return None
        answer = self.judged(place, None, Status.NOT_VERIFIED, early=True, known=known)
        return answer if answer.status is Status.VERIFIED else None

    def _proves(self, evidence: Evidence, penalised: Boxed) -> bool:
        """Whether what the search knows so far is KKT: multipliers are freer than weights."""
        y = penalised.invert(evidence.x)
        answer = self.judged(y, evidence, Status.NOT_VERIFIED, penalised, early=True)
        self._proved = answer if answer.status is Status.VERIFIED else None
        return self._proved is not None

    def _least_violation(self, x: Vector) -> Vector | Answer:
        """Minimise the violation alone: a feasible point, or the answer that there is none."""
        problem, request = self.problem, self.request
        violation = Violation(problem.constraints, x)
        sizes = np.linalg.norm(problem.constraints.rows(x), axis=1)
        small = float(sizes[sizes > 0].min(initial=1.0))
        alone = Problem(CountedOracle(_Billed(violation, problem)), problem.box, System((), x))
        search = Penalty(
            replace(
                self.run, problem=alone, meta={**self.run.meta, "function": violation.title},
                request=replace(request, eps=min(request.eps, 1e-3 * small)),
                callback=None, progress=None,
            ),
            early=False,
        )  # fmt: skip
        found = search.search(x)
        place = restored(
            problem, found.x, request.delta, np.zeros(x.size, dtype=bool), request.seed
        )
        if problem.feasible(place):
            return place
        if found.status is Status.VERIFIED:
            if self._nearly_feasible(found.x):
                return Answer(found.x, Status.DEGENERATE)
            return replace(found, status=Status.INFEASIBLE)
        return Answer(found.x, found.status) if found.status in FINAL else found.x

    def _nearly_feasible(self, x: Vector) -> bool:
        """Whether constraints, taken as linear, could all be met within the ball."""
        sizes = np.linalg.norm(self.problem.constraints.rows(x), axis=1)
        return bool((np.abs(self.excess(x)) <= self.request.delta * sizes).all())


class _AskAgain(Judge):
    """KKT is decided at once where it can be; else gradients of the reduced function are asked
    again, and no more: KKT is decided later."""

    proves: Callable[[Evidence], bool] | None = None

    def __call__(self, evidence: Evidence) -> tuple[Any, Any]:
        # What failed may fail again: after the second time more and more seldom.
        due = self.trials & (self.trials + 1) == 0
        if due and self.proves is not None and self.proves(evidence):
            return evidence, None
        return self.asked_again(evidence)


class _Billed(Oracle):
    """The violation as an objective; its calls are paid from the budget of the problem."""

    def __init__(self, inner: Violation, problem: Problem) -> None:
        self.inner, self.problem, self.dim = inner, problem, inner.dim

    @property
    def name(self) -> str:
        return f"the {self.inner.title}"

    def _pay(self, values: int, gradients: int) -> None:
        if self.problem.f.calls >= self.problem.f.limit:
            raise OutOfCalls("violation")
        self.problem.f.spend(values, gradients)

    def value(self, x: Vector) -> float:
        self._pay(1, 0)
        return self.inner.value(x)

    def gradient(self, y: Vector) -> Vector:
        self._pay(0, 1)
        return self.inner.gradient(y)


def _unproved(status: Status) -> Status:
    """A solver's own success is none of ours."""
    return Status.NOT_VERIFIED if status is Status.VERIFIED else status


def _jittered(rng: np.random.Generator, z: Vector, x: Vector, delta: float, box: Box) -> Vector:
    """Move a point a little at random, off faces and kinks, inside ball and box."""
    moved = z + 1e-4 * delta * rng.standard_normal(z.size) / math.sqrt(z.size)
    pulled: Vector = box.clip(box.reflect(x + 0.999 * (moved - x)))
    return pulled
