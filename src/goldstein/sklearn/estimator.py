"""What the estimators share: checks of parameters, data and weights; what a fit remembers."""

import contextlib
import copy
import importlib
import math
import numbers
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import validation
from sklearn.utils.class_weight import compute_class_weight

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.fitting.fit import Options
from goldstein.sklearn.chunked import checked_chunks, is_dask_array
from goldstein.storage.folder import NO_STORE, Folder, Store, described, digest, seed_in

#: Parameters that do not change what is fitted, or that parts remember themselves.
_FREE = ("checkpoint", "max_calls", "max_time", "n_jobs", "random_state", "warm_start")


#: Features whose spreads differ by more than this factor are worth a warning.
UNEVEN = 100.0


@dataclass(eq=False, repr=False)
class ProvedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator with certificates; its parameters are the fields of a dataclass."""

    #: What every value of a parameter must be; None is allowed where that is the default.
    _rules: ClassVar[dict[str, Any]]

    _: KW_ONLY
    eps: float = 1e-3
    delta: float = 1e-3
    certificate: str = "near"
    max_calls: int | None = None
    max_time: float | None = None
    random_state: int | np.random.RandomState | None = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_parameters(self) -> None:
        for name, rule in self._rules.items():
            value = getattr(self, name)
            if value is None and getattr(type(self), name) is None:
                continue
            if isinstance(rule, tuple):
                one_of(name, value, rule)
            elif isinstance(rule, int):
                at_least(name, value, rule)
            else:
                rule(name, value)

    def _checked_rows(
        self, X: Any, y: Any, sample_weight: Any, *, reset: bool = True, y_numeric: bool = False
    ) -> tuple[Any, NDArray[Any], Vector]:
        """Check the data, and return weights with them; a Dask array is not read."""
        if is_dask_array(X):
            X, y = checked_chunks(X, y)
            self._check_features(X, reset=reset)
            if y_numeric:
                y = validation.check_array(y, ensure_2d=False, dtype=np.float64, input_name="y")
        else:
            X, y = validation.validate_data(
                self, X, y, reset=reset, accept_sparse="csr", dtype=np.float64, y_numeric=y_numeric
            )
            y = np.asarray(y, dtype=np.float64) if y_numeric else y
        return X, y, checked_sample_weight(sample_weight, X.shape[0])

    def _checked_inputs(self, X: Any) -> Any:
        """Check rows to predict."""
        if is_dask_array(X):
            self._check_features(X, reset=False)
            return X
        return validation.validate_data(self, X, reset=False, accept_sparse="csr", dtype=np.float64)

    def _check_features(self, X: Any, *, reset: bool) -> None:
        if reset:
            self.n_features_in_ = int(X.shape[1])
        elif X.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )

    def _options(self, seed: int, **more: Any) -> Options:
        """Return what a fit shall reach and may take."""
        return Options(
            self.eps, self.delta, seed, max_calls=self.max_calls, max_time=self.max_time,
            near=self.certificate == "near", **more,
        )  # fmt: skip

    def _remember_claims(self, fits: list[Any]) -> None:
        """Keep what was proved of the machines, and the weakest of it; and the parameters."""
        goldstein = [fit.goldstein for fit in fits]
        self.certificates_ = [fit.near or fit.goldstein for fit in fits]
        self.goldstein_stationarity_ = weakest(goldstein)
        self.near_stationarity_ = weakest([fit.near for fit in fits])
        weak = [fit.goldstein for fit in fits if fit.near is None] or self.certificates_
        self.certificate_ = max(weak, key=lambda c: c.eps)
        self.minima_ = [fit.minimum for fit in fits]
        every = all(m is not None for m in self.minima_)
        self.minimum_ = max(self.minima_, key=lambda m: m.gap) if every else None
        self.gap_ = None if self.minimum_ is None else self.minimum_.gap
        self._fitted_with = self.get_params(deep=False)  # `set_params` is about the next fit


class ProvedClassifier(ClassifierMixin):  # type: ignore[misc]
    """What the classifiers share: the numbers of their classes."""

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row."""
        chosen = winners(self.decision_function(X))  # first: it says whether this is fitted
        return np.asarray(self.classes_[chosen])

    def _class_numbers(self, y: NDArray[Any], weights: Vector) -> tuple[NDArray[np.intp], Vector]:
        """Return the numbers of the classes, and the weights times the class weights."""
        unknown = ~np.isin(y, self.classes_)
        if unknown.any():
            raise InputError(f"y has the class {y[unknown][0]!r}, which was not in the training.")
        labels = np.searchsorted(self.classes_, y)
        factors = compute_class_weight(
            self.class_weight, classes=self.classes_, y=y, sample_weight=weights
        )
        return labels, weights * np.asarray(factors, dtype=np.float64)[labels]


