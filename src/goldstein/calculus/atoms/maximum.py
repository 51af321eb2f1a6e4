"""The largest and the smallest: of all entries, of the rows of a table, of two entry by entry."""

from __future__ import annotations

from typing import Any

from goldstein.calculus.atoms.activations import relu
from goldstein.calculus.expression import Expression, as_expression, holds_expressions
from goldstein.calculus.operators import linear, table_along
from goldstein.checker import nodes
from goldstein.errors import InputTypeError


def largest(u: Any, *others: Any, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return the largest entry of an expression, or of a list of them (public name: `max`).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, max
    >>> x, y = Variable(2)
    >>> max([x + y, x * y, 1.0]).value(np.array([2.0, 3.0]))
    6.0
    """
    _require_one("max", others)
    return _largest(u, axis, keepdims)


def smallest(u: Any, *others: Any, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return the smallest entry of an expression, or of a list of them (public name: `min`).

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, min
    >>> min(Variable(3)).value(np.array([1.0, 5.0, 2.0]))
    1.0
    """
    _require_one("min", others)
    return -_largest(-as_expression(u, "min"), axis, keepdims)


def _largest(u: Any, axis: Any = None, keepdims: bool = False) -> Expression:
    rows, shape = table_along(u, axis, keepdims)
    return Expression(nodes.Max, (rows,), shape, (rows.shape[1],), "Max")


def _require_one(name: str, others: tuple[Any, ...]) -> None:
    if others:
        raise InputTypeError(
            f"{name} takes one expression, or a list of them: {name}([a, b]). For two expressions, "
            f"entry by entry, use {name}imum(a, b)."
        )


def max_affine(A: Any, b: Any, w: Expression) -> Expression:
    """Return the maximum of the affine functions `A @ w + b`.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> max_affine([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]], 0.0, Variable(2)).value(np.array([1, 0]))
    2.0
    """
    return _largest(linear(A, w) + b)


def row_max(u: Any) -> Expression:
    """Return the largest entry of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> row_max(Variable(4).reshape(2, 2))(np.array([1.0, 5.0, 2.0, -3.0]))
    array([5., 2.])
    """
    u = as_expression(u, "row_max")
    if u.ndim != 2 or u.shape[1] == 0:
        raise InputTypeError("row_max expects an expression of shape (n, k) with k >= 1.")
    return Expression(nodes.Max, (u,), u.shape[:1], (u.shape[1],), "RowMax")


def maximum(a: Any, b: Any) -> Expression:
    """Return the larger of two, entry by entry, as `np.maximum`; one of them may be a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, maximum
    >>> maximum(Variable(3), [0.0, 1.0, 2.0])(np.array([-1.0, 2.0, 0.5]))
    array([0., 2., 2.])
    """
    left, right = _expression_first(a, b, "maximum")
    # max(a, b) = b + max(a - b, 0), which is exact in proofs.
    above: Expression = relu(left - right) + right
    return above


def minimum(a: Any, b: Any) -> Expression:
    """Return the smaller of two, entry by entry, as `np.minimum`; one of them may be a constant.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable, minimum
    >>> minimum(Variable(2), 1.0)(np.array([-1.0, 2.0]))
    array([-1.,  1.])
    """
    left, right = _expression_first(a, b, "minimum")
    return left - relu(left - right)


def _expression_first(a: Any, b: Any, what: str) -> tuple[Expression, Any]:
    if not (isinstance(a, Expression) or holds_expressions(a)):
        a, b = b, a
    return as_expression(a, what), b


__all__ = ["largest", "max_affine", "maximum", "minimum", "row_max", "smallest"]
