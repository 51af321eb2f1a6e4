"""El-Attar's exponential fit, shared by its 1-norm and max-norm problems."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import Pieces, Pullback, Row


def el_attar_start() -> Vector:
    """Return the common start."""
    return np.array([2.0, 2.0, 7.0, 0.0, -2.0, 1.0])


def el_attar_fit() -> tuple[Pieces, Row, Pullback]:
    """Residuals of x1 exp(-x2 t) cos(x3 t + x4) + x5 exp(-x6 t) at t = 0, 0.1, ..., 5."""
    t = np.arange(51) / 10.0
    target = (
        0.5 * np.exp(-t)
        - np.exp(-2.0 * t)
        + 0.5 * np.exp(-3.0 * t)
        + 1.5 * np.exp(-1.5 * t) * np.sin(7.0 * t)
        + np.exp(-2.5 * t) * np.sin(5.0 * t)
    )

    def residuals(x: Vector) -> Vector:
        wave = x[0] * np.exp(-x[1] * t) * np.cos(x[2] * t + x[3])
        return np.asarray(wave + x[4] * np.exp(-x[5] * t) - target)

    def jacobian(x: Vector, s: Vector) -> Vector:
        """Columns of partial derivatives at the times s."""
        decay, tail = np.exp(-x[1] * s), np.exp(-x[5] * s)
        even, odd = decay * np.cos(x[2] * s + x[3]), -x[0] * decay * np.sin(x[2] * s + x[3])
        return np.array([even, -s * x[0] * even, s * odd, odd, tail, -s * x[4] * tail])

    return (
        residuals,
        lambda x, i: np.asarray(jacobian(x, t[i])),
        lambda x, s: np.asarray(jacobian(x, t) @ s),
    )
