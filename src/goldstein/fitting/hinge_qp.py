"""A small convex problem to full accuracy: quadratic plus hinges, by an interior point method.

    minimise  v'Dv / 2 + c.v + sum_i q_i max(0, level - m_i.v),     D diagonal, D > 0

The multiplier a_i in [0, q_i] of row i is the slope of its hinge that balances the gradient:
D v + c = M'a. The method is the standard primal-dual predictor-corrector (Mehrotra 1992).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg, sparse

from goldstein.checker.arrays import Vector

Solver = Callable[[Vector, Vector], tuple[Vector, Vector]]

#: Up to this many variables their own system is solved, however few the rows.
SMALL = 100

#: Complementarity gap relative to the sum of q at which to stop, and the most steps.
_GAP, _MOST_STEPS = 1e-13, 60

#: Part of the largest diagonal entry below which a variable counts as free.
WEAK = 1e-6


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def solve_hinge_qp(
    diagonal: Vector, c: Vector, M: Any, q: Vector, level: float, v: Vector
) -> tuple[Vector, Vector]:
    """Return (v, a): the minimiser and the multipliers, as accurately as floats allow.

    Parameters
    ----------
    diagonal, c, M, q, level
        The problem; M dense or sparse.
    v : ndarray
        Start.

    Examples
    --------
    >>> import numpy as np
    >>> one, zero = np.ones(1), np.zeros(1)
    >>> v, a = solve_hinge_qp(one, zero, np.ones((1, 1)), one, 0.25, zero)
    >>> v.round(9), a.round(9)
    (array([0.25]), array([0.25]))
    """
    if q.size == 0:
        return -c / diagonal, q.copy()
    few = M.shape[0] < M.shape[1] > SMALL
    system = _RowSystem(diagonal, M) if few else _ColumnSystem(diagonal, M)
    margin = M @ v - level
    a = 0.5 * q
    push = np.maximum(float(np.abs(margin).mean()), 1e-3)
    s = np.maximum(margin, 0.0) + push
    x = s - margin
    best = (np.inf, v, a)
    for _ in range(_MOST_STEPS):
        state = _State(diagonal * v + c - M.T @ a, M @ v - level - s + x, a, q - a, s, x)
        gap = float(a @ s + state.b @ x)
        error = gap + float(np.linalg.norm(state.dual)) + float(np.abs(state.primal) @ q)
        if error < best[0]:
            best = (error, v, a)
        if gap <= _GAP * float(q.sum()) or not np.isfinite(gap):
            break
        solve = system.factor(state.w)
        if solve is None:
            break
        _, da, ds, dx = state.newton(solve, -a * s, -state.b * x)
        step = state.longest(da, ds, dx)
        ahead = float((a + step * da) @ (s + step * ds) + (state.b - step * da) @ (x + step * dx))
        target = gap / (2 * q.size) * (max(ahead, 0.0) / gap) ** 3
        dv, da, ds, dx = state.newton(
            solve, target - a * s - da * ds, target - state.b * x + da * dx
        )
        step = 0.995 * state.longest(da, ds, dx)
        v, a, s, x = v + step * dv, a + step * da, s + step * ds, x + step * dx
    return best[1], best[2]


@dataclass(frozen=True)
class _State:
    """Residuals and the four positive vectors: multipliers a, b = q - a, slacks s, excesses x."""

    dual: Vector
    primal: Vector
    a: Vector
    b: Vector
    s: Vector
    x: Vector

    @property
    def w(self) -> Vector:
        """Weights of the rows in the normal equations."""
        return 1.0 / (self.s / self.a + self.x / self.b)

    def newton(
        self, solve: Solver, r1: Vector, r2: Vector
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the step whose linearised complementarity has right-hand sides r1 and r2."""
        dv, da = solve(self.dual, r1 / self.a - r2 / self.b - self.primal)
        return dv, da, (r1 - self.s * da) / self.a, (r2 + self.x * da) / self.b

    def longest(self, da: Vector, ds: Vector, dx: Vector) -> float:
        """Return the longest step up to 1 that keeps all four vectors nonnegative."""
        pairs = ((self.a, da), (self.b, -da), (self.s, ds), (self.x, dx))
        return min(_longest(position, move) for position, move in pairs)


def _longest(position: Vector, move: Vector) -> float:
    """Largest step in (0, 1] that keeps position + step * move >= 0."""
    falling = move < 0
    if not falling.any():
        return 1.0
    return min(1.0, float((-position[falling] / move[falling]).min()))


class _ColumnSystem:
    """Solves D y - M'z = -dual, M y + z / w = t for (y, z), in the variables y."""

    def __init__(self, diagonal: Vector, M: Any) -> None:
        self._diagonal, self._M = diagonal, M

    def factor(self, w: Vector) -> Solver | None:
        M = self._M
        scaled = M.multiply(w[:, None]).tocsr() if sparse.issparse(M) else w[:, None] * M
        H = _dense(M.T @ scaled)
        H[np.diag_indices_from(H)] += self._diagonal
        try:
            inner = linalg.cho_factor(H, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None

        def solve(dual: Vector, t: Vector) -> tuple[Vector, Vector]:
            y = linalg.cho_solve(inner, M.T @ (w * t) - dual, check_finite=False)
            return y, w * (t - M @ y)

        return solve


class _RowSystem:
    """Solves the same in the multipliers z, where the rows are fewer.

    The products of the rows are formed once. Variables with next to no diagonal (an intercept)
    would spoil them; they stay unknowns beside z.
    """

    def __init__(self, diagonal: Vector, M: Any) -> None:
        self._free = np.flatnonzero(diagonal <= WEAK * diagonal.max())
        self._weak = diagonal[self._free]
        self._inverse = 1.0 / diagonal
        self._inverse[self._free] = 0.0
        self._M, self._border = M, _dense(M[:, self._free])
        scaled = M.multiply(self._inverse).tocsr() if sparse.issparse(M) else M * self._inverse
        self._gram = _dense(scaled @ M.T)

    def factor(self, w: Vector) -> Solver | None:
        K = self._gram.copy()
        K[np.diag_indices_from(K)] += 1.0 / w
        try:
            inner = linalg.cho_factor(K, overwrite_a=True, check_finite=False)
        except linalg.LinAlgError:
            return None
        reduced = linalg.cho_solve(inner, self._border, check_finite=False)
        corner = self._border.T @ reduced + np.diag(self._weak)

        def solve(dual: Vector, t: Vector) -> tuple[Vector, Vector]:
            right = t + self._M @ (self._inverse * dual)
            z = linalg.cho_solve(inner, right, check_finite=False)
            free = np.linalg.solve(corner, self._border.T @ z - dual[self._free])
            z -= reduced @ free
            y = self._inverse * (self._M.T @ z - dual)
            y[self._free] = free
            return y, z

        return solve


def _dense(M: Any) -> Any:
    return M.toarray() if sparse.issparse(M) else M
