"""Kinks of single variables: a few dozen gradients prove any number of them."""

import tracemalloc

import numpy as np
import pytest

import goldstein as gs
from goldstein.oracles import CountedOracle, as_oracle
from goldstein.solvers.coordinate_sweep import AGAIN, FIRST, REACH, CoordinateSides
from goldstein.solvers.gather import SideExpansion, longest_together

D, EPS, DELTA = 2000, 1e-2, 1e-2


def lasso(d, seed=0):
    """|A x - b|^2 / 2 + |x|_1 with A nearly the identity; half of the minimiser is zero."""
    rng = np.random.default_rng(seed)
    b = rng.uniform(-2.0, 2.0, d)

    def stretched(x):
        return x + 0.2 * np.roll(x, 1)

    def value(x):
        r = stretched(x) - b
        return float(0.5 * r @ r + np.abs(x).sum())

    def gradient(x):
        r = stretched(x) - b
        return r + 0.2 * np.roll(r, -1) + np.sign(x)

    return value, gradient


class Placed:
    """Stands for the state of a search: keeps what is placed around x."""

    eps, delta, most_gradients = EPS, DELTA, 100
    offered = added = 0

    def __init__(self):
        self.points, self.rows = [], []

    def bundle_size(self):
        return len(self.rows)

    def remember_found(self):
        pass

    def add_found(self):
        self.points.append(self.point)
        self.rows.append(self.found)


def placed(gradient, x, monkeypatch, steps=100):
    """Let the sides of x be looked at; return the state, or None where they were given up."""
    left = []
    monkeypatch.setattr(
        "goldstein.solvers.coordinate_sweep.leave_to_proof", lambda *given: left.append(given)
    )
    monkeypatch.setattr("goldstein.solvers.coordinate_sweep.begin_afresh", Placed.__init__)
    s = Placed()
    sides = CoordinateSides(x, DELTA, np.random.default_rng(1))
    oracle = CountedOracle(as_oracle(lambda x: 0.0, gradient))
    while not sides.step(oracle, s):
        assert oracle.calls < steps
    return s if left else None


@pytest.mark.parametrize("bent", [1.0, -1.0])
def test_gradients_cancel_whatever_the_multipliers(bent, monkeypatch):
    rng = np.random.default_rng(0)
    pull = rng.uniform(-1.0, 1.0, D)  # kinks up or down, each with a multiplier of its own
    s = placed(lambda x: bent * np.sign(x) + pull, np.zeros(D), monkeypatch)
    rows = np.array(s.rows)
    assert len(rows) <= 40
    assert all(np.linalg.norm(y) <= DELTA for y in s.points)
    assert np.linalg.norm(gs.numerics.hull.min_norm_weights(rows) @ rows) <= EPS


def test_sides_that_depend_on_those_of_neighbours_are_learned(monkeypatch):
    # Three pieces of every term meet at the minimum of chained CB3 I: below it, a partial
    # derivative is that of one piece or another, as its neighbour goes.
    problem = gs.problems.get("chained_cb3_1", d=D)
    noise = 1e-4 * DELTA / np.sqrt(D) * np.random.default_rng(2).standard_normal(D)
    s = placed(problem.gradient, np.ones(D) + noise, monkeypatch)
    rows = np.array(s.rows)
    assert len(rows) <= 40
    assert np.linalg.norm(gs.numerics.hull.min_norm_weights(rows) @ rows) <= 0.1 * EPS


def test_where_neighbours_decide_alone_the_sides_are_given_up(monkeypatch):
    def gradient(x):  # the sign of the next variable, not of one's own
        return np.sign(np.roll(x, 1)) + 0.5

    assert placed(gradient, np.zeros(D), monkeypatch) is None


def test_a_kink_at_any_distance_does_no_harm(monkeypatch):
    # Some are crossed by chance; those that seem not to exist must not be met later on.
    unit = REACH * DELTA / np.sqrt(D)
    x = np.zeros(D)
    x[:400] = unit * np.linspace(0.9 * FIRST[0], 1.1 * AGAIN[1], 400)
    pull = np.where(x > 0.0, -1.0, 0.3)  # flat above the kinks: no share for what is below
    s = placed(lambda x: np.sign(x) + pull, x, monkeypatch)
    rows = np.array(s.rows)
    assert np.linalg.norm(gs.numerics.hull.min_norm_weights(rows) @ rows) <= EPS


def test_where_variables_do_not_cancel_that_is_seen_after_two_gradients(monkeypatch):
    assert placed(lambda x: np.sign(x) + 3.0, np.zeros(D), monkeypatch, steps=3) is None


def test_a_lasso_is_certified_by_few_gradients_and_not_without_sides(monkeypatch):
    value, gradient = lasso(D)
    res = gs.minimize(value, np.ones(D), gradient, eps=EPS, delta=DELTA, rng=0)
    assert res.success
    assert len(res.certificate.weights) <= 40
    assert all(res.certificate.verify(value, gradient, seed=seed).ok for seed in (5, 6, 7))
    monkeypatch.setattr(CoordinateSides, "step", lambda *_: True)
    calls = res.nfev + res.ngev
    res = gs.minimize(value, np.ones(D), gradient, eps=EPS, delta=DELTA, rng=0, max_calls=calls)
    assert not res.success


@pytest.mark.slow
def test_it_stays_within_the_memory_that_is_allowed():
    value, gradient = lasso(20_000)
    tracemalloc.start()
    try:
        res = gs.minimize(
            value, np.ones(20_000), gradient, eps=EPS, delta=DELTA, rng=0,
            options={"max_memory": 60_000_000},
        )  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert res.success
    assert peak <= 60_000_000


@pytest.mark.parametrize("most", [3, 12, 40])
def test_what_is_missing_is_less_than_the_last_weight(most):
    share = np.linspace(0.0, 1.0, 501)
    plan, got = SideExpansion(share, 1.0, 1e-4, most), np.zeros(501)
    weights = []
    while not plan.is_over:
        second = plan.second()
        weights.append(plan.weight)
        got += plan.weight * second
        plan.told(second)
    assert len(weights) <= most
    assert np.isclose(sum(weights), 1.0)
    assert np.abs(got - share).max() <= weights[-1] + 1e-12


def test_the_shortest_lengths_together_stay_within_the_limit():
    lengths = np.abs(np.random.default_rng(4).standard_normal(300))
    longest = longest_together(lengths, 2.0)
    inside = lengths[lengths <= longest]
    assert np.linalg.norm(inside) <= 2.0
    following = lengths[lengths > longest].min()
    assert np.linalg.norm([*inside, following]) > 2.0
    assert longest_together(lengths, 0.0) == 0.0
