"""Convex weights from non-negative least squares, in one call of compiled code."""

from __future__ import annotations

import math

from scipy.optimize import nnls

from goldstein.checker.arrays import Matrix, Vector


def convex_weights(system: Matrix, target: Vector) -> Vector | None:
    """Minimise |A w - b| over w >= 0 and divide w by its sum; None where that fails.

    Examples
    --------
    >>> import numpy as np
    >>> convex_weights(np.array([[1.0, -3.0], [1.0, 1.0]]), np.array([0.0, 1.0]))
    array([0.75, 0.25])
    """
    try:
        weights: Vector = nnls(system, target, maxiter=10 * target.size + 10 * system.shape[1])[0]
    except (RuntimeError, ValueError):  # it cycles, or numbers are not finite
        return None
    total = math.fsum(weights.tolist())
    if not 0.0 < total < math.inf:
        return None
    weights /= total
    return weights
