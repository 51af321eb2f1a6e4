"""Ctrl-C and callbacks: a stop is never lost, and what was proved by then remains proved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.keyboard import Keyboard

import goldstein as gs

START = np.array([2.0, -1.5, 1.0])
QUESTION: dict[str, Any] = {"eps": 0.3, "delta": 0.1, "rng": 0}


def bowl(x: Any) -> float:
    """A kink in a long bowl: certified early, and still falling."""
    return float(abs(x[0]) + 0.05 * np.abs(x[1:] - 3.0) @ np.abs(x[1:] - 3.0))


def slope(x: Any) -> Any:
    return np.array([np.sign(x[0]), *(0.1 * (x[1:] - 3.0))])


W = gs.Variable(3)
WRITTEN = gs.norm1(W) + 0.05 * gs.sum_squares(W - 3.0)


DOORS: dict[str, tuple[Any, dict[str, Any]]] = {
    "plain": (bowl, {}),
    "near": (WRITTEN, {"stationarity": "near"}),
    "bounds": (bowl, {"bounds": [(-1.0, None)] * 3}),
    "near bounds": (WRITTEN, {"bounds": [(-1.0, None)] * 3, "stationarity": "near"}),
    "constraints": (
        bowl,
        {"constraints": {"type": "eq", "fun": lambda x: x @ x - 4.0, "jac": lambda x: 2.0 * x}},
    ),
    "plus": (bowl, {"plus": gs.prox.l1(0.01)}),
    "plus and box": (bowl, {"plus": gs.prox.box(-1.0, 2.0)}),
    "values": (bowl, {"method": "values", "max_calls": 3000}),
}


LIMITS = ("bounds", "constraints", "plus")


@pytest.mark.parametrize("door", DOORS)
def test_ctrl_c_is_never_lost(door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fun, options = DOORS[door]
    jac = [] if isinstance(fun, gs.Expression) else [slope]
    limits = {name: part for name, part in options.items() if name in LIMITS}
    keyboard = Keyboard(monkeypatch)
    gs.minimize(fun, START, *jac, **QUESTION, **options)
    whole, returned = keyboard.calls, 0
    for at in np.unique(np.linspace(1, whole, 12).astype(int)):
        keyboard.calls, keyboard.at = 0, at
        try:
            res = gs.minimize(fun, START, *jac, **QUESTION, **options)
        except KeyboardInterrupt:
            continue  # while something else than the search was going on
        returned += 1
        assert res.status is gs.Status.STOPPED
        assert res.stopped_by == "Ctrl-C"
        assert "Ctrl-C" in res.message
        assert not res.success or res.certificate.eps <= QUESTION["eps"]
        if res.success:
            assert res.certificate.verify(fun, *jac, **limits).ok
    assert returned > 3


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
