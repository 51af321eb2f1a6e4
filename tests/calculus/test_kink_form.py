"""Limits of gradients, the span test, and the traps."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from tests.limits import limiting_gradients

import goldstein.calculus as gc
from goldstein.checker.sides import Side, point_at
from goldstein.construction.near.kinks import clarke_distance, span_test
from goldstein.errors import NotCertifiableError
from goldstein.models import margin_svm


def s1():
    return margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], rho=1.0, lam=1.0)


def n1():
    w = gc.Variable(1)
    return 0.5 * gc.sum_squares(gc.relu(w) + 1.0) + 0.5 * gc.sum_squares(gc.relu(-w) - 1.0)


def n2():
    d = gc.Variable(2)
    return gc.relu(d[0]) + gc.relu(d[1]) - gc.relu(d[0] + d[1])


def limits(F, point, directions):
    return [[float(v) for v in mid] for mid, _ in limiting_gradients(F, point, directions)]


def test_s1_the_box_says_0_and_the_truth_is_1_over_sqrt5():
    F = s1()
    assert not span_test(F, [0, 1]).holds
    found = clarke_distance(F, [0, 1])
    assert found.lower <= 1e-9
    assert found.upper == pytest.approx(1 / math.sqrt(5), rel=1e-9)
    assert Fraction(found.upper) ** 2 >= Fraction(1, 5)


def test_s1_has_six_of_eight_patterns():
    F = s1()
    here = point_at(F.program(), [0, 1])
    (k,) = here.ties
    rng = np.random.default_rng(0)
    sides = [Side(here, v).pieces[k] for v in rng.standard_normal((200, 2))]
    assert len({tuple(p.tolist()) for p in sides}) == 6


def test_n1_the_box_says_0_and_the_derivative_is_1():
    found = clarke_distance(n1(), [0])
    assert not found.test.holds
    assert found.lower == 0.0
    assert found.upper == 1.0
    assert limits(n1(), [0], [[1.0], [-1.0]]) == [[1.0], [1.0]]


def test_n2_area_is_2_not_3():
    rng = np.random.default_rng(0)
    shown = limits(n2(), [0, 0], rng.standard_normal((300, 2)))
    # The box is the zonotope of e1, e2 and -(1,1), of area 3.
    assert ConvexHull(shown).volume == pytest.approx(2.0)
    assert not span_test(n2(), [0, 0]).holds


def test_max_example_distance_is_1_over_sqrt2_on_two_pieces():
    # |x| + y^2-free part: at (0, 0) pieces (1,1) and (-1,1) -> shortest (0,1); with a third, sqrt.
    F = gc.max_affine([[1.0, 0.0], [0.0, 1.0]], 0.0, gc.Variable(2))
    assert clarke_distance(F, [0, 0]).upper == pytest.approx(1 / math.sqrt(2))


def test_max_of_three_planes():
    # f = max(2x, -2x, y) at the origin has the subgradient 0 = mean of (2,0) and (-2,0).
    F = gc.max_affine([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]], 0.0, gc.Variable(2))
    assert clarke_distance(F, [0, 0]).upper <= 1e-12
    assert clarke_distance(F, [0.25, 0.5]).upper == pytest.approx(2 / math.sqrt(5))


def test_span_test_holds_for_convex_and_independent_kinks():
    w = gc.Variable(2)
    convex = gc.sum(gc.abs(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]) @ w))
    assert span_test(convex, [0, 0]).holds
    assert clarke_distance(convex, [0, 0]).upper <= 1e-15
    mixed = gc.relu(w[0]) - gc.relu(w[1])
    assert span_test(mixed, [0, 0]).holds
    found = clarke_distance(mixed, [0, 0])
    assert found.lower == found.upper == 0.0


def test_span_test_agrees_with_enumeration():
    rng = np.random.default_rng(4)
    for _ in range(30):
        k, d = rng.integers(2, 5), rng.integers(1, 4)
        A = rng.integers(-1, 2, size=(k, d)).astype(float)
        A = A[np.abs(A).sum(axis=1) > 0]
        if not len(A):
            continue
        slopes = rng.choice([-2.0, -1.0, 1.0, 2.0], size=len(A))
        w = gc.Variable(int(d))
        F = gc.sum(gc.relu(A @ w) * slopes) + gc.sum(w)
        shown = np.unique(limits(F, [0] * d, rng.standard_normal((120, d))), axis=0)
        # Equality of the two polytopes: every box vertex extreme in some direction is attained.
        probes = rng.standard_normal((200, d))
        box = 1.0 * probes.sum(axis=1) + np.maximum(probes @ (slopes[:, None] * A).T, 0).sum(axis=1)
        equal = np.allclose((probes @ shown.T).max(axis=1), box)
        assert span_test(F, [0] * d).holds == equal


def test_directions_on_a_kink_are_refused():
    with pytest.raises(NotCertifiableError, match="stays on a kink"):
        limits(n2(), [0, 0], [[1.0, 0.0]])
    w = gc.Variable(2)
    with pytest.raises(NotCertifiableError):
        limits(gc.max(w), [1, 1], [[1.0, 1.0]])
    with pytest.raises(NotCertifiableError):
        limits(gc.norm2(w[:1]), [0, 1], [[0.0, 1.0]])


def test_norm_at_the_origin():
    (g,) = limits(gc.norm2(gc.Variable(2)), [0, 0], [[3.0, 4.0]])
    assert g == pytest.approx([0.6, 0.8], rel=1e-14)


def test_identical_rows_of_max_are_one_piece():
    F = gc.max(np.array([[1.0, 2.0], [1.0, 2.0]]) @ gc.Variable(2))
    np.testing.assert_array_equal(F.gradient(np.array([1.0, 1.0])), [1.0, 2.0])


class TestCurvedKinks:
    """Kinks inside kinks and of products: decided by exact polynomials along the direction."""

    def test_second_order_decides(self):
        # u = w0^2 - w1 vanishes to first order along (1, 0); the square decides.
        w = gc.Variable(2)
        F = gc.relu(w[0] * w[0] - w[1])
        assert limits(F, [0, 0], [[1.0, 0.0]]) == [[0.0, -1.0]]
        assert limits(F, [0, 0], [[0.0, 1.0]]) == [[0.0, 0.0]]

    def test_deep_network_limits_are_limits(self):
        rng = np.random.default_rng(5)
        t = gc.Variable(10)
        X = np.array([[1.0, 0.0], [1.0, 1.0], [2.0, -1.0], [-1.0, 1.0]])
        # abs: a layer of dead neurons would make the next one constant, which is refused.
        hidden = gc.abs(X @ t[:4].reshape(2, 2))
        F = gc.sum(gc.abs(gc.relu(hidden @ t[4:8].reshape(2, 2)) @ t[8:] - 1.0))
        point = np.array([0, 0, 1, -1, 0, 1, 1, 0, 1, 1], dtype=float)
        for v in rng.standard_normal((20, 10)):
            (g,) = limits(F, point, [v])
            np.testing.assert_allclose(F.gradient(point + 1e-9 * v), g, atol=1e-6)

    def test_an_exact_tie_on_a_curve_is_refused(self):
        w = gc.Variable(2)
        F = gc.relu(w[0] * w[1])
        with pytest.raises(NotCertifiableError):
            limits(F, [0, 0], [[1.0, 0.0]])

    def test_irrational_kink_is_refused_not_guessed(self):
        w = gc.Variable(1)
        F = gc.relu(gc.sum(gc.softplus(w)) - gc.sum(gc.softplus(w)))
        with pytest.raises(NotCertifiableError):
            limits(F, [0.3], [[1.0]])
