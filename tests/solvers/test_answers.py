"""No search asks twice: neither interpreted nor compiled, nor after a line search that failed."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.oracles import CountedOracle, FunctionOracle
from goldstein.solvers.base import Answers
from goldstein.solvers.logic.questions import TRIAL, VALUE


class Watched:
    """A function that counts what searches ask again; checks ask again on purpose."""

    def __init__(self, problem: Any) -> None:
        self.problem = problem
        self.asked: Counter[tuple[str, bytes]] = Counter()
        self.again = 0

    def _note(self, kind: str, x: np.ndarray) -> None:
        key = kind, x.tobytes()
        self.asked[key] += 1
        frame, names = sys._getframe(2), set()
        while frame is not None:
            names.add(frame.f_code.co_name)
            frame = frame.f_back
        self.again += self.asked[key] > 1 and bool(names & {"value_of", "gradient_of"})

    def fun(self, x: np.ndarray) -> float:
        self._note("value", x)
        return self.problem.fun(x)

    def jac(self, x: np.ndarray) -> np.ndarray:
        self._note("gradient", x)
        return self.problem.jac(x)


@pytest.mark.parametrize("method", ["auto", "bundle"])
@pytest.mark.parametrize("name", ["nesterov_chebyshev_rosenbrock_2", "maxq", "mifflin_2"])
def test_no_question_is_asked_twice(name: str, method: str) -> None:
    problem = gs.problems.get(name)
    watched = Watched(problem)
    gs.minimize(
        watched.fun, problem.x0, watched.jac, eps=1e-5, delta=1e-5, rng=0, max_calls=600,
        method=method,
    )  # fmt: skip
    assert watched.again == 0


def test_answers_are_kept_up_to_a_limit_and_infinity_is_told_to_those_who_must_know() -> None:
    asked: list[float] = []

    def fun(x: np.ndarray) -> float:
        asked.append(float(x[0]))
        return float(x[0]) if x[0] < 5 else np.inf

    oracle = CountedOracle(FunctionOracle(fun, np.sign))
    answers = Answers(1)
    answers._most = 2
    for place in (1.0, 2.0, 1.0, 3.0, 1.0):
        assert answers.value(oracle, np.array([place]), TRIAL) == place
    assert asked == [1.0, 2.0, 3.0, 1.0]
    assert answers.value(oracle, np.array([7.0]), TRIAL) == np.inf
    with pytest.raises(gs.GoldsteinError, match="inf"):
        answers.value(oracle, np.array([7.0]), VALUE)


def test_a_search_that_failed_along_the_gradient_is_not_repeated_from_there() -> None:
    """f has no lower value along minus its gradient, though x is no minimum: the gradient lies."""
    calls: list[bytes] = []

    def fun(x: np.ndarray) -> float:
        calls.append(x.tobytes())
        return float(x @ x)

    gs.minimize(
        fun, [1.0, 1.0], lambda x: -2.0 * x, eps=1e-3, delta=1e-3, rng=0, max_calls=400,
        options={"check_gradient": False},
    )  # fmt: skip
    assert len(set(calls)) >= len(calls) - 2
