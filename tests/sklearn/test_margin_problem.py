"""The margin objective as arrays: exact screening, smoothing, convex subproblems."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize as scipy_minimize

from goldstein.fitting.margin_finish import solve_hinge_qp
from goldstein.fitting.margin_fit import goldstein_at, near_at
from goldstein.fitting.margin_newton import minimise_margin
from goldstein.models import margin_svm
from goldstein.models.margin_svm import MarginProblem, Smoothing


def random_problem(seed: int, n: int = 30, d: int = 4, *, as_sparse: bool = False) -> MarginProblem:
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, d))
    ridge = np.full(d, 0.1)
    ridge[-1] = 0.0
    weights = rng.random(n)
    data = sparse.csr_array(Z) if as_sparse else Z
    return MarginProblem.from_rows(
        data, weights / weights.sum(), ridge, rho=0.7, shift=rng.uniform(-0.5, 0.5)
    )


@given(seed=st.integers(0, 10**6), radius=st.floats(1e-4, 2.0))
@settings(max_examples=50, deadline=None)
def test_screened_problem_equals_the_whole_one_in_the_ball(seed: int, radius: float) -> None:
    problem = random_problem(seed)
    rng = np.random.default_rng(seed + 1)
    v = rng.standard_normal(problem.dim)
    local = problem.restrict(v, problem.product(v), radius)
    assert local.rows <= problem.rows
    for _ in range(5):
        step = rng.standard_normal(problem.dim)
        y = v + radius * rng.random() * step / np.linalg.norm(step)
        assert local.value(y) == pytest.approx(problem.value(y), abs=1e-12)
        assert local.gradient(y) == pytest.approx(problem.gradient(y), abs=1e-12)


def test_screening_leaves_out_most_rows_of_a_small_ball() -> None:
    problem = random_problem(0, n=500)
    v = np.ones(problem.dim)
    assert problem.restrict(v, problem.product(v), 1e-3).rows < 25


@pytest.mark.parametrize("as_sparse", [False, True])
@pytest.mark.parametrize("smoothing", [Smoothing(0.3), Smoothing(0.2, 0.5), Smoothing(0.5, np.inf)])
def test_smoothed_gradient_is_the_derivative_of_the_smoothed_value(
    smoothing: Smoothing, as_sparse: bool
) -> None:
    problem = random_problem(3, as_sparse=as_sparse)
    v = np.random.default_rng(4).standard_normal(problem.dim)
    u, value, gradient = problem.smooth_pass(v, smoothing)
    assert value == pytest.approx(problem.smooth_value(v, u, smoothing))
    assert gradient == pytest.approx(problem.smooth_gradient(v, u, smoothing))
    step = 1e-6
    for k in range(problem.dim):
        ahead, behind = v.copy(), v.copy()
        ahead[k] += step
        behind[k] -= step
        up = problem.smooth_value(ahead, problem.product(ahead), smoothing)
        down = problem.smooth_value(behind, problem.product(behind), smoothing)
        assert gradient[k] == pytest.approx((up - down) / (2 * step), abs=1e-6)


def test_smoothed_value_tends_to_the_value() -> None:
    problem = random_problem(5)
    v = np.random.default_rng(6).standard_normal(problem.dim)
    u = problem.product(v)
    assert problem.smooth_value(v, u, Smoothing(1e-9)) == pytest.approx(problem.value(v), abs=1e-8)


def test_ramp_loss_of_the_literature_is_a_shifted_and_scaled_margin_loss() -> None:
    u = np.linspace(-3, 3, 101)
    for s in (-1.0, 0.0, 0.5):
        ramp = np.minimum(1 - s, np.maximum(0, 1 - u))
        margin = (1 - s) * np.clip(1 - (u - s) / (1 - s), 0, 1)
        assert margin == pytest.approx(ramp)


@pytest.mark.parametrize("rows", [3, 40])
def test_hinge_qp_agrees_with_a_general_solver(rows: int) -> None:
    rng = np.random.default_rng(rows)
    M, c = rng.standard_normal((rows, 5)), rng.standard_normal(5)
    q, diagonal = rng.random(rows) + 0.1, rng.random(5) + 0.5

    def objective(v: np.ndarray) -> float:
        return 0.5 * (diagonal * v) @ v + c @ v + q @ np.maximum(0, 1 - M @ v)

    v, a = solve_hinge_qp(diagonal, c, M, q, 1.0, np.zeros(5))
    assert diagonal * v + c == pytest.approx(M.T @ a, abs=1e-9)
    assert (a >= 0).all()
    assert (a <= q).all()
    other = scipy_minimize(objective, v + 0.1, method="Nelder-Mead", options={"maxfev": 4000})
    assert objective(v) <= other.fun + 1e-12


@given(seed=st.integers(0, 10**6), C=st.sampled_from([0.01, 1.0, 100.0]))
@example(seed=272810, C=0.01)  # the minimiser is 0, and no row is on its kink
@settings(max_examples=25, deadline=None)
def test_minimiser_has_a_certificate_without_search(seed: int, C: float) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 3))
    signs = np.sign(X[:, 0] + 0.5 * rng.standard_normal(40))
    Z = np.column_stack([X, np.ones(40)]) * signs[:, None]
    model = margin_svm(Z, 1.0, 1.0 / (C * 40), weights=np.full(40, 1 / 40), intercept=True)
    found = minimise_margin(model.problem, rng=rng, eps=1e-3)
    certificate = goldstein_at(model, found, 1e-3, seed)
    assert certificate is not None
    assert certificate.eps <= 1e-3
    assert certificate.verify(model).ok
    near = near_at(model, found, eps=1e-3, delta=1e-3)
    assert near is not None
    assert near.eps <= 1e-3
    assert near.label == "certified"
    assert near.verify(model).ok
    # No random point nearby is visibly lower: it is a local minimiser.
    here = model.value(found.v)
    for _ in range(20):
        step = rng.standard_normal(4)
        assert model.value(found.v + 1e-4 * step / np.linalg.norm(step)) >= here - 1e-7


def test_model_with_a_neighbourhood_answers_the_same() -> None:
    rng = np.random.default_rng(0)
    Z = rng.standard_normal((200, 5))
    plain, quick = margin_svm(Z), margin_svm(Z)
    quick.neighbourhood = 0.05
    x = rng.standard_normal(5)
    for _ in range(20):
        y = x + 0.02 * rng.standard_normal(5)
        assert quick.value(y) == pytest.approx(plain.value(y))
        assert quick.gradient(y) == pytest.approx(plain.gradient(y))
