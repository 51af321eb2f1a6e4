"""certify: the smallest bound at a point that somebody else found; the point never moves."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.functions import largest_of, norm1

import goldstein as gs
from goldstein.construction.goldstein_claim import UNSEEN


@pytest.mark.parametrize("dim", [1, 2, 5, 20])
def test_the_minimum_of_the_one_norm_is_stationary(dim: int) -> None:
    cert = gs.certify(norm1, np.zeros(dim), np.sign, delta=1e-6, rng=0)
    assert cert.eps < 1e-9
    assert cert.descent is None
    assert np.array_equal(cert.x, np.zeros(dim))
    assert cert.verify(norm1, np.sign).ok


@settings(max_examples=40, deadline=None)
@given(st.floats(0.02, 3.0), st.floats(1e-5, 1e-2), st.integers(0, 2**32))
def test_away_from_kinks_the_answer_is_the_gradient(x: float, delta: float, seed: int) -> None:
    cert = gs.certify(norm1, [x], np.sign, delta=delta, rng=seed)
    assert cert.eps == pytest.approx(1.0, rel=1e-12)
    assert cert.descent == pytest.approx([-1.0])
    assert cert.verify(norm1, np.sign).ok


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 6), st.integers(0, 2**32))
def test_the_bound_is_never_below_the_truth(dim: int, seed: int) -> None:
    """max of linear functions: the Goldstein set is known, so is its distance from 0."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((dim + 2, dim)) + 0.7
    truth = np.linalg.norm(gs.numerics.hull.min_norm_weights(rows) @ rows)
    value, gradient = largest_of(rows)
    cert = gs.certify(value, np.zeros(dim), gradient, delta=1.0, rng=seed)
    assert cert.eps >= truth * (1 - 1e-9) - 1e-14
    assert cert.delta <= 1.0


def test_every_point_used_is_perturbed() -> None:
    asked: list[np.ndarray] = []

    def spy(x: np.ndarray) -> np.ndarray:
        asked.append(x.copy())
        return np.sign(x)

    x = np.array([0.0, 1.0])
    gs.certify(norm1, x, spy, delta=1e-3, rng=0)
    assert not any((y == x).any() for y in asked)
    assert max(np.linalg.norm(y - x) for y in asked) <= 1e-3


@pytest.mark.parametrize("limit", [1, 2, 3, 10])
def test_the_budget_is_exact(limit: int) -> None:
    calls = []
    cert = gs.certify(
        lambda x: calls.append(0) or norm1(x), [0.0, 0.0], lambda x: calls.append(1) or np.sign(x),
        delta=0.1, rng=0, max_calls=limit,
    )  # fmt: skip
    assert len(calls) <= limit
    # Where no call is left to look next to a point, its gradient may be a little longer there.
    assert cert.eps <= UNSEEN * math.sqrt(2) * (1 + 1e-12)


def test_a_reached_target_stops_early() -> None:
    calls = []

    def spy(x: np.ndarray) -> np.ndarray:
        calls.append(0)
        return np.sign(x)

    gs.certify(norm1, np.zeros(30), spy, delta=0.1, eps=10.0, rng=0)
    assert len(calls) == 2  # one that reaches it, one beside it


def test_a_descent_direction_is_reported_and_true() -> None:
    x = np.array([1.0, -2.0])
    cert = gs.certify(norm1, x, np.sign, delta=1e-2, rng=0)
    assert np.linalg.norm(cert.descent) == pytest.approx(1.0)
    step = cert.meta["descent_step"]
    assert 0 < step <= 1e-2
    assert norm1(x + step * cert.descent) < norm1(x) - 0.25 * step * cert.eps


@pytest.mark.parametrize("scale", [1e150, 1e-150, 1e-160, 3e-162, 1e-200, 1e-300])
@pytest.mark.parametrize("x", [[0.0, 0.0], [1.0, 0.0], [1.0, -2.0]])
def test_functions_of_any_scale_get_certificates_that_verify(scale: float, x: list[float]) -> None:
    def tall(y: np.ndarray) -> float:
        return scale * norm1(y)

    def jac(y: np.ndarray) -> np.ndarray:
        return scale * np.sign(y)

    cert = gs.certify(tall, x, jac, delta=1e-3, rng=0)
    assert cert.verify(tall, jac).ok
    # Gradients of coordinates beyond the ball do not cancel.
    assert cert.eps >= scale * math.sqrt(np.count_nonzero(x)) * (1 - 1e-12)


