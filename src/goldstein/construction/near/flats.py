"""Moving a Goldstein certificate to one point: which kinks it straddles, where they meet, and where
the gradient vanishes along them.

Everything here is search in float64 and may be wrong; `NearCertificate.prove` decides.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.optimize import root

from goldstein.calculus.operators import row_norms
from goldstein.calculus.rows import Row
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.nodes import Affine, Max, Node, Order, Piecewise, Rowwise
from goldstein.checker.rationals import nearest_float
from goldstein.construction.near.kinks import Kinks
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact import point_on

Slope = Callable[[Vector], Vector]

#: Newton steps.
STEPS = 12

#: The smallest slope that is worth a step.
TINY = 1e-14

#: In more dimensions than this Newton's system is solved by a Krylov method.
DENSE_DIM = 300


def stationary(
    slope: Slope, z: Vector, radius: float, goal: float, guess: Matrix | None = None
) -> Vector:
    """Return a point with |slope| <= goal, or one with a smaller slope than at z.

    Newton's method with differences of slopes, kept within `radius` and while |slope| shrinks.

    Parameters
    ----------
    slope : callable
    z : ndarray
        Start.
    radius : float
        Size of the place: steps are shorter, differences are taken over a small part of it.
    goal : float
        When to stop.
    guess : ndarray, optional
        A derivative of `slope` from nearby: it serves as long as it helps.

    Examples
    --------
    >>> stationary(lambda z: 2.0 * z - 1.0, np.zeros(1), 1.0, 1e-12).round(9)
    array([0.5])
    """
    g = slope(z)
    for _ in range(STEPS):
        size = float(np.linalg.norm(g))
        if size <= goal:
            break
        found = _newton(slope, z, g, guess, radius)
        # Where the radius is in the way, a better derivative is no help.
        if found is None or not (found.cut or found.size < 0.7 * size):
            guess = curvature(partial(_shifted, slope, z), z.size, radius)
            found = _newton(slope, z, g, guess, radius)
        if found is None or not found.size < 0.9 * size:
            break
        z, g = found.z, found.slope
    return z


@dataclass(frozen=True)
class _Step:
    """Where a step leads, the slope there, and whether the radius cut it short."""

    z: Vector
    slope: Vector
    cut: bool

    @property
    def size(self) -> float:
        length = float(np.linalg.norm(self.slope))
        return math.inf if math.isnan(length) else length


def _newton(
    slope: Slope, z: Vector, g: Vector, derivative: Matrix | None, radius: float
) -> _Step | None:
    """Return the best of some Newton steps, shortened to the radius; None without a derivative."""
    if derivative is None or not np.isfinite(derivative).all():
        return None
    left, values, right = np.linalg.svd(derivative)
    room = max(radius - float(np.linalg.norm(z)), 0.0)
    found = []
    # Along directions of little curvature Newton's step is wild: leave out some, or more.
    for cut in (1e-13, 1e-11, 1e-9, 1e-7, 1e-5, 1e-3):
        kept = values > cut * values[0]
        step = right[kept].T @ ((left[:, kept].T @ g) / values[kept])
        length = float(np.linalg.norm(step))
        trial = z - step * (room / length) if length > room else z - step
        found.append(_Step(trial, slope(trial), length > room))
    return min(found, key=lambda step: step.size)


def stationary_in_many(slope: Slope, z: Vector, goal: float) -> Vector:
    """Do the same without second differences in every direction."""
    size = float(np.linalg.norm(slope(z)))
    if size <= goal:
        return z
    options = {"maxiter": 20, "disp": False, "fatol": goal, "tol_norm": np.linalg.norm}
    moved: Vector = root(slope, z, method="krylov", options=options).x
    shorter = np.isfinite(moved).all() and float(np.linalg.norm(slope(moved))) < size
    return moved if shorter else z


def curvature(slope: Slope, size: int, radius: float) -> Matrix:
    """Return the derivative of a slope at 0 by central differences."""
    step = 1e-4 * radius
    columns = [(slope(step * e) - slope(-step * e)) / (2 * step) for e in np.eye(size)]
    return np.array(columns).reshape(size, size).T


def _shifted(slope: Slope, origin: Vector, z: Vector) -> Vector:
    return slope(origin + z)


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
            row, constant = self.form.row(node.of[0], entry)
            self._cache[key] = Equation(key, tuple(row.items()), node.breakpoints[level] - constant)
        return self._cache[key]

    def grouped(self, points: Matrix) -> list[Equation]:
        """Return the equations of ties of `max` and of zeros of `norm2` that the points suggest."""
        found: list[Equation] = []
        for k in self._grouped:
            node: Any = self.form.nodes[k]
            u = np.array([self.form.argument(k, y) for y in points])
            for entry, other in tied_entries(node, u):
                row, constant = self.form.row(node.of[0], entry)
                if other is not None:
                    less, more = self.form.row(node.of[0], other)
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
        kept, self._normals = _independent(rows, levels, base, budget or Budget())
        self.equations = [equations[i] for i in kept]
        self.rows = rows[kept]
        self.levels = levels[kept]

    @property
    def free(self) -> int:
        """Its dimension."""
        return self.dim - len(self.equations)

    @cached_property
    def tangent(self) -> Matrix:
        """An orthonormal basis of its directions, as columns."""
        if not self.equations:
            return np.eye(self.dim)
        return np.asarray(qr(self._normals.T)[0][:, len(self.equations) :])

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
        return point_on(
            self.rows, levels, point, reach, exact_rows=matrix, pause=budget.half().require
        )


def _independent(
    rows: Matrix, levels: Vector, base: Vector, budget: Budget
) -> tuple[list[int], Matrix]:
    """Choose independent rows, those nearest to the base point first (Gram-Schmidt)."""
    lengths = np.linalg.norm(rows, axis=1)
    usable = np.flatnonzero((lengths > 0) & np.isfinite(lengths) & np.isfinite(levels))
    gaps = np.abs(rows[usable] @ base - levels[usable]) / lengths[usable]
    return orthonormal(rows, usable[np.argsort(gaps, kind="stable")].tolist(), budget)


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
