"""Functions written in the language of the checker, asked like black boxes."""

from __future__ import annotations

from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.errors import KinkError, NotCertifiableError
from goldstein.checker.exact import Exact
from goldstein.checker.function import Asked
from goldstein.checker.rationals import nearest_float
from goldstein.checker.rounding import norm_upper
from goldstein.checker.sides import Program, Side, point_at


class Written(Asked):
    """A function written in the language of the checker: its gradients are enclosed.

    Attributes
    ----------
    error : float
        How far the midpoints that were returned are from the truth, at most.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.coarse, self.has_value, self.error = program, "", False, 0.0

    def value(self, x: Vector) -> float:
        low, high = point_at(self.program, x).between()
        return nearest_float((low + high) / 2)

    def gradient(self, y: Vector) -> Vector:
        try:
            g = Side(point_at(self.program, y), None).gradient()
        except NotCertifiableError as failure:
            raise KinkError(str(failure), y) from None
        if isinstance(g, Exact):
            g = Enclosure.of(g.fractions)
        self.error = max(self.error, norm_upper(g.rad))
        answer: Vector = g.mid
        return answer
