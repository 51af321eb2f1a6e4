"""Sample weights and class weights of the networks: repetition, absence, certificates, routing."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
import sklearn
from scipy import sparse
from sklearn.datasets import load_iris, make_moons
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from goldstein.errors import InputError
from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor

OPTIONS: dict[str, Any] = {"width": 4, "random_state": 0, "certificate": "goldstein"}


def problem(kind: str) -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    """An unfitted network, data and integer weights with zeros among them."""
    rng = np.random.default_rng(0)
    if kind == "regression":
        X = rng.standard_normal((70, 3))
        y = 5.0 + 3.0 * np.abs(X[:, 0]) + 0.1 * rng.standard_normal(70)
        net: Any = ReLUNetRegressor(**OPTIONS)
    elif kind == "robust":
        X = rng.standard_normal((70, 3))
        y = 5.0 + 3.0 * np.abs(X[:, 0]) + rng.standard_t(2, 70)
        net = ReLUNetRegressor(loss="huber", layers=1, **OPTIONS)
    elif kind == "two classes":
        X, y = make_moons(70, noise=0.2, random_state=0)
        net = ReLUNetClassifier(**OPTIONS)
    else:
        X, y = load_iris(return_X_y=True)
        X, y = StandardScaler().fit_transform(X)[::2], np.array(["a", "b", "c"])[y[::2]]
        net = ReLUNetClassifier(**OPTIONS)
    return net, X, y, rng.integers(0, 4, len(y))


KINDS = pytest.mark.parametrize("kind", ["regression", "robust", "two classes", "three classes"])


@KINDS
def test_weight_is_repetition_and_zero_is_absence(kind: str) -> None:
    net, X, y, w = problem(kind)
    rows = np.repeat(np.arange(len(y)), w)
    spoiled = X.copy()
    spoiled[w == 0] = 1e6  # what has no weight must not matter, whatever it is
    weighted = pickle.loads(pickle.dumps(net)).fit(spoiled, y, sample_weight=w)
    repeated = net.fit(X[rows], y[rows])
    # Sums in another order differ in their last bits, which grow along the search; what is proved
    # of its end is known up to delta, and f hardly changes faster than by eps there.
    assert weighted.objective_ == pytest.approx(repeated.objective_, abs=0.1 * net.eps * net.delta)
    assert weighted.parameters_ == pytest.approx(repeated.parameters_, abs=0.1 * net.delta)
    assert weighted.certificate_.verify(weighted.objective(spoiled, y, w)).ok
    assert weighted.certificate_.verify(repeated.objective(X[rows], y[rows])).ok
    assert not weighted.certificate_.verify(weighted.objective(X, y)).ok


@KINDS
def test_only_the_proportions_of_the_weights_matter(kind: str) -> None:
    net, X, y, w = problem(kind)
    other = pickle.loads(pickle.dumps(net))
    one, many = net.fit(X, y, w), other.fit(X, y, 1024.0 * w)
    assert one.objective_ == pytest.approx(many.objective_, rel=1e-9)
    equal, none = (pickle.loads(pickle.dumps(net)) for _ in range(2))
    np.testing.assert_array_equal(
        equal.fit(X, y, np.full(len(y), 0.3)).parameters_, none.fit(X, y).parameters_
    )


def test_near_certificate_of_a_weighted_fit_is_certified() -> None:
    net, X, y, w = problem("regression")
    net.set_params(certificate="near").fit(X, y, w)
    assert net.near_stationarity_ is not None
    assert net.certificate_.verify(net.objective(X, y, w)).label == "certified"
    assert not net.certificate_.verify(net.objective(X, y, w[::-1])).ok


@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_class_weight_is_a_sample_weight(kind: str) -> None:
    net, X, y, w = problem(kind)
    classes = np.unique(y)
    factors = dict(zip(classes.tolist(), [3.0, 1.0, 0.5]))
    by_class = pickle.loads(pickle.dumps(net)).set_params(class_weight=factors).fit(X, y, w)
    by_row = pickle.loads(pickle.dumps(net)).fit(X, y, w * [factors[c] for c in y])
    assert by_class.objective_ == pytest.approx(by_row.objective_, rel=1e-6)
    assert by_class.certificate_.verify(by_class.objective(X, y, w)).ok
    balanced = net.set_params(class_weight="balanced").fit(X, y, w)
    totals = [w[y == c].sum() for c in classes]
    loss = balanced.objective(X, y, w).setting.loss
    labels = np.searchsorted(classes, y[w > 0])
    shares = [loss.weights[labels == k].sum() for k in range(len(classes))]
    assert shares == pytest.approx([sum(totals) / len(classes)] * len(classes))


@KINDS
def test_score_takes_weights(kind: str) -> None:
    net, X, y, w = problem(kind)
    net.fit(X, y, w)
    score = r2_score if kind in ("regression", "robust") else accuracy_score
    assert net.score(X, y, w) == pytest.approx(score(y, net.predict(X), sample_weight=w))


def test_weights_are_routed_through_a_search_and_a_pipeline() -> None:
    _, X, y, w = problem("two classes")
    frame = pd.DataFrame(X, columns=["left", "right"])
    with sklearn.config_context(enable_metadata_routing=True):
        net = ReLUNetClassifier(**OPTIONS).set_fit_request(sample_weight=True)
        net.set_score_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        search = GridSearchCV(make_pipeline(scaler, net), cv=3,
                              param_grid={"relunetclassifier__ridge": [1e-2, 1e-1]})  # fmt: skip
        search.fit(frame, y, sample_weight=w)
    best = search.best_estimator_
    scaled = best[0].transform(frame)
    plain = ReLUNetClassifier(**OPTIONS).set_params(ridge=best[-1].ridge)
    expected = plain.fit(scaled, y, w)
    assert best[-1].objective_ == pytest.approx(expected.objective_, rel=1e-9)
    assert best[-1].certificate_.verify(expected.objective(scaled, y, w)).ok


def test_frames_series_lists_and_sparse_rows_are_the_same_data() -> None:
    net, X, y, w = problem("regression")
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    again = pickle.loads(pickle.dumps(net)).fit(frame, pd.Series(y), sample_weight=pd.Series(w))
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(
        again.parameters_, net.fit(X, y, sample_weight=w.tolist()).parameters_
    )
    thin = pickle.loads(pickle.dumps(net)).fit(sparse.csr_array(X), y, w)
    assert thin.objective_ == pytest.approx(net.objective_, rel=1e-6)


@pytest.mark.parametrize("solver", ["o2nc", "psingd"])
def test_mini_batches_are_unbiased_for_the_weighted_objective(solver: str) -> None:
    _, X, y, w = problem("two classes")
    net = ReLUNetClassifier(**OPTIONS, solver=solver, eps=10.0, batch_size=8, max_calls=50)
    net.fit(X, y, w)
    model = net.objective(X, y, w)
    theta = model.start(1)
    parts = [model.sample_gradient(theta, [i]) for i in range((w > 0).sum())]
    assert np.mean(parts, axis=0) == pytest.approx(model.gradient(theta))


def test_early_stopping_with_weights_holds_rows_with_their_weights_aside() -> None:
    _, X, y, w = problem("two classes")
    net = ReLUNetClassifier(**OPTIONS, early_stopping=True, n_iter_no_change=3).fit(X, y, w)
    assert net.score(X, y, w) > 0.7


@KINDS
@pytest.mark.parametrize(
    ("weights", "words"),
    [
        (lambda n: -np.ones(n), "nonnegative"),
        (lambda n: np.zeros(n), "not all zero"),
        (lambda n: np.full(n, np.nan), "NaN"),
        (lambda n: np.full(n, np.inf), "infinity"),
        (lambda n: np.full(n, 1e308), "moderate"),
        (lambda n: np.ones(n - 1), "entries"),
        (lambda n: np.ones((n, 1)), "one number per row"),
        (lambda n: np.array(["x"] * n), "could not convert"),
    ],
)
def test_bad_weights_are_refused(kind: str, weights: Any, words: str) -> None:
    net, X, y, _ = problem(kind)
    with pytest.raises(ValueError, match=words):
        net.fit(X, y, sample_weight=weights(len(y)))


def test_one_class_left_after_dropping_rows_is_refused() -> None:
    net, X, y, _ = problem("three classes")
    with pytest.raises(InputError, match="at least two classes"):
        net.fit(X, y, sample_weight=(y == "b").astype(int))
    net.fit(X, y, sample_weight=(y != "b").astype(int))
    assert net.classes_.tolist() == ["a", "c"]
    with pytest.raises(InputError, match="'b'"):
        net.objective(X, y)


def test_class_weights_that_leave_nothing_are_refused() -> None:
    net, X, y, _ = problem("two classes")
    with pytest.raises(InputError, match="class_weight"):
        net.set_params(class_weight={0: 0.0, 1: 0.0}).fit(X, y)
    with pytest.raises(InputError, match="weights"):
        net.set_params(class_weight={0: -1.0, 1: 1.0}).fit(X, y)
