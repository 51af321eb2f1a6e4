"""Shor's r-algorithm: the space it sees, the step rule, and what it solves."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein.oracles import CountedOracle, FunctionOracle
from goldstein.solvers.memory import GradientMemory
from goldstein.solvers.ralg import SpaceDilation


def test_space_is_dilated_along_differences_of_gradients_and_nowhere_else() -> None:
    search = SpaceDilation(np.zeros(3), 0.0, 1.0, 2.0, np.random.default_rng(0))
    change = np.array([3.0, 0.0, 4.0])
    search._dilate(change)
    unit = change / 5.0
    expected = np.eye(3) - 0.5 * np.outer(unit, unit)
    assert search._space == pytest.approx(expected, abs=1e-14)
    # Once more: what is dilated is the space as it is seen by then.
    search._dilate(np.array([0.0, 1.0, 0.0]))
    assert np.linalg.det(search._space) == pytest.approx(0.25)


def test_a_line_search_ends_where_the_slope_has_changed_its_sign() -> None:
    oracle = CountedOracle(
        FunctionOracle(lambda x: abs(float(x[0]) - 2.5), lambda x: np.sign(x - 2.5))
    )
    search = SpaceDilation(np.zeros(1), 2.5, 1.0, 2.0, np.random.default_rng(0))
    search.step(oracle, GradientMemory(1, 10))
    assert search._at[0] == 3.0
    assert search.fx == 0.5
    assert search.length == 3.0


def test_a_point_where_f_is_not_defined_shortens_the_step() -> None:
    def fun(x: np.ndarray) -> float:
        return float(-np.log(1.0 - x[0])) - 3.0 * float(x[0]) if x[0] < 1.0 else np.inf

    res = gs.minimize(
        fun, [0.0], lambda x: 1.0 / (1.0 - x) - 3.0, eps=1e-4, delta=1e-4, method="ralg", rng=0
    )
    assert res.success
    assert res.x[0] == pytest.approx(2.0 / 3.0, abs=1e-3)


@pytest.mark.parametrize("name", ["maxquad", "evd61", "mifflin_2"])
def test_it_solves_what_shor_solved(name: str) -> None:
    problem = gs.problems.get(name)
    res = gs.minimize(problem, problem.x0, eps=1e-4, delta=1e-4, method="ralg", rng=0)
    assert res.success
    assert res.certificate.verify(problem).ok
    fall = problem.fun(problem.x0) - problem.best_value
    assert res.fun - problem.best_value <= 1e-5 * fall


@pytest.mark.parametrize("options", [{"dilation": 1.0}, {"first_step": 0.0}])
def test_what_makes_no_sense_is_refused(options: dict[str, float]) -> None:
    with pytest.raises(gs.InputError):
        gs.RAlgorithm(**options)
