"""Sums of small maxima and quadratics: against dense algebra and against optimality itself."""

import numpy as np
import pytest
from scipy.optimize import minimize

from goldstein.numerics.element_model import ElementSystem, minimise_elements

CHAIN = np.stack([np.arange(59), np.arange(1, 60)])


def graph(kind, rng):
    """Elements of two variables out of sixty: a chain, one out of order, and one of no order."""
    if kind == "chain":
        return CHAIN
    if kind == "shuffled":
        return rng.permutation(60)[CHAIN]
    return np.stack([rng.permutation(60)[:2] for _ in range(150)], axis=1)


@pytest.mark.parametrize("kind", ["chain", "shuffled", "random"])
def test_systems_are_solved_as_dense_ones_are(kind):
    rng = np.random.default_rng(3)
    indices = graph(kind, rng)
    system = ElementSystem(indices, 60)
    factors = rng.standard_normal((2, 2, indices.shape[1]))
    blocks = np.einsum("ijk,ljk->ilk", factors, factors)
    dense = 0.1 * np.eye(60)
    for k, (i, j) in enumerate(indices.T):
        dense[np.ix_([i, j], [i, j])] += blocks[:, :, k]
    right = rng.standard_normal(60)
    solve = system.factorise(blocks, 0.1)
    assert np.allclose(solve(right), np.linalg.solve(dense, right), rtol=1e-9, atol=1e-9)
    assert kind != "shuffled" or system.band <= 4  # the chain is found again


def test_elements_with_fewer_variables_leave_the_others_alone():
    indices = np.array([[0, 1], [2, 2]])  # of two variables: the second element has one
    system = ElementSystem(indices, 2)
    assert system.scatter(np.array([[1.0, 2.0], [9.0, 9.0]])).tolist() == [1.0, 2.0]
    solve = system.factorise(np.ones((2, 2, 2)), 1.0)
    assert np.allclose(solve(np.array([2.0, 4.0])), [1.0, 2.0])


@pytest.mark.parametrize("kind", ["chain", "random"])
@pytest.mark.parametrize("pieces", [1, 2, 5])
def test_the_minimum_satisfies_the_conditions_of_optimality(kind, pieces):
    rng = np.random.default_rng(pieces)
    indices = graph(kind, rng)
    count = indices.shape[1]
    system = ElementSystem(indices, 60)
    levels = rng.standard_normal((pieces, count))
    slopes = rng.standard_normal((pieces, 2, count))
    used = rng.random((pieces, count)) < 0.7
    used[0] = True
    factors = 0.3 * rng.standard_normal((2, 2, count))
    curvature = np.einsum("ijk,ljk->ilk", factors, factors)
    found = minimise_elements(system, levels, slopes, used, curvature, 0.5)
    own = system.gather(found.v)
    heights = np.where(used, levels + np.einsum("pmk,mk->pk", slopes, own), -np.inf)
    # Weights are convex, sit on the highest pieces, and balance the quadratic.
    assert (found.weights >= -1e-12).all()
    assert np.allclose(found.weights.sum(axis=0), 1.0)
    assert (found.weights[~used] == 0.0).all()
    lost = (found.weights * np.where(used, heights.max(axis=0) - heights, 0.0)).sum()
    assert lost <= 1e-6
    pull = np.einsum("pmk,pk->mk", slopes, found.weights)
    bent = np.einsum("ijk,jk->ik", curvature, own)
    assert np.abs(system.scatter(pull + bent) + 0.5 * found.v).max() <= 1e-8

    def value(v):
        part = system.gather(v)
        tops = np.where(used, levels + np.einsum("pmk,mk->pk", slopes, part), -np.inf).max(axis=0)
        quadratic = np.einsum("ik,ijk,jk->", part, curvature, part)
        return tops.sum() + 0.5 * quadratic + 0.25 * v @ v

    assert value(found.v) <= value(np.zeros(60))
    assert value(found.v) <= minimize(value, found.v, method="Powell").fun + 1e-6


def test_too_wide_a_graph_is_said_to_be_one():
    rng = np.random.default_rng(0)
    pairs = rng.integers(0, 20_000, (2, 60_000))
    assert not ElementSystem(pairs[:, pairs[0] != pairs[1]], 20_000).is_narrow
    assert ElementSystem(CHAIN, 60).is_narrow


@pytest.mark.parametrize(("mu", "scale"), [(1e-2, 1e-9), (1e-6, 1e-6), (1e-6, 1e-9)])
def test_rounding_does_not_spoil_the_end(mu, scale):
    # A thousand kinks that all but meet: beyond a certain gap more steps would only do harm.
    rng = np.random.default_rng(7)
    chain = np.arange(999) + np.array([[0], [1]])
    system = ElementSystem(chain, 1000)
    own = system.gather(0.7071 + 1e-4 * rng.standard_normal(1000))
    down = np.array([[1.0], [0.0]])
    slopes = np.stack([7.5 * own - down, 0.5 * own - down])
    levels = np.stack([np.zeros(999), -scale * rng.random(999)])
    curvature = np.tile(7.5 * np.eye(2)[:, :, None], 999)
    found = minimise_elements(system, levels, slopes, levels < 9, curvature, mu)
    pull = np.einsum("pmk,pk->mk", slopes, found.weights) + 7.5 * system.gather(found.v)
    assert np.abs(system.scatter(pull) + mu * found.v).max() <= 1e-8 * np.abs(slopes).max()