def known_classes(y: NDArray[Any]) -> NDArray[Any]:
    """Return the classes, at least two."""
    classes = np.unique(y)
    if len(classes) < 2:
        raise InputError(f"a classifier needs at least two classes, got one class: {classes[0]}.")
    return classes


def winners(scores: Vector) -> NDArray[np.intp]:
    """Return the numbers of the predicted classes, from one score (of two classes) or one each."""
    return (scores > 0).astype(np.intp) if scores.ndim == 1 else scores.argmax(axis=1)


def _rule(*limits: tuple[Callable[[float], bool], str]) -> Callable[[str, Any], float]:
    """Return what returns a number within limits, or says in their words what is wrong with it."""

    def checked(name: str, value: Any) -> float:
        real = isinstance(value, numbers.Real) and not isinstance(value, bool)
        for allowed, words in limits:
            if not real or not allowed(float(value)):
                raise InputError(f"{name} must {words}, got {value!r}.")
        return float(value)

    return checked


_POSITIVE = (lambda value: 0.0 < value < math.inf, "be a positive finite number")
_FINITE = (math.isfinite, "be a finite number")
positive, finite = _rule(_POSITIVE), _rule(_FINITE)
nonnegative = _rule(_FINITE, (lambda value: value >= 0.0, "not be negative"))
fraction = _rule(_POSITIVE, (lambda value: value < 1.0, "be between 0 and 1"))

ProvedEstimator._rules = {
    **dict.fromkeys(("eps", "delta", "max_time"), positive), "max_calls": 1,
    "certificate": ("near", "goldstein"),
}  # fmt: skip


def at_least(name: str, value: Any, least: int) -> int:
    """Return an integer that is at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer >= {least}, got {value!r}.")
    return int(value)


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return a value that is among the allowed ones."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    return value


def checked_sample_weight(sample_weight: Any, n: int) -> Vector:
    """Return nonnegative weights with a positive sum."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Real):
        return np.full(n, positive("sample_weight", sample_weight))
    weights = validation.check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise InputError(f"sample_weight must be one number per row, got shape {weights.shape}.")
    if weights.size != n:
        raise InputError(f"sample_weight has {weights.size} entries for {n} rows.")
    if (weights < 0).any() or not weights.any():
        raise InputError("sample_weight must be nonnegative and not all zero.")
    weights = np.asarray(weights, dtype=np.float64)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not 1e-300 < total < 1e300:
        raise InputError(f"sample_weight sums to {total:g}; scale the weights to a moderate size.")
    return weights


def drop_weightless(X: Any, y: NDArray[Any], weights: Vector) -> tuple[Any, NDArray[Any], Vector]:
    """Return the rows of positive weight: the others are as good as absent."""
    kept = weights > 0
    return (X, y, weights) if kept.all() else (X[kept], y[kept], weights[kept])


#: Entries up to which a sparse matrix is written out to put equal rows together.
WRITTEN_OUT = 2_000_000


def merged_rows(X: Any, targets: NDArray[Any], weights: Vector) -> tuple[Any, NDArray[Any], Vector]:
    """Return equal rows of one target once, with their weights added, in an order of their own.

    A search on them ends at the same point to the last bit, whether a row is repeated or has a
    weight, and however the rows are ordered. A large sparse matrix stays as it is.

    Examples
    --------
    >>> X = np.array([[2.0], [1.0], [2.0]])
    >>> merged_rows(X, np.array([0, 1, 0]), np.ones(3))
    (array([[2.], [1.]]), array([0, 1]), array([2., 1.]))
    """
    if sparse.issparse(X):
        if X.shape[0] * X.shape[1] > WRITTEN_OUT:
            return X, targets, weights
        X = X.toarray()
    rows, group = np.unique(np.column_stack([targets, X]), axis=0, return_inverse=True)
    together = np.bincount(group.ravel(), weights=weights, minlength=len(rows))
    return rows[:, 1:].copy(), rows[:, 0].astype(targets.dtype), together.astype(np.float64)


