"""What holds at a point, for irrational and large functions.

Enclosures in float64 decide what their radii prove. Where they leave something open, exact numbers
decide, and of these only the entries that matter are computed.
"""

from __future__ import annotations

from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.arrays import Indices, Matrix
from goldstein.checker.enclosed import common_part
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.part import Part
from goldstein.checker.errors import Irrational, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import ZERO, Array, LogSumExp, Norm2, Series
from goldstein.checker.rationals import nearest_float
from goldstein.checker.sides import Limits, Pause, Point, Side


class EnclosedPoint(Point):
    """A point with enclosed values; what is decided about it is exact."""

    arithmetic = "enclosed in float64"

    def enclosed(self, vector: Any) -> Enclosure:
        return Enclosure.of(vector)

    def view(self, k: int) -> _View:
        return _View(self, k)

    def exact(self, k: int, places: list[int]) -> Exact:
        """Return exact values of some entries of a node, given in ascending order."""
        try:
            found: Exact = Part(self.program, self.pieces, k, places).series(self.y)[0]
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
        # A coefficient that is only enclosed would not say which side the next ones are for.
        return Part(self.program, side.pieces, k, places).series(self.y, side.v)[1:]

    def moves(self, side: Side, k: int, factors: dict[int, int]) -> bool:
        places = sorted(factors)
        part = Part(self.program, side.pieces, k, places)
        return bool(part.backward(Exact.of([factors[i] for i in places]), {}).top.any())

    def limits(self, directions: Matrix, pause: Pause | None = None) -> Limits:
        small = self.program.is_small(len(directions))
        boxes = None if small else common_part.limits(self, np.asarray(directions))
        if boxes is not None:
            require_finite(*boxes)
            return Limits(None, *boxes)
        sides = [Side(self, v, pause) for v in directions]
        if small and not any(isinstance(n, LogSumExp | Norm2) for n in self.program.nodes):
            with suppress(Irrational):  # a logarithm has rational slopes
                exact = [self._exact_gradient(side) for side in sides]
                mid = np.array([[nearest_float(g) for g in row] for row in exact])
                return Limits(exact, mid, np.zeros_like(mid))
        found = [side.gradient() for side in sides]
        mids, rads = (np.array([getattr(g, end) for g in found]) for end in ("mid", "rad"))
        require_finite(mids, rads)
        return Limits(None, mids, rads)

    def _exact_gradient(self, side: Side) -> list[Fraction]:
        side.pause()
        part = Part(self.program, side.pieces, self.program.last, [0])
        found = part.backward(Exact.of([1]), part.forward(self.y))
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
        doubtful = np.flatnonzero(signs == 0)
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
            if len(places) > 1:
                best = self.point.exact(self.k, places).largest(len(places))[0]
                tied[row] = [places[j] for j in best]
        return tied


def require_finite(mid: Array, rad: Array) -> None:
    """Refuse enclosures that say nothing."""
    if not (np.isfinite(mid).all() and np.isfinite(rad).all()):
        raise NotCertifiableError(
            "the gradient or value could not be enclosed: it overflows, or divides by an interval "
            "around 0. Rescale the data."
        )


__all__ = ["EnclosedPoint", "require_finite"]
