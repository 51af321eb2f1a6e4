"""The affine model of gradients: exact where gradients are affine, and never outside the ball."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

from goldstein.construction.cold import shortest_in_ball


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("radius", [0.05, 0.5, 50.0])
def test_the_shortest_gradient_of_a_quadratic_in_a_ball(seed: int, radius: float) -> None:
    rng = np.random.default_rng(seed)
    dim, count = 5, 6  # as many points as span the whole space
    root = rng.normal(size=(dim, dim))
    hessian, slope = root @ root.T, rng.normal(size=dim)
    offsets = 0.1 * rng.normal(size=(count, dim))
    weights = shortest_in_ball(offsets, offsets @ hessian + slope, radius)
    assert weights.sum() == pytest.approx(1.0)
    place = weights @ offsets
    assert np.linalg.norm(place) <= radius * (1 + 1e-6)
    found = np.linalg.norm(hessian @ place + slope)
    best = minimize(
        lambda z: 0.5 * np.sum((hessian @ z + slope) ** 2),
        np.zeros(dim),
        jac=lambda z: hessian @ (hessian @ z + slope),
        constraints={"type": "ineq", "fun": lambda z: radius**2 - z @ z, "jac": lambda z: -2 * z},
        method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-14},
    )
    assert found <= (2.0 * best.fun) ** 0.5 + 1e-4 * np.linalg.norm(slope)


def test_dependent_and_vanishing_rows() -> None:
    offsets = np.array([[0.1, 0.0], [0.1, 0.0], [0.0, 0.1]])
    for gradients in (np.ones((3, 2)), np.zeros((3, 2)), 1e-200 * np.ones((3, 2))):
        weights = shortest_in_ball(offsets, gradients, 1.0)
        assert np.isfinite(weights).all()
        assert np.linalg.norm(weights @ offsets) <= 1.0 + 1e-9
    assert shortest_in_ball(np.zeros((1, 3)), np.ones((1, 3)), 1.0) == pytest.approx(1.0)
