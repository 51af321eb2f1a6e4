"""The recorder's books."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.recorder import LEVELS_PER_DECADE, OutOfBudget, Progress, Recorder, thin

import goldstein as gs


def recorder(max_calls: float = math.inf, max_cpu: float = math.inf) -> Recorder:
    return Recorder(gs.problems.get("crescent"), max_calls=max_calls, max_cpu=max_cpu)


def test_calls_are_counted_and_answers_passed_on() -> None:
    problem, oracle = gs.problems.get("crescent"), recorder()
    x = np.array([0.5, -0.25])
    assert oracle.value(x) == problem.value(x)
    assert (oracle.values, oracle.gradients) == (1, 0)
    np.testing.assert_array_equal(oracle.gradient(x), problem.gradient(x))
    assert (oracle.values, oracle.gradients) == (1, 1)
    value, gradient = oracle.both(x)
    assert value == problem.value(x)
    np.testing.assert_array_equal(gradient, problem.gradient(x))
    assert (oracle.values, oracle.gradients, oracle.calls) == (2, 2, 4)


def test_a_solver_s_own_count_agrees() -> None:
    oracle = recorder()
    found = gs.minimize(oracle, oracle.problem.x0, eps=1e-2, delta=1e-2, rng=0)
    assert (found.nfev, found.ngev) == (oracle.values, oracle.gradients)
    assert oracle.gradients > 0


def test_the_best_point_and_the_course() -> None:
    oracle = recorder()
    points = [np.array([3.0, 0.0]), np.array([1.0, 0.0]), np.array([2.0, 0.0]), np.zeros(2)]
    values = [oracle.value(x) for x in points]
    assert values[0] > values[1] < values[2]
    oracle.gradient(points[0])
    improved = [k for k in range(4) if values[k] < min(values[:k], default=math.inf)]
    assert [m.fun for m in oracle.progress] == [values[k] for k in improved]
    assert [m.values for m in oracle.progress] == [k + 1 for k in improved]
    assert oracle.best_fun == min(values)
    np.testing.assert_array_equal(oracle.best_x, points[int(np.argmin(values))])


def test_a_value_next_to_a_gradient_is_looked_at_but_not_counted() -> None:
    oracle = recorder()
    x = np.array([1.0, 0.0])
    oracle.gradient(x)
    assert (oracle.values, oracle.gradients) == (0, 1)
    assert [m.fun for m in oracle.progress] == [oracle.problem.value(x)]
    np.testing.assert_array_equal(oracle.best_x, x)


def test_the_best_point_is_a_copy() -> None:
    oracle = recorder()
    x = np.array([1.0, 0.0])
    oracle.value(x)
    x[:] = 9.0
    np.testing.assert_array_equal(oracle.best_x, [1.0, 0.0])


def test_nan_is_never_the_best() -> None:
    oracle = recorder()
    oracle.value(np.full(2, np.nan))
    assert oracle.progress == []
    assert oracle.best_fun == math.inf


def test_the_budget_is_exact() -> None:
    oracle = recorder(max_calls=3)
    oracle.value(np.zeros(2))
    oracle.both(np.ones(2))
    with pytest.raises(OutOfBudget, match="calls"):
        oracle.gradient(np.ones(2))
    assert oracle.calls == 3


def test_no_solver_catches_the_end_of_the_budget() -> None:
    assert not issubclass(OutOfBudget, Exception)


def test_cpu_time_ends_a_run_too() -> None:
    with pytest.raises(OutOfBudget, match="cpu"):
        recorder(max_cpu=-1.0).value(np.zeros(2))


def test_time_of_function_solver_and_books(monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that function and solver let run, and every look at it by ten seconds."""
    now = 0.0

    def look() -> float:
        nonlocal now
        now += 10.0
        return now

    def work(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("benchmarks.recorder.time.process_time", look)
    oracle = recorder(max_cpu=math.inf)
    value = type(oracle.problem).value
    monkeypatch.setattr(
        type(oracle.problem), "value", lambda self, x: (work(100.0), value(self, x))[1]
    )
    work(1000.0)
    oracle.value(np.zeros(2))
    work(1000.0)
    oracle.value(np.ones(2))
    # One look per answer is the function's, one per question and the last the solver's.
    assert oracle.oracle_cpu == 220.0
    assert oracle.own_cpu == 2030.0


def test_a_remote_solver_reports_its_own_time() -> None:
    oracle = recorder()
    oracle.remote_cpu = 7.0
    assert oracle.own_cpu == 7.0


def course(values: list[float]) -> list[Progress]:
    return [Progress(k + 1, k, 0.0, 0.0, value) for k, value in enumerate(values)]


def test_thinning_keeps_both_ends_and_all_big_steps() -> None:
    big = course([1000.0, 100.0, 10.0, 1.0, 0.0])
    assert thin(big) == big
    assert thin([]) == []
    assert thin(course([1.0])) == course([1.0])
    # Two moments on the last level of all.
    assert thin(course([1.0, 1e-17, 0.0])) == course([1.0, 1e-17, 0.0])


def test_thinning_keeps_about_a_moment_per_level() -> None:
    slow = course((10.0 ** -np.linspace(0, 3, 3001)).tolist() + [0.0])
    kept = thin(slow)
    assert kept[0] == slow[0]
    assert kept[-1] == slow[-1]
    assert 3 * LEVELS_PER_DECADE <= len(kept) <= 3 * LEVELS_PER_DECADE + 3
    # The gap that is reached late by thinning is at most one level.
    for gap in (0.5, 0.1, 0.002):
        first = next(m for m in slow if m.fun <= gap)
        shown = next(m for m in kept if m.fun <= gap)
        assert shown.fun >= first.fun * 10 ** (-1.01 / LEVELS_PER_DECADE)
