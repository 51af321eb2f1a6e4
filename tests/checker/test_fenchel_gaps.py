"""Fenchel gaps: never below the truth, hardly above it, infinite outside the domain of h*."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from goldstein.checker.fenchel import (
    _stretch,
    dot_lower,
    fenchel_gap,
    groups_gap,
    l1_box_gap,
    nuclear_gap,
    products_upper,
    simplex_gap,
    singular_upper,
    term_share,
)

UP, DOWN = math.nextafter(1.0, 2.0), math.nextafter(1.0, 0.0)


def vector(*entries: float) -> Any:
    return np.array(entries)


def l1_gap(x: Any, v: Any, weights: Any) -> float:
    return l1_box_gap(x, v, weights, np.full(x.size, -math.inf), np.full(x.size, math.inf))


def box_gap(x: Any, v: Any, lower: Any, upper: Any) -> float:
    return l1_box_gap(x, v, np.zeros(x.size), lower, upper)


def close(bound: float, truth: float | Fraction, slack: float = 1e-13) -> bool:
    """Is it a bound from above, and a close one?"""
    return (
        Fraction(truth)
        <= Fraction(bound)
        <= Fraction(truth) * (1 + Fraction(slack)) + Fraction(1e-300)
    )


def exact_dot(a: Any, b: Any) -> Fraction:
    return sum((Fraction(p) * Fraction(q) for p, q in zip(a.tolist(), b.tolist())), Fraction(0))


def test_sums_of_products_are_bounded_on_the_right_side() -> None:
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 9))
        scale = 10.0 ** rng.integers(-160, 100)
        a, b = rng.standard_normal(size) * scale, rng.standard_normal(size)
        truth = exact_dot(a, b)
        assert Fraction(dot_lower(a, b)) <= truth
        lost = exact_dot(np.abs(a), np.abs(b))
        assert truth - Fraction(dot_lower(a, b)) <= lost * Fraction(1e-14) + Fraction(1e-300)
        assert close(products_upper(np.abs(a), np.abs(b)), lost)


def test_products_that_underflow_are_covered() -> None:
    a = np.full(3, 2.0**-600)
    assert Fraction(products_upper(a, a)) >= exact_dot(a, a)
    assert products_upper(a, a) < 1e-300
    assert Fraction(dot_lower(a, a)) <= exact_dot(a, a)
    assert Fraction(dot_lower(-a, a)) <= -exact_dot(a, a)
    assert products_upper(vector(0.0, 1.0), vector(1.0, 0.0)) == 0.0
    assert products_upper(np.zeros(0), np.zeros(0)) == 0.0
    many, others = np.full(100, 2.0**-537), np.full(100, 0.98 * 2.0**-538)  # products are lost
    truth = exact_dot(many, others)
    assert Fraction(products_upper(many, others)) >= truth
    assert Fraction(dot_lower(-many, others)) <= -truth


def test_l1() -> None:
    x, weights = vector(2.0, -3.0, 0.0), vector(1.0, 1.0, 1.0)
    assert l1_gap(x, vector(1.0, -1.0, 0.3), weights) == 0.0
    assert close(l1_gap(x, vector(0.5, -1.0, 0.0), weights), 1.0)
    assert close(l1_gap(x, vector(1.0, 1.0, 0.0), weights), 6.0)
    assert l1_gap(x, vector(1.0, -1.0, UP), weights) == math.inf
    assert l1_gap(x, vector(1.0, -1.0, -UP), weights) == math.inf
    assert close(l1_gap(x, vector(1.0, -1.0, 1.0), vector(2.0, 1.0, 1.0)), 2.0)


GROUPS = [np.array([0, 1]), np.array([2])]


def test_groups() -> None:
    x, one = vector(3.0, 4.0, 0.0, 7.0), vector(1.0, 1.0)
    assert close(groups_gap(x, vector(0.6, 0.7, 0.0, 0.0), GROUPS, one), 5 - 1.8 - 2.8)
    assert groups_gap(x, vector(0.59999, 0.79999, 0.9, 0.0), GROUPS, one) < 1e-4
    assert groups_gap(x, vector(0.6, 0.81, 0.0, 0.0), GROUPS, one) == math.inf
    assert groups_gap(x, vector(0.5, 0.5, UP, 0.0), GROUPS, one) == math.inf
    assert groups_gap(x, vector(0.5, 0.5, 0.0, 2.0**-1074), GROUPS, one) == math.inf
    # |v_2| <= 1 costs nothing where x_2 = 0; a second group adds its own gap.
    both = groups_gap(vector(3.0, 4.0, 2.0, 0.0), vector(0.0, 0.0, 0.5, 0.0), GROUPS, one)
    assert close(both, 6.0)
    assert close(groups_gap(x, np.zeros(4), GROUPS, vector(2.0, 1.0)), 10.0)


@pytest.mark.parametrize("groups", [[[0, 1], [1]], [[0], [-1]], [[0, 0], [1]]])
def test_blocks_that_overlap_are_no_groups(groups: list[list[int]]) -> None:
    blocks = [np.array(group) for group in groups]
    assert groups_gap(vector(1.0, 1.0), np.zeros(2), blocks, vector(1.0, 1.0)) == math.inf


def test_box() -> None:
    lower, upper = vector(0.0, -math.inf, 0.0), vector(1.0, 5.0, math.inf)
    x = vector(1.0, 5.0, 0.0)
    assert box_gap(x, vector(2.0, 3.0, -4.0), lower, upper) == 0.0
    assert box_gap(x, np.zeros(3), lower, upper) == 0.0
    assert close(box_gap(vector(0.5, 4.0, 0.0), vector(2.0, 3.0, -4.0), lower, upper), 4.0)
    assert close(box_gap(vector(0.5, 5.0, 2.0), vector(-2.0, 3.0, -4.0), lower, upper), 9.0)
    assert box_gap(vector(UP, 5.0, 0.0), np.zeros(3), lower, upper) == math.inf
    assert box_gap(vector(1.0, 5.0, -(2.0**-1074)), np.zeros(3), lower, upper) == math.inf
    assert box_gap(x, vector(0.0, -(2.0**-1074), 0.0), lower, upper) == math.inf
    assert box_gap(x, vector(0.0, 0.0, 2.0**-1074), lower, upper) == math.inf


def test_absolute_values_between_bounds() -> None:
    """v z - w |z| is concave and piecewise linear: its highest point is a bound, or 0."""
    rng = np.random.default_rng(3)
    for _ in range(300):
        lower, upper = np.sort(rng.integers(-3, 4, (2, 4)).astype(float), axis=0)
        x = lower + (upper - lower) * rng.integers(0, 5, 4) / 4
        v, weights = rng.integers(-6, 7, 4) / 2, rng.integers(0, 5, 4) / 2
        ends = np.array([lower, upper, np.clip(0.0, lower, upper), x])
        heights = v * ends - weights * np.abs(ends)
        truth = math.fsum(heights.max(axis=0) - heights[-1])
        assert close(l1_box_gap(x, v, weights, lower, upper), truth)


def test_simplex() -> None:
    x = vector(0.25, 0.75, 0.0)
    assert max(simplex_gap(x, vector(3.0, 3.0, 1.0), 1.0)) < 1e-300
    gap, away = simplex_gap(x, vector(3.0, 2.0, 7.0), 1.0)
    assert close(gap, 0.25 * 4 + 0.75 * 5)
    assert away == 0.0
    assert simplex_gap(vector(0.25, 0.75, -(2.0**-1074)), np.zeros(3), 1.0) == (math.inf, math.inf)
    assert simplex_gap(vector(0.25, 0.75, 0.0), np.zeros(3), 1.4) == (math.inf, math.inf)


@pytest.mark.parametrize("total", [1.25, 0.75])
def test_a_sum_that_is_missed_is_made_up_for_by_the_largest_entry(total: float) -> None:
    gap, away = simplex_gap(vector(0.25, 0.75, 0.0), vector(3.0, 2.0, 3.0), total)
    assert close(away, 0.25)
    assert close(gap, 0.75 + 0.25)  # of the largest entry, and of what it is changed by
    assert simplex_gap(vector(0.25, 0.75, 0.0), np.zeros(3), 1.0 + 0.3749)[0] < 1e-300
    assert simplex_gap(vector(0.25, 0.75, 0.0), np.zeros(3), 1.0 + 0.3751)[0] == math.inf


def test_singular_values_are_bounded_from_above() -> None:
    rng = np.random.default_rng(0)
    for _ in range(60):
        rows, columns = rng.integers(1, 6, 2)
        A = rng.integers(-8, 9, (rows, columns)).astype(float) * 2.0 ** float(rng.integers(-30, 30))
        most, total = singular_upper(A)
        s = np.linalg.svd(A, compute_uv=False)
        assert most >= s.max()
        assert total >= s.sum() * (1 - 1e-15)
        assert most <= s.max() * (1 + 1e-12) + 1e-300
        assert total <= s.sum() * (1 + 1e-12) + 1e-300
    assert singular_upper(np.zeros((2, 3))) == (0.0, 0.0)
    # Known exactly: 3 and 4, and a rotation of them.
    most, total = singular_upper(np.diag([3.0, 4.0]))
    assert close(most, 4.0)
    assert close(total, 7.0)


def test_singular_values_are_bounded_whatever_the_decomposition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A sloppy decomposition makes the bounds worse, not wrong."""
    svd = np.linalg.svd
    rng = np.random.default_rng(0)
    for sloppy in (1.0, 0.9, 1.1, 0.0):
        for _ in range(20):
            A = rng.standard_normal((3, 4))
            true = svd(A, compute_uv=False)

            def bad(A: Any, full_matrices: bool, factor: float = sloppy) -> Any:
                U, s, W = svd(A, full_matrices=full_matrices)
                noise = 0.01 * rng.standard_normal(U.shape) if factor != 1.0 else 0.0
                return U + noise, factor * s, W - 0.02 * W * (factor != 1.0)

            monkeypatch.setattr(np.linalg, "svd", bad)
            most, total = singular_upper(A)
            monkeypatch.setattr(np.linalg, "svd", svd)
            assert most >= true.max() * (1 - 1e-14)
            assert total >= true.sum() * (1 - 1e-14)


