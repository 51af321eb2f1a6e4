"""Feasible iterates: descent of the improvement function around ever better feasible points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.construction.kkt_claim import Around
from goldstein.errors import OutOfCalls
from goldstein.reductions.base import DECIDED, FINAL, Answer
from goldstein.reductions.improvement import Improvement, require_feasible
from goldstein.reductions.penalty import RUNAWAY, Limited
from goldstein.result import Status
from goldstein.solvers.base import VALUE_LIMIT

#: Constraints count so many times their natural size, and so many times more where one of them
#: stops a stage although its limit is so many deltas away: f may fall until limits are close.
FIRM, FIRMER, FAR = 8.0, 4.0, 1000.0

#: The part of delta after which a stage that moves less than it is the last.
STILL = 1e-2


class Feasible(Limited):
    """Every accepted point satisfies bounds and constraints, and is lower than the last centre."""

    stages = 200

    def begin(self, x: Vector) -> Vector | Answer:
        require_feasible(self.problem, x)
        found = super().begin(x)
        if isinstance(found, Answer):
            return found
        try:
            self.first_weights(x)
            self._value = self.problem.f.value(x)
        except OutOfCalls:
            return Answer(x, Status.OUT_OF_CALLS)
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
