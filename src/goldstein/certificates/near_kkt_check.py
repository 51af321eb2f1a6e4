"""The check of a near-KKT certificate in rational arithmetic: nothing stored is believed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.certificates.exact_parts import ExactPart, Limit, exact_parts
from goldstein.certificates.kkt import DEGENERATE, fit_message, qualification_of
from goldstein.certificates.near import CHANGE_OF_MACHINE, program_of
from goldstein.certificates.near_kkt import NearKKTCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rationals import (
    exact_combination,
    nearest_float,
    sqrt_upper,
    squared_distance,
    squared_norm,
    to_fractions,
)
from goldstein.checker.sides import Program, limiting_gradients
from goldstein.checker.verification import Verification
from goldstein.constrained.box import Box, as_box
from goldstein.constrained.system import System, as_system
from goldstein.errors import GoldsteinError, NotCertifiableError
from goldstein.numerics.streams import stream

Point = tuple[Fraction, ...]

#: Pairs of directions in which the gradients of constraints are looked at besides.
PAIRS = 4


@dataclass(eq=False)
class ExactProblem:
    """f, bounds and constraints for exact questions, over nodes made for this purpose alone."""

    program: Program
    box: Box
    system: System
    parts: list[ExactPart]

    @classmethod
    def of(cls, fun: Any, x: Vector, bounds: Any, constraints: Any) -> ExactProblem:
        """Read the arguments as `minimize` takes them."""
        box = as_box(bounds, x.size)
        system = as_system(() if constraints is None else constraints, box.clip(x))
        return cls(program_of(fun), box, system, exact_parts(system, x.size))


def check_near_kkt(
    cert: NearKKTCertificate, fun: Any, bounds: Any, constraints: Any, seed: int
) -> Verification:
    """Return what was found; the checks stop where a later one would mean nothing."""
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    if not _check_numbers(found, cert):
        return found
    try:
        problem = ExactProblem.of(fun, cert.x, bounds, constraints)
        if not _check_fit(found, cert, problem):
            return found
    except GoldsteinError as failure:
        found.add("problem", False, f"function, bounds or constraints do not fit: {failure}")
        return found
    square = squared_distance(cert.exact_pivot, cert.x)
    found.delta = sqrt_upper(square)
    inside = square <= Fraction(cert.delta) ** 2
    found.add("ball", inside, f"pivot at distance {found.delta:.6g}, claimed {cert.delta:.6g}")
    try:
        _check_place(found, cert, problem)
        found.add("multipliers", *_signs_fit(cert, problem.system))
        if not found.ok:
            return found
        found.eps = residual(cert, problem)
    except GoldsteinError as failure:
        found.add("subgradients", False, str(failure))
        return found
    rows = cert.weights.size + cert.constraint_weights.size
    found.add("subgradients", True, f"{rows} limits of gradients at the pivot")
    found.add(
        "bound", found.eps <= cert.eps, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    )
    q = qualification(cert, problem, seed)
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


def _check_numbers(found: Verification, cert: NearKKTCertificate) -> bool:
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
    usable = bool((cert.weights >= 0).all() and cert.weights.any())
    return found.add(
        "weights",
        usable,
        "those of f nonnegative, not all 0"
        if usable
        else "those of f are negative or all 0; without f nothing is said about it",
    )


def _check_fit(found: Verification, cert: NearKKTCertificate, problem: ExactProblem) -> bool:
    """Sizes."""
    fits = problem.program.dim == cert.x.size
    found.add("dimension", fits, f"{cert.x.size}, the function has {problem.program.dim}")
    size, index = problem.system.size, cert.constraint_index
    found.add(
        "constraints",
        cert.multipliers.size == size and bool(((index >= 0) & (index < size)).all()),
        fit_message(cert.multipliers.size, size),
    )
    return found.ok


def _check_place(found: Verification, cert: NearKKTCertificate, problem: ExactProblem) -> None:
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


def _signs_fit(cert: NearKKTCertificate, system: System) -> tuple[bool, str]:
    for i in range(system.size):
        weights = cert.constraint_weights[cert.constraint_index == i]
        if (weights > 0).any() and (weights < 0).any():
            return False, f"{system.name(i)}: weights of both signs are no multiplier"
        total = math.fsum(weights.tolist())
        if abs(total - cert.multipliers[i]) > 1e-9 * abs(total):
            return False, f"{system.name(i)}: {cert.multipliers[i]:g} is stated, {total:g} is used"
        if total and not math.isfinite(system.upper[i] if total > 0 else system.lower[i]):
            return False, f"{system.name(i)}: {total:g} has the wrong sign, there is no such limit"
    return True, "signs fit the limits"


def residual(cert: NearKKTCertificate, problem: ExactProblem, allowance: int = 1) -> float:
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
    cert: NearKKTCertificate, problem: ExactProblem, rows: Sequence[int] | NDArray[np.intp]
) -> list[Limit]:
    """Return the limits of gradients that rows of the certificate stand for."""
    found: list[Limit] = []
    for r in rows:
        part = problem.parts[int(cert.constraint_index[r])]
        found += part.limits(cert.exact_pivot, cert.constraint_directions[r : r + 1])
    return found


def qualification(cert: NearKKTCertificate, problem: ExactProblem, seed: int) -> float:
    """Return how far gradients of constraints in use are from cancelling each other at the pivot.

    They are looked at along all stored directions, their opposites and a few random ones: an upper
    bound. Linear equalities are left out, their gradients form a line by nature.
    """
    rng = stream(seed, 0, "qualification")
    random = rng.standard_normal((PAIRS, cert.x.size))
    stored = np.concatenate([cert.constraint_directions, cert.directions, random])
    index: list[int] = []
    rows: list[list[float]] = []
    for i in cert.active:
        part, equal = problem.parts[i], problem.system.equal[i]
        if part.is_affine and equal:
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
    free = ~problem.box.fixed
    return qualification_of(np.array(index, dtype=np.intp), matrix, cert.normal, free)


def prove_near_kkt(
    problem: ExactProblem,
    x: Vector,
    pivot: Sequence[Fraction],
    directions: Matrix,
    weights: Vector,
    rows: list[tuple[int, Vector, float]],
    normal: Vector,
    meta: dict[str, Any],
) -> NearKKTCertificate:
    """Derive eps and delta, and state them; `rows` are (component, direction, signed weight).

    Raises
    ------
    NotCertifiableError
        When a direction does not show an element of a subdifferential.
    """
    multipliers = np.zeros(problem.system.size)
    for i in {i for i, _, _ in rows}:
        multipliers[i] = math.fsum(w for k, _, w in rows if k == i)
    claim: dict[str, Any] = {
        "x": x, "exact_pivot": tuple(pivot), "directions": directions, "weights": weights,
        "constraint_directions": np.array([v for _, v, _ in rows]).reshape(-1, x.size),
        "constraint_index": np.array([i for i, _, _ in rows], dtype=np.int64),
        "constraint_weights": np.array([w for _, _, w in rows]),
        "normal": normal, "multipliers": multipliers, "meta": dict(meta),
        "delta": sqrt_upper(squared_distance(tuple(pivot), x)),
    }  # fmt: skip
    eps = residual(NearKKTCertificate(**claim, eps=0.0), problem, CHANGE_OF_MACHINE)
    return NearKKTCertificate(**claim, eps=eps)


__all__ = ["ExactProblem", "check_near_kkt", "constraint_limits", "prove_near_kkt", "residual"]
