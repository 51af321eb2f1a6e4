"""Fused passes at the ends of the range of float64: they say what the tree says, or leave it."""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations

import numpy as np
import pytest
from tests.limits import limiting_gradients

from goldstein.calculus.expression import Expression
from goldstein.models.margin_svm import MarginSVM, MulticlassMargin, margin_svm, multiclass_margin
from goldstein.models.networks import relu_two_layer

#: Times 1e154 these sum to 1e307; most partial sums are beyond float64.
ENTRIES = np.array([1.7, 1.7, 0.0, -1.6, -1.7]) * 1e154

ORDERS = [ENTRIES[list(order)] for order in permutations(range(5))][::7]


def exact_gradient(F: Expression, x: np.ndarray) -> np.ndarray:
    ((slopes, _),) = limiting_gradients(F, x, np.ones((1, x.size)))
    return np.array([float(s) for s in slopes])


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_that_overflow_on_the_way_decide_nothing(classes: int) -> None:
    for row in ORDERS:
        F = multiclass_margin(
            row[None, :], [0], classes, rho=4e307, lam=0.0, weights=[1e300], intercept=False
        )
        x = np.zeros(F.dim)
        x[:5] = 1e154
        x[-1] = -1e150  # apart from the other rival
        np.testing.assert_allclose(F.gradient(x), exact_gradient(F, x), rtol=1e-9)


def test_neurons_that_overflow_on_the_way_are_not_switched_off() -> None:
    for row in ORDERS:
        F = relu_two_layer(row[None, :], [0.0], width=1, loss="huber", bias=False)
        x = np.append(np.full(5, 1e154), 1e-300)
        got = F.gradient(x)
        if not np.isnan(got).all():  # a NaN is no answer, but an honest one
            np.testing.assert_allclose(got, exact_gradient(F, x), rtol=1e-9)


def test_a_tiny_neighbourhood_stays_tiny() -> None:
    # The squares of these lengths are all 0 in float64.
    rows, far = [[1e170], [-1e170]], np.array([5e-170])
    expected = margin_svm(rows).gradient(far)
    F = margin_svm(rows)
    F.neighbourhood = 1e-200
    for near in (0.5e-170, 0.5e-170 + 1e-185):
        F.gradient(np.array([near]))
    np.testing.assert_array_equal(F.gradient(far), expected)


TINY = [Fraction(1, 2**1200), Fraction(1, 3 * 10**310), 5e-324, 3 * 5e-324]


@pytest.mark.parametrize("lam", TINY)
def test_a_ridge_below_float64_is_still_there(lam: Fraction | float) -> None:
    y = Fraction(2) ** 1200
    svm = MarginSVM([[1.0]], 1.0, lam)
    assert limiting_gradients(svm, [y], [[1.0]])[0][0] == [Fraction(lam) * y]
    several = MulticlassMargin([[1.0]], [0], 2, 1.0, lam, intercept=False)
    slopes = limiting_gradients(several, [y, 0], [[1.0, 0.0]])[0][0]
    assert slopes == [Fraction(lam) * y, 0]
