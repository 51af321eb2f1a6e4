"""`certify` finds the gradients that cancel where the segment against m does not show them."""

from __future__ import annotations

import numpy as np
import pytest
from tests.functions import valley, valley_gradient

import goldstein as gs
from goldstein.numerics.hull import min_norm_weights


class Difference:
    """max of linear functions minus another such max: 0 may be a saddle or a maximum."""

    def __init__(self, seed: int, dim: int) -> None:
        rng = np.random.default_rng(seed)
        self.up, self.down = rng.standard_normal((2, 3, dim))

    def value(self, x: np.ndarray) -> float:
        return float((self.up @ x).max() - (self.down @ x).max())

    def gradient(self, x: np.ndarray) -> np.ndarray:
        return self.up[(self.up @ x).argmax()] - self.down[(self.down @ x).argmax()]


@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_a_maximum_is_stationary_too(delta: float) -> None:
    for seed in range(5):
        found = gs.certify(
            lambda x: -abs(x[0]), [0.0], lambda x: -np.sign(x), delta=delta, rng=seed
        )
        assert found.eps < 1e-12


@pytest.mark.parametrize("delta", [1e-1, 1e-3, 1e-6])
def test_beside_the_minimum_of_a_curved_valley(delta: float) -> None:
    # The minimum is in the ball, so some combination vanishes; the point itself is not on the kink.
    for seed in range(6):
        way = np.random.default_rng(seed).standard_normal(2)
        x = 1.0 + 0.3 * delta * way / np.linalg.norm(way)
        found = gs.certify(valley, x, valley_gradient, delta=delta, eps=1e-3 * delta, rng=0)
        assert found.eps <= 1e-3 * delta
        assert found.verify(valley, valley_gradient).ok


@pytest.mark.parametrize("dim", [2, 3])
def test_as_good_as_sampling_the_whole_ball(dim: int) -> None:
    close = 0
    for seed in range(20):
        f = Difference(seed, dim)
        rng = np.random.default_rng(seed)
        drawn = [f.gradient(rng.standard_normal(dim)) for _ in range(500)]
        rows, count = np.unique(drawn, axis=0, return_counts=True)
        rows = rows[count >= 50]  # a piece may be too thin to be met by some dozen draws
        best = float(np.linalg.norm(min_norm_weights(rows) @ rows))
        found = gs.certify(f.value, np.zeros(dim), f.gradient, delta=1e-3, rng=seed)
        assert found.verify(f.value, f.gradient).ok
        close += found.eps <= 1.01 * best + 1e-9
    assert close >= 18


def test_a_point_certified_in_a_small_ball_is_certified_in_a_larger_one() -> None:
    for name in ("wong_1", "maxquad", "nesterov_chebyshev_rosenbrock_2", "dc_6", "mifflin_2"):
        problem = gs.problems.get(name)
        res = gs.minimize(problem, problem.x0, eps=1e-6, delta=1e-6, rng=0)
        assert res.success
        for delta in (1e-6, 1e-4, 1e-2):
            found = gs.certify(problem, res.x, delta=delta, eps=1e-6, rng=1)
            # Room for what other seeds of a check may see is stated in addition.
            assert found.eps <= 2e-6, (name, delta)
            assert found.verify(problem).ok
