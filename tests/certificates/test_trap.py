"""relu(x) - relu(-x) is the identity, but automatic differentiation says "gradient 0" at 0."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs


def relu(t: np.ndarray) -> np.ndarray:
    return np.maximum(t, 0.0)


def trap(x: np.ndarray) -> float:
    return float((relu(x) - relu(-x)).sum())


def trap_gradient(x: np.ndarray) -> np.ndarray:
    """What torch returns: relu' (0) = 0 on both branches. The true gradient is 1 everywhere."""
    return (x > 0).astype(float) + (-x > 0).astype(float)


def forged(x: list[float], points: list[list[float]], **fields: float) -> gs.GoldsteinCertificate:
    y = np.array(points)
    return gs.GoldsteinCertificate(
        x=np.array(x),
        points=y,
        gradients=np.array([trap_gradient(p) for p in y]),
        weights=np.full(len(y), 1 / len(y)),
        **{"delta": 1e-3, "eps": 0.0, **fields},
    )


def test_the_trap_is_set() -> None:
    assert trap_gradient(np.zeros(1))[0] == 0.0
    assert trap(np.array([-2.0])) == -2.0


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("seed", range(5))
def test_certify_is_not_fooled(dim: int, seed: int) -> None:
    cert = gs.certify(trap, np.zeros(dim), trap_gradient, delta=1e-3, rng=seed)
    assert cert.eps >= np.sqrt(dim) * (1 - 1e-12)
    assert cert.descent is not None
    assert not (cert.points == 0.0).any()


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")  # the function has no minimum
@pytest.mark.parametrize("method", ["bundle", "pingd", "auto"])
@pytest.mark.parametrize("seed", range(3))
def test_minimize_is_not_fooled(method: str, seed: int) -> None:
    for start in ([0.0], [1e-3], [1.0]):
        res = gs.minimize(
            trap, start, trap_gradient, eps=0.5, delta=1e-3, method=method, rng=seed, max_calls=400
        )
        assert not res.success
        assert res.certificate is None or res.certificate.eps > 0.5


@pytest.mark.parametrize("scale", [0.0, 1.0, 1e6])
def test_a_forged_certificate_at_the_kink_is_refused(scale: float) -> None:
    """The stored point is exactly the kink, and asking again gives the same wrong 0."""

    def shifted(x: np.ndarray) -> float:
        return trap(x - scale)

    def shifted_gradient(x: np.ndarray) -> np.ndarray:
        return trap_gradient(x - scale)

    cert = gs.GoldsteinCertificate(
        x=[scale], delta=1e-3, eps=0.0, points=[[scale]], gradients=[[0.0]], weights=[1.0]
    )
    found = cert.verify(shifted, shifted_gradient)
    assert not found.ok
    assert [c.name for c in found.checks if not c.ok] == ["kinks"]
    assert found.eps >= 1.0


def test_a_kink_in_one_coordinate_is_enough_to_fail() -> None:
    assert not forged([1.0, 0.0], [[1.0, 0.0]], eps=1.0).verify(trap, trap_gradient).ok
    # sqrt(2) is the truth, and may be claimed.
    honest = forged([1.0, 0.5], [[1.0, 0.5]], eps=np.sqrt(2) * (1 + 1e-12))
    assert honest.verify(trap, trap_gradient).ok


def test_mixing_a_trap_point_into_honest_ones_does_not_help() -> None:
    """The average with one wrong 0 looks a third smaller."""
    cert = forged([0.0], [[0.0], [5e-4], [-5e-4]], eps=2 / 3 + 1e-12)
    assert not cert.verify(trap, trap_gradient).ok


def test_a_kink_behind_an_added_constant_is_found() -> None:
    """Next to 1 a tiny displacement of the entry 0 would be rounded away."""

    def offset(x: np.ndarray) -> float:
        return trap((x + 1.0) - 1.0)

    def offset_gradient(x: np.ndarray) -> np.ndarray:
        return trap_gradient((x + 1.0) - 1.0)

    assert not forged([0.0, 0.0], [[0.0, 0.0]], eps=0.5).verify(offset, offset_gradient).ok
