"""Ctrl-C, failing functions and callbacks: at every call of a run, and nothing of it is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.keyboard import Keyboard

import goldstein as gs
from goldstein.parallel import multistart

START = np.array([2.0, -1.5, 1.0])
QUESTION: dict[str, Any] = {"eps": 0.3, "delta": 0.1, "rng": 0}


class Trouble:
    """Functions of which one, at a chosen call of them all, raises once."""

    def __init__(self) -> None:
        self.calls, self.at, self.what = 0, 0, BaseException()

    def set(self, at: int, what: BaseException) -> None:
        self.calls, self.at, self.what = 0, at, what

    def __call__(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise self.what
            return fun(*args)

        return asked


TROUBLE = Trouble()


def bowl(x: Any) -> float:
    """A kink in a long bowl: certified early, and still falling."""
    return float(abs(x[0]) + 0.05 * np.abs(x[1:] - 3.0) @ np.abs(x[1:] - 3.0))


def slope(x: Any) -> Any:
    return np.array([np.sign(x[0]), *(0.1 * (x[1:] - 3.0))])


@TROUBLE
def value(x: Any) -> float:
    return bowl(x)


@TROUBLE
def gradient(x: Any) -> Any:
    return slope(x)


@TROUBLE
def kinked(x: Any) -> float:
    """A head start leads nowhere."""
    return float(np.abs(x - [0.3, -0.2, 0.9]).sum() + abs(x[0] * x[1]))


@TROUBLE
def kinked_gradient(x: Any) -> Any:
    side = np.sign(x[0] * x[1])
    return np.sign(x - [0.3, -0.2, 0.9]) + side * np.array([x[1], x[0], 0.0])


W = gs.Variable(3)
WRITTEN = gs.norm1(W) + 0.05 * gs.sum_squares(W - 3.0)
NESTED = gs.norm1(gs.abs(W) - 1.0) + gs.maximum(gs.square(W[0]) - W[1], W[2])
BOUNDS = [(-1.0, None)] * 3
SPHERE = {"type": "eq", "fun": TROUBLE(lambda x: x @ x - 4.0), "jac": TROUBLE(lambda x: 2.0 * x)}
BALL = {"type": "ineq", "fun": TROUBLE(lambda x: 9.0 - x @ x), "jac": TROUBLE(lambda x: -2.0 * x)}
BLIND = {"type": "ineq", "fun": BALL["fun"]}
NOWHERE = {"type": "ineq", "fun": TROUBLE(lambda x: -1.0 - x @ x), "jac": BALL["jac"]}

#: Functions of the user, and how a run asks them.
DOORS: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "plain": (value, gradient, {}),
    "relative": (value, gradient, {"eps": None, "rel_eps": 0.3}),
    "bundle": (value, gradient, {"method": "bundle"}),
    "bounds": (value, gradient, {"bounds": BOUNDS}),
    "tight bounds": (value, gradient, {"bounds": [(0.5, 1.0)] * 3}),
    "bounds, kinks": (kinked, kinked_gradient, {"bounds": [(0.0, 1.0)] * 3}),
    "equality": (value, gradient, {"constraints": SPHERE}),
    "equality, kinks": (kinked, kinked_gradient, {"constraints": SPHERE}),
    "inequality": (value, gradient, {"constraints": BALL, "bounds": BOUNDS}),
    "infeasible": (value, gradient, {"constraints": NOWHERE}),
    "feasible": (kinked, kinked_gradient, {"constraints": BALL, "options": {"feasible": True}}),
    "plus": (value, gradient, {"plus": gs.prox.l1(0.01)}),
    "plus and bounds": (value, gradient, {"plus": gs.prox.l1(0.01), "bounds": BOUNDS}),
    "plus a simplex": (kinked, kinked_gradient, {"plus": gs.prox.simplex()}),
    "values": (value, "2-point", {"max_calls": 200}),
    "values, bounds": (value, "2-point", {"max_calls": 200, "bounds": BOUNDS}),
    "constraint without gradient": (value, gradient, {"max_calls": 120, "constraints": BLIND}),
}


def run(door: str) -> gs.Result:
    fun, jac, options = DOORS[door]
    return gs.minimize(fun, START, jac, **{**QUESTION, **options})


def every_call(door: str) -> range:
    TROUBLE.set(0, BaseException())
    run(door)
    assert TROUBLE.calls > 10
    # Long runs: a prime step meets every kind of call, too.
    return range(1, TROUBLE.calls + 1, 1 if TROUBLE.calls <= 200 else 7)


@pytest.mark.parametrize("door", DOORS)
def test_ctrl_c_ends_the_run_with_its_best_point_at_every_call(door: str) -> None:
    fun, jac, options = DOORS[door]
    for at in every_call(door):
        TROUBLE.set(at, KeyboardInterrupt())
        res = run(door)
        assert res.stopped_by == "Ctrl-C"
        assert res.status is gs.Status.STOPPED or door == "infeasible"
        assert "Ctrl-C" in res.message or door == "infeasible"
        assert res.x.shape == START.shape
        for x, (low, high) in zip(res.x, options.get("bounds", [])):
            assert low <= x <= (np.inf if high is None else high)
        h = options["plus"].value(res.x) if "plus" in options else 0.0
        # f(x0) may not be known yet.
        assert res.fun == fun(res.x) + h or at <= 2
        if door in ("plain", "bundle", "bounds", "values", "plus"):
            assert at == 1 or res.fun <= fun(START) + options.get("plus", gs.prox.l1(0)).value(
                START
            )
        if res.success and at % 10 == 0:  # takes longer than the run
            assert res.certificate.verify(fun, jac, **res.asked.limits).ok


@pytest.mark.parametrize("door", DOORS)
def test_an_exception_that_comes_once_is_an_error_at_every_call(door: str) -> None:
    for at in every_call(door):
        broken = ZeroDivisionError("the licence server does not answer")
        TROUBLE.set(at, broken)
        with pytest.raises(gs.OracleError, match="licence server") as caught:
            run(door)
        assert caught.value.__cause__ is broken
        assert caught.value.point.shape == START.shape
        assert caught.value.call >= 1
        assert at <= 2 or caught.value.last_good.shape == START.shape


@pytest.mark.parametrize("always", [True, False])
def test_a_function_need_not_be_defined_outside_the_feasible_set(always: bool) -> None:
    """There it may fail, every time; where it fails now and then it is broken."""
    failed: set[bytes] = set()

    def log(x: Any) -> float:
        if x[0] <= 0.0 and (always or x.tobytes() not in failed):
            failed.add(x.tobytes())
            raise ValueError("math domain error")
        return float(np.log(abs(x[0])) + 3.0 * abs(x[1] - x[0]))

    def jac(x: Any) -> Any:
        side = 3.0 * np.sign(x[1] - x[0])
        return np.array([1.0 / x[0] - side, side])

    inside = {"type": "ineq", "fun": lambda x: x[0] - 0.5, "jac": lambda x: np.array([1.0, 0.0])}
    met = 0
    for start in ([8.0, 1.0], [5.0, 5.0]):
        failed.clear()
        try:
            res = gs.minimize(log, start, jac, constraints=inside, eps=0.1, delta=0.01, rng=0)
            assert res.success
            assert always or not failed
        except gs.OracleError as failure:
            assert failure.point.tobytes() in failed  # noqa: PT017
            assert not always
        met += bool(failed)
    assert met


#: Expressions do not fail; Ctrl-C may come while one is asked.
EXPRESSIONS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (WRITTEN, {}),
    "leaps": (NESTED, {}),
    "near": (WRITTEN, {"stationarity": "near"}),
    "near, bounds": (WRITTEN, {"bounds": BOUNDS, "stationarity": "near"}),
    "near, constraints": (WRITTEN, {"constraints": gs.sum(W) <= 0.5, "stationarity": "near"}),
    "near, plus": (WRITTEN, {"plus": gs.prox.l1(0.1), "stationarity": "near"}),
}


@pytest.mark.parametrize("door", EXPRESSIONS)
def test_ctrl_c_while_an_expression_is_asked(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    F, options = EXPRESSIONS[door]
    keyboard = Keyboard(monkeypatch)
    gs.minimize(F, START, **QUESTION, **options)
    for at in range(1, keyboard.calls + 1, 1 + keyboard.calls // 40):
        keyboard.calls, keyboard.at = 0, at
        res = gs.minimize(F, START, **QUESTION, **options)
        assert (res.status, res.stopped_by) == (gs.Status.STOPPED, "Ctrl-C")
        if res.success and at % 10 == 0:
            limits = {k: v for k, v in options.items() if k in ("bounds", "constraints")}
            whole = F if "plus" not in options else options["plus"].added_to(F)[0]
            assert res.certificate.verify(whole, **limits).ok


@pytest.mark.parametrize("where", ["search_near", "search_near_kkt"])
def test_ctrl_c_while_a_proof_is_searched_keeps_the_weaker_one(
    where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pressed(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"goldstein.construction.near.pivot.{where}", pressed)
    limits: dict[str, Any] = {} if where == "search_near" else {"bounds": BOUNDS}
    res = gs.minimize(WRITTEN, START, stationarity="near", **limits, **QUESTION)
    assert (res.status, res.stopped_by) == (gs.Status.STOPPED, "Ctrl-C")
    assert not res.success
    assert res.certificate.verify(WRITTEN, **limits).ok


@pytest.mark.parametrize("door", ["plain", "bounds", "equality", "plus"])
def test_a_second_ctrl_c_is_meant(door: str) -> None:
    """Every call from a certain one on: nobody waits for the last word."""
    fun, jac, options = DOORS[door]

    def pressed(asked: Any) -> Any:
        def call(x: Any) -> Any:
            if TROUBLE.calls >= 20:
                raise KeyboardInterrupt
            return asked(x)

        return call if callable(asked) else asked

    TROUBLE.set(0, BaseException())
    with pytest.raises(KeyboardInterrupt):
        gs.minimize(pressed(fun), START, pressed(jac), **{**QUESTION, **options})


@TROUBLE
def distance(x: Any) -> float:
    return float(abs(x[0]))


@pytest.mark.parametrize("limits", [{}, {"bounds": [(-1.0, 3.0)]}])
def test_starts_end_together_at_every_call(limits: dict[str, Any], tmp_path: Any) -> None:
    ask: dict[str, Any] = {"eps": 0.5, "delta": 0.5, "rng": 0, "n_jobs": 1, **limits}
    value, gradient, starts = distance, TROUBLE(np.sign), [[2.0], [-0.9]]
    TROUBLE.set(0, BaseException())
    whole = multistart(value, starts, gradient, **ask)
    for at in range(1, TROUBLE.calls + 1):
        TROUBLE.set(at, KeyboardInterrupt())
        folder = tmp_path / str(at)
        try:
            cut = multistart(value, starts, gradient, folder=folder, **ask)
            assert cut.results[0] is not None
            assert cut.results[1] is None or cut.results[1].stopped_by == "Ctrl-C"
        except KeyboardInterrupt:  # before anything was there
            assert not list(folder.glob("*.search"))
        TROUBLE.set(0, BaseException())
        again = multistart(value, starts, gradient, folder=folder, **ask)
        assert [r.fun for r in again.results] == [r.fun for r in whole.results]


def test_a_callback_that_stops_a_run_with_its_proof_in_hand() -> None:
    seen = []

    def enough(x: Any) -> bool:
        seen.append(bowl(x))
        return seen[-1] < 0.3

    res = gs.minimize(bowl, START, slope, **QUESTION, callback=enough)
    assert (res.status, res.stopped_by) == (gs.Status.STOPPED, "the callback")
    assert res.success
    assert res.certificate.verify(bowl, slope).ok
    whole = gs.minimize(bowl, START, slope, **QUESTION)
    assert (whole.status, whole.stopped_by) == (gs.Status.VERIFIED, None)
    assert whole.fun < 0.3
