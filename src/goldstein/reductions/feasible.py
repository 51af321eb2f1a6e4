"""Feasible iterates: descent of the improvement function around ever better feasible points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.construction.kkt_claim import Around
from goldstein.errors import InputError, KinkError, OutOfCalls
from goldstein.oracles.problem import Problem
from goldstein.reductions.base import DECIDED, FINAL, Answer, Options, register_reduction
from goldstein.reductions.functions import Boxed
from goldstein.reductions.limited import RUNAWAY, Limited
from goldstein.result import Status
from goldstein.solvers.base import VALUE_LIMIT


class Improvement(Boxed):
    """H around one feasible point: whatever lowers it is feasible, and better.

    For a feasible point x with value f(x), and weights s_i > 0,

        H(y) = max(f(y) - f(x), s_i (c_i(y) - ub_i), s_i (lb_i - c_i(y))).

    H(x) = 0 by its first term, and H(y) < 0 means that f has fallen and that all constraints
    hold strictly. Gradients of H that cancel combine gradients of f and of constraints (Fritz
    John); divided by the share of f they are a KKT certificate.

    Parameters
    ----------
    problem : Problem
        Without equalities.
    value : float
        f at the feasible point.
    scales : ndarray, shape (m,)
        The weights s_i.
    wall : float
        Weight of the distance to the box.
    """

    def __init__(self, problem: Problem, value: float, scales: Vector, wall: float) -> None:
        super().__init__(problem, wall)
        self.level, self.scales = value, scales

    def inside(self, y: Vector) -> float:
        return max(self._fall(y), float(self._gaps(y).max(initial=-np.inf)))

    def _fall(self, y: Vector) -> float:
        return self.objective(y) - self.level

    def slope(self, y: Vector) -> Vector:
        system = self.problem.constraints
        gaps = self._gaps(y)
        worst = int(gaps.argmax()) if gaps.size else 0
        if not gaps.size or self._fall(y) >= gaps[worst]:
            return self.objective_slope(y)
        # A gradient of a constraint costs no call of f.
        i = worst % system.size
        sign = 1.0 if worst < system.size else -1.0
        return sign * self.scales[i] * system.rows(y)[i]

    def stops(self, y: Vector, far: float) -> NDArray[np.bool_]:
        """Return the constraints that decide H at y though their limits are further than `far`."""
        gaps = self._gaps(y).reshape(2, -1)
        top = max(self._fall(y), float(gaps.max(initial=-np.inf)))
        try:
            lengths = np.linalg.norm(self.problem.constraints.rows(y), axis=1)
        except KinkError:
            return np.zeros(gaps.shape[1], dtype=bool)
        distant = -gaps > far * self.scales * lengths
        return (distant & (gaps >= top - 0.1 * abs(top))).any(axis=0)

    def _gaps(self, y: Vector) -> Vector:
        """Return how far each limit is exceeded, times its weight: upper ones, then lower ones."""
        system = self.problem.constraints
        if not system.size:
            return np.zeros(0)
        values = system.values(y)
        above, below = values - system.upper, system.lower - values
        return np.concatenate([self.scales * above, self.scales * below])


def require_feasible(problem: Problem, x: Vector) -> None:
    """Refuse a start from which feasible iterates cannot be had."""
    system = problem.constraints
    advice = "drop options={'feasible': True}"
    if system.equal.any():
        name = system.name(int(np.flatnonzero(system.equal)[0]))
        raise InputError(
            f"feasible iterates need room inside the constraints, and {name} is an equality; "
            f"solve it for a variable, or {advice}."
        )
    excess = np.abs(system.excess(system.values(x)))
    if excess.any():
        worst = int(excess.argmax())
        raise InputError(
            f"feasible iterates need a feasible x0, and {system.name(worst)} is violated there by "
            f"{excess[worst]:.3g}; pass a feasible point (gs.minimize(gs.Violation(constraints, "
            f"x0), x0, bounds=bounds, ...) finds one), or {advice}."
        )


#: Constraints count so many times their natural size, and so many times more where one of them
#: stops a stage although its limit is so many deltas away: f may fall until limits are close.
FIRM, FIRMER, FAR = 8.0, 4.0, 1000.0

#: The part of delta after which a stage that moves less than it is the last.
STILL = 1e-2


@register_reduction
class Feasible(Limited):
    """Every accepted point satisfies bounds and constraints, and is lower than the last centre."""

    stages = 200

    @classmethod
    def accepts(cls, problem: Problem, options: Options) -> bool:
        return options.feasible and problem.limited and problem.stencil is None

    def begin(self, x: Vector) -> Vector | Answer:
        require_feasible(self.problem, x)
        found = super().begin(x)
        if isinstance(found, Answer):
            return found
        self.first_weights(x)
        self._value = self.problem.f.value(x)
        self._last = Answer(x, Status.NOT_VERIFIED)
        return x

    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        problem, request = self.problem, self.request
        function = Improvement(problem, self._value, FIRM * self._rho, FIRM * self._wall)
        outcome = self.solve(function, x, replace(self._target, seed=request.seed + stage))
        self._wall = max(self._wall, function.steepest)
        y = function.invert(outcome.state.x)
        # An improvement below 0 is a fall of f at a feasible point.
        fallen = outcome.state.fx < 0.0 and not self.excess(y).any()
        far = float(np.linalg.norm(y - x)) if fallen else 0.0
        stopped = function.stops(y, FAR * request.delta)
        self._rho = np.where(stopped, FIRMER * self._rho, self._rho)
        if fallen:
            self.stop.x = x = y
            try:
                self._value = problem.f.value(y)
            except OutOfCalls:
                return replace(self._last, x=y, status=Status.OUT_OF_CALLS)
        if outcome.status in RUNAWAY or self._value < VALUE_LIMIT:
            return Answer(x, Status.UNBOUNDED)
        if outcome.status in (Status.WRONG_GRADIENT, Status.NOT_DETERMINISTIC):
            return self.blame(x, outcome.status)
        ended = outcome.status in FINAL or self.run.late
        if ended or far <= STILL * request.delta:
            last = self._last = self.judged(x, self.evidence(outcome), outcome.status, function)
            if last.status in DECIDED or ended:
                return last
            target = self._target
            if target.delta <= 2.0**-6 * request.delta:
                return replace(last, status=Status.NOT_VERIFIED)
            self._target = replace(target, eps=0.5 * target.eps, delta=0.25 * target.delta)
        return x

    def placed(self, around: Around) -> Vector:
        """Return x on the bounds that carry a normal, if it stays feasible there."""
        moved = super().placed(around)
        return around.x if self.excess(moved).any() else moved
