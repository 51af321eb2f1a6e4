"""Sums whose last bit does not depend on the order of the terms, freak cases aside."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Self

import numpy as np

from goldstein.checker.arrays import Vector

#: Entries that are added at a time.
BLOCK = 2**15


class LongSum:
    """A float64 sum carried to twice the precision (Knuth's two-sum, the errors added apart).

    Parts of a sum that were formed elsewhere are joined without a loss: data in memory and data in
    chunks add up to the same float64 numbers.

    Examples
    --------
    >>> total = LongSum(1)
    >>> for term in (1e16, 1.0, -1e16):
    ...     total.add(np.array([term]))
    >>> total.total()
    array([1.])
    """

    def __init__(self, size: int) -> None:
        self.high: Vector = np.zeros(size)
        self.low: Vector = np.zeros(size)

    def add(self, term: Vector) -> None:
        """Add a vector, block by block: nothing of its size is made on the way."""
        for first in range(0, self.high.size, BLOCK):
            part = slice(first, first + BLOCK)
            high, more = self.high[part], term[part]
            total = high + more
            shadow = total - high
            self.low[part] += (high - (total - shadow)) + (more - shadow)
            high[:] = total

    def join(self, other: LongSum) -> Self:
        """Add another long sum; return self."""
        self.add(other.high)
        self.low += other.low
        return self

    def total(self) -> Vector:
        """Return the rounded sum."""
        # An infinite sum has no error term worth adding.
        return np.where(np.isfinite(self.high), self.high + self.low, self.high)


def exact_sum(values: Vector) -> Fraction:
    """Return the sum of finite floats without any rounding, fast for many of them.

    Examples
    --------
    >>> exact_sum(np.array([1.0, 2.0**-60])) == 1 + Fraction(1, 2**60)
    True
    """
    total, rest = Fraction(0), values.tolist()
    try:
        # fsum rounds correctly: what it leaves shrinks until nothing is left.
        while part := math.fsum(rest):
            total += Fraction(part)
            rest.append(-part)
    except OverflowError:
        return sum(map(Fraction, values.tolist()), Fraction(0))
    return total
