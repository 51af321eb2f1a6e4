"""Arrays of intervals with float64 ends, rounded outwards only where a result is not exact.

Small integers and dyadic numbers therefore stay exact: a sum that cancels is 0, and a ball that
touches a kink is seen to touch it. The products 0 * inf that occur are limits of 0 * t: they are 0.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from goldstein.checker import nodes, rationals, rounding


@np.errstate(all="ignore")
def times(a: Any, b: Any, end: float) -> Any:
    """Return a b rounded towards `end`, an infinity."""
    p = np.where((a == 0) | (b == 0), 0.0, a * b)
    e = rounding.product_error(a, b, p)
    return _towards(p, ~(e * math.copysign(1.0, end) <= 0), end, a, b)


@np.errstate(all="ignore")
def plus(a: Any, b: Any, end: float) -> Any:
    """Return a + b rounded towards `end`."""
    s = np.asarray(a + b)
    part = s - a
    e = (a - (s - part)) + (b - part)
    return _towards(s, ~(e * math.copysign(1.0, end) <= 0), end, a, b)


def _towards(result: Any, wrong: Any, end: float, a: Any, b: Any) -> Any:
    infinite = np.isinf(a) | np.isinf(b)
    moved = np.where(wrong & ~infinite, np.nextafter(result, end), result)
    return np.where(np.isnan(moved), end, moved)


@np.errstate(all="ignore")
def over(a: Any, b: Any, end: float) -> Any:
    """Return a / b rounded towards `end`, for b other than 0 and finite."""
    q = np.asarray(a / b)
    p = q * b
    exact = (p == a) & (rounding.product_error(q, np.broadcast_to(b, q.shape), p) == 0)
    return np.where(exact | np.isinf(a), q, np.nextafter(q, end))


def _unit(a: Any) -> float:
    """Return the largest power of two that divides all numbers of an array; 0 for a tiny one."""
    data = np.asarray(getattr(a, "data", a) if not isinstance(a, np.ndarray) else a).ravel()
    mantissa, exponent = np.frexp(data[data != 0])
    if not mantissa.size:
        return math.inf
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    lowest = np.log2((whole & -whole).astype(np.float64)).astype(np.int64)
    least = int((exponent - 53 + lowest).min())
    return math.ldexp(1.0, least) if least > -500 else 0.0


@np.errstate(all="ignore")
def product(A: Any, B: Any) -> tuple[Any, Any]:
    """Return A @ B for finite arrays, and a bound of its error: 0 where every sum is exact.

    All products are multiples of the product of the units, and so are all partial sums: below 2^53
    such units each of them is a float64 number, in any order of summation.
    """
    size = abs(A) @ abs(B)
    terms = A.shape[-1]
    value = A @ B
    units = _unit(A), _unit(B)
    unit = math.inf if math.inf in units else units[0] * units[1]
    wrong = rounding.gamma(terms + 2) * size * (1.0 + 2.0**-40) + terms * 2.0**-1000
    error = np.where(size * (1.0 + 2.0**-40) < 2.0**52 * unit, 0.0, wrong)
    return value, np.where(np.isfinite(value), error, np.inf)


class Span:
    """An array of closed intervals [lo, hi]; ends may be infinite."""

    def __init__(self, lo: Any, hi: Any = None) -> None:
        self.lo = np.asarray(lo, dtype=np.float64)
        self.hi = self.lo if hi is None else np.asarray(hi, dtype=np.float64)
        if np.array_equal(self.lo, self.hi):  # numbers, and cheaper
            self.hi = self.lo

    @classmethod
    def of(cls, values: Any) -> Span:
        """Return the tightest intervals around rationals."""
        hi = np.array([rationals.fraction_upper(v) for v in values])
        return cls(-np.array([rationals.fraction_upper(-v) for v in values]), hi)

    def __getitem__(self, index: Any) -> Span:
        return Span(self.lo[index], None if self.lo is self.hi else self.hi[index])

    def ravel(self) -> Span:
        return Span(self.lo.ravel(), self.hi.ravel())

    def __neg__(self) -> Span:
        return Span(-self.hi, -self.lo)

    def __add__(self, other: Span) -> Span:
        return Span(plus(self.lo, other.lo, -np.inf), plus(self.hi, other.hi, np.inf))

    def __mul__(self, other: Span) -> Span:
        mine = (self.lo,) if self.lo is self.hi else (self.lo, self.hi)
        its = (other.lo,) if other.lo is other.hi else (other.lo, other.hi)
        pairs = [(a, b) for a in mine for b in its]
        low = np.minimum.reduce([times(a, b, -np.inf) for a, b in pairs])
        return Span(low, np.maximum.reduce([times(a, b, np.inf) for a, b in pairs]))

    def over(self, divisor: Any) -> Span:
        """Divide by exact numbers, none of which is 0."""
        ends = [(self.lo, self.hi), (self.hi, self.lo)]
        (a, b), (c, d) = ([over(e, divisor, s) for e, s in zip(p, (-np.inf, np.inf))] for p in ends)
        return Span(np.where(divisor > 0, a, c), np.where(divisor > 0, b, d))

    @property
    def size(self) -> Any:
        """The largest absolute values."""
        return np.maximum(np.abs(self.lo), np.abs(self.hi))

    @property
    def least(self) -> Any:
        """The smallest absolute values."""
        across = (self.lo <= 0) & (self.hi >= 0)
        return np.where(across, 0.0, np.minimum(np.abs(self.lo), np.abs(self.hi)))

    @property
    def mid(self) -> Any:
        """The midpoints; 0 of intervals that are not finite."""
        if self.lo is self.hi:
            return self.lo
        finite = np.isfinite(self.lo) & np.isfinite(self.hi)
        with np.errstate(all="ignore"):
            return np.where(finite, self.lo / 2 + self.hi / 2, 0.0)

    @property
    def rad(self) -> Any:
        """Bounds of how far members are from the midpoints."""
        mid = self.mid
        return np.maximum(plus(self.hi, -mid, np.inf), plus(mid, -self.lo, np.inf))

    def meet(self, other: Span) -> Span:
        """Return the intersection of intervals that contain one number."""
        return Span(np.maximum(self.lo, other.lo), np.minimum(self.hi, other.hi))

    def hull(self, other: Span) -> Span:
        return Span(np.minimum(self.lo, other.lo), np.maximum(self.hi, other.hi))

    def where(self, mask: Any, other: Span) -> Span:
        """Return these intervals, and others where the mask is not set."""
        return Span(np.where(mask, self.lo, other.lo), np.where(mask, self.hi, other.hi))

    def through(self, matrix: Any) -> Span:
        """Return a matrix of exact numbers times this vector."""
        if self.lo is self.hi and np.isfinite(self.lo).all():
            found = product(matrix, self.lo)
            return Span(*(moved(*found, end) for end in (-np.inf, np.inf)))
        up, down = matrix * (matrix > 0), matrix * (matrix < 0)
        low = _one_end(up, self.lo, -np.inf), _one_end(down, self.hi, -np.inf)
        high = _one_end(up, self.hi, np.inf), _one_end(down, self.lo, np.inf)
        return Span(plus(*low, -np.inf), plus(*high, np.inf))


def _one_end(matrix: Any, ends: Any, end: float) -> Any:
    """Return matrix @ ends, rounded towards `end`; where infinite ends enter, that is `end`."""
    infinite = np.isinf(ends)
    found = moved(*product(matrix, np.where(infinite, 0.0, ends)), end)
    return np.where((abs(matrix) @ infinite.astype(float)) > 0, end, found)


@np.errstate(all="ignore")
def moved(value: Any, error: Any, end: float) -> Any:
    """Return what is known up to an error, rounded towards `end`."""
    far = np.nextafter(value + math.copysign(1.0, end) * error, end)
    return np.where(error > 0, np.where(np.isnan(far), end, far), value)


def power_sum(coefficients: list[Fraction], u: Span) -> Span:
    """Return the range of a polynomial on intervals: exact up to degree 2 but for rounding.

    A polynomial whose derivative has one sign is monotone: its ends do. One of degree 2 has one
    more extreme point. Otherwise Horner's rule on the intervals contains the range.
    """
    while len(coefficients) > 1 and not coefficients[-1]:
        coefficients = coefficients[:-1]
    if len(coefficients) == 1:
        return _number(coefficients[0]).where(np.ones(u.lo.shape, bool), u)
    ends = _horner(coefficients, Span(u.lo)).hull(_horner(coefficients, Span(u.hi)))
    if len(coefficients) == 2:
        return ends
    slope = power_sum([k * c for k, c in enumerate(coefficients)][1:], u)
    wide = _horner(coefficients, u)
    if len(coefficients) == 3:
        vertex = -coefficients[1] / (2 * coefficients[2])
        wide = ends.hull(Span.of([nodes.polynomial(coefficients, vertex)]))
    return ends.where((slope.lo >= 0) | (slope.hi <= 0), wide)


def _horner(coefficients: list[Fraction], u: Span) -> Span:
    out = _number(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = out * u + _number(c)
    return out


@lru_cache(4096)
def _number(value: Fraction) -> Span:
    return Span.of([value])
