"""Points with room around them inside bounds."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector


def with_room(point: Vector, lower: Vector, upper: Vector, room: Vector) -> Vector:
    """Return the nearest point from which one can go this far along all coordinates at once.

    There is room for rounding, too, where there is room at all.

    Examples
    --------
    >>> with_room(np.array([0.0]), np.array([0.0]), np.array([1.0]), np.array([0.1])).round(6)
    array([0.1])
    """
    spare = np.where(room > 0, room * (1 + 1e-9) + 2.0**-50 * np.abs(point), 0.0)
    inner: Vector = np.minimum(np.maximum(point, lower + spare), np.maximum(upper - spare, lower))
    return inner
