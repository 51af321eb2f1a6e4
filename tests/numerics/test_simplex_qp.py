"""Quadratic programmes on the simplex: feasible always, optimal as a rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldstein.numerics.simplex_qp import SquaresOnSimplex, minimise_on_simplex


def instance(seed: int, count: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim)) + rng.standard_normal(dim)
    return rows @ rows.T, rng.random(count) * rng.choice([0.0, 1e-3, 1.0])


def objective(gram: np.ndarray, linear: np.ndarray, w: np.ndarray) -> float:
    return float(0.5 * w @ gram @ w + linear @ w)


@given(st.integers(0, 10**6), st.integers(1, 15), st.integers(1, 12), st.booleans())
def test_feasible_and_better_than_every_vertex(seed: int, count: int, dim: int, warm: bool) -> None:
    gram, linear = instance(seed, count, dim)
    start = np.random.default_rng(seed).standard_normal(count).clip(min=0.0) if warm else None
    w = minimise_on_simplex(gram, linear, start)
    assert (w >= 0).all()
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    if not warm:
        best = (0.5 * gram.diagonal() + linear).min()
        assert objective(gram, linear, w) <= best + 1e-9 * abs(best)


@given(st.integers(0, 10**6), st.integers(2, 10))
def test_optimality_conditions(seed: int, count: int) -> None:
    """With independent rows the slopes are equal on the support and larger elsewhere."""
    gram, linear = instance(seed, count, count + 5)
    for start in (None, np.ones(count)):
        w = minimise_on_simplex(gram, linear, start)
        slopes = gram @ w + linear
        tolerance = 1e-6 * (abs(slopes).max() + 1.0)
        assert slopes.min() >= slopes @ w - tolerance
        assert np.abs(slopes[w > 0] - slopes @ w).max() <= tolerance


def test_a_warm_start_does_not_change_the_answer() -> None:
    gram, linear = instance(1, 12, 20)
    cold = minimise_on_simplex(gram, linear)
    for seed in range(5):
        start = np.random.default_rng(seed).random(12) * 7.0
        assert minimise_on_simplex(gram, linear, start) == pytest.approx(cold, abs=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_unusable_starts_are_ignored(bad: float) -> None:
    gram, linear = instance(2, 4, 6)
    start = np.array([bad, 1.0, 0.0, 0.0])
    assert np.array_equal(
        minimise_on_simplex(gram, linear, start), minimise_on_simplex(gram, linear)
    )


def test_equal_rows() -> None:
    w = minimise_on_simplex(np.ones((5, 5)), np.zeros(5))
    assert w.sum() == pytest.approx(1.0)


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 12), st.integers(-8, 8))
def test_least_squares_are_as_good_to_a_thousandth(
    seed: int, count: int, dim: int, power: int
) -> None:
    """(a'w)^2/c is at most a'w/1000: no feasible w has a value smaller by more than that."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim)) + rng.standard_normal(dim)
    linear = rng.random(count) * 10.0 ** rng.integers(-3, 3) * rng.choice([0.0, 1.0])
    rows, linear = rows * 10.0**power, linear * 100.0**power
    problem = SquaresOnSimplex(dim, count)
    for _ in range(2):  # the storage is used again
        problem.columns[:] = rows.T
        w = problem.minimise(linear)
        assert w is not None
        assert (w >= 0).all()
        assert w.sum() == pytest.approx(1.0, abs=1e-12)
        gram = rows @ rows.T
        best = minimise_on_simplex(gram, linear)
        reached, wanted = objective(gram, linear, w), objective(gram, linear, best)
        rounding = 1e-12 * (gram.max() + linear.max())
        assert reached <= wanted + 1e-3 * (linear @ best) + rounding


@pytest.mark.parametrize("far", [1.0, 1e4, 1e8, 1e14, 1e30, 1e200])
def test_a_coefficient_out_of_reach_does_not_cost_the_others_their_digits(far: float) -> None:
    problem = SquaresOnSimplex(2, 3)
    problem.columns[:] = [[1.0, -1.0, 0.0], [1.0, 1.0, 1.0]]
    weights = problem.minimise(np.array([0.0, 0.5, far]))
    assert weights == pytest.approx([0.625, 0.375, 0.0], abs=2e-4)


def test_least_squares_do_not_warn_where_they_overflow() -> None:
    problem = SquaresOnSimplex(2, 3)
    problem.columns[:] = 1e250
    assert problem.minimise(np.array([0.0, 1e-150, 0.0])) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_least_squares_give_up_on_numbers_that_are_not_finite(bad: float) -> None:
    problem = SquaresOnSimplex(2, 3)
    problem.columns[:] = bad
    assert problem.minimise(np.ones(3)) is None
    problem.columns[:] = 1.0
    assert problem.minimise(np.array([0.0, bad, 1.0])) is None
    problem.columns[:] = np.eye(2, 3)
    assert problem.minimise(np.zeros(3)) == pytest.approx([0.0, 0.0, 1.0])
