"""Support vector machines with the rho-margin (ramp) loss: for two classes, and for several.

The weighted rho-margin objective as arrays: fused passes over the data, and exact screening.

    F(v) = sum_k ridge_k v_k^2 / 2 + sum_i p_i phi_rho(z_i.v - shift) + slope.v + constant

where phi_rho(u) = min(1, max(0, 1 - u / rho)) has a concave kink at u = 0 (a row becomes an
outlier) and a convex one at u = rho (a row becomes correct). `slope` and `constant` are 0 for the
whole data; they carry the rows that were screened away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.special import logsumexp

from goldstein.calculus import Variable, sum
from goldstein.calculus.atoms.order import row_max
from goldstein.calculus.atoms.piecewise import ramp
from goldstein.calculus.constants import BlockedRows, hand_over, hand_over_sparse
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import linear, matrix_norm, row_norms, size_upper
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rounding import distance_upper
from goldstein.errors import InputError
from goldstein.models import losses
from goldstein.numerics.exact import exact_float
from goldstein.numerics.spectral import spectral_norm_upper

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
    return rng.standard_normal(size) * (rho / (float(lengths.mean()) or 1.0))


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
    rows = sparse.csr_array(X, copy=True)
    rows.data = rows.data * np.repeat(signs, np.diff(rows.indptr))
    if intercept:  # its entry comes last in every row
        rows = sparse.csr_array(sparse.hstack([rows, signs[:, None]]))
    return hand_over_sparse(rows)


def smooth_parts(
    u: Vector, p: Vector, rho: float, shift: float, s: Smoothing
) -> tuple[float, Vector]:
    """Return the sum of the losses, rounded off, of rows with products u, and their derivatives."""
    lost, slopes = _bend(shift + rho + s.width - u, s.width)
    if np.isfinite(s.give):
        flat, level = _bend(shift - s.give + s.width - u, s.width)
        lost -= flat
        slopes -= level
    slopes *= p
    slopes *= -1.0 / rho
    return float(p @ lost) / rho, slopes


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


class MarginSVM(losses.Model):
    """lam/2 |w|^2 + sum_i p_i min(1, max(0, 1 - (z_i.w - shift)/rho)); rows z_i carry their labels.

    It is an Expression with `start(rng)` and `solver_lipschitz(x, delta)`.

    Parameters
    ----------
    Z : array or sparse matrix, shape (n, d)
        Rows label_i * features_i (append a constant feature for an intercept).
    rho : float
        Margin.
    lam : float
        Weight of the ridge term.
    weights : array, shape (n,), optional
        Nonnegative weights p_i of the losses; default 1.
    shift : float
        Where the ramp begins.
    intercept : bool
        The last column of Z belongs to an intercept, which the ridge term leaves out.
    total : Fraction, optional
        What the losses are divided by. It is exact in proofs, and so is `lam` if it is a Fraction.

    Attributes
    ----------
    problem : MarginProblem
        The same objective as plain arrays, for fused passes.
    neighbourhood : float
        After two questions this close to each other, rows that cannot change piece there are summed
        up once and for all, which is exact. Questions nearby then cost only the other rows.

    Examples
    --------
    >>> F = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.value(np.array([0.5, 0.5]))
    1.25
    """

    name = "margin_svm"
    adjustable = frozenset({"neighbourhood", "_margins", "_visited", "_local"})
    neighbourhood: float = 0.0

    def __init__(
        self, Z: Any, rho: float = 1.0, lam: float | Fraction = 1.0, *, weights: Any = None,
        shift: float = 0.0, intercept: bool = False, total: Fraction | None = None,
    ) -> None:  # fmt: skip
        self.Z = losses.data_matrix(Z, "Z")
        self.rho, self.lam = losses.exact_positive("rho", rho), losses.nonnegative("lam", lam)
        shift = exact_float(shift, "shift")
        n, d = self.Z.shape
        p = np.ones(n) if weights is None else losses.sample_weights(weights, n)
        if intercept and d < 2:
            raise InputError("with an intercept Z needs a feature and the intercept's column.")
        penalised = d - 1 if intercept else d
        ridge = np.full(d, self.lam)
        ridge[penalised:] = 0.0
        shares = p if total is None else p / float(total)
        problem = MarginProblem.from_rows(self.Z, shares, ridge, rho=self.rho, shift=shift)
        self.problem = problem.frozen()
        w = Variable(d)
        margins = linear(self.Z, w)
        loss = ramp(margins - shift if shift else margins, rho=self.rho)
        whole = sum(loss if weights is None else loss * p)
        tree = whole if total is None else whole / total
        if lam:
            tree = losses.ridge_term(lam, w[:penalised] if intercept else w) + tree
        super().__init__(tree)
        self._margins: tuple[bytes, Vector] = (b"", np.zeros(n))
        self._visited: tuple[Vector, Vector] | None = None
        self._local: tuple[Vector, MarginProblem, float] | None = None

    def _look(self, w: Vector) -> tuple[MarginProblem, Vector]:
        """Return the cheapest problem that equals the objective at w, and its products Z w."""
        # Rows in blocks stay there, however many of them are within reach of a kink.
        reach = 0.0 if isinstance(self.Z, BlockedRows) else self.neighbourhood
        if self._local is not None and _within(w, self._local[0], min(reach, self._local[2])):
            local = self._local[1]
            return local, local.product(w)
        key = w.tobytes()
        if self._margins[0] != key:
            if self._visited is not None and _within(w, self._visited[0], reach):
                centre, u = self._visited
                local = self.problem.restrict(centre, u, reach)
                self._local = (centre, local, reach)
                return local, local.product(w)
            self._margins = (key, self.problem.product(w))
            self._visited = (w.copy(), self._margins[1])
        return self.problem, self._margins[1]

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        w = self._point(x)
        problem, u = self._look(w)
        return problem.value(w, u)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        w = self._point(y)
        problem, u = self._look(w)
        if not problem.clear_of_kinks(w, u):
            # In doubt, NaN and overflow included, the tree decides exactly.
            return super().gradient(w)
        return problem.gradient(w, u)

    def _start(self, rng: np.random.Generator) -> Vector:
        return typical_start(rng, self.Z.shape[1], self.rho, self.problem.row_norms)

    @cached_property
    def _norm(self) -> float:
        return matrix_norm(self.Z)

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return sqrt(2 lam F(x)) + lam delta + |p| |Z| / rho; |p| = sqrt(n) without weights."""
        pull = float(np.linalg.norm(self.problem.weights)) * self._norm
        return gradient_bound(self.lam, self.value(x), delta, pull / self.rho)


