"""RhoMarginSVC on data at the ends: rows of zeros, huge rows, heavy weights, no weights."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from goldstein.errors import InputError
from goldstein.sklearn import RhoMarginSVC


def data(seed: int, n: int = 10, d: int = 3) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 2
    return rng.standard_normal((n, d)) + 0.8 * y[:, None], y


def is_proved(machine: RhoMarginSVC, X: Any, y: Any, weights: Any = None) -> bool:
    F = machine.objective(X, y, weights)
    return bool(machine.certificate_.verify(F).ok)


def test_rows_of_zeros_on_their_kink() -> None:
    # Without an intercept a row of zeros is at 0 = shift + rho, wherever w is.
    for seed in range(8):
        X, y = data(seed)
        X[::3] = 0.0
        machine = RhoMarginSVC(rho=1.0, shift=-1.0, C=1000.0, fit_intercept=False).fit(X, y)
        assert is_proved(machine, X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("scale", [1e70, 1e90, 1e130])
def test_rows_beside_which_the_penalty_is_nothing(scale: float) -> None:
    for seed in range(6):
        X, y = data(seed)
        for intercept in (False, True):
            machine = RhoMarginSVC(rho=2.5, C=1000.0, fit_intercept=intercept).fit(scale * X, y)
            assert is_proved(machine, scale * X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_weights_beside_which_the_penalty_is_nothing() -> None:
    for seed in range(10):
        X, y = data(seed, n=6)
        weights = 1e200 * np.random.default_rng(seed).random(6)
        machine = RhoMarginSVC(rho=0.3, C=1000.0, fit_intercept=seed % 2 == 0)
        assert is_proved(machine.fit(X, y, weights), X, y, weights)


def test_the_largest_C() -> None:
    X, y = data(0)
    assert is_proved(RhoMarginSVC(C=1e308).fit(X, y), X, y)


@pytest.mark.parametrize("multi_class", ["ovr", "native"])
def test_class_weights_that_leave_nothing(multi_class: str) -> None:
    X, y = data(0)
    y = y + (np.arange(10) > 7)
    machine = RhoMarginSVC(class_weight={0: 0, 1: 0, 2: 0}, multi_class=multi_class)
    with pytest.raises(InputError, match="no row has a positive weight"):
        machine.fit(X, y)


def test_opposite_rows_on_one_kink() -> None:
    # At w = 0 both classes are on their kink, and no direction takes both to the same side.
    X, y = np.full((4, 1), 3.0), np.array([0, 1, 0, 1])
    for C in (0.1, 1.0 / 3.0, 10.0):
        machine = RhoMarginSVC(rho=1.0, shift=-1.0, C=C, fit_intercept=False).fit(X, y)
        assert is_proved(machine, X, y)
