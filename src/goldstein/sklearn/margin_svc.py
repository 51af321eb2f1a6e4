"""A support vector machine with the rho-margin (ramp) loss, and a proof of its stationarity."""

import math
import os
import warnings
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.fitting.fit import Fit, Options, whole_fit
from goldstein.fitting.margin_fit import fit_margin
from goldstein.fitting.native_fit import fit_native
from goldstein.models.margin_svm import MarginSVM, MulticlassMargin, labelled_rows
from goldstein.numerics.exact import exact_sum
from goldstein.sklearn import estimator as check
from goldstein.sklearn.chunked import ChunkedRows, is_dask_array
from goldstein.sklearn.estimator import ProvedClassifier, ProvedEstimator

#: Weight of the losses unless given, where the ramp ends at 1 and has slope 1, in units of the
#: spread of the rows: chosen by benchmarks/studies/defaults.py.
SHARE_FOR_TWO, SHARE_FOR_MORE = 2.0, 8.0
C_RANGE = 1e-100, 1e100

#: Rows, the numbers of their classes, and weights.
Rows = tuple[Any, NDArray[np.intp], Vector]

#: Rows times weights up to which all classes are fitted at once unless told otherwise.
NATIVE_SIZE = 500_000


@dataclass(eq=False, repr=False)
class RhoMarginSVC(ProvedClassifier, ProvedEstimator):
    """Linear classifier that minimises |w|^2 / 2 + C sum_i phi_rho(y_i (w.x_i + b) - shift).

    The loss phi_rho(u) = min(1, max(0, 1 - u / rho)) does not grow beyond 1: a mislabelled or
    far-out row costs a constant and pulls no more. The price is that the problem is not convex;
    what is proved about the answer is how stationary it is.

    Parameters
    ----------
    rho : float, optional
        Width of the ramp. Without rho and shift the ramp goes from -1 to 1: the ramp loss with
        truncation -1.
    C : float, optional
        Weight of the losses. Without it C is 2 rho (rho + shift) / V for two classes and four times
        that for more, where V is the total variance of the features (mean |x_i|^2 without an
        intercept): the fit does not depend on the unit of the features then.
    shift : float, optional
        Where the ramp begins: 0 if only rho is given. If only shift is given the ramp ends at 1.
        The ramp loss min(1 - s, max(0, 1 - u)) of the literature is (1 - s) phi_{1-s}(u - s): see
        `from_ramp`.
    eps, delta : float
        Stationarity to reach, for the mean objective (the one above divided by C times the sum of
        the sample weights) in the variables (w, b).
    fit_intercept : bool
        Whether there is an intercept; it is not penalised.
    class_weight : dict, "balanced" or None
    multi_class : {"auto", "native", "ovr"}
        With three or more classes, "native" is one problem with a weight vector per class,
        |W|^2 / 2 + C sum_i phi_rho(u_i - shift), where u_i is the score of the own class minus the
        best of the others; "ovr" is one machine per class against the rest, which is faster and
        less accurate. "auto" is native for data in memory with at most half a million numbers, rows
        times weights. With two classes all are the same machine.
    warm_start : bool
        Start the next fit at the present coefficients.
    n_init : int
        Searches per machine, the first from the hinge solution and the others from solutions on
        random parts of the rows; the best one is kept.
    certificate : {"near", "goldstein"}
        Whether to look for a near certificate, the stronger kind, after the Goldstein one.
    max_calls : int, optional
        Limit of oracle calls of the guaranteed search that takes over when the fast one fails.
    max_time : float, optional
        Limit of a machine's fit in seconds, for the guaranteed search and the near proof. Without
        it the proof may take as long as the search, and two seconds.
    checkpoint : path, optional
        A folder in which finished parts of the fit are kept. A fit that was killed and is begun
        again with the same data, parameters and `checkpoint` ends as if nothing had been; what was
        done is not done again, and a larger `max_calls` or `max_time` goes on from there. A folder
        of another fit is refused.
    n_jobs : int, optional
        Machines fitted in parallel when there is one per class.
    random_state : int, RandomState or None

    Attributes
    ----------
    classes_ : ndarray
    coef_, intercept_ : ndarray
        One row for two classes, else one row per class.
    rho_, C_, shift_ : float
        The loss that was used.
    minimum_ : MinimumCertificate or None
        How much lower the mean objective can be near the fit, or anywhere; of several machines the
        largest gap. None where no minimum was proved, and for large data.
    gap_ : float or None
        `minimum_.gap`.
    certificate_ : NearCertificate or GoldsteinCertificate
        The weakest over the machines, near where obtained; `certificate_.meta["near"]` says
        "proved", or why not.
    certificates_ : list
        One per machine; a native fit is one machine.
    near_stationarity_ : (float, float) or None
        (eps, delta) that hold for every machine; None when a machine has no near certificate.
    goldstein_stationarity_ : (float, float)
    objective_ : float
        The objective above, summed over the machines.
    n_iter_ : int
        Iterations of the longest search.
    outliers_ : ndarray of bool
        Training rows on the flat part of the loss of their own class's machine.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.sklearn import RhoMarginSVC
    >>> X = np.array([[-2.0], [-1.0], [1.0], [2.0], [9.0]])
    >>> y = np.array([0, 0, 1, 1, 0])
    >>> machine = RhoMarginSVC(C=10.0).fit(X, y)
    >>> machine.predict(X)
    array([0, 0, 1, 1, 1])
    >>> machine.outliers_
    array([False, False, False, False,  True])
    >>> machine.certificate_.verify(machine.objective(X, y)).ok
    True
    """

    _rules: ClassVar = {
        **ProvedEstimator._rules, "rho": check.positive, "C": check.positive, "n_init": 1,
        "shift": check.finite, "checkpoint": check.folder_name,
        "multi_class": ("auto", "native", "ovr"),
    }  # fmt: skip

    rho: float | None = None
    C: float | None = None
    _: KW_ONLY
    shift: float | None = None
    fit_intercept: bool = True
    class_weight: dict[Any, float] | str | None = None
    multi_class: str = "auto"
    warm_start: bool = False
    n_init: int = 1
    checkpoint: str | os.PathLike[str] | None = None
    n_jobs: int | None = None

    @classmethod
    def from_ramp(cls, truncation: float, C: float | None = None, **parameters: Any) -> Self:
        """Return the machine of the ramp loss: |w|^2 / 2 + C sum_i min(1 - s, max(0, 1 - u_i)).

        With s = `truncation` < 1 this is exactly rho = 1 - s, shift = s and weight C (1 - s); the
        weight is the default one unless C is given.

        Examples
        --------
        >>> RhoMarginSVC.from_ramp(-1.0, C=3.0)
        RhoMarginSVC(C=6.0, rho=2.0, shift=-1.0)
        """
        if not check.finite("truncation", truncation) < 1:
            raise InputError(f"truncation must be less than 1, got {truncation!r}.")
        width = 1.0 - truncation
        return cls(rho=width, C=None if C is None else C * width, shift=truncation, **parameters)

    def fit(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the machine.

        Parameters
        ----------
        X : array-like, sparse matrix or Dask array, shape (n, d)
            A Dask array is never in memory as a whole; what is proved is the same.
        y : array-like, shape (n,)
        sample_weight : array-like, shape (n,), optional
            Nonnegative; a row of weight 0 is as good as absent.

        Returns
        -------
        self
        """
        self._check_parameters()
        X, y, weights = self._checked_rows(X, y, sample_weight)
        check_classification_targets(y)
        self.classes_ = check.known_classes(y[weights > 0])
        rows, labels, weights = self._labelled(X, y, weights)
        self._native = self._choose_native(rows)
        seed, starts = check.seed_of_fit(self), self._starts()
        data = {"X": rows, "y": labels, "weights": weights, "starts": starts}
        if self._native:
            rows, labels, weights = check.merged_rows(rows, labels, weights)
        self._choose_loss(rows, weights)
        with check.kept_fit(self, seed, **data) as kept_parts:
            if self._native:
                known = [start for start in starts if start is not None]
                joined = np.concatenate(known) if known else None
                options = self._options(seed, start=joined, n_init=self.n_init, kept=kept_parts)
                model = self._native_model(rows, labels, weights)
                fits = [whole_fit(options, model, lambda: fit_native(model, options))]
            else:
                fits = Parallel(n_jobs=self.n_jobs)(
                    delayed(self._fit_machine)(
                        rows, signs, weights,
                        self._options(seed, start=start, n_init=self.n_init,
                                      kept=kept_parts.under(f"machine-{k}")),
                    )
                    for k, (signs, start) in enumerate(zip(self._signs(labels), starts))
                )  # fmt: skip
        self._store(list(fits), X, y, float(weights.sum()))
        check.warn_if_uneven(X)
        return self

    def objective(
        self, X: Any, y: Any, sample_weight: ArrayLike | None = None, *, machine: int | None = None
    ) -> Any:
        """Return the mean objective that a certificate is about, to verify it against.

        `machine.certificate_.verify(machine.objective(X, y))` re-derives the claim from the data;
        the variables are the coefficients and then the intercept, class by class if native.

        Parameters
        ----------
        X, y, sample_weight
            The training data.
        machine : int, optional
            Which of `certificates_`; by default the one that is `certificate_`.
        """
        check_is_fitted(self)
        if machine is None:
            machine = next(i for i, c in enumerate(self.certificates_) if c is self.certificate_)
        if not 0 <= machine < len(self.certificates_):
            raise InputError(
                f"machine must be one of 0, ..., {len(self.certificates_) - 1}, got {machine!r}."
            )
        X, y, weights = self._checked_rows(X, y, sample_weight, reset=False)
        fitted = check.as_fitted(self)
        check.warn_if_moved(fitted._variables(machine), self.certificates_[machine].x)
        rows, labels, weights = fitted._labelled(X, y, weights)
        if self._native:
            return fitted._native_model(*check.merged_rows(rows, labels, weights))
        return fitted._model(rows, self._signs(labels)[machine], weights)

    def _variables(self, machine: int) -> Vector:
        """Return the coefficients, and intercepts where these are variables, of a machine."""
        every = np.column_stack([self.coef_, self.intercept_]) if self.fit_intercept else self.coef_
        return np.ravel(every if self._native else every[machine])

    def objectives(self, X: Any, y: Any, sample_weight: ArrayLike | None = None) -> list[Any]:
        """Return the objective of every machine. Deprecated: use `objective(..., machine=k)`."""
        warnings.warn(
            "objectives(X, y) is now objective(X, y), the function that certificate_ is about, and "
            "objective(X, y, machine=k) for certificates_[k]; the old name will go.",
            FutureWarning,
            stacklevel=2,
        )
        check_is_fitted(self)
        machines = range(len(self.certificates_))
        return [self.objective(X, y, sample_weight, machine=k) for k in machines]

    def decision_function(self, X: Any) -> Vector:
        """Return w.x + b, one column per machine (a vector for two classes)."""
        check_is_fitted(self)
        scores: Vector = np.asarray(self._checked_inputs(X) @ self.coef_.T) + self.intercept_
        return scores.ravel() if len(self.classes_) == 2 else scores

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.shift is not None and self.shift >= 1 and self.rho is None:
            raise InputError(
                f"shift = {self.shift!r} leaves no room for a ramp that ends at 1; give rho too."
            )

    def _choose_native(self, X: Any) -> bool:
        if len(self.classes_) == 2 or self.multi_class == "ovr":
            return False
        if self.multi_class == "native":
            _require_memory(X)
            return True
        size = X.shape[0] * len(self.classes_) * (X.shape[1] + bool(self.fit_intercept))
        return size <= NATIVE_SIZE and not is_dask_array(X)

    def _choose_loss(self, X: Any, weights: Vector) -> None:
        """Decide what the parameters leave open."""
        if self.rho is None:
            self.shift_ = -1.0 if self.shift is None else float(self.shift)
            self.rho_ = 1.0 - self.shift_
        else:
            self.shift_ = 0.0 if self.shift is None else float(self.shift)
            self.rho_ = float(self.rho)
        if self.C is not None:
            self.C_ = float(self.C)
            return
        share = SHARE_FOR_TWO if len(self.classes_) == 2 else SHARE_FOR_MORE
        # In units of the margin, where the loss ends: the fit is that of a margin of 1.
        margin = self.rho_ + self.shift_ if self.rho_ + self.shift_ > 0 else self.rho_
        size = spread(X, weights, centred=bool(self.fit_intercept))
        self.C_ = float(np.clip(share * self.rho_ * margin / size, *C_RANGE))

    def _labelled(self, X: Any, y: NDArray[Any], weights: Vector) -> Rows:
        """Drop rows without weight; return rows, class numbers, weights with class weights."""
        X, y, weights = check.drop_weightless(X, y, weights)
        labels, shares = self._class_numbers(y, weights)
        check.unless_equal(shares)  # refuses weights that are all zero
        return X, labels, shares

    def _signs(self, labels: NDArray[np.intp]) -> list[Vector]:
        machines = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        return [np.where(labels == k, 1.0, -1.0) for k in machines]

    def _starts(self) -> list[Vector | None]:
        machines = 1 if len(self.classes_) == 2 else len(self.classes_)
        old = getattr(self, "coef_", None)
        if not self.warm_start or old is None or old.shape != (machines, self.n_features_in_):
            return [None] * machines
        if self.fit_intercept:
            return list(np.column_stack([old, self.intercept_]))
        return list(old)

    def _model(self, X: Any, signs: Vector, weights: Vector) -> MarginSVM:
        if is_dask_array(X):
            Z: Any = ChunkedRows(X, signs, self.fit_intercept)
        else:
            Z = labelled_rows(X, signs, intercept=self.fit_intercept)
        return MarginSVM(Z, **self._constants(weights))

    def _native_model(self, X: Any, labels: NDArray[np.intp], weights: Vector) -> MulticlassMargin:
        _require_memory(X)
        return MulticlassMargin(X, labels, len(self.classes_), **self._constants(weights))

    def _constants(self, weights: Vector) -> dict[str, Any]:
        """Return what the mean objective is made of beside the rows, without rounding."""
        total = exact_sum(weights)
        lam = 1 / (Fraction(self.C_) * total)
        return {
            "rho": self.rho_, "lam": lam, "weights": weights, "shift": self.shift_,
            "intercept": self.fit_intercept, "total": total,
        }  # fmt: skip

    def _fit_machine(self, X: Any, signs: Vector, weights: Vector, options: Options) -> Fit:
        model = self._model(X, signs, weights)
        return whole_fit(options, model, lambda: fit_margin(model, options))

    def _store(self, fits: list[Fit], X: Any, y: NDArray[Any], total: float) -> None:
        d = self.n_features_in_
        V = np.concatenate([fit.x for fit in fits]).reshape(-1, d + bool(self.fit_intercept))
        self.coef_ = V[:, :d].copy()
        self.intercept_ = V[:, d].copy() if self.fit_intercept else np.zeros(len(V))
        self.objective_ = self.C_ * total * sum(fit.value for fit in fits)
        self.n_iter_ = max(fit.iterations for fit in fits)
        self._remember_claims(fits)
        self.outliers_ = self._own_margin(X, y) < self.shift_
        check.warn_unless_reached(self, [fit.goldstein for fit in fits])

    def _own_margin(self, X: Any, y: NDArray[Any]) -> Vector:
        """The margin of each row for its class; infinite for an unknown class."""
        scores = np.atleast_2d(np.asarray(X @ self.coef_.T) + self.intercept_)
        if len(self.classes_) == 2:
            return np.asarray(np.where(y == self.classes_[1], scores[:, 0], -scores[:, 0]))
        margin = np.full(len(y), np.inf)
        for k, c in enumerate(self.classes_):
            own = scores[y == c]
            margin[y == c] = own[:, k]
            if self._native:
                margin[y == c] -= np.delete(own, k, axis=1).max(axis=1, initial=-np.inf)
        return margin


def _require_memory(X: Any) -> None:
    if is_dask_array(X):
        raise InputError(
            "multi_class='native' needs the rows in memory; use multi_class='ovr' for a Dask array."
        )


#: Rows that are centred at a time.
BLOCK = 4096


@np.errstate(over="ignore", invalid="ignore")
def spread(X: Any, weights: Vector, *, centred: bool) -> float:
    """Return the weighted mean of |x_i - c|^2, where c is the mean row, or 0 if not centred.

    1 where that is 0 or not a number float64 can hold.

    Examples
    --------
    >>> spread(np.array([[1.0, 0.0], [3.0, 0.0]]), np.ones(2), centred=True)
    1.0
    """
    shares = weights / weights.sum()
    centre = np.asarray(_computed(X.T @ shares)).ravel() if centred else np.zeros(X.shape[1])
    if sparse.issparse(X):
        total = float(X.power(2).T.dot(shares).sum() - centre @ centre)
    elif is_dask_array(X):
        total = float(_computed((((X - centre) ** 2).sum(axis=1) * shares).sum()))
    else:
        total = 0.0
        for start in range(0, X.shape[0], BLOCK):
            part = X[start : start + BLOCK] - centre
            total += float(shares[start : start + BLOCK] @ np.einsum("ij,ij->i", part, part))
    return total if 0.0 < total < math.inf else 1.0


def _computed(answer: Any) -> Any:
    return answer.compute() if is_dask_array(answer) else answer