def _within(x: Vector, centre: Vector, radius: float) -> bool:
    return radius > 0.0 and distance_upper(x, centre) <= radius


def margin_svm(Z: Any, rho: float = 1.0, lam: float | Fraction = 1.0, **more: Any) -> MarginSVM:
    """Return `MarginSVM(Z, rho, lam, ...)`, an Expression with `start(rng)`.

    Examples
    --------
    >>> F = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.value(np.array([0.5, 0.5]))
    1.25
    """
    return MarginSVM(Z, rho, lam, **more)


class MulticlassMargin(losses.Model):
    """lam/2 |W|^2 + sum_i p_i phi_rho(u_i - shift), u_i = s_{y_i} - max of the other scores.

    The scores are s = W (x_i, 1), phi_rho(u) = min(1, max(0, 1 - u/rho)). Since

        rho phi_rho(u_i - shift) = max_j (s_j + (rho + shift) [j != y_i])
                                 - max_j (s_j + shift [j != y_i]),

    the objective is built from row maxima of affine functions, and its kinks are known exactly. The
    variables are W row by row, one row per class, the intercept last in its row. With two classes
    and W = (-w/2, w/2) it is the two-class objective in w with lam/2 in place of lam. It is an
    Expression with `start(rng)` and `solver_lipschitz(x, delta)`.

    Parameters
    ----------
    X : array or sparse matrix, shape (n, d)
    labels : array of int, shape (n,)
        From 0 to classes - 1.
    classes : int
    rho : float
        Margin.
    lam : float
        Weight of the ridge term, which leaves the intercepts out.
    weights : array, shape (n,), optional
        Nonnegative weights p_i of the losses; default 1.
    shift : float
        Where the ramp begins.
    intercept : bool
        Whether every class has an intercept.
    total : Fraction, optional
        What the losses are divided by. It is exact in proofs, and so is `lam` if it is a Fraction.

    Examples
    --------
    >>> F = multiclass_margin([[1.0], [2.0]], [0, 1], 2, intercept=False)
    >>> F.value(np.array([0.25, -0.25]))
    1.5625
    """

    name = "multiclass_margin"
    adjustable = frozenset({"_last_scores"})

    def __init__(
        self, X: Any, labels: Any, classes: int, rho: float = 1.0, lam: float | Fraction = 1.0, *,
        weights: Any = None, shift: float = 0.0, intercept: bool = True,
        total: Fraction | None = None,
    ) -> None:  # fmt: skip
        data = losses.data_matrix(X, "X")
        n = data.shape[0]
        if intercept:
            data = losses.with_constant_feature(data)
        self.X, self.classes, self.intercept = data, int(classes), intercept
        self.labels = hand_over(np.array(labels))
        whole = self.labels.shape == (n,) and np.issubdtype(self.labels.dtype, np.integer)
        if not whole or self.labels.min() < 0 or self.labels.max() >= classes or classes < 2:
            raise InputError(
                f"labels must be {n} integers from 0 to {classes - 1}, one per row of X."
            )
        self.rho, self.lam = losses.exact_positive("rho", rho), losses.nonnegative("lam", lam)
        self.shift = exact_float(shift, "shift")
        p = np.ones(n) if weights is None else losses.sample_weights(weights, n)
        self.weights = hand_over(p if total is None else p / float(total))
        self._others = np.ones((n, self.classes), dtype=bool)
        self._others[np.arange(n), self.labels] = False
        super().__init__(self._tree(lam, p, total))
        self._slack = 8.0 * (data.shape[1] + 8) * 2.0**-53 * row_norms(data)
        self._last_scores: tuple[bytes, Matrix] | None = None

    def _tree(self, lam: float | Fraction, weights: Vector, total: Fraction | None) -> Expression:
        features = self.X.shape[1]
        theta = Variable(self.classes * features)
        W = theta.reshape(self.classes, features)
        scores = self.X @ W.T
        if self.shift:
            scores = scores + self.shift * self._others
        # Exact in rationals: neither rho + shift nor 1/rho is rounded, or the proof would be about
        # another function.
        gap = row_max(scores + self.rho * self._others) - row_max(scores)
        whole = sum(gap / self.rho * weights)
        tree = whole if total is None else whole / total
        if lam:
            tree = losses.ridge_term(lam, W[:, :-1] if self.intercept else W) + tree
        return tree

    @property
    def ridge(self) -> Vector:
        """Penalty per variable."""
        table = np.full((self.classes, self.X.shape[1]), self.lam)
        if self.intercept:
            table[:, -1] = 0.0
        return table.ravel()

    def table(self, theta: Vector) -> Matrix:
        """Return the variables as one row per class."""
        return theta.reshape(self.classes, -1)

    def scores(self, theta: Vector) -> Matrix:
        """Return the score of every row in every class."""
        key = theta.tobytes()
        if self._last_scores is None or self._last_scores[0] != key:
            self._last_scores = key, np.asarray(self.X @ self.table(theta).T)
        return self._last_scores[1]

    def margins(self, theta: Vector) -> Vector:
        """Return u_i: the score of the own class minus the best of the others."""
        scores = self.scores(theta)
        rivals = np.where(self._others, scores, -np.inf)
        return scores[np.arange(len(scores)), self.labels] - rivals.max(axis=1)

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        theta = self._point(x)
        u = self.margins(theta) - self.shift
        lost = np.clip(1.0 - u / self.rho, 0.0, 1.0)
        return float(0.5 * (self.ridge * theta) @ theta + self.weights @ lost)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        theta = self._point(y)
        scores = self.scores(theta)
        rivals = np.where(self._others, scores, -np.inf)
        rows = np.arange(len(scores))
        best = rivals.argmax(axis=1)
        u = scores[rows, self.labels] - rivals[rows, best] - self.shift
        top = np.abs(theta).max(initial=0.0) * self.X.shape[1] ** 0.5
        slack = 2.0 * self._slack * top + 2.0**-48 * (abs(self.shift) + self.rho) + 2.0**-900
        # An infinite score says nothing, not even its sign.
        clear = np.isfinite(scores).all(axis=1)
        clear &= (np.abs(u) > slack) & (np.abs(u - self.rho) > slack)
        ramp = (u > 0.0) & (u < self.rho)
        second = rivals.copy()
        second[rows, best] = -np.inf
        # Ties among the others matter on the ramp only.
        clear &= ~ramp | (rivals[rows, best] - second.max(axis=1) > slack)
        if not clear.all():  # in doubt, NaN and overflow included, the tree decides exactly
            return super().gradient(theta)
        pull, table = np.where(ramp, self.weights / self.rho, 0.0), np.zeros(scores.shape)
        table[rows, best], table[rows, self.labels] = pull, -pull
        return self.ridge * theta + np.asarray(self.X.T @ table).T.ravel()

    def smooth(self, theta: Vector, s: Smoothing) -> tuple[float, Vector]:
        """Return value and gradient of the objective with its kinks rounded off.

        The best of the others becomes a soft maximum at temperature `s.width`.
        """
        scores = np.asarray(self.X @ self.table(theta).T)
        rivals = np.where(self._others, scores, -np.inf) / s.width
        level = logsumexp(rivals, axis=1)
        rows = np.arange(len(scores))
        u = scores[rows, self.labels] - s.width * level
        value, slope = smooth_parts(u, self.weights, self.rho, self.shift, s)
        table = -slope[:, None] * np.exp(rivals - level[:, None])
        table[rows, self.labels] = slope
        ridge = self.ridge * theta
        gradient = ridge + np.asarray(self.X.T @ table).T.ravel()
        return 0.5 * float(ridge @ theta) + value, gradient

    def _start(self, rng: np.random.Generator) -> Vector:
        return typical_start(rng, self.variable.size, self.rho, row_norms(self.X))

    @cached_property
    def _norm(self) -> float:
        return spectral_norm_upper(self.X)

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return sqrt(2 lam F(x)) + lam delta + sqrt(2) |p| |X| / rho."""
        pull = math.sqrt(2.0) * float(np.linalg.norm(self.weights)) * self._norm
        return gradient_bound(self.lam, self.value(x), delta, pull / self.rho)


def multiclass_margin(X: Any, labels: Any, classes: int, *more: Any, **named: Any) -> Any:
    """Return `MulticlassMargin(X, labels, classes, ...)`, an Expression with `start(rng)`."""
    return MulticlassMargin(X, labels, classes, *more, **named)
