"""The rho-margin objective as an oracle that looks only at the rows that matter near one point."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.errors import KinkError
from goldstein.oracles import Oracle
from goldstein.sklearn.margin_problem import MarginProblem

Vector = NDArray[np.float64]


class MarginOracle(Oracle):
    """Values and gradients of a `MarginProblem`; gradients on a kink are refused.

    After two questions within `radius` of each other, the rows that cannot change piece there are
    summed up once and for all; this is exact, and makes further questions nearby cheap.

    Parameters
    ----------
    problem : MarginProblem
    radius : float
        Size of the neighbourhoods to prepare for; about twice the delta of the certificates.
    """

    knows_kinks = True

    def __init__(self, problem: MarginProblem, radius: float) -> None:
        self.problem = problem
        self.dim = problem.dim
        self.radius = radius
        self._last: tuple[Vector, Vector] | None = None
        self._centre: Vector | None = None
        self._local = problem

    @property
    def name(self) -> str:
        return "rho_margin_objective"

    def value(self, x: Vector) -> float:
        problem, u = self._look(x)
        return problem.value(x, u)

    def gradient(self, y: Vector) -> Vector:
        problem, u = self._look(y)
        margin = u - problem.shift
        gap = np.minimum(np.abs(margin), np.abs(margin - problem.rho))
        if (gap <= rounding_bound(problem, y)).any():
            raise KinkError("a row sits on a kink of the loss, as far as rounding can tell.", y)
        return problem.gradient(y, u)

    def _look(self, x: Vector) -> tuple[MarginProblem, Vector]:
        """Return the cheapest problem that equals the objective at x, and its products Z x."""
        if self._centre is not None and _within(x, self._centre, self.radius):
            return self._local, self._local.product(x)
        if self._last is not None and _within(x, self._last[0], self.radius):
            centre, u = self._last
            slack = rounding_bound(self.problem, centre).max() + 1e-12 * self.problem.rho
            least = float(self.problem.row_norms.min(initial=np.inf))
            reach = self.radius + (slack / least if 0 < least < np.inf else 0.0)
            self._centre, self._local = centre, self.problem.restrict(centre, u, reach)
            return self._local, self._local.product(x)
        u = self.problem.product(x)
        self._last = (x.copy(), u)
        return self.problem, u


def rounding_bound(problem: MarginProblem, x: Vector) -> Vector:
    """Bound of the rounding error of each z_i.x - shift and of the distance to its kinks."""
    unit = (problem.dim + 8) * 2.0**-53
    length = float(np.linalg.norm(x))
    return unit * (problem.row_norms * length + abs(problem.shift) + problem.rho)


def _within(x: Vector, centre: Vector, radius: float) -> bool:
    offset = x - centre
    return float(offset @ offset) <= (radius * (1.0 - 1e-9)) ** 2
