"""Order statistics: sort, median, quantile, sums of the largest; and means, variances, norms.

The largest and the smallest: of all entries, of the rows of a table, of two entry by entry.
"""

import math
from typing import Any

import numpy as np

from goldstein.calculus.atoms.piecewise import absolute, relu
from goldstein.calculus.atoms.smooth import norm_of_rows, power, square
from goldstein.calculus.constants import own
from goldstein.calculus.expression import Expression, as_expression, holds_expressions
from goldstein.calculus.operators import linear, moveaxis, rows_along, sum_entries, table_along
from goldstein.checker import nodes
from goldstein.errors import InputError, InputTypeError


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
    return relu(left - right) + right


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


def _order(rows: Expression, weights: Any, shape: tuple[int, ...], name: str) -> Expression:
    """Return combinations of the entries of rows in ascending order; `weights` has one per row."""
    table = own(np.atleast_2d(weights), "weights")
    return Expression(nodes.Order, (rows,), shape, (rows.shape[1], table), name)


def sort(u: Any, axis: int | None = -1) -> Expression:
    """Return the entries in ascending order, along an axis.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> sort(Variable(3))(np.array([3.0, 1.0, 2.0]))
    array([1., 2., 3.])
    """
    u = as_expression(u, "sort")
    if axis is None:
        u, axis = u.reshape(u.size), 0
    rows, _ = table_along(u, axis, what="sort")
    made = _order(rows, np.eye(rows.shape[1]), rows.shape, "Sort")
    return made.reshape(u.shape) if u.ndim == 1 else moveaxis(made.T, axis, u)


def sum_largest(u: Any, k: int) -> Expression:
    """Return the sum of the k largest entries.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> sum_largest(Variable(3), 2).value(np.array([3.0, 1.0, 2.0]))
    5.0
    """
    rows, shape = table_along(u, what="sum_largest")
    if not 1 <= k <= rows.shape[1]:
        raise InputError(f"k must be a whole number from 1 to {rows.shape[1]}, got {k!r}.")
    return _order(rows, np.arange(rows.shape[1]) >= rows.shape[1] - k, shape, "SumLargest")


def trimmed_sum(u: Any, low: int, high: int) -> Expression:
    """Return the sum without the `low` smallest and the `high` largest entries.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> trimmed_sum(Variable(4), 1, 1).value(np.array([9.0, 1.0, 2.0, 3.0]))
    5.0
    """
    rows, shape = table_along(u, what="trimmed_sum")
    n = rows.shape[1]
    if not (low >= 0 and high >= 0 and low + high < n):
        raise InputError(f"of {n} entries at most {n - 1} can be left out, got {low} and {high}.")
    places = np.arange(n)
    return _order(rows, (places >= low) & (places < n - high), shape, "TrimmedSum")


def median(u: Any, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return the median, the mean of the two middle entries where their number is even.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> median(Variable(4)).value(np.array([3.0, 1.0, 2.0, 9.0]))
    2.5
    """
    return quantile(u, 0.5, axis, keepdims)


def quantile(u: Any, q: float, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return a quantile as `np.quantile` does: the neighbours are weighed linearly.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> quantile(Variable(3), 0.25).value(np.array([3.0, 1.0, 2.0]))
    1.5
    """
    rows, shape = table_along(u, axis, keepdims, "quantile")
    if np.ndim(q) or not 0.0 <= q <= 1.0:
        raise InputError(f"q must be one number from 0 to 1, got {q!r}.")
    n = rows.shape[1]
    below = min(math.floor(q * (n - 1)), max(n - 2, 0))
    share = q * (n - 1) - below
    weights = np.zeros(n)
    weights[below] = 1.0 - share
    if n > 1:
        weights[below + 1] = share
    return _order(rows, weights, shape, "Quantile")


def var(u: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Expression:
    """Return the variance.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> var(Variable(2)).value(np.array([1.0, 3.0]))
    1.0
    """
    centred, count = _centred(u, axis)
    return sum_entries(square(centred), axis, keepdims) / (count - ddof)


def std(u: Any, axis: Any = None, ddof: int = 0, keepdims: bool = False) -> Expression:
    """Return the standard deviation, a norm; its kink is where all entries are equal.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> std(Variable(2)).value(np.array([1.0, 3.0]))
    1.0
    """
    centred, count = _centred(u, axis)
    return norm(centred, None, axis, keepdims) / math.sqrt(count - ddof)


def _centred(u: Any, axis: Any) -> tuple[Expression, int]:
    u = as_expression(u, "var")
    return u - u.mean(axis, keepdims=True), rows_along(u, axis)[0].shape[1]


def norm(u: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return a norm of all entries or along an axis: 2, 1, inf, or p > 1.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> norm(Variable(4).reshape(2, 2), axis=1)(np.array([3.0, 4.0, 0.0, 2.0]))
    array([5., 2.])
    """
    u = as_expression(u, "norm")
    vectors = u.ndim == 1 or (axis is not None and np.ndim(axis) == 0)
    if ord in (None, "fro") or (ord == 2 and vectors):
        rows, shape = table_along(u, axis, keepdims, "norm")
        return norm_of_rows(rows, shape)
    if vectors and ord == 1:
        return sum_entries(absolute(u), axis, keepdims)
    if vectors and ord == math.inf:
        return largest(absolute(u), axis=axis, keepdims=keepdims)
    if vectors and isinstance(ord, int | float) and 1 < ord < math.inf:
        return power(sum_entries(power(absolute(u), ord), axis, keepdims), 1.0 / ord)
    raise InputError(
        f"no norm of order {ord!r} for shape {u.shape}; there are 1, 2, inf and p > 1."
    )


__all__ = [
    "largest", "max_affine", "maximum", "median", "minimum", "norm", "quantile", "row_max",
    "smallest", "sort", "std", "sum_largest", "trimmed_sum", "var",
]  # fmt: skip
