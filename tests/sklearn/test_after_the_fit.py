"""What users do to an estimator after `fit`: the certificate stays that of the fit, and says so."""

from __future__ import annotations

import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_diabetes, load_iris
from sklearn.preprocessing import StandardScaler

from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor, RhoMarginSVC

IRIS = load_iris(return_X_y=True)
DIABETES = load_diabetes(return_X_y=True)
NET: dict[str, Any] = {"width": 3, "certificate": "goldstein", "max_calls": 600, "random_state": 0}
KINDS: dict[str, tuple[Any, Any]] = {
    "two classes": (RhoMarginSVC(random_state=0), (IRIS[0][50:], IRIS[1][50:])),
    "native": (RhoMarginSVC(random_state=0), IRIS),
    "one against the rest": (RhoMarginSVC(multi_class="ovr", random_state=0), IRIS),
    "classifier": (ReLUNetClassifier(**NET), IRIS),
    "one layer": (ReLUNetRegressor(**NET, layers=1), DIABETES),
    "regressor": (ReLUNetRegressor(**NET), DIABETES),
}


@pytest.fixture(params=KINDS)
def fitted(request: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    machine, (X, y) = KINDS[request.param]
    X = StandardScaler().fit_transform(X)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return type(machine)(**machine.get_params()).fit(X, y), X, y


def holds(machine: Any, X: np.ndarray, y: np.ndarray) -> bool:
    return bool(machine.certificate_.verify(machine.objective(X, y)).ok)


def test_set_params_is_about_the_next_fit(fitted: tuple[Any, np.ndarray, np.ndarray]) -> None:
    machine, X, y = fitted
    later: dict[str, Any] = {
        "C": 7.0, "rho": 0.3, "shift": 0.2, "fit_intercept": False, "multi_class": "ovr",
        "class_weight": {k: 1.0 + k for k in range(3)}, "width": 9, "ridge": 0.5, "layers": 1,
        "loss": "huber", "threshold": 0.1, "early_stopping": True, "eps": 1e-9,
    }  # fmt: skip
    for name, value in later.items():
        if name in machine.get_params():
            machine.set_params(**{name: value})
    assert holds(machine, X, y)
    assert holds(pickle.loads(pickle.dumps(machine)), X, y)


def test_changed_coefficients_are_noticed(fitted: tuple[Any, np.ndarray, np.ndarray]) -> None:
    machine, X, y = fitted
    coefficients = machine.coef_ if hasattr(machine, "coef_") else machine.hidden_coef_
    coefficients *= 1.01
    with pytest.warns(UserWarning, match="changed after the fit: the certificate is about those"):
        machine.objective(X, y)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("kind", [ReLUNetClassifier, ReLUNetRegressor])
def test_early_stopping_certifies_the_rows_it_trained_on(kind: Any, weighted: bool) -> None:
    X, y = IRIS if kind is ReLUNetClassifier else DIABETES
    X, w = StandardScaler().fit_transform(X), None
    if weighted:
        w = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    net = kind(**NET, early_stopping=True, n_iter_no_change=5).fit(X, y, w)
    assert net.certificate_.verify(net.objective(X, y, w)).ok
