"""Bounds, limits and multipliers: what claims about constrained problems are made of."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.certificates.kkt import KKTCertificate, residual_upper
from goldstein.checker.blackbox.qualification import Hull
from goldstein.checker.constrained.limits import Box, Limits, as_groups, best_normal, check_signs
from goldstein.checker.exact import exact_combination
from goldstein.checker.rationals import squared_norm
from goldstein.checker.verification import Verification
from goldstein.numerics.hull_problems import conic_weights

INF = math.inf


class Levels(Limits):
    """Limits of functions that nobody asks."""

    def __init__(self, lower: list[float], upper: list[float]) -> None:
        self.lower, self.upper, self.size = np.array(lower), np.array(upper), len(lower)

    def name(self, i: int) -> str:
        return f"c[{i}]"


limits = Levels


def claim(index: list[int], weights: list[float], multipliers: list[float]) -> Any:
    return SimpleNamespace(
        constraint_index=np.array(index, dtype=int),
        constraint_weights=np.array(weights),
        multipliers=np.array(multipliers),
    )


def failed(some: Any, system: Limits, normal: Any = (0.0,)) -> set[str]:
    """Names of the checks that the multipliers of a claim fail."""
    found = Verification(eps=0.0, delta=0.0, label="conditional")
    some.normal, some.x = np.array(normal), np.zeros(len(normal))
    check_signs(found, some, system, Box(np.zeros(len(normal)), np.full(len(normal), INF)))
    return {c.name for c in found.checks if not c.ok}


def test_points_in_a_box() -> None:
    box = Box(np.array([0.0, -INF]), np.array([1.0, 2.0]))
    assert box.contains(np.array([[0.0, -1e300], [1.0, 2.0]]))
    for out in ([-(2.0**-1074), 0.0], [math.nextafter(1.0, 2.0), 0.0], [0.5, 2.1], [math.nan, 0]):
        assert not box.contains(np.array([[0.5, 0.5], out]))
    assert box.clip(np.array([-1.0, 3.0])).tolist() == [0.0, 2.0]
    assert box.reflect(np.array([-0.25, 2.5])).tolist() == [0.25, 1.5]
    assert box.reflect(np.array([0.5, 1.0])).tolist() == [0.5, 1.0]
    assert box.reflect(np.array([3.5, 1.0])).tolist() == [0.0, 1.0]  # beyond the other bound
    assert box.fixed.tolist() == [False, False]
    assert Box(np.zeros(2), np.array([0.0, 1.0])).fixed.tolist() == [True, False]
    low, high = box.normal_signs(np.array([0.0, 2.0]))
    assert (low.tolist(), high.tolist()) == ([True, False], [False, True])


def test_violations() -> None:
    some = limits([-1.0, -INF, 2.0, 0.0], [1.0, 5.0, INF, 0.0])
    assert some.excess(np.array([1.5, 5.0, 1.0, 0.25])).tolist() == [0.5, 0.0, -1.0, 0.25]
    assert some.excess(np.array([-3.0, 9.0, 2.0, -0.25])).tolist() == [-2.0, 4.0, 0.0, -0.25]
    assert some.tolerances() == pytest.approx([1e-9, 5e-9, 2e-9, 1e-9])
    assert limits([-7.0], [3.0]).tolerances() == pytest.approx([7e-9])
    assert limits([-INF], [INF]).tolerances() == pytest.approx([1e-9])


def test_sizes() -> None:
    two = limits([0.0, 0.0], [1.0, 1.0])
    assert failed(claim([0, 1], [1.0, 1.0], [1.0, 1.0]), two) == set()
    assert failed(claim([0], [1.0], [1.0]), two) == {"constraints"}
    assert failed(claim([0, 2], [1.0, 1.0], [1.0, 1.0]), two) == {"constraints"}
    assert failed(claim([0, -1], [1.0, 1.0], [1.0, 1.0]), two) == {"constraints"}


def test_signs() -> None:
    one = limits([0.0], [1.0])
    assert failed(claim([0, 0], [1.0, 2.0], [3.0]), one) == set()
    assert failed(claim([0, 0], [-1.0, -2.0], [-3.0]), one) == set()
    assert failed(claim([0, 0], [0.0, 2.0], [2.0]), one) == set()
    assert failed(claim([], [], [0.0]), one) == set()
    assert failed(claim([], [], [2.0**-1074]), one) == {"multipliers"}
    assert failed(claim([0, 0], [3.0, -1.0], [2.0]), one) == {"multipliers"}
    assert failed(claim([0, 0], [0.5, -0.25], [0.25]), one) == {"multipliers"}
    assert failed(claim([0, 0], [1.0, 2.0], [-3.0]), one) == {"multipliers"}
    assert failed(claim([0], [1.0], [math.nan]), one) == {"multipliers"}
    assert failed(claim([0], [1.0], [1.0]), limits([0.0], [INF])) == {"multipliers"}
    assert failed(claim([0], [-1.0], [-1.0]), limits([-INF], [0.0])) == {"multipliers"}
    assert failed(claim([0], [1.0], [1.0]), limits([-INF], [0.0])) == set()
    assert failed(claim([0], [-1.0], [-1.0]), limits([0.0], [INF])) == set()
    # The second component is looked at as well.
    two = limits([0.0, 0.0], [1.0, 1.0])
    assert failed(claim([0, 1], [1.0, 1.0], [1.0, 2.0]), two) == {"multipliers"}
    assert failed(claim([0, 1], [1.0, 1.0], [1.0, 1.0]), two) == set()


def test_normals() -> None:
    """x = 0 is on its lower bound 0."""
    nothing, one = claim([], [], [0.0]), limits([0.0], [1.0])
    assert failed(nothing, one, [-1.0, 0.0]) == set()
    assert failed(nothing, one, [0.0, 2.0**-1074]) == {"normal"}


def stated(weights: Any, rows: Any, signed: Any, others: Any, normal: Any) -> KKTCertificate:
    return KKTCertificate(
        x=0.0 * normal, delta=1.0, eps=0.0, feasibility=0.0, points=0.0 * rows, gradients=rows,
        weights=weights, constraint_points=0.0 * others, constraint_gradients=others,
        constraint_index=np.zeros(len(signed), dtype=int), constraint_weights=signed,
        normal=normal, multipliers=[0.0], qualification=1.0,
    )  # fmt: skip


def test_the_length_in_the_claim_is_bounded_from_above() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        k, r, d = rng.integers(1, 4), rng.integers(0, 4), rng.integers(1, 4)
        weights = rng.random(k)
        rows = rng.standard_normal((k + r, d)) * 10.0 ** rng.integers(-3, 4)
        signed = rng.standard_normal(r)
        normal = rng.standard_normal(d) * rng.integers(0, 2, d)
        factors = [*weights.tolist(), *signed.tolist(), 1.0]
        truth = squared_norm(exact_combination(factors, [*rows.tolist(), normal.tolist()]))
        bound = residual_upper(stated(weights, rows[:k], signed, rows[k:], normal))
        assert truth <= Fraction(bound) ** 2
        assert Fraction(bound) ** 2 <= truth * (1 + Fraction(1, 10**9)) + Fraction(1, 10**20)
    one = np.ones((1, 1))
    assert residual_upper(stated(one[0], one, -one[0], one, 0.0 * one[0])) == 0.0


def test_the_best_normal() -> None:
    total = np.array([2.0, -3.0, 2.0, -3.0, 5.0, 7.0, -7.0])
    low = np.array([True, True, False, False, False, True, True])
    high = np.array([False, False, True, True, False, True, True])
    assert best_normal(total, low, high).tolist() == [-2.0, 0.0, 0.0, 3.0, 0.0, -7.0, 7.0]


def everywhere(size: int) -> Box:
    return Box(np.full(size, -1.0), np.full(size, 1.0))


def qualification_of(index: Any, rows: Any, normal: Any, box: Box, propose: Any) -> float:
    hull = Hull(normal, box.fixed, np.zeros((0, normal.size)), propose)
    for i, row in zip(index, rows):
        hull.rows.append((int(i), row))
    return hull.separation()[0]


def middle(hull: Any, cone: Any) -> Any:
    return np.full(len(hull), 1.0 / len(hull)), np.zeros(len(cone))


def test_qualification_is_a_lower_bound_whatever_is_proposed() -> None:
    index, rows = np.array([0, 1]), np.array([[3.0, 0.0], [0.0, 4.0]])
    nothing, box = np.zeros(2), everywhere(2)
    assert qualification_of(index, rows, nothing, box, middle) == pytest.approx(math.sqrt(0.5))
    # The worst row counts, and a useless direction proves nothing.
    first = qualification_of(index, rows, nothing, box, lambda h, c: (np.eye(2)[0], np.zeros(0)))
    assert first == 0.0
    away = qualification_of(index, rows, nothing, box, lambda h, c: (np.ones(2) * -1, np.zeros(0)))
    assert away == 0.0
    assert qualification_of(np.zeros(0, int), np.zeros((0, 2)), nothing, box, middle) == 1.0
    none = qualification_of(index, rows, nothing, box, lambda h, c: (np.zeros(2), np.zeros(0)))
    assert none == 0.0


def test_gradients_are_measured_by_the_longest_of_their_constraint() -> None:
    rows = np.array([[4.0, 0.0], [2.0, 0.0]])
    box = everywhere(2)
    found = qualification_of(np.array([0, 0]), rows, np.zeros(2), box, middle)
    assert found == pytest.approx(0.5)
    assert qualification_of(np.array([0, 1]), rows, np.zeros(2), box, middle) == pytest.approx(1.0)
    for bad in (math.inf, math.nan):
        broken = np.array([[bad, 0.0], [1.0, 0.0]])
        assert qualification_of(np.array([0, 1]), broken, np.zeros(2), box, middle) == 0.0
    vanished = np.array([[0.0, 0.0], [1.0, 0.0]])
    assert qualification_of(np.array([0, 1]), vanished, np.zeros(2), box, middle) == 0.0


def test_normals_in_use_are_directions_of_the_cone() -> None:
    """(1, 1) with the normal (-1, 0): what is left of it is (0, 1), 1 / sqrt 2 of its length."""
    rows, index = np.array([[1.0, 1.0]]), np.array([0])

    def cancel(hull: Any, cone: Any) -> Any:
        assert cone.tolist() == [[-1.0, 0.0]]
        return np.ones(1), np.array([hull[0, 0]])

    box = everywhere(2)
    found = qualification_of(index, rows, np.array([-5.0, 0.0]), box, cancel)
    assert found == pytest.approx(math.sqrt(0.5))

    def too_little(hull: Any, cone: Any) -> Any:
        return np.ones(1), np.zeros(len(cone))

    # (1, 1) itself goes against the normal: that entry is dropped.
    found = qualification_of(index, rows, np.array([-5.0, 0.0]), box, too_little)
    assert found == pytest.approx(math.sqrt(0.5))
    # With the normal (1, 0) it does not: the whole direction counts.
    found = qualification_of(index, rows, np.array([5.0, 0.0]), box, too_little)
    assert found == pytest.approx(1.0)
    # A small entry against a normal is dropped as well, of either sign.
    for sign in (1.0, -1.0):
        against = np.array([[-0.5 * sign, 1.0]])
        found = qualification_of(index, against, np.array([5.0 * sign, 0.0]), box, too_little)
        assert found == pytest.approx(1.0 / math.hypot(0.5, 1.0))
    # A coordinate that cannot move has no normal that matters, nor what gradients say along it.
    fixed = Box(np.array([0.0, -1.0]), np.array([0.0, 1.0]))
    seen: list[Any] = []

    def note(hull: Any, cone: Any) -> Any:
        seen.append(cone)
        return np.ones(1), np.zeros(len(cone))

    found = qualification_of(index, rows, np.array([-5.0, 0.0]), fixed, note)
    assert found == pytest.approx(math.sqrt(0.5))
    assert seen[0].shape == (0, 2)


def sampled_distance(rows: Any, cone: Any, rng: Any, draws: int = 4000) -> float:
    """The shortest of many random elements of hull plus cone: an upper bound of the distance."""
    weights = rng.dirichlet(np.full(len(rows), 0.5), draws)
    points = weights @ rows
    # For each point the best multiple of each of the few normals: they are coordinate vectors.
    for normal in cone:
        points = points + np.maximum(-(points @ normal), 0.0)[:, None] * normal
    return float(np.linalg.norm(points, axis=1).min())


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.booleans())
def test_no_proposal_makes_it_larger_than_it_is(seed: int, honest: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((4, 3)) + rng.uniform(0, 2) * np.eye(3)[0]
    normal = np.where(rng.random(3) < 0.4, rng.choice([-1.0, 1.0], 3), 0.0)
    box = Box(np.full(3, -1.0), np.full(3, 1.0))

    def forged(hull: Any, cone: Any) -> Any:
        return rng.dirichlet(np.ones(len(hull))), rng.random(len(cone))

    q = qualification_of(np.arange(4), rows, normal, box, conic_weights if honest else forged)
    lengths = np.linalg.norm(rows, axis=1)
    cone = np.sign(normal)[:, None] * np.eye(3)
    least = sampled_distance(rows / lengths[:, None], cone[normal != 0.0], rng)
    assert q <= least + 1e-12
    if honest:
        assert q >= least - 0.15  # samples come close to the shortest


def test_opposite_gradients_qualify_nothing() -> None:
    rows, box = np.array([[1.0, 0.0], [-1.0, 0.0]]), Box(np.full(2, -1.0), np.full(2, 1.0))
    assert qualification_of(np.arange(2), rows, np.zeros(2), box, conic_weights) == 0.0


def test_constraints_as_scipy_takes_them() -> None:
    """x_1 - 1 >= 0, x_1 = 1 and -1 <= x_1 - 1 <= 0, in all forms; values and rows by hand."""
    row, x = np.array([1.0, 0.0]), np.array([3.0, 5.0])

    def value(x: Any, sign: float = 1.0) -> Any:
        return sign * (x[0] - 1.0)

    forms: list[tuple[Any, float, float, float]] = [
        ({"type": "ineq", "fun": value, "jac": lambda x: row}, 0.0, INF, 1.0),
        ({"type": "eq", "fun": value, "jac": lambda x: row[None]}, 0.0, 0.0, 1.0),
        ({"type": "ineq", "fun": lambda x: (value(x), row), "jac": True}, 0.0, INF, 1.0),
        ({"type": "eq", "fun": value, "jac": lambda x, s: s * row, "args": -2.0}, 0.0, 0.0, -2.0),
        (SimpleNamespace(fun=value, jac=lambda x: row, lb=-1.0, ub=[0.0]), -1.0, 0.0, 1.0),
        (SimpleNamespace(A=row, lb=[-1], ub=INF), -1.0, INF, 1.0),
    ]  # fmt: skip
    for form, low, high, factor in forms:
        linear = hasattr(form, "A")
        for one in (form, [form], (form,)):
            system = Limits(as_groups(one, 2), x)
            assert (system.lower.tolist(), system.upper.tolist()) == ([low], [high])
            assert (system.equal.tolist(), system.linear.tolist()) == ([low == high], [linear])
            assert system.values(x).tolist() == [factor * (3.0 if linear else 2.0)]
            assert system.rows(x).tolist() == [[factor, 0.0]]
            assert system.name(0) == "constraints[0]" + (" (value)" if hasattr(form, "fun") else "")
    both = Limits(as_groups([forms[0][0], SimpleNamespace(A=np.eye(2), lb=0, ub=[1, 2])], 2), x)
    assert both.upper.tolist() == [INF, 1.0, 2.0]
    assert [both.name(i) for i in (0, 2)] == ["constraints[0]", "constraints[1], component 1"]
    assert both.excess(both.values(x)).tolist() == [0.0, 2.0, 3.0]
    assert Limits(as_groups(None, 2), x).size == Limits(as_groups([], 2), x).size == 0


def test_only_black_boxes_are_called_with_laid_out_points() -> None:
    layout = ["dict", ["a"], [2, 1]]
    seen: list[Any] = []

    def value(p: Any) -> Any:
        seen.append(p)
        return np.ravel(p["a"])[0]

    box = {"type": "ineq", "fun": value, "jac": lambda p: {"a": np.array([[1.0], [0.0]])}}
    system = Limits(
        as_groups([box, SimpleNamespace(A=np.eye(2), lb=0, ub=1)], 2, layout), np.ones(2)
    )
    assert system.values(np.array([3.0, 4.0])).tolist() == [3.0, 3.0, 4.0]
    assert system.rows(np.ones(2)).tolist() == [[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    assert all(p["a"].shape == (2, 1) for p in seen)