def test_no_gradient_at_all_is_an_error() -> None:
    def kink(x: np.ndarray) -> np.ndarray:
        raise gs.KinkError("corner", x)

    with pytest.raises(ValueError, match=r"no gradient could be had within 0.1 of x \(\d+ kinks"):
        gs.certify(norm1, [0.0], kink, delta=0.1)


def test_certify_agrees_with_minimize() -> None:
    res = gs.minimize(norm1, [1.0, -2.0, 0.5], np.sign, eps=1e-3, delta=1e-3, rng=0)
    assert gs.certify(norm1, res.x, np.sign, delta=1e-3, rng=1).eps <= 1e-3


def test_curve_never_rises_and_every_certificate_verifies() -> None:
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((12, 4))

    def value(x: np.ndarray) -> float:
        return float(np.abs(rows @ x).max() + 0.1 * x @ x)

    def gradient(x: np.ndarray) -> np.ndarray:
        i = int(np.abs(rows @ x).argmax())
        return np.sign(rows[i] @ x) * rows[i] + 0.2 * x

    for seed in range(4):
        x = 0.05 * np.random.default_rng(seed).standard_normal(4)
        curve = gs.stationarity_curve(value, x, gradient, rng=seed)
        assert (np.diff(curve.eps) <= 0).all()
        assert (np.diff(curve.deltas) > 0).all()
        for radius, eps, cert in zip(curve.deltas, curve.eps, curve.certificates):
            assert cert.delta <= radius
            assert cert.eps == eps
            assert cert.verify(value, gradient).ok
        assert curve.eps[-1] < 1e-6 < curve.eps[0]


def test_curve_of_the_absolute_value_jumps_at_the_distance_to_the_kink() -> None:
    curve = gs.stationarity_curve(norm1, [0.01], np.sign, deltas=[1e-4, 9e-3, 2e-2, 1.0], rng=0)
    assert curve.eps.round(9).tolist() == [1.0, 1.0, 0.0, 0.0]
    assert repr(curve).count("delta") == 4


def test_curve_sorts_its_radii_and_shares_one_budget() -> None:
    calls = []

    def spy(x: np.ndarray) -> np.ndarray:
        calls.append(0)
        return np.sign(x)

    curve = gs.stationarity_curve(norm1, [0.0], spy, deltas=[1.0, 0.01], rng=0, max_calls=25)
    assert curve.deltas.tolist() == [0.01, 1.0]
    assert len(calls) <= 25


@pytest.mark.parametrize("spread", [1e-4, 3e-4])
def test_a_thousand_kinks_are_crossed_together(spread: float) -> None:
    """The minimiser of a weighted l1 norm is in the ball; a hundred gradients must show it.

    Those that matter are looked at twice.

    With the tilt of Algorithm 1 they meet the kinks in random combinations: 400 do not.
    """
    rng = np.random.default_rng(3)
    x, a = spread * rng.random(1000), 1.0 + rng.random(1000)
    asked = 0

    def gradient(y: np.ndarray) -> np.ndarray:
        nonlocal asked
        asked += 1
        return a * np.sign(y)

    certificate = gs.certify(
        lambda y: float(a @ np.abs(y)), x, gradient, delta=1e-2, eps=1e-2, rng=0
    )
    assert certificate.eps <= 1e-2
    assert asked <= 200


def test_the_headline_names_the_delta_that_was_asked_for() -> None:
    """The claim may hold in a smaller ball; the verdict is about the question."""
    found = gs.certify(lambda x: abs(x[0]), [1.0], np.sign, delta=1e-3, rng=0)
    assert found.delta < 1e-3
    assert found.summary().startswith("NOT stationary within delta = 0.001: ")
