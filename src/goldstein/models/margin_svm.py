"""The support vector machine with the rho-margin (ramp) loss."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from goldstein.calculus import Variable, ramp, sum
from goldstein.calculus.blocked_rows import BlockedRows
from goldstein.calculus.operators import linear, matrix_norm
from goldstein.checker.arrays import Vector
from goldstein.checker.rounding import distance_upper
from goldstein.errors import InputError
from goldstein.models.base import (
    Model,
    data_matrix,
    exact_positive,
    nonnegative,
    ridge_term,
    sample_weights,
)
from goldstein.models.margin_problem import MarginProblem, gradient_bound, typical_start
from goldstein.numerics.exact_floats import exact_float


class MarginSVM(Model):
    """lam/2 |w|^2 + sum_i p_i min(1, max(0, 1 - (z_i.w - shift)/rho)); rows z_i carry their labels.

    With a `total` the losses are divided by it. It is exact in proofs, and so is `lam` if it is a
    Fraction.

    Attributes
    ----------
    problem : MarginProblem
        The same objective as plain arrays, for fused passes.
    neighbourhood : float
        After two questions this close to each other, rows that cannot change piece there are summed
        up once and for all, which is exact. Questions nearby then cost only the other rows.
    """

    adjustable = frozenset({"neighbourhood", "_margins", "_visited", "_local"})
    neighbourhood: float = 0.0

    def __init__(
        self,
        Z: Any,
        rho: float,
        lam: float | Fraction,
        weights: Any = None,
        shift: float = 0.0,
        intercept: bool = False,
        total: Fraction | None = None,
    ) -> None:
        self.Z = data_matrix(Z, "Z")
        self.rho, self.lam = exact_positive("rho", rho), nonnegative("lam", lam)
        shift = exact_float(shift, "shift")
        n, d = self.Z.shape
        p = np.ones(n) if weights is None else sample_weights(weights, n)
        if intercept and d < 2:
            raise InputError("with an intercept Z needs a feature and the intercept's column.")
        penalised = d - 1 if intercept else d
        ridge = np.full(d, self.lam)
        ridge[penalised:] = 0.0
        shares = p if total is None else p / float(total)
        self.problem = MarginProblem.from_rows(
            self.Z, shares, ridge, rho=self.rho, shift=shift
        ).frozen()
        w = Variable(d)
        margins = linear(self.Z, w)
        loss = ramp(margins - shift if shift else margins, rho=self.rho)
        losses = sum(loss if weights is None else loss * p)
        tree = losses if total is None else losses / total
        if lam:
            tree = ridge_term(lam, w[:penalised] if intercept else w) + tree
        super().__init__(tree)
        self._margins: tuple[bytes, Vector] = (b"", np.zeros(n))
        self._visited: tuple[Vector, Vector] | None = None
        self._local: tuple[Vector, MarginProblem, float] | None = None

    @property
    def name(self) -> str:
        return "margin_svm"

    def _look(self, w: Vector) -> tuple[MarginProblem, Vector]:
        """Return the cheapest problem that equals the objective at w, and its products Z w."""
        # Rows in blocks stay there, however many of them are within reach of a kink.
        reach = 0.0 if isinstance(self.Z, BlockedRows) else self.neighbourhood
        if self._local is not None and _within(w, self._local[0], min(reach, self._local[2])):
            local = self._local[1]
            return local, local.product(w)
        key = w.tobytes()
        if self._margins[0] != key:
            if self._visited is not None and _within(w, self._visited[0], reach):
                centre, u = self._visited
                local = self.problem.restrict(centre, u, reach)
                self._local = (centre, local, reach)
                return local, local.product(w)
            self._margins = (key, self.problem.product(w))
            self._visited = (w.copy(), self._margins[1])
        return self.problem, self._margins[1]

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        w = self._point(x)
        problem, u = self._look(w)
        return problem.value(w, u)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        w = self._point(y)
        problem, u = self._look(w)
        if not problem.clear_of_kinks(w, u):
            # In doubt, NaN and overflow included, the tree decides exactly.
            return super().gradient(w)
        return problem.gradient(w, u)

    def _start(self, rng: np.random.Generator) -> Vector:
        return typical_start(rng, self.Z.shape[1], self.rho, self.problem.row_norms)

    @cached_property
    def _norm(self) -> float:
        return matrix_norm(self.Z)

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return sqrt(2 lam F(x)) + lam delta + |p| |Z| / rho; |p| = sqrt(n) without weights."""
        pull = float(np.linalg.norm(self.problem.weights)) * self._norm
        return gradient_bound(self.lam, self.value(x), delta, pull / self.rho)


def _within(x: Vector, centre: Vector, radius: float) -> bool:
    return radius > 0.0 and distance_upper(x, centre) <= radius


def margin_svm(
    Z: Any,
    rho: float = 1.0,
    lam: float = 1.0,
    *,
    weights: Any = None,
    shift: float = 0.0,
    intercept: bool = False,
) -> MarginSVM:
    """Return the objective lam/2 |w|^2 + sum_i p_i phi_rho(z_i . w - shift).

    Parameters
    ----------
    Z : array or sparse matrix, shape (n, d)
        Rows label_i * features_i (append a constant feature for an intercept).
    rho : float
        Margin.
    lam : float
        Weight of the ridge term.
    weights : array, shape (n,), optional
        Nonnegative weights p_i of the losses; default 1.
    shift : float
        Where the ramp begins.
    intercept : bool
        The last column of Z belongs to an intercept, which the ridge term leaves out.

    Returns
    -------
    MarginSVM
        An Expression with `start(rng)` and `solver_lipschitz(x, delta)`.

    Examples
    --------
    >>> F = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    >>> F.value(np.array([0.5, 0.5]))
    1.25
    """
    return MarginSVM(Z, rho, lam, weights, shift, intercept)
