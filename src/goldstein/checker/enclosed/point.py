"""What holds at a point, for irrational and large functions.

Enclosures in float64 decide what their radii prove. Where they leave something open, exact numbers
decide, and of these only the entries that matter are computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.arrays import Indices, Matrix
from goldstein.checker.enclosed import common_part
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.part import Part
from goldstein.checker.enclosed.roots import Box
from goldstein.checker.errors import Irrational, NotCertifiableError
from goldstein.checker.exact import ZERO, Exact
from goldstein.checker.nodes import Array, LogSumExp, Norm2, Series
from goldstein.checker.sides import Limits, Numbers, Pause, Point, Program, Side, exact_limits


class EnclosedPoint(Point):
    """A point with enclosed values; what is decided about it is exact."""

    arithmetic = "enclosed in float64"

    def __init__(self, program: Program, y: Numbers, box: tuple[Any, Any] | None = None) -> None:
        self.box = None if box is None else Box(program, *box)
        super().__init__(program, y)
        if self.box is not None:
            self.box.check(self)

    def start(self) -> Enclosure:
        """Return the point; where it is only known by a box, all of that."""
        at = Enclosure.of(self.y)
        return at if self.box is None else at + Enclosure(np.zeros(at.size), self.box.radii)

    def _moves_in_box(self, part: Part) -> bool:
        return self.box is not None and bool(self.box.radii[part.places].any())

    def enclosed(self, vector: Any) -> Enclosure:
        return Enclosure.of(vector)

    def view(self, k: int) -> _View:
        return _View(self, k)

    def exact(self, k: int, places: list[int]) -> Exact:
        """Return exact values of some entries of a node, given in ascending order."""
        part = Part(self.program, self.pieces, k, places)
        try:
            if self._moves_in_box(part):
                raise Irrational("variables that are only enclosed")
            found: Exact = part.series(self.y)[0]
            return found
        except Irrational as what:
            if (Side(self, None, nodes=[]).constant(k)[places] == ZERO).all():
                return Exact(np.zeros(len(places), dtype=object))
            raise NotCertifiableError(
                "whether an argument of a kink is exactly on it cannot be decided: it contains "
                f"{what}, and its enclosure straddles the kink."
            ) from None

    def between(self) -> tuple[Fraction, Fraction]:
        try:
            (value,) = self.exact(self.program.last, [0]).fractions
            return value, value
        except NotCertifiableError:  # an irrational number: an interval around it
            box: Enclosure = self.value(self.program.last)
            require_finite(box.mid, box.rad)
            mid, rad = Fraction(float(box.mid[0])), Fraction(float(box.rad[0]))
            return mid - rad, mid + rad

    def path(self, side: Side, k: int, places: list[int]) -> Series:
        part = Part(self.program, side.pieces, k, places)
        if not self._moves_in_box(part):
            with suppress(Irrational):
                return part.series(self.y, side.v)[1:]
        # The derivative along v, over all of the box. More coefficients would not help: that one
        # that is only enclosed is 0 cannot be known.
        return super().path(side, k, places)

    def moves(self, side: Side, k: int, factors: dict[int, int]) -> bool:
        places = sorted(factors)
        part = Part(self.program, side.pieces, k, places)
        return bool(part.backward(Exact.of([factors[i] for i in places]), {}).top.any())

    def limits(self, directions: Matrix | Sequence[Numbers], pause: Pause = lambda: None) -> Limits:
        small, boxed = self.program.is_small(len(directions)), self.box is not None
        boxes = None if small or boxed else common_part.limits(self, np.asarray(directions))
        if boxes is not None:
            require_finite(*boxes)
            return Limits(None, *boxes)
        sides = [Side(self, v, pause) for v in directions]
        irrational = any(isinstance(n, LogSumExp | Norm2) for n in self.program.nodes)
        if small and not boxed and not irrational:
            with suppress(Irrational):  # a logarithm has rational slopes
                return exact_limits(self._exact_gradient(side) for side in sides)
        found = [side.gradient() for side in sides]
        mids, rads = (np.array([getattr(g, end) for g in found]) for end in ("mid", "rad"))
        require_finite(mids, rads)
        return Limits(None, mids, rads)

    def _exact_gradient(self, side: Side) -> list[Fraction]:
        part = Part(self.program, side.pieces, self.program.last, [0])
        found = part.backward(Exact.of([1]), part.start(self.y))
        g = [Fraction(0)] * self.program.dim
        for place, entry in zip(part.places.tolist(), found.fractions):
            g[place] = entry
        return g


class _View:
    """A node's entries: signs that enclosures prove, and exact ones for the rest."""

    def __init__(self, point: EnclosedPoint, k: int) -> None:
        self.point, self.k = point, k

    def signs(self, level: Fraction = Fraction(0)) -> Indices:
        u: Enclosure = self.point.value(self.k)
        signs = u.signs(level)
        box, doubtful = self.point.box, np.flatnonzero(signs == 0)
        if box is not None:
            open_ = [i for i in doubtful.tolist() if not box.is_at(self.k, i, level)]
            doubtful = np.array(open_, dtype=np.intp)
        if doubtful.size:
            exact = self.point.exact(self.k, doubtful.tolist())
            signs[doubtful] = exact.signs(level)
            # What is known exactly is enclosed tightly from here on.
            mid, rad, tight = u.mid.copy(), u.rad.copy(), Enclosure.of(exact.fractions)
            mid[doubtful], rad[doubtful] = tight.mid, tight.rad
            self.point.values[self.k] = [Enclosure(mid, rad)]
        return signs

    def largest(self, columns: int) -> list[list[int]]:
        u: Enclosure = self.point.value(self.k)
        tied = u.largest(columns)
        for row, places in enumerate(tied):
            if len(places) > 1 and not self._tied(places):
                best = self.point.exact(self.k, places).largest(len(places))[0]
                tied[row] = [places[j] for j in best]
        return tied

    def _tied(self, places: list[int]) -> bool:
        return self.point.box is not None and self.point.box.are_tied(self.k, places)

    def ordered(self, columns: int, matters: Any) -> list[list[int]]:
        u: Enclosure = self.point.value(self.k)
        found, start = list[list[int]](), 0
        for chain in u.ordered(columns):
            if matters(start, len(chain)) and not self._tied(chain):
                places = sorted(chain)
                exact = self.point.exact(self.k, places).ordered(len(places))
                found += [[places[j] for j in same] for same in exact]
            else:
                found.append(chain)
            start += len(chain)
        return found


def require_finite(mid: Array, rad: Array) -> None:
    """Refuse enclosures that say nothing."""
    if not (np.isfinite(mid).all() and np.isfinite(rad).all()):
        raise NotCertifiableError(
            "the gradient or value could not be enclosed: it overflows, or divides by an interval "
            "around 0. Rescale the data."
        )


__all__ = ["EnclosedPoint", "require_finite"]
