"""A ring of gradients with their points: the bundle that two searches share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]
Indices = NDArray[np.intp]


class GradientMemory:
    """The latest gradients and where they were taken; the oldest is overwritten when full.

    Attributes
    ----------
    perturbed : ndarray of bool
        True for points drawn at random.
    """

    def __init__(self, dim: int, capacity: int) -> None:
        self.capacity = capacity
        self.points: Matrix = np.empty((capacity, dim))
        self.gradients: Matrix = np.empty((capacity, dim))
        self.perturbed = np.zeros(capacity, dtype=bool)
        self.size = 0
        self.added = 0

    def add(self, point: Vector, gradient: Vector, perturbed: bool) -> int:
        """Store a pair and return its slot."""
        slot = self.added % self.capacity
        self.points[slot] = point
        self.gradients[slot] = gradient
        self.perturbed[slot] = perturbed
        self.added += 1
        self.size = min(self.added, self.capacity)
        return slot

    def near(self, x: Vector, radius: float, limit: int) -> Indices:
        """Return the slots within `radius` of x, latest first, at most `limit`."""
        offsets = self.points[: self.size] - x
        inside = np.einsum("ij,ij->i", offsets, offsets) <= radius * radius
        slots = np.flatnonzero(inside)
        age = (self.added - 1 - slots) % self.capacity
        return slots[np.argsort(age)][:limit]
