"""Moving a Goldstein certificate to one point: which kinks it straddles, and where they meet.

Everything here is search in float64 and may be wrong; `NearCertificate.prove` decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular

from goldstein.calculus.atoms.base import Elementwise
from goldstein.calculus.atoms.maximum import Max
from goldstein.calculus.atoms.norms import Norm2
from goldstein.calculus.atoms.row_maximum import RowMax
from goldstein.calculus.expression import Expression
from goldstein.calculus.kinks import KinkForm
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rationals import nearest_float
from goldstein.construction.near.local_model import Row, dense
from goldstein.numerics.budget import Budget
from goldstein.numerics.exact_point import point_on


@dataclass(frozen=True)
class Equation:
    """One affine equation `row . y = level` that puts a point on a kink."""

    key: tuple[int, int, int]
    row: tuple[tuple[int, Fraction], ...]
    level: Fraction


class KinkTable:
    """All kinks of affine entries, evaluated in float64 at many points at once."""

    def __init__(self, form: KinkForm) -> None:
        self.form = form
        self._nodes: list[Expression] = [
            node for node in form.root.kink_nodes if node.args[0].is_affine
        ]
        self._cache: dict[tuple[int, int, int], Equation] = {}

    def sides(self, point: Vector) -> NDArray[np.float64]:
        """Return the signed gaps `u - t` of every elementwise kink, in one flat vector."""
        values = self.form.root._values(point)
        gaps = [
            np.subtract.outer(np.asarray(node.function.kinks), values[id(node.args[0])].reshape(-1))
            for node in self._elementwise
        ]
        return -np.concatenate([g.reshape(-1) for g in gaps]) if gaps else np.zeros(0)

    @cached_property
    def lengths(self) -> NDArray[np.float64]:
        """Upper bounds of the lengths of the rows, in the order of `sides`."""
        parts = [
            np.tile(node.args[0].magnitude()[0], len(node.function.kinks))
            for node in self._elementwise
        ]
        return np.concatenate(parts) if parts else np.zeros(0)

    @property
    def _elementwise(self) -> list[Elementwise]:
        return [node for node in self._nodes if isinstance(node, Elementwise)]

    def needed(self, equations: list[Equation], used: set[tuple[int, int, int]]) -> list[Equation]:
        """Return the equations of the used kinks: (identity of the node, entry, level)."""
        nodes = self._elementwise
        return [e for e in equations if (id(nodes[e.key[0]]), *e.key[1:]) in used]

    def equation(self, flat: int) -> Equation:
        """Return the equation of one entry of `sides`."""
        for place, node in enumerate(self._elementwise):
            inner = node.args[0]
            kinks = [k for k, jump in enumerate(node.function.jumps) if jump]
            if flat < len(kinks) * inner.size:
                which, entry = divmod(flat, inner.size)
                return self._make(place, node, entry, kinks[which])
            flat -= len(kinks) * inner.size
        raise IndexError(flat)

    def _make(self, place: int, node: Elementwise, entry: int, level: int) -> Equation:
        key = (place, entry, level)
        if key not in self._cache:
            inner = node.args[0]
            row = tuple(inner.row(entry).items())
            target = node.function.breakpoints[level] - inner.offset(entry)
            self._cache[key] = Equation(key, row, target)
        return self._cache[key]

    def grouped(self, points: Matrix) -> list[Equation]:
        """Return the equations of ties of `max` and of zeros of `norm2` that the points suggest."""
        found: list[Equation] = []
        for place, node in enumerate(self._nodes):
            inner = node.args[0]
            if isinstance(node, Elementwise):
                continue
            u = np.array([self.form.root._values(y)[id(inner)].reshape(-1) for y in points])
            if isinstance(node, Max):
                winners = sorted(set(u.argmax(axis=1).tolist()))
                first = winners[0]
                for i in winners[1:]:
                    row = _difference(inner.row(i), inner.row(first))
                    level = inner.offset(first) - inner.offset(i)
                    found.append(Equation((-1 - place, i, first), row, level))
            elif isinstance(node, RowMax):
                tops = u.reshape(len(points), -1, node.columns).argmax(axis=2)
                for i in np.flatnonzero((tops != tops[0]).any(axis=0)).tolist():
                    first, *others = sorted({i * node.columns + j for j in tops[:, i].tolist()})
                    for other in others:
                        row = _difference(inner.row(other), inner.row(first))
                        level = inner.offset(first) - inner.offset(other)
                        found.append(Equation((-1 - place, other, first), row, level))
            elif isinstance(node, Norm2):
                centre = u.mean(axis=0)
                if np.linalg.norm(centre) <= 2.0 * np.linalg.norm(u - centre, axis=1).max():
                    for i in range(inner.size):
                        row = tuple(inner.row(i).items())
                        found.append(Equation((-1 - place, i, -1), row, -inner.offset(i)))
        return [e for e in found if e.row]


def _difference(a: Row, b: Row) -> tuple[tuple[int, Fraction], ...]:
    out = dict(a)
    for k, value in b.items():
        out[k] = out.get(k, Fraction(0)) - value
    return tuple((k, v) for k, v in out.items() if v)


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
        basis: Matrix = qr(self._normals.T)[0][:, len(self.equations) :]
        return basis

    def along(self, vector: Vector) -> Vector:
        """Return the part of a vector along the flat."""
        answer: Vector = vector - self._normals.T @ (self._normals @ vector)
        return answer

    def project(self, point: Vector) -> Vector:
        """Return the nearest point of the flat, in float64."""
        if not self.equations:
            return point
        # A row is a combination of the normals up to its own.
        triangle = self.rows @ self._normals.T
        residual = self.rows @ point - self.levels
        answer: Vector = point - self._normals.T @ solve_triangular(triangle, residual, lower=True)
        return answer

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
    """Choose independent rows, those nearest to the base point first (Gram-Schmidt).

    Returns
    -------
    (list of int, ndarray)
        The rows, and as many orthonormal vectors that span them one after the other.
    """
    lengths = np.linalg.norm(rows, axis=1)
    usable = np.flatnonzero((lengths > 0) & np.isfinite(lengths) & np.isfinite(levels))
    gaps = np.abs(rows[usable] @ base - levels[usable]) / lengths[usable]
    basis = np.zeros((min(rows.shape), rows.shape[1]))
    kept: list[int] = []
    for i in usable[np.argsort(gaps, kind="stable")].tolist():
        if len(kept) == len(basis):
            break
        budget.require(0.0)
        known = basis[: len(kept)]
        unit = rows[i] / lengths[i]
        rest = unit - known.T @ (known @ unit)
        rest = rest - known.T @ (known @ rest)
        size = float(np.linalg.norm(rest))
        if size > 1e-8:
            basis[len(kept)] = rest / size
            kept.append(i)
    return kept, basis[: len(kept)]


__all__ = ["Equation", "Flat", "KinkTable"]
