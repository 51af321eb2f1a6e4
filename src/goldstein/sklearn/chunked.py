"""The rho-margin objective on a Dask array: rows stay in their chunks, and passes go there."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import column_or_1d

from goldstein.calculus.affine import row_norms
from goldstein.errors import InputError, InputTypeError, KinkError
from goldstein.models.margin_problem import MarginProblem
from goldstein.oracles import Oracle

Vector = NDArray[np.float64]


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


class ChunkedRows:
    """Rows y_i (x_i, 1) of a Dask array, multiplied chunk by chunk.

    It offers what `MarginProblem` asks of a matrix: products on both sides, and few rows at a time.

    Parameters
    ----------
    X : dask array, shape (n, d)
        Persist it first if it is slow to read: every pass reads it.
    signs : ndarray, shape (n,)
        Labels -1 and 1.
    intercept : bool
        Whether there is a column of ones.
    """

    def __init__(self, X: Any, signs: Vector, intercept: bool) -> None:
        X = X.rechunk({1: -1}).astype(np.float64)
        self._dask: Any = importlib.import_module("dask")
        self._blocks = X.to_delayed().ravel().tolist()
        self._edges = np.concatenate([[0], np.cumsum(X.chunks[0])]).astype(np.intp)
        self._signs, self._intercept = signs, intercept
        self.shape = (int(X.shape[0]), int(X.shape[1]) + bool(intercept))

    def __matmul__(self, v: Vector) -> Vector:
        return np.concatenate(self._each(_product, lambda part: (self._signs[part], v)))

    @property
    def T(self) -> _Transposed:
        """The transpose, for products only."""
        return _Transposed(self)

    def transposed_product(self, a: Vector) -> Vector:
        """Return the rows' combination with coefficients a."""
        pulls = self._signs * a
        parts = self._each(_combination, lambda part: (pulls[part], self._intercept))
        answer: Vector = np.sum(parts, axis=0)
        return answer

    def norms(self) -> Vector:
        """Return the norms of the rows; refuse data that are not finite."""
        norms = np.concatenate(self._each(_norms, lambda part: (self._intercept,)))
        if not np.isfinite(norms).all():
            raise InputError("Input X contains NaN or infinity; clean the data first.")
        return norms

    def __getitem__(self, rows: Any) -> Vector:
        """Return some rows, in memory."""
        index = np.arange(self.shape[0])[rows]
        order = np.argsort(index, kind="stable")
        cuts = np.searchsorted(index[order], self._edges)
        parts = [
            self._dask.delayed(_rows)(
                block, index[order][cuts[i] : cuts[i + 1]] - self._edges[i], self._intercept
            )
            for i, block in enumerate(self._blocks)
        ]
        answer = np.empty((index.size, self.shape[1]))
        answer[order] = np.concatenate(self._dask.compute(*parts))
        answer *= self._signs[index][:, None]
        return answer

    def _each(self, operation: Any, arguments: Any) -> list[Any]:
        lazy = self._dask.delayed(operation)
        parts = [slice(a, b) for a, b in zip(self._edges[:-1], self._edges[1:])]
        return list(
            self._dask.compute(*(lazy(b, *arguments(p)) for b, p in zip(self._blocks, parts)))
        )


class _Transposed:
    def __init__(self, rows: ChunkedRows) -> None:
        self._rows = rows

    def __matmul__(self, a: Vector) -> Vector:
        return self._rows.transposed_product(a)


class ChunkedMargin(Oracle):
    """Values and gradients of the objective; a gradient on a kink is refused."""

    knows_kinks = True
    neighbourhood = 0.0

    def __init__(
        self,
        rows: ChunkedRows,
        rho: float,
        lam: float,
        weights: Vector,
        shift: float,
        intercept: bool,
    ) -> None:
        ridge = np.full(rows.shape[1], lam)
        if intercept:
            ridge[-1] = 0.0
        self.problem = MarginProblem(
            rows, weights, ridge, rho, shift, rows.norms(), np.zeros(rows.shape[1])
        )
        self.dim = rows.shape[1]

    @property
    def name(self) -> str:
        return "margin_svm"

    def value(self, x: Vector) -> float:
        return self.problem.value(x)

    def gradient(self, y: Vector) -> Vector:
        u = self.problem.product(y)
        if not self.problem.clear_of_kinks(y, u):
            raise KinkError("a row sits on a kink of the loss, as far as rounding can tell.", y)
        return self.problem.gradient(y, u)


def _product(block: Any, signs: Vector, v: Vector) -> Vector:
    d = block.shape[1]
    out: Vector = block @ v[:d]
    if v.size > d:
        out = out + v[d]
    return signs * out


def _combination(block: Any, pulls: Vector, intercept: bool) -> Vector:
    answer: Vector = block.T @ pulls
    return np.append(answer, pulls.sum()) if intercept else answer


def _norms(block: Any, intercept: bool) -> Vector:
    return np.hypot(row_norms(np.asarray(block)), 1.0 if intercept else 0.0)


def _rows(block: Any, index: NDArray[np.intp], intercept: bool) -> Vector:
    rows: Vector = np.asarray(block)[index]
    return np.column_stack([rows, np.ones(len(index))]) if intercept else rows
