"""A runnable counterexample for every erratum of docs/errata.md (`pytest -k erratum_07`)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from tests import theorems
from tests.falsify import distance_to_hull, falsify, falsify_modulus
from tests.functions import gated_vertices
from tests.theorems import oracle_bound

import goldstein as gs
from goldstein.apriori import rules
from goldstein.apriori.rules import OuterLipschitz
from goldstein.numerics.streams import tilt, trial_point, uniform_in_ball
from goldstein.solvers import ball_state
from goldstein.solvers import stochastic_schedules as stochastic

Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])


def ramp_slopes(z):
    """Slopes of min(1, max(0, 1 - u))."""
    u = float(z[0])
    return [[0.0], [-1.0]] if u in (0.0, 1.0) else [[-1.0 if 0.0 < u < 1.0 else 0.0]]


def wedge(z):
    """dF of max(2x, -2x, y)."""
    pieces = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
    values = pieces @ z
    return pieces[values >= values.max() - 1e-12]


def abs_oracle():
    """|x| that refuses to name a gradient at its kink."""

    class Absolute(gs.Oracle):
        knows_kinks = True
        dim = 1

        def value(self, x):
            return float(abs(x[0]))

        def gradient(self, y):
            if y[0] == 0.0:
                raise gs.KinkError("kink of |x|", y)
            return np.sign(y)

    return Absolute()


def test_erratum_01_rescaling():
    """Huber(10 x): the printed beta L1 + kappa L2 = 10 fails with every pivot; 100 is needed."""
    slopes = lambda z: [[10.0 * np.clip(10.0 * z[0], -1.0, 1.0)]]  # noqa: E731
    ball = np.linspace(-0.01, 0.01, 21)
    for pivot in np.linspace(-0.05, 0.05, 101):
        assert falsify_modulus(slopes, [pivot], ball, 10.0) is not None
    assert falsify_modulus(slopes, [0.0], ball, 100.0) is None
    # What the printed constant would promise at .01 (Goldstein value 0): .1. The slope is 1.
    promised, _ = rules.near_from_goldstein(0.0, OuterLipschitz(0.0, 0.01, 10.0))
    assert promised == pytest.approx(0.1)
    assert slopes([0.01])[0][0] == pytest.approx(1.0)


def printed_margin_pivot(x):
    if abs(x[0]) <= 0.5:
        return [0.0]
    return [1.0] if abs(x[0] - 1.0) < 0.5 else x


def test_erratum_02_margin_pivot():
    """rho = 1: .4 is sent .4 away when .1 is allowed; 1.5 misses the kink on its boundary."""
    too_far = OuterLipschitz(0.1, 0.1, 0.0)
    violation = falsify(ramp_slopes, too_far, printed_margin_pivot, centers=[0.4], trials=0)
    assert (violation.element, violation.found) == (None, pytest.approx(0.4))
    at_half = OuterLipschitz(0.5, 0.5, 0.0)
    violation = falsify(
        ramp_slopes, at_half, printed_margin_pivot, centers=[1.5], kinks=[1.0], trials=0
    )
    assert (violation.z[0], violation.found) == (1.0, 1.0)


def test_erratum_03_gated_pivot():
    """|x| where |x_2| is meant: (5, .05) stays, yet (5, -.05) has gradient 0."""
    printed = lambda x: (x[0], 0.0) if np.linalg.norm(x) <= 0.1 else x  # noqa: E731
    claim = OuterLipschitz(0.1, 0.1, 1.0)
    violation = falsify(gated_vertices, claim, printed, dim=2, centers=[[5.0, 0.05]], trials=0)
    assert violation.found > 5.0 > violation.allowed
    corrected = lambda x: theorems.gated_pivot((float(x[0]), float(x[1])), 0.1)  # noqa: E731
    attack = {"dim": 2, "centers": [[5.0, 0.05]], "kinks": [[5.0, 0.0]], "trials": 50}
    assert falsify(gated_vertices, claim, corrected, **attack) is None


def test_erratum_04_separable_sum():
    """Moduli 3 and 4 give 4, not 5: 3x^2/2 + 4y^2/2 has Hessian norm 4."""
    both = [OuterLipschitz(0.0, 1.0, 3.0), OuterLipschitz(0.0, 1.0, 4.0)]
    assert rules.separable_sum(both).modulus == 4.0
    slopes = lambda z: [[3.0 * z[0], 4.0 * z[1]]]  # noqa: E731
    assert falsify(slopes, OuterLipschitz(0.0, 1.0, 4.0), lambda x: x, dim=2, trials=50) is None


def test_erratum_05_gated_relu_is_not_globally_lipschitz():
    lengths = [np.linalg.norm(gated_vertices([t, t])[0]) for t in (1.0, 1e3, 1e6)]
    assert lengths == pytest.approx([math.sqrt(2) * t for t in (1.0, 1e3, 1e6)])
    fun = gs.models.relu_two_layer(Z, np.array([1, -1]), 2, loss="logistic", bias=False)
    assert math.isinf(fun.lipschitz())
    assert math.isfinite(fun.lipschitz((np.zeros(8), 1.0)))


def test_erratum_06_ridge_is_not_globally_lipschitz():
    fun = gs.models.margin_svm(Z)
    assert math.isinf(fun.lipschitz())
    assert fun.solver_lipschitz(np.zeros(3), 0.1) == pytest.approx(5.5641016, abs=1e-6)


def test_erratum_07_surjectivity_is_not_needed():
    """Three kinks through 0 in the plane: dependent rows, yet 0 is a pivot with modulus 0."""
    rows, signs = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, 1.0, -1.0])
    with pytest.raises(gs.NotCertifiableError, match="rank"):
        theorems.rowwise_composition(rows, 0.1)
    rng = np.random.default_rng(0)
    around_zero = [(signs * (rows @ d > 0)) @ rows for d in rng.standard_normal((300, 2))]

    def vertices(z):
        return around_zero if not np.any(z) else [(signs * (rows @ z > 0)) @ rows]

    points = rng.uniform(-1, 1, (200, 2))
    assert falsify_modulus(vertices, [0.0, 0.0], points, 0.0) is None


def test_erratum_08_near_implies_goldstein_and_not_conversely():
    d = 1.0
    x = np.array([0.0, 2 * d])
    ends = [x + d * np.array([s * 0.8, -0.4]) for s in (-1, 1)]  # on the kinks 2|x| = y
    beyond = [x + d * np.array([s * 0.85, -0.45]) for s in (-1, 1)]
    pieces = np.vstack([wedge(z) for z in beyond])
    assert all(np.linalg.norm(z - x) <= d for z in ends + beyond)
    assert distance_to_hull([0.0, 0.0], pieces) == pytest.approx(0.0, abs=1e-12)
    near = min(distance_to_hull([0.0, 0.0], wedge(z)) for z in [x, *ends, *beyond])
    assert near == pytest.approx(2 / math.sqrt(5))


def test_erratum_09_the_wedge_does_have_a_modulus():
    """The remark says no kappa works at (0, 2d) with reach d; 2.5/d does, at the point itself."""
    rng = np.random.default_rng(0)
    for d in (1.0, 0.25):
        x = np.array([0.0, 2 * d])
        offsets = [v / max(1.0, np.linalg.norm(v)) for v in rng.uniform(-1, 1, (400, 2))]
        offsets += [np.array([s * 0.8, -0.4]) for s in (-1, 1)]
        assert falsify_modulus(wedge, x, [x + d * v for v in offsets], 2.5 / d) is None


def test_erratum_10_order_of_tests_and_integer_schedules():
    """A zero average must be tested before anything divides by its norm; T is at least 1."""
    res = gs.minimize(
        lambda x: 0.0, [1.0], lambda x: np.zeros(1), eps=0.1, delta=0.1, method="pingd",
        lipschitz=1.0, rng=0,
    )  # fmt: skip
    assert res.success
    with pytest.raises(ZeroDivisionError):
        trial_point(np.ones(1), np.zeros(1), 0.0, 0.1, 0.0)
    assert ball_state.descent_steps(0.0, 0.1, 0.1) == 1
    assert isinstance(ball_state.steps_per_round(1.0, 0.3), int)


def test_erratum_11_values_are_needed_at_kinks():
    """|x| from 7/8 with delta = 1: the first trial point is the kink 0, with certainty."""
    assert trial_point(np.array([7 / 8]), np.ones(1), 1.0, 1.0, 1.0)[0] == 0.0
    res = gs.minimize(
        abs_oracle(), [7 / 8], eps=0.1, delta=1.0, method="pingd", lipschitz=1.0, rng=0
    )
    assert res.success


def test_erratum_12_oracle_count():
    """Values are calls too, and ln is more rounds than needed: log_16 suffices."""
    values, gradients = oracle_bound(1.0, 1.0, 0.1, 0.1, 0.01, 1 / 16)
    assert (values, gradients) == (400 * 4 * 8000 + 1, 400 * 4 * 8000)
    assert ball_state.rounds(400, 0.01, 1 / 16) < math.log(400 / 0.01)


def test_erratum_13_averages_longer_than_the_constant():
    """With |m| > L the weight leaves [0, 1]; a constant that is too small is raised, not used."""
    assert ball_state.averaging_weight(1.5) < 0.0 < 1.0 < ball_state.averaging_weight(1.9)
    res = gs.minimize(
        lambda x: 5.0 * abs(x[0]), [1.0], lambda x: 5.0 * np.sign(x), eps=0.1, delta=0.5,
        method="pingd", lipschitz=1.0, rng=0,
    )  # fmt: skip
    assert res.success


def test_erratum_14_the_cone_map_has_no_lipschitz_inverse():
    """Near the apex lambda = 0 points meet although their directions xi stay apart."""
    base, plus, minus = np.array([1.0, 0.0]), np.array([0.0, 1.0]), np.array([0.0, -1.0])
    gaps = [np.linalg.norm(t * (base + plus) - t * (base + minus)) for t in (1e-3, 1e-6)]
    assert gaps == pytest.approx([2e-3, 2e-6])  # while |xi - xi'| = 2 throughout
    # In one dimension there is nothing to tilt, and the statement still holds.
    assert tilt(np.random.default_rng(0), np.array([2.0]), 2.0)[0] == 0.0


def test_erratum_15_first_gradient_of_the_stochastic_method():
    """|x| from 0: a gradient at the start fails with certainty, near it almost never."""
    oracle = abs_oracle()
    with pytest.raises(gs.KinkError):
        oracle.gradient(np.zeros(1))
    start = uniform_in_ball(np.random.default_rng(0), np.zeros(1), 0.1)
    assert abs(oracle.gradient(start)[0]) == 1.0
    assert stochastic.perturbation_radius(0.1, 0.1, 1.0, 0.0) > 0.0


def test_erratum_16_window_must_be_an_integer():
    eps, delta, scale = 0.1, 0.1, 1.0
    p = stochastic.inverse_longest_step(eps, delta, scale)
    beta, lg = stochastic.averaging(eps, scale), stochastic.log_factor(eps, scale)
    window = stochastic.window_length(eps, scale)
    assert lg / math.log(1 / beta) != window == math.ceil(lg / math.log(1 / beta))
    printed = (1 / (1 - beta) + 1 / math.log(beta)) * lg
    assert (window + printed) / p - delta == pytest.approx(1.3092e-6, abs=1e-9)
    assert (window + stochastic.window_slack(eps, delta, scale)) / p <= delta * (1 + 1e-15)


def test_erratum_17_gradient_scale():
    assert stochastic.gradient_scale(3.0, 4.0) == 5.0


def test_erratum_18_the_gap_is_measured_from_the_first_iterate():
    """There is no x_0: the moves from x_1 = 1 are counted against f(x_1) - inf f = 1."""
    res = gs.minimize(
        lambda x: abs(x[0]), [1.0], np.sign, eps=0.5, delta=0.25, method="pingd", lipschitz=1.0,
        rng=0,
    )  # fmt: skip
    assert res.success
    assert 1 <= res.nit <= ball_state.descent_steps(1.0, 0.5, 0.25)


@pytest.mark.parametrize("radius", [0.5, 1.0, 3.0])
def test_erratum_19_no_radius_limit_for_the_margin_loss(radius):
    """Beyond rho/2 the ball can meet both kinks; each one's slope set is the full range."""
    snap = lambda x: [theorems.nearest_kink_pivot(float(x[0]), [0.0, 1.0], radius)]  # noqa: E731
    claim = OuterLipschitz(radius, radius, 0.0)
    assert falsify(ramp_slopes, claim, snap, kinks=[0.0, 1.0], trials=80) is None


