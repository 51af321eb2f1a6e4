"""The instrumented function every method sees: counts, CPU time, course of the best value."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass

import numpy as np

from goldstein.oracles import Oracle
from goldstein.problems import Problem

#: The course of a run is kept at this many levels of the remaining gap per decade.
LEVELS_PER_DECADE = 12


class OutOfBudget(BaseException):
    """Ends a run from inside the function; no solver is meant to catch it."""


@dataclass(frozen=True)
class Progress:
    """A moment at which the best value improved."""

    values: int
    gradients: int
    own_cpu: float
    oracle_cpu: float
    fun: float


class Recorder(Oracle):
    """A problem that keeps the books.

    Attributes
    ----------
    values, gradients : int
        Calls so far; `both` counts as one of each.
    oracle_cpu : float
        CPU seconds spent in the problem itself.
    remote_cpu : float or None
        CPU seconds of the solver when it runs in another process.
    best_x, best_fun
        The lowest value seen and its point.
    """

    def __init__(self, problem: Problem, *, max_calls: float, max_cpu: float) -> None:
        self.problem = problem
        self.dim = problem.dim
        self.max_calls, self.max_cpu = max_calls, max_cpu
        self.values = self.gradients = 0
        self.oracle_cpu = 0.0
        self._books_cpu = 0.0  # of this class: nobody's
        self.remote_cpu: float | None = None
        self.best_x = np.array(problem.x0)
        self.best_fun = math.inf
        self.progress: list[Progress] = []
        self._start = time.process_time()

    @property
    def name(self) -> str:
        return self.problem.name

    @property
    def calls(self) -> int:
        return self.values + self.gradients

    @property
    def own_cpu(self) -> float:
        """CPU seconds of the solver itself so far."""
        return self._own_cpu(time.process_time())

    def value(self, x: np.ndarray) -> float:
        asked = self._check_budget()
        self.values += 1
        begin = time.process_time()
        answer = self.problem.value(x)
        self._keep_books(asked, begin, x, answer)
        return answer

    def gradient(self, y: np.ndarray) -> np.ndarray:
        asked = self._check_budget()
        self.gradients += 1
        begin = time.process_time()
        try:
            return self.problem.gradient(y)
        finally:  # also at a kink
            self._keep_books(asked, begin, y)

    def both(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at one point."""
        asked = self._check_budget()
        self.values += 1
        self.gradients += 1
        begin = time.process_time()
        answer, gradient = self.problem.fun_and_jac(x)
        self._keep_books(asked, begin, x, answer)
        return answer, gradient

    def _own_cpu(self, now: float) -> float:
        if self.remote_cpu is not None:
            return self.remote_cpu
        return now - self._start - self.oracle_cpu - self._books_cpu

    def _check_budget(self) -> float:
        """Return the time at which the question came."""
        asked = time.process_time()
        if self.calls >= self.max_calls:
            raise OutOfBudget("calls")
        if self.calls % 64 == 0 and self._own_cpu(asked) + self.oracle_cpu > self.max_cpu:
            raise OutOfBudget("cpu")
        return asked

    def _keep_books(
        self, asked: float, begin: float, x: np.ndarray, value: float | None = None
    ) -> None:
        """A question that came at `asked` and went to the problem at `begin` has its answer.

        Where only the gradient was asked for, f is looked at here: nobody's call, nobody's time.
        """
        end = time.process_time()
        own = self._own_cpu(asked)
        self.oracle_cpu += end - begin
        if value is None:
            value = self.problem.value(x)
        if value < self.best_fun:
            self.best_fun = value
            self.best_x = np.array(x)
            self.progress.append(Progress(self.values, self.gradients, own, self.oracle_cpu, value))
        self._books_cpu += begin - asked + time.process_time() - end


def thin(progress: list[Progress]) -> list[Progress]:
    """Keep the moments at which the gap to the end crossed a new level, about a hundred of them."""
    if not progress:
        return []
    first, last = progress[0].fun, progress[-1].fun
    kept, reached = [], -1
    for moment in progress:
        ratio = (moment.fun - last) / (first - last) if first > last else 0.0
        level = 16 * LEVELS_PER_DECADE
        if ratio > 0.0:
            level = min(level, int(-math.log10(ratio) * LEVELS_PER_DECADE))
        if level > reached:
            kept.append(moment)
            reached = level
    if kept[-1] is not progress[-1]:
        kept.append(progress[-1])
    return kept
