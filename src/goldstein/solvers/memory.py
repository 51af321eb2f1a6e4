"""A ring of gradients with their points: the bundle that two searches share."""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.oracles.lipschitz import LipschitzGuard

#: Numbers that are copied at a time.
_AT_ONCE = 1_000_000


def _in_parts(rows: Indices, dim: int) -> list[Indices]:
    """Cut a selection of rows into parts that are small enough to be copied."""
    width = max(1, _AT_ONCE // dim)
    return [rows[first : first + width] for first in range(0, rows.size, width)]


class GradientMemory:
    """The latest gradients and where they were taken; the oldest is overwritten when full.

    Entries are numbered from 0 in the order in which they came; entry i sits in row i % capacity.

    Attributes
    ----------
    perturbed : ndarray of bool
        True for points drawn at random.
    added : int
        Entries seen so far.
    guard : LipschitzGuard
        A Lipschitz constant that no gradient seen so far contradicts.
    """

    def __init__(self, dim: int, capacity: int, lipschitz: float | None = None) -> None:
        self.capacity = capacity
        self.guard = LipschitzGuard(lipschitz)
        self.points: Matrix = np.empty((capacity, dim))
        self.gradients: Matrix = np.empty((capacity, dim))
        self.perturbed = np.zeros(capacity, dtype=bool)
        self.added = 0
        # Bounds on the distances from the last point asked about: most questions need no more.
        self._asked: Vector = np.zeros(dim)
        self._near: Vector = np.zeros(capacity)
        self._far: Vector = np.full(capacity, math.inf)

    def add(self, point: Vector, gradient: Vector, perturbed: bool) -> None:
        """Store a pair."""
        self.guard.observe(math.sqrt(gradient.dot(gradient)))
        row = self.added % self.capacity
        self.points[row] = point
        self.gradients[row] = gradient
        self.perturbed[row] = perturbed
        self._near[row], self._far[row] = 0.0, math.inf
        self.added += 1

    def near(self, x: Vector, radius: float, since: int = 0) -> Indices:
        """Return the rows of entries from `since` on within `radius` of x, latest first."""
        shift = x - self._asked
        moved = math.sqrt(shift.dot(shift)) * (1.0 + 1e-12)
        self._asked = x
        self._near -= moved
        self._far += moved
        ages = np.arange(self.added - 1, max(since, self.added - self.capacity) - 1, -1)
        rows = ages % self.capacity
        rows = rows[self._near[rows] <= radius]
        unsure = rows[self._far[rows] > radius]
        for some in _in_parts(unsure, x.size):
            offsets = self.points[some] - x
            distances = np.sqrt(np.einsum("ij,ij->i", offsets, offsets))
            self._near[some] = self._far[some] = distances
        return rows[self._far[rows] <= radius]

    def clear(self) -> None:
        """Forget all entries."""
        self._near[:] = math.inf

    def drop_unperturbed(self) -> None:
        """Forget the entries whose points were not drawn at random."""
        self._near[~self.perturbed] = math.inf
