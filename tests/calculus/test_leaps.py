"""Leaps on piecewise linear models: the model against brute force, and what it reaches."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.leaping import folds, squares, start

import goldstein as gs
from goldstein.construction import prox_linear as leaps
from goldstein.construction.prox_linear import Model, applies, head_start
from goldstein.oracles import CountedOracle


def nested(kind: int) -> gs.Expression:
    """Piecewise linear functions of two variables, convex and not, nested and not."""
    x, y = gs.Variable(2)
    return [
        gs.abs(x - 2 * gs.abs(y)) + 0.5 * gs.abs(x + y - 1),
        gs.max([x + y, gs.abs(x) - y, -x]) - 0.7 * gs.abs(y - 0.3),
        gs.abs(x) + gs.abs(y) - gs.max([x, y, 0.1 * x + 0.2]),
        gs.relu(gs.max([x, -y]) - 0.4) + 0.3 * gs.abs(gs.relu(y) - x),
    ][kind]


@pytest.mark.parametrize("kind", range(4))
def test_a_piecewise_linear_function_is_its_own_model(kind: int) -> None:
    F = nested(kind)
    grid = np.linspace(-1.0, 1.0, 81)
    for seed in range(4):
        x = np.random.default_rng(seed).uniform(-1, 1, 2)
        found = Model.at(F.evaluation, x).minimise(1.0)
        assert found is not None
        step, fall = found
        assert np.abs(step).max() <= 1.0 + 1e-9
        assert F.value(x) - fall == pytest.approx(F.value(x + step), abs=1e-5)
        lowest = min(F.value(x + np.array([a, b])) for a in grid for b in grid)
        assert F.value(x + step) <= lowest + 0.06 * (F.value(x) - lowest) + 1e-6


def test_a_model_touches_a_curved_function_at_its_point() -> None:
    F = squares(4)
    x = np.array([0.3, -0.7, 1.1, 0.2])
    for knots in (0, 6):
        gaps = []
        for reach in (1e-2, 1e-3):
            found = Model.at(F.evaluation, x, knots).minimise(reach)
            assert found is not None
            gaps.append(abs(F.value(x) - found[1] - F.value(x + found[0])))
        assert gaps[1] <= 0.05 * gaps[0] + 1e-9  # second order


@pytest.mark.parametrize("d", [2, 5, 8])
@pytest.mark.parametrize("function", [squares, folds])
def test_chebyshev_rosenbrock_is_solved(function, d: int) -> None:
    F = function(d)
    assert applies(F)
    start = np.ones(d)
    start[0] = -1.0
    starts = [start, *np.random.default_rng(d).uniform(-2, 2, (2, d))]
    for seed, x0 in enumerate(starts):
        res = gs.minimize(F, x0, eps=1e-3, delta=1e-3, rng=seed)
        assert res.success
        assert res.fun <= 1e-4
        assert res.certificate.verify(F).ok


def test_where_leaps_end_too_high_they_begin_again(monkeypatch: pytest.MonkeyPatch) -> None:
    F, x0 = squares(6), start(6, 19)  # 0.03 after the first round

    def end(rounds: int) -> float:
        monkeypatch.setattr(leaps, "ROUNDS", rounds)
        return F.value(head_start(F, CountedOracle(F, 5000), x0))

    reached = [end(rounds) for rounds in (1, 2, 4)]
    assert reached[0] >= reached[1] >= reached[2]
    assert reached[2] < 1e-4


def test_without_leaps_the_folds_win() -> None:
    F, start = folds(5), np.array([-1.0, 1.0, 1.0, 1.0, 1.0])
    res = gs.minimize(F, start, eps=1e-3, delta=1e-3, rng=0, options={"leaps": False})
    assert res.fun > 1e-3


def test_budgets_are_kept_and_f_never_rises() -> None:
    F = squares(6)
    for seed in range(3):
        x0 = np.random.default_rng(seed).uniform(-2, 2, 6)
        for limit in (1, 7, 40, 200):
            oracle = CountedOracle(F, limit)
            x = head_start(F, oracle, x0)
            assert oracle.calls <= limit
            assert F.value(x) <= F.value(x0)
        res = gs.minimize(F, x0, eps=1e-6, delta=1e-6, rng=0, max_calls=100)
        assert res.nfev + res.ngev <= 100


def test_where_it_does_not_apply() -> None:
    x = gs.Variable(3)
    assert not applies(gs.sum(gs.abs(x)))
    assert not applies(gs.sum_squares(x))
    assert not applies(gs.norm2(x) + gs.abs(x[0] * x[1]))
    assert not applies(gs.sum(gs.abs(gs.Variable(200) ** 2 - 1.0)))
    assert not applies(CountedOracle(squares(3)))
