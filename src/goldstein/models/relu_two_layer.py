"""A ReLU network whose output weights are trained too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.calculus import Variable, relu
from goldstein.calculus.operators import linear
from goldstein.checker.arrays import Vector
from goldstein.models.network_pass import Architecture
from goldstein.models.networks import ReLUNetwork, Setting


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
        if math.isfinite(s.loss.slope_limit):
            slope = s.scale * s.loss.slope_limit * s.loss.weight_norm
        else:
            steep = s.scale * s.loss.largest_weight
            slope = math.sqrt(2.0 * steep * level) + steep * gain * delta
        return gain * slope + s.ridge * size


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
    setting = Setting.make(X, y, width, loss, ridge, bias, mean, threshold, weights, classes)
    return ReLUTwoLayer(setting, output_bias)


__all__ = ["ReLUTwoLayer", "relu_two_layer"]
