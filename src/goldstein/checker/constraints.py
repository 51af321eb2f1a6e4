"""What the claims about constrained problems share: limits, multipliers, normals, qualification."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.box import Box
from goldstein.checker.rounding import combination_norm_upper, up

#: Which component of the constraints a row belongs to.
Rows = NDArray[np.intp]

#: Proposes (a, b), a convex and b >= 0, for which a @ hull + b @ cone is short. Not believed.
ConicOptimise = Callable[[Matrix, Matrix], tuple[Vector, Vector]]

#: Constraints whose gradients come this close to cancelling each other (relative to their lengths)
#: say nothing about f.
DEGENERATE = 1e-3

#: Equalities, and inequalities at the end of a search, may be violated by this much (relative to
#: their limits, where these exceed 1); whatever is left is printed.
FEASIBLE = 1e-9


class Limits(Protocol):
    """lower <= c(x) <= upper, all components numbered."""

    size: int
    lower: Vector
    upper: Vector
    equal: Mask
    linear: Mask

    def name(self, i: int) -> str: ...


class Constraints(Limits, Protocol):
    """Limits, with the functions themselves: values, shape (m,), and Jacobian, shape (m, d)."""

    def values(self, x: Vector) -> Vector: ...
    def rows(self, x: Vector) -> Matrix: ...


class WithMultipliers(Protocol):
    """The part of a certificate that speaks of constraints."""

    @property
    def constraint_index(self) -> Rows: ...
    @property
    def constraint_weights(self) -> Vector: ...
    @property
    def multipliers(self) -> Vector: ...


def excess(limits: Limits, values: Vector) -> Vector:
    """Return by how much each component is violated: positive above upper, negative below lower."""
    above = np.maximum(values - limits.upper, 0.0)
    below = np.maximum(limits.lower - values, 0.0)
    found: Vector = above - below
    return found


def tolerances(limits: Limits) -> Vector:
    """Return what each component may be violated by."""
    sides = [np.abs(np.where(np.isfinite(s), s, 0.0)) for s in (limits.lower, limits.upper)]
    found: Vector = FEASIBLE * np.maximum(1.0, np.maximum(*sides))
    return found


def fits(cert: WithMultipliers, limits: Limits) -> tuple[bool, str]:
    """Decide whether these can be the constraints of the certificate."""
    stated, size, index = cert.multipliers.size, limits.size, cert.constraint_index
    advice = "" if stated == size else "; pass the constraints= that minimize was given"
    ok = stated == size and bool(((index >= 0) & (index < size)).all())
    return ok, f"{stated} multipliers for {size} components{advice}"


def signs_fit(cert: WithMultipliers, limits: Limits) -> tuple[bool, str]:
    """Decide whether the multipliers are the weights used, of one sign, that of their limits."""
    for i in range(limits.size):
        weights = cert.constraint_weights[cert.constraint_index == i]
        if (weights > 0).any() and (weights < 0).any():
            return False, f"{limits.name(i)}: weights of both signs cancel each other"
        total = math.fsum(weights.tolist())
        if not abs(total - cert.multipliers[i]) <= 1e-9 * abs(total):
            return False, f"{limits.name(i)}: {cert.multipliers[i]:g} is stated, {total:g} is used"
        if total and not math.isfinite(limits.upper[i] if total > 0 else limits.lower[i]):
            return False, f"{limits.name(i)}: {total:g} has the wrong sign, there is no such limit"
    return True, "signs fit the limits"


def combined_upper(
    weights: Vector, gradients: Matrix, signed: Vector, rows: Matrix, normal: Vector
) -> float:
    """Return an upper bound of |weights @ gradients + signed @ rows + normal|."""
    factors = np.concatenate([weights, np.abs(signed), [1.0]])
    stacked = np.concatenate([gradients, np.sign(signed)[:, None] * rows, normal[None]])
    with np.errstate(over="ignore"):
        total = up(math.fsum(factors.tolist()))
    mean = combination_norm_upper(factors, stacked)
    return up(mean * total) if mean else 0.0


def best_normal(total: Vector, low: Mask, high: Mask) -> Vector:
    """Return the normal vector that cancels most of `total`.

    Its entries may be negative where `low` is true and positive where `high` is.
    """
    found: Vector = np.where(low, np.minimum(-total, 0.0), 0.0)
    return found + np.where(high, np.maximum(-total, 0.0), 0.0) + 0.0


def qualification_of(
    index: Rows, signed_rows: Matrix, normal: Vector, box: Box, optimise: ConicOptimise
) -> float:
    """Bound from below how far gradients of constraints (times the multiplier's sign) are from 0.

    The distance between 0 and their hull, each divided by the longest of its constraint, plus the
    cone of the normals in use; 1 where there is nothing to qualify. `optimise` proposes the
    shortest vector v. It is not believed: where <r, v> >= t |v| for every row and <k, v> >= 0 for
    every normal, nothing in hull plus cone is shorter than t.

    Examples
    --------
    >>> rows, nothing = np.array([[3.0, 0.0], [0.0, 4.0]]), Box(np.full(2, -1.0), np.full(2, 1.0))
    >>> def middle(hull, cone): return np.array([0.5, 0.5]), np.zeros(0)
    >>> round(qualification_of(np.array([0, 1]), rows, np.zeros(2), nothing, middle), 4)
    0.7071
    """
    if not len(signed_rows):
        return 1.0
    lengths = np.linalg.norm(signed_rows, axis=1)
    longest = np.array([lengths[index == i].max() for i in index])
    if not (np.isfinite(longest).all() and longest.all()):
        return 0.0
    rows = signed_rows / longest[:, None]
    used = np.flatnonzero((normal != 0.0) & ~box.fixed)
    cone = np.zeros((used.size, normal.size))
    cone[np.arange(used.size), used] = np.sign(normal[used])
    a, b = optimise(rows, cone)
    shortest = a @ rows + b @ cone
    # Entries against a normal are 0 up to rounding; without them the direction is one of the cone.
    shortest[used] = np.where(np.sign(normal[used]) * shortest[used] >= 0.0, shortest[used], 0.0)
    length = float(np.linalg.norm(shortest))
    if length == 0.0:
        return 0.0
    return min(1.0, max(0.0, float((rows @ (shortest / length)).min())))