def test_the_norm_of_a_row_is_bounded_from_above_exactly() -> None:
    rng = np.random.default_rng(0)
    for size in (1, 2, 5, 50, 400):
        for length in (1.0, 1.02, 0.98):
            row = rng.standard_normal(size)
            row *= length / np.linalg.norm(row)
            assert exact_dot(row, row) <= Fraction(_stretch(row[None])) ** 2


def test_nuclear() -> None:
    X, nothing = np.diag([3.0, 4.0]), np.zeros((2, 2))
    assert close(nuclear_gap(X, 0.5 * np.eye(2), 1.0), 3.5)
    assert 0.0 <= nuclear_gap(X, DOWN * np.eye(2) * (1 - 1e-12), 1.0) <= 1e-10
    assert nuclear_gap(X, 1.01 * np.eye(2), 1.0) == math.inf
    assert nuclear_gap(nothing, 0.5 * np.eye(2), 1.0) == 0.0
    assert nuclear_gap(nothing, 1.01 * np.eye(2), 1.0) == math.inf
    assert close(nuclear_gap(X, nothing, 2.0), 14.0)
    assert close(nuclear_gap(X, np.array([[0.0, 1.0], [1.0, 0.0]]) * 0.5, 1.0), 7.0)


def test_terms_by_name() -> None:
    x, v = vector(2.0, 0.0), vector(0.5, 0.0)
    assert close(fenchel_gap({"name": "l1", "weight": 1.0}, x, v)[0], 1.0)
    assert close(fenchel_gap({"name": "l1", "weight": [1.0, 9.0]}, x, v)[0], 1.0)
    group = {"name": "group_l2", "groups": [[0, 1]], "weight": 1.0}
    assert close(fenchel_gap(group, x, v)[0], 1.0)
    assert close(fenchel_gap({"name": "box", "lower": 0.0, "upper": 4.0}, x, v)[0], 1.0)
    assert max(fenchel_gap({"name": "simplex", "total": 2.0}, x, v)) < 1e-300
    nuclear = {"name": "nuclear", "shape": [1, 2], "weight": 1.0}
    assert close(fenchel_gap(nuclear, x, v)[0], 1.0)
    assert fenchel_gap({"name": "another"}, x, v)[0] == math.inf
    for term in ({"name": "l1", "weight": 1.0}, group, nuclear):
        assert fenchel_gap(term, x, v)[1] == 0.0


