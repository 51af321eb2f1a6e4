"""The loss of a model over a data set as an oracle, and its certificate; one batch at a time."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
import torch.distributed as dist

from goldstein.api.certify import certify_data
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.numerics.exact import LongSum
from goldstein.oracles.data_mean import ROUNDING, DataMean, Progress, Reduction, require_float64
from goldstein.torch import replicas
from goldstein.torch.oracle import (
    TREES,
    Caller,
    PrecisionWatch,
    as_double,
    divisor,
    flatten,
    gradients,
    listed,
    require_batch,
    require_real,
    unflatten,
)


class DataOracle(DataMean):
    """Mean loss of a private float64 copy of a model, in evaluation mode.

    Parameters
    ----------
    model : Module
        Never changed; a copy is evaluated.
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the batch. Class weights and ignored targets of
        PyTorch's cross-entropy are taken into account.
    data : iterable of batches
        Pairs (input, target), tuples (input, ..., target), or dicts, of which the model is given
        what it takes and `loss_fn(output, batch)` all. Iterated twice before the first answer, and
        once per call if it is too large to be kept; it must start afresh each time (a DataLoader or
        a list) and give the same samples, in any order.
    distributed : bool
        Every rank brings its own share of the data; sums are taken over all ranks.
    reduction : {"mean", "sum"}
        What `loss_fn` returns for a batch. The sum over all data is divided by the number of
        samples.

    Attributes
    ----------
    start : ndarray
        The weights, flattened.
    samples : int
        Samples per pass over all ranks, known after the first call.
    converted_from : str
        The dtype of the model's parameters when it was not float64.
    """

    evaluated_in = "float64, evaluation mode"

    def __init__(
        self,
        model: torch.nn.Module,
        loss_fn: Callable[[Any, Any], Any],
        data: Iterable[Any],
        distributed: bool = False,
        reduction: Reduction = "mean",
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise InputTypeError(f"model is {type(model).__name__}, expected a torch.nn.Module.")
        if not callable(loss_fn):
            raise InputTypeError(f"loss_fn is {type(loss_fn).__name__}, expected a callable.")
        if distributed:
            replicas.require_processes()
            replicas.check_replicas(model)
        own = replicas.unwrap(model)
        replicas.require_whole(own)
        given = {p.dtype for p in own.parameters() if p.requires_grad} - {torch.float64}
        self.converted_from = ", ".join(sorted(map(str, given)))
        self._model = copy.deepcopy(own).double().eval()
        self._call = Caller(self._model)
        self._loss_fn = (
            copy.deepcopy(loss_fn).double() if isinstance(loss_fn, torch.nn.Module) else loss_fn
        )
        self.shared = distributed
        self._params, self._named = listed(self._model)
        require_real(self._params, "model")
        for p in self._model.parameters():
            p.grad = None
        self._name = f"{type(own).__name__} over data"
        self._device = self._params[0].device
        self._watched: set[str] = set()
        #: Numbers that are computed for each number of a batch.
        self._computed = math.inf
        super().__init__(data, TREES, flatten(self._params), reduction)
        self._divisor = divisor(self._loss_fn, reduction)

    @property
    def name(self) -> str:
        return self._name

    @property
    def meta(self) -> dict[str, Any]:
        return {**super().meta, "processes": dist.get_world_size() if self.shared else 1}

    def unflatten(self, x: Vector) -> dict[str, torch.Tensor]:
        """Return a point as float64 tensors by name, for `load_state_dict(..., strict=False)`."""
        named: dict[str, torch.Tensor] = self._named(unflatten(x, self._params))
        return named

    def move(self, x: Vector) -> None:
        with torch.no_grad():
            pieces = torch.split(torch.from_numpy(x), [p.numel() for p in self._params])
            for p, piece in zip(self._params, pieces, strict=True):
                p.copy_(piece.view_as(p))

    def prepared(self, batch: Any) -> Any:
        require_batch(batch)
        return as_double(batch, self._device)

    def weight(self, batch: Any) -> float:
        if self._divisor is None or isinstance(batch, dict):
            return super().weight(batch)
        return self._divisor(batch[-1])

    def computed(self, batch: Any) -> float:
        return self._computed * self.trees.numbers(batch)

    def loss(self, batch: Any) -> float:
        with torch.no_grad(), self._watching("value") as watch:
            answer = float(self._tensor(batch))
        if watch is not None:
            self._computed = 1.0 + watch.numbers / max(1, self.trees.numbers(batch))
        return answer

    def slope(self, batch: Any) -> Vector:
        return self.loss_and_slope(batch)[1]

    def loss_and_slope(self, batch: Any) -> tuple[float, Vector]:
        with torch.enable_grad(), self._watching("gradient"):
            loss = self._tensor(batch)
            slope = gradients(loss, self._params)
        return float(loss.detach()), flatten(slope)

    def _watching(self, question: str) -> Any:
        """The first time all steps are watched, for the values and for the gradients."""
        if question in self._watched:
            return nullcontext()
        self._watched.add(question)
        return PrecisionWatch(self._params, "the model or loss_fn")

    def _tensor(self, batch: Any) -> torch.Tensor:
        loss = self._loss_fn(*self._call(batch))
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InputTypeError(
                f"loss_fn must return one number, the {self.reduction} over the batch; got "
                f"{tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__}."
            )
        require_float64(loss.dtype, "the model or loss_fn")
        return loss.reshape(())

    def _agree_on(self, x: Vector) -> None:
        if self.shared:
            replicas.require_same_point(x)

    def _total(self, sums: LongSum) -> Vector:
        return replicas.reduce_sum(sums, self._device) if self.shared else sums.total()

    def _inspect(self) -> None:
        if not self.shared:
            super()._inspect()
            return
        failure: Exception | None = None
        try:
            super()._inspect()
        except Exception as found:
            failure = found
        replicas.agree_on_failure(failure)

    def why_not_mean(self, whole: Any, parts: list[Any]) -> str:
        with torch.no_grad():
            together = TREES.arrays(self._call(whole)[0])
            apart = [TREES.arrays(self._call(part)[0]) for part in parts]
        if not together:
            return super().why_not_mean(whole, parts)
        for column in zip(together, *apart, strict=False):
            expected, found = column[0].double(), torch.cat(column[1:]).double()
            size = float(expected.abs().max()) if expected.numel() else 0.0
            if expected.shape == found.shape and not torch.allclose(
                found, expected, rtol=0.0, atol=ROUNDING * size
            ):
                return (
                    "The model's output for a sample depends on the other samples of the batch: "
                    "batch normalisation without running statistics does that (build it with "
                    "track_running_stats=True), and everything else that looks at a whole batch."
                )
        return (
            "The model's outputs do not depend on the batch, so it is the loss: class weights, "
            "ignored targets and masks in a mean divide by something else than the number of "
            "samples (those of torch.nn.CrossEntropyLoss and torch.nn.functional.cross_entropy are "
            "understood where loss_fn is that very object)."
        )


def certify(
    model: torch.nn.Module,
    loss_fn: Callable[[Any, Any], Any],
    data: Iterable[Any],
    *,
    delta: float,
    eps: float = 0.0,
    seed: int = 0,
    max_calls: int | None = None,
    distributed: bool = False,
    reduction: Reduction = "mean",
    progress: Progress = False,
) -> GoldsteinCertificate:
    """Prove how stationary a trained model is, for the mean loss over all of `data`.

    A private copy is evaluated in float64 and in evaluation mode, batch by batch: the model is left
    alone, memory does not grow with the number of samples (data up to 256 MB are kept), and no
    graph is retained. Gradients are taken at random points near the weights only, never at the
    weights themselves, because automatic differentiation is wrong on kinks. A loss that depends on
    how the samples are batched, that differs when it is asked again, or that is computed in less
    than float64 is refused.

    Parameters
    ----------
    model : Module
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the batch. Class weights and ignored targets of
        `torch.nn.CrossEntropyLoss` and the like count as if all data were one batch.
    data : iterable of batches
        A DataLoader or a list of pairs (input, target), of tuples (input, ..., target), or of
        dicts, of which the model gets what it takes and `loss_fn(output, batch)` all. Every pass
        must give the same samples, in any order.
    delta : float
        Radius of the ball around the weights, in the norm of all weights together.
    eps : float
        Stop as soon as this is reached; 0 asks for the smallest bound the budget allows.
    seed : int
    max_calls : int, optional
        Passes over the data. By default a dozen or two where the loss visibly falls nearby, and up
        to 600 where it does not.
    distributed : bool
        Every rank calls this with its own share of the data (nothing twice) and gets the same
        certificate, that of all the data. Differing replicas raise `DesynchronisedError`.
    reduction : {"mean", "sum"}
        What `loss_fn` returns for a batch; a sum over all data is divided by their number.
    progress : bool or callable
        Called with the number of passes made and the most there can be; True writes a line to a
        terminal.

    Returns
    -------
    GoldsteinCertificate
        Labelled `conditional`: autograd is trusted at the random points. `meta` records samples,
        dtype and mode. Verify it with ``certificate.verify(DataOracle(model, loss_fn, data))``.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> model = torch.nn.Linear(1, 1, bias=False, dtype=torch.float64)
    >>> _ = torch.nn.init.constant_(model.weight, 2.0)
    >>> data = [(torch.tensor([[1.0], [2.0]]), torch.tensor([[2.0], [4.0]]))]
    >>> certificate = goldstein.torch.certify(model, torch.nn.L1Loss(), data, delta=1e-3)
    >>> certificate.eps < 1e-12
    True
    """
    return certify_data(
        DataOracle(model, loss_fn, data, distributed, reduction), delta=delta, eps=eps, seed=seed,
        max_calls=max_calls, progress=progress,
    )  # fmt: skip
