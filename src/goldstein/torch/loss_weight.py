"""What PyTorch's own losses divide by when they take a mean."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn import functional

from goldstein.errors import InputError

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
