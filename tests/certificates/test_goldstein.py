"""The Goldstein certificate: what it accepts, and that nothing can be changed unnoticed."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import goldstein as gs


def crease(x: np.ndarray) -> float:
    """A nonconvex function with a valley of kinks."""
    return float(abs(x[0]) + abs(x[1] - x[0] ** 2) + 0.1 * math.cos(x[2]))


def crease_gradient(x: np.ndarray) -> np.ndarray:
    s, t = np.sign(x[0]), np.sign(x[1] - x[0] ** 2)
    return np.array([s - 2 * t * x[0], t, -0.1 * math.sin(x[2])])


def other(x: np.ndarray) -> float:
    return crease(x) + 0.01 * float(x[0])


def other_gradient(x: np.ndarray) -> np.ndarray:
    return crease_gradient(x) + np.array([0.01, 0.0, 0.0])


@pytest.fixture(scope="module")
def certificate() -> Any:
    return gs.certify(crease, [0.0, 0.0, math.pi], crease_gradient, delta=1e-2, eps=1e-3, rng=0)


@pytest.fixture(scope="module")
def with_descent() -> Any:
    cert = gs.certify(crease, [0.0, 0.0, 0.5], crease_gradient, delta=1e-2, rng=0)
    assert cert.descent is not None
    assert len(cert.weights) > 1
    return cert


def test_an_honest_certificate_verifies(certificate: Any, with_descent: Any) -> None:
    for cert in (certificate, with_descent):
        found = cert.verify(crease, crease_gradient)
        assert found.ok, found
        assert found.eps <= cert.eps * (1 + 1e-12)
        assert found.delta <= cert.delta * (1 + 1e-12)
        assert found.label == "conditional"
        assert {c.name for c in found.checks} >= {
            "content",
            "weights",
            "ball",
            "gradients",
            "bound",
        }
        assert all(c.message for c in found.checks)
    assert certificate.eps <= 1e-3
    assert certificate.delta <= 1e-2
    assert "VERIFIED" in repr(found)


def nudge(array: np.ndarray) -> np.ndarray:
    changed = array.copy()
    changed.flat[0] = np.nextafter(changed.flat[0], 10.0)
    return changed


TAMPERED: dict[str, list[Any]] = {
    "x": [lambda c: nudge(c.x), lambda c: c.x + 1.0],
    "delta": [
        lambda c: c.delta * (1 + 1e-15), lambda c: c.delta / 2, lambda c: 10.0, lambda c: -1.0,
        lambda c: math.nan, lambda c: math.inf,
    ],
    "eps": [
        lambda c: 0.0, lambda c: c.eps * 1.5, lambda c: -1.0, lambda c: math.nan,
        lambda c: c.eps * 0.99,
    ],
    "points": [
        lambda c: nudge(c.points), lambda c: c.points + 5.0, lambda c: c.points[::-1].copy(),
    ],
    "gradients": [
        lambda c: nudge(c.gradients),
        lambda c: 0 * c.gradients,
        lambda c: c.gradients * np.nan,
    ],
    "weights": [
        lambda c: nudge(c.weights),
        lambda c: np.eye(len(c.weights))[0],
        lambda c: -c.weights,
        lambda c: c.weights * 2,
        lambda c: 0 * c.weights,
    ],
    "layout": [lambda c: [1, 3], lambda c: [3, 1], lambda c: ["list", [3]]],
    "label": [lambda c: "certified", lambda c: "estimated", lambda c: "refuted"],
    "meta": [lambda c: {}, lambda c: {**c.meta, "seed": 99}, lambda c: {**c.meta, "more": 1}],
    "descent": [lambda c: None, lambda c: nudge(c.descent), lambda c: -c.descent],
    "digest": [lambda c: "0" * 64, lambda c: c.digest[:-1], lambda c: c.digest.upper()],
}  # fmt: skip
GRID = [(name, number) for name, changes in TAMPERED.items() for number in range(len(changes))]


def test_the_grid_covers_every_field(certificate: Any) -> None:
    # Whether a certificate was made here is no part of the claim, and of no file.
    assert set(TAMPERED) | {"own_layout"} == set(vars(certificate))


@pytest.mark.parametrize(("name", "number"), GRID)
def test_a_changed_field_is_noticed(with_descent: Any, name: str, number: int) -> None:
    changed = replace(with_descent, **{name: TAMPERED[name][number](with_descent)})
    assert not changed.verify(crease, crease_gradient).ok
    # The same behind the back of the constructor.
    object.__setattr__(forged := replace(with_descent), name, TAMPERED[name][number](with_descent))
    assert not forged.verify(crease, crease_gradient).ok


#: Changes that make the claim false, not only different: re-hashing cannot hide them.
FALSE_CLAIMS = [
    *(
        ("x", 1),
        ("delta", 1),
        ("delta", 3),
        ("delta", 4),
        ("eps", 0),
        ("eps", 2),
        ("eps", 3),
        ("eps", 4),
    ),
    *(("points", 1), ("gradients", 1), ("gradients", 2), ("weights", 2), ("weights", 3)),
    *(("weights", 4), ("label", 0), ("descent", 2)),
]


@pytest.mark.parametrize(("name", "number"), FALSE_CLAIMS)
def test_a_false_claim_with_a_fresh_digest_is_refused(
    with_descent: Any, name: str, number: int
) -> None:
    changed = replace(with_descent, digest="", **{name: TAMPERED[name][number](with_descent)})
    assert not changed.verify(crease, crease_gradient).ok


def test_changing_meta_in_place_is_noticed(certificate: Any) -> None:
    copy = replace(certificate, meta=dict(certificate.meta))
    assert copy.verify(crease, crease_gradient).ok
    copy.meta["function"] = "something else"
    assert not copy.verify(crease, crease_gradient).ok


def test_the_arrays_cannot_be_written(certificate: Any) -> None:
    for name in ("x", "points", "gradients", "weights"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(certificate, name)[...] = 0.0


def test_another_function_does_not_verify(certificate: Any) -> None:
    found = certificate.verify(other, other_gradient)
    assert not found.ok
    assert any("another function" in c.message for c in found.checks if not c.ok)


def test_a_function_that_fails_is_a_failed_check_not_a_crash(certificate: Any) -> None:
    def broken(x: np.ndarray) -> np.ndarray:
        raise RuntimeError("no")

    def kinky(x: np.ndarray) -> np.ndarray:
        raise gs.KinkError("corner", x)

    for gradient, words in ((broken, "could not be evaluated"), (kinky, "kink")):
        found = certificate.verify(crease, gradient)
        assert not found.ok
        assert words in found.checks[-1].message


def test_a_random_gradient_does_not_verify(certificate: Any) -> None:
    rng = np.random.default_rng(0)
    noisy = certificate.verify(crease, lambda x: crease_gradient(x) + 1e-3 * rng.standard_normal(3))
    assert not noisy.ok


def test_overflowing_gradients_do_not_slip_through() -> None:
    """Norms that overflow make every comparison with infinity true; they must not count."""
    cert = gs.GoldsteinCertificate(
        x=[0.0], delta=1.0, eps=1.0, points=[[0.5]], gradients=[[1.0]], weights=[1.0]
    )
    assert not cert.verify(lambda x: 1e200 * x[0], lambda x: np.array([1e200])).ok
    assert not cert.verify(lambda x: 1e308 * x[0], lambda x: np.array([1.5e308])).ok


@settings(max_examples=60, deadline=None)
@example(count=2, dim=1, seed=239)
@given(count=st.integers(1, 30), dim=st.integers(1, 5), seed=st.integers(0, 2**32))
def test_reduce_keeps_the_claim_with_d_plus_1_points(count: int, dim: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    target = rng.standard_normal(dim)
    points = 0.1 * rng.standard_normal((count, dim)) / math.sqrt(dim)
    weights = rng.random(count) + 0.01

    def f(x: np.ndarray) -> float:
        return 0.5 * float((x - target) @ (x - target))

    cert = gs.GoldsteinCertificate.from_gradients(
        np.zeros(dim), points, points - target, weights / weights.sum()
    )
    few = cert.reduce()
    assert len(few.weights) <= dim + 1
    assert few.delta <= cert.delta
    assert few.eps <= cert.eps + 1e-12
    # f is curved: a hair beside the points gradients differ by more than a claim without a margin
    # allows for, where they are next to 0. `minimize` states claims with one.
    stated = replace(few, eps=few.eps + 2.0**-14 * few.delta, digest="")
    assert stated.verify(f, lambda x: x - target).ok


def test_reduce_does_not_whitewash(certificate: Any) -> None:
    forged = replace(certificate, meta={"function": "forged"})
    assert not forged.reduce().verify(crease, crease_gradient).ok


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"x": [[0.0]]}, "shape"),
        ({"points": [[0.5, 0.5]]}, "shape"),
        ({"weights": [0.5, 0.5]}, "shape"),
        ({"gradients": [1.0]}, "shape"),
        ({"descent": [1.0, 0.0]}, "descent .* has shape"),
        ({"label": "proved"}, "label must be one of"),
        ({"eps": "small"}, "eps must be a number"),
        ({"delta": True}, "delta must be a number"),
        ({"meta": {"f": object()}}, "meta must hold plain numbers"),
        ({"meta": [1]}, "meta must be a dict"),
    ],
)
def test_bad_fields_are_refused_at_once(fields: dict[str, Any], words: str) -> None:
    good: dict[str, Any] = {
        "x": [0.0], "delta": 1.0, "eps": 1.0,
        "points": [[0.5]], "gradients": [[1.0]], "weights": [1.0],
    }  # fmt: skip
    gs.GoldsteinCertificate(**good)
    with pytest.raises(gs.GoldsteinError, match=words):
        gs.GoldsteinCertificate(**{**good, **fields})


def test_verify_asks_only_near_the_stored_points(certificate: Any) -> None:
    """A few gradients per point, none of them at a place of its own choosing."""
    asked: list[np.ndarray] = []

    def spy(x: np.ndarray) -> np.ndarray:
        asked.append(x.copy())
        return crease_gradient(x)

    assert certificate.verify(crease, spy).ok
    assert len(asked) <= 6 * len(certificate.weights)
    nearest = [np.linalg.norm(certificate.points - a, axis=1).min() for a in asked]
    # Farther away only coordinates in which f hardly changes are looked at, and only to refuse.
    assert sum(gap > 1e-8 for gap in nearest) <= 4


def test_coordinates_of_very_different_size() -> None:
    """A hair in proportion to the largest entry would be a leap in the smallest."""

    def wave(x: np.ndarray) -> float:
        return float(x[0] * np.cos(30 * x[1]))

    def wave_gradient(x: np.ndarray) -> np.ndarray:
        return np.array([np.cos(30 * x[1]), -30 * x[0] * np.sin(30 * x[1])])

    cert = gs.certify(wave, [1e8, 0.1], wave_gradient, delta=0.2, rng=0)
    assert cert.eps < 2.0
    assert cert.verify(wave, wave_gradient).ok
