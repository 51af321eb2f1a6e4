"""Functions written in the language of the checker, asked like black boxes."""

from goldstein.checker import errors, exact, function, rationals, rounding, sides
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed.arrays import Enclosure


class Written(function.Asked):
    """A function written in the language of the checker: its gradients are enclosed.

    Attributes
    ----------
    error : float
        How far the midpoints that were returned are from the truth, at most.
    """

    def __init__(self, program: sides.Program) -> None:
        self.program, self.coarse, self.has_value, self.error = program, "", False, 0.0

    def value(self, x: Vector) -> float:
        low, high = sides.point_at(self.program, x).between()
        return rationals.nearest_float((low + high) / 2)

    def gradient(self, y: Vector) -> Vector:
        try:
            g = sides.Side(sides.point_at(self.program, y), None).gradient()
        except errors.NotCertifiableError as failure:
            raise errors.KinkError(str(failure), y) from None
        if isinstance(g, exact.Exact):
            g = Enclosure.of(g.fractions)
        self.error = max(self.error, rounding.norm_upper(g.rad))
        answer: Vector = g.mid
        return answer
