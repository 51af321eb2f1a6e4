"""Functions of one number before a run: slopes, curvatures, kinks, and how far pivots may reach."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import combinations
from math import inf, isinf
from typing import Any

import numpy as np

from goldstein.calculus.atoms.base import Atom, Curve
from goldstein.calculus.expression import Expression
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import fraction_upper
from goldstein.numerics.directed import fraction_lower


@dataclass(frozen=True)
class Scalar:
    """A function of one number.

    Attributes
    ----------
    kinks : tuple of Fraction
    curvature : float
        Largest |second derivative| inside the pieces.
    pivot_limit : (float, bool)
        The nearest-kink pivot rule is valid for every radius below, and perhaps at the limit too.
    """

    kinks: tuple[Fraction, ...]
    curvature: float
    pivot_limit: tuple[float, bool] = (inf, True)

    def steepest(self, low: float, high: float) -> float:
        """Return an upper bound of |derivative| on an interval."""
        raise NotImplementedError

    def sharpest(self, low: float, high: float) -> float:
        """Return an upper bound of |second derivative| inside the pieces on an interval."""
        return self.curvature

    @cached_property
    def lipschitz(self) -> float:
        return self.steepest(-inf, inf)


@dataclass(frozen=True)
class _Known(Scalar):
    curve: Any = None

    def steepest(self, low: float, high: float) -> float:
        return float(self.curve.steepest(low, high))


@dataclass(frozen=True)
class Polynomials(Scalar):
    """A polynomial between breakpoints."""

    node: Any = None

    @classmethod
    def of(cls, breakpoints: Any, pieces: Any) -> Polynomials:
        node = nodes.Piecewise((0,), (1,), 1, breakpoints, pieces)
        kinks = tuple(t for t, jump in zip(breakpoints, node.jumps) if jump)
        made = cls(kinks, 0.0, node=node)
        curvature = made.sharpest(-inf, inf)
        return cls(kinks, curvature, _pivot_limit(node, curvature), node)

    def value(self, u: Vector) -> Vector:
        """Return the values in float64."""
        levels = np.array([float(t) for t in self.node.breakpoints])
        table = np.array([[float(c) for c in piece] for piece in self.node.pieces])
        rows = table[np.searchsorted(levels, u)]
        total: Vector = rows[..., -1]
        for power in range(table.shape[1] - 2, -1, -1):
            total = total * u + rows[..., power]
        return total

    def steepest(self, low: float, high: float) -> float:
        return max(self._extreme(k, s, low, high) for k, s in enumerate(self.node.slopes))

    def sharpest(self, low: float, high: float) -> float:
        bends = [[j * c for j, c in enumerate(slope)][1:] for slope in self.node.slopes]
        return max(self._extreme(k, bend, low, high) for k, bend in enumerate(bends))

    def _extreme(
        self, piece: int, polynomial: Sequence[Fraction], low: float, high: float
    ) -> float:
        """Return an upper bound of |polynomial| where a piece meets an interval."""
        levels = [-inf, *map(float, self.node.breakpoints), inf]
        left, right = max(low, levels[piece]), min(high, levels[piece + 1])
        if left > right or not polynomial:
            return 0.0
        if not any(polynomial[1:]):
            return fraction_upper(abs(polynomial[0]))
        if isinf(left) or isinf(right):
            return inf
        if not any(polynomial[2:]):  # at most linear: the ends are the extremes
            ends = [abs(_at(polynomial, Fraction(end))) for end in (left, right)]
        else:
            far = max(abs(Fraction(left)), abs(Fraction(right)))
            ends = [_at([abs(a) for a in polynomial], far)]
        return fraction_upper(max(ends))


def _at(coefficients: Sequence[Fraction], t: Fraction) -> Fraction:
    return sum((c * t**k for k, c in enumerate(coefficients)), Fraction(0))


def _pivot_limit(node: nodes.Piecewise, curvature: float) -> tuple[float, bool]:
    """Return the radius up to which the nearest kink in a ball is a pivot of it.

    Two kinks may be in one ball if the slopes at each, up to what curvature explains, are among
    those at the other; else the radius is below half their distance. At half, ties go to the kink
    nearest 0: that is right if its slopes contain the other's.
    """
    sides = {
        t: sorted((_at(left, t), _at(right, t)))
        for t, left, right, jump in zip(node.breakpoints, node.slopes, node.slopes[1:], node.jumps)
        if jump
    }

    def contains(a: Fraction, b: Fraction) -> bool:
        slack = abs(a - b) * Fraction(0.0 if isinf(curvature) else curvature)
        (low, high), (first, last) = sides[a], sides[b]
        return low - slack <= first and last <= high + slack

    limit, attained = inf, True
    for a, b in combinations(sides, 2):
        if contains(a, b) and contains(b, a):
            continue
        half = fraction_lower(abs(a - b) / 2)
        chosen, other = sorted((a, b), key=abs)
        fine = abs(a) != abs(b) and contains(chosen, other)
        if half < limit:
            limit, attained = half, fine
        elif half == limit:
            attained = attained and fine
    return limit, attained


def scalar_of(e: Expression) -> Scalar | None:
    """Return what is known of an expression that is a function of each entry of another one."""
    if isinstance(e, Atom):
        known = e.known
        return (
            _Known(known.kinks, known.curvature, curve=known) if isinstance(known, Curve) else None
        )
    return Polynomials.of(*e.data) if e.kind is nodes.Piecewise else None


__all__ = ["Polynomials", "Scalar", "scalar_of"]
