"""ReLU networks with one hidden layer whose convergence is proved."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, softmax
from sklearn.base import ClassifierMixin, RegressorMixin
from sklearn.model_selection import train_test_split
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from goldstein.api import certify
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.fitting.fit import Fit, Options, best_start, whole_fit, with_near
from goldstein.models import networks as models
from goldstein.models.losses import make_loss
from goldstein.oracles.base import Derived, Oracle
from goldstein.sklearn import estimator as check
from goldstein.sklearn.chunked import ChunkedNetwork, chunked_outputs, is_dask_array
from goldstein.sklearn.estimator import ProvedClassifier, ProvedEstimator

#: Standard deviation of a normal law in units of its median deviation.
NORMAL = 1.4826


@dataclass(eq=False, repr=False)
class _ReLUNet(ProvedEstimator):
    """What the regressor and the classifier share; they document it as their own.

    Parameters
    ----------
    width : int
        Number of hidden neurons.
    layers : {1, 2}
        1 trains the hidden weights only, the output weights being +1 and -1 in turn; 2 trains both.
    loss : str
        WORDS_OF_LOSSES
    ridge : float
        Weight of |parameters|^2 / 2.
    threshold : float
        Where the Huber losses turn linear.
    eps, delta : float
        Stationarity to reach, for the mean loss plus the ridge term.
    solver : {"auto", "o2nc", "psingd"}
        Full batches, or mini-batches.
    batch_size : int
        Rows per mini-batch.
    max_calls : int
        Limit of values plus gradients per start.
    max_time : float, optional
        Limit of the fit in seconds, the near proof included. Without it the proof may take as long
        as the training, and two seconds.
    checkpoint : path, optional
        A folder in which finished parts of the fit are kept. A fit that was killed and is begun
        again with the same data, parameters and `checkpoint` ends as if nothing had been; what was
        done is not done again, and a larger `max_calls` or `max_time` goes on from there. A folder
        of another fit is refused.
    n_init : int
        Random starts; the best is kept.
    early_stopping : bool
        Keep rows aside and stop when the score on them no longer rises; the certificate then says
        how stationary the stopped network is, and no target is asked of it.
    validation_fraction : float
        Part of the rows kept aside.
    n_iter_no_change : int
        Steps without a better score before stopping.
    warm_start : bool
        Start the next fit at the present parameters.
    certificate : {"near", "goldstein"}
        Whether to look for a near certificate, the stronger kind, after the Goldstein one.
    random_state : int, RandomState or None

    Attributes
    ----------
    parameters_ : ndarray
        All trained parameters, in the order of the certificate's x.
    hidden_coef_ : ndarray, shape (width, d + 1)
        Hidden weights, biases last.
    output_coef_, output_intercept_
        Output weights and biases; there are no output biases when layers = 1.
    minimum_ : MinimumCertificate or None
        How much lower the mean objective can be near the fit; None where no minimum was proved.
    gap_ : float or None
        `minimum_.gap`.
    certificate_ : NearCertificate or GoldsteinCertificate
        Near where obtained; `certificate_.meta["near"]` says "proved", or why not.
    near_stationarity_ : (float, float) or None
    goldstein_stationarity_ : (float, float)
        What was proved, as (eps, delta).
    objective_ : float
        Mean loss plus ridge term.
    n_iter_ : int
    """

    #: What is said about `loss`, and about parameters of its own.
    _words: ClassVar[tuple[str, str]] = ("", "")

    _y_numeric: ClassVar[bool] = False
    _rules: ClassVar = {
        **ProvedEstimator._rules, "threshold": check.positive, "ridge": check.nonnegative,
        **dict.fromkeys(("width", "batch_size", "n_init", "n_iter_no_change"), 1),
        "checkpoint": check.folder_name, "validation_fraction": check.fraction,
        "layers": (1, 2), "solver": ("auto", "o2nc", "psingd"),
    }  # fmt: skip

    width: int = 16
    _: KW_ONLY
    layers: int = 2
    loss: str = "squared"
    ridge: float = 1e-3
    threshold: float = 1.0
    eps: float = 1e-2
    delta: float = 1e-2
    solver: str = "auto"
    batch_size: int = 64
    max_calls: int | None = 10_000
    checkpoint: str | os.PathLike[str] | None = None
    n_init: int = 1
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 20
    warm_start: bool = False

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        _, _, shared = (_ReLUNet.__doc__ or "").partition("\n\n")
        losses, more = cls._words
        last = "    random_state :"
        shared = shared.rstrip().replace("WORDS_OF_LOSSES", losses).replace(last, more + last)
        cls.__doc__ = (cls.__doc__ or "").replace("    PARAMETERS", shared)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Train the network.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask array, shape (n, d)
            A Dask array is never in memory as a whole; it gets a Goldstein certificate.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Nonnegative; a row of weight 2 counts as two rows, one of weight 0 as none.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y, weights = self._data(X, y, sample_weight, reset=True)
        self._learn_targets(y, weights)
        self._train(X, *self._targets(y, weights))
        return self

    def objective(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Network:
        """Return the training objective, to verify the certificate against."""
        check_is_fitted(self)
        X, y, weights = self._data(X, y, sample_weight, reset=False)
        fitted = check.as_fitted(self)
        target, shares = fitted._targets(y, weights)
        if self._trained is not None and X.shape[0] == self._total:
            X, target, shares = _rows_of(self._trained, X, target, shares)  # none held aside
        model: Network = fitted._model(X, target, shares)
        used = self.hidden_coef_, self.output_coef_, self.output_intercept_
        check.warn_if_moved(_joined(used), _joined(model.weights(self.certificate_.x)))
        return model

    def _data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any, Vector]:
        """Return checked rows of positive weight, their targets and weights."""
        X, y, weights = self._checked_rows(
            X, y, sample_weight, reset=reset, y_numeric=self._y_numeric
        )
        if reset and isinstance(self, ClassifierMixin):
            check_classification_targets(y)
        return check.drop_weightless(X, y, weights)

    def _learn_targets(self, y: NDArray[Any], weights: Vector) -> None:
        """Remember what the targets are."""
        raise NotImplementedError

    def _targets(self, y: NDArray[Any], weights: Vector) -> tuple[NDArray[Any], Vector | None]:
        """Return targets as the model takes them, and their weights; None when all are equal."""
        raise NotImplementedError

    def _model(self, X: Any, target: NDArray[Any], weights: Vector | None) -> Network:
        threshold, classes = self.threshold, len(getattr(self, "classes_", ()))
        if is_dask_array(X):
            loss = make_loss(self.loss, target, X.shape[0], threshold, weights, classes)
            return ChunkedNetwork(X, loss, self.width, self.layers, self.ridge)
        options: dict[str, Any] = {
            "loss": self.loss, "ridge": self.ridge, "threshold": threshold, "classes": classes,
            "weights": weights, "mean": True,
        }  # fmt: skip
        if self.layers == 1:
            return models.relu_one_layer(X, target, self.width, **options)
        return models.relu_two_layer(X, target, self.width, output_bias=True, **options)

    def _train(self, X: Any, target: NDArray[Any], weights: Vector | None) -> None:
        seed = check.seed_of_fit(self)
        score = None
        if is_dask_array(X) and self.solver != "auto":
            raise InputError(
                f"solver={self.solver!r} draws single rows, which a Dask array does not give "
                "quickly; use solver='auto', or fit in memory."
            )
        data = {"X": X, "y": target, "weights": weights}
        total, train = X.shape[0], None
        if self.early_stopping:
            train, held = train_test_split(
                np.arange(X.shape[0]), test_size=self.validation_fraction, random_state=seed,
                stratify=target if isinstance(self, ClassifierMixin) else None,
            )  # fmt: skip
            train, held = np.sort(train), np.sort(held)
            held_rows, held_target = X[held], target[held]
            held_weights = None if weights is None else weights[held]

            def score(theta: Vector) -> float:
                outputs = _network_outputs(held_rows, model.weights(theta))
                rows = self._row_scores(outputs, held_target)
                return float(np.average(rows, weights=held_weights))

            X, target, weights = _rows_of(train, X, target, weights)
        model = self._model(X, target, weights)
        old = getattr(self, "parameters_", None)
        start = old if self.warm_start and old is not None and old.size == model.dim else None
        with check.kept_fit(self, seed, **data, start=start) as kept:
            starts = self.n_init if start is None else 1
            options = self._options(seed, start=start, n_init=starts, kept=kept)
            fit = whole_fit(options, model, lambda: self._search(model, options, score))
        self.parameters_ = fit.x
        hidden, outer, shift = model.weights(fit.x)
        self.hidden_coef_, self.output_coef_ = hidden.copy(), outer.copy()
        self.output_intercept_ = None if shift is None else np.array(shift)
        self.objective_ = fit.value
        self.n_iter_ = max(fit.iterations, 1)
        self._remember_claims([fit])
        self._total, self._trained = total, train
        if not self.early_stopping:
            check.warn_unless_reached(self, [fit.goldstein])

    def _search(self, model: Network, options: Options, score: Score | None) -> Fit:
        """Train from the start that is given, or from random ones, and keep the best."""
        began = options.begin(time.perf_counter())
        oracle: Oracle = model
        if isinstance(model, models.ReLUNetwork) and self.solver != "auto":
            oracle = Batches(model, self.batch_size)

        def train(k: int) -> Fit:
            x0 = model.start(options.seed + k) if options.start is None else options.start
            watch = None if score is None else _Watch(score, self.n_iter_no_change, x0)
            result = options.searched(
                oracle, x0, began, f"start-{k}", method=self.solver, callback=watch
            )
            theta, certificate = result.x, result.certificate
            if watch is not None:
                watch(theta)
                if not np.array_equal(theta, watch.best):
                    theta, certificate = watch.best, None
            if not isinstance(certificate, GoldsteinCertificate):
                certificate = certify(model, theta, **options.asked)
            return Fit(theta, model.value(theta), certificate, None, result.nit)

        value = (lambda fit: fit.value) if score is None else (lambda fit: -score(fit.x))
        best = best_start(options, model, train, value)
        return with_near(model, best, options, began)

    def _row_scores(self, outputs: Vector, target: NDArray[Any]) -> Any:
        """Return how well the outputs meet the targets, row by row."""
        raise NotImplementedError

    def _outputs(self, X: Any) -> Vector:
        check_is_fitted(self, "parameters_")
        X = self._checked_inputs(X)
        weights = models.Weights(self.hidden_coef_, self.output_coef_, self.output_intercept_)
        return _network_outputs(X, weights)


def _weighted_median(values: Vector, weights: Vector) -> float:
    """Return the least value that half of the weight does not exceed."""
    return float(np.quantile(values, 0.5, weights=weights, method="inverted_cdf"))


def _joined(weights: Iterable[Any]) -> Vector:
    return np.concatenate([np.ravel(part) for part in weights if part is not None])


def _rows_of(
    rows: NDArray[np.intp], X: Any, target: NDArray[Any], weights: Vector | None
) -> tuple[Any, NDArray[Any], Vector | None]:
    return X[rows], target[rows], None if weights is None else weights[rows]


def _network_outputs(X: Any, weights: models.Weights) -> Vector:
    return chunked_outputs(X, weights) if is_dask_array(X) else models.network_outputs(X, *weights)


class ReLUNetRegressor(RegressorMixin, _ReLUNet):  # type: ignore[misc]
    """Regression by a ReLU network whose convergence is proved.

    The targets are standardised inside: the objective and its certificate are about targets of mean
    0 and variance 1.

    PARAMETERS

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import ReLUNetRegressor
    >>> X = np.linspace(-1, 1, 40)[:, None]
    >>> net = ReLUNetRegressor(width=4, random_state=0).fit(X, np.abs(X).ravel())
    >>> round(net.score(X, np.abs(X).ravel()), 2)
    1.0
    """

    _words: ClassVar = ('"squared", "huber" or "pseudo_huber".', "")
    _y_numeric: ClassVar[bool] = True
    _rules: ClassVar = {**_ReLUNet._rules, "loss": ("squared", "huber", "pseudo_huber")}

    def predict(self, X: Any) -> Vector:
        """Return the predicted target of each row."""
        return self._outputs(X) * self._spread + self._centre

    def _data(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Any, Vector]:
        # A row that is repeated and one with a weight are the same, to the last bit.
        X, y, weights = super()._data(X, y, sample_weight, reset=reset)
        if self.early_stopping or is_dask_array(X):
            return X, y, weights
        merged = check.merged_rows(X, y, weights)
        plain = len(merged[1]) == len(y) and (weights == weights[0]).all()
        return (X, y, weights) if plain else merged

    def _learn_targets(self, y: NDArray[Any], weights: Vector) -> None:
        shares = check.unless_equal(weights)
        self._centre = float(np.average(y, weights=shares))
        self._spread = float(np.average((y - self._centre) ** 2, weights=shares)) ** 0.5 or 1.0
        if self.loss != "squared":
            # A few wild targets must not set the unit in which a residual counts as large.
            parts = np.ones(len(y)) if shares is None else shares
            centre = _weighted_median(y, parts)
            typical = NORMAL * _weighted_median(np.abs(y - centre), parts)
            self._centre, self._spread = centre, typical or self._spread

    def _targets(self, y: NDArray[Any], weights: Vector) -> tuple[NDArray[Any], Vector | None]:
        return (y - self._centre) / self._spread, check.unless_equal(weights)

    def _row_scores(self, outputs: Vector, target: NDArray[Any]) -> Any:
        return -((outputs - target) ** 2)


@dataclass(eq=False, repr=False)
class ReLUNetClassifier(ProvedClassifier, _ReLUNet):
    """Classification by a ReLU network whose convergence is proved.

    PARAMETERS
    classes_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import ReLUNetClassifier
    >>> X = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]])
    >>> y = np.array(["even", "even", "odd", "odd"])
    >>> ReLUNetClassifier(width=8, random_state=0).fit(X, y).predict(X)
    array(['even', 'even', 'odd', 'odd'], dtype='<U4')
    """

    _words: ClassVar = (
        '"logistic"; with three or more classes the cross-entropy.',
        '    class_weight : dict, "balanced" or None\n        Factors of the sample weights.\n',
    )
    _rules: ClassVar = {**_ReLUNet._rules, "loss": ("logistic",)}

    _: KW_ONLY
    loss: str = "logistic"
    ridge: float = 1e-2  # chosen on wrong and right labels by `benchmarks.fields networks`
    class_weight: dict[Any, float] | str | None = None

    def decision_function(self, X: Any) -> Vector:
        """Return the network's outputs: log-odds for two classes, else one column per class."""
        return self._outputs(X)

    def predict_proba(self, X: Any) -> Vector:
        """Return the probability of each class."""
        outputs = self._outputs(X)
        if outputs.ndim == 1:
            upper = expit(outputs)
            return np.column_stack([1.0 - upper, upper])
        return np.asarray(softmax(outputs, axis=1))

    def _learn_targets(self, y: NDArray[Any], weights: Vector) -> None:
        self.classes_ = check.known_classes(y)

    def _targets(self, y: NDArray[Any], weights: Vector) -> tuple[NDArray[Any], Vector | None]:
        labels, shares = self._class_numbers(y, weights)
        return labels, check.unless_equal(shares)

    def _row_scores(self, outputs: Vector, target: NDArray[Any]) -> Any:
        return check.winners(outputs) == target


