"""A ReLU layer with fixed output weights."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.calculus import Variable, relu
from goldstein.calculus.constants import own
from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError
from goldstein.models.network_pass import Architecture
from goldstein.models.networks import ReLUNetwork, Setting
from goldstein.numerics.exact_floats import exact_floats


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
        if math.isfinite(s.loss.slope_limit):
            return s.scale * s.loss.slope_limit * s.loss.weight_norm * gain + ridge
        steep = s.scale * s.loss.largest_weight
        return gain * (math.sqrt(2.0 * steep * level) + steep * gain * delta) + ridge


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
    setting = Setting.make(X, y, width, loss, ridge, bias, mean, threshold, weights, classes)
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


__all__ = ["ReLUOneLayer", "alternating_signs", "relu_one_layer"]
