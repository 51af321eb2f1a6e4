"""Gradients a hair beside stored points: how far, how often, and what is concluded."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from goldstein.checker.beside import (
    ROUNDS,
    beside,
    best_bound,
    differ,
    hair,
    has_room,
    mean_length,
    rounding_slack,
    survey,
)

from goldstein.checker import beside as module
from goldstein.checker.rationals import squared_distance
from goldstein.checker.rounding import gamma
from goldstein.errors import KinkError

X = np.zeros(1)


def even(rows: Any) -> Any:
    return np.full(len(rows), 1.0 / len(rows))


def test_a_hair_is_a_speck_of_the_ball_and_of_the_entry() -> None:
    """A small entry moves as far as one of size 1, if the ball has room for it."""
    speck = 2.0**-36
    widths = hair(np.array([0.0, 1.0, -8.0, 2.0**-30]), 1.0)
    assert widths.tolist() == [speck + 2.0**-44] * 2 + [speck + 2.0**-41, speck + 2.0**-44]
    # A ball of radius 2^-20 has room for 2^-50 only; an entry of size 1 moves by its last digits.
    assert hair(np.array([0.0, 1.0]), 2.0**-20).tolist() == [
        2.0**-56 + 2.0**-50,
        2.0**-56 + 2.0**-44,
    ]
    assert hair(np.array([0.0]), 2.0**20).tolist() == [2.0**-16 + 2.0**-44]
    assert hair(np.zeros(1), 2.0**-200)[0] >= 2.0**-144  # never 0


def test_room_for_floats() -> None:
    assert has_room(np.array([1.0, -4.0]), 2.0**-42 * (1 + 2.0**-50))
    assert not has_room(np.array([1.0, -4.0]), 2.0**-42)
    assert not has_room(np.zeros(2), 0.0)
    assert has_room(np.zeros(2), 2.0**-1074)


@pytest.mark.parametrize("delta", [1e-6, 1.0, 1e6])
def test_displaced_points_stay_in_the_ball_and_move(delta: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(5)
    for _ in range(200):
        way = rng.standard_normal(5)
        edge = x + delta * (1 - 1e-15) * way / np.linalg.norm(way)
        for y in (x, edge):
            for z in (beside(rng, y, x, delta), module._twin(rng, y, x, delta)):
                assert squared_distance(z, x) <= Fraction(delta) ** 2
                assert (z != y).any()
                assert np.linalg.norm(z - y) <= 20 * np.linalg.norm(hair(y, delta)) + 1e-8 * delta


def test_displacements_are_random_and_of_the_width_of_a_hair() -> None:
    y, x = np.full(2000, 3.0), np.full(2000, 3.0)
    steps = (beside(np.random.default_rng(1), y, x, 1e3) - y) / hair(y, 1e3)
    assert abs(steps.mean()) < 0.15
    assert 0.9 < steps.std() < 1.1
    more = (beside(np.random.default_rng(1), y, x, 1e3, 4.0) - y) / hair(y, 1e3)
    assert 3.6 < more.std() < 4.4


def test_a_twin_moves_every_entry_a_little() -> None:
    z = np.full(2000, 3.0)
    steps = (module._twin(np.random.default_rng(1), z, z, 1e3) - z) / hair(z, 1e3) * 2.0**6
    assert np.abs(steps).min() > 0.99
    assert np.abs(steps).max() < 2.01
    assert abs(steps.mean()) < 0.15
    assert np.abs(steps).std() > 0.2


def test_a_point_that_left_the_ball_is_pulled_back_hardly_further_than_its_edge() -> None:
    x = np.array([1.0, 1.0])
    inside = module._within(np.array([1.0, 1.5]), x, 0.6)
    assert inside.tolist() == [1.0, 1.5]
    pulled = module._within(np.array([1.0, 3.0]), x, 0.5)
    assert pulled.tolist() == [1.0, pytest.approx(1.5, rel=1e-8)]
    assert squared_distance(pulled, x) <= Fraction(0.5) ** 2
    # Where floats are too coarse for that, half way is taken.
    coarse = np.array([2.0**52])
    half = module._within(coarse + 8.0, coarse, 2.0)
    assert (half - coarse).tolist() == [1.0]


def test_lengths_and_slacks() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 2.0], [1.7e308, 1.7e308]])
    weights = np.array([0.5, 0.5, 0.0])
    assert mean_length(weights, rows) == pytest.approx(3.5, rel=1e-14)
    assert rounding_slack(3, 3.5) == pytest.approx(64 * gamma(11) * 3.5, rel=1e-9, abs=0)


def test_gradients_that_differ() -> None:
    weights, rows = np.array([1.0]), np.array([[1.0]])

    def moved(by: float, allowed: float) -> bool:
        return differ(weights, rows, rows + by, allowed)

    assert not moved(0.99e-9, 1e-9)
    assert moved(1.01e-9, 1e-9)
    assert not moved(0.0101, 0.0102)
    assert moved(0.0101, 0.01)
    assert moved(math.nan, 1.0)
    assert moved(1.0, math.inf)
    assert moved(0.0, math.inf)
    # Differences are weighted.
    two = np.array([[1.0], [1.0]])
    assert not differ(np.array([1.0, 1e-12]), two, two + np.array([[0.0], [1.0]]), 1e-9)
    assert differ(np.array([0.5, 0.5]), two, two + np.array([[0.0], [3e-9]]), 1e-9)


def test_proposed_weights_are_not_believed() -> None:
    rows = np.array([[1.0], [-1.0]])
    bound, used = best_bound(rows, lambda _: np.array([3.0, -1.0]))
    assert bound == pytest.approx(1.0)
    assert used.tolist() == [3.0, 0.0]
    bound, used = best_bound(rows, lambda _: np.array([1.0, 0.0]), np.array([0.5, 0.5]))
    assert (bound, used.tolist()) == (0.0, [0.5, 0.5])
    bound, used = best_bound(rows, even, np.array([1.0, 0.0]))
    assert (bound, used.tolist()) == (0.0, [0.5, 0.5])
    assert best_bound(rows, lambda _: np.array([-1.0, -1.0]))[0] == math.inf


def asked(gradient: Any, points: Any = ((0.25,),), goal: float = 0.0, **more: Any) -> Any:
    """What a survey of one dimension finds, and where it asked."""
    places: list[float] = []

    def record(z: Any) -> Any:
        places.append(float(z[0]))
        return gradient(z)

    points = np.array(points)
    weights = more.pop("weights", np.full(len(points), 1.0 / len(points)))
    optimise = more.pop("optimise", even)
    found = survey(record, X, 0.5, points, weights, goal, 0, optimise, **more)
    return found, places


def test_a_short_gradient_is_found_at_once_and_has_a_twin() -> None:
    found, places = asked(lambda z: np.zeros(1))
    assert (found.eps, found.draws, found.kinks) == (0.0, 1, 0)
    assert len(places) == 2
    first, twin = places
    assert first != 0.25
    assert 0 < abs(twin - first) < abs(first - 0.25) + 2.0**-30


def test_a_long_gradient_is_given_up_after_eight_draws() -> None:
    found, places = asked(lambda z: np.ones(1))
    assert found.draws == ROUNDS
    assert found.eps == pytest.approx(1.0)
    assert len(set(places)) == ROUNDS


def test_many_points_are_drawn_less_often() -> None:
    found, places = asked(lambda z: np.ones(1), [[0.25]] * 900)
    assert found.draws == 2
    assert len(places) == 1800
    assert asked(lambda z: np.ones(1), [[0.25]] * 300)[0].draws == 6


def test_who_has_little_memory_asks_for_fewer_draws() -> None:
    assert asked(lambda z: np.ones(1), rounds=3)[0].draws == 3
    assert asked(lambda z: np.ones(1), rounds=1)[0].draws == 2


def test_a_twin_is_beside_the_place_of_its_gradient() -> None:
    """Of two draws beside two points only the first answer of each point has weight."""
    points = [[0.25], [-0.25]]
    found, places = asked(
        lambda z: np.sign(z), points, goal=1e-12,
        optimise=lambda rows: np.eye(1, len(rows))[0] if len(rows) < 4 else np.ones(4) / 4,
        weights=np.array([1.0, 0.0]),
    )  # fmt: skip
    assert found.draws == 2
    assert len(places) == 8
    for place, twin in zip(places[:4], places[4:]):
        assert 0 < abs(twin - place) < 2.0**-36


def test_the_goal_itself_is_reached() -> None:
    one = survey(lambda z: np.ones(1), X, 0.5, np.array([[0.25]]), np.ones(1), math.inf, 0, even)
    goal = one.eps
    assert asked(lambda z: np.ones(1), goal=goal)[0].draws == 1
    assert asked(lambda z: np.ones(1), goal=math.nextafter(goal, 0.0))[0].draws == ROUNDS


def test_a_twin_finds_out_a_point_on_a_kink() -> None:
    """The first place that is asked answers 0, and no other: no bound comes from that."""
    seen: list[float] = []

    def gradient(z: Any) -> Any:
        seen.append(float(z[0]))
        return np.array([0.0 if z[0] == seen[0] else 1.0])

    found, _ = asked(gradient)
    assert found.eps > 0.1
    assert found.draws == ROUNDS


def test_kinks_are_counted_and_passed_over() -> None:
    calls: list[float] = []

    def gradient(z: Any) -> Any:
        calls.append(float(z[0]))
        if len(calls) in (1, 3):  # the first draw, and the twin of the second
            raise KinkError("a kink")
        return np.zeros(1)

    found, places = asked(gradient)
    assert (found.kinks, found.draws, found.eps) == (2, 3, 0.0)
    assert len(places) == 5

    def never(z: Any) -> Any:
        raise KinkError("a kink")

    found, _ = asked(never)
    assert (found.kinks, found.draws, found.eps) == (ROUNDS, ROUNDS, math.inf)


def test_stored_weights_belong_to_the_points_of_one_draw() -> None:
    """1 at one point and -1 at the other; the optimiser is of no use."""

    def useless(rows: Any) -> Any:
        return np.eye(len(rows))[0]

    points = [[0.25], [-0.25]]
    found, _ = asked(np.sign, points, optimise=useless)
    assert (found.eps, found.draws) == (0.0, 1)
    # Where one of them is a kink the weights have no meaning.
    left: list[bool] = []

    def gradient(z: Any) -> Any:
        if z[0] > 0 and len(left) < 2:
            left.append(True)
            raise KinkError("a kink")
        return np.sign(z)

    found, _ = asked(gradient, points, optimise=useless)
    assert (found.eps, found.draws, found.kinks) == (0.0, 3, 2)


def test_gradients_of_several_draws_are_combined() -> None:
    """1 and -1 by turns at one point: two draws together cancel, and so do their twins."""
    turn: list[float] = []

    def gradient(z: Any) -> Any:
        turn.append(1.0 if len(turn) % 2 else -1.0)
        return np.array(turn[-1:])

    found, places = asked(gradient)
    assert found.eps == 0.0
    assert found.draws == 2
    assert len(places) == 4


@pytest.mark.parametrize("crowded", [False, True])
def test_of_a_large_claim_equal_gradients_are_kept_once(
    crowded: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def count(rows: Any) -> Any:
        sizes.append(len(rows))
        return even(rows)

    if crowded:
        monkeypatch.setattr(module, "CROWDED", 1)
    points = [[0.25], [0.125]]
    asked(lambda z: np.array([1.0]), points, optimise=count)
    assert sizes == ([2] * ROUNDS if crowded else [2 * k for k in range(1, ROUNDS + 1)])
    # Different ones are all kept: 1e-9 of their length is no difference.
    sizes.clear()
    values = iter([1.0, 1.0, 1.0 + 0.9e-9, 1.0 + 1.1e-9, *[1.0] * 99])
    asked(lambda z: np.array([next(values)]), points, optimise=count)
    assert sizes[:2] == ([2, 3] if crowded else [2, 4])


def test_the_place_that_is_kept_is_the_last_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A twin belongs to the gradient that carries the weight."""
    monkeypatch.setattr(module, "CROWDED", 0)
    answers = iter([1.0, 1.0, -1.0, 1.0, -1.0])
    found, places = asked(lambda z: np.array([next(answers)]), optimise=even)
    assert found.eps == 0.0
    assert found.draws == 3
    assert abs(places[3] - places[1]) < 2.0**-6 * 3 * hair(np.array([0.25]), 0.5)[0]
    assert abs(places[4] - places[2]) < 2.0**-6 * 3 * hair(np.array([0.25]), 0.5)[0]
