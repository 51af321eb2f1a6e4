"""Points that satisfy equations exactly: few variables move, and a clock can stop the search."""

from __future__ import annotations

import time
from fractions import Fraction

import numpy as np
import pytest

from goldstein.checker.rationals import sqrt_upper, squared_distance
from goldstein.errors import OutOfBudget
from goldstein.numerics import exact
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact import point_on


@pytest.mark.parametrize(("k", "d"), [(1, 1), (3, 3), (4, 30), (6, 10)])
def test_point_is_exactly_on_the_equations_and_moves_few_variables(k: int, d: int) -> None:
    rng = np.random.default_rng(10 * k + d)
    rows = rng.standard_normal((k, d))
    level = Fraction(1.1) - Fraction(0.3)
    v = np.linalg.lstsq(rows, np.full(k, float(level)), rcond=None)[0]
    point = point_on(rows, [level] * k, v, 1e-3)
    assert point is not None
    for row in rows.tolist():
        assert sum(Fraction(a) * y for a, y in zip(row, point, strict=True)) == level
    assert sqrt_upper(squared_distance(point, v)) <= 1e-12
    assert sum(y != Fraction(a) for y, a in zip(point, v.tolist(), strict=True)) <= k


def test_point_of_dependent_rows_moves_all_variables_or_there_is_none() -> None:
    rows = np.array([[1.0, 2.0, 0.5], [2.0, 4.0, 1.0]])
    v = np.array([0.3, 0.3, 0.2])
    assert point_on(rows, [Fraction(0)] * 2, v, 10.0) is not None
    assert point_on(rows, [Fraction(1)] * 2, v, 10.0) is None


def test_point_too_far_away_gives_way_to_the_nearest_one() -> None:
    """One variable of the best column alone would move by 1/2; all of them together by less."""
    rows, v = np.ones((1, 100)), np.zeros(100)
    point = point_on(rows, [Fraction(1, 2)], v, 0.06)
    assert point == [Fraction(1, 200)] * 100


def test_rational_rows_are_met_exactly_where_floats_only_approximate_them() -> None:
    third = Fraction(1, 3)
    exact_rows = [[third, Fraction(1)]]
    point = point_on(
        np.array([[1 / 3, 1.0]]), [Fraction(1)], np.array([0.9, 0.7]), 0.1, exact_rows=exact_rows
    )
    assert point is not None
    assert third * point[0] + point[1] == 1


@pytest.mark.parametrize("library", [True, False])
def test_a_long_projection_ends_at_the_deadline(
    library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not library:
        monkeypatch.setattr(exact, "flint", lambda: None)
    rng = np.random.default_rng(0)
    rows, base = rng.standard_normal((400, 400)), rng.standard_normal(400)
    begin = time.perf_counter()
    with pytest.raises(OutOfBudget, match="stopped after"):
        point_on(rows, [Fraction(1)] * 400, base, 1.0, pause=Budget(begin + 0.5).require)


@pytest.mark.parametrize("library", [True, False])
def test_square_systems_are_solved_exactly_with_and_without_the_library(
    library: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not library:
        monkeypatch.setattr(exact, "flint", lambda: None)
    # A leading zero: elimination has to exchange rows.
    rows = np.array(
        [[0.0, 1.0, 2.0, 1.0], [1.0, 0.1, 0.0, 3.0], [2.0, 0.2, 1.0, 0.0], [0, 0, 1, 7]]
    )
    levels = [Fraction(1, 3), Fraction(2), Fraction(-1, 7), Fraction(0)]
    point = exact.project_exact(rows, levels, np.zeros(4))
    assert point is not None
    for row, level in zip(rows.tolist(), levels, strict=True):
        assert sum(Fraction(a) * y for a, y in zip(row, point, strict=True)) == level
