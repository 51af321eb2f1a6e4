"""Gradients at perturbed points: how far, how often, and what is concluded."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import pytest

from goldstein.certificates import GoldsteinCertificate
from goldstein.checker import sampled
from goldstein.checker.blackbox.beside import rebound
from goldstein.checker.blackbox.perturbed import (
    ROUNDS,
    TWIN,
    Neighbourhood,
    has_room,
    radius,
    resample,
)
from goldstein.checker.constrained.limits import Box, as_box
from goldstein.checker.function import Asked
from goldstein.checker.rationals import squared_distance
from goldstein.checker.rounding import gamma, mean_length, rounding_slack
from goldstein.errors import KinkError

X = np.zeros(1)


def even(rows: Any, cone: Any = ()) -> Any:
    return np.full(len(rows), 1.0 / len(rows)), np.zeros(len(cone))


def around(x: Any, delta: float, box: Box | None = None, resolution: float = 0.0) -> Neighbourhood:
    return Neighbourhood(x, delta, box or as_box(None, x.size), resolution)


def test_a_perturbation_is_a_speck_of_the_ball_and_of_the_entry() -> None:
    """A small entry moves as far as one of size 1, if the ball has room for it."""
    speck = 2.0**-36
    widths = radius(np.array([0.0, 1.0, -8.0, 2.0**-30]), 1.0)
    assert widths.tolist() == [speck + 2.0**-44] * 2 + [speck + 2.0**-41, speck + 2.0**-44]
    # A ball of radius 2^-20 has room for 2^-50 only; an entry of size 1 moves by its last digits.
    assert radius(np.array([0.0, 1.0]), 2.0**-20).tolist() == [
        2.0**-56 + 2.0**-50,
        2.0**-56 + 2.0**-44,
    ]
    assert radius(np.array([0.0]), 2.0**20).tolist() == [2.0**-16 + 2.0**-44]
    assert radius(np.zeros(1), 2.0**-200)[0] >= 2.0**-144  # never 0


def test_perturbations_are_no_shorter_than_what_f_resolves() -> None:
    for size in (1, 4):
        wide = radius(np.zeros(size), 1e-3, 1e-6)
        assert np.linalg.norm(wide) >= 1e-6
    assert (radius(np.ones(3), 1e-3, 1e-20) == radius(np.ones(3), 1e-3)).all()


def test_room_for_floats() -> None:
    free = as_box(None, 2)
    assert has_room(np.array([1.0, -4.0]), 2.0**-42 * (1 + 2.0**-50), free)
    assert not has_room(np.array([1.0, -4.0]), 2.0**-42, free)
    assert not has_room(np.zeros(2), 0.0, free)
    assert has_room(np.zeros(2), 2.0**-399, free)
    assert not has_room(np.zeros(2), 2.0**-400, free)  # squares of short steps underflow
    assert not has_room(np.zeros(2), 2.0**-1000, free)
    # Between bounds that are too close there is none; a variable that is fixed needs none.
    x = np.array([1.0, -4.0])
    assert not has_room(x, 1.0, Box(x, np.array([math.nextafter(1.0, 2.0), 0.0])))
    assert has_room(x, 1.0, Box(x, np.array([1.0, 0.0])))


@pytest.mark.parametrize("delta", [1e-6, 1.0, 1e6])
def test_displaced_points_stay_in_the_ball_and_move(delta: float) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal(5)
    place = around(x, delta)
    for _ in range(200):
        way = rng.standard_normal(5)
        edge = x + delta * (1 - 1e-15) * way / np.linalg.norm(way)
        for y in (x, edge):
            for z in (place.perturbed(rng, y), place.twin(rng, y)):
                assert squared_distance(z, x) <= Fraction(delta) ** 2
                assert (z != y).any()
                assert np.linalg.norm(z - y) <= 20 * np.linalg.norm(radius(y, delta)) + 1e-8 * delta


def test_displacements_are_random_and_of_the_perturbation_radius() -> None:
    y = np.full(2000, 3.0)
    place, width = around(y, 1e3), radius(y, 1e3)
    steps = (place.perturbed(np.random.default_rng(1), y) - y) / width
    assert abs(steps.mean()) < 0.15
    assert 0.9 < steps.std() < 1.1
    more = (place.perturbed(np.random.default_rng(1), y, 4.0) - y) / width
    assert 3.6 < more.std() < 4.4


def test_a_twin_moves_every_entry_a_little() -> None:
    z = np.full(2000, 3.0)
    steps = (around(z, 1e3).twin(np.random.default_rng(1), z) - z) / radius(z, 1e3) / TWIN
    assert np.abs(steps).min() > 0.99
    assert np.abs(steps).max() < 2.01
    assert abs(steps.mean()) < 0.15
    assert np.abs(steps).std() > 0.2


def test_a_point_that_left_the_ball_is_pulled_back_hardly_further_than_its_edge() -> None:
    x = np.array([1.0, 1.0])
    inside = around(x, 0.6).inside(np.array([1.0, 1.5]))
    assert inside.tolist() == [1.0, 1.5]
    pulled = around(x, 0.5).inside(np.array([1.0, 3.0]))
    assert pulled.tolist() == [1.0, pytest.approx(1.5, rel=1e-8)]
    assert squared_distance(pulled, x) <= Fraction(0.5) ** 2
    # Where floats are too coarse for that, half way is taken.
    coarse = np.array([2.0**52])
    half = around(coarse, 2.0).inside(coarse + 8.0)
    assert (half - coarse).tolist() == [1.0]
    # A bound that was crossed is a mirror.
    box = Box(np.zeros(2), np.full(2, 1.25))
    assert around(x, 1.0, box).inside(np.array([1.5, 1.0])).tolist() == [1.0, 1.0]


def test_lengths_and_slacks() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 2.0], [1.7e308, 1.7e308]])
    weights = np.array([0.5, 0.5, 0.0])
    assert mean_length(weights, rows) == pytest.approx(3.5, rel=1e-14)
    assert rounding_slack(3, 3.5) == pytest.approx(64 * gamma(11) * 3.5, rel=1e-9, abs=0)


class Slopes:
    has_value = False

    def __init__(self, gradient: Any) -> None:
        self.gradient = gradient


def rows_of(gradient: Any, points: Any, weights: Any, optimise: Any) -> sampled.Rows:
    """What a claim about a black box of one variable is checked with."""
    points = np.asarray(points, dtype=float)
    claim = GoldsteinCertificate(X, 0.5, 0.0, points, np.zeros_like(points), weights)
    box = as_box(None, 1)
    return sampled.Rows(claim, sampled.Problem(Asked(Slopes(gradient)), box, optimise, [1]))


def test_proposed_weights_are_not_believed() -> None:
    rows, owners = np.array([[1.0], [-1.0]]), np.full(2, sampled.OBJECTIVE)

    def bound(proposed: list[float], known: list[float] | None = None) -> tuple[float, list[float]]:
        some = rows_of(
            np.sign, [[0.25]], [1.0], lambda hull, cone: (np.array(proposed), cone[:, 0])
        )
        value, used = rebound(some, rows, owners, None if known is None else np.array(known))
        return value, used.tolist()

    assert bound([3.0, -1.0]) == (pytest.approx(1.0), [1.0, 0.0])
    assert bound([1.0, 0.0], [0.5, 0.5]) == (0.0, [0.5, 0.5])
    assert bound([0.5, 0.5], [1.0, 0.0]) == (0.0, [0.5, 0.5])
    for useless in (-1.0, 0.0, math.nan, math.inf):
        assert bound([useless, useless])[0] == math.inf


def asked(gradient: Any, points: Any = ((0.25,),), goal: float = 0.0, **more: Any) -> Any:
    """The bound that is found in one dimension, and where it was asked for."""
    places: list[float] = []

    def record(z: Any) -> Any:
        places.append(float(z[0]))
        return gradient(z)

    weights = more.pop("weights", np.full(len(points), 1.0 / len(points)))
    rows = rows_of(record, points, weights, more.pop("optimise", even))
    found = resample(
        rows.ask, around(X, 0.5), rows.points, rows.owners, rows.weights, partial(rebound, rows),
        goal, 0,
        **more,
    )  # fmt: skip
    return found, places


def test_a_short_gradient_is_found_at_once_and_has_a_twin() -> None:
    found, places = asked(lambda z: np.zeros(1))
    assert found == 0.0
    assert len(places) == 2
    first, twin = places
    assert first != 0.25
    assert 0 < abs(twin - first) < abs(first - 0.25) + 2.0**-30


def test_a_long_gradient_is_given_up_after_some_draws() -> None:
    found, places = asked(lambda z: np.ones(1))
    assert found == pytest.approx(1.0)
    assert len(set(places)) == len(places) == ROUNDS


def test_many_points_are_drawn_less_often() -> None:
    assert len(asked(lambda z: np.ones(1), [[0.25]] * 900)[1]) == 1800
    assert len(asked(lambda z: np.ones(1), [[0.25]] * 300)[1]) == 1800


def test_who_has_little_memory_asks_for_fewer_draws() -> None:
    assert len(asked(lambda z: np.ones(1), rounds=3)[1]) == 3
    assert len(asked(lambda z: np.ones(1), rounds=1)[1]) == 2


def test_a_twin_is_beside_the_place_of_its_gradient() -> None:
    found, places = asked(np.sign, [[0.25], [-0.25]])
    assert found == 0.0
    assert len(places) == 4
    for place, twin in zip(places[:2], places[2:]):
        assert 0 < abs(twin - place) < 2.0**-36


def test_the_goal_itself_is_reached() -> None:
    goal, _ = asked(lambda z: np.ones(1), goal=math.inf)
    assert len(asked(lambda z: np.ones(1), goal=goal)[1]) == 2
    assert len(asked(lambda z: np.ones(1), goal=math.nextafter(goal, 0.0))[1]) == ROUNDS


def test_a_twin_finds_out_a_point_on_a_kink() -> None:
    """The first place that is asked answers 0, and no other: no bound comes from that."""
    seen: list[float] = []

    def gradient(z: Any) -> Any:
        seen.append(float(z[0]))
        return np.array([0.0 if z[0] == seen[0] else 1.0])

    assert asked(gradient)[0] > 0.1


def test_kinks_are_passed_over() -> None:
    calls: list[float] = []

    def gradient(z: Any) -> Any:
        calls.append(float(z[0]))
        if len(calls) in (1, 3):  # the first draw, and the twin of the second
            raise KinkError("a kink")
        return np.zeros(1)

    found, places = asked(gradient)
    assert found == 0.0
    assert len(places) == 5

    def never(z: Any) -> Any:
        raise KinkError("a kink")

    assert asked(never)[0] == math.inf


def test_stored_weights_belong_to_the_points_of_one_draw() -> None:
    """1 at one point and -1 at the other; the proposal is of no use."""

    def useless(rows: Any, cone: Any) -> Any:
        return np.eye(len(rows))[0], np.zeros(len(cone))

    points = [[0.25], [-0.25]]
    assert asked(np.sign, points, optimise=useless)[0] == 0.0
    # Where one of them is a kink the weights have no meaning.
    left: list[bool] = []

    def gradient(z: Any) -> Any:
        if z[0] > 0 and len(left) < 2:
            left.append(True)
            raise KinkError("a kink")
        return np.sign(z)

    found, places = asked(gradient, points, optimise=useless)
    assert found == 0.0
    assert len(places) == 8


def test_gradients_of_several_draws_are_combined() -> None:
    """1 and -1 by turns at one point: two draws together cancel, and so do their twins."""
    turn: list[float] = []

    def gradient(z: Any) -> Any:
        turn.append(1.0 if len(turn) % 2 else -1.0)
        return np.array(turn[-1:])

    found, places = asked(gradient)
    assert found == 0.0
    assert len(places) == 4


def test_equal_gradients_beside_a_point_count_once() -> None:
    sizes: list[int] = []

    def count(rows: Any, cone: Any) -> Any:
        sizes.append(len(rows))
        return even(rows, cone)

    points = [[0.25], [0.125]]
    asked(lambda z: np.array([1.0]), points, optimise=count)
    assert set(sizes) == {2}
    # Different ones all count: 1e-9 of their length is no difference.
    sizes.clear()
    values = iter([1.0, 1.0, 1.0 + 0.9e-9, 1.0 + 1.1e-9, *[1.0] * 99])
    asked(lambda z: np.array([next(values)]), points, optimise=count)
    assert max(sizes) == 3


@pytest.mark.parametrize("noise", [1e-7, 2e-6])
def test_who_leaves_a_point_behind_leaves_its_gradient_behind(noise: float) -> None:
    """f rises everywhere; its gradient has the wrong sign within 1e-3 of the kink at 0.

    One step off the edge of that sliver values follow another gradient. But points that are
    displaced by as much are in it still, and noise hides from short steps what is wrong there.
    """

    def slope(x: Any) -> Any:
        return (1.5 + 0.75 * np.sign(x)) * np.where(np.abs(x) < 1e-3, -1.0, 1.0)

    for seed in range(20):
        rng = np.random.default_rng(seed)

        def value(x: Any, rng: Any = rng) -> float:
            return float(1.5 * x[0] + 0.75 * abs(x[0]) + noise * rng.standard_normal())

        points = np.array([[1e-3 * (1.0 - 10.0 ** rng.uniform(-4, -1))], [3e-3]])
        claim = GoldsteinCertificate(
            np.zeros(1), 1e-2, 1e-12, points, slope(points), np.array([0.5, 0.5])
        )
        assert not any(claim.verify(value, slope, seed=k).ok for k in range(5))
