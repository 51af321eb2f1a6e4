"""Uniform points of balls and spheres: the laws, and the promise to stay inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from goldstein.checker.rounding import distance_upper
from goldstein.numerics.streams import inner_radius, sphere_shadow, stream, uniform_in_ball

LEVEL = 1e-4  # of every statistical test here; the seeds are fixed, so nothing flickers


@pytest.mark.parametrize("dim", [1, 2, 3, 10])
def test_the_radius_has_the_law_of_the_uniform_ball(dim: int) -> None:
    rng = stream(1, dim, "test")
    centre = np.full(dim, 2.0)
    radii = [np.linalg.norm(uniform_in_ball(rng, centre, 3.0) - centre) for _ in range(4000)]
    # P(|y - x| <= r) = (r / R)^d, so its d-th power is uniform.
    assert stats.kstest((np.array(radii) / 3.0) ** dim, "uniform").pvalue > LEVEL


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_direction_is_uniform(dim: int) -> None:
    rng = stream(2, dim, "test")
    points = np.array([uniform_in_ball(rng, np.zeros(dim), 1.0) for _ in range(4000)])
    directions = points / np.linalg.norm(points, axis=1, keepdims=True)
    assert np.abs(directions.mean(axis=0)).max() < 0.07
    assert np.abs(directions.T @ directions / len(points) - np.eye(dim) / dim).max() < 0.05


@settings(max_examples=150, deadline=None)
@given(
    dim=st.sampled_from([1, 2, 3, 30, 10_000]),
    size=st.floats(0.0, 1e12),
    log_radius=st.floats(-15, 3),
    seed=st.integers(0, 2**63 - 1),
)
def test_points_stay_in_the_ball_after_rounding(
    dim: int, size: float, log_radius: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    centre = size * rng.standard_normal(dim)
    # The smallest radius the library accepts, relative to the centre.
    radius = max(10.0**log_radius, 1e4 * 2.0**-53 * max(1.0, np.abs(centre).max()))
    for _ in range(3):
        assert distance_upper(uniform_in_ball(rng, centre, radius), centre) <= radius


def test_a_point_on_the_rim_stays_inside() -> None:
    """The worst case of the radial draw, a share of 1, on which no random test can insist."""

    class Rim(np.random.Generator):
        def random(self, *args: object, **kwargs: object) -> float:  # type: ignore[override]
            return 1.0

    rng = Rim(np.random.PCG64(0))
    for dim in (1, 3, 10_000):
        centre = 1e6 * np.ones(dim)
        for radius in (1e-4, 1.0, 1e3):
            y = uniform_in_ball(rng, centre, radius)
            assert distance_upper(y, centre) <= radius
            assert np.linalg.norm(y - centre) >= 0.4 * radius


def test_the_inner_radius_gives_little_away() -> None:
    assert inner_radius(np.zeros(10), 1.0) > 1.0 - 1e-11
    assert inner_radius(np.ones(10), 1e-8) > 1e-8 * (1.0 - 1e-6)


@pytest.mark.parametrize("dim", [1, 2, 3, 12])
def test_the_sphere_shadow_is_the_projection_of_a_uniform_sphere_point(dim: int) -> None:
    rng = stream(3, dim, "test")
    shadows = np.array([sphere_shadow(rng, dim) for _ in range(6000)])
    squared = (shadows**2).sum(axis=1)
    assert squared.max() <= 1.0 + 1e-12
    # |v|^2 of the first d of d + 1 coordinates of a sphere point: Beta(d/2, 1/2).
    assert stats.kstest(squared, stats.beta(dim / 2, 0.5).cdf).pvalue > LEVEL
    assert squared.mean() == pytest.approx(dim / (dim + 1), abs=0.02)
