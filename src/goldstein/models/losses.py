"""Losses of network outputs: squared, huber, pseudo_huber, logistic (two or more classes)."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import logsumexp, softmax

from goldstein.calculus import (
    Variable,
    huber,
    logistic,
    pseudo_huber,
    softmax_cross_entropy,
    sum,
    sum_squares,
)
from goldstein.calculus.atoms.base import Elementwise
from goldstein.calculus.expression import Expression, Vector
from goldstein.errors import InputError

Atom = Callable[[Expression, float], Expression]


class Loss(ABC):
    """The sum over samples of a smooth convex loss of the outputs.

    Attributes
    ----------
    outputs : int
        How many numbers the network gives per sample; 1 is a vector of length n.
    smoothness : float
        Lipschitz constant beta of the gradient in the outputs.
    slope_limit : float
        Bound of the gradient per sample; `inf` for the squared loss.
    """

    outputs: int
    smoothness: float = 1.0
    slope_limit: float = math.inf

    #: True when outputs form a vector of length n, not a table.
    target_is_vector: bool = True

    @abstractmethod
    def value(self, out: Vector) -> float:
        """Return the total loss."""

    @abstractmethod
    def slope(self, out: Vector) -> Vector:
        """Return the gradient in the outputs."""

    @abstractmethod
    def expression(self, out: Expression) -> Expression:
        """Return the total loss as an expression."""

    @abstractmethod
    def slope_at(self, rows: Any, out: Vector) -> Vector:
        """Return the gradient in the outputs of some samples."""


class Squared(Loss):
    """|out - y|^2 / 2."""

    def __init__(self, target: Vector) -> None:
        self.target = target
        self.target_is_vector = target.ndim == 1
        self.outputs = 1 if target.ndim == 1 else target.shape[1]

    def value(self, out: Vector) -> float:
        gap = (out - self.target).ravel()
        return float(0.5 * (gap @ gap))

    def slope(self, out: Vector) -> Vector:
        return out - self.target

    def expression(self, out: Expression) -> Expression:
        return 0.5 * sum_squares(out - self.target)

    def slope_at(self, rows: Any, out: Vector) -> Vector:
        answer: Vector = out - self.target[rows]
        return answer


class Robust(Loss):
    """An elementwise function of the residual."""

    def __init__(self, target: Vector, atom: Atom, threshold: float) -> None:
        self.target, self._atom, self._threshold = target, atom, float(threshold)
        self.target_is_vector = target.ndim == 1
        self.outputs = 1 if target.ndim == 1 else target.shape[1]
        self.slope_limit = self._threshold * math.sqrt(self.outputs)
        example = atom(Variable(1), self._threshold)
        assert isinstance(example, Elementwise)
        self._function = example.function

    def value(self, out: Vector) -> float:
        return float(self._function.value(out - self.target).sum())

    def slope(self, out: Vector) -> Vector:
        return self.slope_at(slice(None), out)

    def slope_at(self, rows: Any, out: Vector) -> Vector:
        gap = out - self.target[rows]
        return self._function.slope(gap, self._function.piece(gap))

    def expression(self, out: Expression) -> Expression:
        return sum(self._atom(out - self.target, self._threshold))


class Logistic(Loss):
    """log(1 + exp(-label out)) with labels -1 and +1."""

    outputs = 1
    smoothness = 0.25
    slope_limit = 1.0

    def __init__(self, labels: Vector) -> None:
        self.labels = labels

    def value(self, out: Vector) -> float:
        return float(np.logaddexp(0.0, -self.labels * out).sum())

    def slope(self, out: Vector) -> Vector:
        return self.slope_at(slice(None), out)

    def slope_at(self, rows: Any, out: Vector) -> Vector:
        labels = self.labels[rows]
        margin = labels * out
        small = np.exp(-np.abs(margin))
        answer: Vector = -labels * np.where(margin >= 0, small, 1.0) / (1.0 + small)
        return answer

    def expression(self, out: Expression) -> Expression:
        return sum(logistic(out * self.labels))


class Softmax(Loss):
    """Cross-entropy of integer labels."""

    smoothness = 0.5
    slope_limit = math.sqrt(2.0)

    def __init__(self, labels: Any, classes: int) -> None:
        self.labels, self.outputs = labels, classes
        self.target_is_vector = False

    def value(self, out: Vector) -> float:
        picked = out[np.arange(len(out)), self.labels]
        return float(logsumexp(out, axis=1).sum() - picked.sum())

    def slope(self, out: Vector) -> Vector:
        return self.slope_at(slice(None), out)

    def slope_at(self, rows: Any, out: Vector) -> Vector:
        answer: Vector = softmax(out, axis=1)
        answer[np.arange(len(out)), self.labels[rows]] -= 1.0
        return answer

    def expression(self, out: Expression) -> Expression:
        return softmax_cross_entropy(out, self.labels)


def make_loss(name: str, y: Any, samples: int, threshold: float) -> Loss:
    """Return the loss of the given name for targets y."""
    target = np.array(y)  # a copy: the exact form is made once, and must stay the same function
    if target.shape[:1] != (samples,) or target.ndim > 2:
        raise InputError(f"y must have {samples} rows like X, got shape {target.shape}.")
    if name == "logistic":
        return _classification(target)
    numbers = np.array(target, dtype=np.float64)
    if not np.isfinite(numbers).all():
        raise InputError("y has a NaN or an infinity; clean the data first.")
    if name == "squared":
        return Squared(numbers)
    if name in ("huber", "pseudo_huber"):
        return Robust(numbers, huber if name == "huber" else pseudo_huber, threshold)
    raise InputError(
        f"loss must be 'squared', 'huber', 'pseudo_huber' or 'logistic', got {name!r}."
    )


def _classification(target: Any) -> Loss:
    kinds = np.unique(target)
    if target.ndim == 1 and set(kinds.tolist()) <= {-1, 1}:
        return Logistic(target.astype(np.float64))
    whole = target.ndim == 1 and np.issubdtype(target.dtype, np.integer) and kinds.min() == 0
    if whole:
        classes = int(kinds.max()) + 1
        if classes == 2:
            return Logistic(2.0 * target - 1.0)
        if classes > 2:
            return Softmax(target, classes)
    raise InputError(
        "the logistic loss needs labels -1 and +1, or integers 0, 1, ..., k-1; "
        f"got {kinds[:5].tolist()}."
    )


__all__ = ["Loss", "make_loss"]
