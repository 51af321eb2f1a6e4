"""What the paper proves about Algorithm 1, reproduced by simulation.

Corrected constants: see docs/errata.md and goldstein.solvers.ball_state.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.functions import largest_of
from tests.theorems import contraction, oracle_bound

import goldstein as gs
from goldstein.checker.rounding import distance_upper
from goldstein.numerics.streams import conic_point, stream, trial_point, uniform_in_ball
from goldstein.solvers import ball_state

Gradient = Callable[[np.ndarray], np.ndarray]


# --- the constants (facts 1 to 6 of the theory) --------------------------------------------------


def test_facts_1_to_3_beta_and_the_contraction() -> None:
    assert ball_state.averaging_weight(1.0) == 0.5
    assert ball_state.averaging_weight(0.5) == pytest.approx(52 / 59, rel=1e-15)
    assert ball_state.averaging_weight(0.25) == pytest.approx(32 / 33, rel=1e-15)
    assert contraction(1.0) == pytest.approx(3 / 14, rel=1e-15)
    grid = np.linspace(1e-6, 1.0, 200_001)
    values = np.array([contraction(q) for q in grid[::20]])
    assert values.min() == pytest.approx(0.212316, abs=1e-6)
    assert grid[::20][values.argmin()] == pytest.approx(0.8623, abs=1e-3)
    assert values.min() > 1 / 5
    # Beyond L the weight is useless: negative, then a pole (erratum E13).
    assert ball_state.averaging_weight(1.5) == pytest.approx(-0.8, rel=1e-12)
    assert ball_state.averaging_weight(1.9) == pytest.approx(10.9881, abs=1e-4)


@given(st.floats(1e-6, 1.0))
def test_beta_minimises_the_bound_of_the_proof(q: float) -> None:
    """h(b) = b^2 q^2 + (1-b)^2 + 2 b (1-b) q^2 / (2 (1 - q/8)), in units of L^2."""

    def bound(b: float) -> float:
        return b * b * q * q + (1 - b) ** 2 + b * (1 - b) * q * q / (1 - q / 8)

    beta = ball_state.averaging_weight(q)
    assert 0.0 <= beta <= 1.0
    assert bound(beta) <= min(bound(beta - 1e-3), bound(beta + 1e-3))
    assert bound(beta) == pytest.approx((1 - contraction(q) * q * q) * q * q, rel=1e-9)


def test_facts_5_and_6_the_schedules() -> None:
    T = ball_state.descent_steps(1.0, 0.1, 0.1)
    assert (ball_state.steps_per_round(1, 0.1, 1 / 16), T, ball_state.rounds(T, 0.01, 1 / 16)) == (
        8000, 400, 4,
    )  # fmt: skip
    assert (ball_state.steps_per_round(1, 0.1), ball_state.rounds(T, 0.01)) == (1360, 11)
    assert oracle_bound(1, 1, 0.1, 0.1, 0.01, 1 / 16) == (12_800_001, 12_800_000)
    # The cheap failure level is cheaper, and no level beats it by much.
    costs = {
        p: oracle_bound(1, 1, 0.1, 0.1, 0.01, p)[1] for p in (1 / 16, 1 / math.e, 0.2, 0.5, 0.7)
    }
    assert costs[1 / math.e] < 0.5 * costs[1 / 16]
    assert costs[1 / math.e] <= 1.1 * min(costs.values())


def test_degenerate_schedules_are_at_least_one() -> None:
    assert ball_state.descent_steps(0.0, 0.1, 0.1) == 1
    assert ball_state.steps_per_round(1e-9, 1.0) == 1
    assert ball_state.rounds(1, 0.9) == 1


# --- E|m_k|^2 <= 5 L^2 / (k + 4) while descent fails ---------------------------------------------


def piecewise(
    rng: np.random.Generator, dim: int, count: int
) -> tuple[Callable[..., float], Gradient]:
    """A random max of linear functions of slope <= 1 through a point where 0 is in the hull."""
    rows = rng.standard_normal((count, dim))
    rows -= rows.mean(axis=0)
    rows /= np.linalg.norm(rows, axis=1).max()
    return largest_of(rows)


def one_round(
    f: Callable[..., float], g: Gradient, dim: int, steps: int, rng: np.random.Generator, rule: str
) -> np.ndarray:
    """|m_k|^2 along one round at x = 0 with L = delta = 1; 0 after a descent step was possible."""
    x, delta = np.zeros(dim), 1.0
    m = g(uniform_in_ball(rng, x, delta))
    squares = np.zeros(steps)
    for k in range(steps):
        norm = float(np.linalg.norm(m))
        squares[k] = norm**2
        if norm < 1e-9:
            break
        if f(trial_point(x, m, norm, delta, norm)) - f(x) < -0.25 * delta * norm:
            squares[k] = 0.0  # the theorem speaks of failed descent only
            break
        new = g(conic_point(rng, x, m, norm, delta, norm))
        if rule == "average":
            beta = ball_state.averaging_weight(norm)
        else:  # the shortest vector of the segment, as in Bundle-PINGD
            beta = float(np.clip(new @ (new - m) / max((m - new) @ (m - new), 1e-300), 0, 1))
        m = beta * m + (1 - beta) * new
    return squares


@pytest.mark.parametrize("rule", ["average", "segment"])
@pytest.mark.parametrize("dim", [1, 2, 10])
def test_the_average_shrinks_as_proved(dim: int, rule: str) -> None:
    steps, repeats = 60, 150
    squares = np.zeros((repeats, steps))
    for r in range(repeats):
        rng = stream(11, r, f"theory {dim}")
        f, g = piecewise(rng, dim, 3 * dim + 1)
        squares[r] = one_round(f, g, dim, steps, rng, rule)
    bound = 5.0 / (np.arange(1, steps + 1) + 4)
    mean = squares.mean(axis=0)
    noise = squares.std(axis=0) / math.sqrt(repeats)
    assert (mean <= bound + 3 * noise).all()
    assert mean[-1] < 0.5 * bound[0]


def test_a_round_fails_less_often_than_its_level() -> None:
    """Markov: after K steps of failed descent, P(|m_K| > eps) < pi."""
    eps, pi = 0.5, 0.5
    steps = ball_state.steps_per_round(1.0, eps, pi)
    failures = 0
    for r in range(100):
        rng = stream(12, r, "theory")
        f, g = piecewise(rng, 3, 8)
        failures += one_round(f, g, 3, steps, rng, "average")[-1] > eps**2
    assert failures / 100 < pi


# --- the whole algorithm: the ball, the kinks, the call bound ------------------------------------


class DenseKinks(gs.Oracle):
    """sum_i w_i |x_j - r_i| with r_i on a fine grid of rationals, in every coordinate.

    It is exact about its kinks, and refuses a gradient on them.
    """

    knows_kinks = True

    def __init__(self, dim: int, grid: int = 64) -> None:
        self.dim = dim
        self.grid = grid
        self.nodes = np.arange(-2 * grid, 2 * grid + 1) / grid
        self.weights = 0.5 ** (np.arange(self.nodes.size) % 7)
        self.weights /= self.weights.sum()
        self.kinks_met = 0

    def value(self, x: np.ndarray) -> float:
        return float((self.weights * np.abs(x[:, None] - self.nodes)).sum())

    def gradient(self, y: np.ndarray) -> np.ndarray:
        if any((Fraction(v) * self.grid).denominator == 1 for v in y.tolist()):
            self.kinks_met += 1
            raise gs.KinkError("on the grid", y)
        return (self.weights * np.sign(y[:, None] - self.nodes)).sum(axis=1)


@pytest.mark.parametrize("method", ["pingd", "bundle"])
@pytest.mark.parametrize("dim", [1, 3])
def test_no_kink_is_ever_hit(method: str, dim: int) -> None:
    """The start, the steps and the trial points all sit on the grid of kinks."""
    for seed in range(6):
        oracle = DenseKinks(dim)
        res = gs.minimize(
            oracle, np.full(dim, 1.25), eps=0.4, delta=2.0**-4, method=method, rng=seed
        )
        assert res.success, res
        assert oracle.kinks_met == 0


@pytest.mark.parametrize("dim", [1, 3])
def test_certify_hits_no_kink(dim: int) -> None:
    for seed in range(6):
        oracle = DenseKinks(dim)
        cert = gs.certify(oracle, np.zeros(dim), delta=0.5, rng=seed)
        assert oracle.kinks_met == 0
        assert cert.verify(DenseKinks(dim)).ok


@pytest.mark.parametrize("dim", [1, 3])
def test_auto_recovers_from_kinks(dim: int) -> None:
    """Its quasi-Newton half looks at the iterates; what it proves rests on displaced points."""
    for seed in range(6):
        res = gs.minimize(
            DenseKinks(dim), np.full(dim, 1.25), eps=0.4, delta=2.0**-4, method="auto", rng=seed
        )
        assert res.success, res
        assert res.certificate.verify(DenseKinks(dim)).ok


class Watched(gs.Oracle):
    """Remembers every point at which it was asked."""

    def __init__(self, f: Callable[..., float], g: Gradient) -> None:
        self.f, self.g = f, g
        self.values: list[np.ndarray] = []
        self.gradients: list[np.ndarray] = []

    def value(self, x: np.ndarray) -> float:
        self.values.append(x.copy())
        return self.f(x)

    def gradient(self, y: np.ndarray) -> np.ndarray:
        self.gradients.append(y.copy())
        return self.g(y)


def valley(x: np.ndarray) -> float:
    return float(abs(x[0]) + 0.5 * np.abs(x[1:]).sum())


def valley_gradient(x: np.ndarray) -> np.ndarray:
    g = 0.5 * np.sign(x)
    g[0] *= 2
    return g


@pytest.mark.parametrize("method", ["pingd", "bundle"])
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_gradients_are_asked_at_perturbed_points_in_the_ball_only(method: str, dim: int) -> None:
    """Never at the start, a trial point or an iterate: those may be kinks with probability one."""
    delta = 0.25
    oracle = Watched(valley, valley_gradient)
    iterates = [np.ones(dim)]
    res = gs.minimize(
        oracle, np.ones(dim), eps=0.3, delta=delta, method=method, rng=1,
        callback=lambda x: iterates.append(x),
    )  # fmt: skip
    assert res.success
    visited = {v.tobytes() for v in oracle.values}
    for y in oracle.gradients:
        assert y.tobytes() not in visited
        assert min(distance_upper(y, x) for x in iterates) <= delta


FUNCTIONS: dict[str, tuple[Callable[..., float], Gradient, list[float], float, float]] = {
    # name: f, gradient, start, L, f(x1) - inf f
    "absolute value": (lambda x: float(abs(x[0])), np.sign, [0.6], 1.0, 0.6),
    "two creases": (
        lambda x: float(0.6 * abs(x[0]) + 0.8 * abs(x[1])),
        lambda x: np.array([0.6, 0.8]) * np.sign(x), [0.3, -0.2], 1.0, 0.34,
    ),
    "nonconvex": (
        lambda x: float(min(abs(x[0] - 1), 0.5 + 0.5 * abs(x[0] + 1))),
        lambda x: np.array([
            np.sign(x[0] - 1) if abs(x[0] - 1) < 0.5 + 0.5 * abs(x[0] + 1)
            else 0.5 * np.sign(x[0] + 1)
        ]), [0.4], 1.0, 0.6,
    ),
    "distance": (
        lambda x: float(np.linalg.norm(x)), lambda x: x / np.linalg.norm(x), [0.3, 0.4], 1.0, 0.5,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("method", [gs.PINGD, gs.BundlePINGD])
def test_the_call_bound_of_the_theorem(name: str, method: type) -> None:
    """With probability >= 1 - gamma a certificate after at most (values, gradients) calls."""
    f, g, start, lipschitz, gap = FUNCTIONS[name]
    eps, delta, gamma, repeats = 0.3, 0.1, 0.2, 12
    values, gradients = oracle_bound(lipschitz, gap, eps, delta, gamma)
    good = 0
    for seed in range(repeats):
        solver = method(lipschitz=lipschitz, gap=gap, gamma=gamma)
        oracle = Watched(f, g)
        res = gs.minimize(
            oracle, start, eps=eps, delta=delta, method=solver, rng=seed, max_calls=10**7
        )
        assert res.nfev <= values
        # The check of the certificate, at most d + 1 gradients, is not part of the algorithm.
        assert res.ngev <= gradients + len(start) + 1
        good += res.success
    assert good / repeats >= 1 - gamma


def test_limits_of_the_theory_are_statuses() -> None:
    """A gap that is too small, and rounds that cannot succeed, end with their own status."""
    far = gs.minimize(
        lambda x: float(abs(x[0])), [5.0], np.sign, eps=0.5, delta=0.1, rng=0,
        method=gs.PINGD(lipschitz=1.0, gap=0.01),
    )  # fmt: skip
    assert far.status is gs.Status.STEPS_EXHAUSTED
    assert "gap" in far.message

    # Values that never fall, gradients that never cancel: no such function, but such programs.
    lying = gs.minimize(
        lambda x: 0.0, [0.0], lambda x: np.ones(1), eps=0.5, delta=0.1, rng=0,
        method=gs.BundlePINGD(lipschitz=1.0, gap=1.0),
    )  # fmt: skip
    assert lying.status is gs.Status.ROUNDS_EXHAUSTED
    assert not lying.success
    # Its values do not follow its gradients in any step: nothing is said about it.
    assert lying.certificate is None


@pytest.mark.parametrize("method", ["pingd", "bundle"])
@pytest.mark.parametrize("stated", [1e-6, 1e-2, 0.5])
def test_a_lipschitz_constant_that_is_too_small_is_repaired(method: str, stated: float) -> None:
    """The true constant is sqrt(1 + 0.25 (d-1)); each violation at least doubles the stated one."""
    res = gs.minimize(
        valley, np.ones(3), valley_gradient, eps=0.3, delta=0.1, method=method, lipschitz=stated,
        rng=0,
    )  # fmt: skip
    assert res.success
    assert res.certificate.verify(valley, valley_gradient).ok


def test_erratum_e10_a_start_that_is_already_stationary() -> None:
    """|m| = 0 at the first test: nothing divides by it."""
    res = gs.minimize(lambda x: 0.0, [1.0, 1.0], np.zeros_like, eps=0.1, delta=0.1, method="pingd")
    assert res.success
    assert res.certificate.eps <= 2.0**-10 * 0.1  # nothing finer is stated of a black box
    assert res.nit == 0
