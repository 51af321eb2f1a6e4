"""Roundings and rational linear algebra against plain Fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from goldstein.checker import rationals
from goldstein.checker.exact import exact_combination
from goldstein.errors import InputError
from goldstein.numerics import exact
from goldstein.numerics.exact import fraction_lower, sqrt_lower

finite = st.floats(allow_nan=False, allow_infinity=False)
small_ints = st.integers(-3, 3).map(float)
fractions = st.fractions(max_denominator=10**6)


@pytest.fixture(params=["flint", "python"])
def backend(request, monkeypatch):
    """Run with python-flint for every size, and without it."""
    if request.param == "python":
        monkeypatch.setattr(exact, "flint", lambda: None)
    else:
        monkeypatch.setattr(exact, "_FLINT_MIN_ROWS", 1)
    return request.param


def plain_dot(a, b):
    return sum((Fraction(p) * Fraction(q) for p, q in zip(a, b, strict=True)), Fraction(0))


# --- roundings


@given(st.fractions())
def test_fraction_bounds_are_the_neighbouring_floats(q):
    upper, lower = rationals.fraction_upper(q), fraction_lower(q)
    assert Fraction(lower) <= q <= Fraction(upper)
    assert upper == lower or math.nextafter(lower, math.inf) == upper


def test_fraction_bounds_at_the_ends_of_the_range():
    huge, tiny = Fraction(10) ** 400, Fraction(1, 10**400)
    assert rationals.fraction_upper(huge) == math.inf
    assert fraction_lower(huge) == np.finfo(float).max
    assert rationals.fraction_upper(-huge) == -np.finfo(float).max
    assert rationals.fraction_upper(tiny) == 5e-324
    assert fraction_lower(tiny) == 0.0
    assert rationals.fraction_upper(-tiny) == 0.0


@given(st.fractions(min_value=0), st.integers(-600, 600))
def test_roots_enclose(q, power):
    q *= Fraction(10) ** power
    lower, upper = sqrt_lower(q), rationals.sqrt_upper(q)
    assert Fraction(lower) ** 2 <= q
    assert math.isinf(upper) or q <= Fraction(upper) ** 2
    if 1e-300 < upper < 1e300:
        # Next to a power of two the floats below it are twice as dense.
        assert upper <= lower * (1.0 + 2.0**-51)


@given(
    st.fractions(min_value=0, max_denominator=2**20, max_value=2**20).map(
        lambda q: Fraction(float(q))
    )
)
def test_roots_of_float_squares_are_exact(q):
    assert Fraction(rationals.sqrt_upper(q * q)) == q == Fraction(sqrt_lower(q * q))


def test_roots_refuse_negative_numbers():
    with pytest.raises(ValueError, match="nonnegative"):
        rationals.sqrt_upper(Fraction(-1))


# --- vectors


@given(st.lists(st.tuples(finite, fractions, small_ints), min_size=1, max_size=5))
def test_vector_operations_equal_fractions(columns):
    a, b, c = (list(column) for column in zip(*columns, strict=True))
    assert rationals.exact_dot(a, b) == plain_dot(a, b)
    assert rationals.squared_norm(b) == plain_dot(b, b)
    combined = exact_combination([0.5, Fraction(1, 3), 2], [a, b, c])
    assert combined == [Fraction(p) / 2 + q / 3 + 2 * Fraction(r) for p, q, r in columns]
    differences = [q - Fraction(r) for _, q, r in columns]
    assert rationals.squared_distance(b, c) == plain_dot(differences, differences)


def test_numpy_integers_are_numbers_too():
    assert rationals.common_denominator([np.int64(3), 0.5]) == ([6, 1], 2)
    assert rationals.to_fractions(np.array([1, 2])) == [1, 2]


def test_infinities_are_refused():
    with pytest.raises(InputError, match="finite"):
        rationals.to_fractions([math.inf])
    with pytest.raises(InputError, match="finite"):
        rationals.exact_dot([math.nan], [1.0])


# --- linear algebra over Q


def rank_by_fractions(rows):
    work = [[Fraction(v) for v in row] for row in rows]
    rank = 0
    for column in range(len(work[0]) if work else 0):
        pivot = next((i for i in range(rank, len(work)) if work[i][column]), None)
        if pivot is None:
            continue
        work[rank], work[pivot] = work[pivot], work[rank]
        for i in range(rank + 1, len(work)):
            factor = work[i][column] / work[rank][column]
            work[i] = [p - factor * q for p, q in zip(work[i], work[rank], strict=True)]
        rank += 1
    return rank


matrices = st.tuples(st.integers(1, 6), st.integers(1, 4)).flatmap(
    lambda shape: st.lists(
        st.lists(small_ints, min_size=shape[1], max_size=shape[1]),
        min_size=shape[0],
        max_size=shape[0],
    )
)


@pytest.mark.parametrize("use_flint", [True, False])
@settings(max_examples=150, deadline=None)
@given(rows=matrices, data=st.data())
def test_projection_is_feasible_and_orthogonal_or_the_system_is_inconsistent(use_flint, rows, data):
    levels = data.draw(st.lists(small_ints, min_size=len(rows), max_size=len(rows)))
    base = data.draw(st.lists(fractions, min_size=len(rows[0]), max_size=len(rows[0])))
    with pytest.MonkeyPatch.context() as patch:
        if use_flint:
            patch.setattr(exact, "_FLINT_MIN_ROWS", 1)
        else:
            patch.setattr(exact, "flint", lambda: None)
        assert exact.exact_rank(rows) == rank_by_fractions(rows)
        chosen = exact.independent_rows(rows)
        assert rank_by_fractions([rows[i] for i in chosen]) == len(chosen)
        point = exact.project_exact(rows, levels, base)
    consistent = rank_by_fractions(rows) == rank_by_fractions(
        [[*row, level] for row, level in zip(rows, levels, strict=True)]
    )
    assert (point is not None) == consistent
    if point is not None:
        assert all(plain_dot(r, point) == Fraction(t) for r, t in zip(rows, levels, strict=True))
        step = [p - q for p, q in zip(point, base, strict=True)]
        # The step lies in the row space: adding it as a row does not raise the rank.
        assert rank_by_fractions([*rows, step]) == rank_by_fractions(rows)


def test_projection_of_floats_is_exact_where_floats_are_not(backend):
    rows = np.array([[0.1, 0.2, 0.7], [0.3, 0.1, 0.1], [0.4, 0.3, 0.8]])
    levels = np.array([0.1, 0.3, 0.2])
    point = exact.project_exact(rows, levels, [0.0, 1e-9, 3.0])
    assert point is not None
    assert [plain_dot(row, point) for row in rows] == [Fraction(t) for t in levels]


def test_repeated_float_rows_are_consistent_only_with_equal_levels(backend):
    row = [0.1, 1e-30, 3e17]
    assert exact.project_exact([row, row, row], [0.3] * 3, [1.0, 2.0, 3.0]) is not None
    levels = [0.3, 0.3, math.nextafter(0.3, 1)]
    assert exact.project_exact([row, row, row], levels, [1.0, 2.0, 3.0]) is None


def test_blocks_without_shared_variables_are_solved_apart(backend):
    rng = np.random.default_rng(1)
    block = rng.standard_normal((3, 4))
    stacked = sparse.block_diag([block, 2 * block, block]).tocsr()[[0, 3, 6, 1, 4, 7]]
    base = rng.standard_normal(12)
    point = exact.project_exact(stacked, 0.0, base)
    parts = [exact.project_exact(block[:2], 0.0, base[4 * k : 4 * k + 4]) for k in range(3)]
    assert point == [entry for part in parts for entry in part]


def test_empty_and_zero_rows(backend):
    base = [Fraction(1, 3), Fraction(2)]
    assert exact.project_exact(np.zeros((0, 2)), [], base) == base
    assert exact.project_exact([[0.0, 0.0]], [0.0], base) == base
    assert exact.project_exact([[0.0, 0.0]], [1.0], base) is None
    assert exact.exact_rank([[0.0, 0.0]]) == 0
