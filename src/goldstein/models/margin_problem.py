"""The weighted rho-margin objective as arrays: fused passes over the data, and exact screening.

    F(v) = sum_k ridge_k v_k^2 / 2 + sum_i p_i phi_rho(z_i.v - shift) + slope.v + constant

where phi_rho(u) = min(1, max(0, 1 - u / rho)) has a concave kink at u = 0 (a row becomes an
outlier) and a convex one at u = rho (a row becomes correct). `slope` and `constant` are 0 for the
whole data; they carry the rows that were screened away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.constants import hand_over, hand_over_sparse
from goldstein.calculus.operators import row_norms, size_upper
from goldstein.checker.arrays import Vector

#: Bytes of data per block: a block stays in the cache between its two products.
BLOCK_BYTES = 2**19


@dataclass(frozen=True)
class Smoothing:
    """How the two kinks are rounded off: quadratically within `width`, and where the flat part is.

    `give` moves the concave kink to -give: rows that far on the wrong side still count. An infinite
    `give` is the hinge loss, which is convex.
    """

    width: float
    give: float = 0.0


def typical_start(rng: np.random.Generator, size: int, rho: float, lengths: Vector) -> Vector:
    """Draw a start at which the margins of rows of these lengths are of the size of the ramp."""
    start: Vector = rng.standard_normal(size) * (rho / (float(lengths.mean()) or 1.0))
    return start


def gradient_bound(lam: float, value: float, delta: float, pull: float) -> float:
    """Bound the gradients within delta of {F <= value}: the ridge's part there, and the loss's."""
    return math.sqrt(2.0 * lam * value) + lam * delta + pull


@dataclass(frozen=True)
class MarginProblem:
    """Data of the objective.

    Attributes
    ----------
    Z : ndarray, sparse matrix or anything with products and rows, shape (n, k)
        Rows y_i (x_i, 1): label times features, and the intercept's column if there is one.
    weights : ndarray, shape (n,)
        p_i > 0.
    ridge : ndarray, shape (k,)
        Penalty per variable; 0 for the intercept.
    rho, shift : float
        Width of the ramp, and where it begins.
    row_norms : ndarray, shape (n,)
        Norms |z_i|.
    slope, constant
        The affine part.
    """

    Z: Any
    weights: Vector
    ridge: Vector
    rho: float
    shift: float
    row_norms: Vector
    slope: Vector
    constant: float = 0.0

    @classmethod
    def from_rows(
        cls, Z: Any, weights: Vector, ridge: Vector, *, rho: float, shift: float = 0.0
    ) -> MarginProblem:
        """Return the problem of the whole data."""
        # A little more than rounding can take away: these are upper bounds.
        norms = row_norms(Z) * (1.0 + 2.0**-40)
        return cls(Z, weights, ridge, rho, shift, norms, np.zeros(Z.shape[1]))

    def frozen(self) -> MarginProblem:
        """Make the arrays read-only."""
        for array in (self.weights, self.ridge, self.row_norms, self.slope):
            array.setflags(write=False)
        return self

    @property
    def dim(self) -> int:
        return int(self.Z.shape[1])

    @property
    def rows(self) -> int:
        return int(self.Z.shape[0])

    def take(self, rows: NDArray[Any]) -> MarginProblem:
        """Return the problem of some rows, their weights scaled up to the same total."""
        weights = self.weights[rows]
        weights = weights * (self.weights.sum() / weights.sum())
        return replace(self, Z=self.Z[rows], weights=weights, row_norms=self.row_norms[rows])

    def equal_lengths(self) -> MarginProblem:
        """Return the problem with every row scaled to the median length: no row has leverage."""
        typical = float(np.median(self.row_norms))
        scale = np.where(self.row_norms > 0, typical / np.maximum(self.row_norms, 1e-300), 1.0)
        if isinstance(self.Z, BlockedRows):
            Z: Any = self.Z.scaled(scale)
        elif sparse.issparse(self.Z):
            Z = (sparse.diags(scale) @ self.Z).tocsr()
        else:
            Z = scale[:, None] * self.Z
        return replace(self, Z=Z, row_norms=self.row_norms * scale)

    def restrict(self, v: Vector, u: Vector, radius: float) -> MarginProblem:
        """Return the problem of the rows that can change piece within `radius` of v.

        It equals the whole objective on that ball: every other row stays on one linear piece there,
        because |z_i.(y - v)| <= radius |z_i|.
        """
        reach = radius * self.row_norms + self.rounding(v)
        margin = u - self.shift
        near = ~((np.abs(margin) > reach) & (np.abs(margin - self.rho) > reach))
        kept = np.flatnonzero(near)
        flat = ~near & (margin < 0)
        ramp = ~near & (margin > 0) & (margin < self.rho)
        pull = np.where(ramp, self.weights / self.rho, 0.0)
        settled = float(self.weights[flat].sum())
        return replace(
            self, Z=self.Z[kept], weights=self.weights[kept], row_norms=self.row_norms[kept],
            slope=self.slope - self.transposed_product(pull),
            constant=self.constant + settled + float(pull.sum()) * (self.rho + self.shift),
        )  # fmt: skip

    def rounding(self, v: Vector) -> Vector:
        """Return bounds of the rounding errors of the distances of Z v from the kinks."""
        unit = 4.0 * (self._terms + 8) * 2.0**-53
        length = size_upper(v)
        level = abs(self.shift) + self.rho
        return unit * (self.row_norms * length + level) + 2.0**-900

    @cached_property
    def _terms(self) -> int:
        """Most products that are summed for one row."""
        if sparse.issparse(self.Z) and self.Z.format == "csr":
            return int(np.diff(self.Z.indptr).max(initial=0))
        return self.dim

    def clear_of_kinks(self, v: Vector, u: Vector) -> bool:
        """True when every row is provably off its kinks, Z v = u being rounded."""
        slack = self.rounding(v)
        margin = u - self.shift
        return bool(((np.abs(margin) > slack) & (np.abs(margin - self.rho) > slack)).all())

    def product(self, v: Vector) -> Vector:
        """Return Z v."""
        return np.asarray(self.Z @ v)

    def transposed_product(self, a: Vector) -> Vector:
        """Return Z'a."""
        return np.asarray(self.Z.T @ a)

    def penalty(self, v: Vector) -> float:
        """Return everything but the losses."""
        return float(0.5 * (self.ridge * v) @ v + self.slope @ v + self.constant)

    def value(self, v: Vector, u: Vector | None = None) -> float:
        """Return F(v); `u` is Z v if it is known."""
        margin = (self.product(v) if u is None else u) - self.shift
        return self.penalty(v) + float(self.weights @ np.clip(1.0 - margin / self.rho, 0.0, 1.0))

    def gradient(self, v: Vector, u: Vector | None = None) -> Vector:
        """Return the gradient of F at v, which must not lie on a kink."""
        margin = (self.product(v) if u is None else u) - self.shift
        pull = np.where((margin > 0) & (margin < self.rho), self.weights / self.rho, 0.0)
        return self.ridge * v + self.slope - self.transposed_product(pull)

    def smooth_value(self, v: Vector, u: Vector, s: Smoothing) -> float:
        """Return the value of the smoothed objective."""
        return self.penalty(v) + smooth_parts(u, self.weights, self.rho, self.shift, s)[0]

    def smooth_pass(self, v: Vector, s: Smoothing) -> tuple[Vector, float, Vector]:
        """Return (Z v, value, gradient) of the smoothed objective in one pass over the data."""
        gradient = self.ridge * v + self.slope
        value = self.penalty(v)
        if not isinstance(self.Z, np.ndarray):
            u = self.product(v)
            loss, pull = smooth_parts(u, self.weights, self.rho, self.shift, s)
            gradient += self.transposed_product(pull)
            return u, value + loss, gradient
        u = np.empty(self.rows)
        block = max(64, BLOCK_BYTES // (8 * self.dim))
        for start in range(0, self.rows, block):
            stop = min(start + block, self.rows)
            Z, p = self.Z[start:stop], self.weights[start:stop]
            part = np.dot(Z, v, out=u[start:stop])
            loss, pull = smooth_parts(part, p, self.rho, self.shift, s)
            value += loss
            gradient += pull @ Z
        return u, value, gradient

    def smooth_gradient(self, v: Vector, u: Vector, s: Smoothing) -> Vector:
        """Return the gradient of the smoothed objective, Z v being known."""
        pull = smooth_parts(u, self.weights, self.rho, self.shift, s)[1]
        return self.ridge * v + self.slope + self.transposed_product(pull)

    def curvature(self, u: Vector, s: Smoothing) -> tuple[NDArray[np.intp], Vector]:
        """Return (rows, c): the smoothed losses have Hessian sum over rows of c_i z_i z_i'."""
        margin = u - self.shift
        c = (np.abs(margin - self.rho) < s.width).astype(np.float64)
        if np.isfinite(s.give):
            c -= np.abs(margin + s.give) < s.width
        rows = np.flatnonzero(c)
        return rows, c[rows] * self.weights[rows] / (2.0 * s.width * self.rho)


def labelled_rows(X: Any, signs: Vector, *, intercept: bool) -> Any:
    """Return the rows signs_i (x_i, 1) of a matrix, or signs_i x_i without an intercept.

    The only copy of the data that a model needs; it is handed over, and must not be written to.

    Examples
    --------
    >>> labelled_rows(np.array([[2.0], [3.0]]), np.array([1.0, -1.0]), intercept=True)
    array([[ 2.,  1.],
           [-3., -1.]])
    """
    n, d = X.shape
    width = d + bool(intercept)
    if not sparse.issparse(X):
        Z = np.empty((n, width))
        np.multiply(X, signs[:, None], out=Z[:, :d])
        Z[:, d:] = signs[:, None]
        return hand_over(Z)
    rows = sparse.csr_array(X)
    counts = np.diff(rows.indptr)
    data = rows.data * np.repeat(signs, counts)
    if not intercept:
        return hand_over_sparse(
            sparse.csr_array((data, rows.indices.copy(), rows.indptr.copy()), shape=(n, d))
        )
    # The intercept's entry comes last in every row.
    size = rows.nnz + n
    kind = np.int32 if max(size, width) < 2**31 else np.int64
    starts = np.zeros(n + 1, dtype=kind)
    np.cumsum(counts + 1, out=starts[1:])
    ends = starts[1:] - 1
    old = np.ones(size, dtype=bool)
    old[ends] = False
    entries, columns = np.empty(size), np.empty(size, dtype=kind)
    entries[old], entries[ends] = data, signs
    columns[old], columns[ends] = rows.indices, d
    return hand_over_sparse(sparse.csr_array((entries, columns, starts), shape=(n, width)))


def smooth_parts(
    u: Vector, p: Vector, rho: float, shift: float, s: Smoothing
) -> tuple[float, Vector]:
    """Return the sum of the losses, rounded off, of rows with products u, and their derivatives."""
    losses, slopes = _bend(shift + rho + s.width - u, s.width)
    if np.isfinite(s.give):
        flat, level = _bend(shift - s.give + s.width - u, s.width)
        losses -= flat
        slopes -= level
    slopes *= p
    slopes *= -1.0 / rho
    return float(p @ losses) / rho, slopes


def _bend(r: Vector, width: float) -> tuple[Vector, Vector]:
    """max(r - width, 0), rounded off quadratically for r within (0, 2 width), and its slope."""
    above = np.maximum(r, 0.0)
    inside = np.minimum(above, 2.0 * width)
    slope = inside / (2.0 * width)
    above -= inside
    inside *= slope
    inside *= 0.5
    above += inside
    return above, slope
