"""Norms: norm1, norm2."""

from __future__ import annotations

from typing import Any

from goldstein.calculus.atoms.activations import absolute
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import sum_entries, table_along
from goldstein.checker import nodes
from goldstein.errors import InputError


def norm1(u: Expression) -> Expression:
    """Return the sum of the absolute values.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> norm1(Variable(2)).value(np.array([3.0, -4.0]))
    7.0
    """
    return sum_entries(absolute(u))


def norm2(u: Any, axis: int | None = None) -> Expression:
    """Return the Euclidean norm; its only kink is the origin.

    Parameters
    ----------
    u : Expression
    axis : int, optional
        Of a table: the norms of its columns (0) or of its rows (1).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, sum
    >>> norm2(Variable(2)).value(np.array([3.0, -4.0]))
    5.0
    >>> sum(norm2(Variable(4).reshape(2, 2), axis=1)).value(np.array([3.0, -4.0, 0.0, 1.0]))
    6.0
    """
    u = as_expression(u, "norm2")
    if axis is not None and (u.ndim != 2 or axis not in (-2, -1, 0, 1)):
        raise InputError(f"norm2(axis={axis}) needs a table, got the shape {u.shape}.")
    rows, shape = table_along(u, axis, what="norm2")
    return norm_of_rows(rows, shape)


def norm_of_rows(rows: Expression, shape: tuple[int, ...]) -> Expression:
    """Return the Euclidean norms of the rows of a table, in a shape."""
    if rows.size == 0:
        raise InputError("norm2 expects at least one entry, got none.")
    return Expression(nodes.Norm2, (rows,), shape, (rows.shape[1],), "Norm2")


__all__ = ["norm1", "norm2", "norm_of_rows"]
