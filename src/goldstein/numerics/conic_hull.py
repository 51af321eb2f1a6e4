"""The shortest vector of a hull plus a cone: one non-negative least squares problem.

min |F' a + K' b| over a >= 0 with sum a = 1 and b >= 0. Only the columns of the hull carry the row
that normalises: with t = sum a the squared objective is t^2 q^2 + s^2 (t - 1)^2, whose minimum has
some t > 0, and dividing by t is exact because the cone is a cone.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import nnls

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull import min_norm_weights


def shortest_weights(hull: Matrix, cone: Matrix) -> tuple[Vector, Vector]:
    """Return weights of the shortest vector of a hull plus a cone, which may be empty."""
    return conic_weights(hull, cone) if len(cone) else (min_norm_weights(hull), np.zeros(0))


def conic_weights(hull: Matrix, cone: Matrix) -> tuple[Vector, Vector]:
    """Return (a, b) that minimise |F' a + K' b|, with sum a = 1.

    Examples
    --------
    >>> a, b = conic_weights(np.array([[1.0, 0.0], [3.0, 0.0]]), np.array([[-2.0, 0.0]]))
    >>> bool(abs(a @ [1.0, 3.0] - 2.0 * b[0]) < 1e-12)
    True
    """
    lengths = np.linalg.norm(hull, axis=1)
    scale = float(lengths.max(initial=0.0)) or 1.0
    sizes = np.linalg.norm(cone, axis=1)
    sizes[sizes == 0.0] = 1.0
    columns = np.concatenate([hull / scale, cone / sizes[:, None]]).T
    mark = np.concatenate([np.ones(len(hull)), np.zeros(len(cone))])[None]
    target = np.zeros(columns.shape[0] + 1)
    target[-1] = 1.0
    system = np.concatenate([columns, mark])
    try:
        weights: Vector = nnls(system, target, maxiter=30 * sum(system.shape))[0]
    except (RuntimeError, ValueError):  # it cycles, or numbers are not finite
        weights = np.zeros(len(hull) + len(cone))
    a, b = weights[: len(hull)], weights[len(hull) :]
    total = math.fsum(a.tolist())
    if not 0.0 < total < math.inf:
        a, b = np.zeros(len(hull)), np.zeros(len(cone))
        a[int(lengths.argmin())] = 1.0
        return a, b
    a = a / total
    return a / math.fsum(a.tolist()), b * (scale / total) / sizes
