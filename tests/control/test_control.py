"""Controllers: norms against grids, gradients against differences, proofs against lies."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks import rational
from benchmarks.compleib import KNOWN, PLANTS, plant
from scipy.linalg import orth

import goldstein as gs
from goldstein.control import (
    Plant,
    abscissa,
    hinfnorm,
    prove_norm,
    prove_stability,
    radius,
    synthesise,
)
from goldstein.control.oracles import System, largest_gain, peak_gain
from goldstein.control.synthesis import NormBound, Stability, searched
from goldstein.errors import InputError


def random_system(rng: np.random.Generator, n: int = 5) -> System:
    A = rng.standard_normal((n, n))
    A -= (np.linalg.eigvals(A).real.max() + rng.uniform(0.05, 1.0)) * np.eye(n)
    return System(
        A, rng.standard_normal((n, 2)), rng.standard_normal((3, n)), rng.standard_normal((3, 2))
    )


@pytest.mark.parametrize("seed", range(8))
def test_the_norm_is_the_top_of_a_grid(seed: int) -> None:
    system = random_system(np.random.default_rng(seed))
    norm, at = peak_gain(system)
    grid = max(largest_gain(system, w) for w in [*np.linspace(0, 30, 1001), 1e6])
    assert norm >= grid * (1 - 1e-12)
    assert norm == pytest.approx(largest_gain(system, at), rel=1e-12)
    assert norm <= 1.05 * grid


def test_norms_known_in_closed_form() -> None:
    # |1 / (s^2 + 2 z s + 1)| has its peak 1 / (2 z sqrt(1 - z^2)) at sqrt(1 - 2 z^2).
    z = 0.1
    system = System(
        np.array([[0.0, 1], [-1, -2 * z]]), np.array([[0.0], [1]]), np.eye(2)[:1], np.zeros((1, 1))
    )
    norm, at = peak_gain(system)
    assert norm == pytest.approx(1 / (2 * z * math.sqrt(1 - z * z)), rel=1e-12)
    assert at == pytest.approx(math.sqrt(1 - 2 * z * z), rel=1e-6)
    unstable = System(np.eye(1), np.eye(1), np.eye(1), np.zeros((1, 1)))
    assert peak_gain(unstable)[0] == math.inf


def test_a_norm_hardly_above_the_feedthrough_is_not_missed() -> None:
    """Near |D| the matrix level^2 - D'D is next to singular; the peak is at a finite frequency."""
    system = plant("AC4").closed_loop(np.array([[-0.2904, -0.0733]]))
    norm, _ = peak_gain(system)
    assert norm == pytest.approx(
        max(largest_gain(system, w) for w in np.geomspace(1e-3, 1e3, 6001))
    )
    # 1 + a hump of relative height h over the feedthrough, at any height.
    for height in 10.0 ** -np.arange(1, 8):
        A, B = np.array([[0.0, 1.0], [-1.0, -0.2]]), np.array([[0.0], [1.0]])
        hump = System(A, B, np.array([[0.0, 0.2 * height]]), np.eye(1))
        assert peak_gain(hump)[0] == pytest.approx(1.0 + height, rel=1e-12)


def test_a_double_integrator_has_no_gradient_and_is_stabilised() -> None:
    system = Plant([[0.0, 1.0], [0.0, 0.0]], [[0.0], [1.0]], np.eye(2))
    with pytest.raises(gs.KinkError, match="defective"):
        abscissa(system.feedback()).gradient(np.zeros(2))
    d = synthesise(system, starts=1, max_calls=400, rng=0)
    assert d.stability.verify(system)
    assert d.bound.verify(system)


class Edge(gs.oracles.Oracle):
    """A norm that is blind to stability, as those of HE3 and NN16: infinite where x_0 + x_1 >= 1.

    Its least value is `gap` away from there, on a bent kink.
    """

    dim, name = 2, "edge"

    def __init__(self, gap: float) -> None:
        self.gap = gap

    def value(self, x: np.ndarray) -> float:
        kink, slack = x[0] - x[1] ** 2, x[0] + x[1] - 1.0
        return math.inf if slack >= 0.0 else float(5.0 * abs(kink) + (slack + self.gap) ** 2)

    def gradient(self, y: np.ndarray) -> np.ndarray:
        side, slope = 5.0 * np.sign(y[0] - y[1] ** 2), 2.0 * (y[0] + y[1] - 1.0 + self.gap)
        return np.array([side + slope, slope - 2.0 * y[1] * side])


