"""Guards of claims about minima that mutants could take away: what each of them refuses."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker import nodes
from goldstein.checker.enclosed.irrational import Norm2
from goldstein.checker.minimum.cases import Cases
from goldstein.checker.minimum.curvature import CURVES, Curvature, Region
from goldstein.checker.minimum.spans import Span, product
from goldstein.checker.minimum.supports import Sharp, Support
from goldstein.checker.nodes import Max, Piecewise
from goldstein.checker.sides import Program
from goldstein.errors import NotCertifiableError

X, Z = gs.Variable(1), gs.Variable(2)
ZERO, ONE = Fraction(0), Fraction(1)


def claimed(x: list[float], **fields: Any) -> gs.MinimumCertificate:
    stated: dict[str, Any] = {
        "x": np.array(x), "exact_pivot": tuple(map(Fraction, x)), "delta": 0.0, "eps": 0.0,
        "gap": 0.0, "radius": 1.0, "reach": 1.0,
    }  # fmt: skip
    return gs.MinimumCertificate(**{**stated, **fields})


def failed(cert: Any, *function: Any, **limits: Any) -> set[str]:
    return {check.name for check in cert.verify(*function, **limits).checks if not check.ok}


def node_of(F: Any, kind: type) -> int:
    return next(k for k, node in enumerate(F.program().nodes) if isinstance(node, kind))


def held(k: int, s: Any = 0, row: int = 0, place: int = 0) -> Support:
    return Support(k, row, place, ZERO, Fraction(s), ZERO)


def test_the_ball_of_a_claim_is_not_larger_than_what_was_looked_at() -> None:
    F = abs(X[0])
    k = (held(node_of(F, Piecewise)),)
    assert not failed(claimed([0.0], supports=k), F)
    for radius in (1.0 + 2.0**-50, 3.0, math.inf, -1.0):
        assert "scope" in failed(claimed([0.0], supports=k, radius=radius), F)
    off = {"exact_pivot": (Fraction(1, 2),), "delta": 0.5, "gap": 9.0, "eps": 9.0}
    assert "scope" in failed(claimed([0.0], **off), gs.sum(gs.square(X)))


def test_pivots_are_as_near_as_claimed_where_that_is_far() -> None:
    F = gs.sum(gs.square(X))
    far = {"exact_pivot": (Fraction(3),), "reach": math.inf, "gap": 99.0, "eps": 99.0}
    assert "ball" in failed(claimed([0.0], **far, delta=2.5), F)
    assert "ball" not in failed(claimed([0.0], **far, delta=3.0), F)


def test_stated_multipliers_are_those_of_the_supports() -> None:
    F, limits = gs.sum(X), {"bounds": [(0.0, None)], "constraints": ()}
    fields = {"penalties": np.array([4.0]), "multipliers": np.zeros(0), "growth": -1.0}
    for normal in (np.array([5.0]), np.array([1e-3]), None):
        claim = claimed([0.0], gap=99.0, eps=99.0, **fields, normal=normal)
        assert failed(claim, F, **limits) == {"multipliers"}
    right = claimed([0.0], gap=99.0, eps=99.0, **fields, normal=np.zeros(1))
    assert "multipliers" not in failed(right, F, **limits)


# --- supports -------------------------------------------------------------------------------------


def test_sharpness_is_not_negative() -> None:
    """-sigma would let a slope lie outside of those of the kink."""
    F = abs(X[0])
    k = node_of(F, Piecewise)
    claim = claimed(
        [0.0], supports=(held(k, Fraction(3, 2)),), sharp=(Sharp(k, 0, 0, 0, -ONE / 2),),
        eps=9.0, gap=99.0, growth=-9.0,
    )  # fmt: skip
    assert "curvature" in failed(claim, F)


def test_an_entry_has_one_support() -> None:
    """Two of one entry, at two places, would use its sharpness twice."""
    F = gs.sum(gs.abs(Z))
    k = node_of(F, Piecewise)
    for other in ((), (held(k, place=1),)):
        given = held(k), held(k, row=1, place=1), *other
        claim = claimed(
            [0.0, 0.0], supports=given, sharp=(Sharp(k, 0, 0, 0, ONE / 2),), gap=9.0, eps=9.0
        )
        assert ("curvature" in failed(claim, F)) == bool(other)


def test_supports_belong_to_nodes_and_entries_that_have_some() -> None:
    F = gs.max(gs.stack([X[0], -X[0]])) + abs(X[0])
    k, m = node_of(F, Piecewise), node_of(F, Max)
    weights = held(m, ONE / 2), held(m, ONE / 2, place=1)
    assert not failed(claimed([0.0], supports=(*weights, held(k))), F)
    wrong = [
        (held(0),), (held(1),), (held(-1),), (held(99),), (held(k, row=1, place=1),),
        (held(k, row=0, place=1),), (held(k, row=-1, place=-1),), (held(k, row=1),),
        (held(m, ONE / 2), held(m, ONE / 2, place=2)), (held(m, ONE, row=1, place=1),),
        (held(m, ONE, row=-1, place=0),),
    ]  # fmt: skip
    for given in wrong:
        assert failed(claimed([0.0], supports=given), F) == {"curvature"}
    for pair in ((0, 2), (2, 0), (-1, 0), (0, -1), (1, 1)):
        sharp = (Sharp(m, 0, *pair, ONE / 4),)
        claim = claimed([0.0], supports=weights, sharp=sharp, gap=9.0, eps=9.0)
        assert failed(claim, F) == {"curvature"}


# --- curvature ------------------------------------------------------------------------------------


def test_the_length_of_a_row_of_ones_is_no_entry_of_it() -> None:
    found = Region([0, 0, 0], 1.0).reach(Span(np.array([[1.0, 1.0, 1.0], [1.0, 2.0, 1.0]])))
    assert (found >= np.sqrt([3.0, 6.0])).all()
    assert Region([0, 0], 2.0).reach(Span(np.array([[0.0, 3.0]]))).tolist() == [6.0]


def test_a_norm_with_a_minus_is_not_convex_away_from_the_origin() -> None:
    F = -1.0 * gs.atoms.norm2(Z)
    assert node_of(F, Norm2)
    for growth, refused in ((0.0, True), (-1.0, True), (-4.0, False)):
        claim = claimed([1.0, 0.0], reach=0.5, radius=0.5, growth=growth, eps=2.0, gap=9.0)
        assert ("curvature" in failed(claim, F)) == refused


def test_exponentials_of_very_negative_numbers_are_small() -> None:
    for low, high in ((-800.0, -750.0), (-800.0, 1.0), (-1e300, -701.0), (-2.0, 0.5)):
        for curve in CURVES["exp"]:
            found = curve(Span(np.array([low]), np.array([high])))
            assert found.lo[0] <= math.exp(low) <= math.exp(high) <= found.hi[0]


def test_functions_without_a_rule_are_refused() -> None:
    F = gs.sum(gs.atoms.sin(X) + 9 * gs.square(X))
    assert failed(claimed([0.0], eps=9.0, gap=99.0), F) == {"curvature"}


@pytest.mark.parametrize("seed", range(20))
def test_sums_of_products_are_not_below_their_bound(seed: int) -> None:
    """alpha (a b' + b a') and c a a' for members of wide intervals, against the matrix."""
    rng = np.random.default_rng(seed)
    n, d = 3, 2
    middles = rng.integers(-3, 4, (2, n, d)).astype(float)
    widths = rng.choice([0.0, 0.5, 3.0], (2, n, d))
    a, b = (Span(m - w, m + w) for m, w in zip(middles, widths))
    middle, width = rng.integers(-2, 3, n).astype(float), rng.choice([0.0, 1.0, 4.0], n)
    alpha, c = Span(middle - width, middle + width), rng.choice([-2.0, -0.5, 1.0, 3.0], n)
    both, squares = Curvature(d), Curvature(d)
    both.add_product(alpha, a, b)
    squares.add(c, a)
    for _ in range(60):
        u, v, w = (
            s.lo + (s.hi - s.lo) * rng.choice([0.0, 1.0, rng.random()], s.lo.shape)
            for s in (a, b, alpha)
        )
        mixed = np.einsum("n,ni,nj->ij", w, u, v)
        for total, matrix in ((both, mixed + mixed.T), (squares, np.einsum("n,ni,nj", c, u, u))):
            assert np.linalg.eigvalsh(matrix - total.lower)[0] >= -1e-9


