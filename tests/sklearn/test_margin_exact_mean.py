"""What RhoMarginSVC proves is about the mean objective itself, with no rounded 1/n in it."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from tests.limits import limiting_gradients

from goldstein.certificates import NearCertificate
from goldstein.sklearn import RhoMarginSVC

X = np.array([[1.0], [-1.0], [2.0]])
y = np.array([1, -1, -1])


@pytest.mark.parametrize("weights", [None, [0.1, 0.7, 1.3], [1.0, 2.0**-60, 1.0]])
@pytest.mark.parametrize("C", [1.0, 0.7])
def test_gradients_of_the_mean_are_exact(weights: list[float] | None, C: float) -> None:
    machine = RhoMarginSVC(rho=3.0, C=C, fit_intercept=False).fit(X, y, weights)
    model = machine.objective(X, y, weights)
    p = [Fraction(v) for v in (weights or [1.0] * 3)]
    w = Fraction(1, 4)
    # Rows 0 and 1 are on the ramp with products w, row 2 is beyond it.
    truth = (w / Fraction(C) - (p[0] + p[1]) / 3) / sum(p)
    ((slope, spread),) = limiting_gradients(model, [w], [[1.0]])
    assert (slope, spread) == ([truth], [0])
    assert model.gradient(np.array([0.25]))[0] == pytest.approx(float(truth), rel=1e-14)


def test_gradients_of_the_native_mean_are_exact() -> None:
    labels = np.array([0, 1, 2])
    machine = RhoMarginSVC(rho=3.0, C=0.7, fit_intercept=False, multi_class="native")
    model = machine.fit(X, labels).objective(X, labels)
    at = [Fraction(1, 4), Fraction(0), Fraction(-1, 2)]
    # Margins: row 0 is 1/4 - 0; row 1 is 0 - 1/2 < 0, flat; row 2 is -1 - 1/2 < 0, flat.
    truth = [w / Fraction(0.7) / 3 for w in at]
    truth[0] -= Fraction(1, 9)
    truth[1] += Fraction(1, 9)
    ((slopes, spreads),) = limiting_gradients(model, at, [[1.0, 0.5, 0.25]])
    assert (slopes, spreads) == (truth, [0, 0, 0])


def test_a_claim_about_a_third_is_not_below_a_third() -> None:
    # One row of three on the ramp of width 1, at w = 0 in the limit: the slope is -1/3.
    rows = np.array([[1.0], [-1e-9], [-1e-9]])
    machine = RhoMarginSVC(rho=1.0, C=1.0, shift=0.0, fit_intercept=False)
    model = machine.fit(rows, [1, 1, -1]).objective(rows, [1, 1, -1])
    tiny = 2.0**-200
    proof = NearCertificate.prove(model, np.array([tiny]), [Fraction(tiny)], [[1.0]], [1.0])
    active = 1 - Fraction(tiny) + Fraction(1e-9)
    assert Fraction(proof.eps) >= active / 3
