"""The near claim: a pivot within delta of x has a Clarke subgradient of norm at most eps.

The evidence is a rational pivot y, directions v_j and weights a_j >= 0. The limits g_j of gradients
along the directions belong to the subdifferential at y, which is convex: |sum a_j g_j| / sum a_j
bounds its distance from 0. Nothing that is stored is believed. Bounds and constraints add rows
(`goldstein.checker.constrained.near`).
"""

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker import errors, exact, rounding, sides
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.point import boxed, farthest
from goldstein.checker.rationals import sqrt_upper, squared_norm
from goldstein.checker.verification import Verification


def unusable(x: Vector, vectors: Matrix, weights: Vector) -> str:
    """Say what makes the evidence unusable, or nothing."""
    if not all(np.isfinite(a).all() for a in (x, vectors, weights)):
        return "an entry is not finite"
    if (weights < 0).any() or not weights.any():
        return "the weights are negative, or all 0"
    total = sum(weights.tolist())
    return "" if math.isfinite(total) else "the sum of the weights is beyond float64; scale them"


def bound(limits: sides.Limits, weights: Vector, allowance: int = 1) -> float:
    """Return an upper bound of |sum a_j g_j| / sum a_j; radii count `allowance` times."""
    if limits.exact is not None:
        return combined_upper(weights, limits.exact)
    spread = max(rounding.norm_upper(r) for r in limits.rad)
    weights = np.ldexp(weights, -math.frexp(weights.max())[1])  # any other weights are as good
    return rounding.up(rounding.combination_norm_upper(weights, limits.mid) + allowance * spread)


def combined_upper(weights: Vector, limits: Sequence[Sequence[Fraction]]) -> float:
    """Return an upper bound of |sum a_j g_j| / sum a_j for exact vectors."""
    shares = [Fraction(float(a)) for a in weights]
    total = sum(shares, Fraction(0))
    return sqrt_upper(squared_norm(exact.exact_combination(shares, limits)) / (total * total))


def check(cert: Any, program: sides.Program, problem: Any = None, seed: int = 0) -> Verification:
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
    box = boxed(cert)
    if box and not (np.isfinite(box[0]) & (box[0] >= 0)).all():
        found.add("box", False, "a radius is not a finite number >= 0")
        return found
    square = farthest(cert.exact_pivot, cert.x, box)
    found.delta = sqrt_upper(square)
    inside = math.isinf(cert.delta) or square <= Fraction(cert.delta) ** 2
    found.add("ball", inside, f"pivot at distance {found.delta:.6g}, claimed {cert.delta:.6g}")
    used = cert.weights > 0
    try:
        if problem is not None:
            problem.check_place(found, cert)
        if not found.ok:
            return found
        point = sides.point_at(program, cert.exact_pivot, int(used.sum()), box)
        limits, weights = point.limits(cert.directions[used]), cert.weights[used]
        if problem is None:
            found.eps = bound(limits, weights)
        else:
            found.eps = problem.residual(cert, limits, weights)
            problem.check_qualification(found, cert, seed)
    except errors.GoldsteinError as failure:
        found.add("subgradients", False, str(failure))
        return found
    words = f"{int(used.sum())} limits of gradients at the pivot ({point.arithmetic})"
    found.add("subgradients", True, words)
    words = f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    found.add("bound", found.eps <= cert.eps, words)
    return found.conclude(cert.label)
