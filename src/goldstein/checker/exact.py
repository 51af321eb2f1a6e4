"""Arrays with the operations that nodes need: of exact rationals, and of what stays constant.

One positive denominator serves a whole array: sums and products are those of Python's integers.
`goldstein.checker.enclosed.arrays` has the same operations for intervals.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import chain, groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker import errors, rationals
from goldstein.checker.arrays import Indices

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

    #: Series may have any length: they are polynomials.
    longest: int | None = None

    def __init__(self, top: NDArray[Any], den: int = 1) -> None:
        if den.bit_length() > _LONG:
            shared = math.gcd(den, *top.ravel().tolist())
            if shared > 1:
                top, den = top // shared, den // shared
        self.top, self.den = top, den

    @classmethod
    def of(cls, values: Sequence[Any] | NDArray[Any]) -> Exact:
        """Return numbers (floats, integers, Fractions) exactly."""
        tops, den = rationals.common_denominator(values)
        return cls(np.array(tops, dtype=object), den)

    @property
    def fractions(self) -> list[Fraction]:
        return [Fraction(a, self.den) for a in self.top.ravel().tolist()]

    def signs(self, level: Fraction = Fraction(0)) -> Indices:
        """Return the signs of the entries minus a level."""
        gaps = self.top * level.denominator - level.numerator * self.den
        return np.array([(a > 0) - (a < 0) for a in gaps.ravel().tolist()], dtype=np.intp)

    def largest(self, columns: int) -> list[list[int]]:
        """Return, for every row of a table, the places of its largest entries."""
        rows = enumerate(self.top.reshape(-1, columns).tolist())
        tops = ((r * columns, row, max(row)) for r, row in rows)
        return [[start + j for j, a in enumerate(row) if a == top] for start, row, top in tops]

    def ordered(self, columns: int, matters: Any = None) -> list[list[int]]:
        """Return the places of each row of a table in ascending order, equal ones together."""
        found: list[list[int]] = []
        for r, row in enumerate(self.top.reshape(-1, columns).tolist()):
            order = sorted(range(columns), key=row.__getitem__)
            groups = groupby(order, key=row.__getitem__)
            found += [[r * columns + j for j in same] for _, same in groups]
        return found

    def __getitem__(self, index: Any) -> Exact:
        return Exact(self.top[index], self.den)

    def reshape(self, *shape: int) -> Exact:
        return Exact(self.top.reshape(*shape), self.den)

    @property
    def swapped(self) -> Exact:
        """The last two axes exchanged."""
        return Exact(self.top.swapaxes(-1, -2), self.den)

    def __add__(self, other: Exact) -> Exact:
        den = math.lcm(self.den, other.den)
        return Exact(self.top * (den // self.den) + other.top * (den // other.den), den)

    def __mul__(self, other: Exact) -> Exact:
        _require_short(self, other)
        return Exact(self.top * other.top, self.den * other.den)

    def __matmul__(self, other: Exact) -> Exact:
        _require_short(self, other)
        return Exact(self.top @ other.top, self.den * other.den)

    def linear(self, node: Any) -> Exact:
        """Return the matrix of an affine node times this vector."""
        return (self[node.rows.indices] * node.entries).scattered(node.owners, node.size)

    def transposed(self, node: Any) -> Exact:
        """Return the transposed matrix times this vector."""
        return (self[node.owners] * node.entries).scattered(node.rows.indices, node.sizes[0])

    def scattered(self, places: Indices, size: int) -> Exact:
        """Return a vector of zeros to whose entries these are added at their places."""
        out = np.zeros(size, dtype=object)
        np.add.at(out, places, self.top.ravel())
        return Exact(out, self.den)

    def sum(self, axis: int) -> Exact:
        return Exact(np.asarray(self.top.sum(axis=axis), dtype=object), self.den)

    def reciprocal(self) -> Exact:
        if not self.top.all():
            raise errors.Irrational("a quotient by 0")
        return Exact.of([1 / q for q in self.fractions]).reshape(*self.top.shape)

    def root(self) -> Exact:
        raise errors.Irrational("norm2")


class Still(np.ndarray):
    """Where an array may be other than 0: a positive number.

    A series of two says where a node may be other than 0 near a point, and where it may move:
    sums and products do what they do with numbers, for none of these is negative.
    """

    longest = 2

    @classmethod
    def of(cls, values: Any) -> Still:
        return (np.asarray(values) != 0).astype(np.float64).view(cls)

    @property
    def swapped(self) -> Any:
        return self.swapaxes(-1, -2)

    def linear(self, node: Any) -> Still:
        if not node.rational:
            return Still.of(np.ones(node.size))
        return np.bincount(node.owners, self[node.rows.indices], node.size).view(Still)

    def reciprocal(self) -> Still:
        return Still.of(np.ones(self.shape))


def _require_short(*factors: Exact) -> None:
    for numbers in factors:
        longest = max(map(int.bit_length, numbers.top.ravel().tolist()), default=0)
        if max(longest, numbers.den.bit_length()) > MAX_BITS:
            raise errors.Irrational("a number of too many digits")


def exact_combination(weights: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[Fraction]:
    """Return the sum of weights times vectors.

    Examples
    --------
    >>> exact_combination([0.5, 0.5], [[1.0, 0.0], [0.0, 3.0]])
    [Fraction(1, 2), Fraction(3, 2)]
    """
    return (Exact.of(weights) @ Exact.of(list(chain(*rows))).reshape(len(rows), -1)).fractions
