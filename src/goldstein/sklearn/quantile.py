"""Linear quantile regression with a proved global gap."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from goldstein.calculus import Variable, norm1, pinball, relu
from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.fitting.quantile_lp import quantile_coefficients
from goldstein.sklearn import estimator as check
from goldstein.sklearn.linear import ProvedLinear, Table, weighted_sum


@dataclass(eq=False, repr=False)
class QuantileRegressor(ProvedLinear):
    """Linear model of one or several quantiles: minimises the mean pinball loss, and proves it.

    The problem is convex: where the minimum is proved, `gap_` bounds how much lower the objective
    can be anywhere. The coefficients come from a linear program (HiGHS), which nobody believes.

    Parameters
    ----------
    quantile : float or sequence of float
        Between 0 and 1; several in ascending order.
    penalty : {None, "l1"}
        "l1" adds alpha sum_j |coef_j| for each quantile, as scikit-learn's QuantileRegressor does.
    alpha : float
        Weight of the penalty; not used without one.
    non_crossing : bool
        Keep the quantiles in order at every training row, and so on the convex hull of the rows.
        All are then fitted at once.
    fit_intercept : bool
    eps, delta : float
        Stationarity to reach, of the mean objective in units of powers of two.
    certificate : {"near", "goldstein"}
        Whether to look for a near certificate, and a minimum.
    max_calls, max_time
        Limits of the search that takes over where the linear program is not good enough.
    random_state : int, RandomState or None

    Attributes
    ----------
    coef_, intercept_
        A row and a number per quantile; one of each if `quantile` is a number.
    objective_ : float
        The mean objective, summed over quantiles.
    gap_ : float or None
        By how much the objective can be lower within the scope of the minima, in units of y; with
        `non_crossing`, by how much that of other coefficients in order can.
    minimum_ : MinimumCertificate or None
        That of the largest gap; `minimum_.scope` is "global" where the gap holds everywhere.
    certificate_, certificates_, minima_
        The weakest, and one per quantile (one in all if `non_crossing`).
    near_stationarity_, goldstein_stationarity_ : (float, float)
    unit_, units_
        Powers of two, of y and of the features, in which the certificates are stated.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import QuantileRegressor
    >>> X = np.arange(5.0)[:, None]
    >>> model = QuantileRegressor(0.5).fit(X, np.array([1.0, 3.0, 5.0, 7.0, 90.0]))
    >>> model.coef_, model.intercept_, model.minimum_.scope
    (array([2.]), 1.0, 'global')
    """

    _rules: ClassVar = {
        **ProvedLinear._rules, "penalty": ("l1", None), "alpha": check.nonnegative,
    }  # fmt: skip

    quantile: Any = 0.5
    _: KW_ONLY
    penalty: str | None = None
    alpha: float = 1.0
    non_crossing: bool = False

    @property
    def _is_one(self) -> bool:
        return np.ndim(self.quantile) == 0

    @property
    def _degree(self) -> int:
        return 1

    @property
    def _levels(self) -> NDArray[np.float64]:
        try:
            levels = np.atleast_1d(np.asarray(self.quantile, dtype=np.float64))
        except (TypeError, ValueError):
            levels = np.empty(0)
        good = levels.ndim == 1 and levels.size and (levels > 0).all() and (levels < 1).all()
        if not good or (np.diff(levels) <= 0).any():
            raise InputError(
                "quantile must be a number between 0 and 1, or several in ascending order; got "
                f"{self.quantile!r}."
            )
        return levels

    def _check_parameters(self) -> None:
        super()._check_parameters()
        _ = self._levels

    def _price(self, p: int) -> Vector:
        """Return the weight of |c_j| in units of the features and of y."""
        price = np.zeros(p)
        if self.penalty == "l1":
            price[: len(self.units_)] = self.alpha / self.units_
        return price

    @property
    def _joint(self) -> bool:
        return bool(self.non_crossing) and len(self._levels) > 1

    def _prepare(self, table: Table, rng: np.random.Generator) -> Iterable[Vector]:
        levels, price = self._levels, self._price(table.A.shape[1])
        if self._joint:
            found, most = quantile_coefficients(*table, levels, price, ordered=True)
            # A crossing that costs more than its multiplier does not pay.
            self._crossing = float(2.0 ** np.ceil(np.log2(max(2.0 * most, 2.0**-40))))
            return [found.ravel()]
        parts = [quantile_coefficients(*table, levels[k : k + 1], price, ordered=False)[0]
                 for k in range(len(levels))]  # fmt: skip
        return list(np.vstack(parts))

    def _functions(self, table: Table) -> list[Expression]:
        p, levels = table.A.shape[1], self._levels
        price: Any = self._price(p)[: len(self.units_)]
        A: Any = table.A

        def loss(c: Expression, tau: float) -> Expression:
            mean = weighted_sum(table.weights, pinball(table.residuals(c), tau))
            return mean + norm1(price * c[: len(price)]) if price.any() else mean

        if not self._joint:
            return [loss(Variable(p), float(tau)) for tau in levels]
        whole = Variable(p * len(levels))
        parts = [whole[k * p : (k + 1) * p] for k in range(len(levels))]
        total = loss(parts[0], float(levels[0]))
        for tau, c in zip(levels[1:], parts[1:]):
            total = total + loss(c, float(tau))
        for low, high in pairwise(parts):
            total = total + self._crossing * relu(A @ (low - high)).sum()
        return [total]
