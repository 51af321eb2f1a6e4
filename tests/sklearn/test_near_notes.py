"""Near proofs of estimators: limits in time, and a word on which certificate it is and why."""

from __future__ import annotations

from typing import Any

import dask.array as da
import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler

from goldstein.certificates import GoldsteinCertificate, NearCertificate
from goldstein.errors import InputError
from goldstein.fitting import fit
from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor, RhoMarginSVC

ESTIMATORS: list[Any] = [
    RhoMarginSVC(random_state=0),
    RhoMarginSVC(multi_class="ovr", random_state=0),
    ReLUNetClassifier(width=4, random_state=0),
    ReLUNetRegressor(width=4, random_state=0),
]


@pytest.fixture(scope="module")
def iris() -> tuple[np.ndarray, np.ndarray]:
    X, y = load_iris(return_X_y=True)
    return StandardScaler().fit_transform(X), y


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: repr(e)[:34])
@pytest.mark.parametrize("certificate", ["near", "goldstein"])
def test_the_note_is_there_and_true(estimator: Any, certificate: str, iris: Any) -> None:
    X, y = iris
    fitted = estimator.set_params(certificate=certificate, max_time=None).fit(X, y)
    note = fitted.certificate_.meta["near"]
    if certificate == "goldstein":
        assert note == "not asked for"
    assert (note == "proved") == isinstance(fitted.certificate_, NearCertificate)
    assert (note == "proved") == (fitted.near_stationarity_ is not None)
    # A note is part of the certificate: it is checked with the rest.
    assert fitted.certificate_.verify(fitted.objective(X, y)).ok


@pytest.mark.parametrize("estimator", ESTIMATORS, ids=lambda e: repr(e)[:34])
def test_without_time_for_a_proof_there_is_a_goldstein_certificate(
    estimator: Any, iris: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    X, y = iris
    whole = estimator.set_params(certificate="goldstein").fit(X, y)
    value, reached = whole.objective_, whole.goldstein_stationarity_
    monkeypatch.setattr(fit, "GRACE", -1e6)
    hasty = estimator.set_params(certificate="near").fit(X, y)
    assert hasty.near_stationarity_ is None
    assert isinstance(hasty.certificate_, GoldsteinCertificate)
    assert "stopped after" in hasty.certificate_.meta["near"]
    # The clock decides about the proof, not about the fit.
    assert hasty.objective_ == value
    assert hasty.goldstein_stationarity_ == reached
    assert hasty.certificate_.verify(hasty.objective(X, y)).ok


def test_a_search_that_fails_says_how_far_it_came() -> None:
    X, y = load_diabetes(return_X_y=True)
    net = ReLUNetRegressor(eps=1e-2, delta=1e-4, width=3, random_state=0, max_time=60.0)
    net.fit(StandardScaler().fit_transform(X), y)
    if net.near_stationarity_ is None:
        assert "asked for 0.01" in net.certificate_.meta["near"] or (
            "no pivot was found within delta = 0.0001" in net.certificate_.meta["near"]
        )


def test_max_time_ends_the_training_too(iris: Any) -> None:
    X, y = iris
    with pytest.warns(ConvergenceWarning, match="max_time"):
        net = ReLUNetClassifier(eps=1e-6, delta=1e-6, max_time=1e-3, random_state=0).fit(X, y)
    assert "not tried: eps = " in net.certificate_.meta["near"]


def test_rows_in_chunks_and_missed_targets_are_said(iris: Any) -> None:
    X, y = iris
    net = ReLUNetRegressor(width=3, random_state=0).fit(da.from_array(X, chunks=(60, 4)), y * 1.0)
    assert "all rows in one place" in net.certificate_.meta["near"]


@pytest.mark.parametrize("limit", [0.0, -1.0, "soon", np.nan])
@pytest.mark.parametrize("estimator", ESTIMATORS[1:], ids=lambda e: repr(e)[:34])
def test_limits_that_are_none_are_refused(estimator: Any, limit: Any, iris: Any) -> None:
    X, y = iris
    with pytest.raises(InputError, match="max_time"):
        estimator.set_params(max_time=limit).fit(X, y)
    estimator.set_params(max_time=None)


def test_one_name_for_the_objective() -> None:
    """`objective` is what `certificate_` is about; the old name still works, and says so."""
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    machine = RhoMarginSVC(multi_class="ovr", random_state=0).fit(X, y)
    assert machine.certificate_.verify(machine.objective(X, y)).ok
    weakest = machine.certificates_.index(machine.certificate_)
    others = [k for k in range(3) if k != weakest]
    assert not machine.certificate_.verify(machine.objective(X, y, machine=others[0])).ok
    with pytest.warns(FutureWarning, match="objective"):
        old = machine.objectives(X, y)
    assert [c.verify(F).ok for c, F in zip(machine.certificates_, old, strict=True)] == [True] * 3
    with pytest.raises(InputError, match="machine"):
        machine.objective(X, y, machine=3)


def test_the_default_penalty_does_not_depend_on_the_unit_of_the_features() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    for intercept in (True, False):
        options = {"fit_intercept": intercept, "random_state": 0, "certificate": "goldstein"}
        one, other = RhoMarginSVC(**options).fit(X, y), RhoMarginSVC(**options).fit(1024.0 * X, y)
        ratio = one.C_ / other.C_
        assert ratio == pytest.approx(1024.0**2, rel=1e-12)
        assert (one.predict(X) == other.predict(1024.0 * X)).mean() > 0.99
    here, there = (RhoMarginSVC(certificate="goldstein").fit(X + move, y) for move in (0.0, 100.0))
    ratio = here.C_ / there.C_
    assert ratio == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("given", [{}, {"rho": 3.0}, {"shift": -4.0}, {"rho": 0.5, "shift": 2.0}])
def test_what_is_left_open_is_said_after_the_fit(given: dict[str, float], iris: Any) -> None:
    X, y = iris
    machine = RhoMarginSVC(certificate="goldstein", **given).fit(X[:100], y[:100])
    ends = machine.shift_ + machine.rho_
    expected = {(): (-1.0, 1.0), ("rho",): (0.0, 3.0), ("shift",): (-4.0, 1.0)}
    assert (machine.shift_, ends) == expected.get(tuple(given), (2.0, 2.5))
    w, b = machine.coef_[0], machine.intercept_[0]
    u = np.where(y[:100] == 1, 1, -1) * (X[:100] @ w + b) - machine.shift_
    losses = np.clip(1.0 - u / machine.rho_, 0.0, 1.0)
    assert machine.objective_ == pytest.approx(0.5 * w @ w + machine.C_ * losses.sum())
    with pytest.raises(InputError, match="room"):
        RhoMarginSVC(shift=1.0).fit(X, y)
