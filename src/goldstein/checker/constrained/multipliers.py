"""What multipliers have to satisfy: signs, activity, and constraints that say something about f."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask
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
