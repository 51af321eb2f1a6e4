"""Solvers as OptiProfiler calls them: a function that it counts, and a start.

Each has 200 evaluations per variable: values, and gradients where there are any. OptiProfiler
counts values alone: a gradient is counted by asking for the value at its point once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import optimize

import goldstein as gs
import goldstein.scipy

Vector = Any  # a NumPy array of float64
Solver = Callable[[Callable[[Vector], float], Vector], Vector]

#: Evaluations per variable.
EVALUATIONS = 200

#: eps, delta and what others call gtol: no search ends before the finest tolerance of the scores.
LEVEL = 1e-9


# Values only.


def _by_scipy(method: Any, **options: Any) -> Solver:
    def solve(fun: Callable[[Vector], float], x0: Vector) -> Vector:
        limit = {"maxfev": EVALUATIONS * x0.size}
        return optimize.minimize(fun, x0, method=method, options={**options, **limit}).x

    return solve


def cma_es(fun: Callable[[Vector], float], x0: Vector) -> Vector:
    import cma

    spread = 0.3 * max(1.0, float(np.abs(x0).max()))
    options = {"verbose": -9, "seed": 1, "maxfevals": EVALUATIONS * x0.size}
    return cma.fmin(fun, x0, spread, options)[0]


def _py_bobyqa(noisy: bool) -> Solver:
    def solve(fun: Callable[[Vector], float], x0: Vector) -> Vector:
        import pybobyqa

        found = pybobyqa.solve(
            fun, x0, maxfun=EVALUATIONS * x0.size, objfun_has_noise=noisy, do_logging=False
        )
        return found.x

    return solve


def values_only(noisy: bool) -> dict[str, Solver]:
    return {
        # The default confidence; to give it says that there are values only, nothing to trace.
        "goldstein": _by_scipy(goldstein.scipy.method, confidence=0.95),
        "Nelder-Mead": _by_scipy("Nelder-Mead"),
        "Powell": _by_scipy("Powell"),
        "COBYQA": _by_scipy("COBYQA"),
        "CMA-ES": cma_es,
        "Py-BOBYQA": _py_bobyqa(noisy),
    }


# With gradients.


class Counted:
    """Values and gradients of a problem of OptiProfiler, each of them one evaluation."""

    def __init__(self, fun: Any) -> None:
        self.fun = fun
        self.derivative = fun.__self__.grad

    def grad(self, x: Vector) -> Vector:
        self.fun(x)
        return self.derivative(x)

    def both(self, x: Vector) -> tuple[float, Vector]:
        return self.fun(x), self.grad(x)


def _ours(method: str) -> Solver:
    def solve(fun: Callable[[Vector], float], x0: Vector) -> Vector:
        f, most = Counted(fun), EVALUATIONS * x0.size
        return gs.minimize(
            f.fun, x0, f.grad, eps=LEVEL, delta=LEVEL, method=method, rng=0, max_calls=most
        ).x

    return solve


def _smooth(method: str, **options: Any) -> Solver:
    def solve(fun: Callable[[Vector], float], x0: Vector) -> Vector:
        f = Counted(fun)
        return optimize.minimize(f.both, x0, jac=True, method=method, options=options).x

    return solve


def weak_wolfe_bfgs(fun: Callable[[Vector], float], x0: Vector) -> Vector:
    """BFGS with bisection to a weak Wolfe step (Lewis and Overton, Math. Programming 141, 2013)."""
    f, most = Counted(fun), EVALUATIONS * x0.size
    x, H, scaled = x0.copy(), np.eye(x0.size), False
    value, g = f.both(x)
    calls = 2
    while calls < most and np.isfinite(g).all():
        p = -H @ g
        slope = float(g @ p)
        if not slope < 0.0:
            break
        low, high, t = 0.0, np.inf, 1.0
        while calls < most:
            trial = x + t * p
            new, ahead = f.fun(trial), g
            calls += 1
            if not new < value + 1e-4 * t * slope:
                high = t
            else:
                ahead = f.grad(trial)
                calls += 1
                if ahead @ p >= 0.9 * slope:
                    break
                low = t
            t = 2.0 * low if high == np.inf else 0.5 * (low + high)
            if t in (low, high) or t < 1e-300:
                return x
        else:
            return x
        s, y = trial - x, ahead - g
        x, value, g = trial, new, ahead
        curved = float(s @ y)
        if not scaled:
            H, scaled = H * (curved / float(y @ y)), True
        V = np.eye(x.size) - np.outer(s, y) / curved
        H = V @ H @ V.T + np.outer(s, s) / curved
    return x


def with_gradients() -> dict[str, Solver]:
    most = {"maxiter": 10**6}
    return {
        "auto": _ours("auto"),
        "ralg": _ours("ralg"),
        "weak-Wolfe BFGS": weak_wolfe_bfgs,
        "BFGS": _smooth("BFGS", gtol=LEVEL, **most),
        "L-BFGS-B": _smooth("L-BFGS-B", gtol=LEVEL, ftol=1e-15, maxfun=10**6, **most),
        "CG": _smooth("CG", gtol=LEVEL, **most),
        "SLSQP": _smooth("SLSQP", ftol=1e-15, **most),
        "TNC": _smooth("TNC", ftol=1e-15, maxfun=10**6),
    }
