"""Searches inside bounds and constraints: how they end, and what they claim."""

import contextlib
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from goldstein import errors
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.verifying import CHECKS, checks, confirmed
from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.blackbox.differences import NOISE
from goldstein.checker.constrained.limits import Box
from goldstein.checker.rounding import norm_upper
from goldstein.construction.judge import Judge
from goldstein.construction.kkt_claim import Around, state_kkt
from goldstein.numerics.streams import stream
from goldstein.oracles import Oracle
from goldstein.oracles.diagnose import gradient_is_wrong
from goldstein.oracles.problem import Problem
from goldstein.reductions.base import Answer, Reduced, Reduction, Run, no_gradient
from goldstein.reductions.functions import Boxed, Component, off_bounds
from goldstein.result import Status
from goldstein.solvers import Evidence, Request
from goldstein.solvers.loop import Outcome

#: Gradients without gain before a point is given up that may still get better.
EARLY_PATIENCE = 3

#: The reduced function is solved to this part of eps and of delta: the rest is room to restore and
#: to snap.
SHARE = 0.5

#: Coordinates go onto a bound within this part of delta, all together.
SNAP = 0.4

#: A search begins this part of delta off the bounds.
OFF = 0.01

#: Where the gradient of a constraint is shorter than this part of what it is so far away (against
#: the length of x, or 1), the latter counts.
LEVEL, AROUND = 1e-3, 0.5

RUNAWAY = (Status.UNBOUNDED, Status.BALL_TOO_SMALL)

