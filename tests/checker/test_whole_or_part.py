"""Limits of gradients are the same fractions, whether all of a function is computed or a part."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.enclosed.point import EnclosedPoint, work
from goldstein.checker.sides import WHOLE, Point, point_at

TABLE = np.random.default_rng(0).standard_normal((120, 6))
X = gs.Variable(6)


@pytest.mark.parametrize(
    "f",
    [
        gs.max(abs(TABLE @ X - 1.0)),
        gs.sum(abs(TABLE @ X)) + gs.norm1(X),
        gs.sum(gs.relu(TABLE[:40] @ X) ** 2) + gs.max(X),
    ],
)
def test_parts_have_the_limits_of_the_whole(f: gs.Expression) -> None:
    program = f.program()
    y = [Fraction(1, 3), Fraction(0), Fraction(-1, 7), Fraction(1), Fraction(1), Fraction(0)]
    ways = np.random.default_rng(1).standard_normal((4, 6))
    whole, part = Point(program, y), EnclosedPoint(program, y)
    exact = whole.limits(ways).exact
    assert exact is not None
    assert exact == part.limits(ways).exact
    assert whole.between() == part.between()


def test_large_functions_are_computed_in_part() -> None:
    large = gs.max(abs(np.ones((400, 6)) @ X)).program()
    assert work(large) > WHOLE
    assert type(point_at(large, np.zeros(6))) is EnclosedPoint
    assert type(point_at(gs.norm1(X).program(), np.zeros(6))) is Point
