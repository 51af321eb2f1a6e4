"""The reduction: a constrained problem as one function without constraints, and the way back.

With y = clip(z) the function is

    P(z) = f(y) + sum_i rho_i max(0, c_i(y) - ub_i, lb_i - c_i(y)) + rho |z - y|_1.

f and c are asked inside the bounds only. Gradients of P that cancel are a KKT certificate: f has
weight 1 by construction, and a constraint enters where it is violated, with a multiplier of at
most rho_i. Variables whose bounds coincide are left out of z, and z runs along linear equalities.

A search along the flat on which linear equalities hold needs no penalty for them, and has fewer
variables. Distances are those of x. Bounds cut a polyhedron out of the flat; z then stands for the
point of it that is nearest. That map is nonexpansive, as clipping is, so what is known within a
ball around z is known within a ball of this radius around x.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls

from goldstein.certificates.kkt import VIOLATION
from goldstein.checker.arrays import Indices, Mask, Matrix, Vector
from goldstein.checker.constrained.limits import Box
from goldstein.errors import BallTooSmallError, GoldsteinError, KinkError
from goldstein.numerics.streams import stream
from goldstein.oracles import Oracle
from goldstein.oracles.base import Derived
from goldstein.oracles.differences import Stencil
from goldstein.oracles.function import flat_point
from goldstein.oracles.problem import Problem, System, as_system

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

#: Places that are remembered, of a search's last questions.
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
        self._base, count = x, int(system.equal.sum())
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
        return self._basis.T @ (slope - rows.T @ share)

    def _place(self, z: Vector) -> Place:
        move, nothing = z - self._good, np.zeros(0)
        for halving in range(HALVINGS):
            # z itself first: good + (z - good) may miss it by a unit in the last place.
            near = z - (1.0 - 0.5**halving) * move
            y = self._solved(near)
            if y is not None:
                break
        else:
            near = z - move
            y = self._base + self._basis @ self._good + self._across @ self._shift
        return Place(y, nothing, z - near, nothing.astype(bool))

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


#: How far off a face is beside it, in units of the coordinates.
BESIDE = 2.0**-40

#: Infeasible points so many times larger than the start, with lower values, end a run.
FAR = 1e4
#: What is said then, where no larger weights help.
OUTSIDE = "ever lower values led the search away from the bounds and constraints"


def off_bounds(x: Vector, step: float | Vector, box: Box) -> Vector:
    """Move coordinates off bounds: functions like to have kinks there."""
    return box.clip(np.where(x == box.lower, x + step, np.where(x == box.upper, x - step, x)))


class Boxed(Oracle):
    """A function inside the bounds, continued to all z by a wall: F(y) + wall |z - y|.

    Over the variables that can move; y is the point of the box that z stands for.
    """

    def __init__(
        self, problem: Problem, wall: float, coordinates: Coordinates | Chart | None = None
    ) -> None:
        self.problem, self.wall = problem, wall
        self._free = ~problem.box.fixed
        self._coordinates = coordinates or Coordinates(problem)
        self.dim = self._coordinates.dim
        #: The steepest slope along a coordinate that was met; a lower wall does not hold.
        self.steepest = 0.0
        #: f and the violation behind every value that was told.
        self.course: dict[float, tuple[float, float]] = {}
        self._asked: tuple[bytes, float] = (b"", math.nan)
        self._fetched: dict[bytes, Vector] = {}

    def objective(self, y: Vector) -> float:
        """Return f(y); the last point is remembered."""
        key = y.tobytes()
        if self._asked[0] != key:
            self._asked = key, self.problem.f.value(y)
        return self._asked[1]

    def fetch(self, points: Iterable[Vector]) -> None:
        """Ask for the gradients of f at many points at once: they will be wanted one by one."""
        places = np.array([self._coordinates.place(z).y for z in points])
        answers = self.problem.f.gradients_at(places)
        self._fetched = {y.tobytes(): g for y, g in zip(places, answers) if g is not None}

    def objective_slope(self, y: Vector) -> Vector:
        """Return the gradient of f at y."""
        found = self._fetched.pop(y.tobytes(), None)
        return self.problem.f.gradient(y) if found is None else found

    def inside(self, y: Vector) -> float:
        """Return F(y)."""
        raise NotImplementedError

    def slope(self, y: Vector) -> Vector:
        """Return the gradient of F at y."""
        raise NotImplementedError

    @property
    def name(self) -> str:
        return self.problem.f.name

    def apply(self, x: Vector) -> Vector:
        """Return the variables that can move."""
        return self._coordinates.apply(x)

    def invert(self, z: Vector) -> Vector:
        """Return the point of the box that belongs to z."""
        return self._coordinates.place(z).y.copy()

    def shown(self, z: Vector, value: float) -> tuple[Vector, float, float]:
        """Return the point, f and the violation behind a value that was told."""
        return self.invert(z), *self.course.get(value, (value, math.nan))

    def value(self, x: Vector) -> float:
        place = self._coordinates.place(x)
        found = self.inside(place.y) + self.wall * place.gap
        self.course[found] = self.objective(place.y), self.problem.constraints.violation(place.y)
        return found

    def gradient(self, y: Vector) -> Vector:
        slope = self._slope_or_beside(self._coordinates.place(y).y)
        self.steepest = max(self.steepest, float(np.abs(slope[self._free]).max(initial=0.0)))
        return self._coordinates.gradient(y, slope, self.wall)

    def _slope_or_beside(self, y: Vector) -> Vector:
        """Return the gradient of F at y, or right beside it where a face of the box is a kink.

        The bound x >= 0 is a kink of |x|, and every z beyond a face stands for a point of it.
        What is found in the directions along the face is the slope of F on it.
        """
        try:
            return self.slope(y)
        except KinkError:
            beside = off_bounds(y, BESIDE * (1.0 + np.abs(y)), self.problem.box)
            if (beside == y).all():
                raise
            return self.slope(beside)


class Penalised(Boxed):
    """P of the module's docstring.

    Parameters
    ----------
    problem : Problem
    rho : ndarray, shape (m,)
        Weights of the constraints.
    wall : float
        Weight of the distance to the box.
    along : Coordinates or Chart, optional
        The variables; by default all that are not fixed.
    """

    def __init__(
        self, problem: Problem, rho: Vector, wall: float, along: Coordinates | Chart | None = None
    ) -> None:
        super().__init__(problem, wall, along)
        self.rho = rho
        #: The best feasible point that was met, with its value.
        self.best: tuple[float, Vector] | None = None
        #: Where a new chart was wanted.
        self.left: Vector | None = None
        self._lowest, self._scale, self._violated = math.inf, 0.0, False

    def inside(self, y: Vector) -> float:
        objective = self.objective(y)
        excess = self._excess(y)
        self._violated = bool(excess.any())
        if not self._violated and (self.best is None or objective < self.best[0]):
            self.best = objective, y
        return objective + float(self.rho @ np.abs(excess))

    def value(self, x: Vector) -> float:
        found = super().value(x)
        if found < self._lowest:
            self._lowest = found
            self._stop_running_away(x)
        return found

    def _stop_running_away(self, z: Vector) -> None:
        """Give up where ever lower values lead ever further out: the weights are too small."""
        if isinstance(self._coordinates, Chart) and self._coordinates.bent(z):
            self.left = self.invert(z)
            raise BallTooSmallError(OUTSIDE)
        size = 1.0 + float(np.abs(z).max(initial=0.0))
        self._scale = self._scale or size
        outside = self._violated or self._coordinates.place(z).gap > 0.0
        if outside and size > FAR * self._scale:
            raise BallTooSmallError(OUTSIDE)

    def slope(self, y: Vector) -> Vector:
        total = self.objective_slope(y)
        signs = np.sign(self._excess(y))
        if signs.any():
            total = total + (self.rho * signs) @ self.problem.constraints.rows(y)
        return total

    def _excess(self, y: Vector) -> Vector:
        system = self.problem.constraints
        found = system.excess(system.values(y))
        found[self._coordinates.holding] = 0.0
        return found


class Violation(Oracle):
    """V(x) = sum of what each constraint is violated by; 0 exactly where all hold.

    An infeasible problem is answered with a certificate of stationarity of V at a point where V is
    positive: `res.certificate.verify(gs.Violation(constraints, x), bounds=bounds)`.

    Parameters
    ----------
    constraints
        As in `minimize`. Of those without a gradient differences are taken.
    x : array_like, or dict of arrays
        A point to ask the constraints at, for their sizes, in the layout that they know.

    Examples
    --------
    >>> from scipy.optimize import LinearConstraint
    >>> V = Violation(LinearConstraint([[1.0, 1.0]], 1.0, 1.0), [0.0, 0.0])
    >>> V.value(np.array([2.0, 2.0])), V.gradient(np.array([2.0, 2.0]))
    (3.0, array([1., 1.]))
    """

    #: What certificates call it.
    title = VIOLATION

    def __init__(self, constraints: object, x: object) -> None:
        given = x if isinstance(x, dict) else np.array(x, dtype=np.float64)
        layout, point = flat_point(given, "x")
        everywhere = np.full(point.size, np.inf)
        stencil = Stencil(-everywhere, everywhere, 0, central=True)
        self.system: System = as_system(constraints, point, stencil=stencil, layout=layout)
        self.dim = point.size

    def value(self, x: Vector) -> float:
        return float(np.abs(self.system.excess(self.system.values(x))).sum())

    def gradient(self, y: Vector) -> Vector:
        signs = np.sign(self.system.excess(self.system.values(y)))
        return signs @ self.system.rows(y)


class Reflected(Derived):
    """One function inside a box, continued beyond it by reflection: it may be asked anywhere."""

    def __init__(self, inner: Oracle, box: Box) -> None:
        super().__init__(inner)
        self.box, self.dim = box, box.lower.size

    def value(self, x: Vector) -> float:
        return self.inner.value(self.box.reflect(x))

    def gradient(self, y: Vector) -> Vector:
        inside = self.box.reflect(y)
        signs = np.where(inside == y, 1.0, -1.0)
        # Reflected and still on a bound: narrower than the way, where nothing changes any more.
        stuck = (inside != y) & ((inside == self.box.lower) | (inside == self.box.upper))
        return np.where(stuck, 0.0, signs * self.inner.gradient(inside))


class Component(Oracle):
    """One component of a system as a function of its own, or all of them with weights."""

    def __init__(self, system: System, index: int | None = None) -> None:
        self.system, self.index = system, index
        # No two alike, so that mistakes do not cancel.
        spread = np.sqrt(1.0 + np.arange(system.size))
        self.weights = spread if index is None else np.eye(system.size)[index]

    @property
    def name(self) -> str:
        return "the constraints" if self.index is None else self.system.name(self.index)

    def value(self, x: Vector) -> float:
        return float(self.weights @ self.system.values(x))

    def gradient(self, y: Vector) -> Vector:
        return self.weights @ self.system.rows(y)
