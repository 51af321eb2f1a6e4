"""Functions of one number before a run: slopes, curvatures, kinks, and how far pivots may reach."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from itertools import combinations
from math import inf, isinf

import numpy as np

from goldstein.calculus.atoms.piecewise import Atom, Curve
from goldstein.calculus.expression import Expression, Variable
from goldstein.checker.arrays import Vector
from goldstein.checker.nodes import Piecewise
from goldstein.checker.nodes import polynomial as power
from goldstein.checker.rationals import fraction_upper
from goldstein.numerics.exact import fraction_lower

Bound = Callable[[float, float], float]


@dataclass(frozen=True)
class Scalar:
    """A function of one number.

    Attributes
    ----------
    kinks : tuple of Fraction
    steepest, sharpest : callable
        (low, high) -> an upper bound of |derivative|, and of |second derivative| off the kinks.
    value : callable
        The function in float64.
    pivot_limit : (float, bool)
        The nearest-kink pivot rule is valid for every radius below, and perhaps at the limit too.
    """

    kinks: tuple[Fraction, ...]
    steepest: Bound
    sharpest: Bound
    value: Callable[[Vector], Vector]
    pivot_limit: tuple[float, bool] = (inf, True)

    @cached_property
    def lipschitz(self) -> float:
        return self.steepest(-inf, inf)

    @cached_property
    def curvature(self) -> float:
        return self.sharpest(-inf, inf)


def scalar_of(e: Expression) -> Scalar | None:
    """Return what is known of an expression that is a function of each entry of another one."""
    if isinstance(e, Atom) and isinstance(e.known, Curve):
        steepest, curvature, kinks = e.known
        sharpest = curvature if callable(curvature) else lambda low, high: curvature
        return Scalar(kinks, steepest, sharpest, partial(_value, e.args[0], e.of))
    if isinstance(e, Atom) or e.kind is not Piecewise:
        return None
    node = Piecewise((0,), (1,), 1, *e.data)
    bends = [[j * c for j, c in enumerate(slope)][1:] for slope in node.slopes]
    steepest, sharpest = (partial(_extreme, node, table) for table in (node.slopes, bends))
    kinks = tuple(t for t, jump in zip(node.breakpoints, node.jumps) if jump)
    limit = _pivot_limit(node, sharpest(-inf, inf))
    return Scalar(kinks, steepest, sharpest, partial(_value, e, e.args[0]), limit)


def _value(meaning: Expression, of: Expression, u: Vector) -> Vector:
    """Return the value of an expression where a part of it is u."""
    return np.asarray(meaning.over(Variable(of.size), of)(np.ravel(u)))


def _extreme(
    node: Piecewise, table: Sequence[Sequence[Fraction]], low: float, high: float
) -> float:
    """Return an upper bound of |polynomials|, one for each piece, on an interval."""
    levels = [-inf, *map(float, node.breakpoints), inf]
    ends = (
        (polynomial, max(low, levels[k]), min(high, levels[k + 1]))
        for k, polynomial in enumerate(table)
    )
    return max(_largest(polynomial, a, b) for polynomial, a, b in ends)


def _largest(polynomial: Sequence[Fraction], left: float, right: float) -> float:
    if left > right or not polynomial:
        return 0.0
    if not any(polynomial[1:]):
        return fraction_upper(abs(polynomial[0]))
    if isinf(left) or isinf(right):
        return inf
    if not any(polynomial[2:]):  # at most linear: the ends are the extremes
        return fraction_upper(max(abs(power(polynomial, Fraction(end))) for end in (left, right)))
    far = max(abs(Fraction(left)), abs(Fraction(right)))
    return fraction_upper(power([abs(a) for a in polynomial], far))


def _pivot_limit(node: Piecewise, curvature: float) -> tuple[float, bool]:
    """Return the radius up to which the nearest kink in a ball is a pivot of it.

    Two kinks may be in one ball if the slopes at each, up to what curvature explains, are among
    those at the other; else the radius is below half their distance. At half, ties go to the kink
    nearest 0: that is right if its slopes contain the other's.
    """
    steps = zip(node.breakpoints, node.slopes, node.slopes[1:], node.jumps)
    sides = {t: sorted((power(a, t), power(b, t))) for t, a, b, jump in steps if jump}

    def contains(a: Fraction, b: Fraction) -> bool:
        slack = abs(a - b) * Fraction(0.0 if isinf(curvature) else curvature)
        (low, high), (first, last) = sides[a], sides[b]
        return low - slack <= first and last <= high + slack

    limits = [(inf, True)]
    for a, b in combinations(sorted(sides, key=abs), 2):
        if not (contains(a, b) and contains(b, a)):
            limits.append((fraction_lower(abs(a - b) / 2), abs(a) != abs(b) and contains(a, b)))
    return min(limits)  # at one limit, not attained comes first
