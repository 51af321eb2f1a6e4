"""Rigorous bounds of singular values in float64.

A computed decomposition `A ~ U diag(s) V^T` is not trusted: its residual and its distance from
orthogonality are bounded and charged. With `e_U = |U^T U - I|`, `e_V = |V^T V - I|` and
`r = |A - U diag(s) V^T|`, every singular value lies between `s_min sqrt((1-e_U)(1-e_V)) - r`
and `s_max sqrt((1+e_U)(1+e_V)) + r`.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.checker.arrays import Matrix
from goldstein.checker.rounding import UNIT, gamma, up
from goldstein.errors import InputError


@dataclass(frozen=True)
class SingularBounds:
    """Bounds of the extreme singular values of a matrix.

    Attributes
    ----------
    largest : float
        At least the largest singular value, the spectral norm.
    smallest : float
        At most the smallest of the `min(m, n)` singular values; 0 when floats cannot separate it
        from 0.
    """

    largest: float
    smallest: float


def singular_bounds(A: Any) -> SingularBounds:
    """Return rigorous bounds of the extreme singular values.

    Examples
    --------
    >>> bounds = singular_bounds([[3.0, 0.0], [0.0, 0.5]])
    >>> bounds.largest >= 3.0, bounds.smallest <= 0.5, round(bounds.largest - 3.0, 12)
    (True, True, 0.0)
    """
    matrix = _dense(A)
    if matrix.size == 0 or not matrix.any():
        return SingularBounds(0.0, 0.0)
    # A power of two scales exactly and keeps products away from overflow.
    scale = 2.0 ** min(math.frexp(float(np.abs(matrix).max()))[1], 1023)
    work = matrix / scale
    left, values, right = np.linalg.svd(work, full_matrices=False)
    product = (left * values) @ right
    terms = values.size + 3
    rounding = gamma(terms) * ((np.abs(left) * values) @ np.abs(right) + np.abs(work))
    residual = _frobenius(np.abs(work - product) * (1 + 2 * UNIT) + rounding)
    skew_left, skew_right = _skewness(left), _skewness(right.T)
    largest = up(
        float(values[0]) * math.sqrt((1 + skew_left) * (1 + skew_right)) + residual, 16 * UNIT
    )
    kept = max(0.0, 1 - skew_left) * max(0.0, 1 - skew_right)
    smallest = float(values[-1]) * math.sqrt(kept) * (1 - 16 * UNIT) - residual
    return SingularBounds(largest * scale, max(0.0, smallest * (1 - 16 * UNIT)) * scale)


def spectral_norm_upper(A: Any) -> float:
    """Return an upper bound of the spectral norm, from the singular values or, if large, the sums.

    Examples
    --------
    >>> 5.0 <= spectral_norm_upper([[3.0, 4.0]]) < 5.0 + 1e-12
    True
    """
    rows, columns = A.shape if hasattr(A, "shape") else np.shape(A)
    if min(rows, columns) <= 2000:
        return singular_bounds(A).largest
    # |A|^2 <= |A|_1 |A|_inf: cheap, and sharp enough where a decomposition is out of reach.
    magnitude = abs(A)
    by_column = float(np.asarray(magnitude.sum(axis=0)).max())
    by_row = float(np.asarray(magnitude.sum(axis=1)).max())
    return up(math.sqrt(up(by_column, gamma(rows)) * up(by_row, gamma(columns))), 8 * UNIT)


def _skewness(basis: Matrix) -> float:
    """Return an upper bound of |Q^T Q - I| for nearly orthonormal columns."""
    defect = basis.T @ basis - np.eye(basis.shape[1])
    rounding = gamma(basis.shape[0] + 1) * (np.abs(basis).T @ np.abs(basis) + 1.0)
    return _frobenius(np.abs(defect) * (1 + 2 * UNIT) + rounding)


def _frobenius(entries: Matrix) -> float:
    flat = entries.ravel()
    return up(math.sqrt(up(float(flat @ flat), gamma(flat.size + 8)) + flat.size * 2.0**-1000))


def _dense(A: Any) -> Matrix:
    matrix = A.toarray() if sparse.issparse(A) else A
    array = np.atleast_2d(np.asarray(matrix, dtype=np.float64))
    if array.ndim != 2 or not np.isfinite(array).all():
        raise InputError(
            f"got an array of shape {array.shape} with {int((~np.isfinite(array)).sum())} "
            "non-finite entries, expected a finite matrix."
        )
    return array
