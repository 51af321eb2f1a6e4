"""Minima of h(A x), h convex and made of straight pieces and squares: a point and its multipliers.

f(x) = c.x + sum of l r + q r^2 + sum of w (r - t)_+ for r = A x + b; the maximum of a row is
tau + sum of (r - tau)_+ with one variable more, the best tau. With r - t = p - m the multipliers s
of the kinks, between 0 and w, have p (w - s) = m s = 0 and c + A'(l + 2 q r + s) = 0. An interior
point method with a predictor follows p (w - s) = m s = mu to 0 (Portnoy and Koenker, Statistical
Science 12, 1997): some twenty linear systems, as large as the smaller side of A. The multipliers
are slopes of lines below f (`goldstein.checker.minimum.lines`), at any point.
"""

import math
import time
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from scipy import sparse
from scipy.linalg import cho_factor, cho_solve

from goldstein.certificates.minimum import MinimumCertificate, Refutation
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.minimum.lines import line_below, terms
from goldstein.checker.minimum.minimum import Shown
from goldstein.checker.minimum.supports import Support
from goldstein.checker.nodes import Add, Max
from goldstein.checker.rationals import fraction_upper, to_fractions
from goldstein.checker.rounding import norm_upper
from goldstein.checker.sides import Program, point_at
from goldstein.errors import NotCertifiableError

#: Linear systems have no more unknowns than this.
MOST = 4000

#: Steps at most; which part of the way to the boundary one goes; how small, relative to f, the sum
#: of the p (w - s) and m s is in the end; and how large, relative to the first one, where f has no
#: minimum.
STEPS, PART, END, LOST = 80, 0.9995, 1e-15, 1e20

#: What is added to the diagonals of systems, relative to them.
RIDGE = 1e-13

#: Multipliers that differ from those of their sides by less than this part are those.
SAME = 1e-11

#: How many times the width of an enclosure is allowed for another machine.
ROOM = 4.0


