"""The fused pass that the one- and two-layer networks share."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from goldstein.calculus.expression import Expression
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError
from goldstein.models.base import Model, data_matrix, nonnegative, ridge_term, with_constant_feature
from goldstein.models.losses import Loss, make_loss
from goldstein.models.network_pass import Architecture, Pass, Rows, Weights
from goldstein.numerics.exact_floats import exact_float
from goldstein.numerics.long_sum import LongSum
from goldstein.numerics.spectral import spectral_norm_upper


@dataclass(frozen=True)
class Setting:
    """Data and options of a network, checked once.

    Attributes
    ----------
    total : Fraction or None
        What the losses are divided by, exactly; None where they are summed.
    """

    X: Any
    loss: Loss
    width: int
    ridge: float
    total: Fraction | None

    @property
    def scale(self) -> float:
        """The factor of the losses, rounded."""
        return 1.0 if self.total is None else float(1 / self.total)

    def objective(self, out: Expression) -> Expression:
        """Return the losses of the outputs plus the ridge term."""
        losses = self.loss.expression(out)
        tree = losses if self.total is None else losses / self.total
        if self.ridge:
            tree = tree + ridge_term(self.ridge, out.variable)
        return tree

    @classmethod
    def make(
        cls, X: Any, y: Any, width: int, loss: str, ridge: float, bias: bool, mean: bool,
        threshold: float, weights: Any = None, classes: int = 0,
    ) -> Setting:  # fmt: skip
        data = data_matrix(X, "X")
        n = data.shape[0]
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
            raise InputError(f"width must be a positive integer, got {width!r}.")
        if bias:
            data = with_constant_feature(data)
        made = make_loss(loss, y, n, threshold, weights, classes)
        total = made.total_weight if mean else None
        return cls(data, made, int(width), nonnegative("ridge", exact_float(ridge, "ridge")), total)


class ReLUNetwork(Model):
    """loss(relu(X W^T) V + c) + ridge/2 |parameters|^2, evaluated in one pass."""

    adjustable = frozenset({"_last_pass"})

    def __init__(self, tree: Expression, setting: Setting, architecture: Architecture) -> None:
        super().__init__(tree)
        self.setting, self.architecture = setting, architecture
        self._blocks = list(Rows.make(setting.X, setting.loss).blocks())
        self._last_pass: tuple[bytes, list[Pass]] | None = None

    def _pass(self, theta: Vector) -> list[Pass]:
        key = theta.tobytes()
        if self._last_pass is None or self._last_pass[0] != key:
            net, weights = self.architecture, self.weights(theta)
            self._last_pass = key, [net.forward(rows.X, weights) for rows in self._blocks]
        return self._last_pass[1]

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        theta = self._point(x)
        s, net, weights = self.setting, self.architecture, self.weights(theta)
        total = LongSum(1)
        for rows, seen in zip(self._blocks, self._pass(theta)):
            total.join(rows.value(net, weights, seen))
        return s.scale * float(total.total()[0]) + 0.5 * s.ridge * float(theta @ theta)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        theta = self._point(y)
        s, net, weights = self.setting, self.architecture, self.weights(theta)
        total = LongSum(net.dim)
        for rows, seen in zip(self._blocks, self._pass(theta)):
            part = rows.gradient(net, weights, s.scale, seen)
            if part is None:  # in doubt, NaN and overflow included, the tree decides exactly
                return super().gradient(theta)
            total.join(part)
        answer = total.total()
        if s.ridge:
            answer += s.ridge * theta
        return answer

    def sample_gradient(self, theta: Vector, rows: Any) -> Vector:
        """Return an unbiased noisy gradient from some samples, at a point off the kinks."""
        s, net, weights = self.setting, self.architecture, self.weights(theta)
        X = s.X[rows]
        seen = net.forward(X, weights)
        slope = (s.scale * s.X.shape[0] / X.shape[0]) * s.loss.take(rows).slope(seen.out)
        answer: Vector = net.pull_back(X, seen, weights, slope) + s.ridge * theta
        return answer

    def weights(self, theta: Vector) -> Weights:
        """Return hidden weights (biases last), output weights, and output bias or None."""
        return self.architecture.weights(theta)

    def _start(self, rng: np.random.Generator) -> Vector:
        return self.architecture.start(rng)

    @cached_property
    def data_norm(self) -> float:
        """Spectral norm of the data, the constant feature included."""
        return spectral_norm_upper(self.setting.X)


def network_outputs(X: Any, hidden: Matrix, outer: Matrix, shift: Any) -> Vector:
    """Return the outputs for data without the constant feature, given a network's weights."""
    d = X.shape[1]
    inner = X @ hidden[:, :d].T
    if hidden.shape[1] > d:
        inner = inner + hidden[:, d]
    out: Vector = np.maximum(inner, 0.0) @ outer
    return out if shift is None else out + shift


__all__ = ["ReLUNetwork", "Setting", "network_outputs"]
