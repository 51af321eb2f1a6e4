"""The numbered facts of the theory, one test each: `pytest -k fact_17` finds fact 17.

Everything here is computed apart from the expression classes: by hand-written subdifferentials,
brute force over sampled gradients, or arithmetic.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial import ConvexHull
from tests import theorems
from tests.falsify import distance_to_hull, falsify, falsify_modulus
from tests.functions import gated_vertices
from tests.theorems import contraction, max_pivot

from goldstein.apriori import rules
from goldstein.apriori.rules import OuterLipschitz
from goldstein.checker.rationals import exact_dot, sqrt_upper, squared_distance
from goldstein.numerics.exact import project_exact
from goldstein.numerics.streams import conic_point, tilt, trial_point
from goldstein.solvers import ball_state
from goldstein.solvers import stochastic_schedules as stochastic

Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
S1_ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])


def shortest(vectors):
    """Length of the shortest vector of a convex hull."""
    return distance_to_hull(np.zeros(np.shape(vectors)[1]), vectors)


def ramp_slope(u, rho=1.0):
    return np.where((u > 0) & (u < rho), -1.0 / rho, 0.0)


def svm_gradient(rows, w, lam=1.0):
    return lam * w + rows.T @ ramp_slope(rows @ w)


def around(point, count=400, radius=1e-7, seed=0):
    """Points at random directions around a point: they meet every cell that touches it."""
    directions = np.random.default_rng(seed).standard_normal((count, len(point)))
    return point + radius * directions / np.linalg.norm(directions, axis=1)[:, None]


def wedge(z):
    """Vertices of the subdifferential of max(2x, -2x, y)."""
    x, y = z
    pieces = np.array([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]])
    values = pieces @ z
    return pieces[values >= values.max() - 1e-12 * max(1.0, abs(x), abs(y))]


# --- Algorithm 1


def test_fact_01_averaging_weights():
    exact = {1.0: Fraction(1, 2), 0.5: Fraction(52, 59), 0.25: Fraction(32, 33)}
    for q, beta in exact.items():
        assert ball_state.averaging_weight(q) == pytest.approx(float(beta), rel=1e-15)


def test_fact_02_contraction():
    assert contraction(0.0) == 0.25
    assert contraction(1.0) == pytest.approx(3 / 14)
    best = minimize_scalar(contraction, bounds=(0, 1), method="bounded")
    assert best.fun == pytest.approx(0.212316, abs=1e-6)
    assert best.x == pytest.approx(0.8623, abs=1e-4)
    assert best.fun > 1 / 5


def test_fact_03_averaging_breaks_when_the_lipschitz_constant_is_too_small():
    beta = ball_state.averaging_weight
    assert beta(1.5) == pytest.approx(-0.8)
    assert beta(1.9) == pytest.approx(10.9881, abs=1e-4)
    assert brentq(beta, 1.2, 1.4) == pytest.approx(1.294727, abs=1e-6)
    denominator = lambda q: 8 - q - q**3  # noqa: E731
    assert brentq(denominator, 1.7, 1.9) == pytest.approx(1.833751, abs=1e-6)


def test_fact_04_tilted_points_stay_in_the_ball():
    rng = np.random.default_rng(0)
    m = np.array([0.6, 0.8])
    lengths = [np.linalg.norm(conic_point(rng, np.zeros(2), m, 1.0, 1.0, 1.0)) for _ in range(2000)]
    assert max(lengths) <= math.sqrt(50) / 8
    assert max(lengths) > 0.97 * math.sqrt(50) / 8


def test_fact_05_schedule_of_the_paper():
    assert ball_state.steps_per_round(1.0, 0.1, 1 / 16) == 8000
    assert ball_state.descent_steps(1.0, 0.1, 0.1) == 400
    assert ball_state.rounds(400, 0.01, 1 / 16) == 4


def test_fact_06_cheaper_schedule():
    assert ball_state.steps_per_round(1.0, 0.1, 1 / math.e) == 1360
    assert ball_state.rounds(400, 0.01, 1 / math.e) == 11
    assert 1360 * 11 < 8000 * 4


def test_fact_07_recursion_of_the_squared_average():
    a = 1.0
    for k in range(1, 2000):
        assert a <= 5 / (k + 4)
        a *= 1 - a / 5
    # The worst start of the induction step is the bound itself, whatever a_k below it.
    for k in range(1, 60):
        bound = Fraction(5, k + 4)
        assert bound * (1 - bound / 5) <= Fraction(5, k + 5)


def test_fact_08_the_trial_point_can_be_a_kink():
    trial = trial_point(np.array([7 / 8]), np.array([1.0]), 1.0, 1.0, 1.0)
    assert trial[0] == 0.0


# --- Algorithm 2


def test_fact_09_stochastic_schedule():
    schedule = stochastic.psingd_theory(0.1, 0.1, lipschitz=1.0, noise=0.0, gap=1.0)
    assert schedule.averaging == pytest.approx(0.99984375, abs=1e-12)
    assert schedule.window == 32479
    assert schedule.inverse_longest_step == pytest.approx(324811.124, abs=1e-3)
    assert schedule.offset == pytest.approx(1299244.497, abs=1e-3)
    assert stochastic.window_slack(0.1, 0.1, 1.0) == pytest.approx(2.112417, abs=1e-6)
    assert schedule.perturbation == pytest.approx(7.5459e-12, rel=1e-4)
    assert schedule.steps == pytest.approx(3.326066e10, rel=1e-6)


def test_fact_10_the_slack_is_positive():
    slacks = [stochastic.window_slack(float(eps), 1.0, 1.0) for eps in np.geomspace(1e-3, 1.0, 200)]
    assert min(slacks) >= math.log(16) / 2 - 1
    assert math.log(16) / 2 - 1 == pytest.approx(0.3863, abs=1e-4)


def test_fact_11_constants_of_the_stochastic_proof():
    assert 1 / 64 + 64 / 2016 + 1 / (64 * math.log(16)) == pytest.approx(0.05301, abs=1e-5)
    assert 0.05301 < 1 / 17
    assert Fraction(1, 17) + Fraction(4, 510) == Fraction(1, 15)
    # Positive root of 4 m^2 - m/15 - 4/15 at eps = G = 1.
    root = (Fraction(1, 15) + Fraction(31, 15)) / 8
    assert 4 * root**2 - root / 15 - Fraction(4, 15) == 0
    assert root == Fraction(4, 15)
    mean = root * Fraction(16, 15) + Fraction(1, 15)
    assert mean == Fraction(79, 225)
    assert 1 - mean >= Fraction(3, 5)


# --- the three false constants


def huber_of_10x(z):
    return [[10.0 * np.clip(10.0 * z[0], -1.0, 1.0)]]


def test_fact_12_rescaling_needs_the_square():
    """GAS value 0 at x0 = .01 (radius .01); the printed rule claims NAS .1, the truth is 1."""
    printed = OuterLipschitz(0.0, 0.01, 10.0)
    gradients = [huber_of_10x(np.array([z]))[0] for z in np.linspace(0.0, 0.02, 21)]
    assert shortest(gradients) == 0.0
    assert rules.near_from_goldstein(0.0, printed)[0] == pytest.approx(0.1)
    assert abs(huber_of_10x(np.array([0.01]))[0][0]) == pytest.approx(1.0)
    # No pivot of [-.05, .05] works on [-.01, .01] with 10; the point itself works with 100.
    ball = np.linspace(-0.01, 0.01, 41)
    for pivot in np.linspace(-0.05, 0.05, 201):
        assert falsify_modulus(huber_of_10x, [pivot], ball, 10.0) is not None
    sound = rules.rescale(OuterLipschitz(0.0, 0.01, 0.0), 10.0, 1.0, 1.0)
    assert sound.modulus == 100.0
    assert falsify(huber_of_10x, sound, lambda x: x) is None


def ramp_slopes(z):
    return [[0.0], [-1.0]] if z[0] in (0.0, 1.0) else [[float(ramp_slope(z[0]))]]


def printed_ramp_pivot(x):
    if abs(x[0]) <= 0.5:
        return [0.0]
    return [1.0] if abs(x[0] - 1.0) < 0.5 else x


def test_fact_13_margin_pivot():
    far = falsify(ramp_slopes, OuterLipschitz(0.1, 0.1, 0.0), printed_ramp_pivot, centers=[0.4])
    assert far.found == pytest.approx(0.4)
    edge = falsify(
        ramp_slopes,
        OuterLipschitz(0.5, 0.5, 0.0),
        printed_ramp_pivot,
        centers=[1.5],
        kinks=[0.0, 1.0],
        trials=0,
    )
    assert (edge.x[0], edge.pivot[0], edge.z[0]) == (1.5, 1.5, 1.0)
    for radius in (0.1, 0.25, 0.5, 2.0):
        closed = lambda x, r=radius: [theorems.nearest_kink_pivot(float(x[0]), [0.0, 1.0], r)]  # noqa: E731
        claim = OuterLipschitz(radius, radius, 0.0)
        assert falsify(ramp_slopes, claim, closed, kinks=[0.0, 1.0]) is None


def test_fact_14_gated_pivot():
    x, z = np.array([5.0, 0.05]), np.array([5.0, -0.05])
    violation = falsify_modulus(gated_vertices, x, [z], 1.0)
    assert violation.found == pytest.approx(5.00025, abs=1e-5)
    assert violation.allowed == pytest.approx(0.1)
    pivot = theorems.gated_pivot((5.0, 0.05), 0.1)
    assert falsify_modulus(gated_vertices, pivot, [z, x], 1.0) is None


# --- max(2x, -2x, y)


@pytest.mark.parametrize("d", [1.0, 0.125])
def test_fact_15_goldstein_without_near(d):
    x = np.array([0.0, 2 * d])
    ball = [
        x + d * r * np.array([math.cos(t), math.sin(t)])
        for r in (0.5, 0.9, 1.0)
        for t in np.linspace(0, 2 * np.pi, 181)
    ]
    ball += [x + d * np.array([s * 2 / math.sqrt(5), -1 / math.sqrt(5)]) for s in (-1, 1)]
    assert shortest(np.vstack([wedge(z) for z in ball])) == pytest.approx(0.0, abs=1e-12)
    nearest = min(shortest(wedge(z)) for z in ball)
    assert nearest == pytest.approx(2 / math.sqrt(5), abs=1e-9)
    assert nearest == pytest.approx(0.894427, abs=1e-6)


@pytest.mark.parametrize("d", [1.0, 0.125])
def test_fact_16_moduli_of_the_wedge(d):
    x = np.array([0.0, 2 * d])
    rng = np.random.default_rng(0)
    touch = [x + d * np.array([s * 0.8, -0.4]) for s in (-1, 1)]  # 2|x| = y: |z - x| = 2d/sqrt5
    inside = [x + d * v / max(1.0, np.linalg.norm(v)) for v in rng.uniform(-1, 1, (300, 2))]
    points = touch + inside
    assert falsify_modulus(wedge, x, points, 2.5 / d) is None
    assert falsify_modulus(wedge, x, touch, 2.49 / d) is not None
    # Any pivot of the d-ball needs at least 1/(sqrt5 d); the kink (0, 0), 2d away, needs nothing.
    for y in inside:
        assert falsify_modulus(wedge, y, points, 0.999 / (math.sqrt(5) * d)) is not None
    assert falsify_modulus(wedge, [0.0, 0.0], points, 0.0) is None


# --- traps of the sum rule


def test_fact_17_trap_s1():
    y = np.array([0.0, 1.0])
    gradients = np.array([svm_gradient(S1_ROWS, w) for w in around(y)])
    truth = shortest(gradients)
    assert truth == pytest.approx(1 / math.sqrt(5), abs=1e-6)
    sides = np.array([np.sign(S1_ROWS @ (w - y)) for w in around(y)])
    assert len(np.unique(sides, axis=0)) == 6  # of 8 patterns
    corners = [y - S1_ROWS.T @ np.array(s) for s in itertools.product([0.0, 1.0], repeat=3)]
    assert shortest(corners) == pytest.approx(0.0, abs=1e-12)


def test_fact_18_active_set_and_pivot_of_s1():
    x, eta = np.array([0.01, 0.99]), 0.02
    rows = np.vstack([S1_ROWS, S1_ROWS])
    levels = np.array([0.0, 0, 0, 1, 1, 1])
    active = np.abs(rows @ x - levels) <= eta * np.linalg.norm(rows, axis=1)
    assert np.flatnonzero(active).tolist() == [0, 4, 5]  # z1 at 0, z2 and z3 at rho
    pivot = project_exact(rows[active], levels[active], x)
    assert pivot == [0, 1]
    assert sqrt_upper(squared_distance(x, pivot)) == pytest.approx(0.0141421, abs=1e-7)


def test_fact_19_trap_n1():
    relu = lambda u: max(u, 0.0)  # noqa: E731
    f = lambda w: 0.5 * (relu(w) + 1) ** 2 + 0.5 * (relu(-w) - 1) ** 2  # noqa: E731
    for h in (1e-3, -1e-3):
        assert (f(h) - f(0.0)) / h == pytest.approx(1.0, abs=1e-3)
    # The box of the two relus, with the residuals 1 and -1 at 0, contains 0.
    box = [[s * 1.0 + t * -1.0 * -1.0] for s, t in itertools.product([0.0, 1.0], repeat=2)]
    assert shortest(box) == 0.0


# --- constants of the applications


def test_fact_20_norms_of_the_example():
    assert np.linalg.norm(Z, 2) == pytest.approx(math.sqrt(6))
    assert np.linalg.norm(np.linalg.pinv(Z), 2) == pytest.approx(1.0)
    assert theorems.pivot_factor(Z) / math.sqrt(2) == pytest.approx(1.649472, abs=1e-6)


def test_fact_21_goldstein_radius_of_the_example():
    eps = delta = 0.1
    condition = math.sqrt(2) * math.sqrt(6) * 1.0
    assert delta / condition == pytest.approx(0.0288675, abs=1e-7)
    assert eps / (2 * condition + 2) == pytest.approx(0.0112005, abs=1e-7)
    assert 1 / (2 * math.sqrt(6)) == pytest.approx(0.2041241, abs=1e-7)
    factor = theorems.pivot_factor(Z)
    assert delta / factor == pytest.approx(0.0428687, abs=1e-7)
    assert eps / (2 * (1 + factor)) == pytest.approx(0.0150028, abs=1e-7)


def layer_vertices(z):
    """dF for F(w) = (sum_j relu(w_j))^2 / 2: m neurons, one datum 1, squared loss."""
    masks = [[0.0, 1.0] if w == 0 else [float(w > 0)] for w in z]
    return [np.maximum(z, 0.0).sum() * np.array(mask) for mask in itertools.product(*masks)]


def test_fact_22_one_layer_modulus():
    square = np.linalg.norm(Z, 2) ** 2
    m, n, beta = 3, 2, 1.0
    assert beta * m * square == pytest.approx(18.0)
    assert beta * math.sqrt(m * n) * square == pytest.approx(14.697, abs=1e-3)
    violation = falsify_modulus(layer_vertices, np.zeros(4), [np.full(4, 0.05)], 2.0)
    assert (violation.found, violation.allowed) == (pytest.approx(0.4), pytest.approx(0.2))


def test_fact_23_two_layer_modulus():
    gate, weight, slope, beta, n = 2.0, 3.0, 1.0, 0.25, 2
    norm = np.linalg.norm(Z, 2)
    sharp = beta * norm**2 * (gate**2 + weight**2) + norm * math.sqrt(n) * slope
    assert sharp == pytest.approx(22.9641016, abs=1e-7)
    neuron = OuterLipschitz(0.1, 0.1, 1.0)
    inner = math.sqrt(gate**2 + (weight * np.linalg.norm(Z, axis=1).max()) ** 2)
    datum = rules.rescale(rules.separable_sum([neuron] * 3), inner, slope, beta)
    total = rules.partially_separable_sum([datum] * n)
    assert rules.linear_composition(total, Z).modulus == pytest.approx(159.0)


def n2_gradients():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    signs = np.array([1.0, 1.0, -1.0])
    return np.array([(signs * (rows @ d > 0)) @ rows for d in around(np.zeros(2))])


def n2_box():
    rows = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    return np.array([np.array(s) @ rows for s in itertools.product([0.0, 1.0], repeat=3)])


def test_fact_24_areas_of_trap_n2():
    assert ConvexHull(n2_gradients()).volume == pytest.approx(2.0)
    assert ConvexHull(n2_box()).volume == pytest.approx(3.0)


def test_fact_25_distance_of_the_box_of_trap_n2():
    gaps = [distance_to_hull(corner, n2_gradients()) for corner in n2_box()]
    assert max(gaps) == pytest.approx(1 / math.sqrt(2))


def test_fact_26_separable_sum_takes_the_maximum():
    triple = rules.separable_sum([OuterLipschitz(1, 1, 3), OuterLipschitz(1, 1, 4)])
    assert triple.modulus == 4.0
    hessian = np.diag([3.0, 4.0])
    assert np.linalg.norm(hessian, 2) == 4.0 < math.hypot(3, 4)


def subset_condition():
    unit = S1_ROWS / np.linalg.norm(S1_ROWS, axis=1)[:, None]
    worst = 0.0
    for size in (1, 2, 3):
        for subset in itertools.combinations(range(3), size):
            values = np.linalg.svd(unit[list(subset)], compute_uv=False)
            worst = max(worst, 1 / values[values > 1e-12].min())
    return worst


def test_fact_27_worst_subset_of_rows():
    assert subset_condition() == pytest.approx(1 / math.sqrt(1 - 1 / math.sqrt(2)))
    assert subset_condition() == pytest.approx(1.847759, abs=1e-6)


def test_fact_28_growth_factor():
    q = math.sqrt(3) * subset_condition()
    assert q == pytest.approx(3.200413, abs=1e-6)
    assert q**2 == pytest.approx(10.242641, abs=1e-6)


def test_fact_29_exact_signs():
    assert sum([1e16, 1.0, -1e16, -1.0]) == -1.0
    assert exact_dot([1e16, 1.0, -1e16, -1.0], np.ones(4)) == 0
    assert 1.0 + 1e-17 - 1.0 == 0.0
    assert exact_dot([1.0, 1e-17, -1.0], np.ones(3)) > 0
    assert float(exact_dot([3.0, -1.0], [0.1, 0.3])) == 2.7755575615628914e-17


# --- atoms


def symmetric_slopes(positive_slope):
    """Slopes of an even function with a kink at 0, from the slope to the right of it."""

    def slopes(z):
        u = float(z[0])
        s = positive_slope(abs(u))
        return [[-s], [s]] if u == 0 else [[math.copysign(s, u)]]

    return slopes


def scad(u, lam=1.0, a=3.7):
    return lam if u <= lam else max(a * lam - u, 0.0) / (a - 1)


@pytest.mark.parametrize(
    ("slope", "modulus"),
    [
        (scad, 10 / 27),
        (lambda u: max(1.0 - u / 2.0, 0.0), 1 / 2),
        (lambda u: 1.0 / (0.5 + u), 4.0),
    ],
    ids=["scad", "mcp", "log_sum"],
)
def test_fact_30_penalties(slope, modulus):
    slopes = symmetric_slopes(slope)
    for radius in (0.01, 0.25, 2.0):
        pivot = lambda x, r=radius: [theorems.nearest_kink_pivot(float(x[0]), [0.0], r)]  # noqa: E731
        attack = {"kinks": [0.0], "centers": [1.0, 1.5, 2.0, 3.0, 3.7], "spread": 5.0}
        claim = OuterLipschitz(radius, radius, modulus)
        assert falsify(slopes, claim, pivot, **attack) is None
        if radius == 0.01:
            tight = OuterLipschitz(radius, radius, 0.9 * modulus)
            assert falsify(slopes, tight, pivot, **attack) is not None


def test_fact_31_max_of_coordinates():
    """Radius eta sqrt(k/2) is attained; averaging fewer coordinates is not enough."""
    eta = 0.5
    for k in (2, 4):
        x = np.zeros(k)
        x[k // 2 :] = -math.sqrt(2) * eta * (1 - 1e-15)
        pivot = max_pivot(x, eta)
        assert np.ptp(pivot) == 0.0
        assert np.linalg.norm(pivot - x) <= eta * math.sqrt(k / 2)
    two = max_pivot(np.array([math.sqrt(2) * eta * (1 - 1e-15), 0.0]), eta)
    assert two[0] == two[1]


def test_fact_32_euclidean_norm():
    rng = np.random.default_rng(0)
    x = np.array([1.0, 0.0])
    z = x + 0.5 * np.array([v / max(1.0, np.linalg.norm(v)) for v in rng.uniform(-1, 1, (4000, 2))])
    z = np.vstack([z, x + 0.5 * np.array([[-0.5, math.sqrt(0.75)]])])
    gap = np.linalg.norm(z / np.linalg.norm(z, axis=1)[:, None] - x, axis=1)
    ratio = gap / np.linalg.norm(z - x, axis=1)
    assert ratio.max() <= 1.0 / math.sqrt(1.0 * (1.0 - 0.5)) * (1 + 1e-12)


def test_fact_33_transported_combination_of_the_svm():
    """Pieces share the Hessian lam I: moving all gradients to y adds lam (y - ybar)."""
    rng = np.random.default_rng(0)
    lam, rows = 0.7, rng.standard_normal((6, 3))
    points, weights = rng.standard_normal((4, 3)) * 0.1, rng.dirichlet(np.ones(4))
    slopes = [ramp_slope(rows @ p) for p in points]
    m = sum(w * (lam * p + rows.T @ s) for w, p, s in zip(weights, points, slopes, strict=True))
    y = rng.standard_normal(3)
    moved = sum(w * (lam * y + rows.T @ s) for w, s in zip(weights, slopes, strict=True))
    np.testing.assert_allclose(moved, m + lam * (y - weights @ points), atol=1e-14)


def test_fact_34_lipschitz_constant_of_the_svm():
    start, delta = np.zeros(3), 0.1
    value = lambda w: 0.5 * w @ w + np.clip(1.0 - Z @ w, 0.0, 1.0).sum()  # noqa: E731
    assert value(start) == 2.0
    bound = math.sqrt(2 * value(start)) + delta + math.sqrt(2) * np.linalg.norm(Z, 2)
    assert bound == pytest.approx(5.5641016, abs=1e-7)
    rng = np.random.default_rng(0)
    largest = 0.0
    for w in rng.uniform(-2, 2, (4000, 3)):
        if value(w) <= 2.0:
            step = rng.standard_normal(3)
            near = w + delta * step / np.linalg.norm(step)
            largest = max(largest, float(np.linalg.norm(svm_gradient(Z, near))))
    assert 3.0 < largest <= bound


def test_fact_35_softmax_cross_entropy_is_half_smooth():
    rng = np.random.default_rng(0)
    largest = 0.0
    for k in (2, 3, 5):
        for p in [*rng.dirichlet(np.ones(k) * 0.5, 200), np.r_[0.5, 0.5, np.zeros(k - 2)]]:
            largest = max(largest, np.linalg.norm(np.diag(p) - np.outer(p, p), 2))
    assert largest == pytest.approx(0.5, abs=1e-12)
    # The gradient p - e_y is at most sqrt2 long, in the limit of a confident mistake.
    assert np.linalg.norm(np.array([1.0, -1.0])) == pytest.approx(math.sqrt(2))


def test_fact_36_the_ball_is_closed():
    relu = lambda z: [[0.0], [1.0]] if z[0] == 0 else [[float(z[0] > 0)]]  # noqa: E731
    claim = OuterLipschitz(0.25, 0.25, 0.0)
    strict = lambda x: [0.0] if abs(x[0]) < 0.25 else x  # noqa: E731
    violation = falsify(relu, claim, strict, kinks=[0.0])
    assert abs(violation.x[0]) == 0.25
    assert violation.z[0] == 0.0
    closed = lambda x: [0.0] if abs(x[0]) <= 0.25 else x  # noqa: E731
    assert falsify(relu, claim, closed, kinks=[0.0]) is None


def test_fact_37_linear_composition():
    triple = rules.linear_composition(OuterLipschitz(1.0, 1.0, 1.0), np.diag([3.0, 0.5]))
    assert list(triple) == pytest.approx([2.0, 1 / 3, 9.0])


def test_fact_38_absolute_value_is_near_stationary():
    vertices = lambda z: [[-1.0], [1.0]] if z[0] == 0 else [[math.copysign(1.0, z[0])]]  # noqa: E731
    pivot = theorems.nearest_kink_pivot(0.05, [0.0], 0.05)
    assert shortest(vertices([pivot])) == 0.0
    assert sqrt_upper(squared_distance([0.05], [pivot])) == 0.05
    eps, delta = rules.near_from_goldstein(0.0, OuterLipschitz(0.05, 0.05, 0.0))
    assert (eps, delta) == (0.0, 0.05)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_fact_39_conic_perturbation(d):
    rng = np.random.default_rng(d)
    m = np.arange(1.0, d + 1)
    norm = float(np.linalg.norm(m))
    squares = np.array([(b := tilt(rng, m, norm)) @ b for _ in range(20_000)])
    assert squares.max() <= 1.0
    assert squares.mean() == pytest.approx((d - 1) / (d + 1), abs=0.01)


def test_fact_40_rounded_window_overshoots():
    eps, delta, scale = 0.1, 0.1, 1.0
    p = stochastic.inverse_longest_step(eps, delta, scale)
    beta, lg = stochastic.averaging(eps, scale), stochastic.log_factor(eps, scale)
    printed = (1 / (1 - beta) + 1 / math.log(beta)) * lg
    excess = stochastic.window_length(eps, scale) / p + printed / p - delta
    assert excess == pytest.approx(1.3092e-6, abs=1e-9)
    corrected = stochastic.window_slack(eps, delta, scale)
    assert stochastic.window_length(eps, scale) / p + corrected / p <= delta * (1 + 1e-15)


def test_fact_41_piece_hessian():
    """All four neurons active: F = (w1+w2+w3+w4)^2/2."""
    assert np.linalg.norm(np.ones((4, 4)), 2) == pytest.approx(4.0)
    y, z = np.full(4, 1.0), np.full(4, 1.5)
    moved = np.linalg.norm(layer_vertices(z)[0] - layer_vertices(y)[0])
    assert moved / np.linalg.norm(z - y) == pytest.approx(4.0)


def test_fact_42_limits_of_two_atoms():
    def insensitive(z):
        u = float(z[0])
        if abs(u) == 1.0:
            return [[0.0], [u]]
        return [[0.0 if abs(u) < 1 else math.copysign(1.0, u)]]

    def capped(z):
        u = float(z[0])
        if u == 0.0:
            return [[-1.0], [1.0]]
        if abs(u) == 1.0:
            return [[0.0], [u]]
        return [[0.0 if abs(u) > 1 else math.copysign(1.0, u)]]

    def survives(slopes, kinks, radius):
        pivot = lambda x: [theorems.nearest_kink_pivot(float(x[0]), kinks, radius)]  # noqa: E731
        return falsify(slopes, OuterLipschitz(radius, radius, 0.0), pivot, kinks=kinks) is None

    assert survives(insensitive, [-1.0, 1.0], 0.99)
    assert not survives(insensitive, [-1.0, 1.0], 1.0)
    assert survives(capped, [-1.0, 0.0, 1.0], 0.5)
    assert not survives(capped, [-1.0, 0.0, 1.0], 0.51)


def test_every_fact_has_its_test():
    numbers = {int(name.split("_")[2]) for name in globals() if name.startswith("test_fact_")}
    assert numbers == set(range(1, 43))
