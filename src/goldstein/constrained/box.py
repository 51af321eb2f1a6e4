"""Moving off the bounds of the variables."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import Box, as_box


def off_bounds(x: Vector, way: float | Vector, box: Box) -> Vector:
    """Move coordinates off bounds: functions like to have kinks there."""
    inner = np.where(x == box.lower, x + way, np.where(x == box.upper, x - way, x))
    return box.clip(inner)


__all__ = ["Box", "as_box", "off_bounds"]
