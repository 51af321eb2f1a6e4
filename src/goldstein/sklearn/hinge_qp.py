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
from numpy.typing import NDArray
from scipy import linalg, sparse

Vector = NDArray[np.float64]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def solve_hinge_qp(
    diagonal: Vector,
    c: Vector,
    M: Any,
    q: Vector,
    level: float,
    v: Vector,
    *,
    tolerance: float = 1e-13,
    max_iterations: int = 60,
) -> tuple[Vector, Vector]:
    """Return (v, a): the minimiser and the multipliers, as accurately as floats allow.

    Parameters
    ----------
    diagonal, c, M, q, level
        The problem; M dense or sparse.
    v : ndarray
        Start.
    tolerance : float
        Complementarity gap relative to the sum of q, at which to stop.

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
    margin = M @ v - level
    a = 0.5 * q
    push = np.maximum(float(np.abs(margin).mean()), 1e-3)
    s = np.maximum(margin, 0.0) + push
    x = s - margin
    best = (np.inf, v, a)
    for _ in range(max_iterations):
        state = _State(diagonal * v + c - M.T @ a, M @ v - level - s + x, a, q - a, s, x)
        gap = float(a @ s + state.b @ x)
        error = gap + float(np.linalg.norm(state.dual)) + float(np.abs(state.primal) @ q)
        if error < best[0]:
            best = (error, v, a)
        if gap <= tolerance * float(q.sum()) or not np.isfinite(gap):
            break
        solve = _normal_equations(diagonal, M, state.w)
        if solve is None:
            break
        _, da, ds, dx = state.newton(M, solve, -a * s, -state.b * x)
        step = state.longest(da, ds, dx)
        ahead = float((a + step * da) @ (s + step * ds) + (state.b - step * da) @ (x + step * dx))
        target = gap / (2 * q.size) * (max(ahead, 0.0) / gap) ** 3
        dv, da, ds, dx = state.newton(
            M, solve, target - a * s - da * ds, target - state.b * x + da * dx
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
        self, M: Any, solve: Callable[[Vector], Vector], r1: Vector, r2: Vector
    ) -> tuple[Vector, Vector, Vector, Vector]:
        """Return the step whose linearised complementarity has right-hand sides r1 and r2."""
        t = r1 / self.a - r2 / self.b - self.primal
        w = self.w
        dv = solve(-self.dual + M.T @ (w * t))
        da = w * (t - M @ dv)
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


def _normal_equations(diagonal: Vector, M: Any, w: Vector) -> Callable[[Vector], Vector] | None:
    """Return a solver of (D + M'WM) y = r, by the smaller of the two systems."""
    k, d = M.shape
    try:
        if d <= k or d <= 600:
            scaled = M.multiply(w[:, None]).tocsr() if sparse.issparse(M) else w[:, None] * M
            H = M.T @ scaled
            H = H.toarray() if sparse.issparse(H) else H
            H[np.diag_indices_from(H)] += diagonal
            factor = linalg.cho_factor(H, check_finite=False)
            return lambda r: np.asarray(linalg.cho_solve(factor, r, check_finite=False))
        # Woodbury: the rows are fewer than the variables.
        N = M.multiply(1.0 / diagonal).tocsr() if sparse.issparse(M) else M / diagonal
        gram = N @ M.T
        gram = gram.toarray() if sparse.issparse(gram) else gram
        gram[np.diag_indices_from(gram)] += 1.0 / w
        inner = linalg.cho_factor(gram, check_finite=False)
        return lambda r: np.asarray(
            r / diagonal - N.T @ linalg.cho_solve(inner, N @ r, check_finite=False)
        )
    except linalg.LinAlgError:
        return None
