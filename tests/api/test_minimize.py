"""minimize: the result says what was proved, and the same seed says it again."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.functions import largest_of

import goldstein as gs
from goldstein.reductions.stationarity import _KINDS, Attempt, stationarity_named


def f(x: np.ndarray) -> float:
    return float(abs(x[0]) + 2 * abs(x[1]) + 0.5 * (x @ x))


def g(x: np.ndarray) -> np.ndarray:
    return np.array([1.0, 2.0]) * np.sign(x) + x


ASK: dict[str, Any] = {"eps": 1e-2, "delta": 1e-2}


@pytest.mark.parametrize("method", ["auto", "bundle"])
def test_the_same_seed_gives_the_same_result(method: str) -> None:
    first = gs.minimize(f, [3.0, -1.0], g, method=method, rng=4, **ASK)
    again = gs.minimize(f, [3.0, -1.0], g, method=method, rng=4, **ASK)
    third = gs.minimize(f, [3.0, -1.0], g, method=method, rng=5, **ASK)
    assert first.certificate.digest == again.certificate.digest
    assert np.array_equal(first.x, again.x)
    assert not np.array_equal(first.certificate.points, third.certificate.points)


def test_the_seed_is_recorded_and_replays() -> None:
    first = gs.minimize(f, [3.0, -1.0], g, rng=None, **ASK)
    again = gs.minimize(f, [3.0, -1.0], g, rng=first.seed, **ASK)
    assert np.array_equal(first.x, again.x)
    by_generator = gs.minimize(f, [3.0, -1.0], g, rng=np.random.default_rng(1), **ASK)
    assert by_generator.seed == int(np.random.default_rng(1).integers(2**63))


def test_the_result_reads_like_scipys() -> None:
    res = gs.minimize(f, [3.0, -1.0], g, rng=0, **ASK)
    for key in ("x", "fun", "success", "status", "message", "nit", "nfev", "ngev", "certificate"):
        assert res[key] is getattr(res, key)
        assert key in res
    assert set(res.keys()) >= {"history", "seed", "time"}
    with pytest.raises(KeyError):
        res["missing"]
    shown = repr(res)
    assert "VERIFIED" in shown
    assert "Goldstein stationary" in shown
    assert f"{res.nfev} values + {res.ngev} gradients" in shown


def test_a_result_without_success_still_says_what_it_can_prove() -> None:
    corner, slope = largest_of(np.random.default_rng(0).standard_normal((60, 20)))
    for method in ("bundle", "pingd"):
        res = gs.minimize(
            corner, np.full(20, 1e-9), slope, eps=1e-9, delta=1e-2, method=method, rng=0,
            max_calls=14,
        )  # fmt: skip
        assert not res.success
        assert res.certificate.verify(corner, slope).ok
        assert 1e-9 < res.certificate.eps < 10
        assert "None" not in repr(res)


def test_a_run_cut_short_with_the_proof_in_its_hands_is_a_success() -> None:
    """The average of PINGD is long, but the shortest vector of its gradients is zero."""
    clock = itertools.count()

    def slow(x: np.ndarray) -> float:
        if next(clock) > 30:
            time.sleep(0.06)
        return float(abs(x[0]))

    res = gs.minimize(
        slow, [0.0], np.sign, eps=1e-3, delta=0.1, method="pingd", rng=0, max_time=0.05
    )
    assert res.certificate.eps <= 1e-3
    assert res.success
    assert res.status is gs.Status.VERIFIED


def test_configured_solver_objects() -> None:
    res = gs.minimize(
        f, [3.0, -1.0], g, method=gs.BundlePINGD(expand=False, capacity=5), rng=0, **ASK
    )
    assert res.success
    assert res.method == "bundle"
    by_options = gs.minimize(
        f, [3.0, -1.0], g, method="bundle", options={"expand": False, "capacity": 5}, rng=0, **ASK
    )
    assert np.array_equal(res.x, by_options.x)


def test_a_function_with_reused_buffers_is_not_believed_twice() -> None:
    """All gradients share one array: without copies every one would equal the last."""
    buffer = np.zeros(2)

    def lazy(x: np.ndarray) -> np.ndarray:
        buffer[:] = g(x)
        return buffer

    for method in ("bundle", "pingd", "auto"):
        ask: dict[str, Any] = {"eps": 0.2, "delta": 0.1, "method": method, "rng": 1}
        careful = gs.minimize(f, [0.5, -0.2], g, **ask)
        careless = gs.minimize(f, [0.5, -0.2], lazy, **ask)
        assert np.array_equal(careful.certificate.gradients, careless.certificate.gradients)
        assert careless.certificate.verify(f, g).ok


def test_a_function_that_works_in_place() -> None:
    def rude(x: np.ndarray) -> float:
        x += 1.0
        return f(x - 1.0)

    def rude_gradient(x: np.ndarray) -> np.ndarray:
        answer = g(x)
        x[:] = 0.0
        return answer

    res = gs.minimize(rude, [3.0, -1.0], rude_gradient, rng=0, **ASK)
    assert res.success
    assert res.certificate.verify(f, g).ok


def test_every_result_survives_an_independent_check() -> None:
    for seed in range(10):
        res = gs.minimize(f, [3.0, -1.0], g, rng=seed, **ASK)
        found = res.certificate.verify(f, g, seed=seed + 1)
        assert res.success
        assert found.ok, found
        assert found.eps <= 1e-2 * (1 + 1e-9)
        assert found.delta <= 1e-2


def test_a_near_run_that_fails_speaks_about_the_point_it_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A poor proof of an early stage is about a point that the run has left since."""
    near, stages = stationarity_named("near"), itertools.count()

    def once(*args: Any) -> Any:
        if next(stages):
            return Attempt(None)
        return Attempt(replace(near.strengthen(*args).certificate, eps=1.0))

    monkeypatch.setitem(_KINDS, "near", replace(near, strengthen=once))
    w = gs.Variable(2)
    rows = np.array([[1.0, 0.3], [0.2, -1.0], [1.0, 1.0]])
    fun = gs.sum(gs.abs(rows @ w - np.array([0.1, 0.2, 0.7]))) + 0.5 * gs.sum_squares(w)
    res = gs.minimize(fun, [3.0, -2.0], eps=1e-3, delta=1e-2, stationarity="near", rng=0)
    assert not res.success
    assert next(stages) > 2
    assert np.array_equal(res.certificate.x, res.x)


def test_a_result_at_zero_is_printed() -> None:
    """delta is relative to the largest entry of x, if there is one."""
    res = gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, eps=1e-3, delta=1e-3, rng=0)
    assert res.x.tolist() == [0.0]
    assert "of the first gradient\n" in str(res)
