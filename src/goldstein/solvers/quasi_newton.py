"""Quasi-Newton search for functions with kinks (Lewis and Overton 2013): fast, without guarantee.

BFGS with a weak Wolfe line search works astonishingly well on functions with kinks. Nothing that is
proved rests on it: it proposes points, and its gradients are asked for again before they certify.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymm, dsymv, dsyr2

from goldstein.errors import KinkError
from goldstein.numerics.simplex_qp import minimise_on_simplex
from goldstein.oracles import CountedOracle

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

#: Up to this dimension the quasi-Newton matrix is dense.
DENSE_LIMIT = 500
#: Linear pieces in the model of a step (d + 10, at most this), and corrections of the model before
#: the step is cut.
MAX_PLANES = 80
MAX_NULL_STEPS = 2
#: Pieces from far away count less, even where f happens to be linear.
_LOCALITY = 1e-6
_ARMIJO = 1e-4
_CURVATURE = 0.5
_MAX_TRIALS = 40


class Metric(Protocol):
    """An approximation of the inverse Hessian."""

    def apply(self, g: Vector) -> Vector: ...

    def apply_rows(self, rows: Matrix) -> Matrix: ...

    def update(self, s: Vector, y: Vector, sy: float) -> None: ...

    def reset(self) -> None: ...


class DenseMetric:
    """BFGS with the whole matrix."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.matrix: Matrix | None = None

    def reset(self) -> None:
        self.matrix = None

    def apply(self, g: Vector) -> Vector:
        if self.matrix is None:
            return g.copy()
        product: Vector = dsymv(1.0, self.matrix, g, lower=1)
        return product

    def apply_rows(self, rows: Matrix) -> Matrix:
        if self.matrix is None:
            return rows.copy()
        images: Matrix = dsymm(1.0, self.matrix, rows.T, lower=1).T
        return images

    def update(self, s: Vector, y: Vector, sy: float) -> None:
        if self.matrix is None:
            # Fortran order lets BLAS work in place.
            self.matrix = np.asfortranarray(np.eye(self.dim) * (sy / (y @ y)))
        hy = dsymv(1.0, self.matrix, y, lower=1)
        # H + (sy + y'Hy)/sy^2 ss' - (Hy s' + s Hy')/sy, as one symmetric rank-two update.
        v = (0.5 * (1.0 + (y @ hy) / sy) / sy) * s - hy / sy
        self.matrix = dsyr2(1.0, s, v, a=self.matrix, lower=1, overwrite_a=1)


class LimitedMetric:
    """L-BFGS: the last pairs only."""

    def __init__(self, dim: int, pairs: int = 30) -> None:
        self.pairs = pairs
        self.reset()

    def reset(self) -> None:
        self._s: list[Vector] = []
        self._y: list[Vector] = []
        self._rho: list[float] = []

    def apply(self, g: Vector) -> Vector:
        q = g.copy()
        if not self._s:
            return q
        alphas = []
        for s, y, rho in zip(reversed(self._s), reversed(self._y), reversed(self._rho)):
            alpha = rho * float(s @ q)
            q -= alpha * y
            alphas.append(alpha)
        y = self._y[-1]
        q *= 1.0 / (self._rho[-1] * float(y @ y))
        for s, y, rho, alpha in zip(self._s, self._y, self._rho, reversed(alphas)):
            q += (alpha - rho * float(y @ q)) * s
        return q

    def apply_rows(self, rows: Matrix) -> Matrix:
        return np.array([self.apply(row) for row in rows])

    def update(self, s: Vector, y: Vector, sy: float) -> None:
        self._s.append(s)
        self._y.append(y)
        self._rho.append(1.0 / sy)
        if len(self._s) > self.pairs:
            del self._s[0], self._y[0], self._rho[0]


