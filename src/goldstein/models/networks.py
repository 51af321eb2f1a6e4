"""ReLU networks with one hidden layer: a fused pass, output weights fixed or trained."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from goldstein.calculus import Variable, relu
from goldstein.calculus.constants import own
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import linear
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError
from goldstein.models.base import Model, data_matrix, nonnegative, ridge_term, with_constant_feature
from goldstein.models.losses import Loss, make_loss
from goldstein.models.network_pass import Architecture, Pass, Rows, Weights
from goldstein.numerics.exact_floats import exact_float, exact_floats
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

    def slope_bound(self, level: float, gain: float, delta: float) -> float:
        """Bound the gradient in the outputs within gain delta of where F is below a level."""
        if math.isfinite(self.loss.slope_limit):
            return self.scale * self.loss.slope_limit * self.loss.weight_norm
        steep = self.scale * self.loss.largest_weight
        return math.sqrt(2.0 * steep * level) + steep * gain * delta

    def objective(self, out: Expression) -> Expression:
        """Return the losses of the outputs plus the ridge term."""
        losses = self.loss.expression(out)
        tree = losses if self.total is None else losses / self.total
        if self.ridge:
            tree = tree + ridge_term(self.ridge, out.variable)
        return tree

    @classmethod
    def make(
        cls, data: Any, loss: Loss, width: int, ridge: float, bias: bool, mean: bool
    ) -> Setting:
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
            raise InputError(f"width must be a positive integer, got {width!r}.")
        if bias:
            data = with_constant_feature(data)
        total = loss.total_weight if mean else None
        return cls(data, loss, int(width), nonnegative("ridge", exact_float(ridge, "ridge")), total)


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


class ReLUOneLayer(ReLUNetwork):
    """scale * loss(relu(X W^T) c) + ridge/2 |W|^2 in the hidden weights W, with c fixed."""

    def __init__(self, setting: Setting, output: Matrix) -> None:
        self.output = own(output)
        columns: tuple[int, ...] = () if setting.loss.target_is_vector else output.shape[1:]
        net = Architecture(setting.X.shape[1], setting.width, columns, fixed=self.output)
        theta = Variable(net.dim)
        W = theta.reshape(setting.width, setting.X.shape[1])
        out = relu(setting.X @ W.T) @ self.output
        super().__init__(setting.objective(out), setting, net)

    @property
    def name(self) -> str:
        return "relu_one_layer"

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return the constant of the sublevel set: loss part plus ridge part."""
        s = self.setting
        reach = float(np.linalg.norm(self.output, 2 if self.output.ndim == 2 else None))
        gain = reach * self.data_norm
        level = self.value(x)
        ridge = math.sqrt(2.0 * s.ridge * level) + s.ridge * delta
        return gain * s.slope_bound(level, gain, delta) + ridge


