"""Fit one two-class machine: search, certificate, and a guaranteed search if that fails."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from goldstein.api import certify, minimize
from goldstein.api.inputs import smallest_delta
from goldstein.calculus.near import near_certificate
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.models.margin_problem import MarginProblem
from goldstein.models.margin_svm import MarginSVM
from goldstein.sklearn.margin_certificate import (
    goldstein_at,
    goldstein_by_scaling,
    near_at,
)
from goldstein.sklearn.margin_finish import DENSE_LIMIT
from goldstein.sklearn.margin_newton import MOST_ON_KINKS, LocalMinimum, minimise_margin
from goldstein.sklearn.margin_rowspace import row_space
from goldstein.sklearn.margin_thinning import thinned

Vector = NDArray[np.float64]

#: Rows times variables beyond which the guaranteed search gets few calls unless told otherwise.
LARGE = 10**8
CALLS_WHEN_LARGE = 200

#: Numbers of points tried, one after the other, where many rows share a kink.
SCALINGS = (2, 4, 8, 16)


@dataclass(frozen=True)
class MarginFit:
    """One fitted machine.

    Attributes
    ----------
    v : ndarray
        Coefficients, and the intercept last if there is one.
    value : float
        The mean objective.
    goldstein : GoldsteinCertificate or NearCertificate
        What shows Goldstein stationarity; a near certificate is the stronger claim.
    near : NearCertificate or None
    iterations : int
    """

    v: Vector
    value: float
    goldstein: GoldsteinCertificate | NearCertificate
    near: NearCertificate | None
    iterations: int


def fit_margin(
    model: MarginSVM,
    *,
    eps: float,
    delta: float,
    seed: int,
    start: Vector | None = None,
    n_init: int = 1,
    max_calls: int | None = None,
    near: bool = True,
) -> MarginFit:
    """Return the best local minimiser of `n_init` searches, with its certificates."""
    problem = model.problem
    model.neighbourhood = 2.0 * delta
    found = _best_start(problem, eps, delta, seed, start, n_init)
    places = _places(problem, found, eps, delta)
    if near:
        for place in (p for p in places if p.active.size <= MOST_ON_KINKS):
            proof = _good(near_at(model, place, eps, delta), eps, delta)
            if proof is not None:
                return MarginFit(place.v, problem.value(place.v), proof, proof, found.iterations)
    goldstein = _goldstein(model, found, places, eps, delta, seed)
    if goldstein is None:
        return _guaranteed_fit(model, found, eps, delta, seed, max_calls, near)
    proof = None
    if near and _is_searchable(problem, goldstein.x, delta):
        # Rows on their kinks depend on each other: search.
        proof = _good(near_certificate(model, goldstein, delta, eps, seed=seed), eps, delta)
    v = goldstein.x.copy()
    return MarginFit(v, problem.value(v), goldstein, proof, found.iterations)


def _places(
    problem: MarginProblem, found: LocalMinimum, eps: float, delta: float
) -> list[LocalMinimum]:
    """Return the points to certify, best first: off most kinks, and on all of them."""
    if found.active.size * problem.dim > DENSE_LIMIT:
        return []
    few = thinned(problem, found, eps, delta)
    return [place for place in (few, found) if place is not None]


def _goldstein(
    model: MarginSVM,
    found: LocalMinimum,
    places: list[LocalMinimum],
    eps: float,
    delta: float,
    seed: int,
) -> GoldsteinCertificate | None:
    """Return a verified certificate that is good enough, or None."""
    for place in places:
        certificate = goldstein_at(model, place, delta, seed)
        if certificate is not None and certificate.eps <= eps and certificate.verify(model).ok:
            return certificate
    for points in SCALINGS if found.active.size == 0 else ():
        certificate = goldstein_by_scaling(model, found.v, delta, points, seed)
        if certificate is not None and certificate.eps <= eps and certificate.verify(model).ok:
            return certificate
    return None


def _is_searchable(problem: MarginProblem, v: Vector, delta: float) -> bool:
    """True when a search for a pivot is affordable: few enough kinks are within reach."""
    if problem.rows * problem.dim > LARGE:
        return False
    distance = np.abs(problem.product(v) - problem.shift - problem.rho)
    return int((distance <= delta * problem.row_norms).sum()) <= MOST_ON_KINKS


def _good(proof: NearCertificate | None, eps: float, delta: float) -> NearCertificate | None:
    return proof if proof is not None and proof.eps <= eps and proof.delta <= delta else None


def _guaranteed_fit(
    model: MarginSVM,
    found: LocalMinimum,
    eps: float,
    delta: float,
    seed: int,
    max_calls: int | None,
    near: bool,
) -> MarginFit:
    if max_calls is None and model.problem.rows * model.problem.dim > LARGE:
        max_calls = CALLS_WHEN_LARGE
    # A search that ran off to where float64 cannot see the ball is begun again at the origin.
    start = found.v if delta >= smallest_delta(found.v) else np.zeros_like(found.v)
    result = minimize(model, start, eps=eps, delta=delta, rng=seed, max_calls=max_calls)
    goldstein = result.certificate
    if goldstein is None:
        goldstein = certify(model, result.x, delta=delta, eps=eps, rng=seed, max_calls=max_calls)
    proof = None
    if near and _is_searchable(model.problem, result.x, delta):
        proof = _good(near_certificate(model, goldstein, delta, eps, seed=seed), eps, delta)
    return MarginFit(
        result.x, model.value(result.x), goldstein, proof, found.iterations + result.nit
    )


def _best_start(
    problem: MarginProblem,
    eps: float,
    delta: float,
    seed: int,
    start: Vector | None,
    n_init: int,
) -> LocalMinimum:
    span = row_space(problem)
    if span is not None:
        begin = None if start is None else span.coordinates(start)
        found = _best_start(span.problem, eps, delta, seed, begin, n_init)
        return replace(found, v=span.lift(found.v))
    rng = np.random.default_rng(seed)
    best = minimise_margin(problem, start=start, rng=rng, eps=eps, delta=delta)
    for _ in range(n_init - 1):
        # A path on few rows ends elsewhere; with luck these rows are clean.
        size = min(problem.rows, max(2 * problem.dim, problem.rows // 4, 2))
        few = problem.take(np.sort(rng.choice(problem.rows, size, replace=False)))
        other_start = minimise_margin(few, rng=rng, eps=eps, delta=delta).v
        other = minimise_margin(problem, start=other_start, rng=rng, eps=eps, delta=delta)
        if problem.value(other.v) < problem.value(best.v):
            best = other
    return best