def test_erratum_20_rows_one_by_one():
    chain = rules.linear_composition(rules.separable_sum([OuterLipschitz(0.1, 0.1, 0.0)] * 2), Z)
    rowwise = theorems.rowwise_composition(Z, chain.reach)
    assert rowwise.pivot_radius < 0.7 * chain.pivot_radius


def test_erratum_21_every_summand_keeps_its_own_set():
    """With G_1(y) in place of G_i(y) the proof would claim G_1 + G_2 = 2 G_1."""
    first, second = {0.0}, {1.0}
    total = {a + b for a, b in itertools.product(first, second)}
    assert total == {1.0} != {a + b for a, b in itertools.product(first, first)}
    triple = rules.shared_pivot_sum([OuterLipschitz(1, 1, 3), OuterLipschitz(2, 2, 4)])
    assert triple == OuterLipschitz(1, 1, 7)


def test_erratum_22_partial_sums():
    """G_i = (kappa_i x_0, 0) needs the sum of the moduli; gated relus need only sqrt(m)."""
    parts = [OuterLipschitz(0.1, 0.1, 1.0)] * 4
    assert rules.partially_separable_sum(parts).modulus == 4.0
    shared = [rules.ArrowBlock(1.0, 0.0, 0.0, 0.0)] * 4
    assert rules.arrow_modulus(shared) == pytest.approx(4.0)
    gated = [rules.ArrowBlock(0.0, 1.0, 1.0, 0.0)] * 4
    assert rules.partially_separable_sum(parts, gated).modulus == pytest.approx(2.0)


