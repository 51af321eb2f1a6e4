"""Guards of the checker that one thing alone shows: each was once taken away unnoticed."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker import nodes, sampled
from goldstein.checker.blackbox.qualification import Hull
from goldstein.checker.constrained import near
from goldstein.checker.constrained.limits import Limits, as_box, as_groups, readings
from goldstein.checker.enclosed.point import EnclosedPoint
from goldstein.checker.function import Asked
from goldstein.checker.minimum import lower
from goldstein.checker.sides import Side, point_at
from goldstein.errors import InputError, NotCertifiableError, OracleError


def test_a_direction_against_a_normal_separates_nothing() -> None:
    """Along x_0 + x_1 = 0 the gradient (-1, 1) and the normal (1, 0) cancel each other."""
    propose = lambda rows, cone: (np.ones(len(rows)), np.zeros(len(cone)))  # noqa: E731
    hull = Hull(np.array([1.0, 0.0]), np.zeros(2, bool), np.ones((1, 2)), propose)
    hull.rows.append((0, np.array([-1.0, 1.0])))
    assert hull.separation()[0] == 0.0


def test_entries_that_almost_tie_are_told_apart() -> None:
    """u and 2 u - 1 + 2^-60 at 1: enclosures overlap, and only one of the two is the largest."""
    u = gs.Variable(1)
    pair = gs.calculus.stack([u[0], 2.0 * u[0] - 1.0 + 2.0**-60])
    for F, slope in ((gs.calculus.max(pair), 2), (gs.calculus.sum_largest(pair, 1), 2)):
        for point in (EnclosedPoint(F.program(), [1.0]), point_at(F.program(), [1.0])):
            assert point.ties == {}
            assert point.limits([[-1.0]]).mid.tolist() == [[slope]]
    low = gs.calculus.trimmed_sum(pair, 0, 1)
    assert EnclosedPoint(low.program(), [1.0]).limits([[1.0]]).mid.tolist() == [[1.0]]


def test_single_precision_has_no_small_balls() -> None:
    f = SimpleNamespace(value=lambda x: 0.0, gradient=lambda x: np.zeros(1, np.float32))
    for delta, kept in ((1e-6, False), (1e-3, True)):
        claim = gs.GoldsteinCertificate([1.0], delta, 0.0, [[1.0]], [[0.0]], [1.0])
        even: Any = lambda hull, cone: (np.full(len(hull), 1.0), np.zeros(len(cone)))  # noqa: E731
        problem = sampled.Problem(Asked(f), as_box(None, 1), even, [1])
        found = sampled.check(claim, problem, 0)
        assert {c.name: c.ok for c in found.checks}["kinks"] == kept


def test_equalities_in_use_that_are_curved_are_read_twice() -> None:
    """The sign of a multiplier of an equality may be that of a rounding error."""
    system: Any = SimpleNamespace(equal=np.array([True, True, False]))
    linear = np.array([True, False, False])
    cert = SimpleNamespace(multipliers=np.array([1.0, 1.0, 1.0]))
    assert [m.tolist() for m in readings(cert, system, linear)] == [
        [True, False, False], [True, True, False],
    ]  # fmt: skip
    cert.multipliers[1] = 0.0
    assert [m.tolist() for m in readings(cert, system, linear)] == [[True, False, False]]


def test_derivatives_beyond_float64_prove_no_direction(monkeypatch: pytest.MonkeyPatch) -> None:
    part = gs.sum(gs.Variable(1)).program()
    problem = near.exact_problem(np.zeros(1), None, (), lambda *_: [[1]])
    problem = replace(problem, parts=[part])
    cert = SimpleNamespace(
        normal=np.zeros(1), multipliers=np.ones(1), exact_pivot=(Fraction(0),),
        constraint_directions=np.zeros((0, 1)), constraint_index=np.zeros(0, int),
    )  # fmt: skip
    assert problem._proved(cert, [0], [], [Fraction(1)]) > 0.0

    def refuse(*_: Any) -> Any:
        raise NotCertifiableError("a kink")

    monkeypatch.setattr(near, "derivative_range", lambda *_: (-math.inf, math.inf))
    monkeypatch.setattr(near.ExactProblem, "limit", refuse)
    assert problem._proved(cert, [0], [], [Fraction(1)]) == 0.0


def test_lower_points_have_one_label_and_no_slope() -> None:
    f = Asked(SimpleNamespace(value=lambda x: -float(x[0]), gradient=lambda x: -np.ones(1)))
    true = gs.Refutation(
        x=[0.0], point=[1.0], direction=[1.0], fall=0.5, label="conditional", exact_pivot=(0,)
    )
    assert lower.check(true, f).ok
    for fields in ({"label": "certified"}, {"slope": -1.0}):
        assert not lower.check(replace(true, **fields), f).ok


@pytest.mark.parametrize(
    ("columns", "weights", "size"),
    [
        (2, np.ones(2), 1), (3, np.ones((1, 2)), 1), (2, np.ones((1, 3)), 1),
        (0, np.ones((1, 0)), 1), (2, np.ones((2, 2)), 1),
    ],
)  # fmt: skip
def test_sorted_entries_need_weights_that_fit(columns: int, weights: Any, size: int) -> None:
    assert nodes.Order((0,), (2,), 1, 2, np.ones((1, 2))).size == 1
    with pytest.raises(InputError, match="does not fit"):
        nodes.Order((0,), (2,), size, columns, weights)


def test_constraints_keep_the_number_of_their_components() -> None:
    """One that answers with more values than it has limits is refused, at once and later."""
    many = {"type": "ineq", "fun": lambda x: np.ones(1 + (x[0] > 0)), "jac": lambda x: np.eye(1)}
    system = Limits(as_groups([many], 1), np.zeros(1))
    with pytest.raises(OracleError, match="2 components here and 1 promised"):
        system.values(np.ones(1))


def test_many_directions_through_kinks_below_a_square() -> None:
    """Limits in one pass are those one by one, whatever is above the kinks."""
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((900, 60)), gs.Variable(60)
    y = np.zeros(60)
    y[0] = 1.0
    A[5:] += 1.0  # five rows are tied, the rest is not
    F = gs.square(gs.sum(gs.abs(A @ w - np.append(A[:5, 0], A[5:, 0] + 1.0))) / 900 + 1.0)
    point, ways = EnclosedPoint(F.program(), y), rng.standard_normal((4, 60))
    together = point.limits(ways)
    for k, way in enumerate(ways):
        one = Side(point, way).gradient()
        gap = np.abs(one.mid - together.mid[k])
        assert (gap <= one.rad + together.rad[k]).all()
        values = [F.value(y + t * way) for t in (1e-6, 2e-6)]
        assert together.mid[k] @ way == pytest.approx((values[1] - values[0]) / 1e-6, rel=1e-3)


def test_points_that_only_rounding_uses_do_not_hide_what_f_does_not_see() -> None:
    """Steps of 7e-6 are lost in single precision, so f seems flat along x_0; it rises."""

    def inner(x: np.ndarray) -> Any:
        return float(np.float32(np.float32(x[0]) + np.float32(100)) - np.float32(100))

    def f(x: np.ndarray) -> float:
        z = inner(x)
        return 1.25 * (max(z, 0.0) - 0.5 * max(-z, 0.0)) + float(np.abs(x[1:]).sum())

    def g(x: np.ndarray) -> np.ndarray:
        z = inner(x)
        slope = 1.25 if z > 0 else 0.625 if z < 0 else 0.0
        return np.array([slope, *np.sign(x[1:])])

    for delta in (1e-6, 1e-5, 2.8e-5, 1e-4):
        for start in ([5e-7, 0.0, -1e-6], [1e-5, 1e-6, 0.0]):
            try:
                found = gs.certify(f, start, g, delta=delta, rng=0)
            except gs.GoldsteinError:
                continue
            assert found.eps >= 0.6
            assert all(found.verify(f, g, seed=seed).ok for seed in range(3))
