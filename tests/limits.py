"""What the checker derives from a function, in the shape that tests ask for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.calculus.evaluation import Row, affine_row
from goldstein.checker.constrained.near import as_rationals
from goldstein.checker.enclosed.point import EnclosedPoint, require_finite
from goldstein.checker.sides import Side, point_at


def limiting_gradients(
    fun: Any, point: Any, directions: Any
) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Limits of gradients along directions: midpoints and radii, the radii 0 where exact."""
    ways = np.atleast_2d(np.asarray(directions, dtype=np.float64))
    return as_rationals(point_at(fun.program(), point, len(ways)).limits(ways))


def exact_row(u: Any, entry: int = 0) -> tuple[Row, Fraction]:
    """The coefficients of an entry of an affine expression, and its constant."""
    program = u.reshape(u.size)[entry].program()
    return affine_row(program, program.last, 0)


def gradient_enclosure(fun: Any, point: Any) -> tuple[np.ndarray, np.ndarray]:
    """The gradient at a point of differentiability: midpoints and radii."""
    g = Side(EnclosedPoint(fun.program(), point), None).gradient()
    require_finite(g.mid, g.rad)
    return g.mid, g.rad


def require_one_gradient(fun: Any, x: np.ndarray) -> None:
    """The fused pass, the tree, differences and the checker agree on the gradient of a model."""
    g = fun.gradient(x)
    np.testing.assert_allclose(g, fun.tree.gradient(x), rtol=1e-9, atol=1e-12)
    h = 1e-6
    slopes = [(fun.value(x + h * e) - fun.value(x - h * e)) / (2 * h) for e in np.eye(x.size)]
    np.testing.assert_allclose(g, slopes, atol=2e-4)
    mid, rad = gradient_enclosure(fun, x)
    assert (np.abs(mid - g) <= rad + 1e-9 * (1 + np.abs(g))).all()
