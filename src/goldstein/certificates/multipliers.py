"""What all certificates with multipliers of constraints can be asked."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.multipliers import DEGENERATE


class WithMultipliers:
    """A claim about f and constraints, one multiplier for each component of these."""

    multipliers: Vector

    @property
    def active(self) -> list[int]:
        """Components of the constraints with a multiplier."""
        return [int(i) for i in np.flatnonzero(self.multipliers)]


class Qualified(WithMultipliers):
    """One that also says how far the gradients of the constraints are from cancelling."""

    qualification: float

    @property
    def degenerate(self) -> bool:
        """Whether the constraints alone nearly cancel: the claim then says nothing about f."""
        return self.qualification <= DEGENERATE
