"""Arrays of exact rationals, with the operations that nodes need.

One positive denominator serves a whole array: sums and products are those of Python's integers.
`goldstein.checker.enclosures` has the same operations for intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Indices
from goldstein.checker.errors import Irrational, NotCertifiableError
from goldstein.checker.rationals import common_denominator

#: Longer numbers are not multiplied, in bits: nested squares double them with every step.
MAX_BITS = 2**19

#: Denominators beyond this many bits are reduced, where there is something to reduce.
_LONG = 512


class Exact:
    """The array `top / den`, an integer array over one positive integer.

    Examples
    --------
    >>> half = Exact.of([Fraction(1, 2), Fraction(1, 3)])
    >>> (half * half + half).fractions
    [Fraction(3, 4), Fraction(4, 9)]
    """

    def __init__(self, top: NDArray[Any], den: int = 1) -> None:
        if den.bit_length() > _LONG:
            shared = math.gcd(den, *top.ravel().tolist())
            if shared > 1:
                top, den = top // shared, den // shared
        self.top, self.den = top, den

    @classmethod
    def of(cls, values: Sequence[Any] | NDArray[Any]) -> Exact:
        """Return numbers (floats, integers, Fractions) exactly."""
        tops, den = common_denominator(values)
        array = np.empty(len(tops), dtype=object)
        array[:] = tops
        return cls(array, den)

    @property
    def fractions(self) -> list[Fraction]:
        return [Fraction(a, self.den) for a in self.top.ravel().tolist()]

    def signs(self, level: Fraction = Fraction(0)) -> Indices:
        """Return the signs of the entries minus a level."""
        gaps = self.top * level.denominator - level.numerator * self.den
        return np.array([(a > 0) - (a < 0) for a in gaps.ravel().tolist()], dtype=np.intp)

    def __getitem__(self, index: Any) -> Exact:
        return Exact(self.top[index], self.den)

    def reshape(self, *shape: int) -> Exact:
        return Exact(self.top.reshape(*shape), self.den)

    def __add__(self, other: Any) -> Exact:
        if not isinstance(other, Exact):
            other = Exact.of([other])
        den = math.lcm(self.den, other.den)
        return Exact(self.top * (den // self.den) + other.top * (den // other.den), den)

    def __mul__(self, other: Exact) -> Exact:
        _require_short(self, other)
        return Exact(self.top * other.top, self.den * other.den)

    def __matmul__(self, other: Exact) -> Exact:
        _require_short(self, other)
        return Exact(self.top @ other.top, self.den * other.den)

    def sum(self, axis: int) -> Exact:
        return Exact(np.asarray(self.top.sum(axis=axis), dtype=object), self.den)

    def reciprocal(self) -> Exact:
        if not self.top.all():
            raise Irrational("a quotient by 0")
        shared = math.lcm(*self.top.ravel().tolist())
        tops = np.empty(self.top.shape, dtype=object)
        tops.flat = [shared // a * self.den for a in self.top.ravel().tolist()]
        return Exact(tops, shared)

    def segments(self, ends: Indices) -> Exact:
        """Return the sums of consecutive entries; `ends` is where the sums begin and end."""
        tops, spans = self.top.tolist(), ends.tolist()
        sums = np.empty(len(spans) - 1, dtype=object)
        sums[:] = [sum(tops[a:b]) for a, b in zip(spans, spans[1:])]
        return Exact(sums, self.den)

    def scattered(self, places: Indices, size: int) -> Exact:
        """Return an array of zeros to whose entries these are added at their places."""
        out = np.zeros(size, dtype=object)
        np.add.at(out, places, self.top.ravel())
        return Exact(out, self.den)

    @property
    def swapped(self) -> Exact:
        """The last two axes exchanged."""
        return Exact(self.top.swapaxes(-1, -2), self.den)

    def replaced(self, places: slice, values: Any) -> Exact:
        """Return this vector with a row replaced."""
        if not isinstance(values, Exact):
            raise Irrational("a direction that is enclosed only")
        den = math.lcm(self.den, values.den)
        top = self.top * (den // self.den)
        top[places] = values.top * (den // values.den)
        return Exact(top, den)

    def root(self) -> Exact:
        """Return the square roots, where all of them are rational."""
        roots = np.empty(self.top.shape, dtype=object)
        roots.flat = [math.isqrt(a * self.den) for a in self.top.ravel().tolist()]
        if (roots * roots != self.top * self.den).any():
            raise Irrational("norm2")
        return Exact(roots, self.den)

    def require_positive(self, name: str) -> None:
        if not (self.signs() > 0).all():
            raise NotCertifiableError(f"the argument of {name} is not positive.")

    def apply(self, function: Any) -> Exact:
        """A smooth function of a rational is irrational as a rule."""
        raise Irrational(function.name)


def _require_short(*factors: Exact) -> None:
    for numbers in factors:
        longest = max(map(int.bit_length, numbers.top.ravel().tolist()), default=0)
        if max(longest, numbers.den.bit_length()) > MAX_BITS:
            raise Irrational("a number of too many digits")


__all__ = ["Exact"]
