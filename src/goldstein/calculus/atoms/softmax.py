"""Softmax cross-entropy of a table of logits."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.calculus.atoms.base import Atom
from goldstein.calculus.constants import hand_over, own, own_integers
from goldstein.calculus.expression import Expression, as_expression
from goldstein.calculus.operators import affine
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


__all__ = ["softmax_cross_entropy"]
