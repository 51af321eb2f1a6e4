"""Losses of network outputs: squared, huber, pseudo_huber, logistic (two or more classes)."""

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from typing import Any, Self

import numpy as np
from scipy import sparse
from scipy.special import logsumexp, softmax

from goldstein.calculus import sum
from goldstein.calculus.atoms.piecewise import huber
from goldstein.calculus.atoms.smooth import (
    logistic,
    pseudo_huber,
    softmax_cross_entropy,
    square,
    sum_squares,
)
from goldstein.calculus.constants import (
    BlockedRows,
    SetOnce,
    hand_over,
    hand_over_sparse,
    own,
    own_sparse,
)
from goldstein.calculus.expression import Expression
from goldstein.checker import nodes
from goldstein.checker.arrays import Vector
from goldstein.checker.rationals import exact_floats, fraction_upper
from goldstein.errors import InputError
from goldstein.numerics.exact import exact_float, exact_number, exact_sum, positive
from goldstein.numerics.streams import seed_from, stream

Atom = Callable[[Expression, float], Expression]


class Loss(SetOnce, ABC):
    """The weighted sum over samples of a smooth convex loss of the outputs.

    Parameters
    ----------
    target : ndarray
        One row per sample; handed over.
    weights : ndarray, optional
        One nonnegative number per sample, handed over; None stands for ones.

    Attributes
    ----------
    outputs : int
        How many numbers the network gives per sample; 1 is a vector of length n.
    slope_limit : float
        Bound of the gradient per sample; `inf` for the squared loss.
    """

    slope_limit: float = math.inf

    def __init__(self, target: Any, weights: Vector | None = None, outputs: int = 0) -> None:
        self.target = hand_over(target)
        #: True when outputs form a vector of length n, not a table.
        self.target_is_vector = target.ndim == 1 and not outputs
        self.outputs = outputs or (1 if target.ndim == 1 else target.shape[1])
        self.weights = None if weights is None else hand_over(weights)

    @abstractmethod
    def value(self, out: Vector) -> float:
        """Return the total loss."""

    @abstractmethod
    def slope(self, out: Vector) -> Vector:
        """Return the gradient in the outputs."""

    @abstractmethod
    def expression(self, out: Expression) -> Expression:
        """Return the total loss as an expression."""

    def take(self, rows: Any) -> Self:
        """Return the loss of some samples."""
        part = copy.copy(self)
        weights = None if self.weights is None else self.weights[rows]
        part.__dict__.update(target=self.target[rows], weights=weights)
        return part

    @property
    def total_weight(self) -> Fraction:
        """The sum of the weights, exactly."""
        return Fraction(len(self.target)) if self.weights is None else exact_sum(self.weights)

    @property
    def weight_norm(self) -> float:
        """The Euclidean norm of the weights."""
        if self.weights is None:
            return math.sqrt(len(self.target))
        return float(np.linalg.norm(self.weights))

    @property
    def largest_weight(self) -> float:
        return 1.0 if self.weights is None else float(self.weights.max())

    def _spread(self, entries: Any) -> Any:
        """Multiply what belongs to the samples, numbers or expressions, by their weights."""
        if self.weights is None:
            return entries
        return entries * (self.weights if len(entries.shape) == 1 else self.weights[:, None])


class Squared(Loss):
    """|out - y|^2 / 2."""

    def value(self, out: Vector) -> float:
        gap = out - self.target
        return float(0.5 * (gap.ravel() @ self._spread(gap).ravel()))

    def slope(self, out: Vector) -> Vector:
        return self._spread(out - self.target)

    def expression(self, out: Expression) -> Expression:
        gap = out - self.target
        return 0.5 * (sum_squares(gap) if self.weights is None else sum(self._spread(square(gap))))


class Robust(Loss):
    """The Huber loss of the residual, or a smooth version of it."""

    def __init__(
        self, target: Vector, atom: Atom, threshold: float, weights: Vector | None = None
    ) -> None:
        super().__init__(target, weights)
        self._atom, self._threshold = atom, exact_positive("threshold", threshold)
        self.slope_limit = self._threshold * math.sqrt(self.outputs)

    def value(self, out: Vector) -> float:
        u, t = out - self.target, self._threshold
        if self._atom is huber:
            far = t * np.abs(u) - 0.5 * t * t
            losses = np.where(np.abs(u) <= t, 0.5 * u * u, far)
        else:  # no cancellation for small u; u / t could overflow
            losses = t * (u * (u / (t + np.hypot(t, u))))
        return float(self._spread(losses).sum())

    def slope(self, out: Vector) -> Vector:
        u, t = out - self.target, self._threshold
        slopes = np.clip(u, -t, t) if self._atom is huber else t * (u / np.hypot(t, u))
        return self._spread(slopes)

    def expression(self, out: Expression) -> Expression:
        return sum(self._spread(self._atom(out - self.target, self._threshold)))


class Logistic(Loss):
    """log(1 + exp(-label out)) with labels -1 and +1."""

    slope_limit = 1.0

    def value(self, out: Vector) -> float:
        return float(self._spread(np.logaddexp(0.0, -self.target * out)).sum())

    def slope(self, out: Vector) -> Vector:
        margin = self.target * out
        small = np.exp(-np.abs(margin))
        answer: Vector = -self.target * np.where(margin >= 0, small, 1.0) / (1.0 + small)
        return np.asarray(self._spread(answer))

    def expression(self, out: Expression) -> Expression:
        return sum(self._spread(logistic(out * self.target)))


