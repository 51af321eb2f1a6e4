"""Any PyTorch scalar as an oracle over one float64 vector."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch

from goldstein.errors import InputTypeError
from goldstein.oracles import Oracle
from goldstein.torch.vectors import Vector, flatten, require_double, require_real, unflatten


class TensorOracle(Oracle):
    """Values and gradients of `fn`, by automatic differentiation in float64.

    The tensors are put at the point that is asked for and put back afterwards, storage and all; no
    graph survives a call.

    Attributes
    ----------
    start : ndarray
        The tensors' values when the oracle was made.
    """

    def __init__(self, fn: Callable[..., Any], params: list[torch.Tensor], spread: bool) -> None:
        self._fn = fn
        self._params = params
        self._spread = spread
        self.start = flatten(params)
        self.dim = self.start.size

    @property
    def name(self) -> str:
        return getattr(self._fn, "__name__", type(self._fn).__name__)

    def value(self, x: Vector) -> float:
        with torch.no_grad():
            return float(self._loss(unflatten(x, self._params)))

    def gradient(self, y: Vector) -> Vector:
        leaves = unflatten(y, self._params)
        with torch.enable_grad():
            for leaf in leaves:
                leaf.requires_grad_(True)
            if self._spread:
                return _gradient(self._fn(*leaves), leaves)
            with _placed(self._params, leaves):
                return _gradient(self._fn(), self._params)

    def _loss(self, leaves: list[torch.Tensor]) -> torch.Tensor:
        if self._spread:
            return _scalar(self._fn(*leaves))
        with _placed(self._params, leaves):
            return _scalar(self._fn())


def oracle(
    fn: Callable[..., Any], params: torch.Tensor | torch.nn.Module | Iterable[torch.Tensor]
) -> TensorOracle:
    """Make an oracle of a PyTorch function, for `goldstein.minimize` and `goldstein.certify`.

    Parameters
    ----------
    fn : callable
        Either a function of as many tensors as there are `params`, or a function without arguments
        that reads `params` itself. It returns a scalar.
    params : tensor, module or iterable of tensors
        What to differentiate by, in order.

    Returns
    -------
    TensorOracle
        An oracle over one vector; `start` is the current point.

    Examples
    --------
    >>> import goldstein, goldstein.torch, torch
    >>> f = goldstein.torch.oracle(lambda x: x.abs().sum(), torch.tensor([3.0, -1.0]))
    >>> goldstein.minimize(f, f.start, eps=1e-3, delta=1e-3, rng=0).success
    True
    """
    if not callable(fn):
        raise InputTypeError(f"fn is {type(fn).__name__}, expected a callable.")
    if isinstance(params, torch.Tensor):
        tensors = [params]
    elif isinstance(params, torch.nn.Module):
        tensors = [p for p in params.parameters() if p.requires_grad]
    else:
        tensors = list(params)
    require_real(tensors, "params")
    return TensorOracle(fn, tensors, _takes_arguments(fn))


def _takes_arguments(fn: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return True
    return any(
        p.kind is p.VAR_POSITIONAL
        or (p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty)
        for p in parameters
    )


@contextmanager
def _placed(params: list[torch.Tensor], values: list[torch.Tensor]) -> Iterator[None]:
    """Give the tensors other values, in float64; put their own storage back afterwards."""
    kept = [(p.data, p.grad, p.requires_grad) for p in params]
    try:
        for p, value in zip(params, values, strict=True):
            p.grad = None
            p.data = value.detach()
            p.requires_grad_(True)
        yield
    finally:
        for p, (data, grad, wanted) in zip(params, kept, strict=True):
            p.data = data
            p.requires_grad_(wanted)
            p.grad = grad


def _scalar(loss: Any) -> torch.Tensor:
    if not isinstance(loss, torch.Tensor) or loss.numel() != 1:
        shown = tuple(loss.shape) if isinstance(loss, torch.Tensor) else type(loss).__name__
        raise InputTypeError(f"fn returned {shown}, expected a tensor with one element.")
    return loss.reshape(())


def _gradient(loss: Any, tensors: list[torch.Tensor]) -> Vector:
    total = _scalar(loss)
    if not total.requires_grad:
        raise InputTypeError(
            "fn's result does not depend on params through differentiable operations; check for "
            "detach(), .item() or no_grad inside fn."
        )
    require_double(total, "fn")
    pieces = torch.autograd.grad(total, tensors, allow_unused=True)
    filled = [torch.zeros_like(t) if g is None else g for g, t in zip(pieces, tensors, strict=True)]
    return flatten(filled)