def test_products_of_tiny_numbers_are_not_called_exact() -> None:
    for unit in (2.0**-480, 2.0**-520, 2.0**-200):
        left, right = np.array([[(1 + 2.0**-30) * unit]]), np.array([[1 + 2.0**-30]])
        value, error = product(left, right)
        exact = Fraction(left[0, 0]) * Fraction(right[0, 0])
        assert 0 < abs(Fraction(value[0, 0]) - exact) <= Fraction(error[0, 0])


# --- trees of cases, boxes ------------------------------------------------------------------------


def test_kinks_below_curved_nodes_have_no_cases() -> None:
    ridge = gs.sum(gs.square(Z))
    for F in (gs.square(gs.relu(Z[0]) - 1.0), gs.relu(Z[0]) * gs.relu(Z[1])):
        with pytest.raises(NotCertifiableError):
            Cases((F + ridge).program())


def test_kinks_that_nothing_depends_on_have_no_cases() -> None:
    kink = Piecewise((0,), (1,), 1, (ZERO,), ((ZERO, -ONE), (ZERO, ONE)))
    square = Piecewise((0,), (1,), 1, (), ((ZERO, ZERO, ONE),))
    with pytest.raises(NotCertifiableError, match="factor"):
        Cases(Program([nodes.Variable((), (), 1), kink, square]))


