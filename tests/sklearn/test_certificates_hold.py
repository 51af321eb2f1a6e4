"""What an estimator says it proved is proved: verified again from the data, over sets and seeds."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import (
    load_breast_cancer,
    load_diabetes,
    load_iris,
    load_wine,
    make_classification,
    make_regression,
)
from sklearn.preprocessing import StandardScaler

from goldstein.certificates.near import NearCertificate
from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor, RhoMarginSVC

MARGIN = {
    "two classes": RhoMarginSVC(),
    "paper's loss": RhoMarginSVC(rho=1.0, C=1.0),
    "native": RhoMarginSVC(multi_class="native"),
    "one against the rest": RhoMarginSVC(multi_class="ovr"),
}
NETWORKS = {
    "two layers": {},
    "one layer": {"layers": 1},
    "mini-batches": {"solver": "o2nc", "max_calls": 2000},
}

#: A near proof takes seconds, so it gets one seed.
CLAIMS = [("near", 0), ("goldstein", 0), ("goldstein", 1)]


def classification(name: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Real data with a fifth of the labels exchanged at random, or made ones."""
    if name == "made":
        return make_classification(150, 8, n_informative=5, n_classes=3, random_state=seed)
    X, y = {"cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}[name](
        return_X_y=True
    )
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), len(y) // 5, replace=False)
    y = y.copy()
    y[rows] = rng.permutation(y[rows])
    return StandardScaler().fit_transform(X), y


def assert_claims_hold(machine: Any, objectives: list[Any], certificates: list[Any]) -> None:
    """Every certificate that meets the request is verified; the attributes say what they say."""
    for objective, certificate in zip(objectives, certificates, strict=True):
        near = isinstance(certificate, NearCertificate)
        assert (certificate.meta["near"] == "proved") == near
        if certificate.eps <= machine.eps:
            found = certificate.verify(objective)
            assert found.ok, found
            assert found.eps <= machine.eps
            assert found.delta <= machine.delta
    eps, delta = machine.goldstein_stationarity_
    assert delta <= machine.delta
    if machine.near_stationarity_ is not None:
        assert max(c.eps for c in certificates) == machine.near_stationarity_[0] <= machine.eps
        assert all(isinstance(c, NearCertificate) for c in certificates)
    else:
        assert eps > machine.eps or machine.certificate_.meta["near"] != "proved"


def fitted(estimator: Any, X: np.ndarray, y: np.ndarray) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a target that is missed is said, and allowed
        return estimator.fit(X, y)


@pytest.mark.parametrize(("certificate", "seed"), CLAIMS)
@pytest.mark.parametrize("kind", MARGIN)
def test_margin_machines(kind: str, seed: int, certificate: str) -> None:
    names = ["cancer"] if kind in ("two classes", "paper's loss") else ["iris", "wine", "made"]
    for name in names:
        X, y = classification(name, seed)
        machine = RhoMarginSVC(**MARGIN[kind].get_params())
        machine.set_params(certificate=certificate, random_state=seed)
        fitted(machine, X, y)
        machines = range(len(machine.certificates_))
        objectives = [machine.objective(X, y, machine=k) for k in machines]
        assert_claims_hold(machine, objectives, machine.certificates_)
        # The objective without a number is the one of the certificate without a number.
        if machine.certificate_.eps <= machine.eps:
            assert machine.certificate_.verify(machine.objective(X, y)).ok
        assert machine.goldstein_stationarity_[0] <= machine.eps


@pytest.mark.parametrize(("certificate", "seed"), CLAIMS)
@pytest.mark.parametrize("kind", NETWORKS)
def test_networks(kind: str, seed: int, certificate: str) -> None:
    options = {"width": 4, "certificate": certificate, "random_state": seed} | NETWORKS[kind]
    classifier = ReLUNetClassifier(**options)
    for name in ("iris", "wine") if kind == "two layers" else ("iris",):
        X, y = classification(name, seed)
        fitted(classifier, X, y)
        assert_claims_hold(classifier, [classifier.objective(X, y)], [classifier.certificate_])
    regressor = ReLUNetRegressor(**options)
    made = make_regression(120, 5, noise=10.0, random_state=seed)
    for X, y in (load_diabetes(return_X_y=True), made):
        X = StandardScaler().fit_transform(X)
        fitted(regressor, X, y)
        assert_claims_hold(regressor, [regressor.objective(X, y)], [regressor.certificate_])
