"""The variables that can move: without those that are fixed, along linear equalities.

A search along the flat on which linear equalities hold needs no penalty for them, and has fewer
variables. Distances are those of x. Bounds cut a polyhedron out of the flat; z then stands for the
point of it that is nearest. That map is nonexpansive, as clipping is, so what is known within a
ball around z is known within a ball of this radius around x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from goldstein.checker.arrays import Indices, Mask, Matrix, Vector
from goldstein.oracles.problem import Problem
from goldstein.reductions.polyhedron import Polyhedron

#: Flats of more variables are not looked for: an orthonormal basis of them is a dense matrix.
LARGEST = 2000

#: Nor are those with bounds, where every point costs a least squares problem.
LARGEST_BOUNDED = 200


@dataclass
class Place:
    """The point y of the box that z stands for, and by how much z is outside: z less that of y.

    `pushing` are the bounds that keep y back along the flat.
    """

    y: Vector
    alone: Vector
    along: Vector
    pushing: Mask

    @property
    def gap(self) -> float:
        """How far outside z is, as a wall measures it."""
        return float(np.abs(self.alone).sum() + np.linalg.norm(self.along))


class Coordinates:
    """x = base + (z at the variables that move freely) + (basis z at those of the equalities).

    Examples
    --------
    >>> import goldstein as gs
    >>> from scipy.optimize import LinearConstraint
    >>> problem = Problem.of(
    ...     gs.FunctionOracle(lambda x: 0.0, lambda x: x), np.zeros(2), [(0, None), (0, None)],
    ...     LinearConstraint([[1.0, 1.0]], 2.0, 2.0),
    ... )
    >>> along = Coordinates(problem, np.zeros(2))
    >>> along.dim, along.place(np.zeros(1)).y, along.holding
    (1, array([1., 1.]), array([ True]))
    >>> far = along.place(np.array([9.0]))  # the sign of a basis is anybody's guess
    >>> np.sort(far.y).round(6), round(far.gap, 6)
    (array([0., 2.]), 7.585786)
    """

    def __init__(self, problem: Problem, x: Vector | None = None) -> None:
        self._box = box = problem.box
        self._base = np.where(box.fixed, box.lower, 0.0)
        #: Constraints that hold on the flat.
        self.holding: Mask = np.zeros(problem.constraints.size, dtype=bool)
        self._basis: Matrix = np.zeros((0, 0))
        self._flat: Indices = np.zeros(0, dtype=np.intp)
        self._within: Polyhedron | None = None
        self._last: tuple[bytes, Place] | None = None
        if x is not None and x.size <= LARGEST:
            self._lie_flat(problem, x)
        alone = ~box.fixed
        alone[self._flat] = False
        self._alone: Indices = np.flatnonzero(alone)
        self.dim = self._alone.size + self._basis.shape[1]

    def _lie_flat(self, problem: Problem, x: Vector) -> None:
        system, box = problem.constraints, problem.box
        equal = system.linear & system.equal
        if not equal.any():
            return
        free = ~box.fixed
        rows = system.rows(x)[equal]
        flat = np.flatnonzero(rows.any(axis=0) & free)
        if not flat.size:
            return
        matrix, limits = rows[:, flat], system.upper[equal] - rows[:, ~free] @ box.lower[~free]
        left, sizes, right = np.linalg.svd(matrix)
        rank = int((sizes > 1e-10 * sizes[0]).sum())
        place = right[:rank].T @ ((left[:, :rank].T @ limits) / sizes[:rank])
        gap = np.abs(matrix @ place - limits).max()
        if gap > 1e-12 * (np.abs(limits).max() + np.abs(matrix).max()):
            return  # they contradict each other; the penalty will say so
        if rank == free.sum():
            return  # one point is left, and a search needs a variable
        basis = right[rank:].T.copy()
        room = np.concatenate([box.upper[flat] - place, place - box.lower[flat]])
        sides = np.concatenate([basis, -basis])
        moves = np.abs(sides).max(axis=1, initial=0.0) > 1e-12
        if (room[~moves] < 0.0).any():
            return  # what the equalities fix is outside its bounds
        cut = moves & np.isfinite(room)
        if cut.any():
            within = Polyhedron(sides[cut], room[cut])
            if flat.size > LARGEST_BOUNDED or within.nearest(np.zeros(basis.shape[1])) is None:
                return
            self._within = within
        self._flat, self._basis = flat, basis
        self._base[flat] = place
        self.holding = equal

    def apply(self, x: Vector) -> Vector:
        """Return z of a point, or of the point of the flat nearest to it."""
        along = self._basis.T @ (x - self._base)[self._flat] if self._flat.size else ()
        return np.concatenate([x[self._alone], along])

    def place(self, z: Vector) -> Place:
        """Return the point that z stands for; the last one is remembered."""
        key = z.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = key, self._place(z)
        return self._last[1]

    def _place(self, z: Vector) -> Place:
        alone, along = z[: self._alone.size], z[self._alone.size :]
        nearest, pushing = along, np.zeros(0, dtype=bool)
        if self._within is not None:
            nearest, pushing = self._within.nearest(along) or (along, pushing)
        whole: Vector = self._base.copy()
        whole[self._alone] = alone
        if self._flat.size:
            whole[self._flat] += self._basis @ nearest
        y = self._box.clip(whole)
        return Place(y, alone - y[self._alone], along - nearest, pushing)

    def gradient(self, z: Vector, slope: Vector, wall: float) -> Vector:
        """Return the gradient of F(y(z)) + wall * gap at z, `slope` being that of F at y."""
        place = self.place(z)
        alone = np.where(place.alone != 0.0, wall * np.sign(place.alone), slope[self._alone])
        if not self._flat.size:
            return alone
        along = self._basis.T @ slope[self._flat]
        if self._within is not None and place.pushing.any():
            along = self._within.along(along, place.pushing)
            along += wall / np.linalg.norm(place.along) * place.along
        return np.concatenate([alone, along])
