"""The statistical claim: unbiased, as confident as it says, and never about a counterexample."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import nnls
from tests.functions import valley

import goldstein as gs
from goldstein.certificates import values
from goldstein.certificates.confidence import lower_limits, mean_limits
from goldstein.certificates.values import OfFunction, Places, upper_bound
from goldstein.checker.constrained.limits import Box
from goldstein.construction.values_claim import Statistics, places_around, state_values
from goldstein.oracles import CountedOracle
from goldstein.oracles.function import ValueOracle
from goldstein.solvers import Request


def free(dim: int) -> Box:
    return Box(np.full(dim, -np.inf), np.full(dim, np.inf))


# --- confidence limits of means ------------------------------------------------------------------

LAWS: dict[str, Any] = {
    "fair coin": (lambda rng, size: rng.integers(0, 2, size).astype(float), 0.5),
    "rare ones": (lambda rng, size: (rng.random(size) < 0.02).astype(float), 0.02),
    "rare zeros": (lambda rng, size: (rng.random(size) > 0.05).astype(float), 0.95),
    "uniform": (lambda rng, size: rng.random(size), 0.5),
    "nearly constant": (lambda rng, size: 0.3 + 1e-3 * rng.random(size), 0.3005),
}


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("n", [20, 200])
def test_lower_limits_of_means_are_wrong_as_rarely_as_they_say(name: str, n: int) -> None:
    draw, mean = LAWS[name]
    samples = draw(np.random.default_rng(0), (n, 4000))
    limits = lower_limits(samples, 0.05)
    assert (limits > mean).mean() <= 0.05
    assert (limits <= samples.mean(axis=0)).all()


def test_limits_are_as_short_as_the_variance_allows() -> None:
    rng = np.random.default_rng(0)
    constant = np.full((500, 1), 0.2)
    low, high = mean_limits(constant, np.ones(1), 0.05)
    assert low[0] <= 0.2 <= high[0]
    assert high[0] - low[0] <= 5.0 * math.log(40) / 500
    noisy = rng.choice([-1.0, 1.0], (5000, 1))
    low, high = mean_limits(noisy, np.ones(1), 0.05)
    assert high[0] - low[0] <= 3.0 * math.sqrt(2 * math.log(40) / 5000)


# --- differences ---------------------------------------------------------------------------------


def test_randomised_differences_have_the_mean_of_the_gradients() -> None:
    """Plain ones do not: (1.10, 0.54) here."""

    def many(points: np.ndarray) -> np.ndarray:
        a, b = points.T
        return np.abs(a - b) + np.maximum(a + 2 * b, 0) - 0.7 * np.abs(b)

    y, h = np.array([0.02, -0.01]), np.full(2, 0.05)
    rng = np.random.default_rng(0)
    z = y + rng.uniform(-h, h, (400_000, 2))
    a, b = z.T
    right, up = a - b > 0, a + 2 * b > 0
    mean = np.array(
        [
            (np.where(right, 1, -1) + up).mean(),
            (np.where(right, -1, 1) + 2 * up - 0.7 * np.sign(b)).mean(),
        ]
    )
    draws = OfFunction(many, Places(y[None], np.ones(1), h)).draw(40_000, rng)
    assert np.abs(draws.vectors.mean(axis=0) - mean).max() < 0.01
    plain = [(many(y[None] + s)[0] - many(y[None] - s)[0]) / 0.1 for s in np.diag(h)]
    assert np.abs(np.array(plain) - mean).max() > 0.05


# --- coverage ------------------------------------------------------------------------------------


def kinked(points: np.ndarray) -> np.ndarray:
    """Its kinks cross every box around 0, so that samples vary as much as they can."""
    a, b = points.T
    return np.abs(a - b) + np.maximum(a + 2 * b, 0.0) - 0.7 * np.abs(b) + 0.4 * a


@pytest.mark.parametrize(("samples", "trials"), [(50, 2000), (200, 400)])
def test_coverage_of_the_bound(samples: int, trials: int) -> None:
    """2,000 claims at 95 %: the mean gradient, known to three digits, is longer in few of them."""
    h = np.full(2, 0.05)
    y = np.array([0.02, -0.01])
    places = Places(y[None], np.ones(1), h)
    rng = np.random.default_rng(1)
    truth = OfFunction(kinked, places).draw(200_000, rng).vectors.mean(axis=0)
    slopes = np.array([2.4, 3.7])
    draws = OfFunction(kinked, places).draw(samples * trials, rng).vectors
    draws = draws.reshape(trials, samples, 2)
    bounds = np.array([upper_bound(one, slopes, free(2), y, 0.05) for one in draws])
    assert (bounds < np.linalg.norm(truth)).mean() <= 0.05
    # And it says something: not far above the truth.
    assert np.median(bounds) <= np.linalg.norm(truth) + 2.5 * np.linalg.norm(slopes) / math.sqrt(
        samples
    )


def test_fresh_draws_agree_with_claims_that_are_made() -> None:
    """One verdict: what is claimed is verified, whatever the seeds."""

    def f(x: np.ndarray) -> float:
        return float(np.abs(x).sum() + 0.3 * x[0] ** 2)

    for seed in range(40):
        oracle = CountedOracle(ValueOracle(f), 20_000)
        rng = np.random.default_rng(seed)
        points = 0.01 * rng.uniform(-0.5, 0.5, (2, 2))
        places = places_around(np.zeros(2), points, np.array([0.5, 0.5]), 0.01, free(2), 0.3, 1e-5)
        how = Statistics(0.95, Request(0.2, 0.01, seed), free(2), map, {}, 1)
        claim = state_values(oracle, np.zeros(2), places, how)
        assert claim is not None
        assert claim.verify(f, seed=1000 + seed).ok


# --- the counterexample --------------------------------------------------------------------------


def trap(x: np.ndarray) -> float:
    """Central differences along the axes are 0 at 0, for every step."""
    return float(max(-x[2], min(x[2] - 3 * x[0], x[2] - 2 * x[1])))


GRADIENTS = np.array([[-3.0, 0, 1], [0, -2, 1], [0, 0, -1]])


def trap_distance() -> float:
    system = np.vstack([GRADIENTS.T, np.ones(3)])
    weights = nnls(system, np.array([0, 0, 0, 1.0]))[0]
    return float(np.linalg.norm(weights @ GRADIENTS / weights.sum()))


def test_the_counterexample_is_one() -> None:
    assert trap_distance() == pytest.approx(0.6396, abs=1e-4)
    for h in (1e-1, 1e-4, 1e-8):
        for e in np.eye(3):
            assert trap(h * e) == trap(-h * e)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("share", [1e-4, 0.5])
def test_the_counterexample_is_never_claimed_below_its_distance(seed: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    points = 0.3e-2 * rng.standard_normal((4, 3)) * (seed % 3 > 0)
    weights = rng.dirichlet(np.ones(4))
    places = places_around(np.zeros(3), points, weights, 1e-2, free(3), share, 1.0)
    how = Statistics(0.95, Request(0.1, 1e-2, seed), free(3), map, {}, 1)
    oracle = CountedOracle(ValueOracle(trap), 20_000)
    claim = state_values(oracle, np.zeros(3), places, how)
    assert claim is not None
    assert claim.eps >= 0.6396
    if seed < 4:
        certified = gs.certify(trap, np.zeros(3), "2-point", delta=1e-2, rng=seed, max_calls=4000)
        assert certified.eps >= 0.6396
        res = gs.minimize(trap, np.zeros(3), eps=0.6, delta=1e-2, method="values", rng=seed,
                          max_calls=4000)  # fmt: skip
        assert not res.success


# --- forgers, files, flat values -----------------------------------------------------------------


@pytest.fixture(scope="module")
def honest() -> gs.ValuesCertificate:
    res = gs.minimize(valley, [-1.2, 1.0], eps=0.3, delta=1e-2, method="values", rng=0)
    assert res.success
    return res.certificate


FORGERIES: dict[str, dict[str, Any]] = {
    "content": {"digest": "0" * 64},
    "bound": {"eps": 1e-6},
    "slopes": {"slopes": np.full(2, 0.01)},
    "ball": {"delta": 1e-9},
    "weights": {"weights": "halved"},
    "widths": {"widths": np.full(2, 1e-300)},
    "numbers": {"samples": 10**12},
    "few numbers": {"samples": 1},
}


@pytest.mark.parametrize("check", FORGERIES)
def test_forgeries_are_refused(honest: gs.ValuesCertificate, check: str) -> None:
    changes = dict(FORGERIES[check])
    if changes.get("weights") is not None:
        changes["weights"] = honest.weights / 2
    forged = dataclasses.replace(honest, **{"digest": "", **changes})
    found = forged.verify(valley)
    assert not found.ok
    assert check.split()[-1] in [c.name for c in found.checks if not c.ok]
    assert honest.verify(valley).ok


def test_another_function_is_refused(honest: gs.ValuesCertificate) -> None:
    assert not honest.verify(lambda x: valley(x) + x[0]).ok
    assert not honest.verify(lambda x: math.nan).ok
    with pytest.raises(gs.GoldsteinError, match="estimated"):
        dataclasses.replace(honest, label="conditional", digest="")


def test_a_machine_that_rounds_otherwise_agrees(
    honest: gs.ValuesCertificate, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other kernels of BLAS sum squares in another order: bounds of lengths differ by a few ulp."""
    mine = values.distance_upper
    monkeypatch.setattr(values, "distance_upper", lambda y, x: mine(y, x) * (1 + 2.0**-50))
    assert honest.verify(valley, seed=0).ok


