"""The simplex of a noisy search: it closes in, stays inside, keeps the best, and ends."""

from __future__ import annotations

import numpy as np
import pytest

from goldstein.errors import OutOfCalls
from goldstein.solvers.evolution import MOST, MOST_OF_MODELS, close_in, follow_models


def free(points: np.ndarray) -> np.ndarray:
    return points


def never() -> bool:
    return False


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_it_closes_in_on_a_kink_until_it_sees_noise_only(dim: int) -> None:
    rng = np.random.default_rng(0)
    asked = []

    def noisy(points: np.ndarray) -> np.ndarray:
        asked.append(points)
        return np.abs(points - 1.0).sum(axis=1) + 1e-5 * rng.standard_normal(len(points))

    start = np.full(dim, 0.97)
    x = close_in(noisy, free, start, 0.02, 1e-5, 0, never)
    assert np.abs(x - 1.0).sum() < 0.1 * np.abs(start - 1.0).sum()
    assert sum(map(len, asked)) <= MOST * (dim + 1) + 2


def test_out_of_calls_or_time_it_returns_the_best_it_has_seen() -> None:
    seen: list[tuple[float, np.ndarray]] = []

    def few(points: np.ndarray) -> np.ndarray:
        if len(seen) == 12:
            raise OutOfCalls("value")
        values = np.abs(points).sum(axis=1)
        seen.append((float(values[0]), points[0]))
        return values

    x = close_in(few, free, np.ones(3), 0.2, 1e-9, 0, never)
    assert len(seen) == 12
    assert np.array_equal(x, min(seen, key=lambda pair: pair[0])[1])
    start = np.ones(3)
    assert np.array_equal(close_in(few, free, start, 0.2, 1e-9, 0, lambda: True), start)


def test_it_stays_inside_and_values_may_be_no_numbers() -> None:
    def inside(points: np.ndarray) -> np.ndarray:
        return np.clip(points, 0.0, 1.0)

    def holes(points: np.ndarray) -> np.ndarray:
        assert ((points >= 0.0) & (points <= 1.0)).all()
        values = points.sum(axis=1)
        return np.where(points[:, 0] > 0.55, np.nan, values)

    x = close_in(holes, inside, np.full(2, 0.5), 0.1, 1e-9, 0, never)
    assert x.sum() < 0.1


def test_a_seed_gives_one_run() -> None:
    def valley(points: np.ndarray) -> np.ndarray:
        return np.abs(points[:, 1] - points[:, 0] ** 2) + (1 - points[:, 0]) ** 2

    runs = [close_in(valley, free, np.zeros(2), 0.1, 1e-9, seed, never) for seed in (3, 3, 4)]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


@pytest.mark.parametrize("most", [1, 5, 60, 10**6])
def test_models_keep_to_their_values_and_begin_again_in_noise(most: int) -> None:
    rng, asked = np.random.default_rng(0), []

    def noisy(x: np.ndarray) -> float:
        asked.append(x.copy())
        return float((x - 3.0) @ (x - 3.0)) + 0.01 * rng.standard_normal()

    x, _ = follow_models(noisy, np.zeros(2), 0.01, most, never)
    assert len(asked) <= min(most, MOST_OF_MODELS * 3)
    assert any(np.array_equal(x, y) for y in asked)
    if most >= 60:
        assert np.abs(x - 3.0).max() < 0.3
        assert len(asked) == min(most, MOST_OF_MODELS * 3)


def test_models_end_in_time() -> None:
    asked: list[float] = []

    def value(x: np.ndarray) -> float:
        asked.append(float(x @ x))
        return asked[-1]

    x, fun = follow_models(value, np.ones(2), 0.0, 100, lambda: len(asked) >= 10)
    assert len(asked) == 10
    assert float(x @ x) == fun == min(asked)
    x, fun = follow_models(value, np.ones(2), 0.0, 100, lambda: True)
    assert np.array_equal(x, np.ones(2))
    assert fun == np.inf
