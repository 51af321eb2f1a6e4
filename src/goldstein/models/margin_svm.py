"""Support vector machines with the rho-margin (ramp) loss: for two classes, and for several."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from goldstein.calculus import Variable, ramp, row_max, sum
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.constants import hand_over
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import linear, matrix_norm, row_norms
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rounding import distance_upper
from goldstein.errors import InputError
from goldstein.models.losses import (
    Model,
    data_matrix,
    exact_positive,
    nonnegative,
    ridge_term,
    sample_weights,
    with_constant_feature,
)
from goldstein.models.margin_problem import (
    MarginProblem,
    Smoothing,
    gradient_bound,
    smooth_parts,
    typical_start,
)
from goldstein.numerics.exact_floats import exact_float
from goldstein.numerics.spectral import spectral_norm_upper


class MarginSVM(Model):
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

    adjustable = frozenset({"neighbourhood", "_margins", "_visited", "_local"})
    neighbourhood: float = 0.0

    def __init__(
        self,
        Z: Any,
        rho: float = 1.0,
        lam: float | Fraction = 1.0,
        *,
        weights: Any = None,
        shift: float = 0.0,
        intercept: bool = False,
        total: Fraction | None = None,
    ) -> None:
        self.Z = data_matrix(Z, "Z")
        self.rho, self.lam = exact_positive("rho", rho), nonnegative("lam", lam)
        shift = exact_float(shift, "shift")
        n, d = self.Z.shape
        p = np.ones(n) if weights is None else sample_weights(weights, n)
        if intercept and d < 2:
            raise InputError("with an intercept Z needs a feature and the intercept's column.")
        penalised = d - 1 if intercept else d
        ridge = np.full(d, self.lam)
        ridge[penalised:] = 0.0
        shares = p if total is None else p / float(total)
        self.problem = MarginProblem.from_rows(
            self.Z, shares, ridge, rho=self.rho, shift=shift
        ).frozen()
        w = Variable(d)
        margins = linear(self.Z, w)
        loss = ramp(margins - shift if shift else margins, rho=self.rho)
        losses = sum(loss if weights is None else loss * p)
        tree = losses if total is None else losses / total
        if lam:
            tree = ridge_term(lam, w[:penalised] if intercept else w) + tree
        super().__init__(tree)
        self._margins: tuple[bytes, Vector] = (b"", np.zeros(n))
        self._visited: tuple[Vector, Vector] | None = None
        self._local: tuple[Vector, MarginProblem, float] | None = None

    @property
    def name(self) -> str:
        return "margin_svm"

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


class MulticlassMargin(Model):
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

    adjustable = frozenset({"_last_scores"})

    def __init__(
        self,
        X: Any,
        labels: Any,
        classes: int,
        rho: float = 1.0,
        lam: float | Fraction = 1.0,
        *,
        weights: Any = None,
        shift: float = 0.0,
        intercept: bool = True,
        total: Fraction | None = None,
    ) -> None:
        data = data_matrix(X, "X")
        n = data.shape[0]
        if intercept:
            data = with_constant_feature(data)
        self.X, self.classes, self.intercept = data, int(classes), intercept
        self.labels = hand_over(np.array(labels))
        whole = self.labels.shape == (n,) and np.issubdtype(self.labels.dtype, np.integer)
        if not whole or self.labels.min() < 0 or self.labels.max() >= classes or classes < 2:
            raise InputError(
                f"labels must be {n} integers from 0 to {classes - 1}, one per row of X."
            )
        self.rho, self.lam = exact_positive("rho", rho), nonnegative("lam", lam)
        self.shift = exact_float(shift, "shift")
        p = np.ones(n) if weights is None else sample_weights(weights, n)
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
        losses = sum(gap / self.rho * weights)
        tree = losses if total is None else losses / total
        if lam:
            tree = ridge_term(lam, W[:, :-1] if self.intercept else W) + tree
        return tree

    @property
    def name(self) -> str:
        return "multiclass_margin"

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
        answer: Vector = scores[np.arange(len(scores)), self.labels] - rivals.max(axis=1)
        return answer

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        theta = self._point(x)
        u = self.margins(theta) - self.shift
        losses = np.clip(1.0 - u / self.rho, 0.0, 1.0)
        return float(0.5 * (self.ridge * theta) @ theta + self.weights @ losses)

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
        pull = np.where(ramp, self.weights / self.rho, 0.0)
        return self.ridge * theta + self._combine(pull, best)

    def _combine(self, pull: Vector, best: NDArray[np.intp]) -> Vector:
        """Return the gradient of `pull` times the negative margins."""
        table = np.zeros((len(pull), self.classes))
        rows = np.arange(len(pull))
        table[rows, best] = pull
        table[rows, self.labels] = -pull
        return np.asarray(self.X.T @ table).T.ravel()

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
