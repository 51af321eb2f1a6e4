"""Bounds, limits and multipliers: what claims about constrained problems are made of."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from goldstein.checker.constraints import (
    best_normal,
    combined_upper,
    excess,
    fits,
    qualification_of,
    signs_fit,
    tolerances,
)

from goldstein.checker.constrained.box import Box
from goldstein.checker.rationals import exact_combination, squared_norm

INF = math.inf


def limits(lower: list[float], upper: list[float]) -> Any:
    return SimpleNamespace(
        lower=np.array(lower), upper=np.array(upper), size=len(lower), name=lambda i: f"c[{i}]"
    )


def claim(index: list[int], weights: list[float], multipliers: list[float]) -> Any:
    return SimpleNamespace(
        constraint_index=np.array(index, dtype=int),
        constraint_weights=np.array(weights),
        multipliers=np.array(multipliers),
    )


def test_points_in_a_box() -> None:
    box = Box(np.array([0.0, -INF]), np.array([1.0, 2.0]))
    assert box.contains(np.array([[0.0, -1e300], [1.0, 2.0]]))
    for out in ([-(2.0**-1074), 0.0], [math.nextafter(1.0, 2.0), 0.0], [0.5, 2.1], [math.nan, 0]):
        assert not box.contains(np.array([[0.5, 0.5], out]))
    assert box.clip(np.array([-1.0, 3.0])).tolist() == [0.0, 2.0]
    assert box.fold(np.array([-0.25, 2.5])).tolist() == [0.25, 1.5]
    assert box.fold(np.array([0.5, 1.0])).tolist() == [0.5, 1.0]
    assert box.fold(np.array([3.5, 1.0])).tolist() == [0.0, 1.0]  # beyond the other bound
    assert box.fixed.tolist() == [False, False]
    assert Box(np.zeros(2), np.array([0.0, 1.0])).fixed.tolist() == [True, False]
    low, high = box.normal_signs(np.array([0.0, 2.0]))
    assert (low.tolist(), high.tolist()) == ([True, False], [False, True])


def test_violations() -> None:
    some = limits([-1.0, -INF, 2.0, 0.0], [1.0, 5.0, INF, 0.0])
    assert excess(some, np.array([1.5, 5.0, 1.0, 0.25])).tolist() == [0.5, 0.0, -1.0, 0.25]
    assert excess(some, np.array([-3.0, 9.0, 2.0, -0.25])).tolist() == [-2.0, 4.0, 0.0, -0.25]
    assert tolerances(some) == pytest.approx([1e-9, 5e-9, 2e-9, 1e-9])
    assert tolerances(limits([-7.0], [3.0])) == pytest.approx([7e-9])
    assert tolerances(limits([-INF], [INF])) == pytest.approx([1e-9])


def test_sizes() -> None:
    two = limits([0.0, 0.0], [1.0, 1.0])
    assert fits(claim([0, 1], [1.0, 1.0], [1.0, 1.0]), two)[0]
    assert not fits(claim([0], [1.0], [1.0]), two)[0]
    assert not fits(claim([0, 2], [1.0, 1.0], [1.0, 1.0]), two)[0]
    assert not fits(claim([0, -1], [1.0, 1.0], [1.0, 1.0]), two)[0]


def test_signs() -> None:
    one = limits([0.0], [1.0])
    assert signs_fit(claim([0, 0], [1.0, 2.0], [3.0]), one)[0]
    assert signs_fit(claim([0, 0], [-1.0, -2.0], [-3.0]), one)[0]
    assert signs_fit(claim([0, 0], [0.0, 2.0], [2.0]), one)[0]
    assert signs_fit(claim([], [], [0.0]), one)[0]
    assert not signs_fit(claim([], [], [2.0**-1074]), one)[0]
    assert not signs_fit(claim([0, 0], [3.0, -1.0], [2.0]), one)[0]
    assert not signs_fit(claim([0, 0], [0.5, -0.25], [0.25]), one)[0]
    assert not signs_fit(claim([0, 0], [1.0, 2.0], [-3.0]), one)[0]
    assert not signs_fit(claim([0], [1.0], [math.nan]), one)[0]
    assert not signs_fit(claim([0], [1.0], [1.0]), limits([0.0], [INF]))[0]
    assert not signs_fit(claim([0], [-1.0], [-1.0]), limits([-INF], [0.0]))[0]
    assert signs_fit(claim([0], [1.0], [1.0]), limits([-INF], [0.0]))[0]
    assert signs_fit(claim([0], [-1.0], [-1.0]), limits([0.0], [INF]))[0]
    # The second component is looked at as well.
    two = limits([0.0, 0.0], [1.0, 1.0])
    assert not signs_fit(claim([0, 1], [1.0, 1.0], [1.0, 2.0]), two)[0]
    assert signs_fit(claim([0, 1], [1.0, 1.0], [1.0, 1.0]), two)[0]


def test_the_length_in_the_claim_is_bounded_from_above() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        k, r, d = rng.integers(1, 4), rng.integers(0, 4), rng.integers(1, 4)
        weights = rng.random(k)
        rows = rng.standard_normal((k + r, d)) * 10.0 ** rng.integers(-3, 4)
        signed = rng.standard_normal(r)
        normal = rng.standard_normal(d) * rng.integers(0, 2, d)
        factors = [*weights.tolist(), *signed.tolist(), 1.0]
        truth = squared_norm(exact_combination(factors, [*rows.tolist(), normal.tolist()]))
        bound = combined_upper(weights, rows[:k], signed, rows[k:], normal)
        assert truth <= Fraction(bound) ** 2
        assert Fraction(bound) ** 2 <= truth * (1 + Fraction(1, 10**9)) + Fraction(1, 10**20)
    nothing = combined_upper(np.ones(1), np.ones((1, 1)), -np.ones(1), np.ones((1, 1)), np.zeros(1))
    assert nothing == 0.0


def test_the_best_normal() -> None:
    total = np.array([2.0, -3.0, 2.0, -3.0, 5.0, 7.0, -7.0])
    low = np.array([True, True, False, False, False, True, True])
    high = np.array([False, False, True, True, False, True, True])
    assert best_normal(total, low, high).tolist() == [-2.0, 0.0, 0.0, 3.0, 0.0, -7.0, 7.0]


def everywhere(size: int) -> Box:
    return Box(np.full(size, -1.0), np.full(size, 1.0))


def middle(hull: Any, cone: Any) -> Any:
    return np.full(len(hull), 1.0 / len(hull)), np.zeros(len(cone))


def test_qualification_is_a_lower_bound_whatever_is_proposed() -> None:
    index, rows = np.array([0, 1]), np.array([[3.0, 0.0], [0.0, 4.0]])
    nothing, box = np.zeros(2), everywhere(2)
    assert qualification_of(index, rows, nothing, box, middle) == pytest.approx(math.sqrt(0.5))
    # The worst row counts, and a useless direction proves nothing.
    first = qualification_of(index, rows, nothing, box, lambda h, c: (np.eye(2)[0], np.zeros(0)))
    assert first == 0.0
    away = qualification_of(index, rows, nothing, box, lambda h, c: (np.ones(2) * -1, np.zeros(0)))
    assert away == 0.0
    assert qualification_of(np.zeros(0, int), np.zeros((0, 2)), nothing, box, middle) == 1.0
    none = qualification_of(index, rows, nothing, box, lambda h, c: (np.zeros(2), np.zeros(0)))
    assert none == 0.0


def test_gradients_are_measured_by_the_longest_of_their_constraint() -> None:
    rows = np.array([[4.0, 0.0], [2.0, 0.0]])
    box = everywhere(2)
    found = qualification_of(np.array([0, 0]), rows, np.zeros(2), box, middle)
    assert found == pytest.approx(0.5)
    assert qualification_of(np.array([0, 1]), rows, np.zeros(2), box, middle) == pytest.approx(1.0)
    for bad in (math.inf, math.nan):
        broken = np.array([[bad, 0.0], [1.0, 0.0]])
        assert qualification_of(np.array([0, 1]), broken, np.zeros(2), box, middle) == 0.0
    vanished = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert qualification_of(np.array([0, 1]), vanished, np.zeros(2), box, middle) == 0.0


def test_normals_in_use_are_directions_of_the_cone() -> None:
    """(1, 1) with the normal (-1, 0): what is left of it is (0, 1), 1 / sqrt 2 of its length."""
    rows, index = np.array([[1.0, 1.0]]), np.array([0])

    def cancel(hull: Any, cone: Any) -> Any:
        assert cone.tolist() == [[-1.0, 0.0]]
        return np.ones(1), np.array([hull[0, 0]])

    box = everywhere(2)
    found = qualification_of(index, rows, np.array([-5.0, 0.0]), box, cancel)
    assert found == pytest.approx(math.sqrt(0.5))

    def too_little(hull: Any, cone: Any) -> Any:
        return np.ones(1), np.zeros(len(cone))

    # (1, 1) itself goes against the normal: that entry is dropped.
    found = qualification_of(index, rows, np.array([-5.0, 0.0]), box, too_little)
    assert found == pytest.approx(math.sqrt(0.5))
    # With the normal (1, 0) it does not: the whole direction counts.
    found = qualification_of(index, rows, np.array([5.0, 0.0]), box, too_little)
    assert found == pytest.approx(1.0)
    # A small entry against a normal is dropped as well, of either sign.
    for sign in (1.0, -1.0):
        against = np.array([[-0.5 * sign, 1.0]])
        found = qualification_of(index, against, np.array([5.0 * sign, 0.0]), box, too_little)
        assert found == pytest.approx(1.0 / math.hypot(0.5, 1.0))
    # A coordinate that cannot move has no normal that matters.
    fixed = Box(np.array([0.0, -1.0]), np.array([0.0, 1.0]))
    seen: list[Any] = []

    def note(hull: Any, cone: Any) -> Any:
        seen.append(cone)
        return np.ones(1), np.zeros(len(cone))

    assert qualification_of(index, rows, np.array([-5.0, 0.0]), fixed, note) == pytest.approx(1.0)
    assert seen[0].shape == (0, 2)
