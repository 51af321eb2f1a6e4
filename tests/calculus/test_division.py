"""u / c is the exact quotient in proofs, whatever the float64 reciprocal of c is."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.limits import exact_row, gradient_enclosure, limiting_gradients

from goldstein.apriori.modulus import piece_modulus
from goldstein.calculus import Variable, abs, relu, square, sum, sum_squares
from goldstein.certificates import NearCertificate
from goldstein.checker.sides import point_at
from goldstein.errors import InputError, KinkError, NotCertifiableError

DIVISORS = st.one_of(
    st.floats(min_value=1e-6, max_value=1e6),
    st.floats(min_value=-1e6, max_value=-1e-6),
    st.integers(1, 2**80),
    st.fractions(min_value="1/1000", max_value=1000),
)


@given(divisor=DIVISORS, w=st.floats(min_value=0.01, max_value=100))
def test_the_slope_of_a_quotient_is_exact(divisor: Any, w: float) -> None:
    F = sum(abs(Variable(1))) / divisor
    truth = 1 / Fraction(divisor)
    ((slope, spread),) = limiting_gradients(F, [w], [[1.0]])
    assert (slope, spread) == ([truth], [0])
    mid, rad = gradient_enclosure(F, np.array([w]))
    assert -Fraction(rad[0]) <= Fraction(mid[0]) - truth <= Fraction(rad[0])
    assert F.gradient(np.array([w]))[0] == pytest.approx(float(truth), rel=1e-15)


def test_a_claim_about_a_third_is_not_below_a_third() -> None:
    F = sum(abs(Variable(1))) / 3
    proof = NearCertificate.prove(F, np.ones(1), [Fraction(1)], [[1.0]], [1.0])
    assert Fraction(proof.eps) >= Fraction(1, 3)


def test_a_kink_of_a_quotient_is_where_it_is() -> None:
    # The float64 reciprocal of 49 would put the kink of w/49 - 1 beside 49.
    F = sum(relu(Variable(1) / 49.0 - 1.0))
    with pytest.raises(KinkError):
        F.gradient(np.array([49.0]))
    for w, slope in [(math.nextafter(49.0, 50.0), Fraction(1, 49)), (math.nextafter(49.0, 0.0), 0)]:
        assert limiting_gradients(F, [w], [[1.0]])[0][0] == [slope]
        assert F.gradient(np.array([w]))[0] == pytest.approx(float(slope), rel=1e-15)


def test_an_array_divides_entry_by_entry() -> None:
    by = np.array([3.0, 5.0, 4.0])
    inner = Variable(3) / by
    assert [exact_row(inner, k)[0][k] for k in range(3)] == [
        Fraction(1, 3),
        Fraction(1, 5),
        Fraction(1, 4),
    ]
    ((slopes, _),) = limiting_gradients(sum(square(inner)), [1, 1, 1], [[1, 1, 1]])
    assert slopes == [Fraction(2, 9), Fraction(2, 25), Fraction(1, 8)]


def test_moduli_and_slopes_are_not_below_the_exact_ones() -> None:
    for n in range(2, 60):
        F = sum_squares(Variable(1)) / n
        assert Fraction(piece_modulus(F).total) >= Fraction(2, n)
        assert Fraction((sum(abs(Variable(1))) / n).lipschitz()) >= Fraction(1, n)


def test_powers_of_two_add_no_radius() -> None:
    F = sum(abs(Variable(1)))
    by_division, by_product = (gradient_enclosure(G, np.ones(1)) for G in (F / 8, 0.125 * F))
    assert by_division == by_product


@pytest.mark.parametrize(
    "divisor", [0, 0.0, math.inf, math.nan, 1e-320, 1.7e308, 10**400, Fraction(1, 10**400)]
)
def test_divisors_without_a_reciprocal_are_refused(divisor: Any) -> None:
    with pytest.raises(InputError):
        Variable(1) / divisor


def test_expressions_divide_where_the_divisor_is_not_0() -> None:
    x, y = Variable(2)
    quotient = point_at((x / y).program(), [1.0, 3.0])
    assert quotient.between() == (Fraction(1, 3), Fraction(1, 3))
    with pytest.raises(NotCertifiableError, match="nonzero"):
        point_at((x / y).program(), [1.0, 0.0]).between()


def test_integers_of_numpy_are_exact_too() -> None:
    assert exact_row(Variable(1) / np.int64(2**53 + 1))[0] == {0: Fraction(1, 2**53 + 1)}
