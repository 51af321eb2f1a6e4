"""Sparse linear regression with l1, MCP or SCAD penalties, exact zeros and a proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from goldstein.calculus import Variable, huber, mcp, norm1, scad, square
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError
from goldstein.fitting.coordinate_descent import Penalty, descend
from goldstein.fitting.high_breakdown import HUBER
from goldstein.sklearn import estimator as check
from goldstein.sklearn.linear import ProvedLinear, Table, weighted_sum

#: Penalties on the way from the one that makes all coefficients 0.
WAY = 20

#: Turns of reweighting for the Huber loss.
TURNS = 100


@dataclass(eq=False, repr=False)
class SparseRegressor(ProvedLinear):
    """Linear regression with exact zeros: minimises mean loss + sum_j penalty(coef_j).

    MCP and SCAD do not shrink large coefficients, as l1 does, and are not convex. The start is
    coordinate descent along decreasing penalties; the certificate says how stationary the fit is.
    Where the data curve more than the penalty bends back, the objective is convex nevertheless, and
    `minimum_` says so: `scope` is "global". Scale the features first.

    Parameters
    ----------
    alpha : float
        Slope of the penalty at 0; with the squared loss as in scikit-learn's Lasso.
    penalty : {"mcp", "scad", "l1"}
    gamma : float, optional
        MCP is constant beyond gamma alpha (3), SCAD too (3.7).
    loss : {"squared", "huber"}
        r^2 / 2, and beyond `threshold` linear.
    threshold : float, optional
        In units of y; without it 1.345 times the median deviation of y over 0.6745.
    fit_intercept : bool
        It is not penalised.
    eps, delta : float
        Stationarity to reach.
    certificate : {"near", "goldstein"}
        Whether to look for a near certificate, and a minimum.
    max_calls, max_time
        Limits of the search that takes over where the start is not good enough.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, intercept_
    minimum_ : MinimumCertificate or None
        How much lower the objective can be on a ball, or anywhere where `minimum_.scope` is
        "global".
    gap_ : float or None
    certificate_, near_stationarity_, goldstein_stationarity_
        What was proved; see `QuantileRegressor`.
    objective_ : float

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import SparseRegressor
    >>> X = np.array([[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    >>> model = SparseRegressor(0.5).fit(X, np.array([2.1, -1.9, 1.9, -2.1]))
    >>> model.coef_, model.minimum_.scope
    (array([2., 0.]), 'global')
    """

    _rules: ClassVar = {
        **ProvedLinear._rules, "alpha": check.positive, "penalty": ("mcp", "scad", "l1"),
        "gamma": check.positive, "loss": ("squared", "huber"), "threshold": check.positive,
    }  # fmt: skip
    _rescaled: ClassVar[bool] = False

    alpha: float = 0.1
    _: KW_ONLY
    penalty: str = "mcp"
    gamma: float | None = None
    loss: str = "squared"
    threshold: float | None = None

    def path(
        self, X: Any, y: Any, alphas: ArrayLike | int = 20, sample_weight: ArrayLike | None = None
    ) -> list[SparseRegressor]:
        """Fit for decreasing penalties, each from the one before.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        alphas : sequence of float, or int
            A number of them, from the least that makes all coefficients 0 to its thousandth part.

        Returns
        -------
        list of SparseRegressor
            Fitted, each with its certificates; `[model.alpha for model in path]` are the penalties.
        """
        if np.ndim(alphas) == 0:
            self._check_parameters()
            table = self._table(*self._rows(X, y, sample_weight, reset=True))
            self._choose_threshold(table.y)
            top = self._least_for_zero(table)
            alphas = top * np.geomspace(1.0, 1e-3, check.at_least("alphas", alphas, 1))
        found: list[SparseRegressor] = []
        for alpha in sorted((float(a) for a in np.ravel(alphas)), reverse=True):
            model = clone(self).set_params(alpha=alpha)
            if found:
                model._before = found[-1].coef_
            found.append(model.fit(X, y, sample_weight))
        return found

    def _check_parameters(self) -> None:
        super()._check_parameters()
        least = {"mcp": 1.0, "scad": 2.0, "l1": 0.0}[self.penalty]
        if self.gamma is not None and self.gamma <= least:
            raise InputError(f"{self.penalty} needs gamma > {least:g}, got {self.gamma!r}.")

    def _penalty(self, alpha: float) -> Penalty:
        usual = 3.7 if self.penalty == "scad" else 3.0
        return Penalty(self.penalty, alpha, usual if self.gamma is None else float(self.gamma))

    def _table(self, X: Matrix, y: Vector, weights: Vector) -> Table:
        self.units_, self.unit_ = np.ones(X.shape[1]), 1.0
        return super()._table(X, y, weights)

    def _choose_threshold(self, y: Vector) -> None:
        spread = float(np.median(np.abs(y - np.median(y)))) / 0.6745
        self.threshold_ = float(self.threshold or 1.345 * spread or 1.0)

    def _pulls(self, table: Table, c: Vector, b: float) -> Vector:
        """Return weights with which the squared loss is a bound of the loss from above."""
        if self.loss == "squared":
            return table.weights
        r = table.y - table.A[:, : c.size] @ c - b
        slopes = HUBER.slope(r, self.threshold_)
        return table.weights * np.divide(slopes, r, out=np.ones_like(r), where=r != 0.0)

    def _centred(self, table: Table, w: Vector) -> tuple[Matrix, Vector, Vector, float]:
        X, d = table.A[:, : self.n_features_in_], self.n_features_in_
        if not self.fit_intercept:
            return X, table.y, np.zeros(d), 0.0
        centre, level = w @ X / w.sum(), float(w @ table.y / w.sum())
        return X - centre, table.y - level, centre, level

    def _least_for_zero(self, table: Table) -> float:
        zero, b = np.zeros(self.n_features_in_), 0.0
        for _ in range(TURNS):  # the level without coefficients; of the squared loss at once
            w = self._pulls(table, zero, b)
            X, y, _, b = self._centred(table, w)
        return float(np.abs((w[:, None] * X).T @ y).max())

    def _prepare(self, table: Table, rng: np.random.Generator) -> list[Vector]:
        self._choose_threshold(table.y)
        zero = np.zeros(self.n_features_in_)
        way, begin = [self.alpha], self.__dict__.pop("_before", None)
        if begin is None:
            top = max(self._least_for_zero(table), self.alpha)
            way, begin = np.geomspace(top, self.alpha, WAY).tolist(), zero
        ends = [self._descended(table, way, begin)]
        if self.penalty != "l1":  # not convex: the end depends on the start
            ends.append(self._descended(table, [self.alpha], zero))
        return [min(ends, key=self._functions(table)[0].value)]

    def _descended(self, table: Table, way: Iterable[float], c: Vector) -> Vector:
        """Return the end of coordinate descent along decreasing penalties."""
        b = 0.0
        for alpha in way:
            for _ in range(1 if self.loss == "squared" else TURNS):
                w = self._pulls(table, c, b)
                X, y, centre, level = self._centred(table, w)
                new = descend((w[:, None] * X).T @ X, X.T @ (w * y), c, self._penalty(alpha))
                moved = float(np.abs(new - c).max())
                c, b = new, level - float(centre @ new)
                if moved <= 1e-12 * max(1.0, float(np.abs(c).max())):
                    break
        return np.append(c, b) if self.fit_intercept else c

    def _functions(self, table: Table) -> list[Expression]:
        theta = Variable(table.A.shape[1])
        r, c = table.residuals(theta), theta[: self.n_features_in_]
        loss = 0.5 * square(r) if self.loss == "squared" else huber(r, self.threshold_)
        own = self._penalty(self.alpha)
        if self.penalty == "l1":
            term = own.alpha * norm1(c)
        else:
            term = (mcp if self.penalty == "mcp" else scad)(c, own.alpha, own.gamma).sum()
        return [weighted_sum(table.weights, loss) + term]
