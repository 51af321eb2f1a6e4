"""The near-KKT claim: a pivot within delta of x is feasible and KKT up to eps, exactly.

The evidence is a rational pivot y, directions and weights. Limits of gradients of f along the
directions belong to the subdifferential at y, those of the constraints to theirs; with a normal of
the bounds at y they cancel up to eps. y satisfies all constraints, and every constraint with a
multiplier is at its limit there. All of it is decided in rational arithmetic; nothing that is
stored is believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.box import Box
from goldstein.checker.constraints import (
    DEGENERATE,
    ConicOptimise,
    Limits,
    WithMultipliers,
    fits,
    qualification_of,
    signs_fit,
)
from goldstein.checker.errors import GoldsteinError, NotCertifiableError
from goldstein.checker.near import unusable
from goldstein.checker.rationals import (
    exact_combination,
    exact_dot,
    nearest_float,
    sqrt_upper,
    squared_distance,
    squared_norm,
    to_fractions,
)
from goldstein.checker.sides import Program, point_at
from goldstein.checker.verification import Label, Verification

#: Exact midpoints and radii of a gradient.
Limit = tuple[list[Fraction], list[Fraction]]

#: Pairs of directions in which the gradients of constraints are looked at besides.
PAIRS = 4


class NearKKTClaim(WithMultipliers, Protocol):
    """What is claimed, and the evidence."""

    @property
    def x(self) -> Vector: ...
    @property
    def eps(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def exact_pivot(self) -> tuple[Fraction, ...]: ...
    @property
    def directions(self) -> Matrix: ...
    @property
    def weights(self) -> Vector: ...
    @property
    def constraint_directions(self) -> Matrix: ...
    @property
    def normal(self) -> Vector: ...
    @property
    def label(self) -> Label: ...
    @property
    def digest(self) -> str: ...
    def content_digest(self) -> str: ...


class ExactPart(Protocol):
    """One component of the constraints at an exact point; every answer is proved."""

    is_affine: bool

    def between(self, point: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        """Return numbers that enclose the value; equal ones where it is known exactly."""
        ...

    def limits(self, point: Sequence[Fraction], directions: Any) -> list[Limit]:
        """Return enclosures of the limits of gradients at a point along directions."""
        ...


class Row:
    """row . x, its numbers taken as exact.

    Examples
    --------
    >>> Row(np.array([0.5, 2.0])).between([Fraction(1), Fraction(1, 3)])
    (Fraction(7, 6), Fraction(7, 6))
    """

    is_affine = True

    def __init__(self, row: Vector) -> None:
        self.row = np.array(row)

    def between(self, point: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        value = exact_dot(self.row, list(point))
        return value, value

    def limits(self, point: Sequence[Fraction], directions: Any) -> list[Limit]:
        exact = to_fractions(self.row)
        return [(exact, [Fraction(0)] * self.row.size)] * len(directions)


class Written:
    """A function written in the language of the checker."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.is_affine = program.affine[-1]

    def between(self, point: Sequence[Fraction]) -> tuple[Fraction, Fraction]:
        return point_at(self.program, list(point)).between()

    def limits(self, point: Sequence[Fraction], directions: Any) -> list[Limit]:
        return limiting_gradients(self.program, list(point), directions)


