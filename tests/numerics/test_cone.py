"""The conic perturbation of Algorithm 1: its law, its cone, its ball."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.checker.rounding import distance_upper
from goldstein.numerics.streams import conic_point, stream, tilt, trial_point


@pytest.mark.parametrize("dim", [2, 3, 10, 50])
def test_fact_39_the_tilt(dim: int) -> None:
    """E|b|^2 = (d-1)/(d+1), |b| <= 1, b orthogonal to m."""
    rng = stream(5, dim, "test")
    m = rng.standard_normal(dim)
    norm = float(np.linalg.norm(m))
    tilts = np.array([tilt(rng, m, norm) for _ in range(8000)])
    squared = (tilts**2).sum(axis=1)
    assert squared.max() <= 1.0 + 1e-12
    assert squared.mean() == pytest.approx((dim - 1) / (dim + 1), abs=0.012)
    assert np.abs(tilts @ m).max() <= 1e-14 * norm * dim
    # No preferred direction across m.
    assert np.abs(tilts.mean(axis=0)).max() < 0.05


def test_in_one_dimension_there_is_no_tilt() -> None:
    rng = stream(5, 1, "test")
    assert all(tilt(rng, np.array([-3.0]), 3.0)[0] == 0.0 for _ in range(20))


@pytest.mark.parametrize("slope", [2.0, -2.0])
def test_in_one_dimension_the_point_is_uniform_on_the_segment(slope: float) -> None:
    rng = stream(6, 0, "test")
    x, delta, q = np.array([1.0]), 0.5, 0.4
    steps = np.array(
        [conic_point(rng, x, np.array([slope]), 2.0, delta, q)[0] - 1.0 for _ in range(4000)]
    )
    far = -np.sign(slope) * (1 - q / 8) * delta
    shares = steps / far
    assert shares.min() > 0.0
    assert shares.max() <= 1.0
    assert np.abs(np.quantile(shares, [0.1, 0.5, 0.9]) - [0.1, 0.5, 0.9]).max() < 0.03


@settings(max_examples=200, deadline=None)
@given(
    dim=st.sampled_from([1, 2, 3, 40, 10_000]),
    ratio=st.floats(1e-9, 1.0),
    size=st.floats(0.0, 1e9),
    log_norm=st.floats(-100, 100),
    seed=st.integers(0, 2**63 - 1),
)
def test_conic_points_stay_in_the_ball(
    dim: int, ratio: float, size: float, log_norm: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = size * rng.standard_normal(dim)
    m = rng.standard_normal(dim) * 10.0**log_norm
    norm = float(np.linalg.norm(m))
    delta = max(1e-3, 1e4 * 2.0**-53 * np.abs(x).max(initial=1.0))
    y = conic_point(rng, x, m, norm, delta, ratio)
    assert distance_upper(y, x) <= delta
    assert not np.array_equal(y, x) or dim == 1


def test_fact_4_the_farthest_point_of_the_cone() -> None:
    """|x' - x| <= sqrt(50)/8 delta at |m| = L."""
    rng = stream(7, 0, "test")
    x, m = np.zeros(3), np.array([0.0, 0.0, 2.0])
    lengths = [np.linalg.norm(conic_point(rng, x, m, 2.0, 1.0, 1.0)) for _ in range(3000)]
    assert max(lengths) <= np.sqrt(50) / 8


def test_the_trial_point_of_fact_8_is_a_kink() -> None:
    """f = |x|, L = 1, delta = 1, x = 7/8, m = 1: the trial point is exactly the kink 0."""
    assert trial_point(np.array([7 / 8]), np.array([1.0]), 1.0, 1.0, 1.0)[0] == 0.0


def test_the_cone_has_a_density_across_its_axis() -> None:
    """Every coordinate of y - x across m takes a continuum of values."""
    rng = stream(8, 0, "test")
    points = np.array(
        [conic_point(rng, np.zeros(2), np.array([1.0, 0.0]), 1.0, 1.0, 0.5) for _ in range(500)]
    )
    assert len(np.unique(points[:, 1])) == 500
    assert (points[:, 1] > 0).mean() == pytest.approx(0.5, abs=0.08)
