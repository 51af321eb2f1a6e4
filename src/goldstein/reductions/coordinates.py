"""The variables that can move: without those that are fixed, along linear equalities.

A search along the flat on which linear equalities hold needs no penalty for them, and has fewer
variables. Distances are those of x. Bounds cut a polyhedron out of the flat; z then stands for the
point of it that is nearest. That map is nonexpansive, as clipping is, so what is known within a
ball around z is known within a ball of this radius around x.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from goldstein.checker.arrays import Indices, Mask, Matrix, Vector
from goldstein.errors import GoldsteinError
from goldstein.numerics.streams import stream
from goldstein.oracles.problem import Problem

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
        return gradient - np.linalg.lstsq(rows, rows @ gradient, rcond=1e-12)[0]


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


#: Newton steps, and the part of the limits' size up to which equalities hold.
STEPS, HOLDS = 20, 1e-14

#: The cosine between the normals here and at the base: below the first a new base is wanted, below
#: the second there is no point.
BENT, TORN = 0.7, 0.2

#: And what it is at least right beside the base where there is no kink.
EVEN = 0.95

#: Rows that are so much shorter than at the base say nothing: there is no point either.
VANISHED = 1e-3

#: Halvings on the way to a z that stands for no point.
HALVINGS = 6

#: Places that are remembered: of a search's last gradients.
REMEMBERED = 1000

#: A base of more variables is not made: it is a dense matrix.
LARGEST_CHART = 500


class Chart:
    """The coordinates; where `made` is False the equalities do not allow for them.

    x(z) = base + basis z + across l, where the columns of `basis` span the tangent at the base,
    those of `across` its complement, and l is such that the equalities hold: Newton's method
    finds it. With the Jacobian J at x the derivative is basis - across (J across)^-1 J basis:
    gradients are exact, no second derivatives are needed. A search along the set needs no
    penalty for it, whose kink follows every bend. The constraints are asked a few times for
    every value of f.

    Parameters
    ----------
    problem : Problem
    x : ndarray
        The base: it need not satisfy the equalities.
    reach : float
        Where a kink is nearer than this, no chart is made.

    Examples
    --------
    >>> import goldstein as gs
    >>> from scipy.optimize import NonlinearConstraint
    >>> circle = NonlinearConstraint(lambda x: x @ x, 1.0, 1.0, jac=lambda x: 2 * x[None])
    >>> problem = Problem.of(
    ...     gs.FunctionOracle(lambda x: 0.0, lambda x: x), np.ones(2), None, circle
    ... )
    >>> chart = Chart(problem, np.array([0.0, 1.0]), 1e-3)
    >>> chart.dim, np.abs(chart.place(np.array([0.6])).y).round(9)
    (1, array([0.6, 0.8]))
    """

    def __init__(self, problem: Problem, x: Vector, reach: float) -> None:
        self._problem = problem
        system, box = problem.constraints, problem.box
        #: Constraints that hold on the chart.
        self.holding: Mask = system.equal
        self._limits = system.upper[system.equal]
        self._known: dict[bytes, Place] = {}
        self.made = False
        bounded = np.isfinite(box.lower).any() or np.isfinite(box.upper).any()
        if bounded or x.size > LARGEST_CHART or not (system.equal & ~system.linear).any():
            return
        self._base = x
        count = int(system.equal.sum())
        if count >= x.size:
            return
        _, sizes, right = np.linalg.svd(system.rows(x)[system.equal])
        if sizes[-1] <= 1e-6 * sizes[0]:
            return  # dependent rows, or none
        self._across, self._basis = right[:count].T.copy(), right[count:].T.copy()
        self.dim = x.size - count
        self._shortest = VANISHED * float(sizes[-1])
        #: The last z that stood for a point, with what was added across.
        self._good, self._shift = np.zeros(self.dim), np.zeros(count)
        self.made = not self._kinked(reach) and self._solved(self._good) is not None

    def _kinked(self, reach: float) -> bool:
        """Whether normals turn visibly within `reach` of the base."""
        step = stream(0, self._base.size, "chart").standard_normal(self._base.size)
        step *= reach / float(np.linalg.norm(step))
        try:
            rows = [self._rows(self._base + move) for move in (step, -step)]
        except GoldsteinError as failure:
            self._problem.excuse(failure)
            return True
        return min(self._upright(row) for row in rows) < EVEN

    def apply(self, x: Vector) -> Vector:
        """Return z of a point."""
        return self._basis.T @ (x - self._base)

    def place(self, z: Vector) -> Place:
        """Return the point that z stands for, or one on the way to it from the last that did."""
        key = z.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._place(z)
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        return found

    def bent(self, z: Vector) -> bool:
        """Whether a chart with its base here would serve better."""
        return self._upright(self._rows(self.place(z).y)) < BENT

    def gradient(self, z: Vector, slope: Vector, wall: float) -> Vector:
        """Return the gradient of F(y(z)) + wall * gap at z, `slope` being that of F at y."""
        place = self.place(z)
        if place.gap > 0.0:
            return wall / place.gap * place.along
        rows = self._rows(place.y)
        share = np.linalg.solve((rows @ self._across).T, self._across.T @ slope)
        found = self._basis.T @ (slope - rows.T @ share)
        return found

    def _place(self, z: Vector) -> Place:
        nothing = np.zeros(0)
        move = z - self._good
        for halving in range(HALVINGS):
            # z itself first: good + (z - good) may miss it by a unit in the last place.
            near = z - (1.0 - 0.5**halving) * move
            y = self._solved(near)
            if y is not None:
                return Place(y, nothing, z - near, nothing.astype(bool))
        y = self._base + self._basis @ self._good + self._across @ self._shift
        return Place(y, nothing, move, nothing.astype(bool))

    def _solved(self, z: Vector) -> Vector | None:
        """Return the point of z where the equalities hold; None where Newton finds none."""
        system, equal = self._problem.constraints, self.holding
        flat = self._base + self._basis @ z
        shift, least = self._shift, np.inf
        try:
            for _ in range(STEPS):
                y = flat + self._across @ shift
                values = system.values(y)[equal]
                gap = values - self._limits
                size = float(np.abs(gap).max())
                if size <= HOLDS * float(np.abs(values).max() + np.abs(self._limits).max()):
                    break
                if size >= 0.9 * least:
                    if size > 1e-12 * (1.0 + float(np.abs(self._limits).max())):
                        return None
                    break  # rounding
                least = size
                shift = shift - np.linalg.solve(self._rows(y) @ self._across, gap)
            if not self._usable(self._rows(y)):
                return None
        except np.linalg.LinAlgError:
            return None
        except GoldsteinError as failure:
            self._problem.excuse(failure)
            return None
        self._good, self._shift = z.copy(), shift
        return y

    def _rows(self, y: Vector) -> Matrix:
        return self._problem.constraints.rows(y)[self.holding]

    def _usable(self, rows: Matrix) -> bool:
        sizes = np.linalg.svd(rows @ self._across, compute_uv=False)
        return bool(sizes[-1] > self._shortest and self._upright(rows) > TORN)

    def _upright(self, rows: Matrix) -> float:
        """Return the cosine of the largest angle between the normals and those of the base."""
        unit = np.linalg.qr(rows.T)[0]
        return float(np.linalg.svd(unit.T @ self._across, compute_uv=False)[-1])
