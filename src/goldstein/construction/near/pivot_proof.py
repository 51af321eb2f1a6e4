"""From a Goldstein certificate to a near certificate: find a pivot, prove what holds there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from goldstein.calculus.expression import Expression
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import to_fractions
from goldstein.checker.sides import Point
from goldstein.construction.near.curved_kinks import Surface
from goldstein.construction.near.evidence import Evidence, additive_evidence, generic_evidence
from goldstein.construction.near.flats import Flat
from goldstein.construction.near.kinks import floats, local_model
from goldstein.construction.near.newton import DENSE_DIM, curvature
from goldstein.construction.near.pivot_search import SLACK, PivotSearch
from goldstein.errors import NotCertifiableError, OutOfBudget
from goldstein.numerics.budget import Budget
from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.streams import stream

#: Newton steps below the spacing of floats.
REFINEMENTS = 4

#: Random directions tried at a pivot, beside a few.
RANDOM_DIRECTIONS = 200

#: Steps of a search unless told otherwise; most of them are gradients in float64.
MAX_WORK = 20_000


def near_certificate(
    fun: Expression,
    certificate: GoldsteinCertificate,
    delta: float,
    eps: float,
    *,
    seed: int = 0,
    deadline: float | None = None,
    max_work: int | None = MAX_WORK,
) -> NearCertificate | None:
    """Turn evidence of Goldstein stationarity into a proof of near stationarity.

    Parameters
    ----------
    fun : Expression
        The function; its kinks are known.
    certificate : GoldsteinCertificate
        Points and weights; only a hint where to look.
    delta : float
        The pivot must lie within this distance of `certificate.x`.
    eps : float
        The search stops at the first proof at least this good.
    seed : int
        Seed of the search for directions.
    deadline : float, optional
        When to stop, as `time.perf_counter()` tells the time.
    max_work : int or None
        Steps after which to stop: gradients in float64, exact projections, directions in a proof.

    Returns
    -------
    NearCertificate or None
        The best proof found with `delta` kept. Its `eps` may exceed the requested one: compare.
        None when no pivot was found. `search_near` also says why.

    Raises
    ------
    NotCertifiableError
        When the function contains parts that are known in float64 only.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> F = sum(abs(Variable(1)))
    >>> around = GoldsteinCertificate.from_gradients(
    ...     np.array([0.05]), np.array([[0.1], [-0.01]]), np.array([[1.0], [-1.0]]))
    >>> near_certificate(F, around, delta=0.1, eps=0.01)
    <NearCertificate (0, 0.05)-near stationary, 2 subgradients at the pivot, certified>
    """
    return search_near(
        fun, certificate, delta, eps, seed=seed, deadline=deadline, max_work=max_work
    ).certificate


@dataclass(frozen=True)
class NearSearch:
    """What a search for a near certificate ended with.

    Attributes
    ----------
    certificate : NearCertificate or None
        The best proof found.
    note : str
        "proved", or why nothing as good as requested was proved.
    """

    certificate: NearCertificate | None
    note: str


def search_near(
    fun: Expression,
    certificate: GoldsteinCertificate,
    delta: float,
    eps: float,
    *,
    seed: int = 0,
    deadline: float | None = None,
    max_work: int | None = MAX_WORK,
) -> NearSearch:
    """Search as `near_certificate` does, and say how the search ended.

    Examples
    --------
    >>> from goldstein.calculus import Variable, abs, sum
    >>> F = sum(abs(Variable(1)))
    >>> around = GoldsteinCertificate.from_gradients(
    ...     np.array([0.05]), np.array([[0.1], [-0.01]]), np.array([[1.0], [-1.0]]))
    >>> search_near(F, around, delta=0.1, eps=0.01).note
    'proved'
    >>> search_near(F, around, delta=0.01, eps=0.01).note
    'not proved: the best pivot found has eps = 1, asked for 0.01'
    """
    budget = Budget(deadline, max_work)
    prover = _Prover(fun, certificate, float(delta), float(eps), seed, budget)
    stopped = ""
    try:
        with np.errstate(all="ignore"):  # what overflows is no pivot, and no proof rests on it
            prover.run()
    except OutOfBudget as limit:
        stopped = f"the search for a pivot {limit}"
    best = prover.best
    if best is not None and best.eps <= eps:
        return NearSearch(best, "proved")
    if best is None:
        why = stopped or f"no pivot was found within delta = {delta:g}"
    else:
        why = f"{stopped}; t" if stopped else "t"
        why += f"he best pivot found has eps = {best.eps:.3g}, asked for {eps:g}"
    return NearSearch(best, f"not proved: {why}")


class _Prover:
    """Proofs at the candidates of a search; the best is kept."""

    def __init__(
        self,
        fun: Expression,
        certificate: GoldsteinCertificate,
        delta: float,
        eps: float,
        seed: int,
        budget: Budget,
    ) -> None:
        self.fun, self.delta, self.eps, self.budget = fun, delta, eps, budget
        self.search = PivotSearch(fun, certificate, delta, eps, budget)
        self.form = self.search.form
        self.rng = stream(seed, 0, "near")
        self.best: NearCertificate | None = None

    def run(self) -> None:
        """Try candidates until a proof is as good as asked for."""
        for point in self.search.single_points():
            if self._keep(self.prove(to_fractions(point))):
                return
        for surfaces, place in self.search.curved_points():
            if any(self._keep(proof) for proof in self._on_surfaces(surfaces, place)):
                return
        for flat, point in self.search.candidates():
            if self.best is not None and not self.search.is_hopeful(flat, point, self.best.eps):
                continue
            pivot = flat.project_exactly(point, SLACK * self.delta, self.budget)
            if pivot is None:
                continue
            proof = self.prove(pivot)
            if self._keep(proof) or self._keep(self.refined(flat, proof)):
                return

    def _keep(self, proof: NearCertificate | None) -> bool:
        """Keep a proof that is better; return whether it is as good as asked for."""
        if proof is not None and (self.best is None or proof.eps < self.best.eps):
            self.best = proof
        return self.best is not None and self.best.eps <= self.eps

    def _on_surfaces(
        self, surfaces: list[Surface], place: Vector
    ) -> Iterator[NearCertificate | None]:
        """Yield proofs next to a point of curved kinks: at rational points, or else in a box."""
        curved = self.search.curved
        if all(node.rational for node in self.form.nodes):
            for pivot in curved.exactly(surfaces, place):
                yield self.prove(pivot)
        for box in curved.boxes(surfaces, place):
            proof = self.prove(to_fractions(place), box)
            yield proof
            if proof is not None:
                return

    def prove(
        self, pivot: list[Fraction], box: tuple[Any, Any] | None = None
    ) -> NearCertificate | None:
        """Return the best proof at a pivot, perhaps one in a box around it; or None."""
        # Whoever checks the proof needs as long again.
        budget = self.budget.half()
        try:
            here = self.form.examine(pivot, box=box)
            evidence = self.evidence(here)
            if evidence is None or not np.isfinite(evidence.directions).all():
                return None
            used = evidence.weights > 0
            directions, place = evidence.directions[used], tuple(pivot)
            here = here if box else self.form.examine(place, len(directions))
            limits = here.limits(directions, budget.spend)
            state = partial(
                NearCertificate.from_limits, self.search.x, place, directions, limits=limits,
                box=box,
            )  # fmt: skip
            proof = state(evidence.weights[used])
            weights = self._better_weights(proof)
            if weights is not None and weights.any():
                again = state(weights)
                proof = again if again.eps < proof.eps else proof
        except NotCertifiableError:
            return None
        return proof if proof.delta <= self.delta else None

    def _better_weights(self, proof: NearCertificate) -> Vector | None:
        """Weights for the proved gradients, which are more accurate than those of the search."""
        if 0.0 < proof.eps < 1e-9 and self.form.program.is_small():
            # Weights that are simple fractions often cancel the gradients exactly.
            return _simple(proof.weights)
        if proof.eps <= self.eps:
            return None
        weights = min_norm_weights(proof.gradients)
        reached = float(np.linalg.norm(weights @ proof.gradients))
        return weights if reached < 0.9 * proof.eps else None

    def refined(self, flat: Flat, proof: NearCertificate | None) -> NearCertificate | None:
        """Improve a pivot by Newton steps below the spacing of floats, as long as that helps.

        Where the curvature is large, even neighbouring floats have gradients far apart; a rational
        pivot may lie between them.
        """
        for _ in range(REFINEMENTS):
            if proof is None or proof.eps <= self.eps or flat.free > DENSE_DIM:
                return proof
            pieces = self.form.examine(proof.exact_pivot).pieces
            tangent = flat.tangent
            slope = partial(self.search.slope_along, flat, proof.pivot, pieces)
            share = proof.weights / proof.weights.sum()
            derivative = curvature(slope, flat.free, self.delta)
            if not (derivative.any() and np.isfinite(derivative).all()):
                return proof
            left, values, right = np.linalg.svd(derivative)
            kept = values > 1e-12 * values[0]
            rest = left[:, kept].T @ (tangent.T @ (share @ proof.gradients))
            step = -tangent @ (right[kept].T @ (rest / values[kept]))
            if not np.isfinite(step).all():
                return proof
            base = [q + Fraction(float(s)) for q, s in zip(proof.exact_pivot, step)]
            exact = flat.project_exactly(base, SLACK * self.delta, self.budget)
            better = None if exact is None else self.prove(exact)
            if better is None or not better.eps < 0.5 * proof.eps:
                return proof
            proof = better
        return proof

    def evidence(self, here: Point) -> Evidence | None:
        """Search directions whose limits of gradients nearly cancel."""
        kinks, point = self.form.active(here), floats(here.y)
        hints = self.search.points - point
        if self.form.is_additive(kinks, curved=True):
            model = local_model(self.form, here)
            if not model.kinks:
                return Evidence(np.ones((1, point.size)), np.ones(1), 0.0)
            return additive_evidence(model, hints, self.eps, self.rng, self.budget)
        radius = float(np.linalg.norm(hints, axis=1).max(initial=0.0)) or 1.0
        more = self.rng.standard_normal((min(4 * point.size, RANDOM_DIRECTIONS) + 16, point.size))
        more *= radius / np.sqrt(point.size)
        return generic_evidence(
            self.form, here, hints, more, eps=self.eps, rng=self.rng, budget=self.budget
        )


def _simple(weights: Vector) -> Vector:
    """Return integers in the ratio of nearby simple fractions."""
    fractions = [Fraction(float(w)).limit_denominator(48) for w in weights]
    whole = math.lcm(*(f.denominator for f in fractions))
    answer = np.array([float(f * whole) for f in fractions])
    return answer if answer.any() and np.isfinite(answer).all() else weights


__all__ = ["MAX_WORK", "NearSearch", "near_certificate", "search_near"]
