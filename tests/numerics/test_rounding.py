"""Upper bounds in float64 against exact rational arithmetic."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from goldstein.checker.rounding import combination_norm_upper, distance_upper, norm_upper

# Everything float64 has: cancelling, tiny, huge and denormal numbers side by side.
awkward = st.one_of(
    st.sampled_from(
        [0.0, 1.0, -1.0, 0.1, 1e16, -1e16, 1e-17, 5e-324, -5e-324, 2.0**-1022, 1e-200, 1e-310]
        + [1e150, -1e150, 1e300, 1.7e308, -1.7e308, 2.0**-537, 1 + 2.0**-52]
    ),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(-2.0, 2.0),
)
vectors = st.lists(awkward, min_size=1, max_size=6)


def exact_square(values: list[float]) -> Fraction:
    return sum((Fraction(v) ** 2 for v in values), Fraction(0))


def is_upper(bound: float, square: Fraction) -> bool:
    return bound == math.inf or Fraction(bound) ** 2 >= square


def is_tight(bound: float, square: Fraction) -> bool:
    """Within 1e-12, or a few of the smallest floats."""
    limit = Fraction(bound) * (1 - Fraction(1, 10**12)) - Fraction(10, 2**1074)
    return limit <= 0 or limit**2 <= square


@settings(max_examples=300, deadline=None)
@given(vectors)
def test_norm_upper(values: list[float]) -> None:
    bound, square = norm_upper(np.array(values)), exact_square(values)
    assert is_upper(bound, square)
    if bound < math.inf:
        assert is_tight(bound, square)
    else:
        assert square > Fraction(1.7e308) ** 2


@settings(max_examples=200, deadline=None)
@given(st.lists(st.floats(-1e9, 1e9), min_size=1, max_size=40))
def test_the_short_way_to_a_norm_is_the_long_one(values: list[float]) -> None:
    """Powers of two, which lead to the way with scaling, change no digit."""
    v = np.array(values)
    assume(np.abs(v[v != 0.0]).min(initial=1.0) > 1e-100)
    assert norm_upper(np.ldexp(v, -400)) == math.ldexp(norm_upper(v), -400)


@settings(max_examples=300, deadline=None)
@given(vectors, st.data())
def test_distance_upper(values: list[float], data: st.DataObject) -> None:
    other = data.draw(st.lists(awkward, min_size=len(values), max_size=len(values)))
    bound = distance_upper(np.array(values), np.array(other))
    square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(values, other))
    assert is_upper(bound, Fraction(square))
    if bound < math.inf:
        assert is_tight(bound, Fraction(square))
    assert (bound == 0.0) == (values == other)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 5), st.integers(1, 3), st.data())
def test_combination_norm_upper(count: int, dim: int, data: st.DataObject) -> None:
    weights = data.draw(
        st.lists(
            st.one_of(st.floats(0.0, 1.0), st.sampled_from([0.5, 0.25, 1e-200, 5e-324])),
            min_size=count,
            max_size=count,
        )
    )
    assume(any(w > 0 for w in weights))
    rows = [data.draw(st.lists(awkward, min_size=dim, max_size=dim)) for _ in range(count)]
    if data.draw(st.booleans()) and count > 1:
        rows[1] = [-v for v in rows[0]]  # gradients that nearly cancel are the point of it all
    bound = combination_norm_upper(np.array(weights), np.array(rows))
    total = sum((Fraction(w) for w in weights), Fraction(0))
    square = exact_ratio(weights, rows, total)
    assert is_upper(bound, square)


def exact_ratio(weights: list[float], rows: list[list[float]], total: Fraction) -> Fraction:
    columns = zip(*rows)
    sums = [sum(Fraction(w) * Fraction(v) for w, v in zip(weights, c)) / total for c in columns]
    return sum((Fraction(s) ** 2 for s in sums), Fraction(0))


@settings(max_examples=200, deadline=None)
@given(st.integers(2, 6), st.integers(1, 4), st.integers(0, 2**32))
def test_the_bound_is_tight_for_ordinary_numbers(count: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    weights = rng.random(count) + 1e-3
    rows[-1] = -(weights[:-1] @ rows[:-1]) / weights[-1]  # sums to zero up to rounding
    bound = combination_norm_upper(weights, rows)
    total = sum((Fraction(w) for w in weights.tolist()), Fraction(0))
    square = exact_ratio(weights.tolist(), rows.tolist(), total)
    assert is_upper(bound, square)
    # Even where 1e-16 is left of order 1 the bound is right to nine digits.
    assert Fraction(bound) ** 2 * (1 - Fraction(1, 10**9)) <= square


def test_exact_cancellation_gives_exactly_zero() -> None:
    assert combination_norm_upper(np.full(2, 0.5), np.array([[1e16, 1.0], [-1e16, -1.0]])) == 0.0
    # A plain float sum says 0 here; the truth is 1e-17 / 3.
    rows = np.array([[1.0], [1e-17], [-1.0]])
    assert combination_norm_upper(np.full(3, 1.0), rows) >= 1e-17 / 3


def test_products_that_underflow_are_not_lost() -> None:
    assert combination_norm_upper(np.array([1e-200, 1e-200]), np.array([[1e-200], [0.0]])) > 0.0


def test_no_weights_prove_nothing() -> None:
    assert combination_norm_upper(np.zeros(2), np.ones((2, 2))) == math.inf


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_non_finite_input_gives_no_bound(bad: float) -> None:
    assert norm_upper(np.array([1.0, bad])) == math.inf
    assert combination_norm_upper(np.ones(1), np.array([[bad, 1.0]])) == math.inf