def test_files_bring_it_back(honest: gs.ValuesCertificate, tmp_path: Path) -> None:
    back = gs.load_certificate(honest.save(tmp_path / "values"))
    assert back.content_digest() == honest.content_digest() == back.digest
    assert back.verify(valley).ok
    assert (back.label, back.confidence, back.kind) == ("estimated", 0.95, "values")


ROUGH: dict[str, Any] = {
    "single precision": lambda x: float(np.float32(1000.0 + x.sum())),
    "a tolerance": lambda x: float(np.round(x.sum(), 5)),
    "large constant": lambda x: float(1e12 + x.sum()),
    "single precision and a penalty": lambda x: float(np.float32(1e3 + x.sum())) + 0.01 * (x @ x),
}


@pytest.mark.parametrize("name", ROUGH)
@pytest.mark.parametrize("delta", [1e-7, 1e-5])
def test_values_that_do_not_change_prove_nothing(name: str, delta: float) -> None:
    """The slope is sqrt(2) everywhere; over small boxes all differences are 0."""
    for seed in range(3):
        found = gs.certify(ROUGH[name], [0.3, 0.4], "2-point", delta=delta, rng=seed)
        assert found.eps >= 1.4
        res = gs.minimize(ROUGH[name], [0.3, 0.4], eps=0.5, delta=delta, method="values", rng=seed,
                          max_calls=3000)  # fmt: skip
        assert not res.success


