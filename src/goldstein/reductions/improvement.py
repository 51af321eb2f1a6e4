"""The improvement function: whatever lowers it from a feasible point is feasible, and better.

For a feasible point x with value f(x), and weights s_i > 0,

    H(y) = max(f(y) - f(x), s_i (c_i(y) - ub_i), s_i (lb_i - c_i(y))).

H(x) = 0 by its first term, and H(y) < 0 means that f has fallen and that all constraints hold
strictly. Gradients of H that cancel combine gradients of f and of constraints (Fritz John); divided
by the share of f they are a KKT certificate.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, KinkError
from goldstein.oracles.problem import Problem
from goldstein.reductions.functions import Boxed


class Improvement(Boxed):
    """H of the module's docstring around one feasible point.

    Parameters
    ----------
    problem : Problem
        Without equalities.
    value : float
        f at the feasible point.
    scales : ndarray, shape (m,)
        The weights s_i.
    wall : float
        Weight of the distance to the box.
    """

    def __init__(self, problem: Problem, value: float, scales: Vector, wall: float) -> None:
        super().__init__(problem, wall)
        self.level, self.scales = value, scales

    def inside(self, y: Vector) -> float:
        return max(self._fall(y), float(self._gaps(y).max(initial=-np.inf)))

    def _fall(self, y: Vector) -> float:
        return self.objective(y) - self.level

    def slope(self, y: Vector) -> Vector:
        system = self.problem.constraints
        gaps = self._gaps(y)
        worst = int(gaps.argmax()) if gaps.size else 0
        if not gaps.size or self._fall(y) >= gaps[worst]:
            return self.objective_slope(y)
        # A gradient of a constraint costs no call of f.
        i = worst % system.size
        sign = 1.0 if worst < system.size else -1.0
        found: Vector = sign * self.scales[i] * system.rows(y)[i]
        return found

    def stops(self, y: Vector, far: float) -> NDArray[np.bool_]:
        """Return the constraints that decide H at y though their limits are further than `far`."""
        gaps = self._gaps(y).reshape(2, -1)
        top = max(self._fall(y), float(gaps.max(initial=-np.inf)))
        try:
            lengths = np.linalg.norm(self.problem.constraints.rows(y), axis=1)
        except KinkError:
            return np.zeros(gaps.shape[1], dtype=bool)
        distant = -gaps > far * self.scales * lengths
        found: NDArray[np.bool_] = (distant & (gaps >= top - 0.1 * abs(top))).any(axis=0)
        return found

    def _gaps(self, y: Vector) -> Vector:
        """Return how far each limit is exceeded, times its weight: upper ones, then lower ones."""
        system = self.problem.constraints
        if not system.size:
            return np.zeros(0)
        values = system.values(y)
        above, below = values - system.upper, system.lower - values
        found: Vector = np.concatenate([self.scales * above, self.scales * below])
        return found


def require_feasible(problem: Problem, x: Vector) -> None:
    """Refuse a start from which feasible iterates cannot be had."""
    system = problem.constraints
    advice = "drop options={'feasible': True}"
    if system.equal.any():
        name = system.name(int(np.flatnonzero(system.equal)[0]))
        raise InputError(
            f"feasible iterates need room inside the constraints, and {name} is an equality; "
            f"solve it for a variable, or {advice}."
        )
    excess = np.abs(system.excess(system.values(x)))
    if excess.any():
        worst = int(excess.argmax())
        raise InputError(
            f"feasible iterates need a feasible x0, and {system.name(worst)} is violated there by "
            f"{excess[worst]:.3g}; pass a feasible point (gs.minimize(gs.Violation(constraints, "
            f"x0), x0, bounds=bounds, ...) finds one), or {advice}."
        )
