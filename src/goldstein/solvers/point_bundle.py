"""Gradients with the points they belong to: what turns a min-norm vector into evidence."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.numerics.hull import Hull
from goldstein.solvers.base import Evidence

Vector = NDArray[np.float64]


class PointBundle:
    """A bounded set of gradients of points near one x, and the shortest vector of their hull.

    When all slots carry weight, two of them are merged into an aggregate that remembers which
    points it came from. The hull keeps the shortest vector, so nothing proved is lost, and the
    certificate can still list points and weights.
    """

    def __init__(self, dim: int, capacity: int) -> None:
        self.hull = Hull(dim, min(capacity, 64))
        self.capacity = capacity
        # Row -> the points it stands for, whether each was drawn at random, and their shares.
        self._origins: list[tuple[list[Vector], list[bool], list[float]]] = []

    @property
    def size(self) -> int:
        return self.hull.size

    def clear(self) -> None:
        self.hull.clear()
        self._origins.clear()

    def add(self, point: Vector, gradient: Vector, perturbed: bool = True) -> None:
        """Add a gradient; room is made without changing the shortest vector."""
        if self.hull.size == self.capacity:
            self._make_room()
        self.hull.add(gradient)
        self._origins.append(([point], [perturbed], [1.0]))

    def shortest(self) -> Vector:
        """Return the shortest vector of the hull."""
        return self.hull.solve()[1]

    def evidence(self, x: Vector) -> Evidence:
        """Return the points behind the shortest vector."""
        points: list[Vector] = []
        perturbed: list[bool] = []
        weights: list[float] = []
        support = np.flatnonzero(self.hull.weights > 0)
        for row in support:
            row_points, row_perturbed, shares = self._origins[row]
            points.extend(row_points)
            perturbed.extend(row_perturbed)
            weights.extend(self.hull.weights[row] * share for share in shares)
        pure = len(points) == support.size  # no aggregate among them
        return Evidence(
            x.copy(),
            np.array(points),
            np.array(weights),
            np.array(perturbed),
            self.hull.gradients[support].copy() if pure else None,
        )

    def _make_room(self) -> None:
        self.hull.solve()
        weights = self.hull.weights
        used = np.flatnonzero(weights > 0)
        if used.size < self.capacity:
            self._origins = [self._origins[i] for i in used]
            self.hull.keep(used)
            return
        # Merge the two lightest rows: they matter least to the shape of the hull.
        i, j = (int(r) for r in np.argsort(weights)[:2])
        total = weights[i] + weights[j]
        a, b = weights[i] / total, weights[j] / total
        merged = a * self.hull.gradients[i] + b * self.hull.gradients[j]
        (points_i, perturbed_i, shares_i), (points_j, perturbed_j, shares_j) = (
            self._origins[i],
            self._origins[j],
        )
        origin = (
            points_i + points_j,
            perturbed_i + perturbed_j,
            [a * share for share in shares_i] + [b * share for share in shares_j],
        )
        rest = np.array([r for r in range(self.capacity) if r not in (i, j)], dtype=np.intp)
        self.hull.keep(rest)
        self._origins = [self._origins[r] for r in rest]
        self.hull.add(merged)
        self._origins.append(origin)
