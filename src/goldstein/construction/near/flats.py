"""Moving a Goldstein certificate to one point: which kinks it straddles, where they meet, and where
the gradient vanishes along them.

Everything here is search in float64 and may be wrong; `NearCertificate.prove` decides.

Points where curved kinks meet, found in float64 and then made exact.

A kink whose argument is a polynomial of the variable lies on a curved surface, such as w1 = w0^2
for |w1 - w0^2|. Newton's method comes close to the point where some of them meet; a proof needs one
that lies on them exactly. So all variables but as many as there are surfaces keep their floats, and
Newton's method in rationals solves for the others. It ends exactly where every surface is affine in
its own variable once those before it are known, which is the usual case; else no pivot is found.
Nothing here is trusted.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.optimize import linprog, root

from goldstein.calculus.evaluation import Row, affine_row
from goldstein.calculus.operators import row_norms
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.part import Part
from goldstein.checker.enclosed.point import work
from goldstein.checker.exact import Exact
from goldstein.checker.nodes import Affine, Max, Node, Order, Piecewise, Rowwise
from goldstein.checker.rationals import nearest_float
from goldstein.checker.sides import Point
from goldstein.construction.near.kinks import Kinks
from goldstein.errors import GoldsteinError, OutOfBudget
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact import point_on, project_exact

Slope = Callable[[Vector], Vector]

#: Steps of Newton's method, and differences of slopes for each of them, at most.
STEPS, DIFFERENCES = 20, 80

#: The smallest slope that is worth a step.
TINY = 1e-14


def stationary(slope: Slope, z: Vector, goal: float) -> Vector:
    """Return a point with |slope| <= goal, or one with a smaller slope than at z.

    Newton's method in Krylov spaces, which takes differences of slopes along a few directions; by
    MINRES, for derivatives of gradients are symmetric, and often singular.

    Examples
    --------
    >>> stationary(lambda z: 2.0 * z - 1.0, np.zeros(1), 1e-12).round(9)
    array([0.5])
    """
    size = float(np.linalg.norm(slope(z)))
    if size <= goal:
        return z
    options = {
        "maxiter": STEPS, "disp": False, "fatol": goal, "tol_norm": np.linalg.norm,
        "jac_options": {"method": "minres", "inner_maxiter": DIFFERENCES},
    }  # fmt: skip
    try:
        moved: Vector = root(slope, z, method="krylov", options=options).x
    except ValueError:  # the slope does not change: there is no step
        return z
    shorter = np.isfinite(moved).all() and float(np.linalg.norm(slope(moved))) < size
    return moved if shorter else z


@dataclass(frozen=True)
class Equation:
    """One affine equation `row . y = level` that puts a point on a kink."""

    key: tuple[int, int, int]
    row: tuple[tuple[int, Fraction], ...]
    level: Fraction


class KinkTable:
    """All kinks of affine entries, evaluated in float64 at many points at once."""

    def __init__(self, form: Kinks) -> None:
        self.form, places = form, [k for k in form.places if form.affine(k)]
        self._scalar = [k for k in places if isinstance(form.nodes[k], Piecewise)]
        self._grouped = [k for k in places if k not in self._scalar]
        self._cache: dict[tuple[int, int, int], Equation] = {}

    def sides(self, point: Vector) -> NDArray[np.float64]:
        """Return the signed gaps `u - t` of every kink of one entry, in one flat vector."""
        gaps = [
            np.subtract.outer(list(map(float, self.form.levels(k))), self.form.argument(k, point))
            for k in self._scalar
        ]
        return -np.concatenate([g.reshape(-1) for g in gaps]) if gaps else np.zeros(0)

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Upper bounds of the lengths of the rows, in the order of `sides`."""
        bounds: list[Any] = []
        for node, affine in zip(self.form.nodes, self.form.program.affine):
            bounds.append(_lengths(node, [bounds[a] for a in node.of]) if affine else None)
        nodes, levels = self.form.nodes, self.form.levels
        parts = [np.tile(bounds[nodes[k].of[0]], len(levels(k))) for k in self._scalar]
        return np.concatenate(parts) if parts else np.zeros(0)

    def equation(self, flat: int) -> Equation:
        """Return the equation of one entry of `sides`."""
        for k in self._scalar:
            node: Any = self.form.nodes[k]
            levels = [t for t, jump in enumerate(node.jumps) if jump]
            if flat < len(levels) * node.size:
                which, entry = divmod(flat, node.size)
                return self._make(k, entry, levels[which])
            flat -= len(levels) * node.size
        raise IndexError(flat)

    def _make(self, k: int, entry: int, level: int) -> Equation:
        key = (k, entry, level)
        if key not in self._cache:
            node: Any = self.form.nodes[k]
            row, constant = affine_row(self.form.program, node.of[0], entry)
            self._cache[key] = Equation(key, tuple(row.items()), node.breakpoints[level] - constant)
        return self._cache[key]

    def grouped(self, points: Matrix) -> list[Equation]:
        """Return the equations of ties of `max` and of zeros of `norm2` that the points suggest."""
        found: list[Equation] = []
        for k in self._grouped:
            node: Any = self.form.nodes[k]
            u = np.array([self.form.argument(k, y) for y in points])
            for entry, other in tied_entries(node, u):
                row, constant = affine_row(self.form.program, node.of[0], entry)
                if other is not None:
                    less, more = affine_row(self.form.program, node.of[0], other)
                    row, constant = _difference(row, less), constant - more
                key = (-k, entry, -1 if other is None else other)
                found.append(Equation(key, tuple(row.items()), -constant))
        return [e for e in found if e.row]