def unless_equal(weights: Vector) -> Vector | None:
    """Return None for equal weights: they are the same as none, to the last bit."""
    if not weights.any():
        raise InputError("no row has a positive weight; check sample_weight and class_weight.")
    return None if (weights == weights[0]).all() else weights


def folder_name(name: str, value: Any) -> None:
    """Refuse what cannot name a folder."""
    if not isinstance(value, str | os.PathLike):
        raise InputTypeError(
            f"{name} must be the path of a folder, or None; got {type(value).__name__}."
        )


def seed_of_fit(estimator: Any) -> int:
    """Return the seed: that of the checkpoint where `random_state` is None."""
    recorded = None
    if estimator.random_state is None and estimator.checkpoint is not None:
        recorded = seed_in(estimator.checkpoint)
    if recorded is not None:
        return recorded
    return int(validation.check_random_state(estimator.random_state).randint(2**31 - 1))


@contextlib.contextmanager
def kept_fit(estimator: Any, seed: int, **data: Any) -> Iterator[Store]:
    """Hold the folder of a fit to these data; without one nothing is kept."""
    if estimator.checkpoint is None:
        yield NO_STORE
        return
    parameters = {
        name: value for name, value in estimator.get_params().items() if name not in _FREE
    }
    identity = {
        "estimator": type(estimator).__name__, "seed": seed, "parameters": described(parameters),
        **{name: content_digest(part) for name, part in data.items()},
    }  # fmt: skip
    with Folder(estimator.checkpoint, identity) as folder:
        yield Store(folder.path)


def content_digest(data: Any) -> str:
    """Return a hash of an array, a sparse matrix, a Dask array (chunk by chunk) or a list of them.

    Examples
    --------
    >>> content_digest(np.zeros(3)) == content_digest(np.zeros(3)) != content_digest(np.zeros(4))
    True
    """
    if is_dask_array(data):
        dask = importlib.import_module("dask")
        data = dask.compute(*(dask.delayed(content_digest)(c) for c in data.to_delayed().ravel()))
    elif sparse.issparse(data):
        data = [data.shape, data.data, data.indices, data.indptr]
    elif isinstance(data, np.ndarray) and data.dtype == object:
        data = [str(part) for part in data]
    return digest(data)


def weakest(certificates: list[Any]) -> tuple[float, float] | None:
    """Return the (eps, delta) that holds for all, or None when one of them is missing."""
    if any(c is None for c in certificates):
        return None
    return max(c.eps for c in certificates), max(c.delta for c in certificates)


def warn_unless_reached(estimator: Any, certificates: list[Any]) -> None:
    """Say what was reached and what to change when the target was missed."""
    reached, delta = weakest(certificates) or (math.inf, math.inf)
    if reached > estimator.eps or delta > estimator.delta:
        limits = "max_calls" if estimator.max_time is None else "max_calls, max_time"
        warnings.warn(
            f"reached eps = {reached:.3g} at delta = {delta:.3g}, asked for delta = "
            f"{estimator.delta:g}, eps = {estimator.eps:g}; raise {limits}, eps or delta, or scale "
            "the features.",
            ConvergenceWarning,
            stacklevel=3,
        )


def warn_if_uneven(X: Any) -> None:
    """Say so where features of very different spread share one penalty."""
    if not isinstance(X, np.ndarray) or len(X) < 2:
        return
    spreads = X.std(axis=0)
    spreads = spreads[spreads > 0.0]
    if spreads.size and spreads.max() > UNEVEN * spreads.min():
        warnings.warn(
            f"the spreads of the features differ by a factor of {spreads.max() / spreads.min():.2g}"
            ", and the penalty is the same for all: scale them first, as in make_pipeline("
            "StandardScaler(), RhoMarginSVC()).",
            UserWarning,
            stacklevel=3,
        )


def as_fitted(estimator: Any) -> Any:
    """Return the estimator with the parameters of its fit."""
    return copy.copy(estimator).set_params(**estimator._fitted_with)


def warn_if_moved(now: ArrayLike, fitted: ArrayLike) -> None:
    """Say so where the coefficients that predict are not those that the certificate is about."""
    if not np.array_equal(now, fitted):
        warnings.warn(
            "the coefficients were changed after the fit: the certificate is about those that were "
            "fitted. gs.certify(machine.objective(X, y), x, delta=...) looks at others.",
            UserWarning,
            stacklevel=3,
        )
