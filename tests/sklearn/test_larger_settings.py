"""Data in chunks, and data whose guarantee is known beforehand."""

from __future__ import annotations

import pickle
from typing import Any

import dask.array as da
import numpy as np
import pytest

import goldstein as gs
from goldstein.errors import InputError, InputTypeError
from goldstein.sklearn import RhoMarginSVC


@pytest.mark.parametrize("rows", [300, 12_000])
def test_chunks_give_the_same_machine_and_certificate_as_memory(rows: int) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, 6))
    y = (X[:, 0] + 0.3 * rng.standard_normal(rows) > 0).astype(int)
    weights = rng.uniform(0.5, 1.5, rows)
    options = {"certificate": "goldstein", "random_state": 0}
    memory = RhoMarginSVC(**options).fit(X, y, weights)
    chunks = RhoMarginSVC(**options).fit(da.from_array(X, chunks=(rows // 5, 3)), y, weights)
    assert chunks.objective_ == pytest.approx(memory.objective_, rel=1e-9)
    assert chunks.coef_ == pytest.approx(memory.coef_, rel=1e-6, abs=1e-9)
    assert chunks.goldstein_stationarity_[0] <= 1e-3
    assert chunks.certificate_.verify(memory.objective(X, y, weights)).ok
    assert chunks.outliers_.tolist() == memory.outliers_.tolist()


def test_chunks_with_a_nan_are_refused() -> None:
    X = np.ones((40, 2))
    X[3, 1] = np.nan
    with pytest.raises(InputError, match="NaN"):
        RhoMarginSVC().fit(da.from_array(X, chunks=(10, 2)), np.arange(40) % 2)


def test_guarantee_known_beforehand_when_the_data_are_onto() -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((12, 60))
    y = np.arange(12) % 2
    Z = np.where(y == 1, 1.0, -1.0)[:, None] * X
    F = gs.models.margin_svm(Z, 1.0, 1.0 / 12, weights=np.full(12, 1 / 12))
    target = gs.goldstein_target(F, eps=1e-2, delta=1e-1)
    machine = RhoMarginSVC(
        rho=1.0, C=1.0, eps=target.eps, delta=target.delta, fit_intercept=False
    ).fit(X, y)
    eps, delta = machine.goldstein_stationarity_
    assert eps <= target.eps
    assert delta <= target.delta
    near = machine.certificate_.verify(F)
    assert near.label == "certified"
    assert near.eps <= 1e-2
    assert near.delta <= 1e-1


def test_a_machine_fitted_on_chunks_predicts_and_verifies_on_chunks() -> None:
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 3))
    y = np.where(X[:, 0] > 0, "b", "a")
    weights = rng.integers(0, 3, 200)
    chunks = da.from_array(X, chunks=(70, 2))
    machine = RhoMarginSVC(random_state=0).fit(chunks, y, weights)
    assert machine.certificate_.verify(machine.objective(chunks, y, weights)).ok
    assert machine.predict(chunks).tolist() == machine.predict(X).tolist()
    again = pickle.loads(pickle.dumps(machine))
    assert again.score(X, y) == machine.score(X, y)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda X: X[X[:, 0] > 0], "unknown size"),
        (lambda X: X[:-1], "39 rows and y has 40"),
        (lambda X: X.astype(object), "real numbers"),
    ],
)
def test_bad_chunks_are_refused_by_the_machine(spoil: Any, words: str) -> None:
    X = da.from_array(np.random.default_rng(0).standard_normal((40, 2)), chunks=(10, 2))
    with pytest.raises((InputError, InputTypeError), match=words):
        RhoMarginSVC().fit(spoil(X), np.arange(40) % 2)
