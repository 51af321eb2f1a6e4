"""The parts of the theorem behind AdamO2NC (docs/adam_o2nc.md), one by one."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.errors import InputError
from goldstein.solvers.stochastic_schedules import (
    FORESIGHT,
    AdamO2NCSchedule,
    adam_o2nc_practice,
    adam_o2nc_theory,
    regret_constant,
    window_of,
)


def clipped_adam(gradients, b1, b2, kappa, foresight):
    """The learner's choices in one coordinate, with D = 1; the last is the one after the end."""
    s = v = 0.0
    choices = [0.0]
    for g in gradients:
        s, v = b1 * s + g, b2 * v + g * g
        ratio = kappa * (s + foresight * g) / math.sqrt(v) if v > 0.0 else 0.0
        choices.append(-min(1.0, max(-1.0, ratio)))
    return choices


def adversary(kind, length, rng, learner):
    """Sequences that hurt: noise, bursts, flips, and one that answers the learner."""
    if kind == "noise":
        return list(rng.normal(size=length))
    if kind == "bursts":
        return list(rng.normal(size=length) * 10.0 ** rng.uniform(-6, 6, size=length))
    if kind == "one way, then back":
        turn = int(rng.integers(1, length + 1))
        return [1.0] * turn + [-float(rng.uniform(0, 5))] * (length - turn)
    if kind == "to and fro":  # what was just seen never comes again
        return [(-1.0) ** t * 10.0 ** float(rng.uniform(0.0, 0.3)) for t in range(length)]
    gradients: list[float] = []
    for _ in range(length):  # push where the learner stands
        here = clipped_adam(gradients, *learner)[-1]
        gradients.append(float(rng.uniform(0.1, 3.0)) * (1.0 if here >= 0 else -1.0))
    return gradients


@settings(max_examples=300, deadline=None)
@given(
    b1=st.floats(0.0, 0.999),
    extra=st.floats(0.0, 1.0),
    kappa=st.floats(0.05, 20.0),
    foresight=st.one_of(st.sampled_from([0.0, FORESIGHT]), st.floats(0.0, 5.0)),
    length=st.integers(1, 60),
    kind=st.sampled_from(["noise", "bursts", "one way, then back", "to and fro", "answers"]),
    seed=st.integers(0, 10**6),
)
def test_regret_of_clipped_adam(b1, extra, kappa, foresight, length, kind, seed) -> None:
    """sum b1^(T-t) g_t (x_t - u) <= sqrt(V)/(2 kappa) + C sqrt(sum b1^(2(T-t)) g_t^2), |u| <= 1."""
    b2 = b1**2 + extra * (0.9999 - b1**2)
    learner = b1, b2, kappa, foresight
    g = adversary(kind, length, np.random.default_rng(seed), learner)
    regret, bound = regret_and_bound(g, *learner)
    assert regret <= bound * (1 + 1e-9)


def regret_and_bound(g, b1, b2, kappa, foresight=0.0):
    """The regret against the best |u| <= 1, and what the theorem allows."""
    last = len(g) - 1
    losses = [b1 ** (last - t) * a for t, a in enumerate(g)]
    choices = clipped_adam(g, b1, b2, kappa, foresight)
    paid = math.fsum(w * x for w, x in zip(losses, choices, strict=False))
    squares = math.fsum(b2 ** (last - t) * a * a for t, a in enumerate(g))
    constant = regret_constant(kappa, foresight, excess=0.0)
    return paid + abs(math.fsum(losses)), math.sqrt(squares) / (2 * kappa) + constant * math.hypot(
        *losses
    )


