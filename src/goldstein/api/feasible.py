"""Feasible iterates: descent of the improvement function around ever better feasible points."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from goldstein.api.constrained import DECIDED, FINAL, RUNAWAY, SHARE, Answer, ConstrainedSearch
from goldstein.certificates.kkt_stating import Around
from goldstein.checker.arrays import Vector
from goldstein.constrained.improvement import Improvement, require_feasible
from goldstein.errors import OutOfCalls
from goldstein.result import Status
from goldstein.solvers.base import VALUE_LIMIT

#: Constraints count so many times their natural size, and so many times more where one of them
#: stops a stage although its limit is so many deltas away: f may fall until limits are close.
FIRM, FIRMER, FAR = 8.0, 4.0, 1000.0

#: Centres, and the part of delta after which a stage that moves less than it is the last.
CENTRES, STILL = 200, 1e-2


class FeasibleSearch(ConstrainedSearch):
    """Every accepted point satisfies bounds and constraints, and is lower than the last centre."""

    def _run(self, x: Vector) -> Answer:
        problem, request = self.problem, self.request
        require_feasible(problem, x)
        if problem.box.fixed.all():
            return self._judged(x, None, Status.NOT_VERIFIED)
        wrong = self._wrong_constraint(x)
        if wrong:
            return self._answer(x, Status.WRONG_GRADIENT, None, f"that of {wrong}")
        try:
            self._first_weights(x)
            value = problem.objective.value(x)
        except OutOfCalls:
            return self._answer(x, Status.OUT_OF_CALLS, None)
        target = replace(request, eps=SHARE * request.eps, delta=SHARE * request.delta)
        last = self._answer(x, Status.NOT_VERIFIED, None)
        for stage in range(CENTRES):
            function = Improvement(problem, value, FIRM * self._rho, FIRM * self._wall)
            outcome = self._solve(function, x, replace(target, seed=request.seed + stage))
            self._wall = max(self._wall, function.steepest)
            y = function.invert(outcome.state.x)
            # An improvement below 0 is a fall of f at a feasible point.
            fallen = outcome.state.fx < 0.0 and not self._excess(y).any()
            way = float(np.linalg.norm(y - x)) if fallen else 0.0
            stopped = function.stops(y, FAR * request.delta)
            self._rho = np.where(stopped, FIRMER * self._rho, self._rho)
            if fallen:
                self._stop.x = y
                try:
                    x, value = y, problem.objective.value(y)
                except OutOfCalls:
                    return replace(last, x=y, status=Status.OUT_OF_CALLS)
            if outcome.status in RUNAWAY or value < VALUE_LIMIT:
                return self._answer(x, Status.UNBOUNDED, None)
            if outcome.status in (Status.WRONG_GRADIENT, Status.NOT_DETERMINISTIC):
                return self._answer(x, outcome.status, None, self._blame(x, outcome.status))
            ended = outcome.status in FINAL or time.perf_counter() > self.deadline
            if ended or way <= STILL * request.delta:
                last = self._judged(x, self._evidence(outcome), outcome.status, function)
                if last.status in DECIDED or ended:
                    return last
                if target.delta <= 2.0**-6 * request.delta:
                    break
                target = replace(target, eps=0.5 * target.eps, delta=0.25 * target.delta)
        return replace(last, status=Status.NOT_VERIFIED)

    def _placed(self, around: Around) -> Vector:
        """Return x on the bounds that carry a normal, if it stays feasible there."""
        moved = super()._placed(around)
        return around.x if self._excess(moved).any() else moved
