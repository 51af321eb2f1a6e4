"""The loss of a model over a data set as an oracle, one batch in memory at a time."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from goldstein.errors import InputError, InputTypeError
from goldstein.oracles import Oracle
from goldstein.torch.accumulate import LongSum
from goldstein.torch.replicas import check_replicas, compare, reduce_sum, require_processes, unwrap
from goldstein.torch.vectors import Vector, flatten, require_double, require_real, unflatten

Batch = tuple[torch.Tensor, torch.Tensor]


class DataOracle(Oracle):
    """Mean loss of a private float64 copy of a model, in evaluation mode.

    Parameters
    ----------
    model : Module
        Never changed; a copy is evaluated.
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the batch.
    data : iterable of (input, target) batches
        Visited once per call, so it must start afresh each time (a DataLoader or a list).
    distributed : bool
        Every rank brings its own share of the data; sums are taken over all ranks.

    Attributes
    ----------
    start : ndarray
        The weights, flattened.
    samples : int
        Samples per pass over all ranks, known after the first call.
    converted_from : str or None
        The dtype of the model's parameters when it was not float64.
    """

    def __init__(
        self,
        model: torch.nn.Module,
        loss_fn: Callable[[Any, Any], Any],
        data: Iterable[Any],
        distributed: bool = False,
    ) -> None:
        if not isinstance(model, torch.nn.Module):
            raise InputTypeError(f"model is {type(model).__name__}, expected a torch.nn.Module.")
        if not callable(loss_fn):
            raise InputTypeError(f"loss_fn is {type(loss_fn).__name__}, expected a callable.")
        if not isinstance(data, Iterable) or iter(data) is data:
            raise InputTypeError(
                f"data is {type(data).__name__}, expected something that can be iterated again and "
                "again over (input, target) batches: a DataLoader or a list, not a generator."
            )
        if distributed:
            require_processes()
            check_replicas(model)
        own = unwrap(model)
        given = {p.dtype for p in own.parameters() if p.requires_grad} - {torch.float64}
        self.converted_from = ", ".join(sorted(map(str, given))) or None
        self._model = copy.deepcopy(own).double().eval()
        self._loss_fn = (
            copy.deepcopy(loss_fn).double() if isinstance(loss_fn, torch.nn.Module) else loss_fn
        )
        self._data = data
        self._distributed = distributed
        self._params = [p for p in self._model.parameters() if p.requires_grad]
        require_real(self._params, "model")
        for p in self._model.parameters():
            p.grad = None
        self._name = f"{type(own).__name__} over data"
        self._device = self._params[0].device
        self.start = flatten(self._params)
        self.dim = self.start.size
        self.samples = 0

    @property
    def name(self) -> str:
        return self._name

    def value(self, x: Vector) -> float:
        self._place(x)
        total = LongSum(1, self._device)
        count = 0
        with torch.no_grad():
            for inputs, targets in self._batches():
                total.add(len(targets) * self._loss(inputs, targets).reshape(1))
                count += len(targets)
        return float(self._mean(total, count)[0])

    def gradient(self, y: Vector) -> Vector:
        self._place(y)
        total = LongSum(self.start.size, self._device)
        count = 0
        for inputs, targets in self._batches():
            with torch.enable_grad():
                loss = self._loss(inputs, targets)
                pieces = torch.autograd.grad(loss, self._params, allow_unused=True)
            filled = [
                torch.zeros_like(p) if g is None else g
                for g, p in zip(pieces, self._params, strict=True)
            ]
            total.add(len(targets) * torch.cat([g.reshape(-1) for g in filled]))
            count += len(targets)
        return flatten([self._mean(total, count)])

    def _place(self, x: Vector) -> None:
        if self._distributed:
            compare({"the point of evaluation": hashlib.sha256(x.tobytes()).hexdigest()})
        with torch.no_grad():
            for p, value in zip(self._params, unflatten(x, self._params), strict=True):
                p.copy_(value)

    def _loss(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        loss = self._loss_fn(self._model(inputs), targets)
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
            raise InputTypeError(
                "loss_fn must return one number, the mean over the batch; got "
                f"{tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__}."
            )
        require_double(loss, "the model or loss_fn")
        return loss.reshape(())

    def _batches(self) -> Iterator[Batch]:
        for batch in self._data:
            if not (isinstance(batch, tuple | list) and len(batch) == 2):
                raise InputTypeError(
                    f"data yielded {type(batch).__name__}, expected pairs (input, target)."
                )
            inputs, targets = (_as_double(part, self._device) for part in batch)
            yield inputs, targets

    def _mean(self, total: LongSum, count: int) -> torch.Tensor:
        counted = LongSum(1, self._device)
        counted.add(torch.full_like(counted.high, count))
        samples = round(float(reduce_sum(counted)[0])) if self._distributed else count
        if samples == 0 or (self.samples and samples != self.samples):
            raise InputError(
                f"data yielded {samples} samples in one pass"
                + (f" and {self.samples} in another" if self.samples else "")
                + "; it must give all samples every time it is iterated."
            )
        self.samples = samples
        return (reduce_sum(total) if self._distributed else total.total()) / samples


def _as_double(part: Any, device: torch.device) -> torch.Tensor:
    tensor = torch.as_tensor(part).to(device)
    return tensor.double() if tensor.is_floating_point() else tensor
