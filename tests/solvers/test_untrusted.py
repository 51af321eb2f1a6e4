"""Solvers are untrusted: whatever one hands over, no false claim comes out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.functions import trap, trap_gradient

import goldstein as gs
from goldstein.solvers import Evidence, Request, Solver, State


class Liar(Solver):
    """Offers the same evidence again and again, and says that it was drawn at random."""

    name = "liar"

    def __init__(self, points: Any, weights: Any = None, x: Any = None, gradients: Any = None):
        self.points = np.array(points, dtype=float)
        self.weights = np.ones(len(self.points)) if weights is None else np.array(weights)
        self.x, self.gradients = x, gradients

    def start(self, oracle: Any, x0: np.ndarray, request: Request) -> State:
        return State(x=x0.copy(), fx=oracle.value(x0))

    def offer(self, state: State) -> Evidence:
        safe = np.ones(len(self.points), dtype=bool)
        x = state.x if self.x is None else np.array(self.x)
        return Evidence(x, self.points, self.weights, safe, self.gradients)

    def step(self, oracle: Any, state: State, request: Request) -> None:
        state.bound, state.evidence = 0.0, self.offer(state)

    def best_evidence(self, state: State) -> Evidence:
        return self.offer(state)


ASK: dict[str, Any] = {"eps": 0.5, "delta": 0.1, "rng": 0, "max_calls": 60}


@pytest.mark.parametrize(
    "liar",
    [
        Liar([[0.0]]),  # on the kink
        Liar([[0.0], [0.05], [-0.05]], [1.0, 0.0, 0.0]),
        Liar([[0.0]], gradients=np.array([[0.0]])),
        Liar([[0.05]], gradients=np.array([[0.0]])),  # an invented gradient
        Liar([[0.05], [0.02]], [5.0, -4.0]),  # weights that are none
        Liar([[np.nan]]),
        Liar(np.zeros((0, 1))),
    ],
)
def test_no_lie_becomes_a_success(liar: Liar) -> None:
    try:
        res = gs.minimize(trap, [0.0], trap_gradient, method=liar, **ASK)
    except gs.GoldsteinError:
        return
    assert not res.success
    if res.certificate is not None and res.certificate.eps <= 0.5:
        assert not res.certificate.verify(trap, trap_gradient).ok


def test_evidence_far_away_or_about_another_point_does_not_count() -> None:
    def f(x: np.ndarray) -> float:
        return float(abs(x[0]))

    # Perfect evidence at 0, but the run stands at 3.
    res = gs.minimize(f, [3.0], np.sign, method=Liar([[0.05], [-0.05]], x=[0.0]), **ASK)
    assert not res.success
    honest = gs.minimize(f, [0.0], np.sign, method=Liar([[0.05], [-0.05]]), **ASK)
    assert honest.success
    assert np.array_equal(honest.certificate.x, honest.x)


def test_honest_points_are_moved_by_a_hair_only() -> None:
    points = np.array([[0.05], [-0.05]])
    res = gs.minimize(lambda x: abs(x[0]), [0.0], np.sign, method=Liar(points), **ASK)
    moved = np.abs(res.certificate.points - points)
    assert 0 < moved.min() <= moved.max() <= 1e-9
    on_the_rim = gs.minimize(
        lambda x: abs(x[0]), [0.0], np.sign, method=Liar([[0.1], [-0.1]]), **ASK
    )
    assert on_the_rim.success
    assert on_the_rim.certificate.delta <= 0.1
