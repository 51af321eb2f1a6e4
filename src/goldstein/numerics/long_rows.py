"""Inner products, and shortest affine combinations, of rows too long to be factorised."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.errors import OutOfTime

#: Columns per block of a Gram matrix.
BLOCK = 16384

#: How often an answer from the Gram matrix is corrected by the rows, two passes each.
CORRECTIONS = 2

#: Added to the diagonal of a Gram matrix that could not be factorised, in units of the shift.
RESCUE = 1e-11


def gram_of_long_rows(rows: Matrix, late: Callable[[], bool] = lambda: False) -> Matrix:
    """Return the inner products of the rows, block by block, as long as there is time.

    Examples
    --------
    >>> gram_of_long_rows(np.array([[3.0, 4.0], [1.0, 0.0]]))
    array([[25.,  3.],
           [ 3.,  1.]])
    """
    count, dim = rows.shape
    gram = np.zeros((count, count))
    for begin in range(0, dim, BLOCK):
        if late():
            raise OutOfTime("inner products")
        block = rows[:, begin : begin + BLOCK]
        gram += block @ block.T
    return gram


def affine_of_long_rows(
    rows: Matrix,
    gram: Matrix,
    active: Indices,
    shift: float,
    ridge: float = 0.0,
    late: Callable[[], bool] = lambda: False,
) -> Vector | None:
    """Return weights of the active rows, of any sign, summing to one; or None where that fails.

    They come from the Gram matrix. Residuals are computed from the rows, so the digits that the
    Gram matrix has lost come back (corrected semi-normal equations: Bjorck, Linear Algebra and its
    Applications 88, 1987), at two passes over the rows each time.

    Parameters
    ----------
    rows, gram : ndarray
        All rows and their inner products.
    active : ndarray of int
    shift : float
        Added to all entries of the Gram matrix, which changes the length of a solution only.
    ridge : float
        Added to its diagonal, in units of the shift.
    late : callable
        Says when there is no time for corrections.

    Examples
    --------
    >>> rows = np.array([[1.0, 1.0], [1.0, -3.0]])
    >>> affine_of_long_rows(rows, rows @ rows.T, np.array([0, 1]), 10.0).round(12)
    array([0.75, 0.25])
    """
    count = len(active)
    block = gram[np.ix_(active, active)] + shift
    for more in (ridge, RESCUE):
        system = block.copy()
        system.flat[:: count + 1] += more * shift
        factor, failed = dpotrf(system, lower=1, overwrite_a=1)
        if not failed:
            break
    else:
        return None
    ones = dpotrs(factor, np.ones(count), lower=1)[0]
    total = float(ones.sum())
    if not 0.0 < total < math.inf:
        return None
    answer: Vector = ones / total
    everywhere = np.zeros(len(rows))
    for _ in range(CORRECTIONS):
        if late():
            break
        everywhere[active] = answer
        products = rows.dot(everywhere.dot(rows))[active]
        change = dpotrs(factor, products, lower=1)[0]
        answer = answer - (change - ones * (float(change.sum()) / total))
    total = float(answer.sum())
    return answer / total if 0.0 < total < math.inf else None
