"""Quadratic programmes on the simplex: feasible always, optimal as a rule."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldstein.numerics.simplex_qp import minimise_on_simplex


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
