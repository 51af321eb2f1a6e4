"""Claims about balls: where logarithms, roots and quotients are shown to be defined."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein.calculus.domains import undefined_in
from goldstein.certificates import GoldsteinCertificate

w = gs.Variable(3)
A = np.array([[1.0, -0.5, 0.25], [0.0, 2.0, 1.0], [-1.0, 1.0, 0.5]])
INSIDE = {
    "affine": A @ w / 3.0 + 1.0,
    "moduli": gs.abs(w - 0.5) + 0.3 * gs.relu(A @ w),
    "square": 0.5 + w * w - 0.5 * w,
    "product": 1.5 + w * w[::-1],
    "largest": gs.max(gs.abs(A @ w)) - 0.1 * w,
    "length": gs.norm2(A @ w) - 0.4 + 0.0 * w,
    "waves": 1.1 + gs.atoms.sin(A @ w) * gs.atoms.cos(w),
    "growth": gs.atoms.exp(w) - gs.atoms.tanh(A @ w),
    "order": gs.atoms.sort(A @ w) + 1.0,
    "logsumexp": gs.softplus(w) - 0.3,
    "negative divisor": (A @ w - 1.0) / -2.0,
    "cubes": 2.0 + w**3 - gs.huber(w, 0.5),
    "matrix": (w.reshape(3, 1) @ w.reshape(1, 3)) @ np.ones(3) + 1.0,
}
OUTSIDE = {
    "log": lambda u: gs.sum(gs.atoms.log(u)),
    "sqrt": lambda u: gs.sum(gs.atoms.sqrt(u)),
    "reciprocal": lambda u: gs.sum(1.0 / u),
}


@pytest.mark.parametrize("outer", OUTSIDE)
@pytest.mark.parametrize("inner", INSIDE)
def test_where_it_is_called_defined_every_point_of_the_ball_is_inside(inner, outer) -> None:
    rng, called = np.random.default_rng(7), 0
    u, F = INSIDE[inner], OUTSIDE[outer](INSIDE[inner])
    for radius in (1e-6, 1e-2, 0.1, 0.5):
        for _ in range(12):
            x = rng.standard_normal(3)
            if undefined_in(F, x, radius):
                continue
            called += 1
            steps = rng.standard_normal((40, 3))
            steps *= radius / np.linalg.norm(steps, axis=1)[:, None]
            values = np.array([u(x + step) for step in steps])
            same = (values > 0).all(axis=0) | (values < 0).all(axis=0)
            assert (values > 0).all() if outer != "reciprocal" else same.all(), (x, radius)
    assert called > 0  # small balls about points inside are told


def test_a_ball_that_leaves_the_domain_is_no_claim() -> None:
    v = gs.Variable(1)
    F = gs.sum(gs.abs(v - 1.0)) + 0.1 * gs.sum(gs.atoms.log(v))
    for delta, right in ((0.5, True), (1.0, False), (3.0, False)):
        points = np.array([[0.9], [1.0 + delta]])
        gradients = np.array([F.gradient(y) for y in points])
        claim = GoldsteinCertificate.from_gradients(np.ones(1), points, gradients)
        found = claim.verify(F, seed=0)
        assert found.ok == right
        assert right or "log of an argument that is not shown to be positive" in str(found)
    res = gs.minimize(F, [2.0], eps=0.2, delta=5.0, rng=0)
    assert not res.success or res.certificate.delta < 1.0
