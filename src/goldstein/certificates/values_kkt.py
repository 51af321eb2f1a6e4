"""What values alone say about a constrained problem, with confidence: a KKT claim.

Minimise f subject to lb <= c_i <= ub_i and bounds, all Lipschitz near the ball of radius delta
around x. Fixed beforehand are boxes y_j + [-h, h] inside ball and bounds, convex weights w_j, and
weights m_ij, for each i of one sign, that of the limit they belong to; lambda_i = sum_j m_ij. For
one box let

    phi_j = w_j f + sum_i m_ij c_i,     V = sum_j D phi_j(y_j),

D the randomised difference of `goldstein.certificates.values`, with offsets of its own for each
sample and j. D is linear in the function, and for f and each c_i its mean is the mean of the
gradients over the box, an element of the Goldstein set of that function at x. Hence

    E V = sum_j w_j u_j + sum_i sum_j m_ij v_ij,

u_j in the Goldstein set of f, v_ij in that of c_i.

Goldstein sets are convex, so the first sum is an element of the set of f; and for each i the
weights m_ij have one sign, so that its part is lambda_i times a convex combination of the v_ij,
itself an element of the set of c_i. (With both signs it would be no multiple of a subgradient: two
gradients of a curved function, subtracted, give nearly anything.) A bound b of |E V + n|, n the
best normal of the bounds at x, therefore says

    dist(0, d_delta f(x) + sum_i lambda_i d_delta c_i(x) + N(x)) <= b.

The samples V are independent, and their entry k is bounded by sum_j (w_j times the slope of f plus
sum_i |m_ij| times that of c_i) along e_k, which is what `slopes` has: not the slopes of the phi_j,
which are next to 0 wherever the terms cancel, and would be believed to stay so. The limits for
means hold, and b is wrong with probability at most 1 - confidence. It does not matter that f and
the constraints are asked at the same points: means of sums need no independence within a sample.

What is *not* statistical is looked up: x is feasible up to `feasibility`, and for each inequality
with a multiplier a stored point of the ball reaches or crosses its limit (an equality holds at x,
or has values on both sides). And what a multiplier means is measured: where the gradients of the
constraints in use cancel each other the claim says nothing about f (`qualification`, as for
`KKTCertificate`, on differences).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.quantisation import Many, quantum_of
from goldstein.certificates.values import (
    Draws,
    OfFunction,
    Places,
    ValuesCertificate,
    check_fresh,
    differences_at,
    plain_checks,
)
from goldstein.certificates.verifying import Qualified
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.blackbox.qualification import LESS, PAIRS, qualification
from goldstein.checker.constrained.box import Box, as_box
from goldstein.checker.constrained.multipliers import DEGENERATE, check_signs
from goldstein.checker.rounding import distance_upper
from goldstein.checker.verification import Verification
from goldstein.errors import GoldsteinError
from goldstein.numerics.hull_problems import shortest_weights
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.counted import Map
from goldstein.oracles.differences import Stencil
from goldstein.oracles.function import as_values
from goldstein.oracles.problem import System, Values, as_system
from goldstein.oracles.workers import Workers, mapped
from goldstein.storage.codec import array, record

Rows = NDArray[np.int64]


@record
class ValuesKKTCertificate(Qualified, ValuesCertificate):
    """Statistical evidence, from values alone, that x is an (eps, delta)-Goldstein-KKT point.

    `dist(0, Goldstein set of f + sum_i multipliers[i] (Goldstein set of c_i) + normals of the
    bounds at x) <= eps` was found with probability at least `confidence` over the random draws, if
    `slopes` are right; the multipliers were fixed before. Never a proof, whatever gradients are
    known: all of it is asked for by values.

    Attributes
    ----------
    x, delta, eps, points, widths, confidence, samples, grain, lower, upper, label, meta, digest
        As in `ValuesCertificate`.
    weights : ndarray, shape (k,)
        Of f at the points: convex; 0 where a point serves constraints only.
    mean : ndarray, shape (d,)
        Mean of the samples: of the gradient of f with the multiples of those of the constraints.
    slopes : ndarray, shape (d,)
        Bounds of the slopes along the coordinates: that of f, and those of the constraints times
        the size of their multipliers, added up.
    constraint_weights : ndarray, shape (r,)
        Signed like the multipliers: positive at the upper limit, negative at the lower one.
    constraint_index, point_index : ndarray of int, shape (r,)
        Which component of the constraints, and which of the points, a weight belongs to.
    multipliers : ndarray, shape (m,)
        Sums of `constraint_weights`.
    witnesses : ndarray, shape (t, d)
        Points of the ball that reach or cross the limits of inequalities with a multiplier.
    witness_index : ndarray of int, shape (t,)
        The component that a witness is for.
    feasibility : float
        The largest violation of a constraint at x.
    qualification : float
        As in `KKTCertificate`, measured on differences; next to 0 the claim is `degenerate`.

    Examples
    --------
    >>> import goldstein as gs
    >>> f, c = lambda x: abs(x[0]) + x[1], {"type": "ineq", "fun": lambda x: x[1] - x[0] ** 2}
    >>> res = gs.minimize(f, [1.0, 2.0], "2-point", eps=0.2, delta=0.01, constraints=c, rng=0)
    >>> res.certificate.label, res.certificate.verify(f, constraints=c).ok
    ('estimated', True)
    >>> bool(abs(res.multipliers[0] + 1.0) < 0.1)
    True
    """

    kind: ClassVar[str] = "values-kkt"
    _limits: ClassVar[tuple[str, ...]] = ("bounds", "constraints")

    constraint_weights: Vector = array("r")
    constraint_index: Rows = array("r", np.int64)
    point_index: Rows = array("r", np.int64)
    multipliers: Vector = array("m")
    witnesses: Matrix = array("t d")
    witness_index: Rows = array("t", np.int64)
    feasibility: float
    qualification: float

    def verify(  # type: ignore[override]  # of points that are vectors
        self,
        fun: Oracle | Callable[..., Any],
        jac: Any = None,
        args: Sequence[Any] = (),
        *,
        bounds: Any = None,
        constraints: Any = (),
        seed: int | None = None,
        workers: Workers = None,
    ) -> Verification:
        """Draw as many samples afresh, and see whether they support the claim.

        Parameters
        ----------
        fun, args, bounds, constraints, workers
            As in `minimize`.
        jac
            Not used: other certificates have it.
        seed : int, optional
            By default nobody can foresee the draws.
        """
        oracle = CountedOracle(as_values(fun, args, None))
        with mapped(workers) as ask:
            return check_values_kkt(self, oracle, bounds, constraints, seed_from(seed), ask)

    def summary(self) -> str:
        """One line for people."""
        degenerate = ", degenerate" if self.degenerate else ""
        return (
            f"({self.eps:.3g}, {self.delta:.3g})-Goldstein-KKT with confidence "
            f"{self.confidence:g}, violation {self.feasibility:.3g}, {len(self.active)} of "
            f"{self.multipliers.size} constraints in use{degenerate}, {self.samples} samples of "
            "differences, estimated (statistics)"
        )


@dataclass(frozen=True)
class Multiples(Places):
    """Where differences are taken, of f with these weights and of constraints with those."""

    constraint_weights: Vector
    constraint_index: Rows
    point_index: Rows

    @classmethod
    def of(cls, claim: ValuesKKTCertificate) -> Multiples:
        """Return those of a claim."""
        return cls(**{part.name: getattr(claim, part.name) for part in fields(cls)})

    def on(self, j: int) -> tuple[Rows, Vector]:
        """Return components of the constraints and their weights at point j."""
        here = self.point_index == j
        return self.constraint_index[here], self.constraint_weights[here]

    def multipliers(self, size: int) -> Vector:
        """Return the sums of the weights for each of so many components."""
        totals = np.zeros(size)
        np.add.at(totals, self.constraint_index, self.constraint_weights)
        return totals


@dataclass(frozen=True)
class OfMultiples(OfFunction):
    """Samples V of the module; f and the constraints are asked at a point once."""

    places: Multiples
    system: System

    def draw(self, samples: int, rng: np.random.Generator) -> Draws:
        m = self.places
        free = m.widths > 0
        vectors, steepest, largest = np.zeros((samples, m.widths.size)), 0.0 * m.widths, 0.0
        for j, point in enumerate(m.points):
            asked, weights = self._terms(j)
            if not weights.size:
                continue  # a point that serves nothing
            steep, size = np.zeros((int(free.sum()), weights.size)), np.zeros(weights.size)
            for first, found, seen in differences_at(asked, point, m.widths, samples, rng):
                vectors[first : first + len(found), free] += found @ weights
                # Slopes and rounding are those of the terms, though these cancel.
                steep = np.maximum(steep, np.abs(found).max(axis=0, initial=0.0))
                size = np.maximum(size, seen)
            steepest[free] += steep @ np.abs(weights)
            largest += float(size @ np.abs(weights))
        return Draws(vectors, steepest, largest)

    def _terms(self, j: int) -> tuple[Callable[[Matrix], Matrix], Vector]:
        """Return the functions that count at point j, as columns, and their weights."""
        index, weights = self.places.on(j)
        of_f = float(self.places.weights[j])

        def asked(points: Matrix) -> Matrix:
            columns = [self.values_at(points)[:, None]] if of_f else []
            if index.size:
                columns.append(self.system.many_values(points)[:, index])
            return np.concatenate(columns, axis=1)

        return asked, np.concatenate([[of_f], weights]) if of_f else weights

    def quantum(self, delta: float, slopes: Vector, box: Box, rng: np.random.Generator) -> float:
        """Return the steps of f, and of each constraint times its multiplier."""
        m, system = self.places, self.system
        where = m.points[m.weights > 0]
        total = quantum_of(self.values_at, where, m.widths, slopes, delta, box, rng)
        for i, weight in enumerate(np.abs(m.multipliers(system.size)).tolist()):
            if weight and not system.linear[i]:
                where = m.points[np.unique(m.point_index[m.constraint_index == i])]
                allowed, component = slopes / weight, _component(system, i)
                total += weight * quantum_of(component, where, m.widths, allowed, delta, box, rng)
        return total


def _component(system: System, i: int) -> Many:
    return lambda points: system.many_values(points)[:, i]


def reached(
    system: System, i: int, multiplier: float, here: Vector, witnesses: Sequence[Vector]
) -> bool:
    """Whether the limit that a multiplier belongs to is reached at x, or at a witness.

    `here` are the values at x. An equality holds at x, or has values on both sides of its limit.
    """
    values = np.array([here[i], *(system.values(z)[i] for z in witnesses)])
    above, below = bool((values >= system.upper[i]).any()), bool((values <= system.lower[i]).any())
    if system.equal[i]:
        return bool(abs(here[i] - system.upper[i]) <= system.tolerances()[i]) or (above and below)
    return above if multiplier > 0 else below


def measured_qualification(
    system: System, box: Box, multiples: Multiples, x: Vector, delta: float, mean: Vector,
    rng: np.random.Generator, pairs: int = PAIRS,
) -> float:  # fmt: skip
    """Return how far the gradients of the constraints in use are from cancelling each other.

    Differences stand in for gradients; `mean` shows which bounds are in use.
    """
    rows = [
        (int(i), system.rows(multiples.points[j])[i].copy())
        for i, j in zip(multiples.constraint_index.tolist(), multiples.point_index.tolist())
    ]
    below, above = box.normal_signs(x)
    normal = np.where((below & (mean > 0)) | (above & (mean < 0)), -mean, 0.0)
    multipliers = multiples.multipliers(system.size)
    claim = SimpleNamespace(x=x, delta=delta, normal=normal, multipliers=multipliers)
    problem = SimpleNamespace(box=box, system=system, propose=shortest_weights)
    return qualification(claim, problem, rows, rng, 0.0, pairs)


def check_values_kkt(
    cert: ValuesKKTCertificate,
    oracle: CountedOracle,
    bounds: Any,
    constraints: Any,
    seed: int,
    workers: Map = map,
) -> Verification:
    """Return what fresh draws say; the checks stop where a later one would mean nothing."""
    found = Verification(np.inf, np.inf, "estimated")
    box = as_box(bounds, cert.x.size)
    cost = 2 * cert.x.size * len(cert.points)
    if not (plain_checks(found, cert, box, cost) and _check_witnesses(found, cert, box)):
        return found
    try:
        stencil = Stencil(box.lower, box.upper, seed, central=True)
        system = as_system(constraints, cert.x, stencil=stencil, workers=workers)
        if not _check_constraints(found, cert, system):
            return found
        source = OfMultiples(
            lambda points: oracle.values_at(points, workers), Multiples.of(cert), system
        )
        mean = check_fresh(found, cert, box, source, seed)
        if found.ok and mean is not None:
            _check_qualification(found, cert, system, box, mean, seed)
    except GoldsteinError as failure:
        found.add("problem", False, f"constraints could not be asked: {failure}")
    return found


def _check_witnesses(found: Verification, cert: ValuesKKTCertificate, box: Box) -> bool:
    far = max((distance_upper(z, cert.x) for z in cert.witnesses), default=0.0)
    found.delta = max(found.delta, far)
    inside = box.contains(cert.witnesses) and far <= cert.delta
    found.add("witnesses", bool(inside), "inside ball and bounds" if inside else "outside")
    owned = bool(((cert.point_index >= 0) & (cert.point_index < len(cert.points))).all())
    found.add("points", owned, "every weight has a point" if owned else "a weight has no point")
    return found.ok


def _check_constraints(found: Verification, cert: ValuesKKTCertificate, system: System) -> bool:
    """Signs, feasibility and activity: all by values, nothing by chance."""
    check_signs(found, cert, system, Box(cert.lower, cert.upper))
    if not found.ok:
        return False
    here = system.values(cert.x).copy()
    again = Values(system.groups)(cert.x)
    steady = bool((again == here).all())
    found.add("deterministic", steady, "constraints answer alike" if steady else "constraints vary")
    violation = system.violation(cert.x)
    room = 2.0**-48 * float(np.abs(here).max(initial=0.0))
    found.add(
        "feasibility",
        violation <= cert.feasibility + room,
        f"violation {violation:.3g} at x, claimed {cert.feasibility:.3g}",
    )
    missing = [
        i
        for i in cert.active
        if not reached(
            system, i, cert.multipliers[i], here, list(cert.witnesses[cert.witness_index == i])
        )
    ]
    found.add(
        "activity",
        not missing,
        f"a multiplier on {system.name(missing[0])}, which no stored point reaches"
        if missing
        else "every constraint with a multiplier is reached in the ball",
    )
    return found.ok


def _check_qualification(
    found: Verification, cert: ValuesKKTCertificate, system: System, box: Box, mean: Vector,
    seed: int,
) -> None:  # fmt: skip
    rng, multiples = stream(seed, 0, "qualification"), Multiples.of(cert)
    q = measured_qualification(system, box, multiples, cert.x, cert.delta, mean, rng)
    honest = cert.qualification <= LESS * q
    empty = min(q, cert.qualification) <= DEGENERATE
    found.add(
        "qualification",
        honest and not empty,
        f"differences of the constraints stay {q:.3g} away from 0"
        + ("" if honest else f", {cert.qualification:.3g} is stated")
        + (": degenerate, the claim says nothing about f" if empty else ""),
    )
