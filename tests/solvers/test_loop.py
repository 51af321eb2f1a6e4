"""The one loop: budgets, time, callbacks, history, failures."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.solvers import REGISTRY

METHODS = ["bundle", "pingd", "auto"]


class Spy:
    """A nonconvex function with kinks that counts its own calls."""

    def __init__(self, fail_at: int | None = None) -> None:
        self.values = self.gradients = 0
        self.fail_at = fail_at

    def _count(self) -> None:
        if self.fail_at is not None and self.values + self.gradients >= self.fail_at:
            raise RuntimeError("power cut")

    def fun(self, x: np.ndarray) -> float:
        self.values += 1
        self._count()
        return float(np.abs(x).sum() + 2 * abs(x[0] - x[-1] ** 2))

    def jac(self, x: np.ndarray) -> np.ndarray:
        self.gradients += 1
        self._count()
        g = np.sign(x)
        t = 2 * np.sign(x[0] - x[-1] ** 2)
        g[0] += t
        g[-1] -= 2 * t * x[-1]
        return g


START = [1.5, -1.0, 0.7]


def run(spy: Spy, **changes: Any) -> gs.Result:
    asked: dict[str, Any] = {"eps": 0.05, "delta": 0.02, "method": "bundle", "rng": 0, **changes}
    return gs.minimize(spy.fun, START, spy.jac, **asked)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("limit", [1, 2, 3, 7, 20, 50])
def test_the_call_budget_is_never_exceeded(method: str, limit: int) -> None:
    spy = Spy()
    res = run(spy, method=method, max_calls=limit, eps=1e-9)
    assert spy.values + spy.gradients <= limit
    assert (res.nfev, res.ngev) == (spy.values, spy.gradients)
    if not res.success:
        assert res.status is gs.Status.OUT_OF_CALLS
        assert "max_calls" in res.message
    assert not (res.success and limit <= 7)


@pytest.mark.parametrize("method", METHODS)
def test_success_counts_every_call(method: str) -> None:
    spy = Spy()
    res = run(spy, method=method, eps=0.3, delta=0.1)
    assert res.success, res
    assert (res.nfev, res.ngev) == (spy.values, spy.gradients)
    assert res.certificate.eps <= 0.3
    assert res.certificate.delta <= 0.1
    assert np.array_equal(res.certificate.x, res.x)
    assert res.fun == spy.fun(res.x)


def test_the_budget_counts_a_pair_as_two() -> None:
    spy = Spy()
    res = gs.minimize(
        lambda x: (spy.fun(x), spy.jac(x)), START, True,
        eps=1e-9, delta=0.02, method="bundle", rng=0, max_calls=30,
    )  # fmt: skip
    assert res.nfev + res.ngev == 30
    assert spy.values <= 30


@pytest.mark.parametrize("method", METHODS)
def test_the_time_limit_holds_for_slow_functions(method: str) -> None:
    spy = Spy()

    def slow(x: np.ndarray) -> float:
        time.sleep(0.03)
        return spy.fun(x)

    begin = time.perf_counter()
    res = gs.minimize(
        slow, START, spy.jac, eps=1e-9, delta=1e-3, method=method, rng=0, max_time=0.1
    )
    assert time.perf_counter() - begin < 1.5
    assert res.status is gs.Status.OUT_OF_TIME
    assert not res.success


def test_both_callback_signatures_see_every_step() -> None:
    old: list[np.ndarray] = []
    new: list[Any] = []

    def modern(intermediate_result: Any) -> None:
        new.append(intermediate_result)

    first = run(Spy(), callback=lambda x: old.append(x))
    second = run(Spy(), callback=modern)
    assert len(old) == len(new) == first.nit == second.nit > 2
    assert np.array_equal(old, [r.x for r in new])
    assert [r.fun for r in new] == [Spy().fun(x) for x in old]
    assert [r.calls for r in new] == sorted(r.calls for r in new)


def test_a_callback_cannot_disturb_the_run() -> None:
    def vandal(x: np.ndarray) -> None:
        x[:] = 1e9

    assert np.array_equal(run(Spy(), callback=vandal).x, run(Spy()).x)


@pytest.mark.parametrize("how", ["raise", "true", "numpy"])
def test_a_callback_can_stop_the_run(how: str) -> None:
    seen = []

    def stop(x: np.ndarray) -> Any:
        seen.append(x)
        if len(seen) == 2:
            if how == "raise":
                raise StopIteration
            return True if how == "true" else np.bool_(True)
        return None

    res = run(Spy(), callback=stop, eps=1e-6)
    assert len(seen) == 2
    assert res.nit == 2
    assert res.status is gs.Status.STOPPED
    assert np.array_equal(res.x, seen[-1])


def test_an_exception_of_the_callback_is_the_users() -> None:
    def broken(x: np.ndarray) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        run(Spy(), callback=broken)


@pytest.mark.parametrize("method", METHODS)
def test_history(method: str) -> None:
    res = run(Spy(), method=method, eps=0.3, delta=0.1)
    columns = res.history.as_arrays()
    assert {len(c) for c in columns.values()} == {len(res.history)}
    assert (np.diff(columns["calls"]) >= 0).all()
    assert (np.diff(columns["fun"]) <= 0).all()
    assert (np.diff(columns["time"]) >= 0).all()
    assert columns["fun"][0] == Spy().fun(np.array(START))
    assert columns["fun"][-1] == res.fun
    assert columns["calls"][-1] <= res.nfev + res.ngev


@pytest.mark.parametrize("method", METHODS)
def test_a_failure_in_the_middle_keeps_the_last_good_point(method: str) -> None:
    words = r"raised RuntimeError: power cut \(call 40, at x ="
    with pytest.raises(gs.OracleError, match=words) as caught:
        run(Spy(fail_at=40), method=method, eps=1e-6)
    assert caught.value.call == 40
    assert caught.value.last_good is not None
    assert Spy().fun(caught.value.last_good) < Spy().fun(np.array(START))


def test_a_failure_at_the_start_has_no_last_good_point() -> None:
    with pytest.raises(gs.OracleError) as caught:
        run(Spy(fail_at=1))
    assert caught.value.last_good is None
    assert caught.value.call == 1


@pytest.mark.parametrize("method", METHODS)
def test_functions_without_a_minimum_end(method: str) -> None:
    res = gs.minimize(
        lambda x: -abs(x[0]), [1.0], lambda x: -np.sign(x), eps=0.1, delta=0.1, method=method,
        rng=0, max_calls=3000,
    )  # fmt: skip
    assert not res.success
    assert res.status in (gs.Status.UNBOUNDED, gs.Status.OUT_OF_CALLS)


def test_progress_is_called_with_the_state_and_quiet_off_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    seen: list[int] = []
    run(Spy(), progress=lambda state, calls: seen.append(calls))
    run(Spy(), progress=True)
    assert len(seen) >= 1
    assert capsys.readouterr() == ("", "")


def test_kinks_on_the_way_cost_a_call_and_nothing_else() -> None:
    """A structured function may meet a kink in float64; the run goes on.

    On the way only: a check needs a gradient beside each of its points, so that nothing can be
    claimed of a function that refuses every third of them for ever.
    """
    spy = Spy()
    count = 0

    class Moody(gs.Oracle):
        knows_kinks = True

        def value(self, x: np.ndarray) -> float:
            return spy.fun(x)

        def gradient(self, y: np.ndarray) -> np.ndarray:
            nonlocal count
            count += 1
            if count % 3 == 1 and count < 60:
                raise gs.KinkError("corner", y)
            return spy.jac(y)

    for method in METHODS:
        count = 0
        res = gs.minimize(Moody(), START, eps=0.3, delta=0.1, method=method, rng=0)
        assert res.success, (method, res)


def test_kinks_everywhere_end_at_the_budget() -> None:
    class Corner(gs.Oracle):
        def value(self, x: np.ndarray) -> float:
            return float(np.abs(x).sum())

        def gradient(self, y: np.ndarray) -> np.ndarray:
            raise gs.KinkError("corner", y)

    for method in METHODS:
        res = gs.minimize(Corner(), [1.0], eps=0.3, delta=0.1, method=method, max_calls=50)
        assert res.status is gs.Status.OUT_OF_CALLS
        assert res.certificate is None


def test_registered_names() -> None:
    assert {"pingd", "bundle", "auto"} <= set(REGISTRY)
    assert all(REGISTRY[name].name == name for name in REGISTRY)