def test_more_cases_than_splits_lead_to_are_refused() -> None:
    F = gs.sum(gs.square(X)) + gs.sum(abs(X))
    cases = Cases(F.program())
    cases.require(1.0)
    rows = np.zeros((2, 1)), np.zeros((2, 1))
    assert cases.all_closed(rows[0][:1], rows[1][:1], np.array([[-1.0, 0.0]]), ZERO)[0]
    assert not cases.all_closed(*rows, np.array([[-1.0, 0.0]] * 2), ZERO)[0]


def test_a_black_box_that_is_not_convex_is_not_minimal_everywhere() -> None:
    def claim(curvature: float, scope: str, radius: float) -> Any:
        return claimed(
            [0.0], scope=scope, radius=radius, strict=True, within=0.6, curvature=curvature,
            label="conditional", eps=1.0, gap=1.0, widths=np.array([0.5]),
            points=np.array([[-0.5], [0.5], [0.0]]), weights=np.eye(3),
        )  # fmt: skip

    f = (lambda x: float(abs(x[0])), np.sign)
    assert not failed(claim(-0.5, "box", 0.5), *f)
    assert not failed(claim(0.0, "global", math.inf), *f)
    assert failed(claim(-0.5, "global", math.inf), *f) == {"scope"}
    assert failed(claim(0.0, "ball", 0.5), *f) == {"scope"}


# --- near, plus -----------------------------------------------------------------------------------


def test_a_direction_along_which_one_entry_of_a_norm_could_move_stays_on_its_kink() -> None:
    F = gs.atoms.norm2(gs.stack([Z[0], 0.0 * Z[0]])) - 1.0 * Z[0]
    claim = gs.NearCertificate(
        np.zeros(2), (ZERO, ZERO), 0.0, 0.5, np.array([[0.0, 1.0]]), np.ones(1), np.zeros((1, 2)),
        np.zeros(1),
    )  # fmt: skip
    assert failed(claim, F) == {"subgradients"}


def test_gradients_that_cancel_a_subgradient_have_no_room_of_their_own_size() -> None:
    g, v = np.array([1e6]), np.array([-1e6 + 2.0**-26])
    claim = gs.PlusCertificate(
        x=np.zeros(1), delta=0.5, eps=1e-20, points=np.zeros((1, 1)), gradients=g[None],
        weights=np.ones(1), subgradient=v, term=gs.prox.l1(2e6),
    )  # fmt: skip
    assert "bound" in failed(claim, lambda x: float(g @ x), lambda x: g.copy())


def test_a_weight_at_a_place_of_another_row_is_refused_and_no_error() -> None:
    """It was looked up outside of its row: an IndexError, from `verify`, too."""
    x = gs.Variable(4)
    F = gs.sum(gs.max(gs.linear(np.eye(4), x).reshape(2, 2), axis=1)) - gs.sum(x) / 2
    k, half = node_of(F, Max), Fraction(1, 2)
    right = tuple(held(k, half, place // 2, place) for place in range(4))
    assert not failed(claimed([0.0] * 4, supports=right), F)
    for row, place in ((0, 2), (1, 0), (1, 1), (0, 3)):
        wrong = (*right[:-1], held(k, half, row, place))
        assert "curvature" in failed(claimed([0.0] * 4, supports=wrong), F)
    alone = (held(k, 1, 0, 2),)
    assert "curvature" in failed(claimed([0.0] * 4, supports=alone), F)


def test_a_curvature_that_overflows_is_refused_and_no_error() -> None:
    """It has no eigenvalues: LinAlgError, from `verify`, too."""
    for steep, factor in ((600, 0), (250, 600)):
        F = 2.0**factor * abs(gs.square(2.0**steep * X[0]) - 2.0**-200)
        k, y = node_of(F, Piecewise) + 2, [2.0 ** (-100 - steep)]
        sharp = (Sharp(k, 0, 0, 0, Fraction(1, 2)),)
        assert "curvature" in failed(claimed(y, supports=(held(k),), sharp=sharp), F)
