"""The kinds of nodes that have kinks, and how the pieces that rule at a point are found.

`decide` returns the piece of every entry, and the entries that are exactly on a breakpoint: which
side they go to depends on the direction in which the point is left (`goldstein.checker.sides`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from goldstein.checker.arrays import Indices
from goldstein.checker.enclosures import Enclosure
from goldstein.checker.nodes import (
    Args,
    Exact,
    Node,
    Numbers,
    Paths,
    Places,
    Rowwise,
    Still,
    gathered,
)
from goldstein.checker.rationals import Polynomial, Q, combined, multiplied, to_fraction

Ask = Callable[[Sequence[int]], list[Fraction]]
Coefficients = tuple[tuple[Fraction, ...], ...]


@dataclass(frozen=True, eq=False)
class Piecewise(Node):
    """A continuous function of one number, a polynomial between breakpoints, entry by entry.

    Attributes
    ----------
    breakpoints : tuple of Fraction
        Ascending.
    pieces : tuple of tuples of Fraction
        Coefficients by ascending power, all of one length; one piece more than breakpoints.
    """

    breakpoints: tuple[Fraction, ...]
    pieces: Coefficients
    affine = False
    decides = True

    def fits(self) -> bool:
        lengths = {len(piece) for piece in self.pieces}
        ascending = all(a < b for a, b in pairwise(self.breakpoints))
        count = len(self.pieces) == len(self.breakpoints) + 1
        if not (super().fits() and ascending and count and len(lengths) == 1 and min(lengths) > 0):
            return False
        return all(
            _at(left, t) == _at(right, t)
            for t, (left, right) in zip(self.breakpoints, pairwise(self.pieces))
        )

    @property
    def flat(self) -> bool:  # type: ignore[override]
        return not any(any(piece[2:]) for piece in self.pieces)

    @cached_property
    def slopes(self) -> Coefficients:
        """The derivatives of the pieces."""
        return tuple(
            tuple(k * c for k, c in enumerate(piece))[1:] or (Fraction(0),) for piece in self.pieces
        )

    @cached_property
    def jumps(self) -> list[Fraction]:
        """By how much the derivative jumps at each breakpoint; 0 is no kink."""
        return [
            _at(right, t) - _at(left, t)
            for t, (left, right) in zip(self.breakpoints, pairwise(self.slopes))
        ]

    def decide(self, u: Enclosure, exact: Ask) -> tuple[Indices, dict[int, int]]:
        piece, ties = np.zeros(self.size, dtype=np.intp), {}
        for k, t in enumerate(self.breakpoints):
            gap = u - Enclosure.from_fractions([t])
            piece += gap.proven & (gap.mid > 0)
            doubtful = np.flatnonzero(~gap.proven).tolist()
            for i, value in zip(doubtful, exact(doubtful)):
                piece[i] += value > t
                if value == t:
                    ties[i] = k
        return piece, ties

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return _enclosed(self.pieces, args[0], piece)

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        return [g * _enclosed(self.slopes, args[0], piece)]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        return {p: _composed(self.pieces[piece[p]], args[0][p]) for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        if self.flat:
            return [gathered((p, c * Q(self.slopes[piece[p]][0])) for p, c in g.items())]
        values = zip(g.items(), exact[0](g))
        return [gathered((p, c * _composed(self.slopes[piece[p]], [u])[0]) for (p, c), u in values)]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        flat = np.array([not any(p[1:]) for p in self.pieces])[piece]
        zero = np.array([not any(p) for p in self.pieces])[piece]
        strictly = np.ones(self.size, bool)
        strictly[list(loose)] = False
        keeps_zero = self.pieces[sum(t < 0 for t in self.breakpoints)][0] == 0
        return Still(
            args[0].constant | (flat & strictly), (args[0].zero & keeps_zero) | (zero & strictly)
        )


@dataclass(frozen=True, eq=False)
class Max(Rowwise):
    """The largest entry of each row. A piece is the place of the entry that is the largest."""

    flat = True
    decides = True

    @np.errstate(all="ignore")
    def decide(self, u: Enclosure, exact: Ask) -> tuple[Indices, dict[int, list[int]]]:
        table = self.rows(u)
        low, high = table.ends()
        # Written so that a NaN or an overflow counts as doubt.
        rivals = ~(high < low.max(axis=1, keepdims=True))
        start = np.arange(self.size) * self.columns
        piece, ties = start + rivals.argmax(axis=1), {}
        for row in np.flatnonzero(rivals.sum(axis=1) > 1).tolist():
            places = (start[row] + np.flatnonzero(rivals[row])).tolist()
            values = exact(places)
            best = max(values)
            tied = [place for place, value in zip(places, values) if value == best]
            piece[row] = tied[0]
            if len(tied) > 1:
                ties[row] = tied
        return piece, ties

    def forward(self, args: Args, piece: Any) -> Enclosure:
        return args[0][piece]

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        mid, rad = np.zeros(self.sizes[0]), np.zeros(self.sizes[0])
        mid[piece], rad[piece] = g.mid, g.rad
        return [Enclosure(mid, rad)]

    def needs(self, places: Places, piece: Any) -> list[Places]:
        return [[int(piece[p]) for p in places]]

    def entries(self, places: Places, args: list[Paths], piece: Any) -> Paths:
        return {p: args[0][int(piece[p])] for p in places}

    def pull(self, g: Numbers, exact: Exact, piece: Any) -> list[Numbers]:
        return [{int(piece[p]): c for p, c in g.items()}]

    def still(self, args: Sequence[Still], piece: Any, loose: Any) -> Still:
        constant, zero = (mask[piece] for mask in args[0])
        for row, tied in loose.items():
            constant[row], zero[row] = (bool(mask[tied].all()) for mask in args[0])
        return Still(constant, zero)


@dataclass(frozen=True, eq=False)
class Norm2(Rowwise):
    """The Euclidean norm of each row; its kink is the origin.

    A piece holds directions: of rows too small to be told from 0 by enclosures, and those in which
    rows leave the origin.
    """

    decides = True

    def decide(self, u: Enclosure, exact: Ask) -> tuple[Numbers, dict[int, list[int]]]:
        piece: Numbers = {}
        ties: dict[int, list[int]] = {}
        for row in np.flatnonzero(~self.rows(u).proven.any(axis=1)).tolist():
            places = list(range(row * self.columns, (row + 1) * self.columns))
            values = exact(places)
            if any(values):
                piece[row] = values
            else:
                ties[row] = places
        return piece, ties

    def forward(self, args: Args, piece: Any) -> Enclosure:
        table = self.rows(args[0])
        answer: Enclosure = ((table * table) @ np.ones(self.columns)).root()
        return answer

    def backward(self, g: Enclosure, args: Args, piece: Any) -> list[Enclosure]:
        table = self.rows(args[0])
        mid, rad = table.mid.copy(), table.rad.copy()
        for row, values in piece.items():
            top = max(map(abs, values))  # the square of the largest does not underflow
            way = Enclosure.from_fractions([to_fraction(value) / top for value in values])
            mid[row], rad[row] = way.mid, way.rad
        table = Enclosure(mid, rad)
        length = ((table * table) @ np.ones(self.columns)).root()
        unit = table * (g * length.reciprocal()).reshape(-1, 1)
        return [unit.reshape(-1)]


@np.errstate(all="ignore")
def _enclosed(tables: Coefficients, u: Enclosure, piece: Indices) -> Enclosure:
    """Evaluate the polynomial of its piece at every entry (Horner)."""
    rows = [Enclosure.from_fractions(table) for table in tables]
    mid, rad = np.array([row.mid for row in rows]), np.array([row.rad for row in rows])
    total = Enclosure(mid[piece, -1], rad[piece, -1])
    for power in range(mid.shape[1] - 2, -1, -1):
        total = total * u + Enclosure(mid[piece, power], rad[piece, power])
    return total


def _composed(coefficients: Sequence[Fraction], u: Polynomial) -> Polynomial:
    """Return a polynomial of a polynomial in t."""
    total = [Q(coefficients[-1])]
    for c in reversed(coefficients[:-1]):
        total = combined([(Q(1), multiplied(total, u)), (Q(1), [Q(c)])])
    return total


def _at(coefficients: Sequence[Fraction], t: Fraction) -> Fraction:
    return sum((c * t**k for k, c in enumerate(coefficients)), Fraction(0))
