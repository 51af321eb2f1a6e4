"""How far constraints are from cancelling: bounded from below, whoever proposes the weights."""

from __future__ import annotations

import numpy as np
from goldstein.checker.constraints import qualification_of
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.checker.constrained.box import Box
from goldstein.numerics.hull_problems import conic_weights


def sampled_distance(rows, cone, rng, draws=4000):
    """The shortest of many random elements of hull plus cone: an upper bound of the distance."""
    weights = rng.dirichlet(np.full(len(rows), 0.5), draws)
    points = weights @ rows
    # For each point the best multiple of each of the few normals: they are coordinate vectors.
    for normal in cone:
        points = points + np.maximum(-(points @ normal), 0.0)[:, None] * normal
    return float(np.linalg.norm(points, axis=1).min())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_no_proposal_makes_it_larger_than_it_is(seed, honest):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((4, 3)) + rng.uniform(0, 2) * np.eye(3)[0]
    normal = np.where(rng.random(3) < 0.4, rng.choice([-1.0, 1.0], 3), 0.0)
    box = Box(np.full(3, -1.0), np.full(3, 1.0))

    def forged(hull, cone):
        return rng.dirichlet(np.ones(len(hull))), rng.random(len(cone))

    q = qualification_of(np.arange(4), rows, normal, box, conic_weights if honest else forged)
    lengths = np.linalg.norm(rows, axis=1)
    cone = np.sign(normal)[:, None] * np.eye(3)
    least = sampled_distance(rows / lengths[:, None], cone[normal != 0.0], rng)
    assert q <= least + 1e-12
    if honest:
        assert q >= least - 0.15  # samples come close to the shortest


def test_opposite_gradients_qualify_nothing():
    rows, box = np.array([[1.0, 0.0], [-1.0, 0.0]]), Box(np.full(2, -1.0), np.full(2, 1.0))
    assert qualification_of(np.arange(2), rows, np.zeros(2), box, conic_weights) == 0.0