class Rows:
    """A function as above, read from its program; refused where it is no such one.

    Every node with kinks has a table, as wide as it needs: those of maxima have columns of taus.
    """

    def __init__(self, program: Program) -> None:
        (_, _, rest), *others = terms(program)
        if not others:
            raise NotCertifiableError("an affine function has no rows.")
        self.program, self.weights = program, {k: g.mid for k, _, g in others}
        c, self.basis, start = rest.mid, None, {0: [Enclosure(np.zeros(program.dim))]}
        inner = [program.nodes[k].of[0] for k in self.weights]
        self.tables, lines = [_matrix(program, k) for k in inner], []
        kinks = [(np.zeros(0, np.intp), np.zeros(0), np.zeros(0))]
        if program.dim > MOST and len(inner) == 1 and not _is_single(self.tables[0]):
            table = self.tables[0].toarray() if sparse.issparse(self.tables[0]) else self.tables[0]
            _, singular, V = np.linalg.svd(table, full_matrices=False)
            self.basis = V[singular > 1e-10 * singular[0]].T
            self.tables, c = [self.tables[0] @ self.basis], self.basis.T @ c
        self.dim, size = c.size, 0
        for j, (k, g) in enumerate(self.weights.items()):
            node: Any = program.nodes[k]
            each, places = np.repeat(g, node.sizes[0] // g.size), np.arange(node.sizes[0]) + size
            line, pieces, size = [0.0, 0.0], [(0.0, 1.0)], size + places.size
            if isinstance(node, Max):
                mine, width = np.arange(places.size), c.size - self.dim
                at = mine, width + mine // node.columns
                taus = sparse.csr_array((-np.ones(mine.size), at), (mine.size, width + node.size))
                self.tables[j], c = _beside(self.tables[j], taus), np.append(c, g)
            else:
                line, pieces = _pieces(node)
            lines.append(np.outer(line, each))
            kinks += [(places, np.full(places.size, t), each * jump) for t, jump in pieces]
        self.c, self.b = c, np.concatenate([program.extend(start, {}, k)[0].mid for k in inner])
        self.slope, self.bend = np.concatenate(lines, axis=1)
        self.row, self.t, self.w = map(np.concatenate, zip(*kinks))
        if (self.w < 0).any() or (self.bend < 0).any():
            raise NotCertifiableError("not convex.")
        self.cuts = np.cumsum([A.shape[0] for A in self.tables])[:-1]
        rows = [A.shape[0] for A in self.tables if not _is_single(A)]
        if c.size > MOST and (len(rows) != 1 or rows[0] > MOST or c.size > self.dim):
            raise NotCertifiableError("the linear systems are too large.")

    def times(self, x: Vector) -> Vector:
        return np.concatenate([A @ x[: A.shape[1]] for A in self.tables])

    def transposed(self, s: Vector) -> Vector:
        found = np.zeros(self.c.size)
        for A, part in zip(self.tables, np.split(s, self.cuts)):
            found[: A.shape[1]] += A.T @ part
        return found

    def by_row(self, values: Vector) -> Vector:
        """Add numbers of the kinks up by rows."""
        return np.bincount(self.row, values, self.b.size).astype(np.float64)

    def inner(self, x: Vector) -> Vector:
        """Return the variables of the method, all tau 0."""
        x = x if self.basis is None else self.basis.T @ x
        return np.append(x, np.zeros(self.c.size - self.dim))

    def _outer(self, x: Vector) -> Vector:
        """Return the variables of the function."""
        x = x[: self.dim]
        found: Vector = x if self.basis is None else self.basis @ x
        return found

    def solver(self, D: Vector, dual: Vector) -> Callable[[Vector], tuple[Vector, Vector]]:
        """Return what solves A'(2 q A dx + ds) = -dual, ds = D (A dx + e), for dx and ds."""
        scale, n = 2 * self.bend + self.by_row(D), self.c.size
        parts = list(zip(self.tables, np.split(scale, self.cuts)))
        if n <= MOST:
            H = np.diag(np.full(n, 1e-300))
            for A, d in parts:
                H[: A.shape[1], : A.shape[1]] += _gram(A, d)
            H[np.diag_indices(n)] *= 1 + RIDGE
            factor = cho_factor(H, overwrite_a=True, check_finite=False)

            def by_columns(e: Vector) -> tuple[Vector, Vector]:
                v = -dual - self.transposed(self.by_row(D * e))
                dx = cho_solve(factor, v, check_finite=False)
                rest = v - self.transposed(scale * self.times(dx))
                dx += cho_solve(factor, rest, check_finite=False)
                return dx, D * (self.times(dx)[self.row] + e)

            return by_columns
        # For z = d (A dx + e) of the rows of the one table that is not diagonal.
        (T,) = (A for A in self.tables if not _is_single(A))
        diagonal = sum((A * A).T @ d for A, d in parts if A is not T)
        own = np.repeat([A is T for A in self.tables], [d.size for _, d in parts])
        d, alone = scale[own], (own & (self.bend == 0) & (np.bincount(self.row) == 1))[self.row]
        system = cho_factor(_gram(T.T, 1 / diagonal) + np.diag(1 / d), check_finite=False)

        def by_rows(e: Vector) -> tuple[Vector, Vector]:
            each = self.by_row(D * e)
            v = -dual - self.transposed(np.where(own, 0.0, each))
            z = np.zeros(own.size)
            z[own] = cho_solve(system, each[own] / d + T @ (v / diagonal), check_finite=False)
            dx = (v - self.transposed(z)) / diagonal
            # Where D is large digits cancel.
            return dx, np.where(alone, z[self.row], D * (self.times(dx)[self.row] + e))

        return by_rows

    def minimise(self, start: Vector, deadline: float) -> tuple[Vector, Vector]:
        """Return a point, and the multipliers of all kinks."""
        x, size = self.inner(start), 0.0
        if not self.w.size:  # a quadratic function: one step, and one for what it lost
            for _ in range(2):
                r = self.times(x) + self.b
                dual = self.c + self.transposed(self.slope + 2 * self.bend * r)
                x = x + self.solver(self.w, dual)(self.w)[0]
            return self._outer(x), self.w
        s, gap = self.w / 2, (self.times(x) + self.b)[self.row] - self.t
        away = float(np.abs(gap).mean()) + 1e-8
        p, m, left = np.maximum(gap, 0) + away, np.maximum(-gap, 0) + away, self.w - s
        most = LOST * float(p @ left + m @ s)
        for _ in range(STEPS):
            r = self.times(x) + self.b
            gap = r[self.row] - self.t
            total, size = float(p @ left + m @ s), max(size, float(self.w @ np.abs(gap)))
            if not END * size < total <= most or time.perf_counter() > deadline:
                break
            dual = self.c + self.transposed(self.slope + 2 * self.bend * r + self.by_row(s))
            try:
                solve = self.solver(1 / (p / left + m / s), dual)
            except np.linalg.LinAlgError:
                break
            mu: Any = 0.0
            dp = dm = ds = np.zeros(s.size)
            for _ in range(2):  # where it leads without mu says how small mu may be
                a, b = mu + dp * ds, mu - dm * ds
                dx, ds = solve(gap - a / left + b / s)
                dp, dm = (a + p * ds) / left - p, (b - m * ds) / s - m
                primal, other = min(_room(p, dp), _room(m, dm)), min(_room(s, ds), _room(left, -ds))
                P, M, S = p + primal * dp, m + primal * dm, other * ds
                mu = (float(P @ (left - S) + M @ (s + S)) / total) ** 3 * total / (2 * s.size)
            if self.bend.any():
                primal = other = min(primal, other)
            x, p, m = (v + PART * primal * dv for v, dv in ((x, dx), (p, dp), (m, dm)))
            s, left = s + PART * other * ds, left - PART * other * ds
        return self._outer(x), s

    def supports(self, x: Vector, s: Vector) -> list[Support]:
        """Return the lines that the multipliers are, where they are not those of the sides."""
        found, start, zero = list[Support](), 0, Fraction(0)
        gap = (self.times(self.inner(x)) + self.b)[self.row] - self.t
        off = self.by_row(np.abs(s - self.w * (gap > 0)) > SAME * self.w)
        total = self.slope + self.by_row(s)
        for k, g in self.weights.items():
            node: Any = self.program.nodes[k]
            own = slice(start, start := start + node.sizes[0])
            slopes = np.nan_to_num(total[own] / np.repeat(g, node.sizes[0] // g.size))
            if isinstance(node, Max):
                for row, part in enumerate(node.rows(np.where(slopes > SAME, slopes, 0.0))):
                    given = {int(j): Fraction(float(part[j])) for j in np.flatnonzero(part)}
                    given[top := int(part.argmax())] = zero
                    given[top] = 1 - sum(given.values(), zero)
                    places = ((row * node.columns + j, v) for j, v in given.items())
                    found += [Support(k, row, place, zero, v, zero) for place, v in places]
                continue
            sides = [(t, *sorted(pair)) for t, pair in zip(node.breakpoints, node.beside)]
            for i in np.flatnonzero(off[own]).tolist():
                v = Fraction(float(slopes[i]))
                t, low, high = min(sides, key=lambda e: max(e[1] - v, v - e[2]))
                found.append(Support(k, i, i, t, min(max(v, low), high), zero))
        return found


def _is_single(table: Any) -> bool:
    """Have all rows one entry at most?"""
    return sparse.issparse(table) and int(np.diff(table.indptr).max()) <= 1


def _beside(table: Any, more: Any) -> Any:
    if sparse.issparse(table):
        return sparse.hstack([table, more], format="csr")
    return np.hstack([table, more.toarray()])


def _matrix(program: Program, k: int) -> Any:
    """Return the matrix of a chain of affine nodes."""
    node: Any = program.nodes[k]
    if not k:
        return sparse.eye_array(program.dim, format="csr")
    if isinstance(node, Add) or not node.rational:
        raise NotCertifiableError("a sum of tables, or a matrix that is not in memory.")
    own = node.matrix if node.columns == 1 else node.rows
    matrix = own @ _matrix(program, node.of[0]) if node.of[0] else own
    if node.divisor is not None:
        matrix = sparse.diags_array(1 / node.divisor) @ matrix
    return matrix.tocsr() if sparse.issparse(matrix) else matrix


def _pieces(node: Any) -> tuple[list[float], list[tuple[float, float]]]:
    """Return slope and bend of the first piece, and the kinks after it with their jumps."""
    _, *first = (*map(float, node.pieces[0]), 0.0, 0.0)
    if any(first[2:]) or (node.breakpoints and not node.flat):
        raise NotCertifiableError("a function is not made of straight pieces.")
    return first[:2], [(float(t), float(jump)) for t, jump in zip(node.breakpoints, node.jumps)]


def _room(v: Vector, dv: Vector) -> float:
    """Return how far one can go, 1 at most, before an entry is negative."""
    down = dv < 0
    return min(1.0, float((-v[down] / dv[down]).min(initial=1.0)))


def _gram(A: Any, d: Vector) -> Any:
    """Return A' diag(d) A as a dense matrix; of large tables block by block."""
    if sparse.issparse(A):
        return (A.T @ (sparse.diags_array(d) @ A)).toarray()
    step = max(1, 2**22 // A.shape[1])
    blocks = (slice(i, i + step) for i in range(0, len(A), step))
    return sum((A[j].T * d[j]) @ A[j] for j in blocks)


def with_lines(program: Program, x: Vector, supports: list[Support]) -> MinimumCertificate:
    """State how much lower f can be than at x, on a ball that contains 0."""
    away = norm_upper(x)
    if not away < 2.0**1000:
        raise NotCertifiableError("the point is too far away.")
    line, room = line_below(program, x, supports), 1 + Fraction(2.0**-30)
    reach = 2.0 ** math.ceil(math.log2(2 + away))
    length, most = line.ends
    eps = fraction_upper(room * (Fraction(length) + Fraction(ROOM * norm_upper(line.slope.rad))))
    loss = room * (most + Fraction(ROOM * float(line.loss.rad[0])))
    gap = Shown(eps, loss, 0.0, reach).gap
    return MinimumCertificate(
        x=x, exact_pivot=tuple(to_fractions(x)), delta=0.0, eps=eps, radius=reach,
        gap=fraction_upper(gap or Fraction(0)), reach=reach, supports=tuple(supports),
    )  # fmt: skip


def minimum_by_rows(
    program: Program, x: Vector, deadline: float, stay: bool
) -> tuple[MinimumCertificate, Vector]:
    """Return a claim about the minimum that is found from x, or about x itself; and the minimum."""
    rows = Rows(program)
    with np.errstate(all="ignore"):
        best, s = rows.minimise(x, deadline)
        if not (np.isfinite(best).all() and np.isfinite(s).all()):
            raise NotCertifiableError("numbers overflow.")
        x = x if stay else best
        supports = rows.supports(x, s)
    return with_lines(program, x, supports), best


def lower_point(program: Program, x: Vector, point: Vector) -> Refutation | None:
    """Return the denial that f is lowest at x, if it is lower at a point."""
    fall = point_at(program, x).between()[0] - point_at(program, point).between()[1]
    if not fall > 0:
        return None
    y, h, least = tuple(to_fractions(x)), point - x, -fraction_upper(-fall)
    return Refutation(x=x, point=point, direction=h / np.linalg.norm(h), fall=least, exact_pivot=y)


__all__ = ["Rows", "lower_point", "minimum_by_rows"]
