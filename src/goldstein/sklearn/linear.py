"""What the linear regressors share: units, weights, certificates, predictions.

Sparse linear regression with l1, MCP or SCAD penalties, exact zeros and a proof.

Linear quantile regression with a proved global gap.

Robust linear regression with high breakdown, and a proof of how stationary the fit is.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import RegressorMixin, clone
from sklearn.utils.validation import check_is_fitted, check_random_state

from goldstein.api import certify
from goldstein.calculus import Variable, huber, mcp, norm1, pinball, relu, scad, square
from goldstein.calculus import abs as absolute
from goldstein.calculus.atoms.order import trimmed_sum
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.calculus.expression import Expression
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, NotCertifiableError
from goldstein.fitting import high_breakdown as start
from goldstein.fitting.fit import Fit, Options, whole_fit, with_near
from goldstein.fitting.high_breakdown import HUBER, Penalty, descend, quantile_coefficients
from goldstein.numerics.streams import smallest_delta
from goldstein.sklearn import estimator as check
from goldstein.sklearn.chunked import is_dask_array
from goldstein.sklearn.estimator import ProvedEstimator

#: A minimum is looked for in models of at most this many multiplications.
MINIMUM_WORK = 200_000


#: Columns this many times farther from 0 than they spread are counted from their median.
FAR = 1024.0

#: Entries above this, in units, have squares that float64 cannot add.
LARGE = 1e150


class Table(NamedTuple):
    """Rows (x_i, 1) in units of powers of two, which rounds nothing; targets; weights of sum 1."""

    A: Matrix
    y: Vector
    weights: Vector

    def residuals(self, c: Expression) -> Expression:
        """Return y - A c."""
        A: Any = self.A
        return self.y - A @ c


@dataclass(eq=False, repr=False)
class ProvedLinear(RegressorMixin, ProvedEstimator):  # type: ignore[misc]
    """A linear regressor; a subclass says which function of the coefficients is minimised.

    A subclass has `_prepare` (what the data decide beside the coefficients is kept for `objective`;
    it returns points near the minimisers, untrusted) and `_functions` (expressions).
    """

    #: Whether features are fitted in units of their spread; a penalty means the given ones. The
    #: objective in units of y is homogeneous in the unit, of degree `_degree`.
    _rescaled: ClassVar[bool] = True
    _degree: ClassVar[int] = 0

    _: KW_ONLY
    fit_intercept: bool = True
    eps: float = 1e-6
    delta: float = 1e-6

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix, shape (n, d)
            A sparse matrix is written out.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Nonnegative; a row of weight 2 counts as two rows, one of weight 0 as none.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y, weights = self._rows(X, y, sample_weight, reset=True)
        self._choose_units(X, y)
        seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        table = self._table(X, y, weights)
        starts = self._prepare(table, np.random.default_rng(seed))
        options = self._options(seed, minimum_work=MINIMUM_WORK)
        fits = [
            whole_fit(options, f, partial(proved, f, at, options))
            for f, at in zip(self._functions(table), starts)
        ]
        self._store(fits)
        check.warn_unless_reached(self, [fit.goldstein for fit in fits])
        return self

    def objective(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, machine: int = 0
    ) -> Expression:
        """Return the mean objective that `certificates_[machine]` is about, to verify it against.

        Its variables are the coefficients and the intercept in units of powers of two: `units_` of
        the features and `unit_` of y.
        """
        check_is_fitted(self)
        if not 0 <= machine < len(self.certificates_):
            raise InputError(f"machine must be less than {len(self.certificates_)}, got {machine}.")
        fitted = check.as_fitted(self)
        functions = fitted._functions(fitted._table(*self._rows(X, y, sample_weight, reset=False)))
        return functions[machine]

    def predict(self, X: Any) -> Vector:
        """Return the predicted target of each row; a column per quantile if there are several."""
        check_is_fitted(self)
        return np.asarray(self._checked_inputs(X) @ self.coef_.T) + self.intercept_

    def _rows(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Any:
        if is_dask_array(X):
            raise InputError(
                f"{type(self).__name__} needs the rows in memory, got a Dask array; call "
                "X.compute(), or fit a part of the rows."
            )
        rows = self._checked_rows(X, y, sample_weight, reset=reset, y_numeric=True)
        X, y, weights = check.drop_weightless(*rows)
        # A row that is repeated and one with a weight are the same, to the last bit.
        return check.merged_rows(X.toarray() if sparse.issparse(X) else X, y, weights)

    def _choose_units(self, X: Matrix, y: Vector) -> None:
        units = [_power_of_two(self._size(v)) if self._rescaled else 1.0 for v in X.T]
        places = [_far_away(v) if self.fit_intercept else 0.0 for v in (*X.T, y)]
        self.units_, self.unit_ = np.array(units), _power_of_two(self._target_size(y))
        self.centres_, self.centre_ = np.array(places[:-1]), places[-1]

    def _size(self, values: Vector) -> float:
        """Return how large a feature is, for its unit."""
        if (values == values[0]).all():
            return 0.0  # and not what rounding leaves of it
        with np.errstate(over="ignore", under="ignore"):
            return float(np.sqrt(np.mean((values - values.mean()) ** 2)))

    def _target_size(self, y: Vector) -> float:
        """Return how large the targets are, for their unit: few wild ones decide nothing."""
        return _spread(y)

    def _table(self, X: Matrix, y: Vector, weights: Vector) -> Table:
        A, y = (X - self.centres_) / self.units_, (y - self.centre_) / self.unit_
        if not max(np.abs(A).max(), np.abs(y).max()) < LARGE:
            raise InputError(f"an entry of X or y is beyond {LARGE:g} in units of its column.")
        if self.fit_intercept:
            A = np.column_stack([A, np.ones(len(A))])
        return Table(A, y, weights / weights.sum())

    def _prepare(self, table: Table, rng: np.random.Generator) -> Iterable[Vector]:
        raise NotImplementedError

    def _functions(self, table: Table) -> list[Expression]:
        raise NotImplementedError

    def _store(self, fits: list[Fit]) -> None:
        d = self.n_features_in_
        rows = np.concatenate([fit.x for fit in fits]).reshape(-1, d + bool(self.fit_intercept))
        self.coef_ = rows[:, :d] * self.unit_ / self.units_
        self.intercept_: Any = np.zeros(len(rows))
        if self.fit_intercept:
            self.intercept_ = rows[:, d] * self.unit_ + self.centre_ - self.coef_ @ self.centres_
        if np.ndim(getattr(self, "quantile", 0)) == 0:  # one row, shown as a vector
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        worth = self.unit_**self._degree
        self.objective_ = worth * sum(fit.value for fit in fits)
        self.n_iter_ = max(1, *(fit.iterations for fit in fits))
        self._remember_claims(fits)
        if self.minimum_ is not None:
            self.gap_ = worth * sum(m.gap for m in self.minima_)


def _power_of_two(size: float) -> float:
    """Return the power of two next to a size, 1 where that is no help."""
    return float(2.0 ** round(np.log2(size))) if 1e-150 < size < 1e150 else 1.0


def _spread(values: Vector) -> float:
    """Return the median distance from the median of what is not there; half may be anything."""
    away = np.abs(values - np.median(values))
    return float(np.median(away[away > 0.0])) if away.any() else 0.0


def _far_away(values: Vector) -> float:
    """Return the median of values that are far from 0 beside their spread, as constants are."""
    middle = float(np.sort(values)[values.size // 2])
    return middle if abs(middle) > FAR * _spread(values) else 0.0


def weighted_sum(weights: Any, losses: Expression) -> Expression:
    """Return the weighted mean of losses; equal weights are one factor."""
    equal = bool((weights == weights[0]).all())
    return float(weights[0]) * losses.sum() if equal else weights @ losses


def proved(f: Expression, start: Vector, options: Options) -> Fit:
    """Certify a start, where it is good enough, or the end of a search from there."""
    begin = time.perf_counter()
    # At a point of this size float64 cannot sample smaller balls.
    options = replace(options, delta=max(options.delta, 2.0 * smallest_delta(start)))
    near: Any = None
    if options.near:
        # A pivot that is much better than asked costs nothing here, and lowers the gap.
        asked: Any = {**options.asked, "eps": options.eps / 1024, "stationarity": "near"}
        with suppress(NotCertifiableError):
            near = certify(f, start, max_time=options.max_time, **asked)
        good = isinstance(near, NearCertificate)
        if good and near.eps <= options.eps and near.delta <= options.delta:
            return Fit(start, f.value(start), near, near, 0).concluded(near, "proved")
    x, steps = start, 0
    claim = certify(f, x, max_time=options.time_left(begin), **options.asked)
    if claim.eps > options.eps:
        result = options.searched(f, x, begin)
        if result.certificate is not None:
            x, steps, claim = result.x, result.nit, result.certificate
    return with_near(f, Fit(x, f.value(x), claim, None, steps), options, begin)


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
        What was proved, of the mean objective over `unit_` squared; see `QuantileRegressor`.
    unit_, centre_, centres_
        See `QuantileRegressor`; features are taken in the units that are given.
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
    _degree: ClassVar[int] = 2

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
            rows = self._rows(X, y, sample_weight, reset=True)
            self._choose_units(*rows[:2])
            table = self._table(*rows)
            self._choose_threshold(table.y)
            top = self._least_for_zero(table)
            alphas = self.unit_ * top * np.geomspace(1.0, 1e-3, check.at_least("alphas", alphas, 1))
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

    def _target_size(self, y: Vector) -> float:
        # Least squares follow wild targets, and so do the coefficients.
        return self._size(y) if self.loss == "squared" else _spread(y)

    def _penalty(self, alpha: float) -> Penalty:
        usual = 3.7 if self.penalty == "scad" else 3.0
        return Penalty(self.penalty, alpha, usual if self.gamma is None else float(self.gamma))

    def _choose_threshold(self, y: Vector) -> None:
        spread = float(np.median(np.abs(y - np.median(y)))) / 0.6745
        given = None if self.threshold is None else self.threshold / self.unit_
        self._threshold = float(given or 1.345 * spread or 1.0)
        self.threshold_ = self._threshold * self.unit_

    def _pulls(self, table: Table, c: Vector, b: float) -> Vector:
        """Return weights with which the squared loss is a bound of the loss from above."""
        if self.loss == "squared":
            return table.weights
        r = table.y - table.A[:, : c.size] @ c - b
        return table.weights * HUBER.pull(r, self._threshold)

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
        zero, alpha = np.zeros(self.n_features_in_), self.alpha / self.unit_
        way, begin = [alpha], self.__dict__.pop("_before", None)
        if begin is None:
            top = max(self._least_for_zero(table), alpha)
            way, begin = np.geomspace(top, alpha, WAY).tolist(), zero
        else:
            begin = begin / self.unit_
        ends = [self._descended(table, way, begin)]
        if self.penalty != "l1":  # not convex: the end depends on the start
            ends.append(self._descended(table, [alpha], zero))
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
        loss = 0.5 * square(r) if self.loss == "squared" else huber(r, self._threshold)
        own = self._penalty(self.alpha / self.unit_)
        if self.penalty == "l1":
            term = own.alpha * norm1(c)
        else:
            term = (mcp if self.penalty == "mcp" else scad)(c, own.alpha, own.gamma).sum()
        return [weighted_sum(table.weights, loss) + term]


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
    unit_, units_, centre_, centres_
        The certificates are stated in powers of two of y and of the features, and from medians of
        those whose distance from 0 is more than a thousand times their spread.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import QuantileRegressor
    >>> X = np.arange(5.0)[:, None]
    >>> model = QuantileRegressor(0.5).fit(X, np.array([1.0, 3.0, 5.0, 7.0, 90.0]))
    >>> model.coef_, model.intercept_, model.minimum_.scope
    (array([2.]), 1.0, 'global')
    """

    _degree: ClassVar[int] = 1
    _rules: ClassVar = {
        **ProvedLinear._rules, "penalty": ("l1", None), "alpha": check.nonnegative,
    }  # fmt: skip

    quantile: Any = 0.5
    _: KW_ONLY
    penalty: str | None = None
    alpha: float = 1.0
    non_crossing: bool = False

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


