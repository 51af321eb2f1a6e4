"""A network's objective on a Dask array: rows stay in their chunks, and passes go there."""

from __future__ import annotations

import importlib
from itertools import pairwise
from typing import Any

import numpy as np

from goldstein.calculus.operators import row_norms
from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.models.losses import Loss
from goldstein.models.network_pass import BLOCK, Architecture, Rows, Weights, rounding_slack
from goldstein.models.networks import alternating_signs, network_outputs
from goldstein.numerics.long_sum import LongSum
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import Oracle


class ChunkedNetwork(Oracle):
    """Values and gradients of the training objective; a gradient on a kink is refused.

    Chunks are moved to multiples of the block size of the fit in memory, so that both add the sums
    of the same blocks, equal up to the rounding of the machine that forms them. What is kept beside
    the data are the targets, the weights and one number per row; what travels per pass are the
    parameters, and a gradient per chunk.

    Parameters
    ----------
    X : dask array, shape (n, d)
        Without the constant feature. Persist it first if it is slow to read: every pass reads it.
    loss : Loss
        Its targets and weights are in memory.
    width, layers, ridge
        As in the estimators.
    """

    knows_kinks = True

    def __init__(self, X: Any, loss: Loss, width: int, layers: int, ridge: float) -> None:
        self._dask: Any = importlib.import_module("dask")
        d = X.shape[1]
        columns = () if loss.target_is_vector else (loss.outputs,)
        fixed = None
        if layers == 1:
            fixed = alternating_signs(width, loss.outputs, loss.target_is_vector)
        self.architecture = Architecture(d + 1, width, columns, fixed, output_bias=layers == 2)
        self.dim = self.architecture.dim
        self._layers, self._ridge = layers, ridge
        self._scale = float(1 / loss.total_weight)
        sizes = aligned_sizes(X.chunks[0])
        self._chunks = X.rechunk((sizes, (d,))).astype(np.float64).to_delayed().ravel().tolist()
        edges = np.concatenate([[0], np.cumsum(sizes)])
        parts = [loss.take(slice(a, b)) for a, b in pairwise(edges)]
        beside = self._dask.delayed(_beside)
        # Kept where they are used: passes then send no targets.
        self._beside = self._dask.persist(
            *(beside(chunk, part) for chunk, part in zip(self._chunks, parts))
        )

    @property
    def name(self) -> str:
        return "relu_one_layer" if self._layers == 1 else "relu_two_layer"

    def start(self, seed: int) -> Vector:
        """Return the start point of the model in memory."""
        return self.architecture.start(stream(seed_from(seed), 0, "start"))

    def weights(self, theta: Vector) -> Weights:
        """Return hidden weights (biases last), output weights, and output bias or None."""
        return self.architecture.weights(theta)

    @np.errstate(over="ignore", invalid="ignore")
    def value(self, x: Vector) -> float:
        total = LongSum(1)
        for part in self._each(_value, self.weights(x)):
            total.join(part)
        return self._scale * float(total.total()[0]) + 0.5 * self._ridge * float(x @ x)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        total = LongSum(self.architecture.dim)
        for part in self._each(_gradient, self.weights(y), self._scale):
            if part is None:
                raise KinkError("a neuron sits on its kink, as far as rounding can tell.", y)
            total.join(part)
        answer = total.total()
        if self._ridge:
            answer += self._ridge * y
        return answer

    def _each(self, operation: Any, *arguments: Any) -> list[Any]:
        lazy = self._dask.delayed(operation)
        # One object for all tasks: the parameters are sent once.
        shared = self._dask.delayed((self.architecture, *arguments), traverse=False)
        tasks = [lazy(x, b, shared) for x, b in zip(self._chunks, self._beside)]
        return list(self._dask.compute(*tasks))


def aligned_sizes(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return chunk sizes near the given ones whose edges are multiples of the block size.

    Examples
    --------
    >>> aligned_sizes((5000, 5000, 500))
    (4096, 4096, 2308)
    """
    edges = np.cumsum(sizes)
    n = int(edges[-1])
    snapped = np.unique(BLOCK * np.rint(edges / BLOCK).astype(np.int64))
    inner = snapped[(snapped > 0) & (snapped < n)]
    return tuple(np.diff(np.concatenate([[0], inner, [n]])).tolist())


def chunked_outputs(X: Any, weights: Weights) -> Vector:
    """Return the outputs for a Dask array, one chunk in memory at a time."""
    dask: Any = importlib.import_module("dask")
    lazy = dask.delayed(_outputs)
    blocks = X.rechunk({1: -1}).astype(np.float64).to_delayed().ravel().tolist()
    return np.concatenate(dask.compute(*(lazy(block, weights) for block in blocks)))


def _outputs(chunk: Any, weights: Weights) -> Vector:
    _require_finite(row_norms(_dense(chunk)))
    return network_outputs(chunk, *weights)


def _beside(chunk: Any, loss: Loss) -> tuple[Loss, Vector]:
    """Return a chunk's part of the loss, and the bounds of its rounding errors."""
    # The constant feature is a copy of its rows only: block by block.
    slack = [rounding_slack(_with_ones(part)) for part in _split(_dense(chunk))]
    slack_of_all = np.concatenate(slack)
    _require_finite(slack_of_all)
    return loss, slack_of_all


def _split(chunk: Any) -> list[Any]:
    return [chunk[begin : begin + BLOCK] for begin in range(0, chunk.shape[0], BLOCK)]


def _with_ones(rows: Any) -> Any:
    return np.hstack([rows, np.ones((rows.shape[0], 1))])


def _dense(chunk: Any) -> Any:
    if not isinstance(chunk, np.ndarray):
        raise InputTypeError(
            f"a chunk of X is {type(chunk).__name__}, expected a NumPy array; convert the chunks "
            "with X.map_blocks."
        )
    return chunk


def _require_finite(norms: Vector) -> None:
    if not np.isfinite(norms).all():
        raise InputError("Input X contains NaN or infinity; clean the data first.")


def _blocks(chunk: Any, beside: tuple[Loss, Vector]) -> Any:
    loss, slack = beside
    for k, part in enumerate(_split(chunk)):
        at = slice(k * BLOCK, k * BLOCK + len(part))
        yield Rows(_with_ones(part), loss.take(at), slack[at])


@np.errstate(over="ignore", invalid="ignore")
def _value(chunk: Any, beside: tuple[Loss, Vector], shared: tuple[Architecture, Weights]) -> Any:
    net, weights = shared
    total = LongSum(1)
    for rows in _blocks(chunk, beside):
        total.join(rows.value(net, weights))
    return total


@np.errstate(over="ignore", invalid="ignore")
def _gradient(
    chunk: Any, beside: tuple[Loss, Vector], shared: tuple[Architecture, Weights, float]
) -> Any:
    net, weights, scale = shared
    total = LongSum(net.dim)
    for rows in _blocks(chunk, beside):
        part = rows.gradient(net, weights, scale)
        if part is None:
            return None
        total.join(part)
    return total
