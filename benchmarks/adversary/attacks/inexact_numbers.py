"""Numbers that are no floats: bounds, limits and matrices as rationals, decimals, long integers.

A claim is about the numbers that were given. Who rounds them and then certifies has certified
another problem: a pivot on the rounded bound is beside the bound, or beyond it.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from benchmarks.adversary.ask import square_distance, verdict
from benchmarks.adversary.suite import Attack, Rng, Seen
from scipy.optimize import LinearConstraint

import goldstein as gs


def _number(rng: Rng) -> tuple[Any, Fraction]:
    """Return a number as a user may give it, and what it is."""
    numerator, denominator = int(rng.integers(1, 30)), int(rng.choice([3, 7, 10, 8]))
    kind = int(rng.integers(5))
    if kind == 0:
        given: Any = Fraction(numerator, denominator)
    elif kind == 1:
        given = Decimal(numerator) / Decimal(10)
    elif kind == 2:
        wide = np.longdouble(numerator) / np.longdouble(denominator)
        return wide, Fraction(*wide.as_integer_ratio())
    elif kind == 3:
        given = 2**53 + 1 + 2 * numerator
    else:
        given = numerator / denominator  # a float is what it is
    return given, Fraction(given)


def inexact_numbers(rng: Rng, seen: Seen) -> None:
    given, exact = _number(rng)
    deed = int(rng.integers(4))
    seen.note(f"{given!r}, {('bound', 'limit', 'matrix', 'x')[deed]}")
    try:
        if deed == 3:
            _proved(seen, given, exact)
        else:
            _limited(rng, seen, given, exact, deed)
    except gs.GoldsteinError as refusal:
        seen.silent(f"refused: {refusal}")
    except (TypeError, ValueError) as refusal:  # of SciPy, which the user asked first
        seen.silent(f"refused: {refusal}")


def _limited(rng: Rng, seen: Seen, given: Any, exact: Fraction, deed: int) -> None:
    """|x - far| where x <= given: KKT exactly there, and nowhere else."""
    far = float(2 * exact + 10)
    near = bool(rng.random() < 0.6)
    w = gs.Variable(1)
    F: Any = gs.sum(gs.abs(w - far))
    limits: dict[str, Any]
    if deed == 0:
        limits = {"bounds": [(-1.0, given)]}
    elif deed == 1:
        limits = {"constraints": [w[0] <= given]}
    else:
        # given * x <= given**2; SciPy may have rounded the matrix before anybody else sees it.
        limit = LinearConstraint(np.array([[given]], dtype=object), -np.inf, float(exact * exact))
        limits = {"constraints": [limit]}
        exact = Fraction(float(exact * exact)) / Fraction(*limit.A[0][0].as_integer_ratio())
    ask: dict[str, Any] = {"eps": 1e-3, "delta": max(1e-3, 1e-9 * far), "rng": 0, "max_calls": 400}
    if near:
        ask["stationarity"] = "near"
    function: tuple[Any, ...] = (F,)
    if not near:
        function = (lambda x: float(abs(x[0] - far)), lambda x: np.sign(x - far))
    result = gs.minimize(function[0], [0.5], *function[1:], **ask, **limits)
    claim = result.certificate
    if claim is None or not result.success:
        seen.silent(f"status {result.status.name}")
        return
    ok, label = verdict(claim, *function, **limits)
    exactly = getattr(claim, "exact_pivot", None)
    point = exactly[0] if exactly else Fraction(float(claim.x[0]))
    # Values of the constraints of a black box are believed up to rounding.
    room = Fraction(0) if exactly else Fraction(claim.feasibility) + abs(exact) / 2**48
    wrong = ""
    if point > exact + room:
        wrong = f"it is beyond the limit by {float(point - exact):g}"
    elif exactly and point < exact:
        wrong = f"it is inside by {float(exact - point):g}, where no multiplier belongs"
    seen.claim(ok, label, not wrong, f"{claim.summary()}; {wrong}", own=True)


def _proved(seen: Seen, given: Any, exact: Fraction) -> None:
    """A near proof about x = given with a pivot there."""
    F = gs.sum(gs.abs(gs.Variable(1) - float(exact)))
    ways = np.array([[1.0], [-1.0]])
    claim = gs.NearCertificate.prove(F, [given], [Fraction(float(exact))], ways, [0.5, 0.5])
    ok, label = verdict(claim, F)
    wrong = square_distance(claim.exact_pivot, [exact]) > Fraction(claim.delta) ** 2
    said = f"the pivot is within {claim.delta!r} of {given!r}"
    seen.claim(ok, label, not wrong, said, own=True)


ATTACK = Attack(
    "inexact-numbers",
    "rationals, decimals, longdouble and long integers as bounds, limits, matrices and points",
    weight=2,
    one=inexact_numbers,
)
