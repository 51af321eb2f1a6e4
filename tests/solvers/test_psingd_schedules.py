"""The printed constants of Algorithm 2, its corrections, and the windows they promise."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldstein.errors import InputError
from goldstein.solvers import stochastic_schedules as schedules

ratio = st.floats(1e-4, 1.0)
size = st.floats(1e-3, 1e3)


def test_fact_09_theory_parameters() -> None:
    s = schedules.psingd_theory(0.1, 0.1, lipschitz=1.0, noise=0.0, gap=1.0)
    assert s.averaging == pytest.approx(0.99984375, abs=1e-15)
    assert s.window == 32479
    assert s.inverse_longest_step == pytest.approx(324811.124, abs=5e-4)
    assert s.offset == pytest.approx(1299244.497, abs=5e-4)
    assert schedules.window_slack(0.1, 0.1, 1.0) == pytest.approx(2.112417, abs=5e-7)
    assert s.perturbation == pytest.approx(7.5459e-12, rel=1e-5)
    assert s.steps == pytest.approx(3.326066e10, rel=1e-7)


@given(ratio=ratio, scale=size, delta=size)
def test_fact_10_slack_is_at_least_0386(ratio: float, scale: float, delta: float) -> None:
    slack = schedules.window_slack(ratio * scale, delta, scale)
    # delta p can be 1e9, so allow its rounding.
    noise = 8e-16 * delta * schedules.inverse_longest_step(ratio * scale, delta, scale)
    assert slack >= math.log(16.0) / 2.0 - 1.0 - noise
    assert math.log(16.0) / 2.0 - 1.0 == pytest.approx(0.3863, abs=1e-4)


def test_fact_11_constants_of_the_proof() -> None:
    assert 1 / 64 + 64 / 2016 + 1 / (64 * math.log(16)) == pytest.approx(0.05301, abs=5e-6)
    assert Fraction(1, 64) + Fraction(64, 2016) < Fraction(1, 17)
    assert 0.05301 < 1 / 17
    assert Fraction(1, 17) + Fraction(4, 510) == Fraction(1, 15)
    # Positive root of 4 m^2 - m/15 - 4/15 with eps = G = 1: the discriminant is (31/15)^2.
    root = (Fraction(1, 15) + Fraction(31, 15)) / 8
    assert 4 * root**2 - root / 15 - Fraction(4, 15) == 0
    assert root == Fraction(4, 15)
    expected_distance = Fraction(16, 15) * root + Fraction(1, 15)
    assert expected_distance == Fraction(79, 225)
    assert 1 - expected_distance >= Fraction(3, 5)


def test_fact_40_printed_slack_leaves_the_ball() -> None:
    s = schedules.psingd_theory(0.1, 0.1, lipschitz=1.0, noise=0.0, gap=1.0)
    log_factor = schedules.log_factor(0.1, 1.0)
    printed_slack = (1 / (1 - s.averaging) - 1 / math.log(1 / s.averaging)) * log_factor
    reach = (s.window + printed_slack) / s.inverse_longest_step
    assert reach - 0.1 == pytest.approx(1.3092e-6, rel=1e-4)
    assert s.window / s.inverse_longest_step + s.perturbation <= 0.1


@given(ratio=ratio, lipschitz=size, noise=st.floats(0.0, 1e3), delta=size)
def test_window_radius_never_exceeds_delta(
    ratio: float, lipschitz: float, noise: float, delta: float
) -> None:
    scale = schedules.gradient_scale(lipschitz, noise)
    s = schedules.psingd_theory(ratio * scale, delta, lipschitz=lipschitz, noise=noise, gap=1.0)
    assert s.radius <= delta * (1 + 1e-12)
    assert s.perturbation > 0.0
    # The weight of everything older than the window is at most eps / (16 G).
    assert s.window * math.log(s.averaging) <= -math.log(16.0 / ratio) * (1 - 1e-6)


def test_eps_above_the_gradient_scale_needs_no_schedule() -> None:
    with pytest.raises(InputError, match="already"):
        schedules.psingd_theory(2.0, 0.1, lipschitz=1.0, noise=0.0, gap=1.0)


@given(radius=size, steps=st.integers(1, 10**6), beta=st.floats(0.0, 0.999))
def test_practical_window_fills_the_first_ball(radius: float, steps: int, beta: float) -> None:
    s = schedules.psingd_practice(radius, steps, averaging=beta)
    assert s.radius == pytest.approx(radius, rel=1e-12)
    assert beta**s.window <= 0.05 + 1e-9
    assert s.shrink(0) == 1.0
    assert 0.0 < s.shrink(steps - 1) <= 1.0


def test_o2nc_optimal_rate_bound_is_met() -> None:
    eps, delta, scale, gap = 0.1, 0.1, 1.0, 1.0
    s = schedules.o2nc_optimal(eps, delta, scale=scale, gap=gap)
    bound = gap / (s.step_radius * s.steps) + 3 * scale / (2 * math.sqrt(s.window))
    assert bound <= eps * (1 + 1e-9)
    assert s.steps == pytest.approx(18 * gap * scale**2 / (delta * eps**3), rel=1e-3)


@given(delta=st.floats(1e-4, 10.0), steps=st.integers(1, 10**6))
def test_o2nc_windows_fit(delta: float, steps: int) -> None:
    s = schedules.o2nc_parameter_free(delta, steps)
    assert 1 <= s.window <= steps
    assert s.radius == pytest.approx(delta, rel=1e-12)
    practice = schedules.o2nc_practice(delta, steps)
    factors = [practice.shrink(t) for t in range(0, steps, max(1, steps // 50))]
    assert factors == sorted(factors, reverse=True)
    assert min(factors) > 0.0


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: schedules.psingd_practice(-1.0, 10), "radius"),
        (lambda: schedules.psingd_practice(1.0, 0), "steps"),
        (lambda: schedules.psingd_practice(1.0, 5, averaging=1.0), "averaging"),
        (lambda: schedules.o2nc_practice(float("nan"), 5), "radius"),
        (lambda: schedules.o2nc_parameter_free(0.0, 5), "delta"),
        (lambda: schedules.o2nc_optimal(0.1, 0.1, scale=0.0, gap=1.0), "scale"),
        (lambda: schedules.gradient_scale(1.0, -1.0), "noise"),
    ],
)
def test_impossible_parameters_are_named(call: object, word: str) -> None:
    with pytest.raises(InputError, match=word):
        call()  # type: ignore[operator]
