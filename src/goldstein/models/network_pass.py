"""One pass of a ReLU network over some rows, the same in memory, in chunks and in processes.

The rows are visited in blocks of fixed size, and the blocks' sums are joined to twice the
precision: where the blocks live matters only as far as products round differently there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from goldstein.calculus.operators import row_norms
from goldstein.checker.arrays import Matrix, Vector
from goldstein.models.losses import Loss
from goldstein.numerics.long_sum import LongSum

#: Rows per block.
BLOCK = 4096


class Weights(NamedTuple):
    """Hidden weights (biases last), output weights, and output bias or None."""

    hidden: Matrix
    outer: Matrix
    shift: Any


class Pass(NamedTuple):
    """Hidden layer before and after the ReLU, and the outputs."""

    inner: Matrix
    active: Matrix
    out: Matrix


@dataclass(frozen=True)
class Architecture:
    """What the parameters of a network are.

    Attributes
    ----------
    features : int
        Inputs, the constant one of the biases included.
    width : int
        Hidden neurons.
    columns : tuple of int
        () when the outputs form a vector, (q,) when they form a table.
    fixed : ndarray or None
        The output weights, where they are not trained.
    output_bias : bool
        Whether there is a trained output bias.
    """

    features: int
    width: int
    columns: tuple[int, ...]
    fixed: Matrix | None = None
    output_bias: bool = False

    @property
    def hidden_size(self) -> int:
        """Number of hidden weights, biases included."""
        return self.width * self.features

    @property
    def outer_end(self) -> int:
        """Where the output weights end among the parameters."""
        outer = 0 if self.fixed is not None else self.width * self.outputs
        return self.hidden_size + outer

    @property
    def outputs(self) -> int:
        return self.columns[0] if self.columns else 1

    @property
    def dim(self) -> int:
        """Number of parameters."""
        return self.outer_end + (self.outputs if self.output_bias else 0)

    def weights(self, theta: Vector) -> Weights:
        """Return the parameters in their places."""
        hidden = theta[: self.hidden_size].reshape(self.width, self.features)
        if self.fixed is not None:
            return Weights(hidden, self.fixed, None)
        outer = theta[self.hidden_size : self.outer_end].reshape(self.width, *self.columns)
        if not self.output_bias:
            return Weights(hidden, outer, None)
        shift = theta[self.outer_end :]
        return Weights(hidden, outer, shift if self.columns else shift[0])

    def start(self, rng: np.random.Generator) -> Vector:
        """Return random parameters of the usual size."""
        size = np.sqrt(2.0 / self.features)
        hidden = size * rng.standard_normal(self.hidden_size)
        rest = rng.standard_normal(self.dim - self.hidden_size) / np.sqrt(self.width)
        return np.concatenate([hidden, rest])

    def forward(self, X: Any, weights: Weights) -> Pass:
        """Return the layers' values for rows with the constant feature."""
        inner = X @ weights.hidden.T
        active = np.maximum(inner, 0.0)
        out = active @ weights.outer
        if weights.shift is not None:
            out = out + weights.shift
        return Pass(inner, active, out)

    def pull_back(self, X: Any, seen: Pass, weights: Weights, slope: Matrix) -> Vector:
        """Return the gradient in the parameters from the gradient in the outputs."""
        outer = weights.outer
        back = np.outer(slope, outer) if slope.ndim == 1 else slope @ outer.T
        back *= seen.inner > 0.0
        parts = [(X.T @ back).T.ravel()]
        if self.fixed is None:
            parts.append(np.asarray(seen.active.T @ slope).ravel())
        if self.output_bias:
            parts.append(np.atleast_1d(slope.sum(axis=0)))
        answer: Vector = np.concatenate(parts)
        return answer


@dataclass(frozen=True)
class Rows:
    """Rows with the constant feature, and their part of the loss."""

    X: Any
    loss: Loss
    slack: Vector

    @classmethod
    def make(cls, X: Any, loss: Loss) -> Rows:
        return cls(X, loss, rounding_slack(X))

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows in blocks."""
        n = self.X.shape[0]
        if n <= BLOCK:
            yield self
            return
        for begin in range(0, n, BLOCK):
            part = slice(begin, min(begin + BLOCK, n))
            yield Rows(self.X[part], self.loss.take(part), self.slack[part])

    def clear_of_kinks(self, inner: Matrix, hidden: Matrix) -> bool:
        """True when every neuron is provably off its kink at every row."""
        # No squares: tiny weights must not look like 0.
        sizes = np.abs(hidden).max(axis=1) * hidden.shape[1] ** 0.5
        if not np.isfinite(2.0**53 * self.slack.max() * sizes.max()):
            return False  # a partial sum may overflow: its sign says nothing
        return bool((np.abs(inner) > np.outer(self.slack, sizes) + 2.0**-900).all())

    def value(self, net: Architecture, weights: Weights, seen: Pass | None = None) -> LongSum:
        """Return the sum of the losses."""
        total = LongSum(1)
        total.add(np.array([self.loss.value((seen or net.forward(self.X, weights)).out)]))
        return total

    def gradient(
        self, net: Architecture, weights: Weights, scale: float, seen: Pass | None = None
    ) -> LongSum | None:
        """Return `scale` times the gradient of the losses; None when a kink may be here."""
        seen = seen or net.forward(self.X, weights)
        if not self.clear_of_kinks(seen.inner, weights.hidden):
            return None
        total = LongSum(net.dim)
        total.add(net.pull_back(self.X, seen, weights, scale * self.loss.slope(seen.out)))
        return total


def rounding_slack(X: Any) -> Vector:
    """Return bounds, per unit of weight, of the rounding errors of the rows' products."""
    # In blocks: the norms of all rows at once would need copies of the data.
    norms = [row_norms(X[k : k + BLOCK]) for k in range(0, X.shape[0], BLOCK)]
    answer: Vector = 4.0 * (X.shape[1] + 8) * 2.0**-53 * np.concatenate(norms)
    return answer
