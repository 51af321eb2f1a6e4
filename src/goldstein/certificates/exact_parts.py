"""One component of the constraints at an exact point: its value, and limits of its gradients."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import exact_dot, to_fraction, to_fractions
from goldstein.checker.sides import Point as PointOf
from goldstein.checker.sides import limiting_gradients
from goldstein.constrained.system import System
from goldstein.errors import InputTypeError, NotCertifiableError

Point = Sequence[Fraction]

#: Exact midpoints and radii of a gradient.
Limit = tuple[list[Fraction], list[Fraction]]


class ExactPart(Protocol):
    """What the checker asks of a component; every answer is proved."""

    is_affine: bool
    #: Its pieces are polynomials of this degree.
    degree: float

    def between(self, point: Point) -> tuple[Fraction, Fraction]:
        """Return numbers that enclose the value; equal ones where it is known exactly."""
        ...

    def limits(self, point: Point, directions: Any) -> list[Limit]:
        """Return enclosures of the limits of gradients at a point along directions."""
        ...


class Row:
    """row . x, its numbers taken as exact.

    Examples
    --------
    >>> Row(np.array([0.5, 2.0])).between([Fraction(1), Fraction(1, 3)])
    (Fraction(7, 6), Fraction(7, 6))
    """

    is_affine, degree = True, 1.0

    def __init__(self, row: Vector) -> None:
        self.row = np.array(row)

    def between(self, point: Point) -> tuple[Fraction, Fraction]:
        value = exact_dot(self.row, list(point))
        return value, value

    def limits(self, point: Point, directions: Any) -> list[Limit]:
        exact = to_fractions(self.row)
        return [(exact, [Fraction(0)] * self.row.size)] * len(directions)


class KinkedPart:
    """An expression, in the language of the checker."""

    def __init__(self, expression: Any, name: str, dim: int) -> None:
        if not expression.is_exact:
            raise NotCertifiableError(
                f"{name} contains a LinearOperator or user code, known in float64 only; pass the "
                "matrix, or write the constraint with atoms, to get a near certificate."
            )
        if expression.dim != dim:
            raise NotCertifiableError(
                f"{name} is a function of {expression.dim} variables, the point has {dim}."
            )
        self.program = expression.program()
        self.is_affine = self.program.affine[-1]
        self.degree = float(expression.degree)

    def between(self, point: Point) -> tuple[Fraction, Fraction]:
        here = PointOf(self.program, list(point))
        last = len(self.program.nodes) - 1
        try:
            (value,) = here.exact(last, [0])
            return value, value
        except NotCertifiableError:  # an irrational number: an interval around it
            box = here.value(last)
            mid, rad = (to_fraction(float(side[0])) for side in (box.mid, box.rad))
            return mid - rad, mid + rad

    def limits(self, point: Point, directions: Any) -> list[Limit]:
        return limiting_gradients(self.program, list(point), directions)


def exact_parts(system: System, dim: int) -> list[ExactPart]:
    """Return every component of a system for exact questions; a black box is refused."""
    found: list[ExactPart] = []
    for group in system.groups:
        if len(group.parts) != group.size:
            raise InputTypeError(
                f"stationarity='near' needs constraints whose kinks are known, and {group.name} is "
                "a black box; write it as an Expression (F <= 1, F == 0) or as a LinearConstraint."
            )
        for part in group.parts:
            if isinstance(part, np.ndarray):
                found.append(Row(part))
            else:
                found.append(KinkedPart(part, group.name, dim))
    return found
