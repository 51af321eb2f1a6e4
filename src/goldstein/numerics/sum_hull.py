"""The shortest vector of a hull plus a convex set that one can project on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull import min_norm_weights

#: Steps of the accelerated projected gradient method, and turns of the exact one that follow.
STEPS, TURNS = 300, 4


def shortest_sum(rows: Matrix, nearest: Callable[[Vector], Vector]) -> tuple[float, Vector, Vector]:
    """Return (length, weights, v): |weights @ rows + v| is small, weights convex, v in the set.

    Parameters
    ----------
    rows : ndarray, shape (k, d)
    nearest : callable
        The point of the set that is nearest to a wish.

    Examples
    --------
    >>> length, weights, v = shortest_sum(
    ...     np.array([[1.0, 3.0], [-1.0, 3.0]]), lambda wish: np.clip(wish, -3.0, 0.0) * [0.0, 1.0]
    ... )
    >>> bool(length < 1e-9), float(v[1])
    (True, -3.0)
    """
    k = len(rows)
    weights = np.full(k, 1.0 / k)
    best = _measured(rows, weights, nearest)
    if k == 1:
        return best
    step = 1.0 / max(float(np.linalg.norm(rows, 2)) ** 2, 1e-300)
    ahead, momentum = weights, 1.0
    for _ in range(STEPS):
        m = ahead @ rows
        slope = rows @ (m + nearest(-m))
        new = _on_simplex(ahead - step * slope)
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        if float((ahead - new) @ (new - weights)) > 0.0:
            faster, momentum = 1.0, 1.0  # it turns: begin again
        ahead = new + (momentum - 1.0) / faster * (new - weights)
        still = float(np.abs(new - weights).max())
        weights, momentum = new, faster
        if still < 1e-15:
            break
    best = min(best, _measured(rows, weights, nearest), key=lambda found: found[0])
    for _ in range(TURNS):
        weights = min_norm_weights(rows + best[2])
        found = _measured(rows, weights, nearest)
        if found[0] >= best[0]:
            break
        best = found
    return best


def _measured(
    rows: Matrix, weights: Vector, nearest: Callable[[Vector], Vector]
) -> tuple[float, Vector, Vector]:
    m = weights @ rows
    v = nearest(-m)
    return float(np.linalg.norm(m + v)), weights, v


def _on_simplex(w: Vector) -> Vector:
    """Return the nearest convex weights."""
    falling = np.sort(w)[::-1]
    levels = (np.cumsum(falling) - 1.0) / np.arange(1, w.size + 1)
    level = levels[np.flatnonzero(falling > levels)[-1]]
    found: Vector = np.maximum(w - level, 0.0)
    found /= found.sum()
    return found
