"""The rows of a Dask array as a matrix: they stay in their chunks, and products go there."""

from __future__ import annotations

import importlib
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from goldstein.calculus.constants import BlockedRows
from goldstein.calculus.operators import row_norms
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.arrays import Enclosure, product_part, sum_of_parts
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.models.losses import Loss
from goldstein.models.margin_svm import labelled_rows
from goldstein.models.networks import (
    BLOCK,
    Architecture,
    Rows,
    Weights,
    alternating_signs,
    joined,
    network_outputs,
    rounding_slack,
)
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import Oracle


def is_dask_array(X: Any) -> bool:
    """True for a Dask array; Dask is not imported to find out."""
    if type(X).__module__.startswith(("dask.dataframe", "dask_expr")):
        raise InputTypeError(
            "X is a Dask data frame, expected a Dask array; pass X.to_dask_array(lengths=True)."
        )
    return type(X).__module__.startswith("dask.array")


def checked_chunks(X: Any, y: Any) -> tuple[Any, NDArray[Any]]:
    """Check what can be checked of a Dask array without reading it; return it, and y in memory."""
    if X.ndim != 2:
        raise InputError(f"X has {X.ndim} dimensions, expected a Dask array of shape (n, d).")
    if X.dtype.kind not in "fiub":
        raise InputTypeError(
            f"X is a Dask array of {X.dtype}, expected real numbers; convert it with X.astype."
        )
    if any(np.isnan(size) for part in X.chunks for size in part):
        raise InputError(
            "X has chunks of unknown size; call X.compute_chunk_sizes() first, or "
            "to_dask_array(lengths=True) on the data frame it comes from."
        )
    if 0 in X.shape:
        raise InputError(f"X has shape {X.shape}; at least one row and one feature are needed.")
    if not hasattr(y, "__len__") or (is_dask_array(y) and any(map(np.isnan, y.shape))):
        raise InputError("y has no known length; pass one target per row of X, in memory.")
    y = column_or_1d(np.asarray(y), warn=True)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise InputError("Input y contains NaN or infinity; clean the data first.")
    if X.shape[0] != len(y):
        raise InputError(f"X has {X.shape[0]} rows and y has {len(y)}; they must agree.")
    return X, y