def test_the_bound_is_not_empty() -> None:
    """A turning adversary costs half of what is allowed."""
    worst = 0.0
    for turn in range(1, 40):
        for size in (0.5, 1.0, 2.0, 4.0, 8.0):
            for back in (1, turn // 2 + 1, turn):
                regret, bound = regret_and_bound([1.0] * turn + [-size] * back, 0.999, 0.998001, 1)
                worst = max(worst, regret / bound)
    assert 0.5 < worst <= 1.0


def oscillates(b: float, lag: float, foresight: float, h: float) -> bool:
    """Does gradient h x, taken `lag` steps behind x, make x <- x - (S + foresight g) grow?"""
    g = np.array([h, -lag * h, 0.0])  # of (x, last step, S)
    s = np.array([0.0, 0.0, b]) + g
    step = -(s + foresight * g)
    matrix = np.array([np.array([1.0, 0.0, 0.0]) + step, step, s])
    return bool(np.abs(np.linalg.eigvals(matrix)).max() > 1.0)


@pytest.mark.parametrize("b", [0.8, 0.9, 0.95, 0.99])
def test_foresight_makes_up_for_gradients_behind_the_iterate(b: float) -> None:
    """Without it the longest stable step is 2 (1 - b) / h, with it 0.58 / h for all b."""
    assert not oscillates(b, 0.5, 0.0, 1.99 * (1 - b))
    assert oscillates(b, 0.5, 0.0, 2.01 * (1 - b))
    assert not any(oscillates(b, 0.5, FORESIGHT, h) for h in np.linspace(0.001, 0.58, 400))
    assert oscillates(b, 0.5, FORESIGHT, 0.61)


def test_the_squares_need_a_long_enough_memory() -> None:
    """With b2 < b1^2 the learner follows the leader and pays half of every flip."""
    flips = [0.5, *[(-1.0) ** (t + 1) for t in range(300)]]
    regret, bound = regret_and_bound(flips, 0.9999, 0.0, 1.0)
    assert regret > 2 * bound
    regret, bound = regret_and_bound(flips, 0.9999, 0.9999**2, 1.0)
    assert regret <= bound


fractions = st.fractions(min_value=-5, max_value=5, max_denominator=50)
shares = st.fractions(min_value=0, max_value=Fraction(99, 100), max_denominator=100)


@settings(max_examples=60, deadline=None)
@given(b=shares, a=st.lists(fractions, min_size=1, max_size=12))
def test_discounted_sums_add_up_to_the_whole(b: Fraction, a: list[Fraction]) -> None:
    """(1-b) sum_t sum_{s<=t} b^(t-s) a_s + b sum_s b^(T-s) a_s = sum_s a_s, exactly."""
    inner = [sum(b ** (t - s) * a[s] for s in range(t + 1)) for t in range(len(a))]
    assert (1 - b) * sum(inner) + b * inner[-1] == sum(a)


@settings(max_examples=40, deadline=None)
@given(b=shares, steps=st.integers(1, 25))
def test_output_law_and_weights_are_probabilities(b: Fraction, steps: int) -> None:
    law = output_law(b, steps)
    assert sum(law) == 1
    assert min(law) >= 0
    for t in range(1, steps + 1):
        assert sum((1 - b) * b ** (t - s) / (1 - b**t) for s in range(1, t + 1)) == 1


def output_law(b, steps):
    return [(1 - b**t) / steps for t in range(1, steps)] + [(1 - b**steps) / ((1 - b) * steps)]


def test_output_step_has_the_law_of_the_theorem() -> None:
    schedule = AdamO2NCSchedule(0.8, 1.0, 5, 10)
    drawn = np.bincount([schedule.output_step(seed) for seed in range(8000)], minlength=11)[1:]
    law = np.array(output_law(0.8, 10))
    assert np.abs(drawn / 8000 - law).max() < 4 * math.sqrt(0.25 / 8000)


@settings(max_examples=40, deadline=None)
@given(
    b=st.fractions(min_value=0, max_value=Fraction(9, 10), max_denominator=20),
    steps=st.lists(
        st.tuples(
            st.fractions(min_value=-1, max_value=1, max_denominator=9),
            st.fractions(min_value=0, max_value=1, max_denominator=9),
        ),
        min_size=1,
        max_size=20,
    ),
)
def test_query_points_near_the_iterate(b: Fraction, steps) -> None:
    """Steps of at most 1: |y_s - w_t| <= t - s + 1; the mean square is <= (1 + b) / (1 - b)^2."""
    w, queries = Fraction(0), []
    for delta, position in steps:
        queries.append(w + position * delta)
        w += delta
    t = len(steps)
    weights = [(1 - b) * b ** (t - s) / (1 - b**t) for s in range(1, t + 1)]
    assert all(abs(y - w) <= t - s for s, y in enumerate(queries))
    spread = sum(p * (y - w) ** 2 for p, y in zip(weights, queries, strict=True))
    assert spread <= (1 + b) / (1 - b) ** 2
    mean = sum(p * y for p, y in zip(weights, queries, strict=True))
    around = sum(p * (y - mean) ** 2 for p, y in zip(weights, queries, strict=True))
    assert around <= 2 / (1 - b) ** 2


@settings(max_examples=60, deadline=None)
@given(
    eps=st.floats(0.01, 1.0), delta=st.floats(1e-3, 10.0),
    gap=st.floats(1e-3, 100.0), noise=st.floats(0.0, 1.0),
)  # fmt: skip
def test_theory_schedule_meets_its_promise(eps, delta, gap, noise) -> None:
    s = adam_o2nc_theory(eps, delta, scale=1.0, gap=gap, noise=noise)
    assert s.radius <= delta * (1 + 1e-12)
    assert s.bound(gap=gap, scale=1.0, noise=noise) <= eps / 2 * (1 + 1e-9)
    cut = s.averaging**s.window  # weight of what is older than the window
    assert (eps / 2 + cut) / (1 - cut) <= eps * (1 + 1e-9)


def tent(x):
    """sum |x_i| - 1.5 min(|x_1 - x_2|, 1): kinks, no convexity; inf over the plane is 0."""
    value = np.abs(x).sum() - 1.5 * min(abs(x[0] - x[1]), 1.0) + 1.5
    g = np.sign(x)
    if abs(x[0] - x[1]) < 1.0:
        g = g - 1.5 * np.sign(x[0] - x[1]) * np.array([1.0, -1.0])
    return value, g


@pytest.mark.parametrize("noise", [0.0, 2.0])
@pytest.mark.parametrize(("squares", "foresight"), [(0.81, 0.0), (0.9, FORESIGHT)])
def test_the_bound_holds_on_a_kinked_function(noise, squares, foresight) -> None:
    """Expectation over tau exactly, over noise and positions by the mean of independent runs."""
    b, d, steps = 0.9, 0.01, 600
    found = []
    start = np.array([0.7, 0.4])
    for seed in range(8):
        rng = np.random.default_rng(seed)
        w, delta, s, v = start + 1e-6 * rng.normal(size=2), np.zeros(2), np.zeros(2), np.zeros(2)
        average, norms = np.zeros(2), []
        for t in range(1, steps + 1):
            true = tent(w + rng.random() * delta)[1]
            g = true + noise * rng.normal(size=2)
            w = w + delta
            s, v = b * s + g, squares * v + g * g
            delta = -d * np.clip((s + foresight * g) / np.sqrt(v), -1, 1)
            average = b * average + (1 - b) * true
            norms.append(np.abs(average).sum() / (1 - b**t))
        found.append(np.dot(output_law(b, steps), norms))
    scale = 2 * math.hypot(2.5, noise)
    schedule = AdamO2NCSchedule(b, d, 1, steps, squares=squares, foresight=foresight)
    bound = schedule.bound(gap=tent(start)[0], scale=scale, noise=2 * noise)
    assert np.mean(found) <= bound
    assert bound < 5 * scale  # no promise much longer than a gradient


def test_practice_and_bad_settings() -> None:
    s = adam_o2nc_practice(0.01, 100)
    assert (s.betas, s.foresight) == ((0.9, 0.9), FORESIGHT)
    assert AdamO2NCSchedule(0.9, 1.0, 1, 1).betas == (0.9, 0.9**2)
    assert [s.shrink(0), s.shrink(50), s.shrink(200)] == [1.0, 0.5, 0.0]
    assert s.averaging**s.window <= 0.05 < s.averaging ** (s.window - 1)
    for call, word in (
        (lambda: adam_o2nc_theory(2.0, 1.0, scale=1.0, gap=1.0), "every point qualifies"),
        (lambda: adam_o2nc_theory(0.1, 0.0, scale=1.0, gap=1.0), "delta"),
        (lambda: adam_o2nc_theory(0.1, 0.1, scale=1.0, gap=1.0, noise=2.0), "noise"),
        (lambda: adam_o2nc_practice(0.0, 10), "lr"),
        (lambda: adam_o2nc_practice(0.1, 0), "steps"),
        (lambda: window_of(1.0), "averaging"),
        (lambda: regret_constant(0.0), "kappa"),
        (lambda: regret_constant(1.0, -1.0), "foresight"),
    ):
        with pytest.raises(InputError, match=word):
            call()
