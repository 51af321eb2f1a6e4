"""Arithmetic on constants that rounds in the safe direction.

Nonnegative floats, infinity allowed. Each result is the nearest float on the safe side of the exact
one, so that a bound stays a bound and representable results stay exact. `0 * inf` is 0: a missing
term stays missing however large its factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction

from goldstein.checker.rationals import fraction_upper, sqrt_upper


def fraction_lower(value: Fraction) -> float:
    """Return the largest float that is not above a rational."""
    return -fraction_upper(-value)


def sqrt_lower(value: Fraction) -> float:
    """Return a float that is at most the square root of a rational, within a few ulps."""
    upper = sqrt_upper(value)
    return fraction_lower(value / Fraction(upper)) if 0.0 < upper < math.inf else 0.0


def sum_up(terms: Iterable[float]) -> float:
    """Return an upper bound of a sum of nonnegative numbers.

    Examples
    --------
    >>> sum_up([3.0, 4.0]), sum_up([1.0, 1e-30]) > 1.0
    (7.0, True)
    """
    values = list(terms)
    if any(math.isinf(value) for value in values):
        return math.inf
    return fraction_upper(sum((Fraction(value) for value in values), Fraction(0)))


def product_up(*factors: float) -> float:
    """Return an upper bound of a product of nonnegative numbers."""
    values = list(factors)
    if any(value == 0.0 for value in values):
        return 0.0
    if any(math.isinf(value) for value in values):
        return math.inf
    return fraction_upper(math.prod(map(Fraction, values), start=Fraction(1)))


def quotient_up(top: float, bottom: float) -> float:
    """Return an upper bound of `top / bottom`, for nonnegative top and positive bottom."""
    return _quotient(top, bottom, up=True)


def quotient_down(top: float, bottom: float) -> float:
    """Return a lower bound of `top / bottom`, for nonnegative top and positive bottom.

    Examples
    --------
    >>> quotient_down(1.0, 4.0), Fraction(quotient_down(1.0, 3.0)) < Fraction(1, 3)
    (0.25, True)
    """
    return _quotient(top, bottom, up=False)


def _quotient(top: float, bottom: float, *, up: bool) -> float:
    if top == 0.0 or math.isinf(bottom):
        return 0.0
    if math.isinf(top):
        return math.inf
    exact = Fraction(top) / Fraction(bottom)
    return fraction_upper(exact) if up else fraction_lower(exact)


def root_up(value: float) -> float:
    """Return an upper bound of a square root."""
    return math.inf if math.isinf(value) else sqrt_upper(Fraction(value))


def root_sum_squares_up(terms: Iterable[float]) -> float:
    """Return an upper bound of the Euclidean norm of finitely many numbers.

    Examples
    --------
    >>> root_sum_squares_up([3.0, 4.0])
    5.0
    """
    values = list(terms)
    if any(math.isinf(value) for value in values):
        return math.inf
    return sqrt_upper(sum((Fraction(value) ** 2 for value in values), Fraction(0)))
