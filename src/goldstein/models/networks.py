"""ReLU networks with one hidden layer: a fused pass, output weights fixed or trained."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from goldstein.calculus import Variable
from goldstein.calculus.atoms.piecewise import relu
from goldstein.calculus.constants import own
from goldstein.calculus.expression import Expression
from goldstein.calculus.operators import linear, row_norms
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rationals import exact_floats
from goldstein.errors import InputError
from goldstein.models import losses
from goldstein.numerics.exact import LongSum, exact_float
from goldstein.numerics.spectral import spectral_norm_upper

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
        return np.concatenate(parts)


@dataclass(frozen=True)
class Rows:
    """Rows with the constant feature, and their part of the loss."""

    X: Any
    loss: losses.Loss
    slack: Vector

    def blocks(self) -> Iterator[Rows]:
        """Yield the rows in blocks."""
        for begin in range(0, self.X.shape[0], BLOCK):
            part = slice(begin, begin + BLOCK)
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


def joined(parts: Iterable[LongSum | None], size: int) -> LongSum | None:
    """Return the sum of the parts; None when one of them is missing."""
    total = LongSum(size)
    for part in parts:
        if part is None:
            return None
        total.join(part)
    return total


def rounding_slack(X: Any) -> Vector:
    """Return bounds, per unit of weight, of the rounding errors of the rows' products."""
    return 4.0 * (X.shape[1] + 8) * 2.0**-53 * row_norms(X)


@dataclass(frozen=True)
class Setting:
    """Data and options of a network, checked once.

    Attributes
    ----------
    total : Fraction or None
        What the losses are divided by, exactly; None where they are summed.
    """

    X: Any
    loss: losses.Loss
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
        whole = self.loss.expression(out)
        tree = whole if self.total is None else whole / self.total
        if self.ridge:
            tree = tree + losses.ridge_term(self.ridge, out.variable)
        return tree

    @classmethod
    def make(
        cls, X: Any, y: Any, width: int, loss: str = "squared", ridge: float = 0.0,
        bias: bool = True, mean: bool = False, threshold: float = 1.0, weights: Any = None,
        classes: int = 0,
    ) -> Setting:  # fmt: skip
        """Check data and options, which `relu_two_layer` explains."""
        data = losses.data_matrix(X, "X")
        made = losses.make_loss(loss, y, data.shape[0], threshold, weights, classes)
        if isinstance(width, bool) or not isinstance(width, int | np.integer) or width < 1:
            raise InputError(f"width must be a positive integer, got {width!r}.")
        if bias:
            data = losses.with_constant_feature(data)
        total = made.total_weight if mean else None
        return cls(
            data, made, int(width), losses.nonnegative("ridge", exact_float(ridge, "ridge")), total
        )


class ReLUNetwork(losses.Model):
    """loss(relu(X W^T) V + c) + ridge/2 |parameters|^2, evaluated in one pass."""

    adjustable = frozenset({"_last_pass"})

    def __init__(
        self, setting: Setting, output: Matrix | None = None, output_bias: bool = False
    ) -> None:
        (n, d), loss = setting.X.shape, setting.loss
        columns: tuple[int, ...] = () if loss.target_is_vector else (loss.outputs,)
        fixed = None if output is None else own(output)
        net = Architecture(d, setting.width, columns, fixed, output_bias)
        theta: Any = Variable(net.dim)
        hidden, outer, _ = net.weights(theta)
        out: Any = relu(setting.X @ hidden.T) @ outer
        if output_bias:
            shift = theta[net.outer_end :].reshape(1, loss.outputs)
            out = out + linear(np.ones((n, 1)), shift).reshape(n, *columns)
        super().__init__(setting.objective(out))
        self.setting, self.architecture = setting, net
        self._blocks = list(Rows(setting.X, loss, rounding_slack(setting.X)).blocks())
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
        blocks = zip(self._blocks, self._pass(theta))
        total = joined((rows.value(net, weights, seen) for rows, seen in blocks), 1)
        assert total is not None
        return s.scale * float(total.total()[0]) + 0.5 * s.ridge * float(theta @ theta)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        theta = self._point(y)
        s, net, weights = self.setting, self.architecture, self.weights(theta)
        blocks = zip(self._blocks, self._pass(theta))
        slopes = (rows.gradient(net, weights, s.scale, seen) for rows, seen in blocks)
        total = joined(slopes, net.dim)
        if total is None:  # in doubt, NaN and overflow included, the tree decides exactly
            return super().gradient(theta)
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
        return net.pull_back(X, seen, weights, slope) + s.ridge * theta

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

    name = "relu_one_layer"

    def solver_lipschitz(self, x: Vector, delta: float) -> float:
        """Return the constant of the sublevel set: loss part plus ridge part."""
        s, output = self.setting, self.weights(x).outer
        reach = float(np.linalg.norm(output, 2 if output.ndim == 2 else None))
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
    X: Any, y: Any, width: int, *, output_weights: Any = None, **options: Any
) -> ReLUOneLayer:
    """Return the training objective of a ReLU layer with fixed output weights.

    Parameters
    ----------
    X, y, width, **options
        As in `relu_two_layer`; `ridge` is the weight of |W|^2 / 2.
    output_weights : array, shape (width,) or (width, q), optional
        Default: alternating signs +1, -1.

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
    setting = Setting.make(X, y, width, **options)
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

    name = "relu_two_layer"

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
    X: Any, y: Any, width: int, *, output_bias: bool = False, **options: Any
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
    return ReLUTwoLayer(Setting.make(X, y, width, **options), output_bias=output_bias)
