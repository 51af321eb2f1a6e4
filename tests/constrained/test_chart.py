"""Curved equalities: the search runs along them, and penalties take over where it cannot."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs
from goldstein.oracles.problem import Problem
from goldstein.reductions.functions import Chart

SPHERE = NonlinearConstraint(lambda x: x @ x, 1.0, 1.0, jac=lambda x: 2 * x[None])


def problem_with(constraints, dim, bounds=None):
    oracle = gs.FunctionOracle(lambda x: float(x @ x), lambda x: 2 * x)
    return Problem.of(oracle, np.ones(dim), bounds, constraints)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_points_satisfy_the_equalities_and_gradients_follow(seed, count, with_plane):
    rng = np.random.default_rng(seed)
    dim = count + 3
    linear, squares = rng.standard_normal((2, count, dim))
    base = rng.standard_normal(dim)

    def values(x):
        return linear @ x + 0.1 * squares @ x**2

    limits = values(base)
    curved = NonlinearConstraint(values, limits, limits, jac=lambda x: linear + 0.2 * squares * x)
    row = rng.standard_normal((1, dim))
    plane = LinearConstraint(row, row @ base, row @ base)
    problem = problem_with([curved, plane] if with_plane else curved, dim)
    chart = Chart(problem, base, 1e-3)
    if not chart.made:  # rows that happen to be nearly dependent
        return
    assert chart.dim == dim - count - with_plane
    assert chart.holding.all()
    z = 0.2 * rng.standard_normal(chart.dim)
    place = chart.place(z)
    if place.gap > 0.0:
        return
    np.testing.assert_allclose(chart.apply(place.y), z, atol=1e-9)
    assert problem.constraints.violation(place.y) <= 1e-10
    other = rng.standard_normal(dim)
    step = 1e-6
    slope = [
        other @ (chart.place(z + step * e).y - chart.place(z - step * e).y) / (2 * step)
        for e in np.eye(chart.dim)
    ]
    np.testing.assert_allclose(chart.gradient(z, other, 1.0), slope, rtol=1e-3, atol=1e-4)


def test_beyond_the_chart_stands_its_last_point():
    chart = Chart(problem_with(SPHERE, 3), np.array([0.0, 0.0, 1.0]), 1e-3)
    place = chart.place(np.array([30.0, 40.0]))
    assert place.gap > 0.0
    assert place.y @ place.y == pytest.approx(1.0)
    assert np.linalg.norm(chart.gradient(np.array([30.0, 40.0]), np.ones(3), 2.0)) == (
        pytest.approx(2.0)
    )
    assert not chart.bent(np.array([0.1, 0.0]))
    assert chart.bent(np.array([0.9, 0.0]))


def test_where_no_chart_is_made():
    x = np.array([0.3, 0.4])
    kinked = NonlinearConstraint(lambda x: abs(x[0]) + x[1], 1, 1,
                                 jac=lambda x: np.array([[np.sign(x[0]), 1.0]]))  # fmt: skip
    line = LinearConstraint([[1.0, 1.0]], 1.0, 1.0)
    point = NonlinearConstraint(lambda x: x @ x, 0.0, 0.0, jac=lambda x: 2 * x[None])
    nowhere = NonlinearConstraint(lambda x: x @ x, -1.0, -1.0, jac=lambda x: 2 * x[None])
    assert Chart(problem_with(SPHERE, 2), x, 1e-3).made
    assert Chart(problem_with(kinked, 2), x, 1e-3).made
    assert not Chart(problem_with(kinked, 2), np.array([1e-6, 0.9]), 1e-3).made
    assert not Chart(problem_with(line, 2), x, 1e-3).made  # flats are done otherwise
    assert not Chart(problem_with(SPHERE, 2, [(-2, 2), (None, None)]), x, 1e-3).made
    assert not Chart(problem_with([SPHERE, line], 2), x, 1e-3).made  # points are left
    assert not Chart(problem_with(point, 2), x, 1e-3).made
    assert not Chart(problem_with(nowhere, 2), x, 1e-3).made


@given(seed=st.integers(0, 10**6))
def test_rounding_is_no_wall(seed):
    """Each z that stands for a point does so exactly, wherever the last one was."""
    rng = np.random.default_rng(seed)
    chart = Chart(problem_with(SPHERE, 4), np.array([0.0, 0.0, 0.0, 1.0]), 1e-3)
    for size in 10.0 ** rng.uniform(-8, -1, 5):
        assert chart.place(size * rng.standard_normal(3)).gap == 0.0


def test_a_sparse_direction_on_the_sphere():
    """Penalties took four times as many calls, and ended higher."""
    rng = np.random.default_rng(10)
    sparse = rng.standard_normal((10, 100)) * (rng.random((10, 100)) < 0.3)
    data = np.linalg.qr(rng.standard_normal((10, 10)))[0] @ sparse
    start = rng.standard_normal(10)
    for seed in range(2):
        res = gs.minimize(
            lambda q: float(np.abs(q @ data).sum() / 100), start / np.linalg.norm(start),
            lambda q: data @ np.sign(q @ data) / 100, eps=1e-3, delta=1e-3, rng=seed,
            constraints=SPHERE,
        )  # fmt: skip
        assert res.success
        assert res.violation <= 1e-12
        assert res.nfev + res.ngev < 500
        assert res.constr_nfev < 8 * (res.nfev + res.ngev)


def test_orthonormal_columns_from_an_infeasible_start():
    rng = np.random.default_rng(0)
    data = rng.standard_normal((5, 60)) * (rng.random((5, 60)) < 0.4)
    pairs = list(zip(*np.triu_indices(2)))
    gram = np.array([1.0, 0.0, 1.0])

    def rows(v):
        Q, found = v.reshape(5, 2), np.zeros((3, 5, 2))
        for k, (i, j) in enumerate(pairs):
            found[k, :, i] += Q[:, j]
            found[k, :, j] += Q[:, i]
        return found.reshape(3, 10)

    def values(v):
        Q = v.reshape(5, 2)
        return (Q.T @ Q)[np.triu_indices(2)]

    def fun(v):
        return float(np.abs(data.T @ v.reshape(5, 2)).sum() / 60)

    def jac(v):
        return (data @ np.sign(data.T @ v.reshape(5, 2)) / 60).ravel()

    limits = {"constraints": NonlinearConstraint(values, gram, gram, jac=rows)}
    res = gs.minimize(fun, 3 * rng.standard_normal(10), jac, eps=1e-3, delta=1e-3, rng=0, **limits)
    assert res.success
    np.testing.assert_allclose(values(res.x), gram, atol=1e-9)
    assert res.certificate.verify(fun, jac, **limits).ok


def test_an_equality_with_kinks():
    """The point of |x|_1 = 1 nearest to a point: a corner."""
    c = np.array([2.0, 1.0, 0.3])
    ball = NonlinearConstraint(lambda x: np.abs(x).sum(), 1, 1, jac=lambda x: np.sign(x)[None])
    res = gs.minimize(
        lambda x: float((x - c) @ (x - c)), [0.3, -0.5, 0.1], lambda x: 2 * (x - c), eps=1e-3,
        delta=1e-3, rng=0, constraints=ball,
    )  # fmt: skip
    assert res.success
    np.testing.assert_allclose(res.x, [1.0, 0.0, 0.0], atol=2e-3)


def test_a_cusp_is_no_success():
    """min x on y^2 = x^3: at the cusp no multiplier exists."""
    cusp = NonlinearConstraint(lambda x: x[1] ** 2 - x[0] ** 3, 0, 0,
                               jac=lambda x: np.array([[-3 * x[0] ** 2, 2 * x[1]]]))  # fmt: skip
    res = gs.minimize(
        lambda x: float(x[0]), [1.0, 1.0], lambda x: np.array([1.0, 0.0]), eps=1e-3, delta=1e-3,
        rng=0, constraints=cusp,
    )  # fmt: skip
    assert not res.success
    assert abs(res.x[0]) < 0.1


def test_a_curve_without_end_is_no_success():
    """min y on y = -x^3 from x = 1: ever lower."""
    curve = NonlinearConstraint(lambda x: x[1] + x[0] ** 3, 0, 0,
                                jac=lambda x: np.array([[3 * x[0] ** 2, 1.0]]))  # fmt: skip
    res = gs.minimize(
        lambda x: float(x[1]), [1.0, -1.0], lambda x: np.array([0.0, 1.0]), eps=1e-3, delta=1e-3,
        rng=0, constraints=curve, max_calls=2000,
    )  # fmt: skip
    assert not res.success or abs(res.x[0]) < 0.1  # the bend at 0 is a KKT point
