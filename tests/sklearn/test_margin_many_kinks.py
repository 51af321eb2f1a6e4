"""Large margin problems: truncated Newton steps, fewer kinks, certificates from scaled points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from goldstein.certificates.verifying import as_proved
from goldstein.fitting.margin_fit import goldstein_at, goldstein_by_scaling, thinned
from goldstein.fitting.margin_newton import _Search, minimise_margin, narrowed, truncated_direction
from goldstein.models import margin_svm
from goldstein.models.margin_svm import MarginProblem, Smoothing, labelled_rows
from goldstein.sklearn import RhoMarginSVC


def text(n: int, d: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of some 20 words with falling frequencies, unit length; 5 % of the labels flipped."""
    rng = np.random.default_rng(seed)
    words = np.minimum((d * rng.random((n, 20)) ** 3).astype(int), d - 1)
    X = sparse.csr_array(
        (np.ones(words.size), words.ravel(), np.arange(0, words.size + 1, 20)), shape=(n, d)
    )
    X.sum_duplicates()
    X = (sparse.diags_array(1.0 / sparse.linalg.norm(X, axis=1)) @ X).tocsr()
    score = X @ (rng.standard_normal(d) * (rng.random(d) < 0.3))
    y = (score > np.median(score)).astype(int)
    return X, np.where(rng.random(n) < 0.05, 1 - y, y)


@pytest.mark.parametrize("intercept", [True, False])
def test_labelled_rows_are_the_same_dense_and_sparse(intercept: bool) -> None:
    X, y = text(30, 15)
    X.data[X.indptr[3] : X.indptr[4]] = 0.0
    X.eliminate_zeros()
    signs = np.where(y == 1, 1.0, -1.0)
    expected = signs[:, None] * X.toarray()
    if intercept:
        expected = np.column_stack([expected, signs])
    thin = labelled_rows(X, signs, intercept=intercept)
    assert np.array_equal(thin.toarray(), expected)
    assert np.array_equal(labelled_rows(X.toarray(), signs, intercept=intercept), expected)
    problem = MarginProblem.from_rows(thin, np.ones(30), np.ones(expected.shape[1]), rho=1.0)
    norms = np.linalg.norm(expected, axis=1)
    assert (problem.row_norms >= norms * (1 - 1e-15)).all()
    assert problem.row_norms == pytest.approx(norms, rel=1e-11)


def test_a_model_keeps_handed_over_sparse_data_and_copies_other_data() -> None:
    X, y = text(30, 15)
    Z = labelled_rows(X, np.where(y == 1, 1.0, -1.0), intercept=False)
    assert np.shares_memory(margin_svm(Z).Z.data, Z.data)
    model = margin_svm(X)
    before = model.value(np.ones(15))
    X.data[:] = 7.0
    model.value(np.zeros(15))  # so that the last answer is not simply given again
    assert model.value(np.ones(15)) == before


@given(seed=st.integers(0, 10**6), width=st.sampled_from([0.02, 0.3, 2.0]))
@settings(max_examples=20, deadline=None)
def test_truncated_direction_is_close_to_newtons(seed: int, width: float) -> None:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((60, 12))
    ridge = np.full(12, 0.05)
    problem = MarginProblem.from_rows(Z, np.full(60, 1 / 60), ridge, rho=1.0)
    v = rng.standard_normal(12)
    s = Smoothing(width, np.inf)
    u, _, gradient = problem.smooth_pass(v, s)
    rows, c = problem.curvature(u, s)
    H = np.diag(ridge) + Z[rows].T @ (c[:, None] * Z[rows])
    direction = truncated_direction(problem, u, gradient, s, 0.0)
    assert gradient @ direction < 0
    assert np.linalg.norm(H @ direction + gradient) <= 0.1001 * np.linalg.norm(gradient)


def test_thinned_minimisers_keep_few_kinks_and_the_certificate() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 12))
    signs = np.sign(X[:, 0] + 0.5 * rng.standard_normal(3000))
    Z = labelled_rows(X, signs, intercept=True)
    model = margin_svm(Z, 1.0, 1 / 3000, weights=np.full(3000, 1 / 3000), intercept=True)
    found = minimise_margin(model.problem, rng=rng, eps=1e-9)
    few = thinned(model.problem, found, 2e-3, 1e-3)
    assert few is not None
    assert few.active.size < found.active.size
    certificate = goldstein_at(model, few, 1e-3, 0)
    assert certificate is not None
    certificate = as_proved(certificate, model)  # exact gradients overrule those in float64
    assert certificate is not None
    assert certificate.eps <= 2e-3
    assert certificate.verify(model).ok
    assert model.value(few.v) <= model.value(found.v) + 1e-5


def test_text_is_learned_and_certified() -> None:
    X, y = text(4000, 2000)
    machine = RhoMarginSVC.from_ramp(-1.0, random_state=0).fit(X, y)
    assert machine.goldstein_stationarity_[0] <= 1e-3
    assert machine.certificate_.verify(machine.objective(X, y)).ok
    assert machine.score(X, y) > 0.85


def test_scaled_points_certify_where_one_point_does_not() -> None:
    X, y = text(4000, 2000)
    Z = labelled_rows(X, np.where(y == 1, 1.0, -1.0), intercept=True)
    model = margin_svm(Z, 1.0, 1 / 4000, weights=np.full(4000, 1 / 4000), intercept=True)
    found = minimise_margin(model.problem, rng=np.random.default_rng(0), eps=3e-4, delta=1e-3)
    one, many = (goldstein_by_scaling(model, found.v, 1e-3, count, 0) for count in (1, 8))
    assert one is not None
    assert many is not None
    assert many.eps < 0.5 * one.eps
    assert many.delta <= 1e-3
    assert many.verify(model).ok


@pytest.mark.parametrize("shift", [0.0, -1.0])
def test_narrowing_keeps_the_shares_and_ends_near_the_sharper_minimiser(shift: float) -> None:
    X, y = text(400, 600)
    Z = labelled_rows(X, np.where(y == 1, 1.0, -1.0), intercept=True)
    ridge = np.append(np.full(600, 1 / 2000), 0.0)
    problem = MarginProblem.from_rows(Z, np.full(400, 1 / 400), ridge, rho=1 - shift, shift=shift)
    old, new = 0.02, 0.002
    search = _Search()
    hinge = Smoothing(2.0, np.inf)
    v, u = search.settle(problem, np.zeros(601), hinge, 1e-6, 50)
    for width in (0.1, old):
        v, u = search.settle(problem, v, Smoothing(width), 1e-7, 100)
    stays = problem.smooth_gradient(v, u, Smoothing(new))
    there = narrowed(problem, v, u, old, new, 1e-6)
    moves = problem.smooth_pass(there, Smoothing(new))[2]
    assert np.linalg.norm(moves) <= 0.3 * np.linalg.norm(stays)
    # A start that is no better is not taken.
    taken = search.narrow(problem, v, u, (old, new), 1e-6)
    assert np.array_equal(taken, there)
    assert np.array_equal(search.narrow(problem, v, u, (1e-12, old), 1e-6), v)
