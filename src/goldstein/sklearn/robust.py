"""Robust linear regression with high breakdown, and a proof of how stationary the fit is."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from goldstein.calculus import Variable, huber, square
from goldstein.calculus import abs as absolute
from goldstein.calculus.atoms.base import Elementwise, PiecewisePolynomial
from goldstein.calculus.atoms.order import trimmed_sum
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError
from goldstein.fitting import high_breakdown as start
from goldstein.fitting.fit import Fit
from goldstein.fitting.quantile_lp import quantile_coefficients
from goldstein.sklearn import estimator as check
from goldstein.sklearn.linear import ProvedLinear, Table, weighted_sum

#: Constants of 95 % efficiency for normal errors.
THRESHOLDS = {"tukey": 4.685, "huber": 1.345}


@dataclass(eq=False, repr=False)
class RobustRegressor(ProvedLinear):
    """Linear regression that wrong rows do not move.

    Up to half of the rows may be arbitrarily wrong for `loss="tukey"` (an MM-estimate: the scale of
    an S-estimate, then Tukey's biweight) and `"trimmed"` (least trimmed squares); these losses are
    not convex, and starts are fits of random rows, improved on the rows that they explain best.
    "huber" and "absolute" are convex, withstand wrong targets, and not wrong features.

    Parameters
    ----------
    loss : {"tukey", "trimmed", "huber", "absolute"}
    threshold : float, optional
        In units of the scale, where the loss ends (tukey, 4.685) or turns linear (huber, 1.345).
    coverage : float
        Share of the rows that count with "trimmed", from 0.5 (half of the rows may be wrong).
    n_init : int
        Random subsets.
    fit_intercept : bool
    eps, delta : float
        Stationarity to reach, of the mean loss in units of powers of two.
    certificate : {"near", "goldstein"}
        Whether to look for a near certificate, and a minimum.
    max_calls, max_time
        Limits of the search that takes over where the start is not good enough.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, intercept_
    scale_ : float
        Robust scale of the residuals, for normal errors their standard deviation; rows with
        `abs(y - predict(X)) > 2.5 * scale_` are usually called outliers.
    objective_ : float
        Mean loss; of residuals in units of `scale_` for tukey and huber.
    minimum_, gap_
        How much lower the mean loss can be: anywhere for the convex losses, on a ball for tukey; a
        proof that it is the lowest of all is not given there. None for trimmed.
    certificate_, near_stationarity_, goldstein_stationarity_
        What was proved; see `QuantileRegressor`.
    unit_, units_
        Powers of two, of y and of the features, in which the certificates are stated.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import RobustRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = 3.0 * X.ravel() + 1.0 + 0.1 * np.cos(7.0 * X.ravel())
    >>> y[14:] = -400.0
    >>> model = RobustRegressor(random_state=0).fit(X, y)
    >>> model.coef_.round(1), model.minimum_.scope
    (array([3.]), 'ball')
    """

    _rules: ClassVar = {
        **ProvedLinear._rules, "loss": ("tukey", "trimmed", "huber", "absolute"), "n_init": 1,
        "threshold": check.positive, "coverage": check.fraction,
    }  # fmt: skip

    loss: str = "tukey"
    _: KW_ONLY
    threshold: float | None = None
    coverage: float = 0.5
    n_init: int = 200

    @property
    def _degree(self) -> int:
        return {"absolute": 1, "trimmed": 2}.get(self.loss, 0)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.coverage < 0.5:
            raise InputError(f"coverage must be at least 0.5, got {self.coverage!r}.")

    @property
    def _bound(self) -> float:
        return THRESHOLDS[self.loss] if self.threshold is None else float(self.threshold)

    def _table(self, X: Matrix, y: Vector, weights: Vector) -> Table:
        if self.loss == "trimmed" and (weights != 1.0).any():
            times = weights.astype(np.intp)
            if (times != weights).any():
                raise InputError(
                    "loss='trimmed' counts rows: sample_weight must be whole numbers; use "
                    "loss='tukey' for others."
                )
            X, y, weights = (np.repeat(part, times, axis=0) for part in (X, y, np.ones(len(y))))
        return super()._table(X, y, weights)

    def _kept(self, table: Table) -> int:
        n, p = table.A.shape
        return min(n, max(int(self.coverage * n), (n + p + 1) // 2))

    def _prepare(self, table: Table, rng: np.random.Generator) -> list[Vector]:
        (n, p), trimmed = table.A.shape, self.loss == "trimmed"
        if self.loss == "absolute":
            half = np.array([0.5])
            found = quantile_coefficients(*table, half, np.zeros(p), ordered=False)[0][0]
            s = start.s_scale(table.y - table.A @ found, table.weights)
        else:
            share = self._kept(table) / n if trimmed else 0.5
            starts = start.trimmed_starts(*table, share, self.n_init, rng)
            found, s = start.s_estimate(*table, starts)
            found = starts[0] if trimmed else found
        self._scale = s if s > 1e-9 else 1.0  # an exact fit has no scale
        if self.loss in THRESHOLDS:
            loss = start.TUKEY if self.loss == "tukey" else start.HUBER
            c = self._bound * self._scale
            ends = [start.reweighted(*table, x, loss, c) for x in (found, *starts[:3])]
            losses = [table.weights @ loss.value(table.y - table.A @ x, c) for x in ends]
            found = ends[int(np.argmin(losses))]
        return [found]

    def _functions(self, table: Table) -> list[Expression]:
        residuals = table.residuals(Variable(table.A.shape[1]))
        if self.loss == "absolute":
            return [weighted_sum(table.weights, absolute(residuals))]
        if self.loss == "trimmed":
            kept = self._kept(table)
            return [(1.0 / kept) * trimmed_sum(square(residuals), 0, len(table.y) - kept)]
        u = (1.0 / self._scale) * residuals
        loss = tukey(u, self._bound) if self.loss == "tukey" else huber(u, self._bound)
        return [weighted_sum(table.weights, loss)]

    def _store(self, fits: list[Fit]) -> None:
        super()._store(fits)
        self.scale_ = self._scale * self.unit_


def tukey(u: Expression, c: float) -> Expression:
    """Return Tukey's biweight loss c^2/6 (1 - (1 - u^2/c^2)^3), constant where |u| >= c.

    Examples
    --------
    >>> tukey(Variable(2), 2.0)(np.array([1.0, 9.0]))
    array([0.38541667, 0.66666667])
    """
    k = Fraction(c) ** 2
    middle: list[Any] = [0, 0, Fraction(1, 2), 0, -1 / (2 * k), 0, 1 / (6 * k * k)]
    pieces = [[k / 6], middle, [k / 6]]
    return Elementwise(PiecewisePolynomial("tukey", [-Fraction(c), Fraction(c)], pieces), u)