class Softmax(Loss):
    """Cross-entropy of integer labels."""

    slope_limit = math.sqrt(2.0)

    def value(self, out: Vector) -> float:
        picked = out[np.arange(len(out)), self.target]
        logs = logsumexp(out, axis=1)
        if self.weights is not None:
            return float(self.weights @ (logs - picked))
        return float(logs.sum() - picked.sum())

    def slope(self, out: Vector) -> Vector:
        answer: Vector = softmax(out, axis=1)
        answer[np.arange(len(out)), self.target] -= 1.0
        return np.asarray(self._spread(answer))

    def expression(self, out: Expression) -> Expression:
        return softmax_cross_entropy(out, self.target, self.weights)


def make_loss(
    name: str, y: Any, samples: int, threshold: float, weights: Any = None, classes: int = 0
) -> Loss:
    """Return the loss of the given name for targets y; there are at least `classes` classes."""
    target = np.array(y)  # a copy: the exact form is made once, and must stay the same function
    if target.shape[:1] != (samples,) or target.ndim > 2:
        raise InputError(f"y must have {samples} rows like X, got shape {target.shape}.")
    checked = None if weights is None else sample_weights(weights, samples)
    if checked is not None and not checked.any():
        raise InputError("weights are all 0; at least one sample must count.")
    if name == "logistic":
        return _classification(target, checked, classes)
    numbers = exact_floats(target, "y")
    if name == "squared":
        return Squared(numbers, checked)
    if name in ("huber", "pseudo_huber"):
        return Robust(numbers, huber if name == "huber" else pseudo_huber, threshold, checked)
    raise InputError(
        f"loss must be 'squared', 'huber', 'pseudo_huber' or 'logistic', got {name!r}."
    )


def _classification(target: Any, weights: Vector | None, classes: int) -> Loss:
    kinds = np.unique(target)
    if target.ndim == 1 and set(kinds.tolist()) <= {-1, 1} and classes == 0:
        return Logistic(target.astype(np.float64), weights)
    whole = target.ndim == 1 and np.issubdtype(target.dtype, np.integer) and kinds.min() >= 0
    if whole and (classes or kinds.min() == 0):
        classes = max(classes, int(kinds.max()) + 1)
        if classes == 2:
            return Logistic(2.0 * target - 1.0, weights)
        if classes > 2:
            return Softmax(target, weights, classes)
    raise InputError(
        "the logistic loss needs labels -1 and +1, or integers 0, 1, ..., k-1; "
        f"got {kinds[:5].tolist()}."
    )


class Model(Expression):
    """An objective built from data. The tree defines it; the fused pass only evaluates it faster.

    Attributes
    ----------
    tree : Expression
        The same function, node by node. Everything that certifies uses the tree.
    """

    def __init__(self, tree: Expression) -> None:
        super().__init__(nodes.Add, (tree,), ())

    def rebuilt(self, made: dict[int, Expression]) -> Expression:
        return made[id(self.tree)]

    @property
    def tree(self) -> Expression:
        return self.args[0]

    def start(self, rng: int | np.random.Generator | None = None) -> Vector:
        """Return a start point of the usual size; same seed, same point."""
        if isinstance(rng, np.random.Generator):
            return self._start(rng)
        return self._start(stream(seed_from(rng), 0, "start"))

    def _start(self, rng: np.random.Generator) -> Vector:
        raise NotImplementedError

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return a Lipschitz constant on the delta-neighbourhood of {F <= F(x)}; inf if none."""
        raise NotImplementedError


def data_matrix(data: Any, name: str) -> Any:
    """Return finite data of shape (n, d): dense, sparse, or in blocks of rows."""
    matrix: Any
    if isinstance(data, BlockedRows):
        matrix, entries = data, data.norms()
    elif sparse.issparse(data):
        matrix = own_sparse(data, name)
        entries = matrix.data
    else:
        matrix = own(data, name)
        entries = matrix
    if len(matrix.shape) != 2 or 0 in matrix.shape:
        raise InputError(f"{name} must have shape (n, d), got {matrix.shape}.")
    if not np.isfinite(entries).all():
        raise InputError(f"{name} has a NaN or an infinity; clean the data first.")
    return matrix


def with_constant_feature(data: Any) -> Any:
    """Return the data with a last column of ones, private to expressions: not copied again."""
    ones = np.ones((data.shape[0], 1))
    if sparse.issparse(data):
        return hand_over_sparse(sparse.csr_array(sparse.hstack([data, ones])))
    return hand_over(np.hstack([data, ones]))


def ridge_term(lam: float | Fraction, u: Expression) -> Expression:
    """Return lam/2 |u|^2, lam > 0; nothing is rounded in proofs."""
    lam = exact_number(lam, "lam")
    half = 0.5 * float(lam)
    if 2 * Fraction(half) == lam:
        return half * sum_squares(u)
    answer, divisor = sum_squares(u), 2 / lam
    while divisor > 2**1000:  # beyond what one division takes
        answer, divisor = answer / 2**1000, divisor / 2**1000
    return answer / divisor


def nonnegative(name: str, value: Any) -> float:
    """Return a nonnegative finite parameter, or refuse it."""
    number = exact_number(value, name)
    if number < 0 or math.isinf(fraction_upper(number)):
        raise InputError(f"{name} must be a nonnegative finite number, got {value!r}.")
    return float(number)


def exact_positive(name: str, value: Any) -> float:
    """Return a positive parameter that is a float64 number, or refuse it."""
    return exact_float(positive(name, value), name)


def sample_weights(weights: Any, samples: int) -> Vector:
    """Return one nonnegative finite number per sample, in an array of their own."""
    shares = np.array(exact_floats(weights, "weights"))
    if shares.shape != (samples,) or (shares < 0).any():
        raise InputError(
            f"weights must be {samples} nonnegative finite numbers, one per row of the data."
        )
    return shares
