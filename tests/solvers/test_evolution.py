"""The evolution strategy: it learns scales, stays inside, ends at noise, and repeats."""

from __future__ import annotations

import numpy as np
import pytest

from goldstein.errors import OutOfCalls
from goldstein.solvers.evolution import Population, evolve


def free(points: np.ndarray) -> np.ndarray:
    return points


def never() -> bool:
    return False


def test_it_learns_scales_that_differ_by_a_thousand() -> None:
    scales = np.array([1.0, 1e3, 1e3, 1.0, 30.0])

    def ellipse(points: np.ndarray) -> np.ndarray:
        return ((scales * points) ** 2).sum(axis=1)

    x = evolve(ellipse, free, np.ones(5), 0.5, 1e-12, 0, never)
    assert np.abs(x).max() < 1e-4


@pytest.mark.parametrize("dim", [1, 2, 10])
def test_noise_ends_it_near_the_minimum(dim: int) -> None:
    rng = np.random.default_rng(0)
    asked = []

    def noisy(points: np.ndarray) -> np.ndarray:
        asked.append(points)
        return np.abs(points - 1.0).sum(axis=1) + 1e-4 * rng.standard_normal(len(points))

    x = evolve(noisy, free, np.zeros(dim), 0.5, 1e-4, 0, never)
    assert np.abs(x - 1.0).sum() < 1e-2
    assert sum(map(len, asked)) < 2000 * (dim + 1)
    same = evolve(lambda p: np.abs(p - 1.0).sum(axis=1), free, np.zeros(dim), 0.5, 1e-4, 7, never)
    again = evolve(lambda p: np.abs(p - 1.0).sum(axis=1), free, np.zeros(dim), 0.5, 1e-4, 7, never)
    assert np.array_equal(same, again)


def test_it_stays_inside_and_stops_when_told() -> None:
    def inside(points: np.ndarray) -> np.ndarray:
        return np.clip(points, 0.0, 1.0)

    calls = [0]

    def slope(points: np.ndarray) -> np.ndarray:
        assert ((points >= 0.0) & (points <= 1.0)).all()
        calls[0] += len(points)
        if calls[0] > 500:
            raise OutOfCalls("values")
        return points.sum(axis=1)

    x = evolve(slope, inside, np.full(3, 0.5), 0.2, 1e-9, 0, never)
    assert x.sum() < 0.1
    assert np.array_equal(evolve(slope, inside, np.full(3, 0.5), 0.2, 0.0, 0, lambda: True),
                          np.full(3, 0.5))  # fmt: skip


def test_values_that_are_no_numbers_are_the_worst() -> None:
    population = Population(np.zeros(2), 1.0)
    points = population.draw(np.random.default_rng(0))
    values = np.where(points[:, 0] > 0, np.inf, points[:, 1])
    population.learn(points, values)
    assert np.isfinite(population.mean).all()
    assert population.mean[0] < 0.5


def test_larger_populations_come_closer_where_noise_hides_the_rest() -> None:
    def left(doublings: int, seed: int) -> float:
        rng = np.random.default_rng(seed)

        def noisy(points: np.ndarray) -> np.ndarray:
            return (points**2).sum(axis=1) + 1e-2 * rng.standard_normal(len(points))

        x = evolve(noisy, free, np.ones(5), 0.3, 1e-2, seed, never, doublings)
        return float(x @ x)

    alone, grown = ([left(k, seed) for seed in range(10)] for k in (0, 4))
    assert np.mean(grown) < 0.3 * np.mean(alone)


def test_a_larger_population_keeps_what_was_learned() -> None:
    population = Population(np.zeros(3), 1.0)
    rng = np.random.default_rng(0)
    for _ in range(60):
        points = population.draw(rng)
        population.learn(points, ((points * [1.0, 30.0, 1.0]) ** 2).sum(axis=1))
    grown = population.larger()
    assert grown.size == 2 * population.size
    assert np.array_equal(grown.mean, population.mean)
    drawn = np.vstack([grown.draw(rng) for _ in range(100)]) - grown.mean
    assert drawn[:, 1].std() < 0.2 * drawn[:, 0].std()