def tied_entries(node: Node, u: Matrix) -> Iterator[tuple[int, int | None]]:
    """Yield pairs of entries that a maximum may tie, and entries that a norm may have at 0.

    `u` are arguments at some points: entries tie that are the largest at some of them; a row is at
    0 somewhere if it is as far from it as from its mean.
    """
    assert isinstance(node, Rowwise | Order)
    table = u.reshape(len(u), -1, node.columns)
    for row in range(table.shape[1]):
        start, some = row * node.columns, table[:, row]
        if isinstance(node, Max):
            first, *others = sorted({start + j for j in some.argmax(axis=1).tolist()})
            yield from ((other, first) for other in others)
        elif isinstance(node, Order):
            orders = some.argsort(axis=1, kind="stable")
            for j in range(node.columns - 1):
                if node.matters(j, 2) and len(set(orders[:, j].tolist())) > 1:
                    first, *others = sorted(set(orders[:, j : j + 2].ravel().tolist()))
                    yield from ((start + other, start + first) for other in others)
        else:
            centre = some.mean(axis=0)
            if np.linalg.norm(centre) <= 2.0 * np.linalg.norm(some - centre, axis=1).max():
                yield from ((start + i, None) for i in range(node.columns))


def _lengths(node: Node, inner: list[Vector]) -> Vector:
    """Return upper bounds of the lengths of the rows of an affine node."""
    if not inner:
        return np.ones(node.size)
    if isinstance(node, Affine):
        if node.of == (0,):
            found = np.repeat(row_norms(node.matrix), node.columns)
        else:
            found = (abs(node.matrix) @ inner[0].reshape(-1, node.columns)).ravel()
        return found * (1.0 + 2.0**-40) / (1.0 if node.divisor is None else np.abs(node.divisor))
    factor = abs(nearest_float(node.pieces[0][1])) if isinstance(node, Piecewise) else 1.0
    return np.asarray(factor * np.sum(inner, axis=0) * (1.0 + 2.0**-40))


def _difference(a: Row, b: Row) -> Row:
    both = {k: a.get(k, Fraction(0)) - b.get(k, Fraction(0)) for k in a | b}
    return {k: value for k, value in both.items() if value}


def dense(rows: list[Row], dim: int) -> Matrix:
    """Return exact rows in float64."""
    out = np.zeros((len(rows), dim))
    for i, row in enumerate(rows):
        for k, a in row.items():
            out[i, k] = nearest_float(a)
    return out


class Flat:
    """The affine set where some kinks meet; dependent and contradicting equations are left out."""

    def __init__(
        self, equations: list[Equation], dim: int, base: Vector, budget: Budget | None = None
    ) -> None:
        self.dim = dim
        rows = dense([dict(e.row) for e in equations], dim)
        levels = np.array([nearest_float(e.level) for e in equations])
        # Independent rows, those nearest to the base point first.
        lengths = np.linalg.norm(rows, axis=1)
        usable = np.flatnonzero((lengths > 0) & np.isfinite(lengths) & np.isfinite(levels))
        gaps = np.abs(rows[usable] @ base - levels[usable]) / lengths[usable]
        order = usable[np.argsort(gaps, kind="stable")].tolist()
        kept, self._normals = orthonormal(rows, order, budget or Budget())
        self.equations = [equations[i] for i in kept]
        self.rows = rows[kept]
        self.levels = levels[kept]

    @property
    def free(self) -> int:
        """Its dimension."""
        return self.dim - len(self.equations)

    def along(self, vector: Vector) -> Vector:
        """Return the part of a vector along the flat."""
        return vector - self._normals.T @ (self._normals @ vector)

    def project(self, point: Vector) -> Vector:
        """Return the nearest point of the flat, in float64."""
        if not self.equations:
            return point
        # A row is a combination of the normals up to its own.
        triangle = self.rows @ self._normals.T
        residual = self.rows @ point - self.levels
        return point - self._normals.T @ solve_triangular(triangle, residual, lower=True)

    def project_exactly(
        self, point: Vector | list[Fraction], reach: float, budget: Budget
    ) -> list[Fraction] | None:
        """Return a point of the flat within reach, in rationals; the nearest if there is none."""
        budget.spend()
        matrix = [[Fraction(0)] * self.dim for _ in self.equations]
        for i, equation in enumerate(self.equations):
            for k, a in equation.row:
                matrix[i][k] = a
        levels = [e.level for e in self.equations]
        pause = budget.half().require
        return point_on(self.rows, levels, point, reach, exact_rows=matrix, pause=pause)