#: Checks whose failure says what is wrong with the function, and how a run then ends.
_BLAMED = {"resolution": Status.BALL_TOO_SMALL, "values": Status.WRONG_GRADIENT}


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
        direction = rng.standard_normal(x.size) / math.sqrt(x.size)
        y = box.reflect(x + 0.25 * self.request.delta * direction)
        try:
            gradient, _, rows = self.problem.answers(y)
        except errors.KinkError:
            gradient, rows = np.ones(x.size), np.ones((self.problem.constraints.size, x.size))
        length = float(np.linalg.norm(gradient)) or 1.0
        sizes = np.linalg.norm(rows, axis=1)
        system = self.problem.constraints
        if not system.linear.all():
            # Where a constraint is level at the start, |x|^2 at 0, it says nothing about its size.
            far = AROUND * max(1.0, float(np.linalg.norm(x))) * direction
            with contextlib.suppress(errors.GoldsteinError):
                around = np.linalg.norm(system.rows(box.reflect(x + far)), axis=1)
                sizes = np.where(sizes < LEVEL * around, around, sizes)
        sizes[sizes < 1e-6 * sizes.max(initial=0.0)] = sizes.max(initial=0.0)
        sizes[sizes == 0.0] = 1.0
        self._rho = length / sizes
        steepest = np.abs(gradient) + self._rho @ np.abs(rows)
        self._wall = 2.0 * float(steepest.max()) or 1.0

    def closer(self) -> bool:
        """Aim at a smaller ball: it leaves more room for a claim; False where it is small."""
        target = self._target
        self._target = replace(target, eps=0.5 * target.eps, delta=0.25 * target.delta)
        return target.delta > 2.0**-6 * self.request.delta

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
        return outcome.certificate or self.run.solver.best_evidence(outcome.state)

    def judged(
        self,
        y: Vector,
        evidence: Evidence | None,
        status: Status,
        function: Boxed | None = None,
        early: bool = False,
    ) -> Answer:
        """Snap, restore, gather and claim; decide what the claim is worth.

        `early`: where it is not worth what was asked for, little is spent on it.
        """
        problem, request, self.stop.x = self.problem, self.request, y
        around = Around(problem, y, request.delta, request.seed)
        certificate, unresolved = None, ""
        patience = EARLY_PATIENCE if early else max(20, min(4 * y.size, 200))
        try:
            self._ask_around(around, evidence, function)
            around = around.moved_to(self.placed(around))
            if early and not problem.feasible(around.x):
                return Answer(around.x, status)
            certificate = self._stated(around, patience, or_nothing=early, look=not early)
        except errors.OutOfCalls:
            status = Status.OUT_OF_CALLS
        except errors.NotDeterministicError:
            status = Status.NOT_DETERMINISTIC
        except errors.UnresolvedError as failure:
            if early:
                return Answer(around.x, status)
            unresolved = str(failure)
        answer = self._decided(around.x, certificate, status)
        if unresolved:
            answer = Answer(around.x, Status.BALL_TOO_SMALL, None, unresolved)
        fails = status is Status.VERIFIED and answer.status is Status.NOT_VERIFIED
        # What held for the reduced function and fails here may be a claim about noise; so may
        # gradients that values do not follow.
        doubted = fails or answer.status is Status.BALL_TOO_SMALL
        if doubted and self._noisy(around):
            return Answer(around.x, Status.NOT_DETERMINISTIC)
        return answer

    def _ask_around(self, around: Around, seen: Evidence | None, function: Boxed | None) -> None:
        """Ask next to the points that a search found useful."""
        places = list(map(function.invert, seen.points)) if function and seen else []
        y, delta, box = around.x, self.request.delta, self.problem.box
        rng = stream(self.request.seed, len(places), "seeds")
        for z in places:
            around.ask(_jittered(rng, z, y, delta, box))
        if not around.points:
            around.ask(_jittered(rng, y, y, delta, box))

    def _noisy(self, around: Around) -> bool:
        """Whether a gradient that is asked again differs visibly."""
        with contextlib.suppress(errors.KinkError, errors.OutOfCalls):
            for y, gradient in zip(around.points[:1], around.gradients):
                gap = norm_upper(self.problem.f.gradient(y) - gradient)
                return gap > NOISE * max(self.request.eps, norm_upper(gradient))
        return False

    def _decided(self, x: Vector, certificate: KKTCertificate | None, status: Status) -> Answer:
        problem, without = self.problem, unproved(status)
        if certificate is None or certificate.eps > self.request.eps or not problem.feasible(x):
            return Answer(x, without, certificate)
        if certificate.degenerate:
            return Answer(x, Status.DEGENERATE, certificate)
        before, check = problem.failures, checks(problem.f, problem.box, problem.constraints)
        for k in range(CHECKS):  # whoever verifies the claim looks elsewhere
            found = check(certificate, self.request.seed + 2 + k, self.run.options.check_gradient)
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
        for name, status in _BLAMED.items():
            if name in failed:
                return Answer(x, status, None, failed[name])
        if "qualification" in failed:
            return Answer(x, Status.DEGENERATE, certificate)
        return Answer(x, without)

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
        except errors.OutOfCalls:
            wrong = self._wrong(functions[1:], x)
        return Answer(x, status, detail=f"that of {', '.join(wrong)}" if wrong else "")

    def _wrong_constraint(self, x: Vector) -> str:
        """Name a constraint whose gradient is wrong next to the start: it would only mislead."""
        system, checks = self.problem.constraints, self.run.options.check_gradient
        if not checks or system.linear.all() or not self._wrong([Component(system)], x):
            return ""
        return ", ".join(self._wrong([Component(system, i) for i in range(system.size)], x))

    def _wrong(self, functions: Sequence[Oracle], x: Vector, radius: float = 0.0) -> list[str]:
        """Return the names of functions whose gradients differences of values contradict."""
        radius = radius or max(self.request.delta, 1e-3 * max(1.0, float(np.abs(x).max())))
        seed, box = self.request.seed, self.problem.box
        return [f.name for f in functions if gradient_is_wrong(f, x, radius, seed, box)]

    def claim(self, x: Vector) -> KKTCertificate:
        """State how close to KKT a point is, without moving it."""
        problem, request = self.problem, self.request
        if not problem.box.contains(x):
            outside = int(np.flatnonzero((x < problem.box.lower) | (x > problem.box.upper))[0])
            raise errors.InputError(
                f"x[{outside}] = {x[outside]:g} is outside its bounds; a KKT point is inside them, "
                "exactly. Clip it: np.clip(x, lower, upper)."
            )
        certificate = self.hint(x, look=True)
        if certificate is None:
            raise no_gradient(request.delta)
        system = problem.constraints
        curved = [Component(system, i) for i in certificate.active if not system.linear[i]]
        for f in (*curved, problem.f):
            with contextlib.suppress(errors.OutOfCalls):
                if self._wrong([f], x, request.delta):
                    raise errors.WrongGradientError(f.name)
        with contextlib.suppress(errors.OutOfCalls):
            stated = confirmed(certificate, problem.f, problem.box, system, request.seed, True)
            certificate = stated or certificate
        return certificate

    def hint(self, x: Vector, look: bool = False) -> KKTCertificate | None:
        around = Around(self.problem, x, self.request.delta, self.request.seed)
        return self._stated(around, max(30, min(4 * x.size, 400)), look=look)

    def _stated(self, around: Around, patience: int, **how: bool) -> KKTCertificate | None:
        eps, meta, deadline = self.request.eps, self.run.meta, self.run.deadline
        return state_kkt(around, eps, meta, patience=patience, deadline=deadline, **how)


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


