"""Linear equalities: the search runs along them, inside the bounds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint, linprog
from tests.functions import norm1

import goldstein as gs
from goldstein.oracles.problem import Problem
from goldstein.reductions.functions import Coordinates


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
    bounds = [(-9.0, 9.0)] + [(None, None)] * (dim - 1)
    along = Coordinates(problem_with(matrix, limits, dim, bounds), np.zeros(dim))
    assert along.holding.all()
    assert along.dim == dim - rows
    z, other = rng.standard_normal((2, along.dim))
    x = along.place(z).y
    np.testing.assert_allclose(matrix @ x, limits, atol=1e-9)
    np.testing.assert_allclose(along.apply(x), z, atol=1e-9)
    # Distances are those of x, and gradients those of f(y(z)) for f = |x|^2.
    distance = np.linalg.norm(along.place(other).y - x)
    assert distance == pytest.approx(np.linalg.norm(other - z))
    step = 1e-6
    slope = [
        (np.square(along.place(z + step * e).y).sum() - x @ x) / step for e in np.eye(along.dim)
    ]
    np.testing.assert_allclose(along.gradient(z, 2 * x, 1.0), slope, atol=1e-4)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 3), st.booleans())
def test_bounds_cut_a_polyhedron_out_of_the_flat(seed, rows, one_sided):
    rng = np.random.default_rng(seed)
    dim = rows + 4
    matrix = rng.standard_normal((rows, dim))
    matrix[:, 0] = 0.0  # stands alone, and is clipped
    inside = rng.uniform(0.0, 1.0, dim)
    limits = matrix @ inside
    bounds = [(0.0, None if one_sided else 1.0)] * (dim - 1) + [(inside[-1], inside[-1])]
    along = Coordinates(problem_with(matrix, limits, dim, bounds), np.zeros(dim))
    assert along.holding.all()
    assert along.dim == dim - rows - 1
    z, other = rng.standard_normal((2, along.dim)) * 2.0
    place, elsewhere = along.place(z), along.place(other)
    box = along._box
    for y in (place.y, elsewhere.y):
        assert box.contains(y)
        np.testing.assert_allclose(matrix @ y, limits, atol=1e-9)
    # Nearest: no feasible point lies beyond the plane through y across the way to it.
    way = z - along.apply(place.y)
    for feasible in (inside, elsewhere.y):
        assert way @ (along.apply(feasible) - along.apply(place.y)) <= 1e-9
    assert np.linalg.norm(place.y - elsewhere.y) <= np.linalg.norm(z - other) + 1e-9
    assert place.gap >= np.linalg.norm(way) - 1e-9

    def wall(z):
        there = along.place(z)
        return there.y @ there.y + 3.0 * there.gap

    step = 1e-7
    slope = [(wall(z + step * e) - wall(z - step * e)) / (2 * step) for e in np.eye(along.dim)]
    np.testing.assert_allclose(along.gradient(z, 2 * place.y, 3.0), slope, atol=1e-4)


def test_where_no_point_is_left_the_penalty_stays():
    for bounds in ([(0, 1), (0, 1)], [(0, 0), (0, 1)], [(2, 5), (2, 5)]):
        held = Coordinates(problem_with([[1.0, 1.0]], [3.0], 2, bounds), np.zeros(2))
        assert not held.holding.any()
        res = gs.minimize(
            norm1, [0.5, 0.5], np.sign, eps=1e-3, delta=1e-3, rng=0, bounds=bounds,
            constraints=LinearConstraint([[1.0, 1.0]], 3.0, 3.0),
        )  # fmt: skip
        assert res.status is gs.Status.INFEASIBLE


@pytest.mark.parametrize("seed", range(3))
def test_a_largest_eigenvalue_over_the_simplex(seed):
    """Penalties for the sum took three times as many calls."""
    rng = np.random.default_rng(seed)
    matrices = rng.standard_normal((6, 8, 8))
    matrices = matrices + matrices.transpose(0, 2, 1)

    def jac(x):
        v = np.linalg.eigh(np.tensordot(x, matrices, 1))[1][:, -1]
        return np.einsum("i,kij,j->k", v, matrices, v)

    def fun(x):
        assert x.min() >= 0.0
        assert abs(x.sum() - 1.0) <= 2e-3  # on the simplex, but for the balls around its points
        return float(np.linalg.eigvalsh(np.tensordot(x, matrices, 1))[-1])

    res = gs.minimize(
        fun, np.full(6, 1 / 6), jac, eps=1e-3, delta=1e-3, rng=seed, bounds=[(0, 1)] * 6,
        constraints=LinearConstraint(np.ones((1, 6)), 1.0, 1.0),
    )  # fmt: skip
    assert res.success
    assert res.violation <= 1e-12
    # Nothing of 2000 points of the simplex is lower.
    trials = rng.dirichlet(np.ones(6), 2000)
    values = np.linalg.eigvalsh(np.tensordot(trials, matrices, 1))[:, -1]
    assert res.fun <= values.min()
    assert res.nfev + res.ngev < 400


def test_basis_pursuit_finds_the_value_of_the_linear_programme():
    rng = np.random.default_rng(5)
    matrix = rng.standard_normal((6, 15))
    limits = matrix @ np.where(np.arange(15) < 3, 1.0, 0.0)
    res = gs.minimize(
        norm1, np.zeros(15), np.sign, eps=1e-3, delta=1e-3, rng=0,
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
        norm1, [0.3, -0.2], np.sign, eps=1e-3, delta=1e-3, rng=0, constraints=constraints
    )
    np.testing.assert_allclose(res.x, [1.0, 1.0], atol=1e-9)
    assert res.success


def test_equalities_that_contradict_each_other_are_infeasible():
    constraints = LinearConstraint(np.array([[1.0, 1.0], [1.0, 1.0]]), [0.0, 1.0], [0.0, 1.0])
    res = gs.minimize(
        norm1, [0.3, -0.2], np.sign, eps=1e-3, delta=1e-3, rng=0, constraints=constraints
    )
    assert res.status is gs.Status.INFEASIBLE