def test_a_search_goes_on_in_smaller_balls_next_to_instability() -> None:
    asked = {"eps": 1e-4, "delta": 1e-4, "rng": 0, "max_calls": 2_000}
    start = np.array([-1.0, 0.5])
    with pytest.raises(gs.OracleError, match="not defined"):
        gs.minimize(Edge(1e-5), start, **asked)
    found, _ = searched(Edge(1e-5), start, 1e3, asked)
    assert found.success
    assert found.fun <= 1e-9
    assert found.certificate.delta <= 1e-6  # no ball reaches what is unstable


def test_where_the_norm_falls_with_the_gain_the_answer_is_kkt_at_the_limit() -> None:
    """x' = k x + w, z = x: the norm is 1 / |k|, and least where the gain is as large as allowed."""
    plant = Plant([[0.0]], [[1.0]], [[1.0]], D12=[[0.0]])
    design = synthesise(plant, largest=10.0, rng=0)
    assert design.norm == pytest.approx(0.1, rel=1e-6)
    assert np.abs(design.K).max() <= 10.0
    assert design.certificate.kind == "kkt"
    assert design.certificate.eps <= 1e-4
    assert design.certificate.verify(hinfnorm(plant), bounds=[(-10.0, 10.0)]).ok
    assert not design.certificate.verify(hinfnorm(plant), bounds=[(-20.0, 20.0)]).ok


def test_no_start_leaves_the_limit_of_the_gains() -> None:
    """The way to stability leads beyond it here: back, or no feedback; never a larger one."""
    plant = Plant(
        A=[[0, 1, 0], [0, 0, 1], [0, 13, 0]], B=[[0], [0], [1]], C=[[0, 5, -1], [-1, -1, 0]]
    )
    for x0 in (None, [200.0, 400.0]):
        design = synthesise(plant, starts=1, x0=x0, largest=50.0, max_calls=800, rng=0)
        assert np.abs(design.K).max() <= 50.0
        assert design.certificate.verify(hinfnorm(plant), bounds=[(-50.0, 50.0)] * 2).ok
    with pytest.raises(InputError, match="largest"):
        synthesise(plant, starts=1, largest=1e-3, rng=0)


@pytest.mark.parametrize("order", [0, 1])
def test_gradients_are_those_of_the_values(order: int) -> None:
    rng = np.random.default_rng(order)
    loop = random_system(rng)
    B, C, D12, D21 = (rng.standard_normal(size) for size in ((5, 2), (2, 5), (3, 2), (2, 2)))
    system = Plant(loop.A, B, C, loop.B, loop.C, loop.D, D12, D21).with_states(order)
    mask = np.ones((2 + order, 2 + order), dtype=bool)
    mask[0, 1] = False
    x = 0.05 * rng.standard_normal(mask.sum())
    if order:
        x[-1] = -1.0  # the controller's own state
    for f in (
        hinfnorm(system, mask),
        abscissa(system.feedback(mask)),
        radius(system.feedback(mask)),
    ):
        assert math.isfinite(f.value(x))
        steps = 1e-6 * np.eye(f.dim)
        slopes = [(f.value(x + h) - f.value(x - h)) / 2e-6 for h in steps]
        np.testing.assert_allclose(f.gradient(x), slopes, rtol=1e-4, atol=1e-6)


def test_a_state_of_the_controller_is_an_integrator_in_the_loop() -> None:
    """With u = D y + C s, s' = B y + A s, the loop is the one of the textbook."""
    system = Plant([[1.0]], [[2.0]], [[3.0]]).with_states(1)
    K = np.array([[5.0, 7.0], [11.0, 13.0]])  # [[D, C], [B, A]]
    np.testing.assert_array_equal(system.closed_loop(K).A, [[1 + 2 * 5 * 3, 2 * 7], [11 * 3, 13]])


def test_a_design_is_proved_and_the_proofs_refuse_lies() -> None:
    system = plant("NN8")
    d = synthesise(system, starts=1, max_calls=400, rng=0)
    assert d.stability.verify(d.plant)
    assert d.bound.verify(d.plant)
    assert d.bound.gamma == pytest.approx(d.norm, rel=2e-6)
    grid = max(largest_gain(system.closed_loop(d.K), w) for w in np.linspace(0, 20, 2001))
    assert grid <= d.norm * (1 + 1e-12)
    assert "proved: stability and norm" in repr(d)
    assert d.certificate.verify(hinfnorm(system)).ok
    # Below the norm no matrix proves anything; nor does a wrong matrix, or a feedback that is none.
    assert prove_norm(system, d.K, d.norm * (1 - 1e-6)) is None
    assert not NormBound(d.K, d.bound.P, d.norm * (1 - 1e-6)).verify(system)
    assert not NormBound(d.K, d.bound.P * [[1, 1, 1], [1, 1, 1], [1, 2, 1]], d.bound.gamma).verify(
        system
    )
    assert not Stability(d.K, -d.stability.P).verify(system)
    assert prove_stability(system, 100 * np.ones((2, 2))) is None
    assert not Stability(100 * np.ones((2, 2)), d.stability.P).verify(system)