def orthonormal(rows: Matrix, order: Iterable[int], budget: Budget) -> tuple[list[int], Matrix]:
    """Return rows that do not depend on those before them, and vectors that span them in turn."""
    lengths = np.linalg.norm(rows, axis=1)
    basis = np.zeros((min(rows.shape), rows.shape[1]))
    kept: list[int] = []
    for i in order:
        if len(kept) == len(basis):
            break
        budget.require(0.0)
        if not 0.0 < lengths[i] < np.inf:
            continue
        known = basis[: len(kept)]
        unit = rows[i] / lengths[i]
        rest = unit - known.T @ (known @ unit)
        rest = rest - known.T @ (known @ rest)
        size = float(np.linalg.norm(rest))
        if size > 1e-8:
            basis[len(kept)] = rest / size
            kept.append(i)
    return kept, basis[: len(kept)]


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

    def holding(self, y: Vector, radius: float) -> list[Surface]:
        """Return ties of the entries that keep a maximum from falling, as lines through y say.

        These are the active ones of a linear program, near y.
        """
        k, last = len(self.form.nodes) - 1, self.form.nodes[-1]
        if not isinstance(last, Max):
            return []
        u = self.form.argument(k, y)
        high = np.argsort(-u, kind="stable")[: CANDIDATES + y.size]
        slopes = self.slopes([Surface(k, ((int(i), 1),)) for i in high], y)
        found = linprog(
            np.append(np.zeros(y.size), 1.0), np.column_stack([slopes, -np.ones(high.size)]),
            -u[high], bounds=[(-radius, radius)] * y.size + [(None, None)],
        )  # fmt: skip
        first, *others = high[found.ineqlin.marginals < 0.0].tolist() if found.success else [0]
        return [Surface(k, ((first, 1), (other, -1))) for other in others]

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
        t, at, nodes = self.form.tape(y), self.form.evaluation.at, self.form.nodes
        places = ((at[nodes[s.k].of[0]].start, s) for s in surfaces)
        return np.array(
            [sum(c * t[start + i] for i, c in s.terms) - float(s.level) for start, s in places]
        )

    def slopes(self, surfaces: list[Surface], y: Vector) -> Matrix:
        """Return the derivatives of the gaps, row by row."""
        t, found, rows = self.form.tape(y), self.form.evaluation, []
        pieces = found.pieces(t)
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

    def settled(self, surfaces: list[Surface], y: Vector) -> Vector:
        """Return a stationary point of the function along the surfaces, if there is one nearby."""
        basis, _, _ = qr(self.slopes(surfaces, y).T, mode="full", pivoting=True)
        tangent = basis[:, len(surfaces) :]
        if not 0 < tangent.shape[1] * len(surfaces) <= SETTLING:
            return y
        slope = partial(self._slope_along, surfaces, y, tangent)
        z = stationary(slope, np.zeros(tangent.shape[1]), TINY)
        moved = self.meeting(surfaces, y + tangent @ z)
        return y if moved is None else moved

    def _slope_along(self, surfaces: list[Surface], y: Vector, along: Matrix, z: Vector) -> Vector:
        at = self.meeting(surfaces, y + along @ z)
        if at is None:
            return np.full(along.shape[1], np.nan)
        gradient = self.form.gradient(at, self.form.pieces(at))
        slopes = self.slopes(surfaces, at)
        # Off the surfaces' own slopes all pieces have the same gradient.
        rest = gradient - slopes.T @ np.linalg.lstsq(slopes.T, gradient, rcond=None)[0]
        return along.T @ rest

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
        self.budget.require(work(self.form.program) * (SHORT + digits * PER_DIGIT))
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
