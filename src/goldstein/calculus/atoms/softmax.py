"""Softmax cross-entropy of a table of logits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from goldstein.calculus.arithmetic import FLOAT, RATIONAL, Arithmetic, Irrational, enclose_function
from goldstein.calculus.enclosures import Enclosure
from goldstein.calculus.expression import Bound, Expression
from goldstein.errors import InputError, InputTypeError


class SoftmaxCrossEntropy(Expression):
    """sum_i log(sum_k exp(z_ik)) - z_{i, label_i}, a smooth convex function of the logits."""

    own_degree = float("inf")

    def __init__(self, logits: Expression, labels: Any) -> None:
        if not isinstance(logits, Expression) or logits.ndim != 2:
            raise InputTypeError("softmax_cross_entropy expects an expression of shape (n, k).")
        self.labels = np.asarray(labels)
        rows, classes = logits.shape
        whole = np.issubdtype(self.labels.dtype, np.integer) and self.labels.shape == (rows,)
        if not whole or self.labels.min(initial=0) < 0 or self.labels.max(initial=0) >= classes:
            raise InputError(
                f"labels must be {rows} integers from 0 to {classes - 1}, one per row of logits."
            )
        self._one_hot = np.zeros((rows, classes))
        self._one_hot[np.arange(rows), self.labels] = 1.0
        super().__init__((logits,), ())

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        (z,) = values
        if arithmetic is FLOAT:
            return np.asarray(logsumexp(z, axis=1).sum() - (z * self._one_hot).sum())
        if arithmetic is RATIONAL:
            raise Irrational("softmax_cross_entropy")
        shift = z.mid.max(axis=1, keepdims=True)
        powers = enclose_function(z - shift, lambda flint, b: b.exp())
        totals = powers @ np.ones(z.shape[1])
        logs = enclose_function(totals, lambda flint, b: b.log())
        return logs.sum() + Enclosure(shift).sum() - (z * self._one_hot).sum()

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        (z,) = values
        if arithmetic is FLOAT:
            return (cotangent * (softmax(z, axis=1) - self._one_hot),)
        if arithmetic is RATIONAL:
            raise Irrational("softmax_cross_entropy")
        powers = enclose_function(z - z.mid.max(axis=1, keepdims=True), lambda flint, b: b.exp())
        totals = (powers @ np.ones(z.shape[1])).reshape(-1, 1)
        return (cotangent * (powers / totals - self._one_hot),)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        value = self.forward([b.value], FLOAT, None)
        rows = self.args[0].shape[0]
        return Bound(value, float(np.sqrt(2.0 * rows)) * b.lipschitz, b.radius)


def softmax_cross_entropy(logits: Expression, labels: Any) -> Expression:
    """Return the total cross-entropy of rows of logits and integer labels.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> logits = Variable(4).reshape(2, 2)
    >>> round(softmax_cross_entropy(logits, np.array([0, 1])).value(np.zeros(4)), 6)
    1.386294
    """
    return SoftmaxCrossEntropy(logits, labels)


__all__ = ["SoftmaxCrossEntropy", "softmax_cross_entropy"]
