"""What the checker derives from a function, in the shape that tests ask for."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker import sides
from goldstein.checker.sides import Point, Side


def limiting_gradients(
    fun: Any, point: Any, directions: Any
) -> list[tuple[list[Fraction], list[Fraction]]]:
    """Limits of gradients along directions: midpoints and radii, the radii 0 where exact."""
    return sides.limiting_gradients(fun.program(), point, directions)


def gradient_enclosure(fun: Any, point: Any) -> tuple[np.ndarray, np.ndarray]:
    """The gradient at a point of differentiability: midpoints and radii."""
    g = Side(Point(fun.program(), point), None).gradient()
    return g.mid, g.rad