def unproved(status: Status) -> Status:
    """A solver's own success is none of ours."""
    return Status.NOT_VERIFIED if status is Status.VERIFIED else status


def _jittered(rng: np.random.Generator, z: Vector, x: Vector, delta: float, box: Box) -> Vector:
    """Move a point a little at random, off faces and kinks, inside ball and box."""
    moved = z + 1e-4 * delta * rng.standard_normal(z.size) / math.sqrt(z.size)
    return box.clip(box.reflect(x + 0.999 * (moved - x)))


#: Steps, and how many without visible gain before one gives up: a regular constraint is met up to
#: rounding after a few, a degenerate one halves its violation again and again.
STEPS, PATIENCE = 80, 4

#: Inequalities are crossed by this part of what they may be violated by: rounding must not matter.
BEYOND = 1e-4


def restored(problem: Problem, x: Vector, reach: float, held: Mask, seed: int) -> Vector:
    """Return a point within `reach` of x that satisfies the constraints, or the best one met.

    Coordinates in `held` stay. Equalities end next to 0, inequalities at 0 or below.
    """
    system, box = problem.constraints, problem.box
    if not system.size:
        return x
    allowed = system.tolerances()
    beyond = BEYOND * allowed
    best, least, idle = x, np.inf, 0
    y = x
    for step in range(STEPS):
        values = system.values(y)
        excess = system.excess(values)
        left = float((np.abs(excess) / allowed).max())
        idle = 0 if left < 0.9 * least else idle + 1
        if left < least:
            best, least = y, left
        violated = excess != 0.0
        if not violated.any() or idle >= PATIENCE:
            break
        # A violated constraint is often on a kink: it is asked at a perturbed point.
        rng = stream(seed, step, "restore")
        nudge = 1e-9 * max(reach, 1e-12) * rng.standard_normal(y.size)
        try:
            rows = system.rows(box.clip(box.reflect(y + nudge)))
        except errors.KinkError:
            continue
        aim = excess + np.where(system.equal, 0.0, np.sign(excess) * beyond)
        rounding = violated & (np.abs(excess) <= 10.0 * beyond)
        beyond = np.where(rounding, 4.0 * beyond, beyond)
        moved = _step(rows[violated | system.equal], aim[violated | system.equal], y, problem, held)
        if np.linalg.norm(moved - x) > reach or np.array_equal(moved, y):
            break
        y = moved
    return best


def _step(rows: Matrix, aim: Vector, y: Vector, problem: Problem, held: Mask) -> Vector:
    """Return y after the shortest step that cancels `aim`, coordinates at their bounds held."""
    box, free = problem.box, ~(held | problem.box.fixed)
    for _ in range(10):
        step = np.zeros(y.size)
        try:
            step[free] = np.linalg.lstsq(rows[:, free], -aim, rcond=1e-12)[0]
        except np.linalg.LinAlgError:  # no step follows from such numbers
            return y
        moved = box.clip(y + step)
        blocked = free & (moved != y + step)
        if not blocked.any():
            break
        # What hits its bound stays where it is; the others do the rest.
        stuck = blocked & ((y == box.lower) | (y == box.upper))
        if not stuck.any():
            break
        free = free & ~stuck
    return moved