def share(x: Any, v: Any, delta: float, term: dict[str, Any], rows: Any = ((3.0, 4.0),)) -> float:
    return term_share(term, np.array(x), np.array(v), delta, np.ones(1), np.array(rows))


def test_what_a_term_adds_to_eps() -> None:
    """Its gap over delta, and two units in the last place of the rows."""
    l1 = {"name": "l1", "weight": 1.0}
    assert close(share([2.0, 0.0], [0.5, 0.0], 0.25, l1), 4.0)
    rounding = share([2.0, 0.0], [1.0, 0.0], 0.25, l1)
    assert close(rounding, 5 * 2.0**-52)
    assert share([2.0, 0.0], [1.0, 0.0], 0.25, l1, ((0.0, 0.0),)) < 1e-300
    assert share([2.0, 0.0], [UP, 0.0], 0.25, l1) == math.inf
    assert share([2.0, 0.0], [0.5, 0.0], 0.0, l1) == math.inf
    # Weights are finite and not negative, as those of `goldstein.prox` are.
    for bad in (math.inf, -1.0, math.nan):
        term = {"name": "l1", "weight": [bad, 2.0]}
        assert share([0.0, 2.0], [0.5, 1.0], 0.25, term) == math.inf


def test_a_point_beside_the_simplex_uses_up_part_of_the_ball() -> None:
    simplex = {"name": "simplex", "total": 1.25}
    x, v = [0.25, 0.75], [1.0, 0.0]
    # The gap is 0.75 + 0.25, and 0.25 of delta is used.
    assert close(share(x, v, 1.25, simplex), 1.0, 1e-12)
    assert close(share(x, v, 0.75, simplex), 2.0, 1e-12)
    assert share(x, v, 0.25, simplex) == math.inf
