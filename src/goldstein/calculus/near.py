"""From a Goldstein certificate to a near certificate: find a pivot, prove what holds there."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.curved import CurvedKinks, Surface
from goldstein.calculus.expression import Expression, Pieces, Vector
from goldstein.calculus.kinks import Examination, KinkForm
from goldstein.calculus.local_model import is_additive, local_model
from goldstein.calculus.shortest import (
    Evidence,
    additive_evidence,
    box_shares,
    generic_evidence,
)
from goldstein.calculus.stationary import NEWTON_DIM, curvature, stationary
from goldstein.calculus.transport import Equation, Flat, KinkTable
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.certificates.near import NearCertificate
from goldstein.errors import NotCertifiableError
from goldstein.numerics.exact import nearest_float
from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.rounding import distance_upper
from goldstein.numerics.streams import stream

Matrix = NDArray[np.float64]

#: Rounds of adding kinks that a projection crossed.
REPAIRS = 12

#: Kinks added or dropped, one by one, from one start.
EXCHANGES = 40

#: Newton steps below the spacing of floats.
REFINEMENTS = 4


def near_certificate(
    fun: Expression,
    certificate: GoldsteinCertificate,
    delta: float,
    eps: float,
    *,
    seed: int = 0,
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

    Returns
    -------
    NearCertificate or None
        The best proof found with `delta` kept. Its `eps` may exceed the requested one: compare.
        None when no pivot was found.

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
    search = _Search(fun, certificate, float(delta), float(eps), seed)
    with np.errstate(all="ignore"):  # what overflows is no pivot, and no proof rests on it
        return search.best()


class _Search:
    def __init__(
        self,
        fun: Expression,
        certificate: GoldsteinCertificate,
        delta: float,
        eps: float,
        seed: int,
    ) -> None:
        self.fun, self.delta, self.eps = fun, delta, eps
        self.form: KinkForm = fun.kink_form()
        self.table = KinkTable(self.form)
        self.curved = CurvedKinks(self.form)
        self.x: Vector = certificate.x
        used = certificate.weights > 0
        self.points: Matrix = certificate.points[used]
        weights = certificate.weights[used]
        self.mean: Vector = (weights / weights.sum()) @ self.points
        self.rng = stream(seed, 0, "near")
        self._tried: set[Any] = set()
        if not fun.is_exact:
            raise NotCertifiableError(
                "the function contains a LinearOperator or user code, known in float64 only; pass "
                "the matrix, or write the function with atoms, to get a near certificate."
            )

    def best(self) -> NearCertificate | None:
        """Return the best proof found, the first that is good enough."""
        best: NearCertificate | None = None
        for place in self.curved_pivots():
            proof = self.prove(place)
            if proof is not None and (best is None or proof.eps < best.eps):
                best = proof
            if best is not None and best.eps <= self.eps:
                return best
        for flat, point in self.pivots():
            if best is not None and not self.hopeful(flat, point, best.eps):
                continue
            pivot = flat.project_exactly(point)
            if pivot is None:
                continue
            proof = self.refined(flat, self.prove(pivot))
            if proof is not None and (best is None or proof.eps < best.eps):
                best = proof
            if best is not None and best.eps <= self.eps:
                break
        return best

    # --- where to look -------------------------------------------------------------------------

    def pivots(self) -> Iterator[tuple[Flat, Vector]]:
        """Yield candidates: flats, and points of them within delta of x."""
        for equations, base in self._starts():
            for flat, point in self._exchanges(equations, base):
                key = (tuple(sorted(e.key for e in flat.equations)), point.round(12).tobytes())
                if key in self._tried:
                    continue
                self._tried.add(key)
                yield flat, point

    def curved_pivots(self) -> Iterator[list[Fraction]]:
        """Yield exact points within delta of x where curved kinks meet."""
        if not self.curved.are_there:
            return
        tried = set()
        for surfaces, base in self._curved_starts():
            kept = self.curved.independent(surfaces, base)
            point = self.curved.meeting(kept, base) if kept else None
            if point is None or not self._inside(point):
                continue
            for place in (self.curved.settled(kept, point, self.delta), point):
                key = (frozenset(kept), place.round(12).tobytes())
                if self._inside(place) and key not in tried:
                    tried.add(key)
                    yield from self.curved.exactly(kept, place)

    def _curved_starts(self) -> Iterator[tuple[list[Surface], Vector]]:
        straddled = self.curved.between(self.points)
        for base in (self.mean, self.x):
            yield straddled, base
        for part in (1.0, 0.1, 0.01):
            for base in (self.mean, self.x):
                yield self.curved.close(base, part * self.delta), base

    def hopeful(self, flat: Flat, point: Vector, bound: float) -> bool:
        """True unless the gradient along the flat alone exceeds what is proved already."""
        gradient = self.form.float_gradient(point, self.form.float_pieces(point))
        return float(np.linalg.norm(flat.tangent.T @ gradient)) < bound

    def _starts(self) -> Iterator[tuple[list[Equation], Vector]]:
        gaps = np.array([self.table.sides(y) for y in self.points])
        mixed = np.flatnonzero((gaps > 0).any(axis=0) & (gaps <= 0).any(axis=0))
        straddled = [self.table.equation(int(i)) for i in mixed] + self.table.grouped(self.points)
        straddled = [e for e in straddled if e.row]
        for base in (self.mean, self.x):
            yield straddled, base
        for base in (self.mean, self.x):
            for part in (1.0, 0.1, 0.01):
                yield self._close(base, part * self.delta), base
        yield [], self.x

    def _close(self, base: Vector, radius: float) -> list[Equation]:
        gaps = np.abs(self.table.sides(base))
        # |gap| <= radius |row| needs the row; a generous float bound of all gaps comes first.
        order = np.argsort(gaps, kind="stable")[: 4 * base.size]
        close = []
        for i in order.tolist():
            equation = self.table.equation(i)
            length = math.hypot(*(nearest_float(a) for _, a in equation.row))
            if equation.row and gaps[i] <= radius * length:
                close.append(equation)
        return close

    def _exchanges(self, equations: list[Equation], base: Vector) -> Iterator[tuple[Flat, Vector]]:
        """Walk from flat to flat: add the kink that is met, drop the kinks that are not needed."""
        placed = self._repaired(equations, base)
        if placed is None:
            return
        flat, point = placed
        for _ in range(EXCHANGES):
            target = self._smooth_step(flat, point)
            crossing, stop = self._first_crossing(flat, point, target)
            if crossing is not None:
                flat = Flat([*flat.equations, crossing], point.size, stop)
                point = flat.project(stop)
                if not np.isfinite(point).all():
                    return
                continue
            point = target
            yield flat, point
            needed = self._needed(flat, point)
            if len(needed) == len(flat.equations):
                return
            flat = Flat(needed, point.size, point)

    def _repaired(self, equations: list[Equation], base: Vector) -> tuple[Flat, Vector] | None:
        """Project on the kinks; kinks crossed on the way from the points are added."""
        here = list(equations)
        for _ in range(REPAIRS):
            flat = Flat(here, base.size, base)
            point = flat.project(base)
            if not np.isfinite(point).all():
                return None
            crossed = self._crossed(point, {e.key for e in here})
            if not crossed:
                break
            here = here + crossed
        return (flat, point) if self._inside(point) else None

    def _crossed(self, point: Vector, known: set[tuple[int, int, int]]) -> list[Equation]:
        gaps = np.array([self.table.sides(y) for y in self.points])
        at = self.table.sides(point)
        same = (gaps > 0).all(axis=0) | (gaps <= 0).all(axis=0)
        scale = 1e-12 * (1.0 + np.abs(gaps).max(axis=0, initial=0.0))
        wrong = same & (np.sign(gaps[0]) * at < -scale)
        found = [self.table.equation(int(i)) for i in np.flatnonzero(wrong)[: 2 * point.size]]
        found += self.table.grouped(np.vstack([self.points, point]))
        return [e for e in found if e.row and e.key not in known]

    def _inside(self, point: Vector) -> bool:
        return distance_upper(point, self.x) <= self.delta * (1.0 + 1e-12)

    def _first_crossing(
        self, flat: Flat, point: Vector, target: Vector
    ) -> tuple[Equation | None, Vector]:
        """Return the first kink between two points of a flat, and where it is met."""
        before, after = self.table.sides(point), self.table.sides(target)
        scale = 1e-11 * (1.0 + np.abs(before))
        crossed = np.flatnonzero((before * after < 0) & (np.abs(before) > scale))
        known = {e.key for e in flat.equations}
        shares = np.abs(before[crossed]) / np.abs(before[crossed] - after[crossed])
        for i in np.argsort(shares).tolist():
            equation = self.table.equation(int(crossed[i]))
            if equation.row and equation.key not in known:
                return equation, point + shares[i] * (target - point)
        return None, target

    def _smooth_step(self, flat: Flat, point: Vector) -> Vector:
        """Return a stationary point of the present piece along the flat, kept within the ball."""
        tangent = flat.tangent
        if tangent.shape[1] == 0:
            return point
        slope = partial(self._slope, point, tangent, self.form.float_pieces(point))
        room = max(self.delta - float(np.linalg.norm(point - self.x)), 0.0)
        best = stationary(slope, np.zeros(tangent.shape[1]), self.delta + room)
        share = 1.0
        while share > 1e-3:
            candidate = flat.project(point + share * (tangent @ best))
            if self._inside(candidate):
                return candidate
            share *= 0.5
        return point

    def _slope(self, point: Vector, tangent: Matrix, pieces: Pieces, z: Vector) -> Vector:
        """The gradient of the given pieces along a flat, at a displaced point."""
        answer: Vector = tangent.T @ self.form.float_gradient(point + tangent @ z, pieces)
        return answer

    def _needed(self, flat: Flat, point: Vector) -> list[Equation]:
        """Return the equations whose kinks the shortest box combination uses in the interior."""
        if not flat.equations or any(e.key[0] < 0 for e in flat.equations):
            return flat.equations
        exact = flat.project_exactly(point)
        if exact is None:
            return flat.equations
        try:
            found = self.form.examine(exact)
            kinks = self.form.active_kinks(found)
            if not is_additive(kinks):
                return flat.equations
            shares = box_shares(local_model(found))
        except NotCertifiableError:
            return flat.equations
        inner = {
            (id(kink.node), kink.entry, kink.level)
            for kink, share in zip(kinks, shares)
            if 1e-7 < share < 1.0 - 1e-7
        }
        nodes = self.table._elementwise
        return [e for e in flat.equations if (id(nodes[e.key[0]]), *e.key[1:]) in inner]

    # --- what holds there ------------------------------------------------------------------------

    def prove(self, pivot: list[Fraction]) -> NearCertificate | None:
        """Return the best proof at a pivot, or None."""
        try:
            evidence = self.evidence(self.form.examine(pivot))
            if evidence is None or not np.isfinite(evidence.directions).all():
                return None
            proof = NearCertificate.prove(
                self.fun, self.x, pivot, evidence.directions, evidence.weights
            )
            weights = self._better_weights(proof)
            if weights is not None:
                again = NearCertificate.prove(self.fun, self.x, pivot, proof.directions, weights)
                proof = again if again.eps < proof.eps else proof
        except NotCertifiableError:
            return None
        return proof if proof.delta <= self.delta else None

    def _better_weights(self, proof: NearCertificate) -> Vector | None:
        """Weights for the proved gradients, which are more accurate than those of the search."""
        if 0.0 < proof.eps < 1e-9 and self.form.is_small:
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
            if proof is None or proof.eps <= self.eps or flat.tangent.shape[1] > NEWTON_DIM:
                return proof
            pieces = self.form.examine(proof.exact_pivot).pieces
            tangent = flat.tangent
            slope = partial(self._slope, proof.pivot, tangent, pieces)
            share = proof.weights / proof.weights.sum()
            bend = curvature(slope, tangent.shape[1], self.delta)
            if not (bend.any() and np.isfinite(bend).all()):
                return proof
            left, values, right = np.linalg.svd(bend)
            kept = values > 1e-12 * values[0]
            rest = left[:, kept].T @ (tangent.T @ (share @ proof.gradients))
            step = -tangent @ (right[kept].T @ (rest / values[kept]))
            if not np.isfinite(step).all():
                return proof
            base = [q + Fraction(float(s)) for q, s in zip(proof.exact_pivot, step)]
            exact = flat.project_exactly(base)
            better = None if exact is None else self.prove(exact)
            if better is None or not better.eps < 0.5 * proof.eps:
                return proof
            proof = better
        return proof

    def evidence(self, found: Examination) -> Evidence | None:
        """Search directions whose limits of gradients nearly cancel."""
        kinks = self.form.active_kinks(found)
        point = np.array([nearest_float(q) for q in found.point])
        if not kinks:
            return Evidence(np.ones((1, point.size)), np.ones(1), 0.0)
        hints = self.points - point
        if is_additive(kinks, curved=True):
            return additive_evidence(local_model(found), hints, self.eps, self.rng)
        radius = float(np.linalg.norm(hints, axis=1).max(initial=0.0)) or 1.0
        more = self.rng.standard_normal((4 * point.size + 16, point.size))
        ways = np.vstack([hints, more * radius / np.sqrt(point.size)])
        return generic_evidence(found, ways)


def _simple(weights: Vector) -> Vector:
    """Return integers in the ratio of nearby simple fractions."""
    fractions = [Fraction(float(w)).limit_denominator(48) for w in weights]
    whole = math.lcm(*(f.denominator for f in fractions))
    answer = np.array([float(f * whole) for f in fractions])
    return answer if answer.any() and np.isfinite(answer).all() else weights


__all__ = ["near_certificate"]
