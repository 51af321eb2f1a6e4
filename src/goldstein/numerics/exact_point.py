"""A point that satisfies linear equations exactly, next to one that nearly does."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from goldstein.checker.arrays import Matrix
from goldstein.checker.rationals import (
    RationalVector,
    exact_dot,
    sqrt_upper,
    squared_distance,
    to_fractions,
)
from goldstein.numerics.exact import Pause, project_exact

#: Rows whose triangular factor falls off by more than this count as dependent.
CONDITION = 1e-10

#: Columns among which those that move are chosen, per row.
CANDIDATES = 4


def point_on(
    rows: Matrix,
    levels: Sequence[Fraction],
    base: RationalVector,
    reach: float,
    *,
    exact_rows: Sequence[Sequence[Any]] | None = None,
    pause: Pause | None = None,
) -> list[Fraction] | None:
    """Return a point next to `base` with `rows @ point = levels`, exactly.

    As many variables are moved as there are rows: the others stay floats, and exact arithmetic with
    them is cheap. Where that leads too far, or rows depend on each other, all of them are.

    Parameters
    ----------
    rows : ndarray, shape (k, n)
    levels : sequence of Fraction, length k
    base : sequence of length n
        Floats or Fractions.
    reach : float
        How far the point may be from `base` when few variables are moved.
    exact_rows : sequence of rows, optional
        The rows as Fractions where floats only approximate them.
    pause : callable, optional
        As in `project_exact`.

    Returns
    -------
    list of Fraction, or None
        None when no point satisfies the equations.

    Examples
    --------
    >>> point_on(np.array([[0.1, 1.0]]), [Fraction(1)], np.array([1.0, 0.9]), 0.1)[0]
    Fraction(1, 1)
    """
    matrix: Any = rows if exact_rows is None else exact_rows
    point = to_fractions(base)
    if not len(rows):
        return point
    columns = _independent_columns(rows)
    if columns is not None:
        others = np.setdiff1d(np.arange(len(point)), columns)
        rest = [
            level - exact_dot(_taken(row, others), _taken(base, others))
            for row, level in zip(matrix, levels, strict=True)
        ]
        here = _taken(base, columns)
        part = rows[:, columns] if exact_rows is None else [_taken(r, columns) for r in matrix]
        moved = project_exact(part, rest, here, pause)
        if moved is not None and sqrt_upper(squared_distance(moved, here)) <= reach:
            for column, entry in zip(columns.tolist(), moved, strict=True):
                point[column] = entry
            return point
    return project_exact(matrix, levels, base, pause)


def _taken(vector: Any, places: NDArray[np.intp]) -> Any:
    return vector[places] if isinstance(vector, np.ndarray) else [vector[k] for k in places]


def _independent_columns(rows: Matrix) -> NDArray[np.intp] | None:
    """Return as many columns as there are rows, well conditioned, or None if there are none."""
    count, size = rows.shape
    if count > size:
        return None
    candidates = np.arange(size)
    if CANDIDATES * count < size:
        # Among the longest columns there are good ones; all of them would be a copy of the rows.
        candidates = np.argpartition(np.einsum("ij,ij->j", rows, rows), -CANDIDATES * count)
        candidates = candidates[-CANDIDATES * count :]
    triangle, order = linalg.qr(rows[:, candidates], mode="r", pivoting=True, check_finite=False)
    heads = np.abs(np.diag(triangle))
    return np.sort(candidates[order[:count]]) if heads[-1] > CONDITION * heads[0] else None


__all__ = ["point_on"]