Network = models.ReLUNetwork | ChunkedNetwork

#: The validation score of parameters, with which a fit stops early.
Score = Callable[[Vector], float]


class Batches(Derived):
    """A network's objective with noisy gradients from random batches."""

    inner: models.ReLUNetwork
    knows_kinks = True

    def __init__(self, model: models.ReLUNetwork, batch_size: int) -> None:
        super().__init__(model)
        self.dim, self.batch_size = model.dim, batch_size

    def value(self, x: Vector) -> float:
        return self.inner.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self.inner.gradient(y)

    def sample(self, x: Vector, rng: np.random.Generator) -> Vector:
        samples = self.inner.setting.X.shape[0]
        rows = rng.choice(samples, min(self.batch_size, samples), replace=False)
        return self.inner.sample_gradient(x, rows)


class _Watch:
    """A callback that remembers the best validation score and stops when it no longer rises."""

    def __init__(self, score: Score, patience: int, x0: Vector) -> None:
        self.score, self.patience = score, patience
        self.best, self.best_score, self.since = x0.copy(), score(x0), 0

    def __call__(self, x: Vector) -> bool:
        here = self.score(x)
        self.since += 1
        if here > self.best_score:
            self.best, self.best_score, self.since = x.copy(), here, 0
        return self.since >= self.patience
