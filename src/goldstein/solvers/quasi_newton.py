"""Quasi-Newton search for functions with kinks (Lewis and Overton 2013): fast, without guarantee.

BFGS with a weak Wolfe line search works astonishingly well on functions with kinks. Nothing that is
proved rests on it: it proposes points, and its gradients are asked for again before they certify.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.ball import uniform_in_ball
from goldstein.oracles import CountedOracle
from goldstein.solvers.metric import DenseMetric, LimitedMetric, Metric
from goldstein.solvers.small_metric import SmallMetric

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Up to these dimensions the quasi-Newton matrix is a small factor, or dense.
SMALL_LIMIT, DENSE_LIMIT = 60, 500
#: Linear pieces in the model of a step (d + 10, at most this), with a dense and a limited metric.
MAX_PLANES = 80
MAX_PLANES_LIMITED = 30
#: Pairs (step, change of gradient) of the limited metric.
PAIRS = 30
#: Corrections of the model before the step is cut.
MAX_NULL_STEPS = 2
#: Pieces from far away count less, even where f happens to be linear.
_LOCALITY = 1e-6
_ARMIJO = 1e-4
#: Weak Wolfe: the slope must shrink to this part, for steps of the model and of plain BFGS. Only
#: the model with a dense metric goes beyond its own step: with very many kinks that is no gain.
_CURVATURE, _CURVATURE_PLAIN = 0.8, 0.5
_MAX_TRIALS = 40
#: Where f has risen by this many times what it should have fallen, its gradient teaches nothing.
_TOO_HIGH = 1e30
#: Weight of a new piece when the model is solved next: it is likely to matter.
_HOPE = 1e-3


class CuttingPlanes:
    """The latest gradients of the search, as linear pieces of a local model around x.

    Attributes
    ----------
    gradients : ndarray, shape (capacity, d)
    levels : ndarray
        Value of each piece at x.
    travel : ndarray
        Length of the way from where the piece was taken to x.
    """

    def __init__(self, dim: int, capacity: int) -> None:
        self.gradients: Matrix = np.zeros((capacity, dim))
        self.levels: Vector = np.zeros(capacity)
        self.travel: Vector = np.zeros(capacity)
        self.capacity = capacity
        self.added = 0

    @property
    def count(self) -> int:
        return min(self.added, self.capacity)

    def add(self, gradient: Vector, level: float, travel: float) -> int:
        slot = self.added % self.capacity
        self.gradients[slot] = gradient
        self.levels[slot] = level
        self.travel[slot] = travel
        self.added += 1
        return slot

    def move(self, rises: Vector, length: float) -> None:
        """x moves by `length`, along which the pieces rise by `rises`."""
        self.levels += rises
        self.travel += length

    def errors(self, fx: float) -> Vector:
        """Return how far each piece lies from f at x (for a nonconvex f: in absolute value)."""
        count = self.count
        floor: Vector = self.travel[:count] * _LOCALITY
        floor *= self.travel[:count]
        errors: Vector = fx - self.levels[:count]
        return np.maximum(np.abs(errors, out=errors), floor, out=errors)


class Way(NamedTuple):
    """Where a line search goes: the direction, the slope the model expects, and its length."""

    p: Vector
    slope: float
    length: float

    def step(self, trial: float) -> Vector:
        return self.p if trial == 1.0 else trial * self.p


class QuasiNewton:
    """A resumable descent: one call of `step` is one line search.

    The direction minimises the model: maximum of the latest linear pieces plus the quasi-Newton
    quadratic (a variable-metric bundle step, Luksan and Vlcek 1999). With a single piece it is
    the quasi-Newton direction.

    Attributes
    ----------
    x, fx, g : current point, value and gradient (g None before the first step)
    stuck : no descent was found from here
    length : length of the last step
    """

    def __init__(self, dim: int, dense_limit: int = DENSE_LIMIT, *, model: bool = True) -> None:
        dense = dim <= dense_limit or not model
        planes = min(dim + 10, MAX_PLANES if dense else MAX_PLANES_LIMITED) if model else 1
        self.planes = CuttingPlanes(dim, planes)
        self.has_model = model
        self._extrapolates = model and dim <= dense_limit
        rows = self.planes.gradients
        self.metric: Metric
        if dim <= min(SMALL_LIMIT, dense_limit):
            self.metric = SmallMetric(rows)
        else:
            self.metric = DenseMetric(rows) if dense else LimitedMetric(rows, PAIRS)
        self.x: Vector = np.zeros(0)
        self.fx = math.inf
        self.g: Vector | None = None
        self.stuck = False
        self.length = math.inf
        self._scaled = False
        self.jitter = 0.0
        self.null_steps = MAX_NULL_STEPS
        self._room = 0.0
        self._weights: Vector = np.zeros(self.planes.capacity)

    def restart(self, x: Vector, fx: float) -> None:
        """Continue from another point; the metric and the pieces are kept."""
        if self.planes.added:
            s = x - self.x
            self.planes.move(self.planes.gradients @ s, _length(s))
        self.x, self.fx, self.g = x, fx, None
        self.stuck = False

    def step(
        self, oracle: CountedOracle, rng: np.random.Generator, seen: list[tuple[Vector, Vector]]
    ) -> bool:
        """Make one line search; append every (point, gradient) asked for to `seen`."""
        if self.g is None:
            self.g = gradient_near(oracle, self.x, rng, seen, self.jitter)
            self._add_piece(self.g, self.fx, 0.0)
        null_steps = self.null_steps if self.has_model else 0
        for attempt in range(null_steps + 1):
            way = self._direction()
            if way.slope == 0.0:
                self.stuck = True
                return False
            trial = 1.0
            if not self._scaled:
                # The first step has no scale: do not leave the neighbourhood of the start.
                room = self._room or max(1.0, float(np.abs(self.x).max()))
                trial = min(1.0, room / way.length)
            y = self.x + way.step(trial)
            fy = oracle.trial_value(y)
            if fy < self.fx + _ARMIJO * trial * way.slope:
                break
            too_far = fy - self.fx > _TOO_HIGH * -way.slope
            if not self._scaled or attempt == null_steps or too_far:
                break
            # A null step: the model was wrong there, so tell it what f looks like.
            self._look(oracle, way, trial, y, fy, rng, seen)
        return self._line_search(oracle, way, trial, y, fy, rng, seen)

    def _direction(self) -> Way:
        g = self.g
        assert g is not None
        if self._scaled and self.has_model and self.planes.added > 1:
            errors = self.planes.errors(self.fx)
            known = self._weights[: errors.size]
            known[:], image, fall = self.metric.minimise(errors, known)
            p, slope = np.negative(image, out=image), -fall
        else:
            p = -self.metric.apply(g)
            slope = float(p @ g)
        if math.isfinite(slope) and slope < 0:
            return Way(p, slope, _length(p))
        self.forget()
        return Way(-g, -float(g @ g), _length(g))

    def forget(self, room: float = 0.0) -> None:
        """Start the model afresh: what it learned leads nowhere.

        The next step is no longer than `room`, if given.
        """
        self._room = room
        self.metric.reset()
        self.planes.added = 0
        self._scaled = False
        self._weights[:] = 0.0

    def _line_search(
        self,
        oracle: CountedOracle,
        way: Way,
        trial: float,
        y: Vector,
        fy: float,
        rng: np.random.Generator,
        seen: list[tuple[Vector, Vector]],
    ) -> bool:
        """Weak Wolfe search by bisection; the first trial has been evaluated already."""
        assert self.g is not None
        slope = way.slope
        low, high = 0.0, math.inf
        curvature = _CURVATURE if self.has_model else _CURVATURE_PLAIN
        best: tuple[float, Vector, float] | None = None
        there: tuple[Vector, float, int] | None = None
        try:
            for _ in range(_MAX_TRIALS):
                if fy < self.fx + _ARMIJO * trial * slope:
                    # While f falls this fast from one trial to the next, no need to look.
                    steep = (
                        best is not None
                        and high == math.inf
                        and fy - best[2] < curvature * slope * (trial - best[0])
                    )
                    best, there = (trial, y, fy), None
                    if not steep:
                        there = self._look(oracle, way, trial, y, fy, rng, seen)
                        if there[1] >= curvature * slope:
                            break
                        if high == math.inf and not self._extrapolates:
                            break
                    low = trial
                else:
                    high = trial
                trial = 0.5 * (low + high) if high < math.inf else 2.0 * low
                if high < math.inf and high - low <= 1e-15 * high:
                    break
                y = self.x + way.step(trial)
                fy = oracle.trial_value(y)
            if best is not None and there is None:
                there = self._look(oracle, way, *best, rng, seen)
        except OutOfCalls:
            if best is not None:  # what has been gained is kept
                self.x, self.fx, self.g = best[1], best[2], None
            raise
        if best is None:
            close = 1e-8 * max(1.0, float(np.abs(self.x).max()))
            if fy == math.inf and trial * way.length <= close:
                oracle.value(y)  # not finite arbitrarily close to x: say so
            self.forget()
            self.stuck = True
            return False
        trial, y, fy = best
        assert there is not None
        gy, _, slot = there
        s, change = way.step(trial), gy - self.g
        sy = float(s.dot(change))
        rises = self.planes.gradients.dot(s)
        self.length = trial * way.length
        self.planes.move(rises, self.length)
        self.planes.levels[slot], self.planes.travel[slot] = fy, 0.0
        # A change whose square underflows has no scale to learn.
        if 1e-300 < sy < math.inf and change.dot(change) > 0.0:
            self.metric.update(s, change, sy, rises)
            self._scaled = True
        self.x, self.fx, self.g = y, fy, gy
        return True

    def _look(
        self,
        oracle: CountedOracle,
        way: Way,
        trial: float,
        y: Vector,
        fy: float,
        rng: np.random.Generator,
        seen: list[tuple[Vector, Vector]],
    ) -> tuple[Vector, float, int]:
        """Ask for the gradient at a trial; return it, its slope along the way and its slot."""
        g = gradient_near(oracle, y, rng, seen, self.jitter)
        slope = float(g.dot(way.p))
        return g, slope, self._add_piece(g, fy - trial * slope, trial * way.length)

    def _add_piece(self, g: Vector, level: float, travel: float) -> int:
        slot = self.planes.add(g, level, travel)
        self._weights[slot] = _HOPE
        self.metric.replaced(slot)
        return slot


def gradient_near(
    oracle: CountedOracle,
    x: Vector,
    rng: np.random.Generator,
    seen: list[tuple[Vector, Vector]],
    jitter: float = 0.0,
) -> Vector:
    """Return the gradient at x, or next to x where x sits on a kink: never a made-up one."""
    y = uniform_in_ball(rng, x, jitter) if jitter else x
    for attempt in range(8):
        try:
            g = oracle.gradient(y)
        except KinkError:
            hair = 10.0 ** (attempt - 12) * max(1.0, float(np.abs(x).max()))
            y = x + hair * rng.standard_normal(x.size)
            continue
        seen.append((y, g))
        return g
    return oracle.gradient(y)


def _length(v: Vector) -> float:
    return math.sqrt(v.dot(v))
