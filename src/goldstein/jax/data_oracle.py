"""The mean loss over a data set as an oracle for a JAX model, and its certificate."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import jax
import numpy as np

from goldstein.api.certify_data import certify_data
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.jax.oracle import Compiled, raveled
from goldstein.oracles.batches import Trees
from goldstein.oracles.data_mean import DataMean, Progress, Reduction


def _flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, structure = jax.tree.flatten(batch)
    return leaves, partial(jax.tree.unflatten, structure)


#: `loss(params, batch)`.
Loss = Callable[[Any, Any], Any]

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
        self, loss: Loss, params: Any, batches: Iterable[Any], reduction: Reduction = "mean"
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


def certify(
    loss: Loss,
    params: Any,
    batches: Iterable[Any],
    *,
    delta: float,
    eps: float = 0.0,
    seed: int = 0,
    max_calls: int | None = None,
    reduction: Reduction = "mean",
    progress: Progress = False,
) -> GoldsteinCertificate:
    """Prove how stationary trained parameters are, for the mean loss over all of `batches`.

    Everything is computed in float64, batch by batch. Gradients are taken at random points near the
    parameters only, because automatic differentiation is wrong on kinks. A loss that depends on how
    the samples are batched, that differs when it is asked again, or that is computed in less than
    float64 is refused.

    Parameters
    ----------
    loss : callable
        `loss(params, batch)`, traceable: a mean over the samples of the batch. Dropout must be off.
    params : pytree
    batches : iterable of pytrees
        A list or another re-iterable of arrays with one row per sample. Every pass must give the
        same samples, in any order.
    delta : float
        Radius of the ball around the parameters, in the norm of all of them together.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    seed : int
    max_calls : int, optional
        Passes over the data. By default a dozen or two where the loss visibly falls nearby, and up
        to 600 where it does not.
    reduction : {"mean", "sum"}
        What `loss` returns for a batch; a sum over all data is divided by their number.
    progress : bool or callable
        Called with the number of passes made and the most there can be; True writes a line to a
        terminal.

    Returns
    -------
    GoldsteinCertificate
        Labelled `conditional`: automatic differentiation is trusted at the random points. `meta`
        records samples and dtype. Verify it with
        ``certificate.verify(DataOracle(loss, params, batches))``.

    Examples
    --------
    >>> import goldstein.jax, jax.numpy as jnp
    >>> def loss(params, batch):
    ...     return jnp.abs(batch["x"] @ params["w"] - batch["y"]).mean()
    >>> batches = [{"x": jnp.array([[1.0], [2.0]]), "y": jnp.array([2.0, 4.0])}]
    >>> params = {"w": jnp.array([2.0])}
    >>> goldstein.jax.certify(loss, params, batches, delta=1e-3).eps < 1e-12
    True
    """
    return certify_data(
        DataOracle(loss, params, batches, reduction), delta=delta, eps=eps, seed=seed,
        max_calls=max_calls, progress=progress,
    )  # fmt: skip
