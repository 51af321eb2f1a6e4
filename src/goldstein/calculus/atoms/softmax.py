"""Softmax cross-entropy of a table of logits."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from math import inf
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from goldstein.calculus.arithmetic import FLOAT, RATIONAL, Arithmetic, Irrational, enclose_function
from goldstein.calculus.constants import own, own_integers
from goldstein.calculus.expression import Bound, Expression, as_expression
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.errors import InputError, InputTypeError


class SoftmaxCrossEntropy(Expression):
    """sum_i p_i (log(sum_k exp(z_ik)) - z_{i, label_i}), smooth and convex in the logits."""

    own_degree = inf

    def __init__(self, logits: Expression, labels: Any, weights: Any = None) -> None:
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
        self.labels = own_integers(labels)
        self.weights = own(np.ones(rows) if weights is None else weights, "weights")
        if self.weights.shape != (rows,) or (self.weights < 0).any():
            raise InputError(f"weights must be {rows} nonnegative finite numbers, one per row.")
        super().__init__((logits,), ())

    def with_args(self, args: Sequence[Expression]) -> SoftmaxCrossEntropy:
        return SoftmaxCrossEntropy(args[0], self.labels, self.weights)

    @cached_property
    def _picked(self) -> Any:
        """Row i holds its weight at its label: exact, so are its products with 0 and 1."""
        table = np.zeros(self.args[0].shape)
        table[np.arange(len(table)), self.labels] = self.weights
        return table

    def forward(self, values: Sequence[Any], arithmetic: Arithmetic, piece: Any) -> Any:
        (z,) = values
        if arithmetic is FLOAT:
            return np.asarray(self.weights @ logsumexp(z, axis=1) - (z * self._picked).sum())
        if arithmetic is RATIONAL:
            raise Irrational("softmax_cross_entropy")
        shift = z.mid.max(axis=1, keepdims=True)
        powers = enclose_function(z - shift, lambda b: b.exp())
        totals = powers @ np.ones(z.shape[1])
        logs = enclose_function(totals, lambda b: b.log())
        totals = (logs + Enclosure(shift.ravel())) * self.weights
        return totals.sum() - (z * self._picked).sum()

    def backward(
        self, cotangent: Any, values: Sequence[Any], arithmetic: Arithmetic, piece: Any
    ) -> tuple[Any, ...]:
        (z,) = values
        if arithmetic is FLOAT:
            return (cotangent * (softmax(z, axis=1) * self.weights[:, None] - self._picked),)
        if arithmetic is RATIONAL:
            raise Irrational("softmax_cross_entropy")
        powers = enclose_function(z - z.mid.max(axis=1, keepdims=True), lambda b: b.exp())
        totals = (powers @ np.ones(z.shape[1])).reshape(-1, 1)
        return (cotangent * (powers / totals * self.weights[:, None] - self._picked),)

    def bound(self, bounds: Sequence[Bound]) -> Bound:
        (b,) = bounds
        value = self.forward([b.value], FLOAT, None)
        return Bound(value, self.steepest * b.lipschitz, b.radius)

    @property
    def steepest(self) -> float:
        """Lipschitz constant: a row's derivative is at most sqrt(2) times its weight."""
        return float(np.sqrt(2.0 * (self.weights @ self.weights)))

    @property
    def largest_weight(self) -> float:
        return float(self.weights.max(initial=0.0))


def softmax_cross_entropy(logits: Expression, labels: Any, weights: Any = None) -> Expression:
    """Return the total cross-entropy of rows of logits and integer labels, weighted if wished.

    Examples
    --------
    >>> from goldstein.calculus import Variable
    >>> logits = Variable(4).reshape(2, 2)
    >>> round(softmax_cross_entropy(logits, np.array([0, 1])).value(np.zeros(4)), 6)
    1.386294
    """
    return SoftmaxCrossEntropy(logits, labels, weights)


__all__ = ["SoftmaxCrossEntropy", "softmax_cross_entropy"]
