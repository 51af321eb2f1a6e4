"""Single guards of enclosures and of what values resolve: without one of them a test fails."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.checker import nodes
from goldstein.checker.blackbox.differences import Differences
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.enclosed import point as enclosed
from goldstein.checker.enclosed.arrays import FUNCTIONS, Enclosure, flint
from goldstein.checker.enclosed.irrational import Smooth
from goldstein.checker.enclosed.point import EnclosedPoint
from goldstein.checker.function import Asked, BlackBox
from goldstein.checker.nodes import Affine, Piecewise, Product, Variable
from goldstein.checker.sides import Point, Program, point_at
from goldstein.errors import NotCertifiableError

a = gs.atoms
ONE, ZERO = Fraction(1), Fraction(0)
RELU = (ZERO,), ((ZERO, ZERO), (ZERO, ONE))


def ones(size: int) -> np.ndarray:
    return np.ones((1, size))


def kinked(program: Program) -> int:
    (k,) = [k for k, n in enumerate(program.nodes) if isinstance(n, Piecewise) and any(n.jumps)]
    return k


@pytest.mark.skipif(flint() is None, reason="needs ball arithmetic")
def test_balls_with_more_digits_than_a_float_are_enclosed() -> None:
    """Whoever asks flint for more digits gets centres that are no floats."""
    module: Any = flint()
    before, module.ctx.prec = module.ctx.prec, 200
    try:
        for u in (0.3, 1.7, -2.1):
            found = Enclosure(np.array([u])).balls("exp")
            mid, rad = module.arb(float(found.mid[0])), module.arb(float(found.rad[0]))
            assert abs(mid - module.arb(u).exp()) < rad
    finally:
        module.ctx.prec = before


def test_rows_that_are_divided_and_rows_of_other_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limits in one pass are those along each direction, and those in rationals."""
    monkeypatch.setattr(enclosed, "RATIONAL_WORK", -1)
    rng = np.random.default_rng(0)
    M = rng.integers(-3, 4, (3, 2)).astype(float) + np.eye(3, 2) * 8
    ways = rng.standard_normal((5, 2))
    divided = Program([
        Variable((), (), 2),
        Affine((0,), (2,), 3, M, 1, None, np.array([2.0, -4.0, 3.0])),
        Piecewise((1,), (3,), 3, *RELU),
        Affine((2,), (3,), 1, np.array([[1.0, -2.0, 5.0]])),
    ])  # fmt: skip
    turned = Program([
        Variable((), (), 2),
        Affine((0,), (2,), 2, np.array([[0.0, 1.0], [-3.0, 0.0]])),
        Affine((1,), (2,), 3, M),
        Piecewise((2,), (3,), 3, *RELU),
        Affine((3,), (3,), 1, np.array([[1.0, -2.0, 5.0]])),
    ])  # fmt: skip
    for program in (divided, turned):
        exact = Point(program, np.zeros(2)).limits(ways).exact
        assert exact is not None
        _, mid, rad = EnclosedPoint(program, np.zeros(2)).limits(ways)
        for row, m, r in zip(exact, mid, rad, strict=True):
            for q, centre, radius in zip(row, m.tolist(), r.tolist(), strict=True):
                assert abs(q - Fraction(centre)) <= Fraction(radius)


@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_signs_of_short_products_that_almost_cancel(size: int) -> None:
    rng, wrong = np.random.default_rng(size), 0
    for _ in range(300):
        left, right = rng.standard_normal((2, size))
        # The last number makes the product 0, up to the rounding of this number.
        rest = sum(Fraction(p) * Fraction(q) for p, q in zip(left[:-1], right[:-1]))
        right[-1] = float(-rest / Fraction(left[-1]))
        exact = rest + Fraction(left[-1]) * Fraction(right[-1])
        sign = (exact > 0) - (exact < 0)
        wrong += int(np.sign(left @ right)) != sign
        assert enclosed.signs_of_products(left[None], right[None]).tolist() == [[sign]]
    assert wrong  # floats alone do not know