#: Constants of 95 % efficiency for normal errors.
THRESHOLDS = {"tukey": 4.685, "huber": 1.345}

#: Residuals up to this part of the spread of y are met exactly.
EXACT = 1e-9


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
        Share of the rows that count with "trimmed", from 0.5 (half of the rows may be wrong); more
        where equal rows would be torn apart.
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
        `abs(y - predict(X)) > 2.5 * scale_` are usually called outliers. Where most rows are met
        exactly, one that makes outliers of all others.
    objective_ : float
        Mean loss; of residuals in units of `scale_` for tukey and huber.
    minimum_, gap_
        How much lower the mean loss can be: anywhere for the convex losses, on a ball for tukey; a
        proof that it is the lowest of all is not given there. None for trimmed.
    certificate_, near_stationarity_, goldstein_stationarity_
        What was proved; see `QuantileRegressor`.
    unit_, units_, centre_, centres_
        See `QuantileRegressor`.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import RobustRegressor
    >>> X = np.arange(20.0)[:, None]
    >>> y = 3.0 * X.ravel() + 1.0 + 0.1 * np.cos(7.0 * X.ravel())
    >>> y[14:] = -400.0
    >>> model = RobustRegressor(random_state=0).fit(X, y)
    >>> model.coef_.round(1)
    array([3.])
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
    def _degree(self) -> int:  # type: ignore[override]
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
        table = super()._table(X, y, weights)
        n, p = start.counted_rows(weights), table.A.shape[1]
        self._free = max(1.0 - p / n, 1.0 / n)
        return table

    def _size(self, values: Vector) -> float:
        # Wrong rows decide nothing; the linear program wants entries near 1, right or wrong.
        return super()._size(values) if self.loss == "absolute" else _spread(values)

    def _kept(self, table: Table) -> int:
        n, p = table.A.shape
        return min(n, max(int(self.coverage * n), (n + p + 1) // 2))

    def _prepare(self, table: Table, rng: np.random.Generator) -> list[Vector]:
        (n, p), trimmed = table.A.shape, self.loss == "trimmed"
        if self.loss == "absolute":
            found = quantile_coefficients(*table, np.array([0.5]), np.zeros(p), ordered=False)[0][0]
            s = start.s_scale(table.y - table.A @ found, table.weights, self._free)
        else:
            share = self._kept(table) / n if trimmed else 0.5
            starts = start.trimmed_starts(*table, share, self.n_init, rng)
            found, s = start.s_estimate(*table, starts, self._free)
            found = self._with_copies(table, starts[0]) if trimmed else found
        exact = EXACT * (_spread(table.y) or 1.0)
        self._scale = s if s > exact else self._below(table.y - table.A @ found, exact)
        if self.loss in THRESHOLDS:
            loss = start.TUKEY if self.loss == "tukey" else start.HUBER
            c = self._bound * self._scale
            ends = [start.reweighted(*table, x, loss, c) for x in (found, *starts[:3])]
            losses = [table.weights @ loss.value(table.y - table.A @ x, c) for x in ends]
            found = ends[int(np.argmin(losses))]
        return [found]

    def _with_copies(self, table: Table, found: Vector) -> Vector:
        """Count rows up to where no row is counted whose copy is not: no gradient exists there."""
        rows, n = np.column_stack([table.A, table.y]), len(table.y)
        self._count = self._kept(table)
        while self._count < n:
            order = np.argsort(np.abs(table.y - table.A @ found), kind="stable")
            if not np.array_equal(*rows[order[self._count - 1 : self._count + 1]]):
                break
            self._count += 1
            found = start.concentrated(*table, found, self._count / n, start.STEPS)[0]
        return found

    def _below(self, residuals: Vector, exact: float) -> float:
        """Return a scale that makes wrong rows of all that an exact fit of most does not meet."""
        sizes = np.abs(residuals)
        least = float(sizes[sizes > exact].min(initial=np.inf))
        return max(1e3 * exact, 0.5 * least / THRESHOLDS["tukey"]) if np.isfinite(least) else 1.0

    def _functions(self, table: Table) -> list[Expression]:
        residuals = table.residuals(Variable(table.A.shape[1]))
        if self.loss == "absolute":
            return [weighted_sum(table.weights, absolute(residuals))]
        if self.loss == "trimmed":
            left_out = len(table.y) - self._count
            return [(1.0 / self._count) * trimmed_sum(square(residuals), 0, left_out)]
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
