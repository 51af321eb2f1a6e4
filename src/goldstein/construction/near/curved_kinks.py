"""Points where curved kinks meet, found in float64 and then made exact.

A kink whose argument is a polynomial of the variable lies on a curved surface, such as w1 = w0^2
for |w1 - w0^2|. Newton's method comes close to the point where some of them meet; a proof needs one
that lies on them exactly. So all variables but as many as there are surfaces keep their floats, and
Newton's method in rationals solves for the others. It ends exactly where every surface is affine in
its own variable once those before it are known, which is the usual case; else no pivot is found.
Nothing here is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.part import Part
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Max, Order, Piecewise
from goldstein.checker.sides import Point
from goldstein.construction.near.flats import TINY, orthonormal, stationary, tied_entries
from goldstein.construction.near.kinks import Kinks
from goldstein.errors import GoldsteinError, OutOfBudget
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact import project_exact

#: Newton steps in float64 and in rationals; the digits of the latter double with each step.
FLOAT_STEPS, EXACT_STEPS = 20, 6

#: Surfaces per kink level that are looked at, and dimensions times surfaces along which a
#: stationary point is searched by differences: beyond that the search would take too long.
CANDIDATES, SETTLING = 40, 500

#: Digits (binary) beyond which rationals are given up.
LONGEST = 40_000

#: Seconds of a multiplication of rationals: of short ones, and per digit.
SHORT, PER_DIGIT = 2e-6, 2e-9

#: Widths of boxes that are tried, in units of what rounding makes likely; and how close a kink is
#: that the point is on, relative to the largest value.
FACTORS, CLOSE = (8.0, 64.0, 4096.0), 1e-12

#: Denominators of simple points that are tried.
SIMPLE = (1, 12, 1000)


@dataclass(frozen=True)
class Surface:
    """The points where a combination of entries of the argument of node k has a certain value."""

    k: int
    terms: tuple[tuple[int, int], ...]
    level: Fraction = Fraction(0)


class CurvedKinks:
    """The kinks of a function as surfaces, at least one of them curved.

    Parameters
    ----------
    form : Kinks
    budget : Budget, optional
        How long the search may go on.
    """

    def __init__(self, form: Kinks, budget: Budget | None = None) -> None:
        self.form, self.budget = form, budget or Budget()

    @property
    def are_there(self) -> bool:
        """True when some kink is curved, and exact arithmetic is affordable."""
        return self.form.program.is_small() and not all(map(self.form.affine, self.form.places))

    # --- which surfaces -------------------------------------------------------------------------

    def between(self, points: Matrix) -> list[Surface]:
        """Return the surfaces that have points on both sides."""
        found: list[Surface] = []
        for k in self.form.places:
            u = np.array([self.form.argument(k, y) for y in points])
            if isinstance(self.form.nodes[k], Piecewise):
                for t in self.form.levels(k):
                    mixed = (u > float(t)).any(axis=0) & (u <= float(t)).any(axis=0)
                    found += [Surface(k, ((int(i), 1),), t) for i in np.flatnonzero(mixed)]
                continue
            for i, other in tied_entries(self.form.nodes[k], u):
                found.append(Surface(k, ((i, 1),) if other is None else ((i, 1), (other, -1))))
        return found

    def close(self, y: Vector, radius: float) -> list[Surface]:
        """Return the surfaces within about a radius of a point, the nearest first."""
        near: list[tuple[float, Surface]] = []
        for surface, gap in self._nearest(y):
            length = float(np.linalg.norm(self.slopes([surface], y)))
            if gap <= radius * length:
                near.append((gap / length if length else 0.0, surface))
        return [surface for _, surface in sorted(near, key=lambda pair: pair[0])]

    def _nearest(self, y: Vector) -> Iterator[tuple[Surface, float]]:
        """Yield surfaces and how far the arguments are from them, some for each node and level."""
        for k in self.form.places:
            node, u = self.form.nodes[k], self.form.argument(k, y)
            if isinstance(node, Piecewise):
                for t in self.form.levels(k):
                    gaps = np.abs(u - float(t))
                    for i in np.argsort(gaps)[:CANDIDATES].tolist():
                        yield Surface(k, ((i, 1),), t), float(gaps[i])
            elif isinstance(node, Max | Order):
                for start in range(0, u.size, node.columns):
                    order = start + np.argsort(u[start : start + node.columns], kind="stable")
                    yield from self._ties(k, node, u, order)

    @staticmethod
    def _ties(k: int, node: Any, u: Vector, order: Any) -> Iterator[tuple[Surface, float]]:
        """Yield ties of a sorted row: with the largest, or with those beside which weights change.

        Entries on one side of such a place tie with each other where they tie with it; where
        weights change in many places, only neighbours are looked at.
        """
        last = node.columns - 1
        places = [j for j in range(last) if isinstance(node, Order) and node.matters(j, 2)]
        middles = {last} if isinstance(node, Max) else {places[0] + 1, places[-1]} if places else ()
        pairs = [(j, j + 1) for j in places] if len(places) > 2 else [
            (j, m) for m in sorted(middles) for j in range(last + 1) if j != m]  # fmt: skip
        gaps = [abs(float(u[order[m]] - u[order[j]])) for j, m in pairs]
        for n in np.argsort(gaps)[:CANDIDATES].tolist():
            j, m = pairs[n]
            yield Surface(k, ((int(order[j]), 1), (int(order[m]), -1))), gaps[n]

    def boxes(
        self, surfaces: list[Surface], y: Vector
    ) -> Iterator[tuple[Vector, NDArray[np.int64]]]:
        """Yield radii and switches of boxes around a point that may contain one of all surfaces.

        Other kinks that the point is on, as far as float64 sees, are claimed to follow.
        """
        slopes, count = self.slopes(surfaces, y), len(surfaces)
        _, triangle, order = qr(slopes, mode="economic", pivoting=True)
        columns = order[:count]
        if not np.abs(np.diag(triangle))[-1] > 0.0:
            return
        known, scale = set(surfaces), 1.0 + float(np.abs(self.form.tape(y)).max())
        more = [s for s, gap in self._nearest(y) if gap <= CLOSE * scale and s not in known]
        switches = np.array([self._switch(s) for s in [*surfaces, *more]], dtype=np.int64)
        inverse = np.abs(np.linalg.pinv(slopes[:, columns]))
        errors = np.abs(self.gaps(surfaces, y)) + 8 * 2.0**-53 * scale
        for factor in FACTORS:
            radii = np.zeros(y.size)
            radii[columns] = factor * (inverse @ errors + 2.0**-53 * np.abs(y[columns]))
            yield radii, switches

    def _switch(self, s: Surface) -> list[int]:
        node: Any = self.form.nodes[s.k]
        if isinstance(node, Piecewise):
            return [s.k, s.terms[0][0], node.breakpoints.index(s.level)]
        return [s.k, s.terms[0][0], s.terms[1][0] if len(s.terms) > 1 else -1]

    # --- float64 ----------------------------------------------------------------------------------

    def gaps(self, surfaces: list[Surface], y: Vector) -> Vector:
        """Return how far the combinations are from their levels."""
        u = self.form.argument
        gaps = [sum(c * u(s.k, y)[i] for i, c in s.terms) - float(s.level) for s in surfaces]
        return np.array(gaps)

    def slopes(self, surfaces: list[Surface], y: Vector) -> Matrix:
        """Return the derivatives of the gaps, row by row."""
        t, pieces, found = self.form.tape(y), self.form.pieces(y), self.form.evaluation
        rows = []
        for s in surfaces:
            self.budget.spend()
            arg = self.form.nodes[s.k].of[0]
            start = np.zeros(self.form.nodes[arg].size)
            for i, c in s.terms:
                start[i] = c
            rows.append(found.cotangents(t, pieces, arg, start)[: y.size])
        return np.array(rows, dtype=np.float64).reshape(len(surfaces), y.size)

    def meeting(self, surfaces: list[Surface], y: Vector) -> Vector | None:
        """Return the nearest point of all surfaces, by Newton's method."""
        for _ in range(FLOAT_STEPS):
            gaps, slopes = self.gaps(surfaces, y), self.slopes(surfaces, y)
            if not (np.isfinite(gaps).all() and np.isfinite(slopes).all()):
                return None
            step = np.linalg.lstsq(slopes, gaps, rcond=None)[0]
            y = y - step
            if np.linalg.norm(step) <= 1e-15 * (1.0 + np.linalg.norm(y)):
                break
        scale = np.linalg.norm(self.slopes(surfaces, y), axis=1) * (1.0 + np.linalg.norm(y))
        return y if (np.abs(self.gaps(surfaces, y)) <= 1e-9 * scale + 1e-300).all() else None

    def independent(self, surfaces: list[Surface], y: Vector) -> list[Surface]:
        """Leave out surfaces whose slopes depend on those of the others, later ones first."""
        kept, _ = orthonormal(self.slopes(surfaces, y), range(len(surfaces)), self.budget)
        return [surfaces[i] for i in kept]

    def settled(self, surfaces: list[Surface], y: Vector, radius: float) -> Vector:
        """Return a stationary point of the function along the surfaces, if there is one nearby."""
        basis, _, _ = qr(self.slopes(surfaces, y).T, mode="full", pivoting=True)
        tangent = basis[:, len(surfaces) :]
        if not 0 < tangent.shape[1] * len(surfaces) <= SETTLING:
            return y
        slope = partial(self._slope_along, surfaces, y, tangent)
        z = stationary(slope, np.zeros(tangent.shape[1]), radius, TINY)
        moved = self.meeting(surfaces, y + tangent @ z)
        return y if moved is None else moved

    def _slope_along(
        self, surfaces: list[Surface], y: Vector, tangent: Matrix, z: Vector
    ) -> Vector:
        at = self.meeting(surfaces, y + tangent @ z)
        if at is None:
            return np.full(tangent.shape[1], np.nan)
        gradient = self.form.gradient(at, self.form.pieces(at))
        slopes = self.slopes(surfaces, at)
        # Off the surfaces' own slopes all pieces have the same gradient.
        rest = gradient - slopes.T @ np.linalg.lstsq(slopes.T, gradient, rcond=None)[0]
        return tangent.T @ rest

    # --- rationals -------------------------------------------------------------------------------

    def exactly(self, surfaces: list[Surface], y: Vector) -> Iterator[list[Fraction]]:
        """Yield rational points on all surfaces, next to y."""
        for limit in SIMPLE:
            simple = [Fraction(v).limit_denominator(limit) for v in y.tolist()]
            if self._solved(surfaces, simple, []) is not None:
                yield simple
        for columns in self._choices(surfaces, y):
            solved = self._solved(surfaces, [Fraction(v) for v in y.tolist()], columns)
            if solved is not None:
                yield solved

    def _examined(self, point: list[Fraction]) -> Point:
        """Examine a point, if there is time for exact arithmetic with its digits."""
        self.budget.spend()
        digits = max(q.denominator.bit_length() for q in point)
        self.budget.require(self.form.program.work * (SHORT + digits * PER_DIGIT))
        return self.form.examine(point)

    def _choices(self, surfaces: list[Surface], y: Vector) -> Iterator[list[int]]:
        """Yield variables to solve for: first those in which some surface is affine, its own."""
        slopes = self.slopes(surfaces, y)
        count = len(surfaces)
        straight = self._straight(surfaces, y)
        tried = set()
        for penalty in (1e-9, 1e-2, 1.0):
            weights = np.where(straight, 1.0, penalty)
            _, triangle, order = qr(slopes * weights, mode="economic", pivoting=True)
            heads = np.abs(np.diag(triangle))
            columns = tuple(sorted(order[:count].tolist()))
            if heads.size < count or not heads[-1] > 0.0 or columns in tried:
                continue
            tried.add(columns)
            yield list(columns)

    def _straight(self, surfaces: list[Surface], y: Vector) -> NDArray[np.bool_]:
        """Return, surface by surface, in which variables they look affine."""
        here, slopes = self.gaps(surfaces, y), self.slopes(surfaces, y)
        answer = np.zeros(slopes.shape, dtype=bool)
        for j in range(y.size):
            step = np.zeros(y.size)
            step[j] = 1e-2 * max(1.0, abs(float(y[j])))
            bend = self.gaps(surfaces, y + step) - here - slopes @ step
            answer[:, j] = np.abs(bend) <= 1e-9 * (1.0 + np.abs(slopes @ step))
        return answer

    def _solved(
        self, surfaces: list[Surface], point: list[Fraction], columns: list[int]
    ) -> list[Fraction] | None:
        """Return the point with some variables moved onto all surfaces, exactly, or None."""
        try:
            for _ in range(EXACT_STEPS):
                here = self._examined(point)
                gaps, slopes = zip(*(self._exactly_at(here, s) for s in surfaces))
                if not (any(gaps) and columns):
                    return None if any(gaps) else point
                self.budget.spend(len(surfaces))
                rows = [[slope.get(k, Fraction(0)) for k in columns] for slope in slopes]
                start = [point[k] for k in columns]
                levels = [
                    sum((a * v for a, v in zip(row, start)), Fraction(0)) - gap
                    for row, gap in zip(rows, gaps)
                ]
                moved = project_exact(rows, levels, start, self.budget.require)
                if moved is None:
                    return None
                for k, value in zip(columns, moved, strict=True):
                    if value.denominator.bit_length() > LONGEST:
                        return None
                    point[k] = value
        except OutOfBudget:
            raise
        except GoldsteinError:
            return None
        return None

    def _exactly_at(self, here: Point, s: Surface) -> tuple[Fraction, dict[int, Fraction]]:
        """Return the gap of a surface at a point, and its derivative; all exact."""
        terms, arg = sorted(s.terms), self.form.nodes[s.k].of[0]
        part = Part(self.form.program, here.pieces, arg, [i for i, _ in terms])
        found, factors = part.start(here.y), Exact.of([c for _, c in terms])
        value = part.extend(found, part.pieces, arg)
        slope = part.backward(factors, found).fractions
        total = sum((value[0] * factors).fractions, Fraction(0))
        return total - s.level, dict(zip(part.places.tolist(), slope))