def test_a_check_that_shares_no_code_agrees() -> None:
    """With true proofs and with every lie above; the certificates too are verified again."""
    for name in ("AC2", "AC4", "AC8", "PSM", "NN8", "NN17"):
        system = plant(name)
        d = synthesise(system, starts=1, max_calls=600, rng=0)
        P, Q = d.stability, d.bound
        assert rational.is_stable(system, P.K, P.P)
        assert rational.is_bounded(system, Q.K, Q.P, Q.gamma)
        assert d.certificate.verify(hinfnorm(system)).ok
        lower = d.norm * (1 - 1e-6)
        assert not rational.is_bounded(system, Q.K, Q.P, lower)
        assert not rational.is_bounded(system, Q.K, -Q.P, Q.gamma)
        assert not rational.is_bounded(system, Q.K, Q.P, -Q.gamma)
        assert not rational.is_stable(system, P.K, -P.P)
        lopsided = P.P.copy()
        lopsided[0, 1] += 1e-9
        assert not rational.is_stable(system, P.K, lopsided)


@pytest.mark.parametrize("seed", range(4))
def test_both_checks_say_the_same_of_random_matrices(seed: int) -> None:
    rng = np.random.default_rng(seed)
    loop = random_system(rng, 3)
    system = Plant(
        loop.A, np.eye(3)[:, :1], np.eye(3)[:1], loop.B, loop.C, loop.D, np.zeros((3, 1))
    )
    K, norm = np.zeros((1, 1)), peak_gain(loop)[0]
    verdicts = set()
    for factor in (0.9, 1.0 + 1e-6, 1.1, 3.0):
        P = prove_norm(system, K, 1.1 * norm).P
        wiggled = P + np.diag(rng.uniform(0.0, 0.3, 3)) * rng.choice([0.0, np.abs(P).max()])
        for Q in (P, wiggled):
            ours = NormBound(K, Q, factor * norm).verify(system)
            assert ours == rational.is_bounded(system, K, Q, factor * norm)
            verdicts.add(ours)
    assert verdicts == {True, False}


@pytest.mark.parametrize("name", ["AC6", "AC8", "AC17"])
def test_values_of_black_box_runs_are_reached(name: str) -> None:
    d = synthesise(plant(name), starts=1, max_calls=1_500, rng=0)
    assert d.norm <= 1.001 * KNOWN[name]


def test_forged_sizes_and_numbers_are_refused() -> None:
    """A matrix that is too small must not be compared with a part of the loop."""
    system = Plant([[-1.0, 0.0], [0.0, 5.0]], [[1.0], [0.0]], [[1.0, 0.0]])  # unstable
    for P in ([[1.0]], [[1.0, 0.0]], [[1.0], [0.0]], [[math.nan, 0.0], [0.0, 1.0]], np.eye(3)):
        assert not Stability(np.zeros((1, 1)), np.array(P)).verify(system)
        assert not NormBound(np.zeros((1, 1)), np.array(P), 1e9).verify(system)
    good = Plant([[-1.0]], [[1.0]], [[1.0]])
    assert Stability(np.zeros((1, 1)), np.eye(1)).verify(good)
    assert not Stability(np.zeros((2, 1)), np.eye(1)).verify(good)
    assert not NormBound(np.zeros((1, 1)), np.eye(1), math.inf).verify(good)


def test_a_marginal_loop_is_not_proved_stable() -> None:
    oscillator = Plant([[0.0, 1.0], [-1.0, 0.0]], [[0.0], [1.0]], [[0.0, 1.0]])
    for P in (np.eye(2), [[2.0, 1.0], [1.0, 2.0]]):
        assert not Stability(np.zeros((1, 1)), np.array(P)).verify(oscillator)
    assert prove_stability(oscillator, np.array([[-1e-3]])).verify(oscillator)


