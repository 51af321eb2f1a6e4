"""Where a pivot may be: points where kinks that the evidence straddles meet.

Everything here is search in float64 and may be wrong; `NearCertificate.prove` decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus.evaluation import Pieces
from goldstein.calculus.expression import Expression
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rationals import nearest_float
from goldstein.checker.rounding import distance_upper
from goldstein.construction.near.curved_kinks import CurvedKinks, Surface
from goldstein.construction.near.evidence import box_shares
from goldstein.construction.near.flats import Equation, Flat, KinkTable
from goldstein.construction.near.kinks import Kinks, local_model
from goldstein.construction.near.newton import (
    DENSE_DIM,
    TINY,
    curvature,
    stationary,
    stationary_in_many,
)
from goldstein.errors import NotCertifiableError
from goldstein.numerics.budget import Budget

Sides = NDArray[np.bool_]

#: Rounds of adding kinks that a projection crossed.
REPAIRS = 12

#: Kinks added or dropped, one by one, from one start.
EXCHANGES = 40

#: A point along a flat is good enough once the gradient there is this part of eps.
GOAL = 0.25

#: Part of delta by which a point may miss its flat when it is put there exactly.
SLACK = 1e-6


class PivotSearch:
    """Candidates for a pivot, the most promising first."""

    def __init__(
        self,
        fun: Expression,
        certificate: GoldsteinCertificate,
        delta: float,
        eps: float,
        budget: Budget,
    ) -> None:
        self.delta, self.eps, self.budget = delta, eps, budget
        self.form = Kinks(fun)
        self.table = KinkTable(self.form)
        self.curved = CurvedKinks(self.form, budget)
        self.x: Vector = certificate.x
        used = certificate.weights > 0
        self.points: Matrix = certificate.points[used]
        weights = certificate.weights[used]
        self.mean: Vector = (weights / weights.sum()) @ self.points
        self._lengths = np.linalg.norm(certificate.gradients[used], axis=1)
        self._tried: set[Any] = set()
        self._hessian: Matrix | None = None

    def single_points(self) -> Iterator[Vector]:
        """Yield points of the evidence that need no company: their own gradients are short."""
        for i in np.argsort(self._lengths, kind="stable")[:2]:
            if self._lengths[i] <= self.eps and self._inside(self.points[i]):
                yield self.points[i]

    def candidates(self) -> Iterator[tuple[Flat, Vector]]:
        """Yield flats, and points of them within delta of x."""
        for equations, base in self._starts():
            for flat, point in self._exchanges(equations, base):
                key = (tuple(sorted(e.key for e in flat.equations)), point.round(12).tobytes())
                if key in self._tried:
                    continue
                self._tried.add(key)
                yield flat, point

    def curved_points(self) -> Iterator[tuple[list[Surface], Vector]]:
        """Yield points within delta of x where curved kinks meet, in float64."""
        if not self.curved.are_there:
            return
        tried = set()
        for surfaces, base in self._curved_starts():
            self.budget.spend()
            kept = self.curved.independent(surfaces, base)
            point = self.curved.meeting(kept, base) if kept else None
            if point is None or not self._inside(point):
                continue
            settled = self.curved.settled(kept, point, self.delta)
            halfway = self.curved.meeting(kept, 0.5 * (point + settled))
            for place in (settled, point, halfway):
                if place is None or not self._inside(place):
                    continue
                key = (frozenset(kept), place.round(12).tobytes())
                if key not in tried:
                    tried.add(key)
                    yield kept, place

    def _curved_starts(self) -> Iterator[tuple[list[Surface], Vector]]:
        straddled = self.curved.between(self.points)
        for base in (self.mean, self.x):
            yield straddled, base
        for part in (1.0, 0.1, 0.01):
            for base in (self.mean, self.x):
                yield self.curved.close(base, part * self.delta), base

    def is_hopeful(self, flat: Flat, point: Vector, bound: float) -> bool:
        """True unless the gradient along the flat alone exceeds what is proved already."""
        pieces = self.form.pieces(point)
        return float(np.linalg.norm(flat.along(self.gradient(point, pieces)))) < bound

    def gradient(self, point: Vector, pieces: Pieces) -> Vector:
        """Return the gradient of given pieces; it counts."""
        self.budget.spend()
        return self.form.gradient(point, pieces)

    def slope_along(self, flat: Flat, point: Vector, pieces: Pieces, z: Vector) -> Vector:
        """Return the gradient of given pieces in the coordinates of a flat, at a moved point."""
        tangent = flat.tangent
        answer: Vector = tangent.T @ self.gradient(point + tangent @ z, pieces)
        return answer

    def _starts(self) -> Iterator[tuple[list[Equation], Vector]]:
        above, below, _, _ = self._evidence_sides
        straddled = self._equations(np.flatnonzero(~above & ~below))
        straddled += self.table.grouped(self.points)
        for base in (self.mean, self.x):
            yield straddled, base
        for base in (self.mean, self.x):
            for part in (1.0, 0.1, 0.01):
                yield self._close(base, part * self.delta), base
        yield [], self.x

    @cached_property
    def _evidence_sides(self) -> tuple[Sides, Sides, Vector, Vector]:
        """Kinks that all points are above or below, the first point's side, the largest gap."""
        first = self.table.sides(self.points[0])
        above, below, largest = first > 0, first <= 0, np.abs(first)
        for y in self.points[1:]:
            self.budget.spend()
            gaps = self.table.sides(y)
            above, below = above & (gaps > 0), below & (gaps <= 0)
            largest = np.maximum(largest, np.abs(gaps))
        return above, below, np.sign(first), largest

    def _equations(self, places: NDArray[np.intp]) -> list[Equation]:
        found = []
        for i in places.tolist():
            self.budget.require(0.0)
            equation = self.table.equation(i)
            if equation.row:
                found.append(equation)
        return found

    def _close(self, base: Vector, radius: float) -> list[Equation]:
        gaps = np.abs(self.table.sides(base))
        # |gap| <= radius |row| needs the row; bounds of the lengths rule out most of them.
        order = np.argsort(gaps, kind="stable")[: 4 * base.size]
        order = order[gaps[order] <= radius * self.table.lengths[order]]
        close = []
        for i in order.tolist():
            for equation in self._equations(np.array([i])):
                length = math.hypot(*(nearest_float(a) for _, a in equation.row))
                if gaps[i] <= radius * length:
                    close.append(equation)
        return close

    def _exchanges(self, equations: list[Equation], base: Vector) -> Iterator[tuple[Flat, Vector]]:
        """Walk from flat to flat: add the kink that is met, drop the kinks that are not needed."""
        placed = self._repaired(equations, base)
        if placed is None:
            return
        flat, point = placed
        for _ in range(EXCHANGES):
            target = self._smooth_step(flat, point)
            crossing, stop = self._first_crossing(flat, point, target)
            if crossing is not None:
                flat = Flat([*flat.equations, crossing], point.size, stop, self.budget)
                point = flat.project(stop)
                if not np.isfinite(point).all():
                    return
                continue
            point = target
            yield flat, point
            needed = self._needed(flat, point)
            if len(needed) == len(flat.equations):
                return
            flat = Flat(needed, point.size, point, self.budget)

    def _repaired(self, equations: list[Equation], base: Vector) -> tuple[Flat, Vector] | None:
        """Project on the kinks; kinks crossed on the way from the points are added."""
        here = list(equations)
        for _ in range(REPAIRS):
            flat = Flat(here, base.size, base, self.budget)
            point = flat.project(base)
            if not np.isfinite(point).all():
                return None
            crossed = self._crossed(point, {e.key for e in here})
            if not crossed:
                break
            here = here + crossed
        return (flat, point) if self._inside(point) else None

    def _crossed(self, point: Vector, known: set[tuple[int, int, int]]) -> list[Equation]:
        above, below, first, largest = self._evidence_sides
        scale = 1e-12 * (1.0 + largest)
        wrong = (above | below) & (first * self.table.sides(point) < -scale)
        found = self._equations(np.flatnonzero(wrong)[: 2 * point.size])
        found += self.table.grouped(np.vstack([self.points, point]))
        return [e for e in found if e.key not in known]

    def _inside(self, point: Vector) -> bool:
        return distance_upper(point, self.x) <= self.delta * (1.0 + 1e-12)

    def _first_crossing(
        self, flat: Flat, point: Vector, target: Vector
    ) -> tuple[Equation | None, Vector]:
        """Return the first kink between two points of a flat, and where it is met."""
        before, after = self.table.sides(point), self.table.sides(target)
        scale = 1e-11 * (1.0 + np.abs(before))
        crossed = np.flatnonzero((before * after < 0) & (np.abs(before) > scale))
        known = {e.key for e in flat.equations}
        shares = np.abs(before[crossed]) / np.abs(before[crossed] - after[crossed])
        for i in np.argsort(shares).tolist():
            equation = self.table.equation(int(crossed[i]))
            if equation.row and equation.key not in known:
                return equation, point + shares[i] * (target - point)
        return None, target

    def _smooth_step(self, flat: Flat, point: Vector) -> Vector:
        """Return a stationary point of the present piece along the flat, kept within the ball."""
        if flat.free == 0:
            return point
        pieces = self.form.pieces(point)
        goal = max(GOAL * self.eps, TINY)
        if flat.free > DENSE_DIM:
            move = stationary_in_many(
                lambda z: flat.along(self.gradient(point + z, pieces)), np.zeros(flat.dim), goal
            )
        else:
            room = max(self.delta - float(np.linalg.norm(point - self.x)), 0.0)
            slope = partial(self.slope_along, flat, point, pieces)
            guess = self._curvature(flat, point, pieces)
            z = stationary(slope, np.zeros(flat.free), self.delta + room, goal, guess)
            move = flat.tangent @ z
        share = 1.0
        while share > 1e-3:
            candidate = flat.project(point + share * move)
            if self._inside(candidate):
                return candidate
            share *= 0.5
        return point

    def _curvature(self, flat: Flat, point: Vector, pieces: Pieces) -> Matrix | None:
        """Guess the curvature along a flat from that of one piece, measured once."""
        if flat.dim > DENSE_DIM:
            return None
        if self._hessian is None:
            slope = partial(self.slope_along, Flat([], flat.dim, point), point, pieces)
            self._hessian = curvature(slope, flat.dim, self.delta)
        answer: Matrix = flat.tangent.T @ self._hessian @ flat.tangent
        return answer

    def _needed(self, flat: Flat, point: Vector) -> list[Equation]:
        """Return the equations whose kinks the shortest box combination uses in the interior."""
        if not flat.equations or any(e.key[0] < 0 for e in flat.equations):
            return flat.equations
        exact = flat.project_exactly(point, SLACK * self.delta, self.budget)
        if exact is None:
            return flat.equations
        try:
            here = self.form.examine(exact)
            if not self.form.is_additive(self.form.active(here)):
                return flat.equations
            model = local_model(self.form, here)
            shares = box_shares(model)
        except NotCertifiableError:
            return flat.equations
        inner = {kink for kink, share in zip(model.kinks, shares) if 1e-7 < share < 1.0 - 1e-7}
        return [e for e in flat.equations if e.key in inner]


__all__ = ["SLACK", "PivotSearch"]
