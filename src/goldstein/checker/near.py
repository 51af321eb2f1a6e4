"""The near claim: a pivot within delta of x has a Clarke subgradient of norm at most eps.

The evidence is a rational pivot y, directions v_j and weights a_j >= 0. The limits g_j of gradients
along the directions belong to the subdifferential at y, which is convex: |sum a_j g_j| / sum a_j
bounds its distance from 0. Nothing that is stored is believed. Bounds and constraints add rows
(`goldstein.checker.constrained.near`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.errors import GoldsteinError, NotCertifiableError
from goldstein.checker.exact import exact_combination
from goldstein.checker.rationals import fraction_upper, sqrt_upper, squared_distance, squared_norm
from goldstein.checker.rounding import combination_norm_upper, norm_upper, up
from goldstein.checker.sides import Limits, Program, point_at
from goldstein.checker.verification import Verification


@dataclass(frozen=True)
class Shown:
    """What directions show at a pivot: a bound, limits of gradients in float64, their errors."""

    eps: float
    gradients: Matrix
    errors: Vector


def unusable(x: Vector, vectors: Matrix, weights: Vector) -> str:
    """Say what makes the evidence unusable, or nothing."""
    if not all(np.isfinite(a).all() for a in (x, vectors, weights)):
        return "an entry is not finite"
    if (weights < 0).any() or not weights.any():
        return "the weights are negative, or all 0"
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    return "" if math.isfinite(total) else "the sum of the weights is beyond float64; scale them"


def show(limits: Limits, weights: Vector, allowance: int = 1) -> Shown:
    """Derive the bound; radii of enclosures count `allowance` times."""
    exact, mid, rad = limits
    if exact is None:
        spread = max(norm_upper(r) for r in rad)
        eps = up(combination_norm_upper(_of_size_one(weights), mid) + allowance * spread)
        return Shown(eps, mid, rad.max(axis=1))
    if not np.isfinite(mid).all():
        raise NotCertifiableError(
            "a gradient at the pivot is beyond the range of float64; rescale the data."
        )
    rows = zip(mid.tolist(), exact, strict=True)
    errors = [max(abs(Fraction(f) - g) for f, g in zip(row, limit)) for row, limit in rows]
    return Shown(combined_upper(weights, exact), mid, np.array([fraction_upper(e) for e in errors]))


def combined_upper(weights: Vector, limits: Sequence[Sequence[Fraction]]) -> float:
    """Return an upper bound of |sum a_j g_j| / sum a_j for exact vectors."""
    if len(limits) == 1:  # its weight cancels
        return sqrt_upper(squared_norm(limits[0]))
    shares = [Fraction(float(a)) for a in weights]
    total = sum(shares, Fraction(0))
    return sqrt_upper(squared_norm(exact_combination(shares, limits)) / (total * total))


def check(cert: Any, program: Program, problem: Any = None, seed: int = 0) -> Verification:
    """Decide a near claim, with a sentence for everything that was looked at.

    With a `problem` it is a claim about bounds and constraints, too.
    """
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    fault = unusable(cert.x, cert.directions, cert.weights)
    if not (cert.eps >= 0 and cert.delta >= 0):
        fault = f"eps = {cert.eps:g} and delta = {cert.delta:g} must not be negative"
    if not found.add("numbers", not fault, fault or "finite, weights nonnegative"):
        return found
    fits = program.dim == cert.x.size == len(cert.exact_pivot)
    if not found.add("dimension", fits, f"{cert.x.size}, the function has {program.dim}"):
        return found
    square = squared_distance(cert.exact_pivot, cert.x)
    found.delta = sqrt_upper(square)
    inside = math.isinf(cert.delta) or square <= Fraction(cert.delta) ** 2
    found.add("ball", inside, f"pivot at distance {found.delta:.6g}, claimed {cert.delta:.6g}")
    used = cert.weights > 0
    try:
        if problem is not None:
            problem.check_place(found, cert)
        if not found.ok:
            return found
        point = point_at(program, cert.exact_pivot, int(used.sum()))
        limits, weights = point.limits(cert.directions[used]), cert.weights[used]
        if problem is None:
            found.eps = show(limits, weights).eps
        else:
            found.eps = problem.residual(cert, limits, weights)
            problem.check_qualification(found, cert, seed)
    except GoldsteinError as failure:
        found.add("subgradients", False, str(failure))
        return found
    how = f" ({point.arithmetic})"
    found.add("subgradients", True, f"{int(used.sum())} limits of gradients at the pivot{how}")
    found.add(
        "bound", found.eps <= cert.eps, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    )
    if found.ok:
        found.label = "certified"
    supported = cert.label in ("certified", "conditional", "estimated")
    found.add("label", supported, f"claimed {cert.label}, this check proves {found.label}")
    return found


def _of_size_one(weights: Vector) -> Vector:
    """Scale weights by a power of two, where none of them loses a digit by it."""
    exponent = math.frexp(float(weights.max()))[1]
    scaled = np.ldexp(weights, -exponent)
    return scaled if np.array_equal(np.ldexp(scaled, exponent), weights) else weights


__all__ = ["Shown", "check", "combined_upper", "show", "unusable"]
