"""Softmax cross-entropy of a table of logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.calculus.atoms.base import Atom
from goldstein.calculus.constants import hand_over, own, own_integers
from goldstein.calculus.expression import Expression, as_expression, meant
from goldstein.calculus.operators import affine, gather, picked, table_along
from goldstein.checker import nodes
from goldstein.errors import InputError, InputTypeError


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
    logs = Expression(nodes.LogSumExp, (logits,), (rows,), (classes,), "LogSumExp")
    total = affine("Linear", logs, (), shares[None]) + affine(
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
    rows, shape = table_along(u, axis, keepdims, "log_sum_exp")
    return Expression(nodes.LogSumExp, (rows,), shape, (rows.shape[1],), "LogSumExp")


def lifted(log: Expression, m: Expression) -> Expression | None:
    """Return log_sum_exp(u) for m + log(sum(exp(u - m))), which is smooth whatever m is."""
    log = meant(log)
    if log.kind is not nodes.Smooth or log.data != ("log",):
        return None
    total = meant(log.args[0])
    if total.kind is nodes.Piecewise and total.name == "abs":
        total = meant(total.args[0])
    inner = meant(total.args[0]) if total.kind is nodes.Affine else total
    if inner.kind is not nodes.Smooth or inner.data != ("exp",):
        return None
    gap, places = meant(inner.args[0]), _ones(total)
    if gap.kind is not nodes.Add or len(gap.args) != 2 or places is None:
        return None
    for u, shift in (gap.args, gap.args[::-1]):
        sign, index = _picked_from(shift, m)
        if sign < 0 and (index[places] == np.arange(len(places))[:, None]).all():
            data = (places.shape[1],)
            return Expression(nodes.LogSumExp, (gather(u, places),), log.shape, data, "LogSumExp")
    return None


def _picked_from(e: Expression, m: Expression) -> tuple[int, Any]:
    """Return 1 or -1, and the entries of m that an expression picks, times that; 0 if none."""
    sign, e, index = 1, meant(e), np.arange(e.size)
    while e is not meant(m) and e.kind is nodes.Affine and isinstance(e.data[0], tuple):
        (numbers, places, ends, _), _, offset, divisor = e.data
        if places is not None and picked(e) is not None:
            index = places.ravel()[index]
        elif places is ends is offset is divisor is None and (numbers == -1.0).all():
            sign = -sign
        else:
            return 0, index
        e = meant(e.args[0])
    return (sign if e is meant(m) else 0), index


def _ones(total: Expression) -> Any:
    """Return the places that rows of a matrix add up, if that is all it does."""
    matrix, columns, offset, divisor = total.data
    if columns != 1 or offset is not None or divisor is not None:
        return None
    if isinstance(matrix, np.ndarray):
        whole = np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape)
        return whole if (matrix == 1.0).all() else None
    if not isinstance(matrix, tuple) or matrix[2] is None or matrix[0] is None:
        return None
    numbers, places, ends, (height, _) = matrix
    even = len(set(np.diff(ends).tolist())) == 1
    return places.reshape(height, -1) if even and (numbers == 1.0).all() else None


__all__ = ["lifted", "log_sum_exp", "softmax_cross_entropy"]
