"""The rows of a Dask array as a matrix: they stay in their chunks, and products go there."""

from __future__ import annotations

import importlib
from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import assert_all_finite, column_or_1d

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
    assert_all_finite(y, input_name="y")
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
        return np.concatenate(self._each(_product, lambda part: v))

    def enclosed_product(self, v: Enclosure) -> Enclosure:
        parts = self._each(_enclosed_product, lambda part: v)
        mid, rad = (np.concatenate(pieces) for pieces in zip(*((p.mid, p.rad) for p in parts)))
        return Enclosure(mid, rad)

    def transposed_product(self, a: Vector) -> Vector:
        return np.sum(self._each(_combination, lambda part: a[part]), axis=0)

    def enclosed_transposed_product(self, a: Enclosure) -> Enclosure:
        terms = self.shape[0]
        return sum_of_parts(self._each(_enclosed_combination, lambda part: a[part], terms), terms)

    def norms(self) -> Vector:
        return self._norms

    @cached_property
    def _norms(self) -> Vector:
        norms = np.concatenate(self._each(_norms))
        _require_finite(norms)
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

    def _each(self, operation: Any, vector: Any = lambda part: None, *more: Any) -> list[Any]:
        """Return what an operation gives of each block, its signs, and its part of a vector."""
        lazy = self._dask.delayed(operation)
        parts = [slice(a, b) for a, b in pairwise(self._edges)]
        tasks = [
            lazy(block, self._signs[part], self._intercept, vector(part), *more)
            for block, part in zip(self._blocks, parts)
        ]
        return list(self._dask.compute(*tasks))


def _product(block: Any, signs: Vector, intercept: bool, v: Vector) -> Vector:
    X = np.asarray(block)
    d = X.shape[1]
    out: Vector = X @ v[:d]
    if intercept:
        out = out + v[d]
    return signs * out


def _enclosed_product(block: Any, signs: Vector, intercept: bool, v: Enclosure) -> Any:
    return labelled_rows(np.asarray(block), signs, intercept=intercept) @ v


def _combination(block: Any, signs: Vector, intercept: bool, a: Vector) -> Vector:
    pulls = signs * a
    answer: Vector = np.asarray(block).T @ pulls
    return np.append(answer, pulls.sum()) if intercept else answer


def _enclosed_combination(
    block: Any, signs: Vector, intercept: bool, a: Enclosure, terms: int
) -> tuple[Vector, Vector]:
    return product_part(labelled_rows(np.asarray(block), signs, intercept=intercept).T, a, terms)


def _norms(block: Any, signs: Vector, intercept: bool, _: None) -> Vector:
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
        total = joined(self._each(1, Rows.value, self.weights(x)), 1)
        assert total is not None
        return self._scale * float(total.total()[0]) + 0.5 * self._ridge * float(x @ x)

    @np.errstate(over="ignore", invalid="ignore")
    def gradient(self, y: Vector) -> Vector:
        size = self.architecture.dim
        total = joined(self._each(size, Rows.gradient, self.weights(y), self._scale), size)
        if total is None:
            raise KinkError("a neuron sits on its kink, as far as rounding can tell.", y)
        answer = total.total()
        if self._ridge:
            answer += self._ridge * y
        return answer

    def _each(self, *question: Any) -> list[Any]:
        lazy = self._dask.delayed(_sum)
        # One object for all tasks: the parameters are sent once.
        shared = self._dask.delayed((self.architecture, *question), traverse=False)
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
    unknown = np.zeros(len(_dense(chunk)))
    slack = [rounding_slack(rows.X) for rows in _blocks(chunk, (loss, unknown))]
    slack_of_all = np.concatenate(slack)
    _require_finite(slack_of_all)
    return loss, slack_of_all


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
    for rows in Rows(chunk, *beside).blocks():
        # The constant feature is a copy of these rows only.
        yield replace(rows, X=np.hstack([rows.X, np.ones((len(rows.X), 1))]))


@np.errstate(over="ignore", invalid="ignore")
def _sum(chunk: Any, beside: tuple[Loss, Vector], shared: Any) -> Any:
    """Return the sum over the blocks of a chunk of what is asked of each."""
    net, size, asked, *arguments = shared
    return joined((asked(rows, net, *arguments) for rows in _blocks(chunk, beside)), size)
