"""What the linear regressors share: units, weights, certificates, predictions."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, check_random_state

from goldstein.api import certify
from goldstein.calculus.expression import Expression
from goldstein.certificates.near import NearCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, NotCertifiableError
from goldstein.fitting.fit import Fit, Options, whole_fit, with_near
from goldstein.sklearn import estimator as check
from goldstein.sklearn.chunked import is_dask_array
from goldstein.sklearn.estimator import ProvedEstimator

#: A minimum is looked for in models of at most this many multiplications.
MINIMUM_WORK = 200_000


class Table(NamedTuple):
    """Rows (x_i, 1) in units of powers of two, which rounds nothing; targets; weights of sum 1."""

    A: Matrix
    y: Vector
    weights: Vector

    def residuals(self, c: Expression) -> Expression:
        """Return y - A c."""
        A: Any = self.A
        y: Any = self.y
        return y - A @ c


@dataclass(eq=False, repr=False)
class ProvedLinear(RegressorMixin, ProvedEstimator):  # type: ignore[misc]
    """A linear regressor; a subclass says which function of the coefficients is minimised.

    A subclass has `_prepare` (what the data decide beside the coefficients is kept for `objective`;
    it returns points near the minimisers, untrusted) and `_functions` (expressions).
    """

    #: Whether features are fitted in units of their spread; a penalty means the given ones.
    _rescaled: ClassVar[bool] = True

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
        X, y = self._checked_rows(X, y, reset=reset, y_numeric=True)
        weights = check.checked_sample_weight(sample_weight, X.shape[0])
        X, y, weights = check.drop_weightless(X, y, weights)
        # A row that is repeated and one with a weight are the same, to the last bit.
        return check.merged_rows(X.toarray() if sparse.issparse(X) else X, y, weights)

    def _choose_units(self, X: Matrix, y: Vector) -> None:
        self.unit_ = _power_of_two(y - y.mean()) if self._rescaled else 1.0
        self.units_ = np.ones(X.shape[1])
        if self._rescaled:
            self.units_ = np.array([_power_of_two(column - column.mean()) for column in X.T])

    def _table(self, X: Matrix, y: Vector, weights: Vector) -> Table:
        A = X / self.units_
        if self.fit_intercept:
            A = np.column_stack([A, np.ones(len(A))])
        return Table(A, y / self.unit_, weights / weights.sum())

    def _prepare(self, table: Table, rng: np.random.Generator) -> Iterable[Vector]:
        raise NotImplementedError

    def _functions(self, table: Table) -> list[Expression]:
        raise NotImplementedError

    def _store(self, fits: list[Fit]) -> None:
        d = self.n_features_in_
        rows = np.concatenate([fit.x for fit in fits]).reshape(-1, d + bool(self.fit_intercept))
        self.coef_ = rows[:, :d] * self.unit_ / self.units_
        self.intercept_: Any = (
            rows[:, d] * self.unit_ if self.fit_intercept else np.zeros(len(rows))
        )
        if self._is_one:
            self.coef_, self.intercept_ = self.coef_[0], float(self.intercept_[0])
        worth = self.unit_**self._degree
        self.objective_ = worth * sum(fit.value for fit in fits)
        self.n_iter_ = max(1, *(fit.iterations for fit in fits))
        self._remember_claims(fits)
        if self.minimum_ is not None:
            self.gap_ = worth * sum(m.gap for m in self.minima_)

    @property
    def _is_one(self) -> bool:
        """Whether there is one row of coefficients, shown as a vector."""
        return True

    @property
    def _degree(self) -> int:
        """The unit of the functions, as a power of the unit of y."""
        return 0


def _power_of_two(values: Vector) -> float:
    """Return the power of two next to the root mean square, 1 where that is no help."""
    with np.errstate(over="ignore", under="ignore"):
        size = float(np.sqrt(np.mean(values**2)))
    return float(2.0 ** round(np.log2(size))) if 1e-100 < size < 1e100 else 1.0


def weighted_sum(weights: Any, losses: Expression) -> Expression:
    """Return the weighted mean of losses; equal weights are one factor."""
    equal = bool((weights == weights[0]).all())
    return float(weights[0]) * losses.sum() if equal else weights @ losses


def proved(f: Expression, start: Vector, options: Options) -> Fit:
    """Certify a start, where it is good enough, or the end of a search from there."""
    begin = time.perf_counter()
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
