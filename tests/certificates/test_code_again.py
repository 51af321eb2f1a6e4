"""Claims about code verify with that same code: with limits, further arguments, other layouts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goldstein as gs

exact_kinds = pytest.mark.parametrize("kind", ["near", "minimum"])
ASK: dict[str, Any] = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def bowl(x: Any, at: float = 0.3) -> Any:
    return np.abs(x[0] - at) + (x[1] - 1) ** 2 + np.abs(x[0])


def spread(x: Any) -> Any:
    return np.abs(x - np.array([0.0, 1.0, 10.0])).sum()


@exact_kinds
@pytest.mark.parametrize("limits", [{}, {"bounds": [(0.5, 2.0), (0.0, 3.0)]}])
def test_the_code_that_was_minimised_verifies(kind: str, limits: dict[str, Any]) -> None:
    found = gs.minimize(bowl, [2.0, 2.0], stationarity=kind, **ASK, **limits)
    assert found.success
    assert found.certificate.verify(bowl, **limits).ok


@exact_kinds
def test_further_arguments_are_those_of_the_run(kind: str) -> None:
    found = gs.minimize(bowl, [2.0, 2.0], args=(0.25,), stationarity=kind, **ASK)
    assert found.certificate.verify(bowl, args=(0.25,)).ok
    assert not found.certificate.verify(bowl, args=(-0.25,)).ok


@exact_kinds
def test_code_is_called_in_the_layout_of_the_run_or_of_the_verifier(kind: str) -> None:
    # A column meets the three numbers in a table: its minimum is the median, three times.
    found = gs.minimize(spread, np.full((3, 1), 2.0), stationarity=kind, **ASK)
    claim = found.certificate
    assert found.x.ravel().tolist() == [1.0, 1.0, 1.0]
    assert claim.verify(spread).ok
    assert claim.verify(spread, like=np.zeros((3, 1))).ok
    assert not claim.verify(spread, like=np.zeros(3)).ok


def test_a_refutation_of_code_verifies_with_it() -> None:
    found = gs.certify(lambda x: x[0] ** 2 / 2 - np.abs(x[0]), [0.0], delta=1e-6,
                       stationarity="minimum")  # fmt: skip
    assert isinstance(found, gs.Refutation)
    assert found.verify(lambda x: x[0] ** 2 / 2 - np.abs(x[0])).ok


def test_a_declared_curvature_has_the_layout_of_the_run() -> None:
    def tent(x: Any) -> float:
        return float(np.abs(x).sum() + x[0, 0] ** 2)

    def slope(x: Any) -> Any:
        return np.sign(x) + 2 * x * np.eye(2, 1)

    ask: dict[str, Any] = {"stationarity": "minimum", "curvature": 0.0, "rng": 0}
    found = gs.certify(tent, np.zeros((2, 1)), slope, delta=0.1, **ask)
    assert isinstance(found, gs.MinimumCertificate)
    assert found.verify(tent, slope).ok
