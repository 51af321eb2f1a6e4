"""Exact inner products of float64 data against plain Fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from goldstein.checker import rationals
from goldstein.checker.enclosed.arrays import float_dot as dot
from goldstein.checker.enclosed.arrays import row_products
from goldstein.errors import InputError
from goldstein.numerics import exact

finite = st.floats(allow_nan=False, allow_infinity=False)
edges = st.sampled_from(
    [0.0, -0.0, 5e-324, -5e-324, 2.0**-1022, 1.7976931348623157e308, -1.7976931348623157e308, 1.0]
    + [math.nextafter(1.0, 0.0), -math.nextafter(2.0, 0.0), 2.0**53 - 1, -(2.0**27), 2.0**26 + 1]
)
numbers = finite | edges
pairs = st.lists(st.tuples(numbers, numbers), min_size=1, max_size=12)


def plain_dot(a, b):
    return sum((Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True)), Fraction(0))


@settings(max_examples=400, deadline=None)
@given(pairs)
def test_float_dot_equals_fractions_over_the_whole_float_range(terms):
    a, b = np.array(terms).T
    assert dot(a, b) == plain_dot(a.tolist(), b.tolist())


@pytest.mark.parametrize("size", [1, 63, 64, 2047, 2048, 2049, 5000])
def test_float_dot_of_many_terms_across_blocks(size):
    rng = np.random.default_rng(size)
    a = rng.standard_normal(size) * 10.0 ** rng.integers(-12, 12, size)
    b = rng.standard_normal(size)
    assert dot(a, b) == plain_dot(a.tolist(), b.tolist())
    assert rationals.exact_dot(a, b) == plain_dot(a.tolist(), b.tolist())


@pytest.mark.parametrize("size", [1, 2, 3, 2047, 2048, 2049, 2**16])
def test_digits_of_many_terms_add_up_without_rounding(size):
    """The largest digits there are, all of one sign: sums of the leading ones are exact."""
    full = np.full(size, 2.0**53 - 1)
    assert dot(full, full) == size * (2**53 - 1) ** 2
    assert dot(full, -full) == -size * (2**53 - 1) ** 2


@pytest.mark.parametrize(
    "exponent", [-1074, -1000, -480, -450, -400, 400, 498, 505, 510, 512, 1000]
)
def test_products_next_to_the_ends_of_float64(exponent):
    """Where products or their errors leave float64, digits are not split."""
    a = np.ldexp(np.array([1.0 + 2.0**-52, 3.0, -1.0 / 3.0]), exponent)
    for b in (a, a[::-1], np.ones(3), np.array([1.0, 0.0, -0.7])):
        assert dot(a, b) == plain_dot(a.tolist(), b.tolist())


def test_float_dot_refuses_what_is_no_number_and_unequal_lengths():
    for bad in (math.nan, math.inf, -math.inf):
        with pytest.raises(InputError, match="finite"):
            dot(np.array([1.0, bad]), np.array([1.0, 0.0]))
    with pytest.raises(InputError, match="shapes"):
        dot(np.ones(2), np.ones(3))
    assert dot(np.zeros(0), np.zeros(0)) == 0


entries = st.fractions(max_denominator=97) | numbers.map(Fraction)


def rows_of(*rows):
    return sparse.csr_array(np.atleast_2d(np.array(rows)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(entries, numbers), min_size=1, max_size=90))
def test_rows_times_a_vector_of_floats_and_rationals(terms):
    vector, coefficients = [value for value, _ in terms], [c for _, c in terms]
    expected = plain_dot(vector, coefficients)
    assert row_products(rows_of(coefficients, coefficients[::-1]), vector)[0] == expected


@pytest.mark.parametrize("rationals", [0, 1, 5, 200])
def test_rows_times_long_vectors(rationals):
    rng = np.random.default_rng(rationals)
    values = [Fraction(v) for v in rng.standard_normal(200).tolist()]
    for place in rng.choice(200, rationals, replace=False).tolist():
        values[place] += Fraction(1, 3)
    table = rng.standard_normal((4, 200)) * (rng.random((4, 200)) < 0.7)
    table[3] = 0.0
    expected = [plain_dot(row, values) for row in table.tolist()]
    assert row_products(rows_of(*table), values) == expected
    if not rationals:
        floats = np.array([float(v) for v in values])
        assert row_products(rows_of(*table), floats) == expected


def test_entries_beyond_float64_are_kept():
    huge = Fraction(10) ** 400
    assert row_products(rows_of([2.0, 1.0, 1.0]), [huge, -huge, Fraction(1)]) == [huge + 1]
    for bad in (math.nan, math.inf):
        with pytest.raises(InputError, match="finite"):
            row_products(rows_of([1.0, 1.0]), np.array([1.0, bad]))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(entries, entries, st.booleans()), min_size=1, max_size=6))
def test_squared_distance_with_coordinates_that_agree(terms):
    left = [a for a, _, _ in terms]
    right = [a if same else b for a, b, same in terms]
    expected = sum(((a - b) ** 2 for a, b in zip(left, right, strict=True)), Fraction(0))
    assert rationals.squared_distance(left, right) == expected


@pytest.mark.parametrize("flint", [True, False])
@pytest.mark.parametrize("size", [1, 2, 3, 6])
def test_a_square_system_has_one_point(size, flint, monkeypatch):
    if not flint:
        monkeypatch.setattr(exact, "flint", lambda: None)
    rng = np.random.default_rng(size)
    M, base = rng.standard_normal((size, size)), rng.standard_normal(size)
    levels = [Fraction(int(k), 7) for k in rng.integers(-9, 9, size)]
    point = exact.project_exact(M, levels, base)
    assert point is not None
    assert [plain_dot(row, point) for row in M.tolist()] == levels
