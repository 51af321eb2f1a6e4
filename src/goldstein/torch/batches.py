"""Batches of PyTorch, how a model is called with them, and what its losses divide by."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from numbers import Number
from typing import Any

import numpy as np
import torch
from torch.nn import functional
from torch.utils._pytree import tree_flatten, tree_unflatten

from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.data_mean import Trees


def _flatten(batch: Any) -> tuple[list[Any], Callable[[list[Any]], Any]]:
    leaves, structure = tree_flatten(batch)
    return leaves, lambda others: tree_unflatten(others, structure)


TREES = Trees(_flatten, torch.cat, lambda tensor: tensor.cpu().numpy())


def as_double(part: Any, device: torch.device) -> Any:
    """Return containers of tensors on a device, the real ones in float64; the rest as it is."""
    if isinstance(part, torch.Tensor):
        tensor = part.to(device)
        return tensor.double() if tensor.is_floating_point() else tensor
    if isinstance(part, np.ndarray | Number) or _is_table(part):
        return as_double(torch.as_tensor(part), device)
    if isinstance(part, Mapping):
        return {name: as_double(entry, device) for name, entry in part.items()}
    if isinstance(part, tuple | list):
        return tuple(as_double(entry, device) for entry in part)
    return part


def require_batch(batch: Any) -> None:
    """Refuse what is neither inputs and targets nor a dict."""
    if isinstance(batch, Mapping) or (isinstance(batch, tuple | list) and len(batch) > 1):
        return
    raise InputTypeError(
        f"data yielded {type(batch).__name__}, expected batches: pairs (input, target), tuples "
        "(input, ..., target), or dicts. If data is one batch, pass [data]."
    )


class Caller:
    """Calls a model with the inputs of a batch.

    A tensor is passed as it is, a tuple as several arguments, a dict by name; of a batch that is a
    dict those entries that the model takes. `call` is called in place of the model.
    """

    def __init__(self, model: torch.nn.Module, call: Callable[..., Any] | None = None) -> None:
        self._forward, self._model = model.forward, call or model

    @cached_property
    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self._forward).parameters

    def __call__(self, batch: Any) -> tuple[Any, Any]:
        """Return the model's output, and what the loss compares it with."""
        if isinstance(batch, dict):
            takes = self._parameters
            every = any(p.kind is p.VAR_KEYWORD for p in takes.values())
            return self._model(**{n: batch[n] for n in batch if every or n in takes}), batch
        *inputs, target = batch
        given = inputs[0] if len(inputs) == 1 else inputs
        if isinstance(given, dict):
            return self._model(**given), target
        return self._model(*(given if isinstance(given, tuple | list) else [given])), target


def _is_table(part: Any) -> bool:
    """True for lists of numbers, and lists of such lists."""
    if not (isinstance(part, tuple | list) and part):
        return False
    return all(isinstance(entry, Number) or _is_table(entry) for entry in part)


WEIGHTED = (torch.nn.CrossEntropyLoss, torch.nn.NLLLoss)
WEIGHTED_FUNCTIONS = (functional.cross_entropy, functional.nll_loss)


def divisor(loss_fn: Any, reduction: str) -> Callable[[Any], float] | None:
    """Return what the loss divides by, as a function of the targets; None for a plain mean.

    Cross-entropy with class weights divides by the weights of the targets, and leaves out those
    that are to be ignored: its mean over all data is not the mean of the means over batches.

    Examples
    --------
    >>> import torch
    >>> loss_fn = torch.nn.CrossEntropyLoss(weight=torch.tensor([1.0, 3.0]))
    >>> divisor(loss_fn, "mean")(torch.tensor([0, 1, -100]))
    4.0
    """
    settings = _settings(loss_fn)
    own = settings.get("reduction")
    if own is not None and own != reduction and own in ("mean", "sum"):
        raise InputError(
            f"loss_fn has reduction={own!r}, but it is taken for the {reduction} over the batch; "
            f"pass reduction={own!r} here too, or change that of loss_fn."
        )
    if reduction == "sum" or "ignore_index" not in settings:
        return None
    return partial(_counted, settings["weight"], settings["ignore_index"])


def _settings(loss_fn: Any) -> dict[str, Any]:
    """Return the reduction of a loss of PyTorch, and the weights if it has some."""
    if type(loss_fn) in WEIGHTED:
        names = ("weight", "ignore_index", "reduction")
        return {name: getattr(loss_fn, name) for name in names}
    if isinstance(loss_fn, torch.nn.Module):
        return {"reduction": getattr(loss_fn, "reduction", None)}
    given: dict[str, Any] = {}
    function = loss_fn
    if isinstance(loss_fn, partial) and not loss_fn.args:
        function, given = loss_fn.func, loss_fn.keywords
    if function in WEIGHTED_FUNCTIONS:
        return {"weight": None, "ignore_index": -100, "reduction": "mean", **given}
    return {}


def _counted(weight: torch.Tensor | None, ignored: int, target: Any) -> float:
    if not isinstance(target, torch.Tensor):
        return 1.0
    if target.is_floating_point():  # probabilities of the classes, which are dimension 1
        return float(target.numel() / target.shape[1]) if target.ndim > 1 else 1.0
    kept = target[target != ignored]
    return float(kept.numel() if weight is None else weight.to(kept.device)[kept].double().sum())
