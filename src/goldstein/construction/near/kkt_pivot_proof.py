"""From a KKT certificate to a near-KKT certificate: pivots of an exact penalty, proved as KKT.

f plus penalties of bounds and constraints is an expression P. Where limits of gradients of P cancel
at a feasible pivot, those of f and of the constraints at their limits do, with multipliers up to
the weights of the penalty. Everything here is search; the check decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.evaluation import Evaluation
from goldstein.calculus.expression import Expression
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.near import Attempt, NearCertificate, prove_near_kkt, separating
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import best_normal
from goldstein.checker.constrained.near import ExactProblem, Limit, as_rationals, exact_problem
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.rationals import nearest_float
from goldstein.checker.sides import Program, point_at
from goldstein.construction.near.pivot import MAX_WORK, search_near
from goldstein.errors import NotCertifiableError
from goldstein.numerics.budget import Budget
from goldstein.numerics.hull_problems import conic_weights
from goldstein.oracles.problem import Problem
from goldstein.solvers import Request

#: How often the weights of the penalty are raised where a pivot violates a constraint, and by what.
RAISES, RAISE = 3, 8.0

#: A gradient of a constraint at the pivot: component, sign of the multiplier, direction, gradient.
Owned = tuple[int, float, Vector, Vector]


def search_near_kkt(
    fun: Expression, limits: Problem, hint: KKTCertificate, request: Request, deadline: float
) -> Attempt:
    """Search a pivot within `delta` of `hint.x` that is feasible and KKT up to `eps`.

    Parameters
    ----------
    fun : Expression
    limits : Problem
        Its bounds, and constraints that are expressions or linear.
    hint : KKTCertificate
        Where to look.
    request : Request
        What to prove.
    deadline : float
        When to stop, as `time.perf_counter()` tells the time.
    """
    program, eps = fun.program(), request.eps
    problem = exact_problem(hint.x, limits.box, limits.constraints, separating)
    penalty = _Penalty(program, problem, hint, request.delta)
    for _ in range(1 + RAISES):
        whole, budget = penalty.function(), Budget(deadline, MAX_WORK)
        found = search_near(whole, penalty.hint(whole), request.delta, eps, request.seed, budget)
        if found.certificate is None:
            return found
        violated = _violated(problem, found.certificate.exact_pivot)
        if not violated:
            return _proved(program, problem, hint, found.certificate, eps)
        penalty.weights[violated] *= RAISE
    name = problem.system.name(violated[0])
    return Attempt(None, f"not proved: {name} is violated at the pivots that were found")


class _Penalty:
    """P as a program: f, and what bounds and constraints are violated by, with weights."""

    def __init__(
        self, program: Program, problem: ExactProblem, hint: KKTCertificate, delta: float
    ) -> None:
        self.program, self.problem, self.known = program, problem, hint
        steep = float(np.linalg.norm(hint.gradients, axis=1).max()) or 1.0
        used = np.flatnonzero(hint.constraint_weights)
        lengths = np.linalg.norm(hint.constraint_gradients[used], axis=1)
        short = float(lengths[lengths > 0].min(initial=1.0))
        slope = steep + float(np.abs(hint.constraint_weights[used]) @ lengths)
        # Larger than the multipliers, so that no limit is worth crossing; powers of two, so that
        # rationals stay short. Bounds that no pivot can reach are left out.
        rho = np.abs(hint.multipliers) + steep / max(short, 1e-6)
        gaps = np.minimum(hint.x - problem.box.lower, problem.box.upper - hint.x)
        wall = np.where(gaps <= 2.0 * delta, slope, 0.0)
        found = 2.0 ** np.ceil(np.log2(np.maximum(4.0 * np.append(rho, wall), 2.0**-40)))
        self.weights: Vector = np.where(np.append(rho, wall) > 0.0, found, 0.0)

    def function(self) -> Program:
        """Return P."""
        return Feasible(self.program, self.problem, self.weights).program

    def hint(self, whole: Program) -> GoldsteinCertificate:
        """Return points around x on both sides of the kinks of P that matter, as evidence.

        The points of a KKT certificate stay inside the bounds: each gets a mirror image beyond the
        bounds that x is on.
        """
        known, box = self.known, self.problem.box
        places = np.concatenate([known.points, known.constraint_points])
        shares = np.concatenate([known.weights, np.abs(known.constraint_weights)])
        on = (known.x == box.lower) | (known.x == box.upper)
        if on.any():
            mirrored = np.where(on, 2.0 * known.x - places, places)
            places, shares = np.concatenate([places, mirrored]), np.concatenate([shares, shares])
        # Witnesses that a limit is reached carry no weight, but they straddle it.
        shares = np.maximum(shares, 1e-3 * shares.max())
        found = Evaluation(whole.nodes)
        gradients = [found.gradient(found.tape(y)) for y in places]
        return GoldsteinCertificate(
            x=known.x, delta=known.delta, eps=known.eps, points=places,
            gradients=np.array(gradients), weights=shares / shares.sum(),
        )  # fmt: skip


def _violated(problem: ExactProblem, pivot: Sequence[Fraction]) -> list[int]:
    """Return the components that the pivot does not satisfy for certain."""
    found = []
    for i, part in enumerate(problem.parts):
        low, high = point_at(part, pivot).between()
        if low < float(problem.system.lower[i]) or high > float(problem.system.upper[i]):
            found.append(i)
    return found


def _proved(
    program: Program, problem: ExactProblem, hint: KKTCertificate, near: NearCertificate, eps: float
) -> Attempt:
    """Combine limits of gradients of f and of the constraints anew, and state what they show."""
    pivot, box = near.exact_pivot, problem.box
    here = point_at(program, pivot, len(near.directions))
    hull = _floats(as_rationals(here.limits(near.directions)))
    cone = list(_at_limits(problem, pivot, near.directions))
    low = np.array([q == b for q, b in zip(pivot, box.lower.tolist())])
    high = np.array([q == b for q, b in zip(pivot, box.upper.tolist())])
    weights, shares, normal = _combined(hull, cone, low, high)
    if any(problem.system.equal):
        # One sign for each constraint: with two, opposite gradients would cancel anything.
        totals = np.zeros(problem.system.size)
        for share, (i, sign, _, _) in zip(shares.tolist(), cone):
            totals[i] += sign * share
        cone = [one for one in cone if one[1] * totals[one[0]] >= 0.0]
        weights, shares, normal = _combined(hull, cone, low, high)
    used = np.flatnonzero(weights > 0)
    rows = [(i, v, sign * w) for w, (i, sign, v, _) in zip(shares.tolist(), cone) if w > 0]
    certificate = prove_near_kkt(
        program, problem, hint.x, pivot, near.directions[used], weights[used], rows, normal
    )  # fmt: skip
    certificate = replace(certificate, meta=dict(hint.meta), digest="")
    if certificate.eps <= eps:
        return Attempt(certificate, "proved")
    return Attempt(
        certificate,
        f"not proved: the best pivot found has eps = {certificate.eps:.3g}, asked for {eps:g}",
    )


def _at_limits(
    problem: ExactProblem, pivot: Sequence[Fraction], directions: Matrix
) -> Iterator[Owned]:
    """Yield gradients of the constraints that are exactly at a limit, times the sign of it."""
    system = problem.system
    for i, part in enumerate(problem.parts):
        here = point_at(part, pivot)
        value, high = here.between()
        sides = ((1.0, system.upper[i]), (-1.0, system.lower[i]))
        signs = [sign for sign, limit in sides if value == high == float(limit)]
        some = directions[: 1 if part.affine[-1] else None] if signs else ()
        for direction in some:
            with suppress(NotCertifiableError):  # along it the constraint stays on a kink
                gradient = _floats(as_rationals(here.limits(direction[None])))[0]
                if gradient.any():
                    yield from ((i, sign, direction, sign * gradient) for sign in signs)


def _combined(
    hull: Matrix, cone: list[Owned], low: NDArray[np.bool_], high: NDArray[np.bool_]
) -> tuple[Vector, Vector, Vector]:
    """Return weights of f, of the constraints, and the normal that make the shortest vector."""
    eye = np.eye(low.size)
    columns = np.array([g for _, _, _, g in cone]).reshape(-1, low.size)
    a, b = conic_weights(hull, np.concatenate([columns, -eye[low], eye[high]]))
    b = b[: len(cone)]
    return a, b, best_normal(a @ hull + b @ columns, low, high)


def _floats(limits: list[Limit]) -> Matrix:
    return np.array([[nearest_float(m) for m in mid] for mid, _ in limits])
