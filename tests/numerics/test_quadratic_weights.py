"""Quadratic programmes on the simplex by least squares, against an active-set method."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference_quadratic import minimise_on_simplex

from goldstein.numerics.hull_problems import factor_of_gram, quadratic_weights


def instance(seed: int, count: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim)) + rng.standard_normal(dim)
    return rows @ rows.T, rng.random(count) * rng.choice([0.0, 1e-3, 1.0])


def objective(gram: np.ndarray, linear: np.ndarray, w: np.ndarray) -> float:
    return float(0.5 * w @ gram @ w + linear @ w)


@given(st.integers(0, 10**6), st.integers(1, 20), st.integers(1, 12), st.integers(-8, 8))
def test_as_good_as_exact_to_a_thousandth(seed: int, count: int, dim: int, power: int) -> None:
    """(a'w)^2/c is at most a'w/1000: no feasible w has a value smaller by more than that."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim)) + rng.standard_normal(dim)
    linear = rng.random(count) * 10.0 ** rng.integers(-3, 3) * rng.choice([0.0, 1.0])
    rows, linear = rows * 10.0**power, linear * 100.0**power
    w = quadratic_weights(rows.T, linear)
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
    columns = np.array([[1.0, -1.0, 0.0], [1.0, 1.0, 1.0]])
    weights = quadratic_weights(columns, np.array([0.0, 0.5, far]))
    assert weights == pytest.approx([0.625, 0.375, 0.0], abs=2e-4)


def test_overflow_gives_up_without_a_warning() -> None:
    assert quadratic_weights(np.full((2, 3), 1e250), np.array([0.0, 1e-150, 0.0])) is None


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_gives_up_on_numbers_that_are_not_finite(bad: float) -> None:
    assert quadratic_weights(np.full((2, 3), bad), np.ones(3)) is None
    assert quadratic_weights(np.ones((2, 3)), np.array([0.0, bad, 1.0])) is None
    assert quadratic_weights(np.eye(2, 3), np.zeros(3)) == pytest.approx([0.0, 0.0, 1.0])


@given(st.integers(0, 10**6), st.integers(1, 15), st.integers(1, 12))
def test_a_gram_matrix_has_a_factor_however_singular(seed: int, count: int, dim: int) -> None:
    gram, linear = instance(seed, count, dim)
    columns = factor_of_gram(gram)
    assert columns is not None
    assert columns.T @ columns == pytest.approx(gram, abs=1e-9 * gram.max())
    w = quadratic_weights(columns, linear)
    assert w is not None
    best = minimise_on_simplex(gram, linear)
    wanted = objective(gram, linear, best) + 1e-3 * (linear @ best)
    assert objective(gram, linear, w) <= wanted + 1e-9 * gram.max()


def test_what_is_no_gram_matrix_has_no_factor() -> None:
    assert factor_of_gram(np.array([[1.0, 2.0], [2.0, 1.0]])) is None
