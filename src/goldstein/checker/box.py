"""Bounds on the variables: exact comparisons of floats, and points that never leave them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Mask, Vector


@dataclass(frozen=True, eq=False)
class Box:
    """lower <= x <= upper, either side possibly infinite.

    Examples
    --------
    >>> box = Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]))
    >>> box.clip(np.array([2.0, 5.0])), box.fold(np.array([1.25, 5.0]))
    (array([1., 5.]), array([0.75, 5.  ]))
    """

    lower: Vector
    upper: Vector

    @property
    def fixed(self) -> Mask:
        """Coordinates that cannot move."""
        found: Mask = self.lower == self.upper
        return found

    def contains(self, points: NDArray[np.float64]) -> bool:
        return bool(((points >= self.lower) & (points <= self.upper)).all())

    def clip(self, point: Vector) -> Vector:
        clipped: Vector = np.minimum(np.maximum(point, self.lower), self.upper)
        return clipped

    def fold(self, point: Vector) -> Vector:
        """Reflect a point at the bounds it has crossed.

        Unlike a clipped point it does not stick to a face, where functions like to have kinks; and
        it is no further from any point of the box than before.
        """
        outside = (point < self.lower) | (point > self.upper)
        if not outside.any():
            return point
        folded = point.copy()
        folded[outside] = 2.0 * self.clip(point)[outside] - point[outside]
        return self.clip(folded)

    def normal_signs(self, x: Vector) -> tuple[Mask, Mask]:
        """Return where the normal cone at x allows negative and where positive entries."""
        return x == self.lower, x == self.upper
