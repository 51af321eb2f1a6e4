"""SciPy's BFGS and L-BFGS-B, with the tolerances their users would set for the same question."""

from __future__ import annotations

import warnings

import numpy as np
from benchmarks.answer import Answer
from benchmarks.recorder import Recorder
from scipy.optimize import minimize


def _solve(oracle: Recorder, x0: np.ndarray, method: str, options: dict[str, float]) -> Answer:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = minimize(oracle.both, x0, jac=True, method=method, options=options)
    return Answer(np.array(found.x), str(found.message))


def bfgs(oracle: Recorder, x0: np.ndarray, eps: float, delta: float, seed: int) -> Answer:
    return _solve(oracle, x0, "BFGS", {"gtol": eps, "norm": 2, "maxiter": 10**6})


def lbfgsb(oracle: Recorder, x0: np.ndarray, eps: float, delta: float, seed: int) -> Answer:
    limits = {"gtol": eps, "ftol": 1e-15, "maxiter": 10**6, "maxfun": 10**6}
    return _solve(oracle, x0, "L-BFGS-B", limits)
