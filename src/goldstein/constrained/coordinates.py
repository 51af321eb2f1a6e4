"""The variables that can move: without those that are fixed, along linear equalities.

Where no bound touches the variables of the linear equalities, a search along the flat on which they
hold needs no penalty for them, and has fewer variables. Distances are those of x.
"""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Indices, Mask, Matrix, Vector
from goldstein.constrained.problem import Problem

#: Flats of more variables are not looked for: an orthonormal basis of them is a dense matrix.
LARGEST = 2000


class Coordinates:
    """x = base + (z at the variables that move freely) + (basis z at those of the equalities).

    Examples
    --------
    >>> import goldstein as gs
    >>> from scipy.optimize import LinearConstraint
    >>> problem = Problem.of(
    ...     gs.FunctionOracle(lambda x: 0.0, lambda x: x), np.zeros(2), None,
    ...     LinearConstraint([[1.0, 1.0]], 2.0, 2.0),
    ... )
    >>> along = Coordinates(problem, np.zeros(2))
    >>> along.dim, along.whole(np.zeros(1)), along.holding
    (1, array([1., 1.]), array([ True]))
    """

    def __init__(self, problem: Problem, x: Vector | None = None) -> None:
        box = problem.box
        self._base = np.where(box.fixed, box.lower, 0.0)
        #: Constraints that hold on the flat.
        self.holding: Mask = np.zeros(problem.system.size, dtype=bool)
        self._basis: Matrix = np.zeros((0, 0))
        self._flat: Indices = np.zeros(0, dtype=np.intp)
        if x is not None and x.size <= LARGEST:
            self._lie_flat(problem, x)
        alone = ~box.fixed
        alone[self._flat] = False
        self._alone: Indices = np.flatnonzero(alone)
        self.dim = self._alone.size + self._basis.shape[1]

    def _lie_flat(self, problem: Problem, x: Vector) -> None:
        system, box = problem.system, problem.box
        equal = system.linear & system.equal
        if not equal.any():
            return
        rows = system.rows(x)[equal]
        flat = np.flatnonzero(rows.any(axis=0))
        bounded = np.isfinite(box.lower[flat]) | np.isfinite(box.upper[flat])
        if bounded.any() or not flat.size:
            return
        matrix, limits = rows[:, flat], system.upper[equal]
        left, sizes, right = np.linalg.svd(matrix)
        rank = int((sizes > 1e-10 * sizes[0]).sum())
        place = right[:rank].T @ ((left[:, :rank].T @ limits) / sizes[:rank])
        gap = np.abs(matrix @ place - limits).max()
        if gap > 1e-12 * (np.abs(limits).max() + np.abs(matrix).max()):
            return  # they contradict each other; the penalty will say so
        if rank == (~box.fixed).sum():
            return  # one point is left, and a search needs a variable
        self._flat, self._basis = flat, right[rank:].T.copy()
        self._base[flat] = place
        self.holding = equal

    def apply(self, x: Vector) -> Vector:
        """Return z of a point, or of the point of the flat nearest to it."""
        along = self._basis.T @ (x - self._base)[self._flat] if self._flat.size else ()
        return np.concatenate([x[self._alone], along])

    def whole(self, z: Vector) -> Vector:
        """Return the point that belongs to z."""
        found: Vector = self._base.copy()
        found[self._alone] = z[: self._alone.size]
        if self._flat.size:
            found[self._flat] += self._basis @ z[self._alone.size :]
        return found

    def gradient(self, gradient: Vector) -> Vector:
        """Return a gradient with respect to z, of one with respect to x."""
        along = self._basis.T @ gradient[self._flat] if self._flat.size else ()
        return np.concatenate([gradient[self._alone], along])
