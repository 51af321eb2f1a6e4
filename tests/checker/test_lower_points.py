"""A black box that is lower at another point: by how much, values say only up to their rounding."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import goldstein as gs


def claim(x: Any, point: Any, fall: float) -> gs.Refutation:
    start, end = np.atleast_1d(x).astype(float), np.atleast_1d(point).astype(float)
    return gs.Refutation(
        x=start, point=end, direction=end - start, fall=fall, label="conditional",
        exact_pivot=tuple(map(Fraction, start.tolist())),
    )  # fmt: skip


def hill(x: np.ndarray) -> float:
    return float(x[0] ** 2 - x[1] ** 2)


def slopes(x: np.ndarray) -> np.ndarray:
    return np.array([2 * x[0], -2 * x[1]])


def test_true_falls_pass_and_more_than_the_truth_does_not() -> None:
    true = claim([0.0, 0.0], [0.0, 0.5], 0.2499)
    assert true.verify(hill, slopes).ok
    for fall in (0.25 + 1e-6, 0.0, -1.0, np.nan, np.inf):
        assert not replace(true, fall=fall).verify(hill, slopes).ok
    assert not claim([0.0, 0.5], [0.0, 0.0], 0.1).verify(hill, slopes).ok
    assert not claim([0.0, 0.0], [0.0, 0.0], 0.1).verify(hill, slopes).ok


@pytest.mark.parametrize("offset", [1e6, 1e12])
def test_a_fall_that_rounding_of_values_explains_is_none(offset: float) -> None:
    """f = C + x^2 / 2 rises from 0; that it seems to fall by a unit is a matter of its digits."""
    unit = float(np.spacing(offset))
    noise = lambda x: offset + 0.5 * x[0] ** 2 - unit * (x[0] > 0)  # noqa: E731
    step = 0.1 * unit**0.5
    assert noise(np.array([0.0])) - noise(np.array([step])) == unit
    found = claim(0.0, step, unit / 2).verify(noise, lambda x: x.copy())
    assert not found.ok


@pytest.mark.parametrize("away", [1e-9, 1e-8, 1e-7, 1e-6])
def test_steps_below_the_resolution_of_f_show_nothing(away: float) -> None:
    """(x + 1e9) - 1e9 is a staircase: what it falls by is a multiple of 1.2e-7, not the truth."""
    stairs, one = lambda x: float((x[0] + 1e9) - 1e9), lambda x: np.ones(1)
    for x in np.random.default_rng(0).uniform(-1e-6, 1e-6, 40):
        fall = stairs([x]) - stairs([x - away])
        if fall > 1.001 * away:
            assert not claim(x, x - away, fall).verify(stairs, one).ok


def test_values_that_contradict_gradients_show_nothing() -> None:
    assert not claim(0.0, 1.0, 0.5).verify(lambda x: -x[0], lambda x: np.zeros(1)).ok
    assert not claim(0.0, 1.0, 0.5).verify(lambda x: -x[0], lambda x: np.ones(1)).ok


def test_certify_states_no_more_than_it_can_verify() -> None:
    for offset in (0.0, 1e3, 1e6):
        f = lambda x, c=offset: c + hill(x) + x[1] ** 4  # noqa: E731
        g = lambda x: slopes(x) + [0.0, 4 * x[1] ** 3]  # noqa: E731
        for delta in (1e-2, 1e-4, 1e-6):
            found = gs.certify(f, [0.0, 0.0], g, delta=delta, stationarity="minimum", rng=0)
            if isinstance(found, gs.Refutation):
                true = -(f(found.point) - offset)
                assert found.fall <= true + 2 * np.spacing(offset)
            assert found.verify(f, g).ok
            said = "not a minimum" in found.summary()
            assert not said or isinstance(found, gs.Refutation) or offset < 1e6 or delta > 1e-5
