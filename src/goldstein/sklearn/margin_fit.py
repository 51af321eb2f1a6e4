"""Fit one two-class machine: search, certificate, and a guaranteed search when the first one fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.api import minimize
from goldstein.certificates import GoldsteinCertificate
from goldstein.sklearn.margin_certificate import certificate_at
from goldstein.sklearn.margin_newton import LocalMinimum, minimise_margin
from goldstein.sklearn.margin_oracle import MarginOracle
from goldstein.sklearn.margin_problem import MarginProblem

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class MarginFit:
    """One fitted machine.

    Attributes
    ----------
    v : ndarray
        Coefficients, and the intercept last if there is one.
    value : float
        The mean objective.
    goldstein : GoldsteinCertificate
    near : NearCertificate or None
    iterations : int
    """

    v: Vector
    value: float
    goldstein: GoldsteinCertificate
    near: Any
    iterations: int


def fit_margin(
    problem: MarginProblem,
    *,
    eps: float,
    delta: float,
    seed: int,
    start: Vector | None = None,
    n_init: int = 1,
    max_calls: int | None = None,
    near: bool = True,
) -> MarginFit:
    """Return the best local minimiser of `n_init` searches, with its certificate."""
    found = _best_start(problem, eps, seed, start, n_init)
    oracle = MarginOracle(problem, 2.0 * delta)
    certificate = certificate_at(oracle, found, delta, seed)
    v, iterations = found.v, found.iterations
    if certificate is None or certificate.eps > eps:
        result = minimize(oracle, v, eps=eps, delta=delta, rng=seed, max_calls=max_calls)
        v, iterations = result.x, iterations + result.nit
        certificate = result.certificate
    return MarginFit(v, problem.value(v), certificate, None, iterations)


def _best_start(
    problem: MarginProblem, eps: float, seed: int, start: Vector | None, n_init: int
) -> LocalMinimum:
    rng = np.random.default_rng(seed)
    best = minimise_margin(problem, start=start, rng=rng, eps=eps)
    for _ in range(n_init - 1):
        # A path on few rows ends elsewhere; with luck these rows are clean.
        size = min(problem.rows, max(2 * problem.dim, problem.rows // 4, 2))
        few = problem.take(np.sort(rng.choice(problem.rows, size, replace=False)))
        other_start = minimise_margin(few, rng=rng, eps=eps).v
        other = minimise_margin(problem, start=other_start, rng=rng, eps=eps)
        if problem.value(other.v) < problem.value(best.v):
            best = other
    return best
