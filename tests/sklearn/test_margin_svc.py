"""RhoMarginSVC: the scikit-learn contract, the objective, robustness, honest attributes."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_iris, make_blobs
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldstein.errors import InputError
from goldstein.sklearn import RhoMarginSVC


def array_api_is_not_configured(check: Any) -> bool:
    return getattr(check, "func", check).__name__ == "check_array_api_input"


@parametrize_with_checks([RhoMarginSVC()])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    if array_api_is_not_configured(check):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.fixture(scope="module")
def two_classes() -> tuple[np.ndarray, np.ndarray]:
    X, y = make_blobs(120, 4, centers=2, cluster_std=3.0, random_state=1)
    return StandardScaler().fit_transform(X), y


def test_objective_is_the_documented_one(two_classes: Any) -> None:
    X, y = two_classes
    machine = RhoMarginSVC(rho=0.5, C=2.0, shift=0.1).fit(X, y)
    w, b = machine.coef_[0], machine.intercept_[0]
    u = np.where(y == 1, 1, -1) * (X @ w + b) - 0.1
    expected = 0.5 * w @ w + 2.0 * np.clip(1 - u / 0.5, 0, 1).sum()
    assert machine.objective_ == pytest.approx(expected)
    assert machine.outliers_.tolist() == (u < 0).tolist()


def test_certificate_is_verified_against_the_data_and_refuses_other_data(two_classes: Any) -> None:
    X, y = two_classes
    machine = RhoMarginSVC().fit(X, y)
    assert machine.near_stationarity_ is not None
    eps, delta = machine.near_stationarity_
    assert eps <= 1e-3
    assert delta <= 1e-3
    assert machine.certificate_.verify(machine.objective(X, y)).label == "certified"
    assert not machine.certificate_.verify(machine.objective(X[::-1], y)).ok
    plain = RhoMarginSVC(certificate="goldstein").fit(X, y)
    assert plain.near_stationarity_ is None
    assert plain.goldstein_stationarity_[0] <= 1e-3


def test_rho_is_a_scale_when_there_is_no_shift(two_classes: Any) -> None:
    X, y = two_classes
    one = RhoMarginSVC(rho=1.0, C=3.0, certificate="goldstein").fit(X, y)
    two = RhoMarginSVC(rho=2.0, C=12.0, certificate="goldstein").fit(X, y)
    assert two.coef_ == pytest.approx(2.0 * one.coef_, rel=1e-6)


def test_gross_outliers_do_not_move_the_border() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 2))
    y = (X[:, 0] > 0).astype(int)
    spoiled, labels = X.copy(), y.copy()
    spoiled[:20] = [30.0, 0.0]
    labels[:20] = 0
    machine = RhoMarginSVC(C=10.0).fit(spoiled, labels)
    assert machine.score(X, y) > 0.97
    assert machine.outliers_[:20].all()


def test_one_class_at_small_C_is_the_minimum_and_balanced_weights_avoid_it() -> None:
    """A weak fit to spoiled labels predicts one class because that is cheapest, not by a bad start.

    Starts at class-balanced solutions, which separate the blobs, must not end lower.
    """
    rng = np.random.default_rng(2)
    X, y = make_blobs([80, 120], centers=[[-1.0, 0.0], [1.0, 0.0]], random_state=2)
    spoiled = np.where(rng.random(len(y)) < 0.35, 1 - y, y)
    plain = RhoMarginSVC.from_ramp(-1.0, C=0.001, random_state=0).fit(X, spoiled)
    assert len(np.unique(plain.predict(X))) == 1
    for C in (0.001, 1.0):
        balanced = RhoMarginSVC.from_ramp(-1.0, C=C, class_weight="balanced", random_state=0)
        balanced.fit(X, spoiled)
        assert balanced.score(X, y) > 0.75
        balanced.set_params(**plain.get_params() | {"warm_start": True}).fit(X, spoiled)
        assert plain.objective_ <= balanced.objective_ * (1 + 1e-3)


@pytest.mark.parametrize("options", [{}, {"rho": 1.0, "C": 1.0}, {"C": 0.5}], ids=str)
@pytest.mark.parametrize("most", [3, 4])
@pytest.mark.parametrize("certificate", ["near", "goldstein"])
def test_weights_and_repetition_agree(
    two_classes: Any, options: dict[str, float], most: int, certificate: str
) -> None:
    X, y = two_classes
    weights = np.random.default_rng(0).integers(0, most, len(y))
    options = {"certificate": certificate} | options
    weighted = RhoMarginSVC(**options).fit(X, y, sample_weight=weights)
    repeated = RhoMarginSVC(**options).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.coef_ == pytest.approx(repeated.coef_, abs=1e-7)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_class_weight_is_a_sample_weight(two_classes: Any) -> None:
    X, y = two_classes
    by_class = RhoMarginSVC(class_weight={0: 3.0, 1: 1.0}, certificate="goldstein").fit(X, y)
    by_row = RhoMarginSVC(certificate="goldstein").fit(X, y, np.where(y == 0, 3.0, 1.0))
    assert by_class.coef_ == pytest.approx(by_row.coef_)


def test_sparse_and_dense_agree(two_classes: Any) -> None:
    X, y = two_classes
    X = np.where(np.abs(X) < 0.5, 0.0, X)
    dense = RhoMarginSVC(certificate="goldstein").fit(X, y)
    thin = RhoMarginSVC(certificate="goldstein").fit(sparse.csr_array(X), y)
    assert thin.coef_ == pytest.approx(dense.coef_, abs=1e-7)
    assert thin.predict(sparse.csr_array(X)).tolist() == dense.predict(X).tolist()


def test_more_variables_than_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 60))
    y = (X[:, 0] > 0).astype(int)
    machine = RhoMarginSVC().fit(X, y)
    assert machine.score(X, y) == 1.0
    assert machine.goldstein_stationarity_[0] <= 1e-3


def test_three_classes_one_against_the_rest() -> None:
    X, y = load_iris(return_X_y=True)
    machine = make_pipeline(StandardScaler(), RhoMarginSVC(C=10.0, multi_class="ovr")).fit(X, y)
    assert machine.score(X, y) > 0.8
    inner = machine[-1]
    assert inner.coef_.shape == (3, 4)
    assert len(inner.certificates_) == 3
    assert machine.decision_function(X).shape == (150, 3)
    for k, certificate in enumerate(inner.certificates_):
        assert certificate.verify(inner.objective(machine[0].transform(X), y, machine=k)).ok


def test_warm_start_begins_where_the_last_fit_ended(two_classes: Any) -> None:
    X, y = two_classes
    machine = RhoMarginSVC(warm_start=True, certificate="goldstein").fit(X, y)
    first, steps = machine.coef_.copy(), machine.n_iter_
    machine.fit(X, y)
    assert machine.n_iter_ < steps
    assert machine.coef_ == pytest.approx(first, abs=1e-6)


def test_more_starts_never_end_higher(two_classes: Any) -> None:
    X, y = two_classes
    y = np.where(np.random.default_rng(3).random(len(y)) < 0.2, 1 - y, y)
    one = RhoMarginSVC(C=10.0, certificate="goldstein", random_state=0).fit(X, y)
    many = RhoMarginSVC(C=10.0, certificate="goldstein", random_state=0, n_init=8).fit(X, y)
    assert many.objective_ <= one.objective_ + 1e-9


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")
def test_missed_target_warns_with_numbers_and_advice(two_classes: Any) -> None:
    X, y = two_classes
    with pytest.warns(ConvergenceWarning, match=r"reached eps = .* asked for .*eps = 1e-30; raise"):
        machine = RhoMarginSVC(eps=1e-30, max_calls=50, certificate="goldstein").fit(X, y)
    assert machine.goldstein_stationarity_[0] > 1e-30


def test_works_in_a_grid_search_with_frames_and_pickle(two_classes: Any) -> None:
    X, y = two_classes
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"])
    grid = {"C": [0.1, 1.0]}
    search = GridSearchCV(RhoMarginSVC(certificate="goldstein"), grid, cv=3)
    search.fit(frame, y, sample_weight=np.ones(len(y)))
    best = search.best_estimator_
    assert best.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    again = pickle.loads(pickle.dumps(best))
    assert again.predict(frame).tolist() == best.predict(frame).tolist()
    assert clone(best).get_params() == best.get_params()


@pytest.mark.parametrize(
    ("parameters", "word"),
    [({"rho": 0}, "rho"), ({"C": -1}, "C"), ({"n_init": 0}, "n_init"), ({"eps": "x"}, "eps"),
     ({"certificate": "best"}, "certificate")],
)  # fmt: skip
def test_bad_parameters_are_refused_by_name(parameters: Any, word: str, two_classes: Any) -> None:
    with pytest.raises(InputError, match=word):
        RhoMarginSVC(**parameters).fit(*two_classes)


def test_negative_weights_are_refused(two_classes: Any) -> None:
    X, y = two_classes
    with pytest.raises(InputError, match="sample_weight"):
        RhoMarginSVC().fit(X, y, sample_weight=-np.ones(len(y)))
