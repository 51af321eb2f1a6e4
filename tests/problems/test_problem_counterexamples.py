"""Goldstein stationarity holds and near stationarity fails, at the points the theory names."""

from __future__ import annotations

import math

import numpy as np
import pytest

from goldstein import problems
from goldstein.errors import InputError

DELTAS = [0.01, 0.5, 3.0]


def ball_grid(centre: np.ndarray, radius: float, n: int = 81) -> np.ndarray:
    """A grid of the closed disc that contains its centre, axes and a fine boundary."""
    t = np.linspace(-radius, radius, n)
    square = np.stack(np.meshgrid(t, t), axis=-1).reshape(-1, 2)
    angles = np.linspace(0.0, 2.0 * np.pi, 2000)
    circle = radius * np.column_stack([np.cos(angles), np.sin(angles)])
    inside = square[np.hypot(square[:, 0], square[:, 1]) <= radius * (1.0 + 1e-12)]
    return centre + np.concatenate([inside, circle])


def segment_distance(a: np.ndarray, b: np.ndarray) -> float:
    """Distance of the origin from the segment [a, b]."""
    ab = b - a
    length = float(ab @ ab)
    t = 0.0 if length == 0.0 else min(1.0, max(0.0, float(-a @ ab) / length))
    return float(np.linalg.norm(a + t * ab))


def hull_distance(points: list[np.ndarray]) -> float:
    """Distance of the origin from the hull of at most three points of the plane."""
    if len(points) == 3:
        matrix = np.vstack([np.array(points).T, np.ones(3)])
        weights = np.linalg.solve(matrix, [0.0, 0.0, 1.0])
        if weights.min() >= 0.0:
            return 0.0
    return min(segment_distance(a, b) for a in points for b in points)


@pytest.mark.parametrize("delta", DELTAS)
def test_polyhedron_is_goldstein_stationary_at_its_start(delta: float) -> None:
    problem = problems.get("convex_polyhedron", delta=delta)
    # The kink planes 2|x| = y are 2 delta/sqrt(5) < delta away: both steep pieces are in the ball.
    foot = np.array([0.8 * delta, 1.6 * delta])
    shift = 0.01 * delta
    right, left = foot + [shift, 0.0], foot * [-1.0, 1.0] - [shift, 0.0]
    for y in (right, left):
        assert np.linalg.norm(y - problem.x0) <= delta
    combination = 0.5 * problem.jac(right) + 0.5 * problem.jac(left)
    assert np.linalg.norm(combination) == 0.0


@pytest.mark.parametrize("delta", DELTAS)
def test_polyhedron_has_no_nearby_stationary_point(delta: float) -> None:
    problem = problems.get("convex_polyhedron", delta=delta)
    slopes = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
    foot = 0.4 * np.array([2.0 * delta, 4.0 * delta])
    points = np.concatenate([ball_grid(problem.x0, delta), [foot, foot * [-1.0, 1.0]]])
    distances = []
    for y in points:
        values = slopes @ y
        assert problem.fun(y) == pytest.approx(values.max(), abs=1e-12)
        # A generous tolerance only enlarges the subdifferential, so the bound stays honest.
        active = [g for g, v in zip(slopes, values, strict=True) if v >= values.max() - 1e-9]
        distances.append(hull_distance(active))
    assert min(distances) >= 2.0 / math.sqrt(5.0) - 1e-12
    assert min(distances) == pytest.approx(2.0 / math.sqrt(5.0))


@pytest.mark.parametrize("delta", DELTAS)
def test_kornowski_shamir_is_goldstein_stationary_at_its_start(delta: float) -> None:
    problem = problems.get("kornowski_shamir", delta=delta)
    up, down = problem.jac([0.0, delta]), problem.jac([0.0, -delta])
    assert np.linalg.norm(up) == pytest.approx(1.0)
    assert np.linalg.norm(0.5 * up + 0.5 * down) < 1e-14


@pytest.mark.parametrize("delta", DELTAS)
def test_kornowski_shamir_has_no_nearby_stationary_point(delta: float) -> None:
    problem = problems.get("kornowski_shamir", delta=delta)
    lengths = [np.linalg.norm(problem.jac(y)) for y in ball_grid(problem.x0, delta, n=101)]
    assert min(lengths) >= 1.0 - 1e-12


@pytest.mark.parametrize("delta", [0.0, -1.0, math.nan, math.inf])
@pytest.mark.parametrize("name", ["convex_polyhedron", "kornowski_shamir"])
def test_a_useless_delta_is_refused(name: str, delta: float) -> None:
    with pytest.raises(InputError, match="delta"):
        problems.get(name, delta=delta)
