"""The points of a polyhedron nearest to given ones: least distance programming."""

from __future__ import annotations

import numpy as np
from scipy.optimize import nnls

from goldstein.checker.arrays import Mask, Matrix, Vector

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
        pushing = np.zeros(over.size, dtype=bool)
        far = float(over.max(initial=0.0))
        if far <= 0.0:
            return z, pushing
        # The shortest p with -rows p >= over, measured in units of `far`.
        system = np.concatenate([-self.rows.T, over[None] / far])
        target = np.zeros(system.shape[0])
        target[-1] = 1.0
        try:
            weights = nnls(system, target, maxiter=30 * sum(system.shape))[0]
        except RuntimeError:
            return None  # it cycles
        if 1.0 - system[-1] @ weights <= EMPTY:
            return None
        pushing = weights > 0.0
        rows = self.rows[pushing]
        step = np.linalg.lstsq(rows, rows @ z - self.limits[pushing], rcond=1e-12)[0]
        return z - step, pushing

    def along(self, gradient: Vector, pushing: Mask) -> Vector:
        """Return the part of a gradient along the face on which these rows hold."""
        rows = self.rows[pushing]
        found: Vector = gradient - np.linalg.lstsq(rows, rows @ gradient, rcond=1e-12)[0]
        return found
