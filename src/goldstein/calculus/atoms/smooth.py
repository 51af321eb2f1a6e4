"""Smooth functions, entry by entry: exp, log, sin, tanh, roots, quotients, real powers."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np

from goldstein.calculus.atoms.activations import absolute
from goldstein.calculus.atoms.base import Atom, Curve
from goldstein.calculus.atoms.norms import norm_of_rows
from goldstein.calculus.elementary import ELEMENTARY
from goldstein.calculus.expression import Expression, as_expression, meant
from goldstein.calculus.operators import gather, multiply, side_by_side
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector


def _smooth(name: str, u: Any) -> Expression:
    u = as_expression(u, name)
    made = Expression(nodes.Smooth, (u,), u.shape, (name,), name)
    return Atom(made, u, name, Curve(partial(_steepest, name), partial(_sharpest, name)))


def _steepest(name: str, low: float, high: float) -> float:
    return ELEMENTARY[name].steepest(low, high)


def _sharpest(name: str, low: float, high: float) -> float:
    return ELEMENTARY[name].sharpest(low, high)


def exp(u: Any) -> Expression:
    """Return exp(u), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> exp(Variable(2))(np.array([0.0, 1.0])).round(6)
    array([1.      , 2.718282])
    """
    return _smooth("exp", u)


def log(u: Any) -> Expression:
    """Return the natural logarithm, for u > 0; that is part of every claim.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> log(Variable(1))(np.array([1.0]))
    array([0.])
    """
    return _smooth("log", u)


def sin(u: Any) -> Expression:
    """Return sin(u), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> sin(Variable(1))(np.array([0.0]))
    array([0.])
    """
    return _smooth("sin", u)


def cos(u: Any) -> Expression:
    """Return cos(u), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> cos(Variable(1))(np.array([0.0]))
    array([1.])
    """
    return _smooth("cos", u)


def tanh(u: Any) -> Expression:
    """Return tanh(u), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> tanh(Variable(1))(np.array([0.0]))
    array([0.])
    """
    return _smooth("tanh", u)


def arctan(u: Any) -> Expression:
    """Return arctan(u), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> arctan(Variable(1))(np.array([0.0]))
    array([0.])
    """
    return _smooth("arctan", u)


def reciprocal(u: Any) -> Expression:
    """Return 1/u, for u other than 0; that is part of every claim.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> reciprocal(Variable(1))(np.array([4.0]))
    array([0.25])
    """
    return _smooth("reciprocal", u)


def quotient(u: Any, v: Any) -> Expression:
    """Return u/v, entry by entry, for v other than 0.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> x, y = Variable(2)
    >>> quotient(x, y).value(np.array([1.0, 4.0]))
    0.25
    """
    return multiply(reciprocal(v), u) if isinstance(v, Expression) else u / v


def sqrt(u: Any) -> Expression:
    """Return the square root, for u > 0; of squares and their sums it is |.|, and kinked at 0.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> w = Variable(2)
    >>> sqrt(w[0] ** 2 + w[1] ** 2).name, sqrt(w + 1.0)(np.array([0.0, 3.0]))
    ('Norm2', array([1., 2.]))
    """
    u = as_expression(u, "sqrt")
    found = _squares(u)
    if found is None:
        return _smooth("sqrt", u)
    rows, factor = found
    root = absolute(rows.reshape(u.shape)) if rows.shape[1] == 1 else norm_of_rows(rows, u.shape)
    return root if factor == 1.0 else root * math.sqrt(factor)


def _squares(e: Expression) -> tuple[Expression, float] | None:
    """Return a row for each entry and a factor, if it is that times the sum of their squares."""
    e = meant(e)
    square = e.kind is nodes.Piecewise and not e.data[0] and not any(e.data[1][0][:2])
    if square and len(e.data[1][0]) == 3 and e.data[1][0][2] > 0:
        return e.args[0].reshape(e.size, 1), float(e.data[1][0][2])
    same = e.kind is nodes.Product and meant(e.args[0]) is meant(e.args[1])
    if same and (e.data[1] == 1 or e.args[0].ndim == e.args[1].ndim == 1):
        return e.args[0].reshape(e.size, e.data[1]), 1.0
    if e.kind is nodes.Add:
        parts = [_squares(a) for a in e.args]
        if all(parts) and len({part[1] for part in parts}) == 1:  # type: ignore[index]
            return side_by_side([part[0] for part in parts], axis=1), parts[0][1]  # type: ignore[index]
    return _summed_squares(e) if e.kind is nodes.Affine else None


def _summed_squares(e: Expression) -> tuple[Expression, float] | None:
    """Return the same of sums of entries, as many in each row, all times one number."""
    table, columns, offset, divisor = e.data
    inner = _squares(e.args[0]) if columns == 1 and offset is None else None
    if inner is None:
        return None
    places, numbers = _picked(table, e.args[0].size)
    if divisor is not None:
        numbers = numbers / divisor[0] if (divisor == divisor[0]).all() else np.zeros(1)
    if not places.size or len(places) != e.size or not (numbers == numbers[0]).all():
        return None
    rows, factor = inner
    index = np.arange(rows.size).reshape(rows.shape)[places].reshape(e.size, -1)
    return (gather(rows, index), factor * float(numbers[0])) if numbers[0] > 0 else None


def _picked(table: Any, width: int) -> tuple[Any, Vector]:
    """Return the places in the rows of a matrix, if they are as many in each, and the numbers."""
    if isinstance(table, np.ndarray):
        dense = np.broadcast_to(np.arange(width), table.shape)
        return (dense, table.ravel()) if table.all() else (dense[:0], np.zeros(1))
    if not isinstance(table, tuple):
        return np.zeros(0), np.zeros(1)
    numbers, places, ends, (height, _) = table
    places = np.arange(height) if places is None else places
    lengths = np.ones(height) if ends is None else np.diff(ends)
    if not height or (lengths != lengths[0]).any() or not lengths[0]:
        return np.zeros(0), np.zeros(1)
    return places.reshape(height, -1), np.ones(places.size) if numbers is None else numbers


def expm1(u: Any) -> Expression:
    """Return exp(u) - 1."""
    return exp(u) - 1.0


def log1p(u: Any) -> Expression:
    """Return log(1 + u), for u > -1."""
    return log(as_expression(u, "log1p") + 1.0)


def tan(u: Any) -> Expression:
    """Return tan(u) as sin(u)/cos(u), where cos(u) is not 0.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> tan(Variable(1))(np.array([0.0]))
    array([0.])
    """
    return quotient(sin(u), cos(u))


def sinh(u: Any) -> Expression:
    """Return (exp(u) - exp(-u)) / 2."""
    return (exp(u) - exp(-as_expression(u, "sinh"))) / 2.0


def cosh(u: Any) -> Expression:
    """Return (exp(u) + exp(-u)) / 2."""
    return (exp(u) + exp(-as_expression(u, "cosh"))) / 2.0


def arcsinh(u: Any) -> Expression:
    """Return log(u + sqrt(u^2 + 1)), the inverse of sinh."""
    u = as_expression(u, "arcsinh")
    return log(u + sqrt(u**2 + 1.0))


def sigmoid(u: Any) -> Expression:
    """Return 1/(1 + exp(-u)), as (1 + tanh(u/2)) / 2: large arguments do not overflow.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> sigmoid(Variable(2))(np.array([0.0, 1000.0]))
    array([0.5, 1. ])
    """
    return (tanh(as_expression(u, "sigmoid") * 0.5) + 1.0) * 0.5


__all__ = [
    "arcsinh", "arctan", "cos", "cosh", "exp", "expm1", "log", "log1p", "quotient", "reciprocal",
    "sigmoid", "sin", "sinh", "sqrt", "tan", "tanh",
]  # fmt: skip
