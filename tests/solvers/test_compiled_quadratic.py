"""The compiled quadratic programme against the one in NumPy, from cold and from warm starts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.reference_quadratic import minimise_on_simplex

from goldstein.numerics.hull import min_norm_weights
from goldstein.solvers.compiled import layout
from goldstein.solvers.compiled.machine import machine


class Programme:
    """A problem with room for 60 rows of length 50."""

    def __init__(self) -> None:
        words = np.zeros(1, dtype=np.int64)
        self.memory = layout.Memory(np.zeros(50), words, np.arange(4, dtype=np.uint64))
        self.record = self.memory.record.newton.model
        self.arrays = self.memory.model

    def solve(
        self, rows: Any, linear: Any, weights: Any, exact: bool = False, bend: float = 0.0
    ) -> np.ndarray:
        """Continue from the weights of rows that may have changed since."""
        count, width = rows.shape
        gram = rows @ rows.T
        self.arrays["rows"][:count, :width] = rows
        self.arrays["gram"][:count, :count] = gram
        self.arrays["linear"][:count] = linear
        self.arrays["weights"][:count] = weights
        support = np.flatnonzero(weights)
        self.arrays["order"].view(np.int64)[: support.size] = support
        self.record.count, self.record.active, self.record.valid = count, support.size, 0
        self.record.exact, self.record.bend = exact, bend
        self.record.relative, self.record.noise = 1e-12, 2.0**-50
        machine().minimise(self.record.address)
        found: np.ndarray = self.arrays["weights"][:count].copy()
        assert found.min() >= 0.0
        assert abs(found.sum() - 1.0) <= 1e-12
        return found


def first(count: int) -> np.ndarray:
    weights = np.zeros(count)
    weights[0] = 1.0
    return weights


@pytest.mark.parametrize("seed", range(25))
def test_agrees_with_numpy(seed: int) -> None:
    """With slopes from the rows or their products, and a linear part that bends or does not."""
    rng = np.random.default_rng(seed)
    programme = Programme()
    count, width = int(rng.integers(2, 60)), int(rng.integers(1, 50))
    rows = 10 ** rng.uniform(-3, 1) * (rng.standard_normal((count, width)) + rng.uniform(0, 1))
    linear = np.abs(rng.standard_normal(count)) * 10 ** rng.uniform(-4, 1)
    weights = first(count)
    for k in range(4):
        bend = (k % 2) * 10 ** rng.uniform(-3, 1) / linear.max()
        weights = programme.solve(rows, linear, weights, exact=seed % 2 == 1, bend=bend)
        gram = rows @ rows.T + bend * np.outer(linear, linear)
        wanted = minimise_on_simplex(gram, linear)

        def height(w: np.ndarray, gram: np.ndarray = gram) -> float:
            return float(0.5 * w @ gram @ w + linear @ w)

        assert height(weights) <= height(wanted) * (1 + 1e-8) + 1e-12
        # Let the next problem differ a little, and in one row entirely.
        rows = rows * (1.0 + 0.1 * rng.standard_normal(rows.shape))
        rows[rng.integers(count)] = rng.standard_normal(width)


@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_short_vectors_are_found_among_long_rows(size: float) -> None:
    """Rows that all but cancel: their Gram matrix no longer knows the answer."""
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((12, 20))
    rows = np.vstack([rows, -rows.mean(axis=0)])
    rows[:, 0] = size * (1.0 + rng.random(13))
    rows[:, 1:] -= (min_norm_weights(rows[:, 1:]) @ rows[:, 1:])[None, :]
    programme = Programme()
    rough = programme.solve(rows, np.zeros(13), first(13))
    exact = programme.solve(rows, np.zeros(13), rough, exact=True)
    wanted = np.linalg.norm(min_norm_weights(rows) @ rows)
    assert np.linalg.norm(exact @ rows) <= wanted * (1 + 1e-6) + 1e-14