class ChunkedRows(BlockedRows):
    """Rows y_i (x_i, 1) of a Dask array, multiplied chunk by chunk.

    Parameters
    ----------
    X : dask array, shape (n, d)
        Persist it first if it is slow to read: every pass reads it. It must give the same numbers
        each time.
    signs : ndarray, shape (n,)
        Labels -1 and 1.
    intercept : bool
        Whether there is a column of ones.
    """

    def __init__(self, X: Any, signs: Vector, intercept: bool) -> None:
        super().__init__()
        self._X = X.rechunk({1: -1}).astype(np.float64)
        self._blocks = self._X.to_delayed().ravel().tolist()
        self._edges = np.concatenate([[0], np.cumsum(self._X.chunks[0])]).astype(np.intp)
        self._signs, self._intercept = signs, intercept
        self.shape = (int(X.shape[0]), int(X.shape[1]) + bool(intercept))

    @property
    def _dask(self) -> Any:
        return importlib.import_module("dask")

    def product(self, v: Vector) -> Vector:
        return np.concatenate(self._each(_product, lambda part: (self._signs[part], v)))

    def enclosed_product(self, v: Enclosure) -> Enclosure:
        parts = self._each(
            _enclosed_product, lambda part: (self._signs[part], self._intercept, v.mid, v.rad)
        )
        mid, rad = (np.concatenate(pieces) for pieces in zip(*parts))
        return Enclosure(mid, rad)

    def transposed_product(self, a: Vector) -> Vector:
        pulls = self._signs * a
        return np.sum(self._each(_combination, lambda part: (pulls[part], self._intercept)), axis=0)

    def enclosed_transposed_product(self, a: Enclosure) -> Enclosure:
        terms = self.shape[0]
        parts = self._each(
            _enclosed_combination,
            lambda p: (self._signs[p], self._intercept, a.mid[p], a.rad[p], terms),
        )
        return sum_of_parts(parts, terms)

    def norms(self) -> Vector:
        return self._norms

    @cached_property
    def _norms(self) -> Vector:
        norms = np.concatenate(self._each(_norms, lambda part: (self._intercept,)))
        if not np.isfinite(norms).all():
            raise InputError("Input X contains NaN or infinity; clean the data first.")
        norms *= np.abs(self._signs)
        norms.setflags(write=False)
        return norms

    def fetch(self, index: NDArray[np.intp]) -> Matrix:
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], self._edges)
        # Chunks without a wanted row are not read.
        wanted = [i for i in range(len(self._blocks)) if cuts[i] < cuts[i + 1]]
        lazy = self._dask.delayed(_rows)
        places = [index[order][cuts[i] : cuts[i + 1]] for i in wanted]
        parts = self._dask.compute(
            *(
                lazy(self._blocks[i], rows - self._edges[i], self._signs[rows], self._intercept)
                for i, rows in zip(wanted, places)
            )
        )
        answer = np.empty((index.size, self.shape[1]))
        if parts:
            answer[order] = np.concatenate(parts)
        return answer

    def scaled(self, factors: Vector) -> ChunkedRows:
        return ChunkedRows(self._X, self._signs * factors, self._intercept)

    def _each(self, operation: Any, arguments: Any) -> list[Any]:
        lazy = self._dask.delayed(operation)
        parts = [slice(a, b) for a, b in zip(self._edges[:-1], self._edges[1:])]
        return list(
            self._dask.compute(*(lazy(b, *arguments(p)) for b, p in zip(self._blocks, parts)))
        )


def _product(block: Any, signs: Vector, v: Vector) -> Vector:
    X = np.asarray(block)
    d = X.shape[1]
    out: Vector = X @ v[:d]
    if v.size > d:
        out = out + v[d]
    return signs * out


def _enclosed_product(
    block: Any, signs: Vector, intercept: bool, mid: Vector, rad: Vector
) -> tuple[Vector, Vector]:
    answer = labelled_rows(np.asarray(block), signs, intercept=intercept) @ Enclosure(mid, rad)
    return answer.mid, answer.rad


def _combination(block: Any, pulls: Vector, intercept: bool) -> Vector:
    answer: Vector = np.asarray(block).T @ pulls
    return np.append(answer, pulls.sum()) if intercept else answer


def _enclosed_combination(
    block: Any, signs: Vector, intercept: bool, mid: Vector, rad: Vector, terms: int
) -> tuple[Vector, Vector]:
    Z = labelled_rows(np.asarray(block), signs, intercept=intercept)
    return product_part(Z.T, Enclosure(mid, rad), terms)


def _norms(block: Any, intercept: bool) -> Vector:
    return np.hypot(row_norms(np.asarray(block)), 1.0 if intercept else 0.0)


def _rows(block: Any, index: NDArray[np.intp], signs: Vector, intercept: bool) -> Matrix:
    return labelled_rows(np.asarray(block)[index], signs, intercept=intercept)


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
        total = joined(self._each(_value, self.weights(x)), 1)
        assert total is not None
        return self._scale * float(total.total()[0]) + 0.5 * self._ridge * float(x @ x)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        total = joined(self._each(_gradient, self.weights(y), self._scale), self.architecture.dim)
        if total is None:
            raise KinkError("a neuron sits on its kink, as far as rounding can tell.", y)
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
    return joined((rows.value(net, weights) for rows in _blocks(chunk, beside)), 1)


@np.errstate(over="ignore", invalid="ignore")
def _gradient(
    chunk: Any, beside: tuple[Loss, Vector], shared: tuple[Architecture, Weights, float]
) -> Any:
    net, weights, scale = shared
    return joined((rows.gradient(net, weights, scale) for rows in _blocks(chunk, beside)), net.dim)
