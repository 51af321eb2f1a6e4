"""The points of a polyhedron nearest to given ones: least distance programming."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from goldstein.checker.arrays import Indices, Mask, Matrix, Vector

#: Rows that are violated by this part of the numbers are not.
ROUNDING = 1e-13

#: A distance below this part of what is asked for is none: the polyhedron has no point.
EMPTY = 1e-12


class Polyhedron:
    """{z: rows z <= limits}; rows need not have length 1, but none may be 0.

    The nearest point comes from one non-negative least squares problem (C. L. Lawson and R. J.
    Hanson, Solving Least Squares Problems, chapter 23), which finds the rows that hold with
    equality there.

    Examples
    --------
    >>> corner = Polyhedron(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([0.0, 4.0]))
    >>> corner.nearest(np.array([3.0, 1.0]))
    (array([0., 1.]), array([ True, False]))
    """

    def __init__(self, rows: Matrix, limits: Vector) -> None:
        lengths = np.linalg.norm(rows, axis=1)
        self.rows, self.limits = rows / lengths[:, None], limits / lengths

    def nearest(self, z: Vector) -> tuple[Vector, Mask] | None:
        """Return the nearest point and the rows that push it there; None if there is no point."""
        over = self.rows @ z - self.limits
        kept = over > 0.0
        if not kept.any():
            return z, kept
        size = 1.0 + float(np.abs(z).max())
        # What is nearest where some rows hold, and satisfies the others, is nearest.
        while True:
            found = self._nearest(z, over, np.flatnonzero(kept))
            if found is None:
                return None
            place, pushing = found
            more = (self.rows @ place - self.limits > ROUNDING * size) & ~kept
            if not more.any():
                mask = np.zeros(kept.size, dtype=bool)
                mask[pushing] = True
                return place, mask
            kept |= more

    def _nearest(self, z: Vector, over: Vector, kept: Indices) -> tuple[Vector, Indices] | None:
        """Return the nearest point where the kept rows hold, and those that push it there."""
        # The shortest p with -rows p >= over, measured in units of the largest excess.
        scale = float(over[kept].max())
        system = np.concatenate([-self.rows[kept].T, over[kept][None] / scale])
        target = np.zeros(system.shape[0])
        target[-1] = 1.0
        try:
            weights = nnls(system, target, maxiter=30 * sum(system.shape))[0]
        except RuntimeError:
            return None  # it cycles
        if 1.0 - system[-1] @ weights <= EMPTY:
            return None
        pushing = kept[weights > 0.0]
        rows = self.rows[pushing]
        step = np.linalg.lstsq(rows, rows @ z - self.limits[pushing], rcond=1e-12)[0]
        return z - step, pushing

    def along(self, gradient: Vector, pushing: Mask) -> Vector:
        """Return the part of a gradient along the face on which these rows hold."""
        rows = self.rows[pushing]
        found: Vector = gradient - np.linalg.lstsq(rows, rows @ gradient, rcond=1e-12)[0]
        return found
