"""Limits of gradients, exactly and enclosed, in every way the checker may take to them."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.differential import random_function

import goldstein as gs
from goldstein.checker import nodes
from goldstein.checker.enclosed import point as enclosed
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.enclosed.point import EnclosedPoint, require_finite, work
from goldstein.checker.nodes import Max, Piecewise
from goldstein.checker.sides import Point, Program, Side, point_at
from goldstein.errors import GoldsteinError, InputError, NotCertifiableError

W = gs.Variable(3)
A = np.array([[1.0, -1.0, 0.5], [2.0, 1.0, 0.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
HALF = Fraction(1, 2)

VARIABLE = nodes.Variable((), (), 2)


def total(of: int, size: int) -> nodes.Affine:
    """The sum of all entries."""
    return nodes.Affine((of,), (size,), 1, np.ones((1, size)))


TOTAL = total(0, 2)
BAD: dict[str, list[Any]] = {
    "nothing": [],
    "two numbers": [VARIABLE],
    "no variable": [TOTAL],
    "a second variable": [VARIABLE, nodes.Variable((), (), 2), TOTAL],
    "of itself": [VARIABLE, nodes.Add((1,), (2,), 2), total(1, 2)],
    "of a later one": [
        VARIABLE,
        nodes.Add((2,), (2,), 2),
        nodes.Add((0,), (2,), 2),
        total(1, 2),
    ],
    "of one before the first": [VARIABLE, total(-1, 2)],
    "another size": [VARIABLE, total(0, 3)],
}


@pytest.mark.parametrize("name", BAD)
def test_a_program_that_does_not_fit_is_refused(name: str) -> None:
    assert Program([VARIABLE, TOTAL]).dim == 2
    with pytest.raises(InputError):
        Program(BAD[name])


def test_points_and_directions_of_another_length_are_refused() -> None:
    program = gs.sum(gs.abs(W)).program()
    for point in ([Fraction(0)] * 2, [Fraction(0)] * 4):
        with pytest.raises(InputError, match="expected 3"):
            Point(program, point)
    point = Point(program, [Fraction(0)] * 3)
    for way in (np.ones(2), np.ones(4)):
        with pytest.raises(InputError, match="expected 3"):
            Side(point, way)


FUNCTIONS: dict[str, Any] = {
    "rows": gs.sum(gs.relu(A @ W)),
    "rows plus constants": gs.sum(gs.relu(A @ W + np.array([1.0, 0.0, 0.0, -2.0]))),
    "weighted rows": np.array([1.0, -3.0, 2.0, 0.5]) @ gs.abs(A @ W),
    "squares above": gs.sum_squares(gs.relu(A @ W) - 1.0),
    "two kinked nodes": gs.sum(gs.relu(A @ W)) + gs.sum(gs.abs(2.0 * (A @ W) - W[0])),
    "the largest": gs.max(A @ W),
    "a norm": gs.norm2(A @ W),
    "smooth breakpoints": gs.sum(gs.huber(A @ W + 1.0, 1.0)),
    "smooth ones and kinks": gs.sum(gs.mcp(A @ W, 1.0, 2.0)),
    "variables": gs.sum(gs.abs(W)) + gs.sum_squares(W),
    "two columns": gs.sum(gs.relu(A[:, :2] @ gs.Variable(4).reshape(2, 2))),
    "rows of something else": gs.sum(gs.relu(A @ (W * np.array([2.0, -1.0, 3.0])))),
    "rows of squares": gs.sum(gs.abs(A @ (W * W) + A @ W)),
    "nested": gs.sum(gs.abs(A[:, :2] @ gs.relu(A[:2] @ W))),
    "a quadratic besides": gs.sum(gs.relu(A @ W)) + gs.sum_squares(A @ W - 1.0),
}
WAYS = {
    "one": [[1.0, 0.5, -0.25, 2.0]],
    "some": [[1.0, 0.5, -0.25, 2.0], [-1.0, 0.25, 3.0, -1.0], [0.5, -2.0, 1.0, 1.5]],
    "on a kink": [[1.0, 1.0, 0.0, 1.0], [1.0, 0.5, -0.25, 2.0]],
}


def limits(F: Any, ways: Any) -> Any:
    """Limits at 0, or a refusal."""
    try:
        return point_at(F.program(), [Fraction(0)] * F.dim, len(ways)).limits(ways)
    except GoldsteinError as failure:
        return type(failure)


def same(found: Any, exact: Any) -> None:
    """Require enclosures to contain exact limits, or both to be refused."""
    if isinstance(exact, type):
        assert found is exact
        return
    assert not isinstance(found, type)
    assert found.exact is None
    if exact.exact is None:  # an irrational number
        assert (np.abs(found.mid - exact.mid) <= found.rad + exact.rad).all()
        assert found.rad.max() <= 1e-9
        return
    for mids, rads, row in zip(found.mid.tolist(), found.rad.tolist(), exact.exact, strict=True):
        for mid, rad, entry in zip(mids, rads, row, strict=True):
            assert abs(Fraction(mid) - entry) <= Fraction(rad)
            assert rad <= 1e-9


CHANGES: dict[str, dict[str, int]] = {
    "enclosed": {},
    "not written out": {"WRITTEN_OUT": 5},
    "in blocks": {"BLOCK": 1},
}


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("ways", WAYS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_enclosed_limits_are_the_exact_ones(
    name: str, ways: str, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    F = FUNCTIONS[name]
    some = np.array(WAYS[ways])[:, : F.dim]
    exact = limits(F, some)
    monkeypatch.setattr(enclosed, "RATIONAL_WORK", -1)
    for constant, value in CHANGES[how].items():
        monkeypatch.setattr(enclosed, constant, value)
    same(limits(F, some), exact)
    if how == "enclosed":
        same(limits(F, some.tolist()), exact)
        same(limits(F, some.astype(np.float32)), exact)
        if not isinstance(exact, type) and ways != "on a kink":
            beside = [F.gradient(1e-9 * way) for way in some]
            assert np.allclose(exact.mid, beside, atol=1e-6)


@pytest.mark.parametrize("seed", range(30))
def test_limits_of_random_functions(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    F = random_function(rng)
    ways = rng.standard_normal((3, F.dim))
    exact = limits(F, ways)
    monkeypatch.setattr(enclosed, "RATIONAL_WORK", -1)
    if isinstance(exact, type) or exact.exact is not None:
        same(limits(F, ways), exact)


@pytest.mark.parametrize("seed", range(20))
def test_exact_values_are_the_values(seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = random_function(rng)
    y = rng.integers(-8, 9, F.dim) / 4.0
    program, value = F.program(), F.value(y)
    low, high = point_at(program, y).between()
    room = Fraction(1, 10**9) * (1 + abs(Fraction(value)))
    assert low - room <= Fraction(value) <= high + room
    box = EnclosedPoint(program, y).value(program.last)
    mid, rad = Fraction(float(box.mid[0])), Fraction(float(box.rad[0]))
    assert mid - rad <= high
    assert low <= mid + rad


def test_a_gradient_beyond_float64_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    steep = gs.sum(gs.relu(np.full((3, 2), 1e308) @ gs.Variable(2)))
    monkeypatch.setattr(enclosed, "RATIONAL_WORK", -1)
    for ways in (np.array([[1.0, 0.5]]), np.array([[1.0, 0.5], [0.5, 1.0]])):
        with pytest.raises(NotCertifiableError, match="enclosed"):
            point_at(steep.program(), [Fraction(0)] * 2).limits(ways)


def test_pauses_between_the_steps() -> None:
    """Once for every direction."""
    program = gs.sum(gs.abs(W)).program()
    ways = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
    calls: list[int] = []
    Point(program, [Fraction(0)] * 3).limits(ways, lambda: calls.append(1))
    assert len(calls) == 2


def largest(*rows: Any) -> Program:
    """The largest of some numbers."""
    return gs.max(gs.concatenate([row.reshape(1) for row in rows])).program()


def limit(program: Program, way: list[float]) -> list[Fraction]:
    point = Point(program, [Fraction(0)] * program.dim)
    found: list[Fraction] = Side(point, np.array(way)).gradient().fractions
    return found


def test_ties_along_a_direction_must_be_one_function() -> None:
    """w_1 twice is one function; w_1 + w_2 is another one, with the same values along (1, 0)."""
    w = gs.Variable(2)
    two = largest(w[0], w[0])
    assert limit(two, [1.0, 0.0]) == [1, 0]
    for rows in (
        (w[0], w[0], w[0] + w[1]), (w[0] + w[1], w[0], w[0]), (w[0], w[0] + w[1]),
        (w[0], w[0] + w[1], w[0]),
    ):  # fmt: skip
        with pytest.raises(NotCertifiableError, match="kink"):
            limit(largest(*rows), [1.0, 0.0])
        assert limit(largest(*rows), [1.0, 1.0]) == [1, 1]


def test_functions_with_one_derivative_are_not_yet_one_function() -> None:
    """w_1 and w_1 + w_2^2 have the same values along (1, 0), and the same gradient."""
    w = gs.Variable(2)
    for rows in ((w[0], w[0] + w[1] * w[1]), (w[0] + w[1] * w[1], w[0])):
        with pytest.raises(NotCertifiableError, match="kink"):
            limit(largest(*rows), [1.0, 0.0])


def test_a_table_of_two_columns() -> None:
    """relu of A times a table: rows of A in both columns."""
    relu = ((Fraction(0),), ((Fraction(0), Fraction(0)), (Fraction(0), Fraction(1))))
    A = np.array([[1.0, 2.0], [-1.0, 1.0], [3.0, 0.0]])
    program = Program(
        [
            nodes.Variable((), (), 4),
            nodes.Affine((0,), (4,), 6, A, 2),
            Piecewise((1,), (6,), 6, *relu),
            total(2, 6),
        ]
    )
    ways = np.array([[1.0, 0.5, -0.25, 2.0], [-1.0, 0.25, 3.0, -1.0]])
    for some in (ways, ways[:1]):
        found = Point(program, [Fraction(0)] * 4).limits(some)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(enclosed, "RATIONAL_WORK", -1)
            boxes = point_at(program, [Fraction(0)] * 4).limits(some)
        for way, row, mid in zip(some, found.exact, boxes.mid):
            active = A @ way.reshape(2, 2) > 0
            assert row == (A.T @ active).ravel().tolist()
            assert np.allclose(mid, (A.T @ active).ravel(), rtol=1e-12)


def test_an_irrational_number_times_nothing_is_nothing() -> None:
    w = gs.Variable(2)
    dead = gs.softplus(w[:1]) * gs.relu(w[1:])
    program = gs.sum(gs.abs(dead)).program()
    point = EnclosedPoint(program, [Fraction(1), Fraction(-1)])
    product = next(k for k, node in enumerate(program.nodes) if isinstance(node, nodes.Product))
    assert point.exact(product, [0]).fractions == [0]
    assert Side(point, None).gradient().mid.tolist() == [0.0, 0.0]


def test_paths_of_different_degrees_are_compared() -> None:
    """t against t - t^2 and t + t^2."""
    w = gs.Variable(2)
    down = w[0] - w[0] * w[0] + w[1]
    up = w[0] + w[0] * w[0] + w[1]
    for rows in ((w[0], down), (down, w[0])):
        assert limit(largest(*rows), [1.0, 0.0]) == [1, 0]
    for rows in ((w[0], up), (up, w[0])):
        assert limit(largest(*rows), [1.0, 0.0]) == [1, 1]


def test_signs_of_products_are_exact() -> None:
    left = np.array([[1.0, 2.0**-60, 1e-300], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    right = np.array([[1.0, 1.0, 0.0], [1.0, -(2.0**60), 0.0], [0.0, 0.0, 1e-300], [1.0, -1.0, 0]])
    found = enclosed.signs_of_products(left, right)
    assert found.tolist() == [[1, 0, 1, 1], [1, -1, 0, 0], [0, 0, 0, 0]]
    huge = enclosed.signs_of_products(np.array([[1e308, 1e308]]), np.array([[1e308, -1e308]]))
    assert huge.tolist() == [[0]]
    rng = np.random.default_rng(0)
    a, b = rng.integers(-3, 4, (20, 4)) * 2.0**-30, rng.integers(-3, 4, (20, 4)) * 1.0
    a[:, 0] += 2.0**40
    truth = [
        [int(np.sign(sum(Fraction(p) * Fraction(q) for p, q in zip(u, v)))) for v in b.tolist()]
        for u in a.tolist()
    ]
    assert enclosed.signs_of_products(a, b).tolist() == truth


def test_rational_points_are_enclosed() -> None:
    exact = [Fraction(1, 3), HALF, Fraction(-2, 7)]
    point = EnclosedPoint(gs.sum(W).program(), exact).value(0)
    assert point.rad[1] == 0.0
    for mid, rad, entry in zip(point.mid, point.rad, exact):
        assert abs(Fraction(mid) - entry) <= Fraction(rad)
    assert point.rad.max() < 1e-16


def test_what_is_affine_and_how_much_work_it_is() -> None:
    program = FUNCTIONS["squares above"].program()
    first = next(k for k, node in enumerate(program.nodes) if isinstance(node, Piecewise))
    assert all(program.affine[:first])
    assert not any(program.affine[first:])
    assert not program.affine[-1]
    assert Program([VARIABLE, TOTAL]).affine == [True, True]
    assert work(Program([VARIABLE, TOTAL])) == 2 + 2
    table = nodes.Product((0, 0), (2, 2), 1, 1, 2)
    assert work(Program([VARIABLE, table])) == 2 + 2
    wide = nodes.Affine((0,), (2,), 2, np.ones((1, 1)), 2)
    assert work(Program([VARIABLE, wide, total(1, 2)])) == 2 + 2 + 2
    assert Program([VARIABLE, table]).ancestors(1) == [0, 1]


def test_the_largest_of_rows_has_ties_by_row() -> None:
    rows = Program([nodes.Variable((), (), 4), Max((0,), (4,), 2, 2), total(1, 2)])
    point = Point(rows, [Fraction(1), Fraction(1), Fraction(2), Fraction(3)])
    assert point.ties == {1: {0: [0, 1]}}
    side = Side(point, np.array([0.0, 1.0, 5.0, 0.0]))
    assert side.gradient().fractions == [0, 1, 0, 1]
    assert isinstance(EnclosedPoint(rows, point.y).value(2), Enclosure)


def refused(F: Any, pivot: list[int], way: list[float]) -> bool:
    point = Point(F.program(), [Fraction(a) for a in pivot])
    try:
        Side(point, np.array(way))
    except NotCertifiableError:
        return True
    return False


def test_a_vanishing_derivative_is_not_yet_constant() -> None:
    """|w_1 w_2| along a coordinate: the product vanishes to first order, and beside it does not."""
    w = gs.Variable(2)
    product = gs.sum(gs.abs(w[:1] * w[1:]))
    assert refused(product, [0, 0], [1.0, 0.0])
    assert refused(product, [0, 0], [0.0, -1.0])
    assert not refused(product, [0, 0], [1.0, 1.0])
    # Where one factor is 0 for good, so is the product.
    dead = gs.sum(gs.abs(gs.relu(w[:1]) * w[1:]))
    assert not refused(dead, [-1, 0], [1.0, 0.0])
    assert refused(dead, [0, 0], [0.0, 1.0])
    assert refused(dead, [1, 0], [1.0, 0.0])


def test_what_is_constant_on_one_side_is_not_called_so() -> None:
    """relu(w) - w is 0 to the right of 0, and not to the left; so for the largest of two."""
    w = gs.Variable(2)
    assert refused(gs.sum(gs.abs(gs.relu(w[:1]) - w[:1])), [0, 0], [1.0, 0.0])
    assert not refused(gs.sum(gs.abs(gs.relu(w[:1]) - w[:1])), [0, 0], [-1.0, 0.0])
    assert refused(gs.abs(gs.max(w) - w[0]), [0, 0], [1.0, 0.0])
    assert not refused(gs.abs(gs.max(w) - w[0]), [0, 0], [0.0, 1.0])
    # mcp(w) is 1 from 2 on, and 1 - (w - 2)^2 / 4 before: a smooth breakpoint.
    late = gs.sum(gs.abs(gs.mcp(w[:1], 1.0, 2.0) - 1.0))
    assert refused(late, [-2, 0], [0.0, 1.0])
    assert refused(late, [2, 0], [0.0, 1.0])
    assert not refused(late, [3, 0], [0.0, 1.0])


def test_a_smooth_breakpoint_may_be_kept() -> None:
    w = gs.Variable(2)
    smooth = gs.sum(gs.huber(w, 1.0))
    assert not refused(smooth, [1, 0], [0.0, 1.0])
    point = Point(smooth.program(), [Fraction(1), Fraction(0)])
    assert Side(point, np.array([0.0, 1.0])).gradient().fractions == [1, 0]
    assert Side(point, None).gradient().fractions == [1, 0]


def test_nodes_that_nothing_depends_on() -> None:
    unused = nodes.Add((0, 0), (2, 2), 2)
    program = Program([VARIABLE, unused, TOTAL])
    gradient = Side(Point(program, [Fraction(0)] * 2), None).gradient()
    assert gradient.fractions == [1, 1]


def test_what_is_not_finite_is_refused() -> None:
    require_finite(np.ones(2), np.zeros(2))
    for mid, rad in ((np.inf, 0.0), (0.0, np.inf), (np.nan, 0.0), (0.0, np.nan)):
        with pytest.raises(NotCertifiableError):
            require_finite(np.array([0.0, mid]), np.array([0.0, rad]))
