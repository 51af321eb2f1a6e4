"""The reduction: a constrained problem as one function without constraints, and the way back.

With y = clip(z) the function is

    P(z) = f(y) + sum_i rho_i max(0, c_i(y) - ub_i, lb_i - c_i(y)) + rho |z - y|_1.

f and c are asked inside the bounds only. Gradients of P that cancel are a KKT certificate: f has
weight 1 by construction, and a constraint enters where it is violated, with a multiplier of at
most rho_i. Variables whose bounds coincide are left out of z, and z runs along linear equalities,
y being the nearest point of the box on them (`goldstein.reductions.coordinates`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from goldstein.certificates.kkt import VIOLATION
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import Box
from goldstein.errors import BallTooSmallError, KinkError
from goldstein.oracles import Oracle
from goldstein.oracles.base import Derived
from goldstein.oracles.differences import Stencil
from goldstein.oracles.problem import Problem, System, as_system
from goldstein.reductions.coordinates import Chart, Coordinates

#: Gradients of f that are kept.
REMEMBERED = 1000

#: How far off a face is beside it, in units of the coordinates.
BESIDE = 2.0**-40

#: Infeasible points so many times larger than the start, with lower values, end a run.
FAR = 1e4


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
        self._slopes: dict[bytes, Vector] = {}
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
        """Return the gradient of f at y; the last few are remembered."""
        found = self._fetched.pop(y.tobytes(), None)
        if found is None:
            found = self.problem.f.gradient(y)
        self._slopes[y.tobytes()] = found
        if len(self._slopes) > REMEMBERED:
            del self._slopes[next(iter(self._slopes))]
        return found

    def remembered(self, y: Vector) -> Vector | None:
        """Return the gradient of f at y if it was asked lately, and y is off the bounds.

        On a face of the box functions like to have kinks.
        """
        box = self.problem.box
        face = bool(((y == box.lower) | (y == box.upper))[self._free].any())
        return None if face else self._slopes.get(y.tobytes())

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
    coordinates : Coordinates, optional
        The variables; by default all that are not fixed.
    """

    def __init__(
        self,
        problem: Problem,
        rho: Vector,
        wall: float,
        coordinates: Coordinates | Chart | None = None,
    ) -> None:
        super().__init__(problem, wall, coordinates)
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
            raise BallTooSmallError
        size = 1.0 + float(np.abs(z).max(initial=0.0))
        self._scale = self._scale or size
        outside = self._violated or self._coordinates.place(z).gap > 0.0
        if outside and size > FAR * self._scale:
            raise BallTooSmallError

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
    x : array_like
        A point to ask the constraints at, for their sizes.

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
        point = np.array(x, dtype=np.float64)
        everywhere = np.full(point.size, np.inf)
        stencil = Stencil(-everywhere, everywhere, 0, central=True)
        self.system: System = as_system(constraints, point, stencil=stencil)
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
