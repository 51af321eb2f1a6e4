"""Coordinates along curved equalities: a step along the tangent, then back across it.

x(z) = base + basis z + across l, where the columns of `basis` span the tangent at the base, those
of `across` its complement, and l is such that the equalities hold: Newton's method finds it. With
the Jacobian J at x the derivative is basis - across (J across)^-1 J basis: gradients are exact, no
second derivatives are needed. A search along the set needs no penalty for it, whose kink follows
every bend. The constraints are asked a few times for every value of f.
"""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.errors import GoldsteinError
from goldstein.numerics.streams import stream
from goldstein.oracles.problem import Problem
from goldstein.reductions.coordinates import Place

#: Newton steps, and the part of the limits' size up to which equalities hold.
STEPS, HOLDS = 20, 1e-14

#: The cosine between the normals here and at the base: below the first a new base is wanted, below
#: the second there is no point.
BENT, TORN = 0.7, 0.2

#: And what it is at least right beside the base where there is no kink.
EVEN = 0.95

#: Rows that are so much shorter than at the base say nothing: there is no point either.
VANISHED = 1e-3

#: Halvings on the way to a z that stands for no point.
HALVINGS = 6

#: Places that are remembered: of a search's last gradients.
REMEMBERED = 1000

#: A base of more variables is not made: it is a dense matrix.
LARGEST = 500


class Chart:
    """The coordinates; where `made` is False the equalities do not allow for them.

    Parameters
    ----------
    problem : Problem
    x : ndarray
        The base: it need not satisfy the equalities.
    reach : float
        Where a kink is nearer than this, no chart is made.

    Examples
    --------
    >>> import goldstein as gs
    >>> from scipy.optimize import NonlinearConstraint
    >>> circle = NonlinearConstraint(lambda x: x @ x, 1.0, 1.0, jac=lambda x: 2 * x[None])
    >>> problem = Problem.of(
    ...     gs.FunctionOracle(lambda x: 0.0, lambda x: x), np.ones(2), None, circle
    ... )
    >>> chart = Chart(problem, np.array([0.0, 1.0]), 1e-3)
    >>> chart.dim, np.abs(chart.place(np.array([0.6])).y).round(9)
    (1, array([0.6, 0.8]))
    """

    def __init__(self, problem: Problem, x: Vector, reach: float) -> None:
        self._problem = problem
        system, box = problem.constraints, problem.box
        #: Constraints that hold on the chart.
        self.holding: Mask = system.equal
        self._limits = system.upper[system.equal]
        self._known: dict[bytes, Place] = {}
        self.made = False
        bounded = np.isfinite(box.lower).any() or np.isfinite(box.upper).any()
        if bounded or x.size > LARGEST or not (system.equal & ~system.linear).any():
            return
        self._base = x
        count = int(system.equal.sum())
        if count >= x.size:
            return
        _, sizes, right = np.linalg.svd(system.rows(x)[system.equal])
        if sizes[-1] <= 1e-6 * sizes[0]:
            return  # dependent rows, or none
        self._across, self._basis = right[:count].T.copy(), right[count:].T.copy()
        self.dim = x.size - count
        self._shortest = VANISHED * float(sizes[-1])
        #: The last z that stood for a point, with what was added across.
        self._good, self._shift = np.zeros(self.dim), np.zeros(count)
        self.made = not self._kinked(reach) and self._solved(self._good) is not None

    def _kinked(self, reach: float) -> bool:
        """Whether normals turn visibly within `reach` of the base."""
        step = stream(0, self._base.size, "chart").standard_normal(self._base.size)
        step *= reach / float(np.linalg.norm(step))
        try:
            rows = [self._rows(self._base + way) for way in (step, -step)]
        except GoldsteinError as failure:
            self._problem.excuse(failure)
            return True
        return min(self._upright(row) for row in rows) < EVEN

    def apply(self, x: Vector) -> Vector:
        """Return z of a point."""
        found: Vector = self._basis.T @ (x - self._base)
        return found

    def place(self, z: Vector) -> Place:
        """Return the point that z stands for, or one on the way to it from the last that did."""
        key = z.tobytes()
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._place(z)
            if len(self._known) > REMEMBERED:
                del self._known[next(iter(self._known))]
        return found

    def bent(self, z: Vector) -> bool:
        """Whether a chart with its base here would serve better."""
        return self._upright(self._rows(self.place(z).y)) < BENT

    def gradient(self, z: Vector, slope: Vector, wall: float) -> Vector:
        """Return the gradient of F(y(z)) + wall * gap at z, `slope` being that of F at y."""
        place = self.place(z)
        if place.gap > 0.0:
            found: Vector = wall / place.gap * place.along
            return found
        rows = self._rows(place.y)
        share = np.linalg.solve((rows @ self._across).T, self._across.T @ slope)
        found = self._basis.T @ (slope - rows.T @ share)
        return found

    def _place(self, z: Vector) -> Place:
        nothing = np.zeros(0)
        way = z - self._good
        for halving in range(HALVINGS):
            # z itself first: good + (z - good) may miss it by a unit in the last place.
            near = z - (1.0 - 0.5**halving) * way
            y = self._solved(near)
            if y is not None:
                return Place(y, nothing, z - near, nothing.astype(bool))
        y = self._base + self._basis @ self._good + self._across @ self._shift
        return Place(y, nothing, way, nothing.astype(bool))

    def _solved(self, z: Vector) -> Vector | None:
        """Return the point of z where the equalities hold; None where Newton finds none."""
        system, equal = self._problem.constraints, self.holding
        flat = self._base + self._basis @ z
        shift, least = self._shift, np.inf
        try:
            for _ in range(STEPS):
                y = flat + self._across @ shift
                values = system.values(y)[equal]
                gap = values - self._limits
                size = float(np.abs(gap).max())
                if size <= HOLDS * float(np.abs(values).max() + np.abs(self._limits).max()):
                    break
                if size >= 0.9 * least:
                    if size > 1e-12 * (1.0 + float(np.abs(self._limits).max())):
                        return None
                    break  # rounding
                least = size
                shift = shift - np.linalg.solve(self._rows(y) @ self._across, gap)
            if not self._usable(self._rows(y)):
                return None
        except np.linalg.LinAlgError:
            return None
        except GoldsteinError as failure:
            self._problem.excuse(failure)
            return None
        self._good, self._shift = z.copy(), shift
        return y

    def _rows(self, y: Vector) -> Matrix:
        rows: Matrix = self._problem.constraints.rows(y)[self.holding]
        return rows

    def _usable(self, rows: Matrix) -> bool:
        sizes = np.linalg.svd(rows @ self._across, compute_uv=False)
        return bool(sizes[-1] > self._shortest and self._upright(rows) > TORN)

    def _upright(self, rows: Matrix) -> float:
        """Return the cosine of the largest angle between the normals and those of the base."""
        unit = np.linalg.qr(rows.T)[0]
        return float(np.linalg.svd(unit.T @ self._across, compute_uv=False)[-1])
