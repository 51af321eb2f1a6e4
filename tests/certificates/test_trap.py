"""relu(x) - relu(-x) is the identity, but automatic differentiation says "gradient 0" at 0."""

from __future__ import annotations

import contextlib

import numpy as np
import pytest
from tests.functions import trap, trap_gradient

import goldstein as gs


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


def single(x):
    """relu(x) - relu(-x) = x in single precision, with derivative 0 at a rounded kink."""
    u = np.float32(1.0) + x.astype(np.float32) - np.float32(1.0)
    return np.maximum(u, 0).sum() - np.maximum(-u, 0).sum()


def single_gradient(x):
    u = np.float32(1.0) + x.astype(np.float32) - np.float32(1.0)
    return (u != 0).astype(np.float32)


def test_single_precision_gradients_certify_no_ball_they_cannot_see():
    with pytest.raises(gs.InputError, match="float32"):
        gs.certify(single, [0.0], single_gradient, delta=1e-9, rng=0)
    with pytest.raises(gs.InputError, match="float32"):
        gs.minimize(single, [0.0], single_gradient, eps=1e-3, delta=1e-9, rng=0)
    forged = gs.GoldsteinCertificate(
        x=[0.0], delta=1e-9, eps=0.0, points=[[1e-9]], gradients=[[0.0]], weights=[1.0]
    )
    assert not forged.verify(single, single_gradient).ok
    # In a larger ball the derivative 1 is seen, or nothing is claimed at all.
    with contextlib.suppress(gs.GoldsteinError):
        assert gs.certify(single, [0.0], single_gradient, delta=1e-2, rng=0).eps > 0.9


def test_success_for_an_expression_means_that_exact_gradients_agree():
    w = gs.Variable(1)
    lost = gs.sum(1e16 * w + w - 1e16 * w)  # float64 sees the constant 0, the truth has slope 1
    res = gs.minimize(lost, [1.0], eps=1e-3, delta=1e-3, rng=0, max_calls=200)
    assert not res.success
    with pytest.raises(gs.NotCertifiableError, match="lost to rounding"):
        gs.certify(lost, [1.0], delta=1e-3, rng=0)
