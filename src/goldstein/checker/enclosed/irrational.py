"""Nodes whose values are irrational as a rule, so that they are enclosed: smooth functions of one
number, logarithms of sums of exponentials, and Euclidean norms, of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.enclosed.arrays import FUNCTIONS, Enclosure
from goldstein.checker.errors import Irrational
from goldstein.checker.exact import Exact, Still
from goldstein.checker.nodes import Array, Kinked, Node, Rowwise, Series


class Curved(Node):
    """A function of each row of a table, or of each entry."""

    rational = False
    columns = 1
    #: It is 0 at 0.
    keeps_zero: bool = False

    def still(self, args: Sequence[Series], piece: Any, loose: dict[int, list[int]]) -> Series:
        nonzero, moves = (c.reshape(self.size, self.columns).sum(axis=1) for c in args[0])
        return [nonzero if self.keeps_zero else Still.of(np.ones(self.size)), moves]


@dataclass(frozen=True, eq=False)
class Smooth(Curved):
    """A smooth function of one number, entry by entry: of `goldstein.checker.enclosed.arrays`."""

    function: Any

    @property
    def keeps_zero(self) -> bool:  # type: ignore[override]
        return bool(self.function.keeps_zero)

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        if more and u.longest is None:  # exact series are polynomials, all of them
            raise Irrational(self.function.name)
        return [self.function.at(u), *(self.backward(c, [u], piece)[0] for c in more[:1])]

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        return [g * self.function.slope_of(args[0])]


@dataclass(frozen=True, eq=False)
class Summed(Rowwise, Curved):
    """A function of a sum over each row."""

    def along(self, g: Array) -> Array:
        """Return numbers of the rows, one for each of their entries."""
        return g[np.repeat(np.arange(self.size), self.columns)]

    def forward(self, args: Sequence[Series], piece: Any) -> Series:
        u, *more = args[0]
        value = self.value(u)
        (unit,) = self.backward(type(u).of([1] * self.size), [u], piece) if more else (None,)
        return [value, *(self.rows(unit * c).sum(axis=1) for c in more[:1])]

    def value(self, u: Array) -> Array:
        raise NotImplementedError


class LogSumExp(Summed):
    """log(exp(u_1) + ... + exp(u_k)) of each row."""

    def powers(self, u: Array) -> tuple[Enclosure, Enclosure]:
        """Return exp(u - m) for rows u of a table, m about the largest entry, and the m."""
        if isinstance(u, Exact):
            raise Irrational(self.name)
        top = Enclosure(self.rows(u.mid).max(axis=1))
        return FUNCTIONS["exp"].at(u - self.along(top)), top

    def value(self, u: Array) -> Array:
        powers, top = self.powers(u)
        return FUNCTIONS["log"].at(self.rows(powers).sum(axis=1)) + top

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        powers, _ = self.powers(args[0])
        return [powers * self.along(g * self.rows(powers).sum(axis=1).reciprocal())]


class Norm2(Summed, Kinked):
    """The Euclidean norm of each row; its kink is the origin.

    A piece holds, by row, the directions in which rows leave the origin.
    """

    keeps_zero = True

    def decide(self, u: Array) -> tuple[dict[int, Any], dict[int, list[int]]]:
        zero = np.flatnonzero(~self.rows(u.signs()).any(axis=1)).tolist()
        spans = ((row * self.columns, (row + 1) * self.columns) for row in zero)
        # Where a row stays at the origin, nothing depends on its direction.
        way = Exact.of([1] + [0] * (self.columns - 1))
        return dict.fromkeys(zero, way), {row: list(range(*span)) for row, span in zip(zero, spans)}

    def leave(self, piece: Any, places: list[int], path: Series) -> tuple[Any, list[int]]:
        way = next((c for c in path if c.signs().any()), None)
        return (piece, places) if way is None else (way, [])

    def value(self, u: Array) -> Array:
        return self.rows(u * u).sum(axis=1).root()

    def backward(self, g: Array, args: Sequence[Array], piece: Any) -> list[Array]:
        u = args[0]
        for row, direction in piece.items():
            u = u.replaced(slice(row * self.columns, (row + 1) * self.columns), direction)
        return [u * self.along(g * self.value(u).reciprocal())]
