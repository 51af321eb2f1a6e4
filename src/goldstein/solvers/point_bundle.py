"""Gradients with the points they belong to: what turns a min-norm vector into evidence."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.numerics.hull import MANY_VARIABLES, Hull
from goldstein.solvers.base import Evidence


@dataclass(slots=True)
class Origin:
    """The points a row stands for, whether each was drawn at random, and their shares."""

    points: list[Vector]
    perturbed: list[bool]
    shares: list[float]

    def distance(self, centre: Vector) -> float:
        """Return how far the farthest point is from the centre."""
        offsets = [point - centre for point in self.points]
        return math.sqrt(max(float(offset.dot(offset)) for offset in offsets))


class PointBundle:
    """A bounded set of gradients of points near one x, and the shortest vector of their hull.

    When all slots carry weight, two of them are merged into an aggregate that remembers which
    points it came from. The hull keeps the shortest vector, so nothing proved is lost, and the
    certificate can still list points and weights. Only when the aggregates have gathered more than
    `max_points` points are they given up, and the gradients they were made of with them.
    """

    def __init__(
        self,
        dim: int,
        capacity: int,
        max_points: float = math.inf,
        deadline: float = math.inf,
    ) -> None:
        # Memory that is not written to costs nothing; to grow costs a copy.
        first = capacity if dim >= MANY_VARIABLES else min(capacity, 64)
        self.hull = Hull(dim, first, deadline)
        self.capacity = capacity
        self.max_points = max_points
        self._origins: list[Origin] = []
        # For each row a bound on the distance of its points from the centre.
        self._reach: Vector = np.zeros(capacity)

    @property
    def size(self) -> int:
        return self.hull.size

    def clear(self) -> None:
        self.hull.clear()
        self._origins.clear()

    def add(
        self, point: Vector, gradient: Vector, perturbed: bool = True, reach: float = math.inf
    ) -> None:
        """Add a gradient; room is made without changing the shortest vector.

        `reach` is a bound on the distance from the centre, if one is known.
        """
        if self.hull.size == self.capacity:
            self._make_room()
        self._append(gradient, Origin([point], [perturbed], [1.0]), reach)

    def recentre(self, centre: Vector, moved: float, radius: float) -> None:
        """Drop the rows with points outside the ball around the centre, which moved by `moved`."""
        reach = self._reach[: self.size]
        reach += moved
        far = (reach > radius).nonzero()[0].tolist()
        if not far:
            return
        for row in far:
            reach[row] = self._origins[row].distance(centre)
        self._keep((reach <= radius).nonzero()[0])

    def drop_unperturbed(self) -> None:
        """Drop the rows that rest on a point which was not drawn at random."""
        self._keep([row for row, origin in enumerate(self._origins) if all(origin.perturbed)])

    def shortest(self) -> Vector:
        """Return the shortest vector of the hull."""
        return self.hull.solve()[1]

    def evidence(self, x: Vector, gradients: bool = True) -> Evidence:
        """Return the points behind the shortest vector.

        Without copies of the gradients where memory is worth saving.
        """
        points: list[Vector] = []
        perturbed: list[bool] = []
        weights: list[float] = []
        support = np.flatnonzero(self.hull.weights > 0)
        for row in support:
            origin = self._origins[row]
            points.extend(origin.points)
            perturbed.extend(origin.perturbed)
            weights.extend(self.hull.weights[row] * share for share in origin.shares)
        pure = len(points) == support.size  # no aggregate among them
        return Evidence(
            x.copy(),
            np.array(points),
            np.array(weights),
            np.array(perturbed),
            self.hull.gradients[support] if pure and gradients else None,
        )

    def release(self) -> None:
        """Drop all rows, and give their memory back."""
        self.hull = Hull(self.hull.dim, 1, self.hull.deadline)
        self._origins.clear()

    def _append(self, gradient: Vector, origin: Origin, reach: float) -> None:
        self._reach[self.size] = reach
        self.hull.add(gradient)
        self._origins.append(origin)

    def _keep(self, rows: ArrayLike) -> None:
        kept = np.asarray(rows, dtype=np.intp)
        if kept.size == 0:
            self.clear()
        elif kept.size < self.size:
            self.hull.keep(kept)
            self._reach[: kept.size] = self._reach[kept]
            self._origins = [self._origins[row] for row in kept.tolist()]

    def _make_room(self) -> None:
        self.hull.solve()
        weights = self.hull.weights
        used = np.flatnonzero(weights > 0)
        if used.size < self.capacity:
            self._keep(used)
            return
        if sum(len(origin.points) for origin in self._origins) >= self.max_points:
            self._keep([r for r, origin in enumerate(self._origins) if len(origin.points) == 1])
            return
        # Merge the two lightest rows: they matter least to the shape of the hull.
        i, j = (int(r) for r in np.argsort(weights)[:2])
        total = weights[i] + weights[j]
        a, b = weights[i] / total, weights[j] / total
        merged = a * self.hull.gradients[i] + b * self.hull.gradients[j]
        one, other = self._origins[i], self._origins[j]
        origin = Origin(
            one.points + other.points,
            one.perturbed + other.perturbed,
            [a * share for share in one.shares] + [b * share for share in other.shares],
        )
        reach = float(max(self._reach[i], self._reach[j]))
        self._keep([r for r in range(self.capacity) if r not in (i, j)])
        self._append(merged, origin, reach)
