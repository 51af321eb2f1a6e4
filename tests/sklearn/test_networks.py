"""ReLU network estimators: the scikit-learn contract, certificates, stopping, batches."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_moons
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from goldstein.errors import InputError
from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor

# A check compares fits of equal objectives that round differently: their ways part, by more than it
# allows (1e-7), after 70 to 100 calls.
SMALL = {"width": 4, "max_calls": 60, "certificate": "goldstein"}


@parametrize_with_checks([ReLUNetRegressor(**SMALL), ReLUNetClassifier(**SMALL)])
def test_scikit_learn_contract(estimator: Any, check: Any) -> None:
    if getattr(check, "func", check).__name__ == "check_array_api_input":
        return  # scikit-learn runs it only where SciPy's array-API mode is switched on
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(estimator)


@pytest.fixture(scope="module")
def wave() -> tuple[np.ndarray, np.ndarray]:
    X = np.linspace(-2, 2, 60)[:, None]
    return X, 100.0 + 10.0 * np.abs(np.sin(2 * X)).ravel()


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regression_is_certified_against_the_data(wave: Any, layers: int, loss: str) -> None:
    X, y = wave
    net = ReLUNetRegressor(8, layers=layers, loss=loss, ridge=1e-4, random_state=0).fit(X, y)
    assert net.goldstein_stationarity_[0] <= 1e-2
    assert net.certificate_.verify(net.objective(X, y)).ok
    assert net.objective(X, y).value(net.parameters_) == pytest.approx(net.objective_)
    assert net.score(X, y) > 0.3


def test_near_certificate_where_obtained_is_the_one_shown(wave: Any) -> None:
    X, y = wave
    net = ReLUNetRegressor(6, random_state=1).fit(X, y)
    if net.near_stationarity_ is None:
        assert net.certificate_.label == "conditional"
    else:
        assert net.certificate_.verify(net.objective(X, y)).label == "certified"


def test_two_moons_and_three_classes() -> None:
    X, y = make_moons(150, noise=0.1, random_state=0)
    net = ReLUNetClassifier(8, ridge=1e-4, n_init=2, random_state=0).fit(X, y)
    assert net.score(X, y) > 0.95
    assert net.predict_proba(X).sum(axis=1) == pytest.approx(1.0)
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    net = ReLUNetClassifier(6, certificate="goldstein", random_state=0).fit(X, y)
    assert net.score(X, y) > 0.95
    assert net.predict_proba(X).shape == (150, 3)
    assert net.certificate_.verify(net.objective(X, y)).ok


@pytest.mark.parametrize("solver", ["o2nc", "psingd"])
def test_mini_batches_train_and_say_what_was_reached(solver: str) -> None:
    X, y = make_moons(200, noise=0.1, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        net = ReLUNetClassifier(
            8, solver=solver, batch_size=32, max_calls=3000, certificate="goldstein", random_state=0
        ).fit(X, y)
    start = net.objective(X, y).value(net.objective(X, y).start(0))
    assert net.objective_ < start
    assert net.certificate_.verify(net.objective(X, y)).ok


def test_batch_gradients_are_unbiased() -> None:
    X, y = make_moons(12, noise=0.1, random_state=0)
    net = ReLUNetClassifier(3, certificate="goldstein", random_state=0).fit(X, y)
    model = net.objective(X, y)
    theta = model.start(1)
    parts = [model.sample_gradient(theta, [i]) for i in range(12)]
    assert np.mean(parts, axis=0) == pytest.approx(model.gradient(theta))


def test_early_stopping_stops_and_does_not_claim_more() -> None:
    X, y = make_moons(200, noise=0.3, random_state=0)
    net = ReLUNetClassifier(
        16, early_stopping=True, n_iter_no_change=3, random_state=0, ridge=0.0
    ).fit(X, y)
    full = ReLUNetClassifier(16, random_state=0, certificate="goldstein").fit(X, y)
    assert net.n_iter_ < full.n_iter_
    assert net.goldstein_stationarity_[0] == pytest.approx(net.certificate_.eps, rel=1e3)
    assert net.score(X, y) > 0.8


def test_bad_parameters_are_refused_by_name(wave: Any) -> None:
    for parameters in ({"layers": 3}, {"width": 0}, {"solver": "adam"}, {"loss": "logistic"}):
        with pytest.raises(InputError, match=next(iter(parameters))):
            ReLUNetRegressor(**parameters).fit(*wave)
