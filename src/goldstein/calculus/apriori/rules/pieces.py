"""Pieces and pivots: kinks that are known one by one."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise

from goldstein.calculus.apriori.outer_lipschitz import OuterLipschitz
from goldstein.calculus.apriori.rules.checks import nonnegative, nonnegatives, positive
from goldstein.errors import NotCertifiableError


def pieces(pivot_radius: float, reach: float, piece_moduli: Sequence[float]) -> OuterLipschitz:
    """Rule R8: with kinks on hyperplanes the modulus is the largest of the smooth pieces'.

    The pivot must lie on every kink that the ball of radius `reach` meets, and on the point's side
    of all others; all pivots of the rules R2, R3 and R3' do.

    Proof: every cell that meets the ball has the pivot y in its closure, so the segment [y, z]
    stays in one closed cell, along which one smooth piece's gradient moves by at most kappa |z-y|.

    Not in the paper; usually much tighter than R4 to R6.

    Examples
    --------
    >>> pieces(0.2, 0.1, [1.0, 3.0, 2.0]).modulus
    3.0
    """
    return OuterLipschitz(pivot_radius, reach, max(nonnegatives(piece_moduli, "piece_moduli")))


def scalar_pieces(
    radius: float, kinks: Sequence[float], piece_moduli: Sequence[float]
) -> OuterLipschitz:
    """Rule R8 on the line: `(r, r, max beta)` while r is below half the smallest gap of kinks.

    Proof: a closed ball of radius r < gap/2 around x meets at most one kink, and the pivot is that
    kink if it does (the nearest one within r), else x.

    Examples
    --------
    >>> scalar_pieces(0.4, [0.0, 1.0], [0.0, 2.0, 0.0])
    OuterLipschitz(pivot_radius=0.4, reach=0.4, modulus=2.0)
    """
    radius = positive(radius, "radius")
    ordered = sorted(Fraction(kink) for kink in kinks)
    gap = min((b - a for a, b in pairwise(ordered)), default=None)
    if gap is not None and not 2 * Fraction(radius) < gap:
        raise NotCertifiableError(
            f"radius is {radius}, but kinks are only {float(gap)} apart; a radius below "
            f"{float(gap / 2)} works."
        )
    return pieces(radius, radius, piece_moduli)


def nearest_kink_pivot(u: float, kinks: Sequence[float], radius: float) -> float:
    """Return the nearest kink if it lies within `radius` of u (closed), else u.

    Ties go to the kink nearest 0.

    Examples
    --------
    >>> nearest_kink_pivot(0.5, [0.0, 1.0], 0.5), nearest_kink_pivot(0.5, [0.0, 1.0], 0.4)
    (0.0, 0.5)
    """
    radius = nonnegative(radius, "radius")
    exact = [Fraction(kink) for kink in kinks]
    found = nearest_kink(Fraction(u), exact, Fraction(radius) ** 2)
    return u if found is None else float(found)


def nearest_kink(
    u: Fraction, kinks: Sequence[Fraction], squared_radius: Fraction
) -> Fraction | None:
    """Return the nearest kink if its squared distance is at most the given number, exactly.

    Examples
    --------
    >>> nearest_kink(Fraction(1, 3), [Fraction(0), Fraction(1)], Fraction(1, 9))
    Fraction(0, 1)
    """
    best = min(kinks, key=lambda kink: (abs(u - kink), abs(kink)), default=None)
    # <=, not <: the ball is closed, and a kink on its boundary is met.
    return best if best is not None and (u - best) ** 2 <= squared_radius else None


def gated_pivot(point: Sequence[float], radius: float) -> tuple[float, float]:
    """Return the pivot of `(a, b) -> a max(b, 0)`: put b on its kink if `|b| <= radius`.

    The paper prints `|x|` for `|b|` (E3), which sends nothing to the kink when a is large.

    Examples
    --------
    >>> gated_pivot((5.0, 0.05), 0.1)
    (5.0, 0.0)
    """
    gate, argument = point
    return gate, nearest_kink_pivot(argument, [0.0], radius)


def levelled(values: Sequence[Fraction], squared_reach: Fraction) -> list[Fraction]:
    """Average the values within `sqrt(2) reach` of the largest, exactly."""
    largest = max(values)
    top = [(largest - v) ** 2 <= 2 * squared_reach for v in values]
    mean = sum((v for v, near in zip(values, top) if near), Fraction(0)) / sum(top)
    return [mean if near else v for v, near in zip(values, top)]
