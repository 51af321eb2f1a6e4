"""Cases that tempt a proof of a minimum to say too much; each ends as the mathematics says."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.constrained.limits import Box
from goldstein.checker.enclosed.irrational import Norm2
from goldstein.checker.errors import NotCertifiableError
from goldstein.checker.minimum.curvature import Pass, Region, at_least
from goldstein.checker.minimum.minimum import convexity, minorant, slope_along
from goldstein.checker.minimum.spans import Span
from goldstein.checker.minimum.supports import Sharp, Support
from goldstein.checker.nodes import Max, Piecewise
from goldstein.checker.sides import point_at
from goldstein.construction.minimum import prove_minimum, refuted, with_gap

ZERO = Fraction(0)
X, Z = gs.Variable(1), gs.Variable(2)


def node(F: Any, kind: type, which: int = 0) -> int:
    return [k for k, n in enumerate(F.program().nodes) if isinstance(n, kind)][which]


def curvature(F: Any, y: list[float], radius: float) -> np.ndarray:
    program = F.program()
    total, _ = Pass(program, Region(y, radius)).backward(program.last, Span(np.ones(1)))
    return total.lower


def refuses(F: Any, y: Any, radius: float, *supports: Support, sharp: Any = ()) -> str:
    with pytest.raises(NotCertifiableError) as why:
        minorant(F.program(), y, radius, supports, sharp)
    return str(why.value)


def certified(F: Any, x: list[float]) -> Any:
    found = gs.certify(F, x, delta=1e-6, stationarity="minimum", rng=0)
    assert found.verify(F).ok, found.verify(F)
    return found


@pytest.mark.parametrize(
    ("F", "x", "axis"),
    [(gs.sum(-abs(X) + X * X / 2), [0.0], 0), (abs(Z[0]) - abs(Z[1]), [0.0, 0.0], 1)],
)
def test_active_concave_kinks_are_refuted_with_their_direction(F: Any, x: Any, axis: int) -> None:
    found = certified(F, x)
    assert isinstance(found, gs.Refutation)
    assert abs(found.direction[axis]) == 1
    assert found.slope == -1
    assert gs.certify(F, x, delta=1e-6, stationarity="near", rng=0).eps == 0


@pytest.mark.parametrize(
    ("F", "x", "power"),
    [(gs.sum(X**3), [0.0], 3), (gs.sum(-(X**2)), [0.0], 2), (Z[0] ** 4 - Z[1] ** 4, [0.0, 0.0], 4)],
)
def test_smooth_points_that_are_no_minima_have_a_gap(F: Any, x: Any, power: int) -> None:
    found = certified(F, x)
    assert isinstance(found, gs.MinimumCertificate)
    assert found.scope == "ball"
    assert found.gap >= found.radius**power
    assert not found.strict
    assert not found.unique
    assert refuted(F.program(), np.array(x), x, 0.0) is None


def test_the_modulus_is_global_and_strict() -> None:
    found = certified(gs.sum(abs(X)), [0.0])
    assert (found.scope, found.strict, found.gap, found.within) == ("global", True, 0.0, 0.0)
    F = gs.sum(abs(X))
    support = Support(node(F, Piecewise), 0, 0, ZERO, ZERO, ZERO)
    sharp = Sharp(support.node, 0, 0, 0, Fraction(1))
    for radius in (1e-3, 1.0, 1e6):
        assert minorant(F.program(), [0], radius, [support], [sharp]).show(1 / radius).within == 0


def test_a_flat_minimum_is_global_and_not_strict() -> None:
    found = certified(gs.max(gs.stack([Z[0], -Z[0], Z[1] ** 2 - 1])), [0.0, 0.0])
    assert (found.scope, found.strict, found.gap) == ("global", False, 0.0)


def test_weights_that_no_float_holds_are_exact_in_affine_minorants() -> None:
    v = gs.Variable(3)
    found = certified(3 * gs.max(v) - gs.sum(v), [0.0, 0.0, 0.0])  # flat along (1, 1, 1)
    assert (found.scope, found.strict, found.gap) == ("global", False, 0.0)


def test_a_square_of_one_variable_does_not_curve_the_plane() -> None:
    M = curvature(Z[0] ** 2, [0.0, 0.0], math.inf)
    assert at_least(M, 0.0)
    assert not at_least(M, 1e-300)


def test_a_ball_may_touch_a_concave_kink() -> None:
    F = gs.sum(abs(abs(X) - 1))  # the kink of |x| at 0 is concave where |x| < 1
    assert convexity(F.program(), [1], 1.0, 0.0)
    with pytest.raises(NotCertifiableError, match="kink"):
        convexity(F.program(), [1], 1 + 2.0**-50, 0.0)
    found = certified(F, [0.0])
    assert isinstance(found, gs.Refutation)


def test_kinks_that_cancel_are_never_refuted() -> None:
    F = gs.sum(gs.relu(X) - gs.relu(-X) - X)
    assert refuted(F.program(), np.zeros(1), [0], 0.0) is None
    u = abs(X)
    assert certified(gs.sum(u - u), [0.0]).gap == 0


def test_equal_entries_of_a_maximum_leave_one() -> None:
    same = gs.max(gs.stack([-abs(X[0]), -abs(X[0])]))
    kept = Pass(same.program(), Region([1], 0.5))
    assert kept.backward(same.program().last, Span(-np.ones(1)))[0].convex  # one piece: no sign
    for F in (gs.max(gs.stack([X[0] * 0, X[0] * 0])), gs.max(gs.stack([X[0]]))):
        assert minorant(F.program(), [0], 1.0).loss == 0


def test_constant_arguments_on_breakpoints_are_no_kinks() -> None:
    F = gs.sum(-abs(0.0 * X)) + X[0] ** 2
    assert certified(F, [0.0]).scope == "global"
    rows = gs.sum(-abs(np.array([[1.0], [0.0]]) @ X + np.array([5.0, 0.0])))
    assert minorant(rows.program(), [0], 1.0).eps == 1  # the zero row is on its kink for good


def test_kinks_below_slopes_of_both_signs_need_supports() -> None:
    inner = abs(Z[1]) - Z[0] ** 2
    refuses(abs(inner), [0.0, 1.0], 2.0)
    twice = gs.sum(abs(abs(X)))
    assert convexity(twice.program(), [0], 1.0, 0.0)  # the range of |x| ends at 0


def test_a_factor_must_not_be_negative() -> None:
    for low, proved in ((0.0, True), (-1e-300, False)):
        F = abs(Z[0]) * gs.max(gs.stack([Z[1], Z[1] * 0 + low]))
        program = F.program()
        region = Region([0.0, 0.0], math.inf, Box(np.array([-1.0, -1.0]), np.array([1.0, 1.0])))
        run = Pass(program, region)
        k = node(F, Piecewise)
        alpha = run.backward
        if proved:
            _, adjoints = alpha(program.last, Span(np.ones(1)))
            assert adjoints[k].lo[0] == 0
        else:
            with pytest.raises(NotCertifiableError, match="kink"):
                alpha(program.last, Span(np.ones(1)))


def test_at_the_edge_of_the_set_clarke_subgradients_do_not_count() -> None:
    F = gs.sum(-abs(X))
    region = Region([0], math.inf, Box(np.array([0.0]), np.array([1.0])))
    run = Pass(F.program(), region)
    assert run.backward(F.program().last, Span(np.ones(1)))[0].convex  # affine on [0, 1]
    box = Box(np.array([0.0]), np.array([1.0]))
    assert minorant(F.program(), [0], math.inf, box=box).eps == 1  # f(1) = -1: not 0, and not less


def test_concave_kinks_on_the_sphere_or_inside() -> None:
    F = gs.sum(-1e-12 * abs(X - 1) + X**2)
    program = F.program()
    for radius, charged in ((1.0, False), (float(np.nextafter(1.0, 2.0)), True), (3.0, True)):
        if not charged:
            assert minorant(program, [0], radius).loss < 1e-24  # rounding of 1e-12
            continue
        refuses(F, [0], radius)
        k = node(F, Piecewise)
        held = Support(k, 0, 0, Fraction(-1), Fraction(-1), ZERO)
        loss = minorant(program, [0], radius, [held]).loss
        assert loss >= Fraction(1e-12) * 2 * (Fraction(radius) - 1) > 0


def test_an_active_concave_kink_is_never_charged() -> None:
    F = gs.sum(-abs(X) + X**2)
    held = Support(node(F, Piecewise), 0, 0, Fraction(-1), Fraction(-1), ZERO)
    assert "concave kink" in refuses(F, [0], 1.0, held)
    assert prove_minimum(F.program(), np.zeros(1), [0]) is None


def test_the_log_sum_penalty_is_not_convex() -> None:
    F = gs.sum(gs.log_sum(X, lam=1.0, eps=0.5))
    M = curvature(F, [0.0], 1e3)
    assert M[0, 0] == pytest.approx(-4.0, rel=1e-9)
    assert M[0, 0] <= -4.0


@pytest.mark.parametrize("kind", ["norm", "softmax"])
def test_convex_functions_of_curved_arguments_are_not_convex(kind: str) -> None:
    u = gs.stack([1 - Z[0] ** 2, Z[1]])
    F = gs.norm2(u) if kind == "norm" else gs.softplus(-(Z[0] ** 2)) + Z[1] ** 2
    assert not at_least(curvature(F, [0.0, 0.0], 0.1), 0.0)


@pytest.mark.parametrize("slope", [1 + Fraction(1, 2**52), -1 - Fraction(1, 2**52)])
def test_slopes_outside_the_kink_are_refused(slope: Fraction) -> None:
    F = gs.sum(abs(X))
    assert "slope" in refuses(F, [0], 1.0, Support(node(F, Piecewise), 0, 0, ZERO, slope, ZERO))


@pytest.mark.parametrize(
    "weights",
    [(Fraction(1, 2) + Fraction(1, 10**16), Fraction(1, 2)), (Fraction(3, 2), Fraction(-1, 2))],
)
def test_weights_of_a_maximum_are_nonnegative_of_sum_one(weights: Any) -> None:
    F = gs.max(gs.stack([X[0], -X[0]]))
    k = node(F, Max)
    supports = [Support(k, 0, j, ZERO, w, ZERO) for j, w in enumerate(weights)]
    assert "weights" in refuses(F, [0], 1.0, *supports)


def test_a_support_needs_the_sign_of_its_adjoint() -> None:
    F = abs(Z[0]) * (Z[1] - 1e-9)
    support = Support(node(F, Piecewise), 0, 0, ZERO, ZERO, ZERO)
    assert "sign" in refuses(F, [0, 1], 1.0, support)
    assert minorant(F.program(), [0, 1], 0.5, [support]).loss == 0


def test_sharpness_is_not_used_twice() -> None:
    F = gs.sum(abs(X))
    k = node(F, Piecewise)
    held = Support(k, 0, 0, ZERO, Fraction(1, 2), ZERO)
    too_much = [Sharp(k, 0, 0, 0, Fraction(1, 2) + Fraction(1, 2**60))]
    assert "slope" in refuses(F, [0], 1.0, held, sharp=too_much)
    G = gs.max(gs.stack([Z[0], -Z[0], Z[1]]))
    k = node(G, Max)
    shares = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    supports = [Support(k, 0, j, ZERO, w, ZERO) for j, w in enumerate(shares)]
    twice = [Sharp(k, 0, 1, 0, Fraction(1, 4)), Sharp(k, 0, 1, 2, Fraction(1, 8))]
    assert "room" in refuses(G, [0, 0], 1.0, *supports, sharp=twice)
    assert "room" in refuses(G, [0, 0], 1.0, *supports, sharp=[Sharp(k, 0, 1, 1, Fraction(1, 8))])


def test_a_norm_has_weights_of_length_one_at_most() -> None:
    F = gs.norm2(Z)
    k = node(F, Norm2)
    supports = [
        Support(k, 0, j, ZERO, w, ZERO) for j, w in enumerate((Fraction(3, 5), Fraction(4, 5)))
    ]
    eps = minorant(F.program(), [0, 0], 1.0, supports).eps
    assert 1 <= eps < 1 + 1e-12  # never below the length; norms are enclosed, so hardly above it
    longer = [supports[0], supports[1]._replace(s=Fraction(4, 5) + Fraction(1, 2**60))]
    assert "longer" in refuses(F, [0, 0], 1.0, *longer)
    assert "longer" in refuses(
        F, [0, 0], 1.0, *supports, sharp=[Sharp(k, 0, 0, 0, Fraction(1, 99))]
    )


def test_strict_and_unique_must_be_shown() -> None:
    F = gs.sum(abs(X)) + X[0] ** 2
    found = certified(F, [0.0])
    assert found.unique
    wide = replace(
        found, growth=1e-9, eps=1e-3, scope="ball", radius=0.5, reach=0.5, convexity=None
    )
    failed = {c.name for c in replace(wide, unique=True).verify(F).checks if not c.ok}
    assert "unique" in failed
    pointed = gs.max(gs.stack([Z[0], -Z[0], Z[1], -Z[1]]))
    cert = replace(certified(pointed, [0.0, 0.0]), unique=True)
    assert "unique" in {c.name for c in cert.verify(pointed).checks if not c.ok}


def test_scaling_symmetry_of_networks_is_never_strict() -> None:
    a = gs.Variable(2)
    F = gs.square(a[0] * gs.relu(a[1]) - 1.0)  # (a c, w / c) for every c > 0 is as good
    found = with_gap(F.program(), np.ones(2), [1, 1], 1e-3)
    assert found is not None
    assert not found.strict
    assert found.gap > 0


def test_high_degrees_and_overflow_are_refused_or_right() -> None:
    steep = gs.sum((1e200 * X) ** 2)
    M = curvature(steep, [0.0], 1.0)
    assert not np.isnan(M).any()
    high = gs.sum(X**31)
    lower = curvature(high, [0.0], 2.0)[0, 0]
    assert lower <= -31 * 30 * 2.0**29
    with pytest.raises(NotCertifiableError):
        curvature(gs.sum(X**3), [0.0], math.inf)


def test_radius_zero_and_one_dimension() -> None:
    assert minorant(gs.sum(X * X).program(), [3], 0.0).eps == 6
    cert = certified(gs.sum(gs.square(X - 3)), [3.0])
    assert (cert.scope, cert.unique, cert.gap, cert.radius) == ("global", True, 0.0, math.inf)


def test_one_sided_derivatives_chain() -> None:
    F = gs.max(gs.stack([abs(Z[0]), 2 * Z[1], -Z[1]])) - gs.relu(Z[0] - Z[1])
    for h, slope in (([1, 0], 0), ([0, 1], 2), ([0, -1], 0), ([-1, -1], 1), ([3, 1], 1)):
        assert slope_along(point_at(F.program(), [0, 0]), h) == slope
    assert slope_along(point_at(gs.norm2(Z).program(), [0, 0]), [3.0, 4.0]) == pytest.approx(5.0)


def test_a_maximum_with_a_negative_adjoint_is_refused() -> None:
    F = -gs.max(gs.stack([Z[0], -Z[0]]))
    with pytest.raises(NotCertifiableError, match="maximum"):
        convexity(F.program(), [0, 0], 1.0, 0.0)
    assert convexity(F.program(), [2, 0], 1.0, 0.0)  # one entry is the largest there


def test_touching_is_decided_exactly_where_norms_are_rounded() -> None:
    F = -abs(3 * Z[0] + 4 * Z[1])  # its kink is exactly 5 away from (3, 4)
    assert convexity(F.program(), [3, 4], 5.0, 0.0)
    with pytest.raises(NotCertifiableError, match="kink"):
        convexity(F.program(), [3, 4], float(np.nextafter(5.0, 6.0)), 0.0)


def test_strict_needs_lowest_points_inside_the_ball() -> None:
    F = gs.sum(gs.square(X))
    wide = with_gap(F.program(), np.array([1.0]), [1], 0.5)  # the minimiser is 1 away
    assert wide is not None
    assert not wide.strict
    forged = replace(wide, strict=True, within=100.0)
    assert "strict" in {c.name for c in forged.verify(F).checks if not c.ok}


def test_factors_are_equal_only_if_all_their_slopes_are() -> None:
    """-x (x + x^2) on [0, 2]: the slopes of both factors are at least 1, and f'' falls to -14."""
    x = gs.Variable(1)
    program = gs.sum(-1.0 * (x * (x + x * x))).program()
    total, _ = Pass(program, Region([1], 1.0)).backward(program.last, Span(np.ones(1)))
    assert total.lower[0, 0] <= -14.0
