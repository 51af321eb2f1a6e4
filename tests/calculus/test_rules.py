"""Every rule of the calculus: known numbers, attacks by the counterexample search, refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests import theorems
from tests.falsify import falsify
from tests.theorems import max_pivot, smooth

from goldstein.apriori import rules
from goldstein.apriori.rules import OuterLipschitz
from goldstein.errors import InputError, NotCertifiableError

Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])


def product_set(per_coordinate):
    """Vertices of a product of intervals."""
    return [np.array(corner) for corner in itertools.product(*per_coordinate)]


def abs_slopes(u):
    return [-1.0, 1.0] if u == 0 else [math.copysign(1.0, u)]


def relu_slopes(u):
    return [0.0, 1.0] if u == 0 else [float(u > 0)]


def snap(radius):
    """The pivot map that puts every small coordinate on its kink at 0."""
    return lambda x: np.where(np.abs(x) <= radius, 0.0, x)


# --- the triple


def test_triples_validate_their_numbers():
    for bad in [
        (-1, 1, 0),
        (1, 0, 0),
        (1, 1, -1),
        (math.inf, 1, 0),
        (1, 1, math.inf),
        (math.nan, 1, 0),
    ]:
        with pytest.raises(InputError):
            OuterLipschitz(*bad)
    assert OuterLipschitz(0, math.inf, 0).reach == math.inf


def test_triples_only_weaken():
    triple = OuterLipschitz(1.0, 2.0, 3.0)
    assert triple.implies(OuterLipschitz(2.0, 1.0, 4.0))
    for stronger in [{"pivot_radius": 0.5}, {"reach": 3.0}, {"modulus": 2.0}]:
        assert not triple.implies(replace(triple, **stronger))


@given(*[st.floats(0, 1e6)] * 3, *[st.floats(0, 1e6)] * 3)
def test_implication_is_the_product_order(d1, k1, e1, d2, k2, e2):
    a, b = OuterLipschitz(d1, e1 + 1, k1), OuterLipschitz(d2, e2 + 1, k2)
    assert a.implies(b) == (d1 <= d2 and e1 + 1 >= e2 + 1 and k1 <= k2)


# --- sums


def test_r0_scaling():
    triple = theorems.scale(OuterLipschitz(0.5, 0.5, 1.0), -3.0)
    assert triple == OuterLipschitz(0.5, 0.5, 3.0)
    slopes = lambda z: [[-3.0 * (s + z[0])] for s in abs_slopes(z[0])]  # noqa: E731
    assert falsify(slopes, triple, snap(0.5), kinks=[0.0]) is None
    assert falsify(slopes, OuterLipschitz(0.5, 0.5, 2.9), snap(0.5), kinks=[0.0]) is not None


def test_r1_smooth_sum():
    triple = rules.smooth_sum(OuterLipschitz(0.5, 0.5, 1.0), 2.0)
    assert triple == OuterLipschitz(0.5, 0.5, 3.0)
    slopes = lambda z: [[s + 3.0 * z[0]] for s in relu_slopes(z[0])]  # noqa: E731
    assert falsify(slopes, triple, snap(0.5), kinks=[0.0]) is None
    assert falsify(slopes, OuterLipschitz(0.5, 0.5, 2.9), snap(0.5), kinks=[0.0]) is not None
    assert rules.smooth_sum(smooth(1.0), 2.0) == smooth(3.0)


def test_r2_separable_sum_takes_the_largest_modulus():
    parts = [OuterLipschitz(0.3, 0.3, 3.0), OuterLipschitz(0.4, 0.4, 4.0)]
    triple = rules.separable_sum(parts)
    assert triple.pivot_radius == pytest.approx(0.5)
    assert (triple.reach, triple.modulus) == (0.3, 4.0)

    def slopes(z):
        return product_set(
            [[s + k * u for s in abs_slopes(u)] for u, k in zip(z, (3, 4), strict=True)]
        )

    pivot = lambda x: np.where(np.abs(x) <= [0.3, 0.4], 0.0, x)  # noqa: E731
    kinks = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert falsify(slopes, triple, pivot, dim=2, kinks=kinks, trials=60) is None
    tighter = OuterLipschitz(triple.pivot_radius, 0.3, 3.9)
    assert falsify(slopes, tighter, pivot, dim=2, kinks=kinks, trials=60) is not None


def test_r5_shared_pivot_sum():
    parts = [OuterLipschitz(0.5, 0.5, 3.0), OuterLipschitz(0.5, 0.25, 4.0)]
    triple = rules.shared_pivot_sum(parts)
    assert triple == OuterLipschitz(0.5, 0.25, 7.0)
    slopes = lambda z: [[s + t + 7.0 * z[0]] for s in abs_slopes(z[0]) for t in relu_slopes(z[0])]  # noqa: E731
    assert falsify(slopes, triple, snap(0.5), kinks=[0.0]) is None


def gated_layer(z):
    """Vertices of dF, F(a, b_1..b_m) = a sum_i max(b_i, 0): m gated relus that share a."""
    a, b = z[0], z[1:]
    parts = product_set([[a * s for s in relu_slopes(u)] for u in b])
    return [np.concatenate([[np.maximum(b, 0.0).sum()], part]) for part in parts]


def test_r6_the_arrow_matrix_is_sharp_for_gated_relus():
    m = 3
    parts = [OuterLipschitz(0.5, 0.5, 1.0)] * m
    plain = rules.partially_separable_sum(parts)
    assert plain.modulus == 3.0
    blocks = [rules.ArrowBlock(0.0, 1.0, 1.0, 0.0)] * m
    sharp = rules.partially_separable_sum(parts, blocks)
    assert sharp.modulus == pytest.approx(math.sqrt(3), rel=1e-12)
    assert sharp.pivot_radius == pytest.approx(math.sqrt(0.75))

    def pivot(x):
        return np.concatenate([x[:1], snap(0.5)(x[1:])])

    kinks = [[2.0, 0.0, 0.0, 0.0], [1.0, 1.0, 0.0, 2.0]]
    attack = {"dim": 4, "kinks": kinks, "trials": 30}
    assert falsify(gated_layer, sharp, pivot, **attack) is None
    # The worst direction: all b_i grow together.
    y, z = np.array([1.0, 1, 1, 1]), np.array([1.0, 1.1, 1.1, 1.1])
    moved = np.linalg.norm(gated_layer(z)[0] - gated_layer(y)[0])
    assert moved / np.linalg.norm(z - y) == pytest.approx(math.sqrt(3))


def test_r6_sum_of_moduli_is_attained():
    """E22: G_i = (kappa_i x_0, 0)."""
    blocks = [rules.ArrowBlock(k, 0.0, 0.0, 0.0) for k in (1.0, 2.0, 4.0)]
    triple = rules.partially_separable_sum([OuterLipschitz(1, 1, k) for k in (1, 2, 4)], blocks)
    assert triple.modulus == pytest.approx(7.0)


def test_r6_counts_the_shared_move_once():
    parts = [OuterLipschitz(5.0, 1.0, 0.0), OuterLipschitz(13.0, 1.0, 0.0)]
    assert rules.partially_separable_sum(parts, shared_move=5.0).pivot_radius == 13.0
    with pytest.raises(InputError, match="shared_move"):
        rules.partially_separable_sum(parts, shared_move=6.0)
    with pytest.raises(InputError, match="arrow blocks"):
        rules.partially_separable_sum(parts, [rules.ArrowBlock(0, 0, 0, 0)])


# --- compositions


def test_r3_known_numbers():
    triple = rules.linear_composition(OuterLipschitz(1.0, 1.0, 1.0), np.diag([3.0, 0.5]))
    assert list(triple) == pytest.approx([2.0, 1 / 3, 9.0], rel=1e-12)
    assert Fraction(triple.reach) <= Fraction(1, 3)
    assert triple.pivot_radius >= 2.0
    assert triple.modulus >= 9.0


def pulled_back(matrix, curvature=0.0):
    """Vertices of d(sum_i |u_i| + curvature u_i^2/2)(Ax): equality because A is onto."""

    def slopes(x):
        u = matrix @ x
        # A lifted pivot is on its kinks up to rounding; snap it there.
        u = np.where(np.abs(u) < 1e-12, 0.0, u)
        corners = product_set([[s + curvature * v for s in abs_slopes(v)] for v in u])
        return [matrix.T @ corner for corner in corners]

    return slopes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("rowwise", [False, True])
def test_r3_pivots_lifted_through_a_matrix(seed, rowwise):
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((2, 3)) * [[1.0], [4.0]]
    inverse = np.linalg.pinv(matrix)
    if rowwise:
        triple = theorems.rowwise_composition(matrix, reach=0.1, modulus=2.0)
        thresholds = 0.1 * np.linalg.norm(matrix, axis=1) * (1 + 1e-12)
    else:
        inner = rules.separable_sum([OuterLipschitz(0.3, 0.3, 2.0)] * 2)
        triple = rules.linear_composition(inner, matrix)
        thresholds = np.full(2, 0.3)

    def pivot(x):
        u = matrix @ x
        return x + inverse @ (np.where(np.abs(u) <= thresholds, 0.0, u) - u)

    kinks = [inverse @ u for u in ([0.0, 0.0], [0.0, 1.0], [1.0, 0.0])]
    slack = replace(triple, pivot_radius=triple.pivot_radius * (1 + 1e-9))
    attack = {"dim": 3, "kinks": kinks, "trials": 60, "tolerance": 1e-7}
    assert falsify(pulled_back(matrix, 2.0), slack, pivot, **attack) is None
    flat = OuterLipschitz(slack.pivot_radius, triple.reach, 0.05 * triple.modulus)
    assert falsify(pulled_back(matrix, 2.0), flat, pivot, **attack) is not None


def test_r3_rowwise_is_never_looser_than_the_chain():
    rng = np.random.default_rng(5)
    for _ in range(20):
        matrix = rng.standard_normal((3, 6)) * 10.0 ** rng.uniform(-2, 2, (3, 1))
        chain = rules.linear_composition(rules.separable_sum([OuterLipschitz(1, 1, 0)] * 3), matrix)
        rowwise = theorems.rowwise_composition(matrix, chain.reach)
        assert rowwise.pivot_radius <= chain.pivot_radius * (1 + 1e-9)


def test_r3_rowwise_copies_and_limits():
    one = theorems.rowwise_composition(Z, 0.1)
    four = theorems.rowwise_composition(Z, 0.1, copies=4)
    assert four.pivot_radius == pytest.approx(2 * one.pivot_radius)
    with pytest.raises(NotCertifiableError, match="row 0 needs the radius"):
        theorems.rowwise_composition(Z, 0.1, limits=0.2)
    assert theorems.rowwise_composition(Z, 0.1, limits=0.23).reach == 0.1
    with pytest.raises(InputError, match="copies"):
        theorems.rowwise_composition(Z, 0.1, copies=0)


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        ([[1.0, 2.0], [2.0, 4.0]], "rank 1"),
        ([[1.0], [2.0]], "rank at most 1"),
        ([[0.1, 0.2, 0.3], [0.2, 0.4, 0.6]], "rank 1"),
        (np.diag([1.0, 1e-30]), "floats cannot bound"),
    ],
)
def test_r3_says_which_rank_is_missing(matrix, words):
    with pytest.raises(NotCertifiableError, match=words):
        rules.linear_composition(OuterLipschitz(1, 1, 0), matrix)


def test_r4_rescaling_uses_the_square():
    assert rules.rescale(OuterLipschitz(0.1, 0.1, 2.0), 3.0, 5.0, 0.5).modulus == 14.5

    def slopes(z):  # log(1 + (2|x|+1)^2): g' = 2u/(1+u^2), |g''| <= 2, |g'| <= 1
        u = 2.0 * abs(z[0]) + 1.0
        return [[2.0 * u / (1.0 + u * u) * 2.0 * s] for s in abs_slopes(z[0])]

    triple = rules.rescale(OuterLipschitz(0.5, 0.5, 0.0), 2.0, 1.0, 2.0)
    assert falsify(slopes, triple, snap(0.5), kinks=[0.0]) is None


def test_r4_vector_rescaling():
    parts = [OuterLipschitz(0.3, 0.3, 1.0), OuterLipschitz(0.4, 0.4, 0.0)]
    triple = theorems.vector_rescale(parts, [1.0, 2.0], [0.5, 3.0], beta=0.25)
    assert list(triple) == pytest.approx([0.5, 0.3, 0.25 * 4 + 0.5])

    def slopes(z):  # sqrt(1 + |x|^2 + (2 relu(y))^2): 1-smooth and 1-Lipschitz in both arguments
        u = np.array([abs(z[0]), 2.0 * max(z[1], 0.0)])
        outer = u / math.sqrt(1.0 + u @ u)
        return product_set(
            [
                [outer[0] * s for s in abs_slopes(z[0])],
                [2.0 * outer[1] * s for s in relu_slopes(z[1])],
            ]
        )

    net = theorems.vector_rescale([OuterLipschitz(0.5, 0.5, 0.0)] * 2, [1.0, 2.0], [1.0, 1.0], 1.0)
    kinks = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    assert falsify(slopes, net, snap(0.5), dim=2, kinks=kinks, trials=60) is None
    with pytest.raises(InputError, match="one of each"):
        theorems.vector_rescale(parts, [1.0], [1.0, 1.0], 1.0)


def test_r7_nonlinear_inner_map():
    """|c(x)| with c(x) = x + sin(x)/4: slopes of c in [3/4, 5/4], bending at most 1/4."""
    triple = theorems.nonlinear_composition(OuterLipschitz(0.3, 0.3, 0.0), 0.75, 1.25, 0.25, 1.0)
    assert triple.modulus == 0.25
    slopes = lambda z: [[(1.0 + math.cos(z[0]) / 4.0) * s] for s in abs_slopes(z[0])]  # noqa: E731

    def pivot(x):
        return [0.0] if abs(x[0] + math.sin(x[0]) / 4.0) <= 0.3 else x

    assert falsify(slopes, triple, pivot, kinks=[0.0], spread=6.0) is None
    linear = theorems.nonlinear_composition(OuterLipschitz(1, 1, 1), 0.5, 3.0, 0.0, 1.0)
    assert list(linear) == pytest.approx([2.0, 1 / 3, 9.0])


# --- pieces and pivots


def test_r8_pieces():
    assert theorems.pieces(0.2, 0.1, [1, 3, 2]) == OuterLipschitz(0.2, 0.1, 3.0)
    with pytest.raises(NotCertifiableError, match="kinks are only 1"):
        theorems.scalar_pieces(0.5, [0.0, 1.0], [0.0])

    def slopes(z):  # x^2 on [0, 1], else |x|: kinks at 0 and 1
        u = z[0]
        inside, outside = 2.0 * u, math.copysign(1.0, u)
        if u == 0.0:
            return [[-1.0], [0.0]]
        if u == 1.0:
            return [[2.0], [1.0]]
        return [[inside if 0.0 < u < 1.0 else outside]]

    triple = theorems.scalar_pieces(0.4, [0.0, 1.0], [0.0, 2.0, 0.0])
    pivot = lambda x: [theorems.nearest_kink_pivot(float(x[0]), [0.0, 1.0], 0.4)]  # noqa: E731
    assert falsify(slopes, triple, pivot, kinks=[0.0, 1.0]) is None


def test_ties_go_to_the_kink_nearest_zero():
    assert theorems.nearest_kink_pivot(0.5, [1.0, 0.0], 0.5) == 0.0
    assert theorems.nearest_kink_pivot(-0.5, [-1.0, 0.0], 0.5) == 0.0
    assert theorems.nearest_kink_pivot(2.0, [], 0.5) == 2.0
    assert theorems.nearest_kink_pivot(0.5, [0.0], 0.5) == 0.0  # closed


@pytest.mark.parametrize("k", [2, 3, 5])
def test_max_of_coordinates(k):
    reach = 0.25
    claim = OuterLipschitz(math.sqrt(k / 2) * reach * (1 + 1e-12), reach, 0.0)

    def slopes(z):
        return np.eye(k)[z >= z.max() - 1e-14]

    rng = np.random.default_rng(k)
    kinks = [np.repeat(t, k) for t in (0.0, 1.0)] + [np.round(rng.random(k), 1) for _ in range(4)]
    attack = {"dim": k, "kinks": kinks, "trials": 60, "spread": 1.0}
    assert falsify(slopes, claim, lambda x: max_pivot(x, reach), **attack) is None
    lazy = lambda x: max_pivot(x, 0.6 * reach)  # noqa: E731
    assert falsify(slopes, claim, lazy, **attack) is not None


# --- near from Goldstein


def test_near_from_goldstein():
    triple = OuterLipschitz(0.5, 0.25, 2.0)
    assert rules.near_from_goldstein(0.1, triple)[0] == pytest.approx(1.6)
    assert rules.near_from_goldstein(0.1, triple, radius=0.125)[0] == pytest.approx(1.35)
    assert rules.near_from_goldstein(0.1, OuterLipschitz(0.5, math.inf, 0.0)) == (0.1, 0.5)
    assert rules.near_from_goldstein(0.1, smooth(1.0), radius=0.5)[0] == pytest.approx(0.6)
    with pytest.raises(InputError, match="reaches only"):
        rules.near_from_goldstein(0.1, triple, radius=0.3)


# --- rounding

numbers = st.floats(1e-6, 1e6)


@given(numbers, numbers, numbers, numbers, numbers, numbers)
def test_every_constant_is_rounded_to_the_safe_side(d, e, k, inner, outer, beta):
    triple = OuterLipschitz(d, e, k)
    exact = {
        name: Fraction(value)
        for name, value in zip("dekiob", (d, e, k, inner, outer, beta), strict=True)
    }
    assert Fraction(rules.smooth_sum(triple, beta).modulus) >= exact["k"] + exact["b"]
    rescaled = rules.rescale(triple, inner, outer, beta).modulus
    assert Fraction(rescaled) >= exact["b"] * exact["i"] ** 2 + exact["k"] * exact["o"]
    moved = theorems.nonlinear_composition(triple, inner, outer, beta, k)
    assert Fraction(moved.pivot_radius) >= exact["d"] / exact["i"]
    assert Fraction(moved.reach) <= exact["e"] / exact["o"]
    near, _ = rules.near_from_goldstein(beta, triple)
    assert Fraction(near) >= exact["b"] + exact["k"] * (exact["d"] + exact["e"])


@pytest.mark.parametrize("bad", [-1.0, math.inf, math.nan])
def test_constants_must_be_finite_and_nonnegative(bad):
    triple = OuterLipschitz(1, 1, 1)
    for rule in (
        lambda: rules.smooth_sum(triple, bad),
        lambda: rules.rescale(triple, bad, 1, 1),
        lambda: rules.rescale(triple, 1, 1, bad),
        lambda: rules.near_from_goldstein(bad, triple),
        lambda: theorems.nonlinear_composition(triple, 1, 1, bad, 1),
    ):
        with pytest.raises(InputError, match="bounded domain"):
            rule()


def test_no_summands_are_refused():
    for rule in (rules.separable_sum, rules.shared_pivot_sum, rules.partially_separable_sum):
        with pytest.raises(InputError, match="at least one"):
            rule([])
