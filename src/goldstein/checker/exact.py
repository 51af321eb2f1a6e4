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

from goldstein.checker.arrays import Indices
from goldstein.checker.errors import Irrational
from goldstein.checker.rationals import common_denominator, fraction_upper

#: Longer numbers are not multiplied, in bits: nested squares double them with every step.
MAX_BITS = 2**19

#: What is known of an entry near a point: 0: nothing; CONSTANT: it does not change; ZERO: nor is it
#: anything but 0.
CONSTANT, ZERO = 1, 2

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
        tops, den = common_denominator(values)
        return cls(_objects(tops), den)

    @property
    def fractions(self) -> list[Fraction]:
        return [Fraction(a, self.den) for a in self.top.ravel().tolist()]

    def ends(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the nearest floats that are not above, and not below."""
        high, low = (np.array([fraction_upper(s * q) for q in self.fractions]) for s in (1, -1))
        return -low, high

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
            raise Irrational("a quotient by 0")
        return Exact.of([1 / q for q in self.fractions]).reshape(*self.top.shape)

    def apply(self, function: Any) -> Exact:
        """A smooth function of a rational is irrational as a rule; so are roots."""
        function.require_domain(self)
        found = [function.exact(q) for q in self.fractions]
        if any(value is None for value in found):
            raise Irrational(function.name)
        return Exact.of(found).reshape(*self.top.shape)

    def root(self) -> Exact:
        raise Irrational("norm2")

    def powers(self, node: Any) -> tuple[Exact, Exact]:
        raise Irrational(node.name)


class Still:
    """Which entries of a node are constant near a point, those of its arguments being known."""

    longest: int | None = None

    def __init__(self, level: NDArray[np.int8]) -> None:
        self.level = level

    @classmethod
    def of(cls, values: Sequence[Any] | NDArray[Any]) -> Still:
        return cls(np.where(np.asarray(values) == 0, ZERO, CONSTANT).astype(np.int8))

    def __getitem__(self, index: Any) -> Still:
        return Still(self.level[index])

    def reshape(self, *shape: int) -> Still:
        return Still(self.level.reshape(*shape))

    def __add__(self, other: Still) -> Still:
        return Still(np.minimum(self.level, other.level))

    def sum(self, axis: int) -> Still:
        return Still(self.level.min(axis=axis))

    def __mul__(self, other: Still) -> Still:
        return self._product(other, np.multiply)

    def __matmul__(self, other: Still) -> Still:
        return self._product(other, np.matmul)

    def _product(self, other: Still, product: Any) -> Still:
        """0 times whatever moves is constant."""

        def some(left: int, right: int) -> Any:
            """Is there a product of two factors that are both below these levels?"""
            below = self.level < left, other.level < right
            return product(*(mask.astype(np.float64) for mask in below)) > 0

        moves = some(CONSTANT, ZERO) | some(ZERO, CONSTANT)
        level = np.where(some(ZERO, ZERO), CONSTANT, ZERO)
        return Still(np.where(moves, 0, level).astype(np.int8))

    def linear(self, node: Any) -> Still:
        level = np.full(node.size, ZERO if node.rational else 0, dtype=np.int8)
        if node.rational:
            np.minimum.at(level, node.owners, self.level[node.rows.indices])
        return Still(level)

    def apply(self, function: Any) -> Still:
        return Still(np.minimum(self.level, ZERO if function.keeps_zero else CONSTANT))

    def reciprocal(self) -> Still:
        return Still(np.minimum(self.level, CONSTANT))

    def powers(self, node: Any) -> tuple[Still, Still]:
        return self.reciprocal(), Still.of([0] * node.size)

    log, root = reciprocal, lambda self: self


def _objects(integers: list[int]) -> NDArray[Any]:
    array = np.empty(len(integers), dtype=object)
    array[:] = integers
    return array


def _require_short(*factors: Exact) -> None:
    for numbers in factors:
        longest = max(map(int.bit_length, numbers.top.ravel().tolist()), default=0)
        if max(longest, numbers.den.bit_length()) > MAX_BITS:
            raise Irrational("a number of too many digits")


def exact_combination(weights: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[Fraction]:
    """Return the sum of weights times vectors.

    Examples
    --------
    >>> exact_combination([0.5, 0.5], [[1.0, 0.0], [0.0, 3.0]])
    [Fraction(1, 2), Fraction(3, 2)]
    """
    table = Exact.of(list(chain(*rows))).reshape(len(rows), -1)
    return (Exact.of(weights) @ table).fractions
