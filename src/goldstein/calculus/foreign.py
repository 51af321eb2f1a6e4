"""A kind of node that the checker does not have: what is known in float64 only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.nodes import Node


@dataclass(frozen=True, eq=False)
class Foreign(Node):
    """User code, entry by entry, with its derivative; or a LinearOperator, which has none.

    Attributes
    ----------
    shape : tuple of int
        That of the argument.
    function, derivative : callable, or LinearOperator and None
    """

    shape: tuple[int, ...]
    function: Any
    derivative: Any = None

    def fits(self) -> bool:
        return True

    def evaluated(self, u: Vector) -> Vector:
        """Return the values."""
        table = u.reshape(self.shape)
        found = self.function @ table if self.derivative is None else self.function(table)
        return np.asarray(found, dtype=np.float64).ravel()

    def pulled_back(self, g: Vector, u: Vector) -> Vector:
        """Return derivatives in the argument, those in the values being given."""
        if self.derivative is None:
            found = self.function.T @ g.reshape(-1, *self.shape[1:])
            return np.asarray(found, dtype=np.float64).ravel()
        slopes = np.asarray(self.derivative(u.reshape(self.shape)), dtype=np.float64)
        return g * np.broadcast_to(slopes, self.shape).ravel()
