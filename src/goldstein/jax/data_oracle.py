"""The mean loss over a data set as an oracle, for a JAX model."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.jax.compiled import Compiled, raveled
from goldstein.oracles.batches import Trees
from goldstein.oracles.data_mean import DataMean, Reduction


def _flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, structure = jax.tree.flatten(batch)
    return leaves, partial(jax.tree.unflatten, structure)


TREES = Trees(_flatten, np.concatenate, np.asarray)


class DataOracle(DataMean):
    """Mean of `loss(params, batch)` over all samples, computed in float64.

    Parameters
    ----------
    loss : callable
        `loss(params, batch)`, traceable: a mean over the samples of the batch.
    params : pytree
    batches : iterable of pytrees
        Arrays with one row per sample. It must start afresh each time it is iterated, and give the
        same samples, in any order.
    reduction : {"mean", "sum"}
        What `loss` returns for a batch. The sum over all data is divided by the number of samples.

    Attributes
    ----------
    start : ndarray
        The parameters, flattened.
    samples : int
        Samples per pass, known after the first call.
    converted_from : str or None
        The dtype of the parameters when it was not float64.
    """

    def __init__(
        self,
        loss: Callable[[Any, Any], Any],
        params: Any,
        batches: Iterable[Any],
        reduction: Reduction = "mean",
    ) -> None:
        if not callable(loss):
            raise InputTypeError(f"loss is {type(loss).__name__}, expected loss(params, batch).")
        start, self._rebuild = raveled(params)
        given = {str(np.asarray(leaf).dtype) for leaf in jax.tree.leaves(params)} - {"float64"}
        self.converted_from = ", ".join(sorted(given)) or None
        self._name = getattr(loss, "__name__", type(loss).__name__)
        self._compiled = Compiled(lambda x, batch: loss(self._rebuild(x), batch), self._name)
        self._point = start
        super().__init__(batches, TREES, start, reduction)

    @property
    def name(self) -> str:
        return f"{self._name} over data"

    @property
    def meta(self) -> dict[str, Any]:
        meta = {**super().meta, "evaluated_in": "float64"}
        if self.converted_from is not None:
            meta["converted_from"] = self.converted_from
        return meta

    def unflatten(self, x: Vector) -> Any:
        """Return a point as a pytree like `params`, in float64."""
        with jax.enable_x64(True):
            return self._rebuild(np.asarray(x, dtype=np.float64))

    def move(self, x: Vector) -> None:
        self._point = x

    def prepared(self, batch: Any) -> Any:
        return jax.tree.map(_as_double, batch)

    def loss(self, batch: Any) -> float:
        return self._compiled.value(self._point, batch)

    def slope(self, batch: Any) -> Vector:
        return self._compiled.gradient(self._point, batch)


def _as_double(leaf: Any) -> Any:
    array = np.asarray(leaf)
    # By name, since bfloat16 is no floating type of NumPy.
    return array.astype(np.float64) if jax.numpy.issubdtype(array.dtype, np.floating) else array
