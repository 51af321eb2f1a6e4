"""PyGRANSO on constrained problems: it computes in `.venv-peers`, the functions are asked here."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.peers.remote import PeerProcess
from benchmarks.recorder import OutOfBudget

from goldstein.checker.constrained.limits import as_box
from goldstein.oracles.problem import as_system

#: A value and a gradient are one call each; seconds are those of PyGRANSO itself.
MAX_CALLS, MAX_SECONDS = 50_000, 10.0

#: What PyGRANSO accepts as feasible by itself, for equalities.
FEASIBLE = 1e-6


class Limits:
    """A problem as PyGRANSO wants it: f, c(x) <= 0 (the bounds among them), h(x) = 0."""

    max_cpu = MAX_SECONDS

    def __init__(self, problem: Any, limits: Any, fun: Any, jac: Any) -> None:
        self.fun, self.jac = fun, jac
        dim = problem.x0.size
        box = as_box(limits.get("bounds"), dim)
        self.system = as_system(limits.get("constraints", ()), box.clip(problem.x0))
        self.equal = self.system.equal
        above, below = np.isfinite(self.system.upper), np.isfinite(self.system.lower)
        self.above, self.below = above & ~self.equal, below & ~self.equal
        self.high, self.low = np.isfinite(box.upper), np.isfinite(box.lower)
        self.box, self.calls = box, 0
        self.remote_cpu: float | None = None
        #: The lowest value that was seen at a feasible point.
        self.best_x, self._best = box.clip(problem.x0), np.inf

    @property
    def sizes(self) -> tuple[int, int]:
        parts = (self.above, self.below, self.high, self.low)
        return int(sum(part.sum() for part in parts)), int(self.equal.sum())

    def both(self, x: Any) -> tuple[float, Any]:
        self.calls += 2
        if self.calls > MAX_CALLS or (self.remote_cpu or 0.0) > MAX_SECONDS:
            raise OutOfBudget
        return self.fun(x), self.jac(x)

    def rows(self, x: Any) -> Any:
        """Return value and gradient of f, then of each inequality, then of each equality."""
        value, gradient = self.both(x)
        values, jacobian = self.system.values(x), self.system.rows(x)
        eye, system, box = np.eye(x.size), self.system, self.box
        parts = [
            (np.array([value]), np.asarray(gradient)[None]),
            ((values - system.upper)[self.above], jacobian[self.above]),
            ((system.lower - values)[self.below], -jacobian[self.below]),
            ((x - box.upper)[self.high], eye[self.high]),
            ((box.lower - x)[self.low], -eye[self.low]),
            ((values - system.upper)[self.equal], jacobian[self.equal]),
        ]
        table = np.concatenate([np.column_stack(part) for part in parts])
        inequalities, _ = self.sizes
        first, rest = table[1 : 1 + inequalities, 0], table[1 + inequalities :, 0]
        feasible = first.max(initial=0.0) <= 0.0 and np.abs(rest).max(initial=0.0) <= FEASIBLE
        if value < self._best and feasible:
            self.best_x, self._best = x.copy(), value
        return table


def solve(
    process: PeerProcess, method: str, problem: Any, counter: Any, eps: float, delta: float
) -> tuple[Any, str]:
    """Return the last point and how the run ended."""
    limits = Limits(problem, counter.limits, counter.fun, counter.jac)
    try:
        found = process.solve(method, limits, problem.x0, eps, delta, 0, limits.sizes)
    except OutOfBudget:
        return limits.best_x, "out of calls"
    return found.x, found.status
