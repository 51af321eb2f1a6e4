"""The scale of the metric: gaps from falls, BFGS for a square, and what it is good for."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import goldstein as gs
from goldstein.solvers.logic import scale
from goldstein.solvers.metric import DenseMetric, SmallMetric
from goldstein.solvers.tuning import TUNING


def searcher(**state):
    """Return what `scale` knows of a search, with a dense metric in three variables."""
    blank = dict.fromkeys(("whole_fall", "smooth_fall", "smoother_fall", "gap_share"), 0.0)
    return SimpleNamespace(**{**blank, **state})


@given(st.floats(0.1, 0.9), st.floats(1e-6, 1e6))
def test_gap_is_what_geometric_falls_add_up_to(rate, first):
    n, falls = searcher(), first * rate ** np.arange(200)
    f = falls.sum()
    for fall in falls[:60]:
        n.fx, n.best_value = f, f - fall
        scale._note_fall(n)
        n.whole_fall += fall
        f -= fall
    left = first * rate**60 / (1.0 - rate)
    assert scale._gap(n) == pytest.approx(left, rel=1e-3)


def test_falls_that_do_not_shrink_have_no_end():
    n = searcher(fx=2.0, best_value=1.0)
    for _ in range(5):
        scale._note_fall(n)
        n.whole_fall += 1.0
    assert scale._gap(n) == math.inf


@pytest.mark.parametrize("kind", [DenseMetric, SmallMetric])
def test_following_the_gap_is_bfgs_for_the_square(kind):
    """H / r with y = g' - r g is BFGS for (f - f*)^2 / 2, times the new gap."""
    rng = np.random.default_rng(3)
    g, new = rng.standard_normal((2, 6))
    gap, new_gap = 0.7, 0.3
    metric = kind(np.zeros((1, 6)))
    seed_step, seed_change = rng.standard_normal((2, 6))
    seed_change *= math.copysign(1.0, seed_step @ seed_change)
    metric.update(seed_step, seed_change, float(seed_step @ seed_change), np.zeros(1))
    before = np.array([metric.apply(e) for e in np.eye(6)])
    s = -0.4 * metric.apply(g)
    if s @ (new_gap * new - gap * g) <= 0:
        new = -new
    ratio = gap / new_gap
    metric.scale(1.0 / ratio)
    metric.apply(g)
    y = new - ratio * g
    metric.update(s, y, float(s @ y), np.zeros(1))
    after = np.array([metric.apply(e) for e in np.eye(6)])
    # The textbook update of the inverse Hessian of the square, whose gradients are gap times g.
    h, change = before / gap, new_gap * new - gap * g
    v = np.eye(6) - np.outer(s, change) / (s @ change)
    expected = v @ h @ v.T + np.outer(s, s) / (s @ change)
    assert after == pytest.approx(new_gap * expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", [DenseMetric, SmallMetric])
def test_metric_comes_back_as_it_was(kind):
    rng = np.random.default_rng(4)
    metric = kind(np.zeros((1, 5)))
    step = rng.standard_normal(5)
    metric.update(step, 2.0 * step, 2.0 * float(step @ step), np.zeros(1))
    g = rng.standard_normal(5)
    before = metric.apply(g).copy()
    metric.keep()
    metric.scale(0.1)
    metric.update(-metric.apply(g), g, 1.0, np.zeros(1))
    assert not np.allclose(metric.apply(g), before)
    metric.restore()
    assert np.array_equal(metric.apply(g), before)


@pytest.mark.parametrize(("share", "factor"), [(0.2, None), (0.6, 2.5), (0.79, TUNING.grow_most)])
def test_metric_grows_where_slope_is_left(share, factor):
    factors = []
    n = SimpleNamespace(
        limited=False, scaled=True, has_model=True, steady=True, attempt=0, best_trial=1.0,
        slope=-2.0, slope_found=lambda: -2.0 * share, scale_metric=factors.append,
    )  # fmt: skip
    scale._let_grow(n)
    assert factors == ([] if factor is None else [pytest.approx(factor)])


def calls_to_recover(seed):
    """Count the calls to 1e-6 on an l1 loss with five times as many data as unknowns."""
    rng = np.random.default_rng(seed)
    rows, hidden = rng.standard_normal((150, 30)), rng.standard_normal(30)
    data = (rows @ hidden) ** 2
    lowest, calls = math.inf, 0

    def loss(x):
        return float(np.abs((rows @ x) ** 2 - data).mean())

    def fun(x):
        nonlocal lowest, calls
        calls += lowest > goal
        lowest = min(lowest, loss(x))
        return loss(x)

    def jac(x):
        nonlocal calls
        calls += lowest > goal
        image = rows @ x
        return 2.0 / 150 * (np.sign(image**2 - data) * image) @ rows

    start = hidden + 0.2 * rng.standard_normal(30)
    goal = 1e-6 * loss(start)
    options = {"go_on": False, "compiled": False}
    gs.minimize(fun, start, jac, eps=1e-6, delta=1e-6, rng=seed, options=options)
    assert lowest <= goal
    return calls


def test_following_the_gap_pays_for_recoveries(monkeypatch):
    """A sharp minimum with kinks in all directions: what it is for."""
    follows = [calls_to_recover(seed) for seed in range(10)]
    monkeypatch.setattr(scale, "TUNING", TUNING._replace(home_after=10**9))
    does_not = [calls_to_recover(seed) for seed in range(10)]
    assert np.log(follows).mean() <= np.log(does_not).mean() + math.log(0.85)