class CuttingPlanes:
    """The latest gradients of the search, as linear pieces of a local model."""

    def __init__(self, dim: int, capacity: int) -> None:
        self.points: Matrix = np.empty((capacity, dim))
        self.gradients: Matrix = np.empty((capacity, dim))
        self.values: Vector = np.empty(capacity)
        self.capacity = capacity
        self.added = 0

    def add(self, point: Vector, value: float, gradient: Vector) -> None:
        slot = self.added % self.capacity
        self.points[slot] = point
        self.values[slot] = value
        self.gradients[slot] = gradient
        self.added += 1

    def errors(self, x: Vector, fx: float) -> Vector:
        """Return how far each piece lies from f at x (for a nonconvex f: in absolute value)."""
        count = min(self.added, self.capacity)
        offsets = x - self.points[:count]
        rise = np.einsum("ij,ij->i", self.gradients[:count], offsets)
        squares = np.einsum("ij,ij->i", offsets, offsets)
        return np.maximum(np.abs(fx - self.values[:count] - rise), _LOCALITY * squares)


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

    def __init__(self, dim: int, dense_limit: int = DENSE_LIMIT) -> None:
        self.metric: Metric = DenseMetric(dim) if dim <= dense_limit else LimitedMetric(dim)
        self.planes = CuttingPlanes(dim, min(dim + 10, MAX_PLANES))
        self.x: Vector = np.zeros(0)
        self.fx = math.inf
        self.g: Vector | None = None
        self.stuck = False
        self.length = math.inf
        self._scaled = False

    def restart(self, x: Vector, fx: float) -> None:
        """Continue from another point; the metric and the pieces are kept."""
        self.x, self.fx, self.g = x, fx, None
        self.stuck = False

    def step(
        self, oracle: CountedOracle, rng: np.random.Generator, seen: list[tuple[Vector, Vector]]
    ) -> bool:
        """Make one line search; append every (point, gradient) asked for to `seen`."""
        if self.g is None:
            self.g = self._look(oracle, self.x, self.fx, rng, seen)
        for attempt in range(MAX_NULL_STEPS + 1):
            p, slope = self._direction()
            if slope == 0.0:
                self.stuck = True
                return False
            trial = 1.0
            if not self._scaled:
                # The first step has no scale: do not leave the neighbourhood of the start.
                trial = min(1.0, max(1.0, float(np.abs(self.x).max())) / math.sqrt(float(p @ p)))
            y = self.x + trial * p
            fy = oracle.trial_value(y)
            if fy < self.fx + _ARMIJO * trial * slope:
                break
            if not self._scaled or attempt == MAX_NULL_STEPS or fy == math.inf:
                break
            # A null step: the model was wrong there, so tell it what f looks like.
            self._look(oracle, y, fy, rng, seen)
        return self._line_search(oracle, p, slope, trial, y, fy, rng, seen)

    def _direction(self) -> tuple[Vector, float]:
        g = self.g
        assert g is not None
        if self._scaled and self.planes.added > 1:
            errors = self.planes.errors(self.x, self.fx)
            rows = self.planes.gradients[: errors.size]
            images = self.metric.apply_rows(rows)
            weights = minimise_on_simplex(images @ rows.T, errors)
            p = -(weights @ images)
            slope = float(p @ (weights @ rows))
        else:
            p = -self.metric.apply(g)
            slope = float(p @ g)
        if math.isfinite(slope) and slope < 0:
            return p, slope
        self._forget()
        return -g, -float(g @ g)

    def _forget(self) -> None:
        """Start the model afresh: what it learned leads nowhere."""
        self.metric.reset()
        self.planes.added = 0
        self._scaled = False

    def _line_search(
        self,
        oracle: CountedOracle,
        p: Vector,
        slope: float,
        trial: float,
        y: Vector,
        fy: float,
        rng: np.random.Generator,
        seen: list[tuple[Vector, Vector]],
    ) -> bool:
        """Weak Wolfe search by bisection; the first trial has been evaluated already."""
        assert self.g is not None
        low, high = 0.0, math.inf
        best: tuple[float, Vector, float, Vector] | None = None
        for _ in range(_MAX_TRIALS):
            if fy < self.fx + _ARMIJO * trial * slope:
                gy = self._look(oracle, y, fy, rng, seen)
                best = (trial, y, fy, gy)
                if float(gy @ p) >= _CURVATURE * slope:
                    break
                low = trial
            else:
                high = trial
            trial = 0.5 * (low + high) if high < math.inf else 2.0 * low
            if high - low <= 1e-15 * high:
                break
            y = self.x + trial * p
            fy = oracle.trial_value(y)
        if best is None:
            close = 1e-8 * max(1.0, float(np.abs(self.x).max()))
            if fy == math.inf and trial * math.sqrt(float(p @ p)) <= close:
                oracle.value(y)  # not finite arbitrarily close to x: say so
            self._forget()
            self.stuck = True
            return False
        trial, y, fy, gy = best
        s, change = trial * p, gy - self.g
        sy = float(s @ change)
        if sy > 1e-300 and math.isfinite(sy):
            self.metric.update(s, change, sy)
            self._scaled = True
        self.length = trial * math.sqrt(float(p @ p))
        self.x, self.fx, self.g = y, fy, gy
        return True

    def _look(
        self,
        oracle: CountedOracle,
        y: Vector,
        fy: float,
        rng: np.random.Generator,
        seen: list[tuple[Vector, Vector]],
    ) -> Vector:
        g = gradient_near(oracle, y, rng, seen)
        self.planes.add(y, fy, g)
        return g


def gradient_near(
    oracle: CountedOracle,
    x: Vector,
    rng: np.random.Generator,
    seen: list[tuple[Vector, Vector]],
) -> Vector:
    """Return the gradient at x, or next to x where x sits on a kink: never a made-up one."""
    hair = 1e-12 * max(1.0, float(np.abs(x).max()))
    y = x
    for _ in range(8):
        try:
            g = oracle.gradient(y)
        except KinkError:
            y = x + hair * rng.standard_normal(x.size)
            hair *= 10.0
            continue
        seen.append((y, g))
        return g
    return oracle.gradient(y)
