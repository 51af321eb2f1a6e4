"""The fused pass that the one- and two-layer networks share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from goldstein.calculus.affine import row_norms
from goldstein.calculus.expression import Expression, Vector
from goldstein.errors import InputError
from goldstein.models.base import Matrix, Model, data_matrix, nonnegative
from goldstein.models.losses import Loss, make_loss
from goldstein.numerics.spectral import spectral_norm_upper


@dataclass
class Setting:
    """Data and options of a network, checked once."""

    X: Any
    loss: Loss
    width: int
    ridge: float
    scale: float

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
            ones = np.ones((n, 1))
            data = (
                sparse.csr_array(sparse.hstack([data, ones]))
                if sparse.issparse(data)
                else np.hstack([data, ones])
            )
        made = make_loss(loss, y, n, threshold, weights, classes)
        scale = 1.0 / made.total_weight if mean else 1.0
        return cls(data, made, int(width), nonnegative("ridge", ridge), scale)

    @property
    def hidden_size(self) -> int:
        """Number of hidden weights, biases included."""
        return self.width * int(self.X.shape[1])


class ReLUNetwork(Model):
    """loss(relu(X W^T) V + c) + ridge/2 |parameters|^2, evaluated in one pass."""

    def __init__(self, tree: Expression, setting: Setting) -> None:
        super().__init__(tree)
        self.setting = setting
        d = setting.X.shape[1]
        self._slack: Vector = 4.0 * (d + 8) * 2.0**-53 * row_norms(setting.X)
        self._last_pass: tuple[bytes, Matrix, Matrix, Matrix] | None = None

    def _outer(self, theta: Vector) -> tuple[Matrix, Any]:
        """Return output weights and output bias (or None)."""
        raise NotImplementedError

    def _outer_gradient(self, active: Matrix, slope: Matrix) -> list[Vector]:
        """Return the gradient in the parameters behind the hidden layer."""
        raise NotImplementedError

    def _hidden(self, theta: Vector) -> Matrix:
        s = self.setting
        return theta[: s.hidden_size].reshape(s.width, s.X.shape[1])

    def _pass(self, theta: Vector) -> tuple[Matrix, Matrix, Matrix]:
        key = theta.tobytes()
        last = self._last_pass
        if last is None or last[0] != key:
            inner = self.setting.X @ self._hidden(theta).T
            active = np.maximum(inner, 0.0)
            weights, shift = self._outer(theta)
            out = active @ weights
            if shift is not None:
                out = out + shift
            last = self._last_pass = (key, inner, active, out)
        return last[1:]

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        theta = self._point(x)
        *_, out = self._pass(theta)
        s = self.setting
        return s.scale * s.loss.value(out) + 0.5 * s.ridge * float(theta @ theta)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        theta = self._point(y)
        inner, active, out = self._pass(theta)
        s = self.setting
        hidden = self._hidden(theta)
        # No squares: tiny weights must not look like 0.
        sizes = np.abs(hidden).max(axis=1) * hidden.shape[1] ** 0.5
        clear = np.abs(inner) > np.outer(self._slack, sizes) + 2.0**-900
        if not clear.all():  # in doubt, NaN and overflow included, the tree decides exactly
            return super().gradient(theta)
        slope = s.scale * s.loss.slope(out)
        weights, _ = self._outer(theta)
        back = np.outer(slope, weights) if slope.ndim == 1 else slope @ weights.T
        back *= inner > 0.0
        parts = [(s.X.T @ back).T.ravel(), *self._outer_gradient(active, slope)]
        answer: Vector = np.concatenate(parts)
        if s.ridge:
            answer += s.ridge * theta
        return answer

    def sample_gradient(self, theta: Vector, rows: Any) -> Vector:
        """Return an unbiased noisy gradient from some samples, at a point off the kinks."""
        s = self.setting
        X = s.X[rows]
        inner = X @ self._hidden(theta).T
        active = np.maximum(inner, 0.0)
        weights, shift = self._outer(theta)
        out = active @ weights
        if shift is not None:
            out = out + shift
        slope = (s.scale * s.X.shape[0] / X.shape[0]) * s.loss.take(rows).slope(out)
        back = np.outer(slope, weights) if slope.ndim == 1 else slope @ weights.T
        back *= inner > 0.0
        parts = [(X.T @ back).T.ravel(), *self._outer_gradient(active, slope)]
        answer: Vector = np.concatenate(parts) + s.ridge * theta
        return answer

    def weights(self, theta: Vector) -> tuple[Matrix, Matrix, Any]:
        """Return hidden weights (biases last), output weights, and output bias or None."""
        outer, shift = self._outer(theta)
        return self._hidden(theta), outer, shift

    def _start(self, rng: np.random.Generator) -> Vector:
        s = self.setting
        size = np.sqrt(2.0 / s.X.shape[1])
        hidden = size * rng.standard_normal(s.hidden_size)
        rest = rng.standard_normal(self.variable.size - s.hidden_size) / np.sqrt(s.width)
        return np.concatenate([hidden, rest])

    @property
    def data_norm(self) -> float:
        """Spectral norm of the data, the constant feature included."""
        if not hasattr(self, "_data_norm"):
            self._data_norm = spectral_norm_upper(self.setting.X)
        return self._data_norm


def network_outputs(X: Any, hidden: Matrix, outer: Matrix, shift: Any) -> Vector:
    """Return the outputs for data without the constant feature, given a network's weights."""
    d = X.shape[1]
    inner = X @ hidden[:, :d].T
    if hidden.shape[1] > d:
        inner = inner + hidden[:, d]
    out: Vector = np.maximum(inner, 0.0) @ outer
    return out if shift is None else out + shift


__all__ = ["ReLUNetwork", "Setting", "network_outputs"]