def alternating_signs(width: int, outputs: int, as_vector: bool) -> Matrix:
    """Return output weights +1 and -1; different outputs see the neurons with different signs."""
    signs = np.where(np.arange(width) % 2 == 0, 1.0, -1.0)
    table = [np.roll(signs, k) * (-1.0) ** (k // 2) for k in range(outputs)]
    return signs if outputs == 1 and as_vector else np.array(table).T


def relu_one_layer(
    X: Any,
    y: Any,
    width: int,
    *,
    loss: str = "squared",
    output_weights: Any = None,
    ridge: float = 0.0,
    bias: bool = True,
    mean: bool = False,
    threshold: float = 1.0,
    weights: Any = None,
    classes: int = 0,
) -> ReLUOneLayer:
    """Return the training objective of a ReLU layer with fixed output weights.

    Parameters
    ----------
    X : array or sparse matrix, shape (n, d)
    y : array, shape (n,) or (n, q)
        Targets, or labels for the logistic loss.
    width : int
        Number of neurons.
    loss : {"squared", "huber", "pseudo_huber", "logistic"}
        The squared loss is |out - y|^2 / 2.
    output_weights : array, shape (width,) or (width, q), optional
        Default: alternating signs +1, -1.
    ridge : float
        Weight of |W|^2 / 2.
    bias : bool
        Give every neuron a trainable bias.
    mean : bool
        Average over the samples, with their weights, instead of summing.
    threshold : float
        Of the Huber losses.
    weights : array, shape (n,), optional
        Nonnegative weights of the samples' losses; default 1.
    classes : int
        At least so many classes for the logistic loss, however few are among the labels.

    Returns
    -------
    ReLUOneLayer
        An Expression with `start(rng)` and `solver_lipschitz(x, delta)`.

    Examples
    --------
    >>> F = relu_one_layer([[1.0], [2.0]], [1.0, 0.0], width=1, bias=False)
    >>> F.value(np.array([1.0]))
    2.0
    """
    data = data_matrix(X, "X")
    made = make_loss(loss, y, data.shape[0], threshold, weights, classes)
    setting = Setting.make(data, made, width, ridge, bias, mean)
    q = setting.loss.outputs
    if output_weights is None:
        output = alternating_signs(setting.width, q, setting.loss.target_is_vector)
    else:
        output = exact_floats(output_weights, "output_weights")
    wanted = (setting.width,) if setting.loss.target_is_vector else (setting.width, q)
    if output.shape != wanted:
        raise InputError(
            f"output_weights must be finite with shape {wanted}, got shape {output.shape}."
        )
    return ReLUOneLayer(setting, output)


class ReLUTwoLayer(ReLUNetwork):
    """scale * loss(relu(X W^T) V + c) + ridge/2 |(W, V, c)|^2.

    The parameters are W row by row, then V row by row, then c if there is an output bias.
    """

    def __init__(self, setting: Setting, output_bias: bool) -> None:
        n, d = setting.X.shape
        loss = setting.loss
        columns: tuple[int, ...] = () if loss.target_is_vector else (loss.outputs,)
        net = Architecture(d, setting.width, columns, output_bias=output_bias)
        theta = Variable(net.dim)
        W = theta[: net.hidden_size].reshape(setting.width, d)
        V = theta[net.hidden_size : net.outer_end].reshape(setting.width, *columns)
        out = relu(setting.X @ W.T) @ V
        if output_bias:
            shift = theta[net.outer_end :].reshape(1, loss.outputs)
            out = out + linear(np.ones((n, 1)), shift).reshape(n, *columns)
        super().__init__(setting.objective(out), setting, net)

    @property
    def name(self) -> str:
        return "relu_two_layer"

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return the constant of the sublevel set; it is bounded only if ridge > 0."""
        s = self.setting
        if s.ridge == 0.0:
            return math.inf
        level = self.value(x)
        size = math.sqrt(2.0 * level / s.ridge) + delta
        extra = s.X.shape[0] if self.architecture.output_bias else 0
        gain = math.sqrt((self.data_norm * size) ** 2 + extra)
        return gain * s.slope_bound(level, gain, delta) + s.ridge * size


def relu_two_layer(
    X: Any,
    y: Any,
    width: int,
    *,
    loss: str = "squared",
    ridge: float = 0.0,
    bias: bool = True,
    output_bias: bool = False,
    mean: bool = False,
    threshold: float = 1.0,
    weights: Any = None,
    classes: int = 0,
) -> ReLUTwoLayer:
    """Return the training objective of a network with one hidden ReLU layer.

    Parameters
    ----------
    X : array or sparse matrix, shape (n, d)
    y : array, shape (n,) or (n, q)
        Targets; for the logistic loss labels -1/+1 or integers 0, ..., k-1.
    width : int
        Number of neurons.
    loss : {"squared", "huber", "pseudo_huber", "logistic"}
        The squared loss is |out - y|^2 / 2; three or more classes use softmax cross-entropy.
    ridge : float
        Weight of |parameters|^2 / 2.
    bias, output_bias : bool
        Trainable biases of the neurons, and of the outputs.
    mean : bool
        Average over the samples, with their weights, instead of summing.
    threshold : float
        Of the Huber losses.
    weights : array, shape (n,), optional
        Nonnegative weights of the samples' losses; default 1.
    classes : int
        At least so many classes for the logistic loss, however few are among the labels.

    Returns
    -------
    ReLUTwoLayer
        An Expression with `start(rng)` and `solver_lipschitz(x, delta)`.

    Examples
    --------
    >>> F = relu_two_layer([[1.0], [2.0]], [1.0, 0.0], width=1, bias=False)
    >>> F.value(np.array([1.0, 0.5]))
    0.625
    """
    data = data_matrix(X, "X")
    made = make_loss(loss, y, data.shape[0], threshold, weights, classes)
    setting = Setting.make(data, made, width, ridge, bias, mean)
    return ReLUTwoLayer(setting, output_bias)