def test_values_must_be_fine_around_every_point_with_a_weight() -> None:
    """A forger puts a point where single precision is fine in front of the one that counts."""

    def coarse(x: np.ndarray) -> float:
        return float(np.float32(100 * x.sum()))

    unbounded = np.full(2, np.inf)
    for points in ([[0, 0], [5, 5]], [[5, 5], [0, 0]]):
        forged = gs.ValuesCertificate(
            x=np.full(2, 5.0), delta=8.0, eps=10.0, points=np.array(points, dtype=float),
            weights=np.array(points)[:, 0] / 5, widths=np.full(2, 1e-10), slopes=np.full(2, 110.0),
            confidence=0.95, samples=300, mean=np.zeros(2), grain=0.0, lower=-unbounded,
            upper=unbounded,
        )  # fmt: skip
        assert [c.name for c in forged.verify(coarse, seed=0).checks if not c.ok] == ["bound"]


def test_a_wall_elsewhere_is_no_grain() -> None:
    """Programs return 1e10 where they fail, or an exception; the ball is not there."""

    def walled(x: np.ndarray) -> float:
        return 1e10 if x[0] > 0.03 else float(np.abs(x).sum())

    def failing(x: np.ndarray) -> float:
        if x[1] > 0.03:
            raise RuntimeError("no convergence")
        return float(np.abs(x).sum())

    for fun in (walled, failing):
        for seed in range(5):
            found = gs.certify(fun, [0.0, 0.0], "2-point", delta=1e-4, rng=seed)
            assert found.eps <= 0.1
            assert found.verify(fun, seed=seed).ok


def test_a_flat_place_is_stationary() -> None:
    def hinge(x: np.ndarray) -> float:
        return max(0.0, float(x.sum()) - 1e-3)

    found = gs.certify(hinge, [0.0, 0.0], "2-point", delta=1e-2, eps=0.1, rng=0)
    assert found.eps <= 0.1
    assert found.verify(hinge, seed=0).ok
