"""Norms: norm1, norm2."""

from __future__ import annotations

from typing import Any

from goldstein.calculus.atoms.activations import absolute
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import sum_entries
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


def norm2(u: Any) -> Expression:
    """Return the Euclidean norm; its only kink is the origin.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> norm2(Variable(2)).value(np.array([3.0, -4.0]))
    5.0
    """
    u = as_expression(u, "norm2")
    if u.size == 0:
        raise InputError("norm2 expects at least one entry, got none.")
    return Expression(nodes.Norm2, (u,), (), (u.size,), "Norm2")


__all__ = ["norm1", "norm2"]
