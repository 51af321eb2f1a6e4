"""Smooth functions, entry by entry: exp, log, sin, tanh, roots, quotients, real powers.

Smooth losses without a rational form: logistic, softplus, pseudo_huber, and user functions.

Powers of expressions.

Softmax cross-entropy of a table of logits.

Norms: norm1, norm2.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from goldstein.calculus import operators
from goldstein.calculus.atoms.piecewise import (
    Atom,
    Curve,
    Elementwise,
    PiecewisePolynomial,
    absolute,
    require_range,
)
from goldstein.calculus.constants import hand_over, own, own_integers
from goldstein.calculus.elementary import ELEMENTARY, Foreign
from goldstein.calculus.expression import Expression, as_expression, meant
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.enclosed import irrational
from goldstein.checker.rationals import exact_floats, fraction_upper
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.exact import exact_number, positive


def softplus(u: Expression) -> Expression:
    """Return log(1 + exp(u)), entry by entry.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> softplus(Variable(1))(np.array([0.0])).round(6)
    array([0.693147])
    """
    return _softplus("softplus", u, 1.0)


def logistic(u: Expression) -> Expression:
    """Return the logistic loss log(1 + exp(-u)) of a margin u.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> logistic(Variable(1))(np.array([-1000.0]))
    array([1000.])
    """
    return _softplus("logistic", u, -1.0)


def _softplus(name: str, u: Any, sign: float) -> Expression:
    """Return log(exp(0) + exp(sign u)), of rows (0, sign u)."""
    u = as_expression(u, name)
    ends = hand_over(np.repeat(np.arange(u.size + 1), 2)[:-1])
    rows = (
        hand_over(np.full(u.size, sign)),
        hand_over(np.arange(u.size)),
        ends,
        (2 * u.size, u.size),
    )
    pairs = operators.affine("Linear", u, (2 * u.size,), rows)
    curve = Curve(partial(_rise, sign), 0.25)
    return Atom(Expression(irrational.LogSumExp, (pairs,), u.shape, (2,), name), u, name, curve)


def _rise(sign: float, low: float, high: float) -> float:
    end = high if sign > 0 else -low
    return 1.0 / (1.0 + math.exp(-min(max(end, -700.0), 700.0))) if end < 700.0 else 1.0


def pseudo_huber(u: Expression, threshold: float = 1.0) -> Expression:
    """Return t^2 (sqrt(1 + (u/t)^2) - 1), a smooth version of the Huber loss.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> pseudo_huber(Variable(1))(np.array([0.0]))
    array([0.])
    """
    u, t = as_expression(u, "pseudo_huber"), positive("threshold", threshold)
    require_range("pseudo_huber", [t])
    inner = operators.rational_scale(u, 1 / t)
    smooth = Expression(irrational.Smooth, (inner,), u.shape, ("pseudo_huber",), "pseudo_huber")
    curve = Curve(partial(_bend, float(t)), 1.0)
    return Atom(operators.rational_scale(smooth, t * t), u, "pseudo_huber", curve)


def _bend(threshold: float, low: float, high: float) -> float:
    far = max(abs(low), abs(high))
    return threshold if math.isinf(far) else far / math.hypot(1.0, far / threshold)


def smooth_function(
    u: Expression,
    value: Callable[[Vector], Any],
    derivative: Callable[[Vector], Any],
    *,
    lipschitz: float = math.inf,
    smoothness: float = math.inf,
) -> Expression:
    """Apply a smooth function of your own, entry by entry: trusted in float64, never certified.

    Parameters
    ----------
    value, derivative : callable
        Vectorised over arrays.
    lipschitz, smoothness : float
        Bounds of |derivative| and of |second derivative|, where known.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> smooth_function(Variable(1), np.sin, np.cos, lipschitz=1, smoothness=1)(np.zeros(1))
    array([0.])
    """
    u, name = as_expression(u, "smooth_function"), getattr(value, "__name__", "smooth")
    bounds = _bound(lipschitz, "lipschitz"), _bound(smoothness, "smoothness")
    user = Expression(Foreign, (u,), u.shape, (u.shape, value, derivative), name)
    return Atom(user, u, name, Curve(partial(_constant, bounds[0]), bounds[1]))


def _constant(number: float, low: float, high: float) -> float:
    return number


def _bound(value: Any, what: str) -> float:
    """Return a nonnegative number, infinity allowed, rounded up."""
    if isinstance(value, float) and value == math.inf:
        return math.inf
    number = exact_number(value, what)
    if number < 0:
        raise InputError(f"{what} must be nonnegative, got {value!r}.")
    return fraction_upper(number)


#: Larger powers are no use in float64, and slow in exact arithmetic.
LARGEST = 32


def square(u: Expression) -> Expression:
    """Return u^2, entry by entry.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> square(Variable(2))(np.array([-1.0, 2.0]))
    array([1., 4.])
    """
    return Elementwise(PiecewisePolynomial("square", [], [[0, 0, 1]]), u)


def sum_squares(u: Any) -> Expression:
    """Return the sum of the squares of all entries.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> sum_squares(Variable(2)).value(np.array([3.0, 4.0]))
    25.0
    """
    u = as_expression(u, "sum_squares")
    return Atom(operators.sum_entries(square(u)), u, "SumSquares")


def power(u: Any, exponent: Any) -> Expression:
    """Return u to a power, entry by entry: `u ** exponent`.

    A whole power is a polynomial, or one over it; others are exp(exponent log(u)), for u > 0. Base
    or exponent may be a number, or both expressions.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> (Variable(2) ** 3)(np.array([-1.0, 2.0]))
    array([-1.,  8.])
    >>> (Variable(2) ** -0.5)(np.array([1.0, 4.0]))
    array([1. , 0.5])
    """
    if not isinstance(u, Expression):
        base = exact_floats(u, "the base")
        if not (base > 0).all():
            raise InputError(f"base ** u needs a positive base, got {u!r}.")
        return exp(as_expression(exponent, "**") * np.log(base))
    if isinstance(exponent, Expression):
        return exp(exponent * log(u))
    try:
        exact = exact_number(exponent, "the exponent")
    except GoldsteinError:
        raise InputError(
            f"u ** p needs one number p, or an expression; got {exponent!r}."
        ) from None
    if exact == Fraction(1, 2):
        return sqrt(u)
    if exact.denominator != 1 or abs(exact) > LARGEST:
        return exp(log(u) * float(exact))
    n = int(exact)
    if n < 0:
        return power(reciprocal(u), -n)
    if n < 3:
        return [0.0 * u + 1.0, u, square(u)][n]
    return Elementwise(PiecewisePolynomial(f"power_{n}", [], [[0] * n + [1]]), u)


def softmax_cross_entropy(logits: Expression, labels: Any, weights: Any = None) -> Expression:
    """Return the total cross-entropy of rows of logits and integer labels, weighted if wished.

    It is sum_i p_i (log(sum_k exp(z_ik)) - z_{i, label_i}), smooth and convex.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> logits = Variable(4).reshape(2, 2)
    >>> round(softmax_cross_entropy(logits, np.array([0, 1])).value(np.zeros(4)), 6)
    1.386294
    """
    logits = as_expression(logits, "softmax_cross_entropy")
    if logits.ndim != 2:
        raise InputTypeError("softmax_cross_entropy expects an expression of shape (n, k).")
    given = np.asarray(labels)
    rows, classes = logits.shape
    whole = np.issubdtype(given.dtype, np.integer) and given.shape == (rows,)
    if not whole or given.min(initial=0) < 0 or given.max(initial=0) >= classes:
        raise InputError(
            f"labels must be {rows} integers from 0 to {classes - 1}, one per row of logits."
        )
    shares = own(np.ones(rows) if weights is None else weights, "weights")
    if shares.shape != (rows,) or (shares < 0).any():
        raise InputError(f"weights must be {rows} nonnegative finite numbers, one per row.")
    picked = np.zeros((1, logits.size))
    picked[0, np.arange(rows) * classes + own_integers(labels)] = -shares
    logs = Expression(irrational.LogSumExp, (logits,), (rows,), (classes,), "LogSumExp")
    total = operators.affine("Linear", logs, (), shares[None]) + operators.affine(
        "Linear", logits, (), hand_over(picked)
    )
    return Atom(total, logits, "SoftmaxCrossEntropy", shares)


def log_sum_exp(u: Any, axis: Any = None, keepdims: bool = False) -> Expression:
    """Return log(sum(exp(u))) of all entries or along an axis; large entries do not overflow.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> log_sum_exp(Variable(2)).value(np.array([1000.0, 1000.0])) - 1000.0 < 0.7
    True
    """
    rows, shape = operators.table_along(u, axis, keepdims, "log_sum_exp")
    return Expression(irrational.LogSumExp, (rows,), shape, (rows.shape[1],), "LogSumExp")


def lifted(log: Expression, m: Expression) -> Expression | None:
    """Return log_sum_exp(u) for m + log(sum(exp(u - m))), which is smooth whatever m is."""
    log = meant(log)
    if log.kind is not irrational.Smooth or log.data != ("log",):
        return None
    total = meant(log.args[0])
    if total.kind is nodes.Piecewise and total.name == "abs":
        total = meant(total.args[0])
    inner = meant(total.args[0]) if total.kind is nodes.Affine else total
    if inner.kind is not irrational.Smooth or inner.data != ("exp",):
        return None
    gap, places = meant(inner.args[0]), _ones(total)
    if gap.kind is not nodes.Add or len(gap.args) != 2 or places is None:
        return None
    for u, shift in (gap.args, gap.args[::-1]):
        sign, index = _picked_from(shift, m)
        if sign < 0 and (index[places] == np.arange(len(places))[:, None]).all():
            some, data = operators.gather(u, places), (places.shape[1],)
            return Expression(irrational.LogSumExp, (some,), log.shape, data, "LogSumExp")
    return None


def _picked_from(e: Expression, m: Expression) -> tuple[int, Any]:
    """Return 1 or -1, and the entries of m that an expression picks, times that; 0 if none."""
    sign, e, index = 1, meant(e), np.arange(e.size)
    while e is not meant(m) and e.kind is nodes.Affine and isinstance(e.data[0], tuple):
        (numbers, places, ends, _), _, offset, divisor = e.data
        if places is not None and operators.picked(e) is not None:
            index = places.ravel()[index]
        elif places is ends is offset is divisor is None and (numbers == -1.0).all():
            sign = -sign
        else:
            return 0, index
        e = meant(e.args[0])
    return (sign if e is meant(m) else 0), index


def _ones(total: Expression) -> Any:
    """Return the places that rows of a matrix add up, if that is all it does."""
    if total.kind is not nodes.Affine:
        return None
    table, columns, offset, divisor = total.data
    places, numbers = _picked(table, total.args[0].size)
    summed = columns == 1 and offset is divisor is None and places.size
    return places if summed and (numbers == 1.0).all() else None


def norm1(u: Expression) -> Expression:
    """Return the sum of the absolute values.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.calculus import Variable
    >>> norm1(Variable(2)).value(np.array([3.0, -4.0]))
    7.0
    """
    return operators.sum_entries(absolute(u))


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
    rows, shape = operators.table_along(u, axis, what="norm2")
    return norm_of_rows(rows, shape)


def norm_of_rows(rows: Expression, shape: tuple[int, ...]) -> Expression:
    """Return the Euclidean norms of the rows of a table, in a shape."""
    if rows.size == 0:
        raise InputError("norm2 expects at least one entry, got none.")
    return Expression(irrational.Norm2, (rows,), shape, (rows.shape[1],), "Norm2")


def _smooth(name: str, u: Any) -> Expression:
    u = as_expression(u, name)
    made = Expression(irrational.Smooth, (u,), u.shape, (name,), name)
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
    return operators.multiply(reciprocal(v), u) if isinstance(v, Expression) else u / v


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
            return operators.side_by_side([part[0] for part in parts], axis=1), parts[0][1]  # type: ignore[index]
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
    return (operators.gather(rows, index), factor * float(numbers[0])) if numbers[0] > 0 else None


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
    "arcsinh", "arctan", "cos", "cosh", "exp", "expm1", "lifted", "log", "log1p", "log_sum_exp",
    "logistic", "norm1", "norm2", "power", "pseudo_huber", "quotient", "reciprocal", "sigmoid",
    "sin", "sinh", "smooth_function", "softmax_cross_entropy", "softplus", "sqrt", "square",
    "sum_squares", "tan", "tanh",
]  # fmt: skip
