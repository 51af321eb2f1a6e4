"""The constants of Algorithm 1 (Perturbed INGD), each as a small function.

Corrected as explained in docs/errata.md; L is a Lipschitz constant on the delta-neighbourhood of
the sublevel set of the start, q = |m|/L.
"""

from __future__ import annotations

import math
import sys

#: Failure probability of one round. 1/e makes the product of rounds and steps cheapest.
CHEAP_ROUND_FAILURE = 1.0 / math.e


def averaging_weight(q: float) -> float:
    """Return beta(q): the weight of the old average that minimises the proof's bound on E|m'|^2.

    Valid for 0 <= q <= 1; beyond that L was too small (beta even has a pole at q = 1.833751).

    Examples
    --------
    >>> averaging_weight(1.0)
    0.5
    """
    return (8.0 - q - 4.0 * q * q) / (8.0 - q - q**3)


def steps_per_round(
    lipschitz: float, eps: float, round_failure: float = CHEAP_ROUND_FAILURE
) -> int:
    """Return K: after this many failed steps |m| <= eps fails with probability < round_failure.

    Examples
    --------
    >>> steps_per_round(1.0, 0.1, 1 / 16), steps_per_round(1.0, 0.1)
    (8000, 1360)
    """
    ratio = lipschitz / eps
    if not ratio < 1e100:  # more steps than anyone will make, but still a number
        return sys.maxsize
    return max(1, math.ceil(_snap(5.0 * ratio**2 / round_failure)))


def descent_steps(gap: float, eps: float, delta: float) -> int:
    """Return T: more moves than this would take f below f(x1) - gap.

    Examples
    --------
    >>> descent_steps(1.0, 0.1, 0.1)
    400
    """
    return max(1, math.ceil(_snap(4.0 * gap / (eps * delta))))


def rounds(moves: int, gamma: float, round_failure: float = CHEAP_ROUND_FAILURE) -> int:
    """Return R: restarts at one point, so that all T points fail with probability <= gamma.

    Examples
    --------
    >>> rounds(400, 0.01, 1 / 16), rounds(400, 0.01)
    (4, 11)
    """
    return max(1, math.ceil(math.log(moves / gamma) / math.log(1.0 / round_failure)))


def _snap(value: float) -> float:
    """Undo the last-bit error of the division, so that 4/(0.1*0.1) means 400 and not 401."""
    nearest = round(value)
    return float(nearest) if abs(value - nearest) <= 1e-12 * value else value
