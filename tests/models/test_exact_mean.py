"""A proof about a mean is about the exact mean: no total, and no reciprocal of one, is rounded."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.limits import gradient_enclosure, limiting_gradients

from goldstein.certificates import NearCertificate
from goldstein.checker.enclosed.point import RATIONAL_WORK, work
from goldstein.models import relu_one_layer, relu_two_layer
from goldstein.numerics.exact import exact_sum

WAY = [[1.0]]


def one_neuron(rows: int, weights: list[float] | None = None):
    """The mean of (w - 0)^2 / 2 over equal rows, for w > 0: its derivative there is w."""
    return relu_one_layer(
        np.ones((rows, 1)), np.zeros(rows), 1, bias=False, mean=True, weights=weights
    )


def test_the_claim_about_a_mean_of_three_rows_is_not_below_the_truth() -> None:
    # One row of three is active: the derivative at 1 is 1/3, which lies above the nearest float.
    assert Fraction(1.0 / 3) < Fraction(1, 3)
    model = relu_one_layer([[1.0], [-1.0], [-1.0]], np.zeros(3), 1, bias=False, mean=True)
    proof = NearCertificate.prove(model, np.ones(1), [Fraction(1)], WAY, [1.0])
    assert Fraction(proof.eps) >= Fraction(1, 3)


@given(rows=st.integers(1, 60), w=st.fractions(min_value="1/100", max_value=100))
@settings(max_examples=40, deadline=None)
def test_the_proof_sees_the_exact_derivative_of_the_mean(rows: int, w: Fraction) -> None:
    ((slope,), (spread,)) = limiting_gradients(one_neuron(rows), [w], WAY)[0]
    assert slope == w
    assert spread == 0


@given(
    weights=st.lists(
        st.floats(min_value=0.0, max_value=1e9).filter(lambda p: p == 0 or p > 1e-9), min_size=1
    ).filter(any)
)
@settings(max_examples=40, deadline=None)
def test_the_total_of_the_weights_is_exact_too(weights: list[float]) -> None:
    model = one_neuron(len(weights), weights)
    ((slope,), _) = limiting_gradients(model, [Fraction(3)], WAY)[0]
    assert slope == 3


def test_a_total_that_float64_cannot_hold() -> None:
    weights = [1.0, 2.0**-60]  # their float64 sum is 1
    model = relu_one_layer([[1.0], [3.0]], [0.0, 0.0], 1, bias=False, mean=True, weights=weights)
    ((slope,), _) = limiting_gradients(model, [Fraction(1)], WAY)[0]
    small = Fraction(2) ** -60
    assert slope == (1 + 9 * small) / (1 + small)


@pytest.mark.parametrize("make", [relu_one_layer, relu_two_layer])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_proof_with_enclosures_contains_the_exact_mean(make, weighted: bool) -> None:
    rows, width = 3, 2
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((rows, 2)), rng.standard_normal(rows)
    weights = rng.random(rows) if weighted else None
    options = {"bias": False, "ridge": 0.25, "weights": weights}
    mean, total = (make(X, y, width, mean=flag, **options) for flag in (True, False))
    x = mean.start(1)
    weight = sum((Fraction(p) for p in weights.tolist()), Fraction(0)) if weighted else rows
    ((plain, _),) = limiting_gradients(total.tree, x, [np.ones(x.size)])
    ridge = [Fraction(0.25) * Fraction(t) for t in x.tolist()]
    truth = [(g - r) / weight + r for g, r in zip(plain, ridge, strict=True)]
    mid, rad = gradient_enclosure(mean, x)
    for m, r, t in zip(mid.tolist(), rad.tolist(), truth, strict=True):
        assert abs(Fraction(m) - t) <= Fraction(r)
    assert work(mean.program()) <= RATIONAL_WORK
    ((exact, _),) = limiting_gradients(mean, x, [np.ones(x.size)])
    assert exact == truth


@given(values=st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=12))
def test_exact_sum_is_the_sum_of_the_rationals(values: list[float]) -> None:
    assert exact_sum(np.array(values)) == sum(map(Fraction, values), Fraction(0))
