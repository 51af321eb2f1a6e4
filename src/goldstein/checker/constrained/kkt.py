"""The rows of a KKT claim: gradients of f and of constraints, and normals of the bounds."""

from typing import Any

import numpy as np

from goldstein.checker import function, rounding, sampled
from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.constrained.limits import DEGENERATE, best_normal


class KKTRows(sampled.Rows):
    """Those of f and, times the sign of their multiplier, of constraints, with weights >= 0."""

    def __init__(self, cert: Any, problem: Any) -> None:
        super().__init__(cert, problem)
        # Normals that are not stated are not qualified.
        self.low, self.high = self.low & (cert.normal < 0), self.high & (cert.normal > 0)
        if cert.constraint_weights.any():
            signed = cert.constraint_weights
            used, signs = np.flatnonzero(signed), np.sign(signed[signed != 0])
            index, rows = cert.constraint_index[used], cert.constraint_gradients[used]
            self.sign |= dict(zip(index.tolist(), signs.tolist()))
            self.points = np.concatenate([self.points, cert.constraint_points[used]])
            self.weights = np.concatenate([self.weights, np.abs(signed[used])])
            self.stored = np.concatenate([self.stored, signs[:, None] * rows])
            self.owners = np.concatenate([self.owners, index])

    def length(
        self, rows: Matrix, owners: Indices, weights: Vector, normal: Vector | None = None
    ) -> float:
        """Return an upper bound of the combination's length; the normal is chosen anew."""
        normal = best_normal(weights @ rows, self.low, self.high)
        return super().length(rows, owners, weights, normal)

    def scale(self, rows: Matrix) -> float:
        """Return the mean length of rows; of multipliers that cancel each other no more counts than
        what qualified constraints may need."""
        of_f = self.owners == function.OBJECTIVE
        mean, rest = rounding.mean_length(self.weights[of_f], rows[of_f]), self.weights[~of_f]
        return mean + min(rounding.mean_length(rest, rows[~of_f]), mean / DEGENERATE)
