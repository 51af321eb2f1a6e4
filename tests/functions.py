"""Functions that many tests are about, with gradients and what is known of them.

`norm1` has the gradient `np.sign`, which is 0 on its kinks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def norm1(x: np.ndarray) -> float:
    """Return the sum of the |x_i|, which is least at 0."""
    return float(np.abs(x).sum())


#: Where the search for the end of the valley begins.
VALLEY_START = [-1.2, 1.0]


def valley(x: np.ndarray) -> float:
    """A curved valley with a kink along its bottom; 0 at (1, 1) is the least value."""
    return float(abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2)


def valley_gradient(x: np.ndarray) -> np.ndarray:
    s = np.sign(x[1] - x[0] ** 2)
    return np.array([-2 * s * x[0] - 2 * (1 - x[0]), s])


def largest_of(
    rows: np.ndarray,
) -> tuple[Callable[[np.ndarray], float], Callable[[np.ndarray], np.ndarray]]:
    """Return the largest of some linear functions, and its gradient.

    At 0 the subdifferential is the hull of the rows.
    """
    return lambda x: float((rows @ x).max()), lambda x: rows[(rows @ x).argmax()]


def trap(x: np.ndarray) -> float:
    """Return the sum of relu(x_i) - relu(-x_i) = x_i."""
    return float((np.maximum(x, 0.0) - np.maximum(-x, 0.0)).sum())


def trap_gradient(x: np.ndarray) -> np.ndarray:
    """What torch returns: relu' (0) = 0 on both branches. The true gradient is 1 everywhere."""
    return (x > 0).astype(float) + (-x > 0).astype(float)


def gated_vertices(z: Any) -> list[list[float]]:
    """Return the vertices of the subdifferential of (a, b) -> a max(b, 0)."""
    a, b = z
    if b > 0:
        return [[b, a]]
    return [[0.0, 0.0], [0.0, a]] if b == 0 else [[0.0, 0.0]]