def test_erratum_23_the_gated_claim_itself_is_correct():
    """The text writes d sigma, a set of numbers, for d varrho, a set in the plane."""
    assert {len(v) for v in gated_vertices([3.0, 0.0])} == {2}
    claim = OuterLipschitz(0.25, 0.25, 1.0)
    snap = lambda x: theorems.gated_pivot((float(x[0]), float(x[1])), 0.25)  # noqa: E731
    kinks = [[a, 0.0] for a in (-2.0, 0.0, 0.5, 7.0)]
    assert falsify(gated_vertices, claim, snap, dim=2, kinks=kinks, trials=80) is None


def test_erratum_24_the_loss_need_not_be_lipschitz():
    """Relus have modulus 0: the slope of the loss drops out, squared losses are fine."""
    relu = OuterLipschitz(0.1, 0.1, 0.0)
    gentle = theorems.vector_rescale([relu, relu], [1.0, 1.0], [1.0, 1.0], beta=1.0)
    steep = theorems.vector_rescale([relu, relu], [1.0, 1.0], [1e9, 1e9], beta=1.0)
    assert gentle == steep
    fun = gs.models.relu_one_layer(Z, [1.0, 0.0], 3, loss="squared", bias=False)
    assert fun.outer_lipschitz(pivot_radius=0.1).modulus == pytest.approx(18.0)


def test_erratum_25_one_layer_modulus():
    """Four neurons, one datum: the printed chain gives 2, the pieces bend by 4."""

    def vertices(z):
        masks = [[0.0, 1.0] if w == 0 else [float(w > 0)] for w in z]
        return [np.maximum(z, 0.0).sum() * np.array(mask) for mask in itertools.product(*masks)]

    violation = falsify_modulus(vertices, np.zeros(4), [np.full(4, 0.05)], 2.0)
    assert (violation.found, violation.allowed) == (pytest.approx(0.4), pytest.approx(0.2))
    points = np.random.default_rng(0).uniform(-1, 1, (60, 4))
    assert falsify_modulus(vertices, np.zeros(4), points, 4.0) is None


def test_every_erratum_has_its_test():
    numbers = {int(name.split("_")[2]) for name in globals() if name.startswith("test_erratum_")}
    assert numbers == set(range(1, 26))
