"""Linear equalities without bounds: the search runs along them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog

import goldstein as gs
from goldstein.constrained.coordinates import Coordinates
from goldstein.constrained.problem import Problem


def problem_with(matrix, limits, dim, bounds=None):
    oracle = gs.FunctionOracle(lambda x: float(x @ x), lambda x: 2 * x)
    return Problem.of(oracle, np.zeros(dim), bounds, LinearConstraint(matrix, limits, limits))


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 4), st.booleans())
def test_points_lie_on_the_flat_and_gradients_follow(seed, rows, dependent):
    rng = np.random.default_rng(seed)
    dim = rows + 3
    matrix = rng.standard_normal((rows, dim))
    matrix[:, 0] = 0.0  # a variable that no equality speaks of
    if dependent:
        matrix = np.concatenate([matrix, matrix[:1] * 2.0])
    limits = matrix @ rng.standard_normal(dim)
    bounds = [(-1.0, 1.0)] + [(None, None)] * (dim - 1)
    along = Coordinates(problem_with(matrix, limits, dim, bounds), np.zeros(dim))
    assert along.holding.all()
    assert along.dim == dim - rows
    z, other = rng.standard_normal((2, along.dim))
    x = along.whole(z)
    np.testing.assert_allclose(matrix @ x, limits, atol=1e-9)
    np.testing.assert_allclose(along.apply(x), z, atol=1e-9)
    # Distances are those of x, and gradients those of f(whole(z)) for f = |x|^2.
    distance = np.linalg.norm(along.whole(other) - x)
    assert distance == pytest.approx(np.linalg.norm(other - z))
    step = 1e-6
    slope = [(along.whole(z + step * e) @ along.whole(z + step * e) - x @ x) / step
             for e in np.eye(along.dim)]  # fmt: skip
    np.testing.assert_allclose(along.gradient(2 * x), slope, atol=1e-4)


def test_bounds_on_their_variables_keep_the_penalty():
    held = Coordinates(problem_with([[1.0, 1.0]], [1.0], 2, [(0, 1), (0, 1)]), np.zeros(2))
    assert held.dim == 2
    assert not held.holding.any()


def l1(x):
    return float(np.abs(x).sum())


def test_basis_pursuit_finds_the_value_of_the_linear_programme():
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((6, 15))
    limits = matrix @ np.where(np.arange(15) < 3, 1.0, 0.0)
    res = gs.minimize(
        l1, np.zeros(15), np.sign, eps=1e-3, delta=1e-3, rng=0,
        constraints=LinearConstraint(matrix, limits, limits),
    )  # fmt: skip
    assert res.success
    both = np.concatenate([matrix, -matrix], axis=1)
    best = linprog(np.ones(30), A_eq=both, b_eq=limits).fun
    assert res.fun == pytest.approx(best, abs=1e-3)
    assert np.abs(matrix @ res.x - limits).max() <= 1e-9


def test_equalities_that_leave_one_point():
    constraints = LinearConstraint(np.array([[1.0, 1.0], [1.0, -1.0]]), [2.0, 0.0], [2.0, 0.0])
    res = gs.minimize(
        l1, [0.3, -0.2], np.sign, eps=1e-3, delta=1e-3, rng=0, constraints=constraints
    )
    np.testing.assert_allclose(res.x, [1.0, 1.0], atol=1e-9)
    assert res.success


def test_equalities_that_contradict_each_other_are_infeasible():
    constraints = LinearConstraint(np.array([[1.0, 1.0], [1.0, 1.0]]), [0.0, 1.0], [0.0, 1.0])
    res = gs.minimize(
        l1, [0.3, -0.2], np.sign, eps=1e-3, delta=1e-3, rng=0, constraints=constraints
    )
    assert res.status is gs.Status.INFEASIBLE
