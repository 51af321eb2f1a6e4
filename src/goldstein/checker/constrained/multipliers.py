"""What multipliers have to satisfy: signs, activity, and constraints that say something about f."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.constrained.limits import Limits
from goldstein.checker.verification import Verification

#: Constraints whose gradients come this close to cancelling each other (relative to their lengths)
#: say nothing about f.
DEGENERATE = 1e-3


def check(found: Verification, cert: Any, system: Limits, box: Any) -> None:
    """Signs; and, of multipliers that fit, whether their constraints are reached."""
    if check_signs(found, cert, system, box):
        _check_activity(found, cert, system)


def check_signs(found: Verification, cert: Any, system: Limits, box: Any) -> bool:
    """Multipliers fit the constraints: as many, of the sign of their limits; so does the normal."""
    stated, size, index = cert.multipliers.size, system.size, cert.constraint_index
    advice = "" if stated == size else "; pass the constraints= that minimize was given"
    fits = stated == size and bool(((index >= 0) & (index < size)).all())
    if found.add("constraints", fits, f"{stated} multipliers for {size} components{advice}"):
        found.add("multipliers", *_signs_fit(cert, system))
        found.add("normal", *box.normal_fits(cert.normal, getattr(cert, "exact_pivot", cert.x)))
    return found.ok


def _signs_fit(cert: Any, system: Limits) -> tuple[bool, str]:
    for i in range(system.size):
        weights = cert.constraint_weights[cert.constraint_index == i]
        if (weights > 0).any() and (weights < 0).any():
            return False, f"{system.name(i)}: weights of both signs cancel each other"
        total = math.fsum(weights.tolist())
        if not abs(total - cert.multipliers[i]) <= 1e-9 * abs(total):
            return False, f"{system.name(i)}: {cert.multipliers[i]:g} is stated, {total:g} is used"
        if total and not math.isfinite(system.upper[i] if total > 0 else system.lower[i]):
            return False, f"{system.name(i)}: {total:g} has the wrong sign, there is no such limit"
    return True, "signs fit the limits"


def _check_activity(found: Verification, cert: Any, system: Limits) -> None:
    """Feasible at x, and every constraint with a multiplier reached in the ball."""
    values = system.values(cert.x)
    excess = np.abs(system.excess(values))
    violation = float(excess.max(initial=0.0))
    # Another machine rounds the user's own code differently.
    feasible = (excess <= cert.feasibility + 2.0**-48 * np.abs(values)).all()
    words = f"violation {violation:.3g} at x, claimed {cert.feasibility:.3g}"
    found.add("feasibility", bool(feasible), words)
    used = np.flatnonzero(cert.multipliers).tolist()
    missing = [i for i in used if not _reached(cert, system, i)]
    words = "every constraint with a multiplier is reached in the ball"
    if missing:
        words = f"a multiplier on {system.name(missing[0])}, which no stored point reaches"
    found.add("activity", not missing, words)


def _reached(cert: Any, system: Limits, i: int) -> bool:
    """Do stored points reach the limit that the multiplier of component i belongs to?

    An equality holds at x, or has values on both sides of its limit.
    """
    of_f = cert.points[cert.weights > 0]  # others may be anywhere
    points = (cert.x, *cert.constraint_points[cert.constraint_index == i], *of_f)
    values = np.array([system.values(y)[i] for y in points])
    above, below = bool((values >= system.upper[i]).any()), bool((values <= system.lower[i]).any())
    if system.equal[i]:
        return bool(abs(values[0] - system.upper[i]) <= system.tolerances()[i]) or (above and below)
    return above if cert.multipliers[i] > 0 else below


def readings(cert: Any, system: Limits, linear: Mask) -> list[Mask]:
    """Which equalities form a line: linear ones; and, where curved ones are in use, these besides.

    The smaller qualification counts: the sign of a multiplier may be that of a rounding error.
    """
    curved = (cert.multipliers != 0) & system.equal & ~linear
    return [linear, linear | curved] if curved.any() else [linear]


def meant(cert: Any, system: Limits, linear: Mask) -> tuple[list[int], list[int]]:
    """Components that a qualification is about: those with a multiplier, but linear equalities.

    The gradients of these form a line by nature. The others have to say something along them, and
    along equalities without a multiplier: these are returned besides.
    """
    used = cert.multipliers != 0
    some, across = used & ~(linear & system.equal), system.equal & (linear | ~used)
    return np.flatnonzero(some).tolist(), np.flatnonzero(across).tolist()


class Hull:
    """Gradients of constraints, times the sign of their multipliers, and normals in use.

    Nobody moves along `fixed` coordinates, or across the linear equalities with these `rows`: what
    gradients say there does not count.
    """

    def __init__(
        self, normal: Vector, fixed: Mask, rows: Matrix, propose: Callable[[Matrix, Matrix], Any]
    ) -> None:
        used = np.flatnonzero((normal != 0.0) & ~fixed)
        self.used, self.signs, self.fixed = used, np.sign(normal[used]), fixed
        inside = np.where(fixed, 0.0, rows)
        inside = inside[inside.any(axis=1)]
        _, sizes, ways = np.linalg.svd(
            inside / np.abs(inside).max(axis=1, keepdims=True, initial=0.0), full_matrices=False
        )
        self.across: Matrix = ways[sizes > 1e-12 * sizes.max(initial=0.0)]
        self.cone = np.zeros((used.size, normal.size))
        self.cone[np.arange(used.size), used] = self.signs
        self.propose = propose
        #: Components of the constraints, and gradients of them.
        self.rows: list[tuple[int, Vector]] = []

    def tangential(self, rows: Matrix) -> Matrix:
        """Return what is left of rows where one can move."""
        rows = np.where(self.fixed, 0.0, rows)
        return rows - (rows @ self.across.T) @ self.across

    def separation(self) -> tuple[float, Vector]:
        """Bound from below how far the hull plus cone is from 0, each row divided by the longest of
        its constraint; and the direction v that shows it. 1 where there is nothing to qualify.

        The proposal is not believed: where <r, v> >= t |v| for every row and <k, v> >= 0 for every
        normal, nothing in hull plus cone is shorter than t.
        """
        if not self.rows:
            return 1.0, np.zeros(self.cone.shape[1])
        index, rows = (np.array(part) for part in zip(*self.rows))
        lengths = np.linalg.norm(rows, axis=1)
        longest = np.array([lengths[index == i].max() for i in index])
        if not (np.isfinite(longest).all() and longest.all()):
            return 0.0, np.zeros(self.cone.shape[1])
        rows, cone = self.tangential(rows / longest[:, None]), self.tangential(self.cone)
        a, b = self.propose(rows, cone)
        v = a @ rows + b @ cone
        # Entries against a normal are 0 up to rounding; without them v is a direction of the cone.
        v[self.used] = np.where(self.signs * v[self.used] >= 0.0, v[self.used], 0.0)
        v = self.tangential(v)
        length = float(np.linalg.norm(v))
        v = v / length if length else v
        if (self.signs * v[self.used] < -1e-9).any():
            return 0.0, v
        return min(1.0, max(0.0, float((rows @ v).min()))), v
