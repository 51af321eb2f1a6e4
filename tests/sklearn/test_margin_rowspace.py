"""Fewer rows than variables: the search in the span of the rows, and pivots that move few."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from goldstein.fitting.fit import Options
from goldstein.fitting.margin_finish import BUDGET, dispensable, distinct_rows, solve_hinge_qp
from goldstein.fitting.margin_fit import _best_start, least_norm, row_space
from goldstein.fitting.margin_newton import minimise_margin
from goldstein.models.margin_svm import MarginProblem
from goldstein.sklearn import RhoMarginSVC


def wide_problem(seed: int, n: int = 12, d: int = 60, *, intercept: bool = True) -> MarginProblem:
    rng = np.random.default_rng(seed)
    signs = rng.choice([-1.0, 1.0], n)
    Z = signs[:, None] * rng.standard_normal((n, d)) + 0.3 * np.eye(d)[0]
    ridge = np.full(d, 0.1)
    if intercept:
        Z, ridge = np.column_stack([Z, signs]), np.append(ridge, 0.0)
    return MarginProblem.from_rows(Z, np.full(n, 1 / n), ridge, rho=1.0, shift=-0.2)


@given(seed=st.integers(0, 10**6), intercept=st.booleans())
@settings(max_examples=25, deadline=None)
def test_objective_margins_and_lengths_are_those_of_the_whole_space(
    seed: int, intercept: bool
) -> None:
    problem = wide_problem(seed, intercept=intercept)
    span = row_space(problem)
    assert span is not None
    assert span.problem.dim == problem.rows + intercept
    s = np.random.default_rng(seed).standard_normal(span.problem.dim)
    v = span.lift(s)
    assert np.linalg.norm(v) == pytest.approx(np.linalg.norm(s))
    assert problem.product(v) == pytest.approx(span.problem.product(s), abs=1e-9)
    assert problem.value(v) == pytest.approx(span.problem.value(s))
    assert span.coordinates(v) == pytest.approx(s, abs=1e-9)


def test_coordinates_project_onto_the_span_and_never_raise_the_objective() -> None:
    problem = wide_problem(3)
    span = row_space(problem)
    assert span is not None
    v = np.random.default_rng(0).standard_normal(problem.dim)
    there = span.lift(span.coordinates(v))
    assert problem.product(there) == pytest.approx(problem.product(v))
    assert problem.value(there) <= problem.value(v)


@pytest.mark.parametrize("seed", range(4))
def test_search_in_the_span_finds_a_stationary_point_of_the_whole(seed: int) -> None:
    problem = wide_problem(seed)
    found = _best_start(problem, Options(1e-6, 1e-3, seed))
    shares = np.where(problem.product(found.v) - problem.shift < problem.rho, 1.0, 0.0)
    shares[problem.product(found.v) < problem.shift] = 0.0
    shares[found.active] = found.shares
    pull = problem.transposed_product(shares * problem.weights / problem.rho)
    assert np.linalg.norm(problem.ridge * found.v - pull) <= 1e-6
    direct = minimise_margin(problem, rng=np.random.default_rng(seed), eps=1e-6)
    assert problem.value(found.v) == pytest.approx(problem.value(direct.v), abs=2e-2)


def test_what_is_no_gain_or_no_span_is_left_alone() -> None:
    tall = wide_problem(0, n=40, d=60)
    assert row_space(tall) is None
    wide = wide_problem(0)
    twice = np.concatenate([wide.Z, wide.Z[:1]])
    repeated = MarginProblem.from_rows(twice, np.ones(13), wide.ridge, rho=1.0)
    assert row_space(repeated) is None
    uneven = MarginProblem.from_rows(wide.Z, wide.weights, np.arange(61.0), rho=1.0)
    assert row_space(uneven) is None


@given(seed=st.integers(0, 10**6), k=st.integers(1, 6), dependent=st.booleans())
@settings(max_examples=40, deadline=None)
def test_least_norm_is_that_of_the_pseudoinverse(seed: int, k: int, dependent: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((k, 9))
    if dependent:
        rows = np.concatenate([rows, rows[:1]])
    levels = rows @ rng.standard_normal((9, 3))
    assert least_norm(rows, levels) == pytest.approx(np.linalg.pinv(rows) @ levels, abs=1e-6)


@given(st.lists(st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.5]), min_size=3, max_size=3)))
def test_distinct_rows_are_distinct_and_all_there(rows: list[list[float]]) -> None:
    dense = np.array(rows).reshape(-1, 3)
    distinct, group = distinct_rows(dense)
    assert len(distinct) == len({tuple(row) for row in rows})  # -0.0 == 0.0
    assert np.array_equal(distinct[group], dense)


@pytest.mark.parametrize("certificate", ["near", "goldstein"])
def test_wide_data_are_certified_and_weights_are_repeats(certificate: str) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((30, 400))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    machine = RhoMarginSVC(certificate=certificate, random_state=0).fit(X, y)
    assert machine.score(X, y) == 1.0
    assert (machine.near_stationarity_ is not None) == (certificate == "near")
    assert machine.certificate_.verify(machine.objective(X, y)).ok
    twice = np.concatenate([X, X[:5]])
    weights = np.where(np.arange(30) < 5, 2.0, 1.0)
    weighted = RhoMarginSVC(eps=1e-8, random_state=0).fit(X, y, sample_weight=weights)
    repeated = RhoMarginSVC(eps=1e-8, random_state=0).fit(twice, np.concatenate([y, y[:5]]))
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-5)


@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("weak", [1.0, 1e-11])
def test_hinge_qp_in_the_rows_is_as_accurate_as_in_the_variables(thin: bool, weak: float) -> None:
    rng = np.random.default_rng(0)
    M, c = rng.standard_normal((40, 150)), rng.standard_normal(150)
    q, diagonal = rng.random(40) + 0.1, rng.random(150) + 0.5
    diagonal[-1] *= weak
    v, a = solve_hinge_qp(diagonal, c, sparse.csr_array(M) if thin else M, q, 1.0, np.zeros(150))
    assert diagonal * v + c == pytest.approx(M.T @ a, abs=1e-12)
    assert a.min() >= 0
    assert (a <= q).all()
    between = (a > 1e-6) & (a < q - 1e-6)
    assert between.sum() > 10
    assert (M @ v)[between] == pytest.approx(1.0, abs=1e-8)
    assert ((M @ v)[a <= 1e-6] >= 1 - 1e-6).all()
    assert ((M @ v)[a >= q - 1e-6] <= 1 + 1e-6).all()


def test_dispensable_rows_fit_into_the_budget_and_one_more_does_not() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((30, 80))
    problem = MarginProblem.from_rows(Z, np.full(30, 1 / 30), np.ones(80), rho=1.0)
    shares, eps = rng.random(30), 0.2
    active = np.arange(30)
    leaving = dispensable(problem, active, shares, eps)
    change = (shares - np.round(shares))[:, None] * Z / 30
    assert 0 < leaving.size < 30
    assert np.linalg.norm(change[leaving].sum(axis=0)) <= BUDGET * eps
    rest = np.setdiff1d(active, leaving)
    following = rest[np.argmin(np.linalg.norm(change[rest], axis=1))]
    assert np.linalg.norm(change[[*leaving, following]].sum(axis=0)) > BUDGET * eps
    thin = MarginProblem.from_rows(sparse.csr_array(Z), problem.weights, problem.ridge, rho=1.0)
    assert np.array_equal(dispensable(thin, active, shares, eps), leaving)


def test_distinct_rows_of_a_sparse_matrix_ignore_stored_zeros() -> None:
    rows = sparse.csr_array(np.array([[1.0, 0, 2], [0, 3, 0], [1, 0, 2], [4, 0, 2]]))
    rows.data[-2] = 0.0  # the last row is now (0, 0, 2), one zero stored
    distinct, group = distinct_rows(rows)
    assert group.tolist() == [0, 1, 0, 2]
    assert distinct.toarray()[group].tolist() == rows.toarray().tolist()


def test_many_rows_on_kinks_get_a_goldstein_certificate_without_a_long_search() -> None:
    rng = np.random.default_rng(0)
    X = sparse.random_array((900, 1500), density=0.02, rng=rng, format="csr")
    y = (X @ rng.standard_normal(1500) > 0).astype(int)
    machine = RhoMarginSVC.from_ramp(-1.0, C=10.0, random_state=0).fit(X, y)
    found = machine.certificate_.verify(machine.objective(X, y))
    assert found.ok
    assert found.eps <= 1e-3
