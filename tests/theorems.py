"""Quantities of the theory that the library has no use for, and the tests of the theory have."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.apriori.rules import levelled
from goldstein.checker.rationals import to_fractions
from goldstein.solvers import schedules


def contraction(q: float) -> float:
    """Return c1(q) >= 1/5 with E|m'|^2 <= (1 - c1 q^2) |m|^2 after a failed descent step."""
    return (16 - 8 * q + q * q) / (64 - 16 * q + q * q - 8 * q**3 + q**4)


def oracle_bound(
    lipschitz: float,
    gap: float,
    eps: float,
    delta: float,
    gamma: float,
    round_failure: float = schedules.CHEAP_ROUND_FAILURE,
) -> tuple[int, int]:
    """Return the theorem's bound (values, gradients) for a certificate w.p. >= 1 - gamma."""
    moves = schedules.descent_steps(gap, eps, delta)
    steps = schedules.steps_per_round(lipschitz, eps, round_failure)
    total = moves * schedules.rounds(moves, gamma, round_failure) * steps
    return total + 1, total


def max_pivot(point: Any, reach: float) -> Any:
    """Return the pivot of the maximum of coordinates."""
    levels = levelled(to_fractions(np.asarray(point)), Fraction(reach) ** 2)
    return np.array([float(level) for level in levels])
