"""RhoMarginSVC(multi_class="native"): the objective, certificates, agreement, robustness."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import dask.array as da
import numpy as np
import pytest
from scipy import sparse
from sklearn.datasets import load_digits, load_iris, load_wine, make_blobs
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldstein.errors import InputError
from goldstein.sklearn import RhoMarginSVC


@parametrize_with_checks([RhoMarginSVC(multi_class="native", certificate="goldstein")])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    name = getattr(check, "func", check).__name__
    if name == "check_array_api_input":
        return  # scikit-learn runs it only where SciPy's array-API mode is switched on
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


def native(**options: Any) -> RhoMarginSVC:
    return RhoMarginSVC(
        **{"multi_class": "native", "certificate": "goldstein", "random_state": 0} | options
    )


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), np.array(["a", "b", "c"])[y]


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_objective_and_outliers_are_the_documented_ones(iris: Any, fit_intercept: bool) -> None:
    X, y = iris
    C, rho, shift = 2.0, 0.5, -0.1
    machine = native(C=C, rho=rho, shift=shift, fit_intercept=fit_intercept).fit(X, y)
    scores = X @ machine.coef_.T + machine.intercept_
    own = np.searchsorted(machine.classes_, y)
    rest = scores.copy()
    rest[np.arange(150), own] = -np.inf
    u = scores[np.arange(150), own] - rest.max(axis=1) - shift
    expected = 0.5 * (machine.coef_**2).sum() + C * np.clip(1 - u / rho, 0, 1).sum()
    assert machine.objective_ == pytest.approx(expected)
    assert machine.outliers_.tolist() == (u < 0).tolist()
    assert machine.coef_.shape == (3, 4)
    assert machine.intercept_.shape == (3,)
    assert (machine.predict(X) == machine.classes_[scores.argmax(axis=1)]).all()


def test_near_certificate_is_certified_and_belongs_to_the_data(iris: Any) -> None:
    X, y = iris
    machine = native(certificate="near").fit(X, y)
    assert machine.near_stationarity_ is not None
    eps, delta = machine.near_stationarity_
    assert max(eps, delta) <= 1e-3
    objective = machine.objective(X, y)
    assert machine.certificate_.verify(objective).label == "certified"
    assert not machine.certificate_.verify(machine.objective(X[::-1], y)).ok
    found = np.column_stack([machine.coef_, machine.intercept_]).ravel()
    np.testing.assert_array_equal(machine.certificate_.x, found)


def test_two_classes_are_one_machine_whatever_the_name() -> None:
    X, y = make_blobs(80, 3, centers=2, cluster_std=4.0, random_state=0)
    one, other = native().fit(X, y), native(multi_class="ovr").fit(X, y)
    np.testing.assert_array_equal(one.coef_, other.coef_)
    assert one.coef_.shape == (1, 3)


def test_fit_is_a_local_minimum_and_no_worse_than_the_best_start(iris: Any) -> None:
    X, y = iris
    machine = native().fit(X, y)
    objective = machine.objective(X, y)
    theta = machine.certificate_.x
    rng = np.random.default_rng(0)
    for _ in range(200):
        step = rng.standard_normal(theta.size)
        size = rng.choice([1e-3, 1e-2, 1e-1])
        there = objective.value(theta + size * step / np.linalg.norm(step))
        assert there >= objective.value(theta) - 1e-3 * size - 1e-6
    ovr = RhoMarginSVC(multi_class="ovr", certificate="goldstein").fit(X, y)
    start = np.column_stack([ovr.coef_, ovr.intercept_]).ravel()
    assert objective.value(theta) <= objective.value(start)
    more = native(n_init=4).fit(X, y)
    assert more.objective_ <= machine.objective_ * (1 + 1e-9)


@pytest.mark.parametrize(("load", "least"), [(load_iris, 0.9), (load_wine, 0.95)])
def test_real_data_at_least_as_accurate_as_one_against_the_rest(load: Any, least: float) -> None:
    X, y = load(return_X_y=True)
    scores = []
    for seed in range(3):
        parts = train_test_split(X, y, random_state=seed, stratify=y, test_size=0.4)
        scale = StandardScaler().fit(parts[0])
        train, test = scale.transform(parts[0]), scale.transform(parts[1])
        both = (native(C=1.0), native(C=1.0, multi_class="ovr"))
        scores.append([m.fit(train, parts[2]).score(test, parts[3]) for m in both])
    ours, rest = np.mean(scores, axis=0)
    assert ours >= least
    assert ours >= rest - 0.02


@pytest.mark.filterwarnings("ignore:the spreads of the features")  # pixels at the rim are dark
def test_ten_classes_and_650_variables_are_certified() -> None:
    X, y = load_digits(return_X_y=True)
    X, y = X[:400] / 16.0, y[:400]
    machine = native(certificate="near", eps=1e-2, delta=1e-2).fit(X, y)
    # Near or not is a matter of the time that the proof gets; the certificate says which.
    proved = machine.certificate_.meta["near"] == "proved"
    assert (machine.near_stationarity_ is not None) == proved
    assert machine.certificate_.label == ("certified" if proved else "conditional")
    assert machine.goldstein_stationarity_[0] <= 1e-2
    assert machine.certificate_.verify(machine.objective(X, y)).ok
    assert machine.score(X, y) > 0.95


def test_wrong_labels_are_flagged_and_do_not_move_the_borders() -> None:
    X, y = make_blobs(150, 2, centers=[[0, 4], [4, -3], [-4, -3]], random_state=0)
    labels = y.copy()
    labels[:15] = (y[:15] + 1) % 3
    machine = native(C=1.0).fit(X, labels)
    assert machine.score(X, y) > 0.97
    assert machine.outliers_[:15].all()
    assert machine.outliers_.sum() < 20


def test_weights_are_repetitions_and_classes_factors(iris: Any) -> None:
    X, y = iris
    w = np.random.default_rng(0).integers(0, 3, 150)
    rows = np.repeat(np.arange(150), w)
    weighted, repeated = native().fit(X, y, w), native().fit(X[rows], y[rows])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-12)
    assert weighted.certificate_.verify(weighted.objective(X, y, w)).ok
    assert weighted.certificate_.verify(repeated.objective(X[rows], y[rows])).ok
    factors = {"a": 1.0, "b": 3.0, "c": 0.5}
    by_class = native(class_weight=factors).fit(X, y)
    by_row = native().fit(X, y, [factors[c] for c in y])
    assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-6)


def test_sparse_rows_warm_start_and_pickle(iris: Any) -> None:
    X, y = iris
    X = np.where(np.abs(X) < 0.3, 0.0, X)
    dense, thin = native().fit(X, y), native().fit(sparse.csr_array(X), y)
    assert thin.objective_ == pytest.approx(dense.objective_, rel=1e-5)
    again = pickle.loads(pickle.dumps(dense)).set_params(warm_start=True)
    assert again.fit(X, y).n_iter_ < dense.n_iter_
    assert again.objective_ <= dense.objective_ * (1 + 1e-3)


def test_refusals(iris: Any) -> None:
    X, y = iris
    with pytest.raises(InputError, match="multi_class"):
        native(multi_class="crammer_singer").fit(X, y)
    with pytest.raises(InputError, match="in memory"):
        native().fit(da.from_array(X, chunks=(50, 4)), y)
    machine = native().fit(X[:100], y[:100])
    with pytest.raises(InputError, match="'c'"):
        machine.objective(X, y)
    assert machine.classes_.tolist() == ["a", "b"]