def limiting_gradients(
    program: Program, point: Sequence[Any], directions: Any
) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Return the limits of gradients as rationals: midpoints, and radii, 0 where exact."""
    exact, mids, rads = point_at(program, point, len(directions)).limits(directions)
    rows = [to_fractions(mid) for mid in mids] if exact is None else exact
    return [(row, to_fractions(rad)) for row, rad in zip(rows, rads, strict=True)]


@dataclass(eq=False)
class ExactProblem:
    """f, bounds and constraints for exact questions; `optimise` is not believed."""

    program: Program
    box: Box
    system: Limits
    parts: Sequence[ExactPart]
    optimise: ConicOptimise


def check_near_kkt(cert: NearKKTClaim, problem: ExactProblem, seed: int) -> Verification:
    """Decide a near-KKT claim; the checks stop where a later one would mean nothing."""
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    if not (_check_numbers(found, cert) and _check_fit(found, cert, problem)):
        return found
    square = squared_distance(cert.exact_pivot, cert.x)
    found.delta = sqrt_upper(square)
    inside = square <= Fraction(cert.delta) ** 2
    found.add("ball", inside, f"pivot at distance {found.delta:.6g}, claimed {cert.delta:.6g}")
    try:
        _check_place(found, cert, problem)
        found.add("multipliers", *signs_fit(cert, problem.system))
        if not found.ok:
            return found
        found.eps = residual(cert, problem)
        q = qualification(cert, problem, seed)
    except GoldsteinError as failure:
        found.add("subgradients", False, str(failure))
        return found
    rows = cert.weights.size + cert.constraint_weights.size
    found.add("subgradients", True, f"{rows} limits of gradients at the pivot")
    found.add(
        "bound", found.eps <= cert.eps, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    )
    found.add(
        "qualification",
        q > DEGENERATE,
        f"constraint gradients stay {q:.3g} away from 0"
        + ("" if q > DEGENERATE else ": degenerate, the claim says nothing about f"),
    )
    if found.ok:
        found.label = "certified"
    supported = cert.label in ("certified", "conditional", "estimated")
    found.add("label", supported, f"claimed {cert.label}, this check proves {found.label}")
    return found


def _check_numbers(found: Verification, cert: NearKKTClaim) -> bool:
    """What can be said without asking anything."""
    arrays = (
        cert.x, cert.directions, cert.weights, cert.constraint_directions,
        cert.constraint_weights, cert.normal, cert.multipliers,
    )  # fmt: skip
    finite = all(np.isfinite(a).all() for a in arrays)
    finite = finite and all(math.isfinite(v) and v >= 0 for v in (cert.eps, cert.delta))
    if not found.add("numbers", finite, "all entries finite" if finite else "non-finite entries"):
        return False
    sealed = cert.digest == cert.content_digest()
    found.add("content", sealed, "unaltered" if sealed else "a field was changed after it was made")
    fault = unusable(cert.x, cert.directions, cert.weights)
    return found.add(
        "weights",
        not fault,
        f"of f: {fault}; without f nothing is said about it"
        if fault
        else "those of f nonnegative, not all 0",
    )


def _check_fit(found: Verification, cert: NearKKTClaim, problem: ExactProblem) -> bool:
    """Sizes."""
    sizes = {problem.program.dim, problem.box.lower.size, len(cert.exact_pivot)}
    found.add(
        "dimension",
        sizes == {cert.x.size},
        f"{cert.x.size}, the function has {problem.program.dim}",
    )
    found.add("constraints", *fits(cert, problem.system))
    return found.ok


def _check_place(found: Verification, cert: NearKKTClaim, problem: ExactProblem) -> None:
    """The pivot inside bounds and constraints, and at every limit that has a multiplier."""
    box, system, y = problem.box, problem.system, cert.exact_pivot
    # Comparisons of rationals with floats are exact.
    inside = all(l <= q <= u for q, l, u in zip(y, box.lower.tolist(), box.upper.tolist()))
    inside = inside and box.contains(cert.x)
    found.add("bounds", inside, "x and pivot inside" if inside else "x or the pivot is outside")
    wrong = [
        k
        for k, (q, n) in enumerate(zip(y, cert.normal.tolist()))
        if (n < 0 and q != box.lower[k]) or (n > 0 and q != box.upper[k])
    ]
    found.add(
        "normal",
        not wrong,
        f"entry {wrong[0]} is {cert.normal[wrong[0]]:g}, but the pivot is not on that bound"
        if wrong
        else "normal to the bounds at the pivot",
    )
    violated, missed = "", ""
    for i, part in enumerate(problem.parts):
        low, high = part.between(y)
        lower, upper = float(system.lower[i]), float(system.upper[i])
        if not (lower <= low and high <= upper):
            violated = violated or f"{system.name(i)} is violated at the pivot, or may be"
        multiplier = cert.multipliers[i]
        if multiplier and not low == high == (upper if multiplier > 0 else lower):
            missed = missed or f"a multiplier on {system.name(i)}, which is not at its limit"
    found.add("feasibility", not violated, violated or "all constraints hold at the pivot")
    found.add("activity", not missed, missed or "constraints with a multiplier are at their limits")


def residual(cert: NearKKTClaim, problem: ExactProblem, allowance: int = 1) -> float:
    """Return a bound of the length in the claim; radii of enclosures count `allowance` times."""
    used = np.flatnonzero(cert.weights)
    limits = limiting_gradients(problem.program, cert.exact_pivot, cert.directions[used])
    shares = to_fractions(cert.weights[used])
    total = sum(shares, Fraction(0))
    factors = [share / total for share in shares]
    rows = np.flatnonzero(cert.constraint_weights)
    limits = limits + constraint_limits(cert, problem, rows)
    factors += to_fractions(cert.constraint_weights[rows])
    mid = exact_combination([*factors, 1], [*(m for m, _ in limits), to_fractions(cert.normal)])
    rad = exact_combination([abs(f) for f in factors], [r for _, r in limits])
    return sqrt_upper(squared_norm([abs(m) + allowance * r for m, r in zip(mid, rad)]))


def constraint_limits(
    cert: NearKKTClaim, problem: ExactProblem, rows: Sequence[int] | NDArray[np.intp]
) -> list[Limit]:
    """Return the limits of gradients that rows of the certificate stand for."""
    found: list[Limit] = []
    for r in rows:
        part = problem.parts[int(cert.constraint_index[r])]
        found += part.limits(cert.exact_pivot, cert.constraint_directions[r : r + 1])
    return found


def qualification(cert: NearKKTClaim, problem: ExactProblem, seed: int) -> float:
    """Return how far gradients of constraints in use are from cancelling each other at the pivot.

    They are looked at along all stored directions, their opposites and a few random ones. Linear
    equalities are left out, their gradients form a line by nature.
    """
    random = np.random.default_rng(seed).standard_normal((PAIRS, cert.x.size))
    stored = np.concatenate([cert.constraint_directions, cert.directions, random])
    index: list[int] = []
    rows: list[list[float]] = []
    for i in np.flatnonzero(cert.multipliers).tolist():
        part = problem.parts[i]
        if part.is_affine and problem.system.equal[i]:
            continue
        ways = stored[:1] if part.is_affine else np.concatenate([stored, -stored])
        for way in ways:
            try:
                ((mid, _),) = part.limits(cert.exact_pivot, way[None])
            except NotCertifiableError:  # this way stays on a kink
                continue
            index.append(i)
            rows.append([math.copysign(1.0, cert.multipliers[i]) * nearest_float(m) for m in mid])
    matrix = np.array(rows, dtype=np.float64).reshape(-1, cert.x.size)
    if not np.isfinite(matrix).all():
        return 0.0
    return qualification_of(
        np.array(index, dtype=np.intp), matrix, cert.normal, problem.box, problem.optimise
    )


__all__ = [
    "ExactPart",
    "ExactProblem",
    "Limit",
    "Row",
    "Written",
    "check_near_kkt",
    "constraint_limits",
    "residual",
]