def in_box(F: gs.Expression, centre: Any, radii: Any, rows: Any) -> Any:
    box = np.array(radii, dtype=float), np.array(rows, dtype=np.int64)
    return point_at(F.program(), np.array(centre, dtype=float), 1, box)


def test_kinks_that_are_too_close_to_tell_apart_do_not_meet() -> None:
    """exp(x) is not 3 and a little more than 3 at one point, however wide the box is."""
    little = Fraction(1, 2**48)
    twice = PiecewisePolynomial("twice", [3, 3 + little], [[3, -1], [0], [-3 - little, 1]])
    x = gs.Variable(1)
    F = gs.sum(Elementwise(twice, a.exp(x)))
    k, at = kinked(F.program()), np.log(3.0)
    with pytest.raises(NotCertifiableError, match="combination"):
        in_box(F, [at], [1e-13], [[k, 0, 0], [k, 0, 1]])


def test_a_variable_of_the_box_is_no_constant() -> None:
    """exp(x) = 1 + 2^-52 is beside x = 0, where the other kink is."""
    program = Program([
        Variable((), (), 1),
        Smooth((0,), (1,), 1, FUNCTIONS["exp"]),
        Piecewise((1,), (1,), 1, (ONE + Fraction(1, 2**52),), (
            (ONE + Fraction(1, 2**52), -ONE), (-ONE - Fraction(1, 2**52), ONE))),
        Piecewise((0,), (1,), 1, (ZERO,), ((ZERO, -ONE), (ZERO, ONE))),
        nodes.Add((2, 3), (1, 1), 1),
    ])  # fmt: skip
    box = np.array([1e-13]), np.array([[2, 0, 0], [3, 0, 0]])
    with pytest.raises(NotCertifiableError, match="combination"):
        point_at(program, np.zeros(1), 1, box)


def test_kinks_of_several_entries_are_solved_for_one_by_one() -> None:
    """exp(x) = 3 and exp(y) = 2: a box of two variables, switches of one node."""
    x = gs.Variable(2)
    F = gs.sum(gs.abs(a.exp(x) - np.array([3.0, 2.0])))
    k, centre = kinked(F.program()), np.log([3.0, 2.0])
    point = in_box(F, centre, [1e-13, 1e-13], [[k, 0, 0], [k, 1, 0]])
    _, mid, rad = point.limits(np.array([[1.0, -1.0], [1.0, 1.0]]))
    for row, r, signs in zip(mid, rad, ([1, -1], [1, 1]), strict=True):
        assert (np.abs(row - np.array(signs) * [3.0, 2.0]) <= r + 1e-14).all()
        assert r.max() < 1e-11


def test_the_coarsest_heavy_point_says_what_f_resolves() -> None:
    """(z + C) - C is coarse in one of two variables: displacements have to leave its plateaus."""
    C, spacing = 2.0**20, 2.0**-32

    def f(x: Any) -> float:
        return float(3.0 * ((x[0] + C) - C) + 2.0 * x[1])

    asked = Asked(BlackBox(f, lambda x: np.array([3.0, 2.0])))
    x, g = np.array([0.3, 0.4]), np.array([3.0, 2.0])
    for seed in range(5):
        looked = Differences(asked, x, 1e-3, as_box(None, 2), seed)
        assert looked.resolution([(x, g)]).min() >= spacing


def test_products_take_as_many_multiplications_as_they_have_terms() -> None:
    program = Program([
        Variable((), (), 6), Product((0, 0), (6, 6), 4, 1, 3), Affine((1,), (4,), 1, ones(4)),
    ])  # fmt: skip
    assert enclosed.work(program) == 6 + 4 * 3 + 4
    assert enclosed.is_small(program)
    assert enclosed.is_small(program, 400_000 // 22)
    assert not enclosed.is_small(program, 400_000 // 22 + 1)
