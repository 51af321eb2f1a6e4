"""Quasi-Newton search for functions with kinks (Lewis and Overton 2013): fast, without guarantee.

BFGS with a weak Wolfe line search works astonishingly well on functions with kinks. Nothing that is
proved rests on it: it proposes points, and its gradients are asked for again before they certify.
"""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.blas import dsymv, dsyr2

from goldstein.errors import KinkError
from goldstein.oracles import CountedOracle

Vector = NDArray[np.float64]
Matrix = NDArray[np.float64]

_ARMIJO = 1e-4
_CURVATURE = 0.5
_MAX_TRIALS = 40


class Metric(Protocol):
    """An approximation of the inverse Hessian."""

    def apply(self, g: Vector) -> Vector: ...

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

    def update(self, s: Vector, y: Vector, sy: float) -> None:
        self._s.append(s)
        self._y.append(y)
        self._rho.append(1.0 / sy)
        if len(self._s) > self.pairs:
            del self._s[0], self._y[0], self._rho[0]


class QuasiNewton:
    """A resumable descent: one call of `step` is one line search.

    Attributes
    ----------
    x, fx, g : current point, value and gradient (g None before the first step)
    stuck : no descent was found from here
    length : length of the last step
    """

    def __init__(self, metric: Metric) -> None:
        self.metric = metric
        self.x: Vector = np.zeros(0)
        self.fx = math.inf
        self.g: Vector | None = None
        self.stuck = False
        self.length = math.inf
        self._scaled = False

    def restart(self, x: Vector, fx: float) -> None:
        """Continue from another point; the metric is kept."""
        self.x, self.fx, self.g = x, fx, None
        self.stuck = False

    def step(
        self, oracle: CountedOracle, rng: np.random.Generator, seen: list[tuple[Vector, Vector]]
    ) -> bool:
        """Make one line search; append every (point, gradient) asked for to `seen`."""
        if self.g is None:
            self.g = gradient_near(oracle, self.x, rng, seen)
        g = self.g
        p = self.metric.apply(g)
        np.negative(p, out=p)
        slope = float(p @ g)
        if not (math.isfinite(slope) and slope < 0):
            self.metric.reset()
            self._scaled = False
            p, slope = -g, -float(g @ g)
            if slope == 0.0:
                self.stuck = True
                return False
        trial = 1.0
        if not self._scaled:
            # The first step has no scale: do not leave the neighbourhood of the start.
            trial = min(1.0, max(1.0, float(np.abs(self.x).max())) / math.sqrt(float(p @ p)))
        low, high = 0.0, math.inf
        best: tuple[float, Vector, float, Vector] | None = None
        for _ in range(_MAX_TRIALS):
            y = self.x + trial * p
            fy = oracle.trial_value(y)
            if not fy < self.fx + _ARMIJO * trial * slope:
                high = trial
            else:
                gy = gradient_near(oracle, y, rng, seen)
                best = (trial, y, fy, gy)
                if float(gy @ p) >= _CURVATURE * slope:
                    break
                low = trial
            trial = 0.5 * (low + high) if high < math.inf else 2.0 * low
            if high - low <= 1e-15 * high:
                break
        if best is None:
            if fy == math.inf:
                oracle.value(y)  # not finite arbitrarily close to x: say so
            self.stuck = True
            return False
        trial, y, fy, gy = best
        s, change = trial * p, gy - g
        sy = float(s @ change)
        if sy > 1e-300 and math.isfinite(sy):
            self.metric.update(s, change, sy)
            self._scaled = True
        self.length = trial * math.sqrt(float(p @ p))
        self.x, self.fx, self.g = y, fy, gy
        return True


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