@pytest.mark.parametrize("name", PLANTS)
def test_plants_are_complete(name: str) -> None:
    system = plant(name)
    n, m, p = len(system.A), system.B.shape[1], len(system.C)
    reach = orth(system.B)
    for _ in range(n):
        reach = orth(np.hstack([reach, system.A @ reach]))
    assert reach.shape[1] >= m
    assert np.linalg.matrix_rank(system.C) == p
    # Hautus: what does not decay by itself is reached by the controls, and measured.
    for value in np.linalg.eigvals(system.A):
        if value.real >= -1e-9:
            rest = system.A - value * np.eye(n)
            assert np.linalg.matrix_rank(np.hstack([rest, system.B])) == n
            assert np.linalg.matrix_rank(np.vstack([rest, system.C])) == n


def test_what_cannot_be_is_refused_in_words() -> None:
    with pytest.raises(InputError, match=r"B1 must have shape|B must have shape"):
        Plant(np.eye(2), np.ones((3, 1)), np.ones((1, 2)))
    with pytest.raises(InputError, match="order"):
        synthesise(plant("NN8"), order=-1)
    with pytest.raises(InputError, match="mask of shape"):
        hinfnorm(plant("NN8"), [[True]])
    hopeless = Plant(np.eye(2), [[1.0], [0.0]], [[1.0, 0.0]])  # the second state cannot be reached
    with pytest.raises(InputError, match="no stabilising feedback"):
        synthesise(hopeless, starts=1, rng=0)


def test_it_is_found_under_its_name() -> None:
    assert gs.control.Plant is Plant


def test_a_proof_is_about_a_real_feedback() -> None:
    """The imaginary part of K would be dropped: u = (-3 + 9i) y is another loop."""
    plant = Plant([[1.0]], [[1.0]], [[1.0]])
    real, P = np.array([[-3.0]]), np.array([[1.0]])
    assert Stability(real, P).verify(plant)
    assert NormBound(real, P, 10.0).verify(plant)
    assert not Stability(real + 9j, P).verify(plant)
    assert not NormBound(real + 9j, P, 10.0).verify(plant)


def test_the_bound_is_proved_where_disturbances_do_not_reach_the_states() -> None:
    """The norm is |D|; any Lyapunov matrix that is large enough proves it."""
    zero = np.zeros((2, 1))
    plant = Plant(
        -np.eye(2), zero, zero.T, zero, np.ones((1, 2)), [[0.3]], D12=[[0.0]], D21=[[0.0]]
    )
    bound = prove_norm(plant, np.zeros((1, 1)), 0.3 * (1 + 1e-6))
    assert bound is not None
    assert bound.verify(plant)
    assert prove_norm(plant, np.zeros((1, 1)), 0.3 * (1 - 1e-9)) is None


def test_what_cannot_be_a_plant_or_a_start_is_refused_by_name() -> None:
    empty = np.zeros((0, 0))
    with pytest.raises(InputError, match="needs states, controls and measurements"):
        Plant(empty, np.zeros((0, 1)), np.zeros((1, 0)))
    with pytest.raises(InputError, match="1 free entries, got 2"):
        synthesise(Plant([[1.0]], [[1.0]], [[1.0]]), x0=[1.0, 2.0])


@pytest.mark.parametrize("seed", range(6))
def test_nothing_below_the_norm_is_proved(seed: int) -> None:
    """Plants near instability, with double modes: a bound that is proved is above a fine grid."""
    rng = np.random.default_rng(seed)
    damping = 10.0 ** -rng.integers(1, 9)
    mode = np.array([[-damping, 1.0], [-1.0, -damping]])
    A = np.kron(np.eye(2), mode)
    A[:2, 2:] = rng.uniform(0.0, 1.0) * np.eye(2)
    B, C, D = (rng.standard_normal(shape) for shape in ((4, 2), (2, 4), (2, 2)))
    system = System(A, B, C, D)
    norm, _ = peak_gain(system)
    grid = [1.0 + damping * t for t in np.linspace(-9.0, 9.0, 4001)]
    assert norm >= max(largest_gain(system, w) for w in [0.0, *grid]) * (1 - 1e-9)
    plant = Plant(
        A, np.zeros((4, 1)), np.zeros((1, 4)), B, C, D, np.zeros((2, 1)), np.zeros((1, 2))
    )
    for share in (0.999, 1 - 1e-6, 1 - 1e-9):
        assert prove_norm(plant, np.zeros((1, 1)), share * norm) is None
    bound = prove_norm(plant, np.zeros((1, 1)), norm * (1 + 1e-6))
    assert bound is None or bound.verify(plant)
