"""Between lists of tensors and one float64 vector; what is computed in less is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.data_mean import require_float64


def flatten(tensors: Sequence[torch.Tensor]) -> Vector:
    """Return a float64 copy of all entries, in order."""
    pieces = [t.detach().to(device="cpu", dtype=torch.float64).reshape(-1) for t in tensors]
    joined: Vector = torch.cat(pieces).numpy().copy()
    return joined


def unflatten(vector: Vector, like: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Return float64 tensors of the shapes and devices of `like`, sharing nothing with `vector`."""
    flat = torch.tensor(vector, dtype=torch.float64)
    pieces = torch.split(flat, [t.numel() for t in like])
    return [piece.view(t.shape).to(t.device) for piece, t in zip(pieces, like, strict=True)]


def gradients(
    loss: torch.Tensor, tensors: Sequence[torch.Tensor], retain: bool = False
) -> list[torch.Tensor]:
    """Return the gradient in each tensor; zeros where the loss does not depend on it."""
    found = torch.autograd.grad(loss, tensors, allow_unused=True, retain_graph=retain)
    return [torch.zeros_like(t) if g is None else g for g, t in zip(found, tensors, strict=True)]


def listed(params: Any) -> tuple[list[torch.Tensor], Callable[[list[torch.Tensor]], Any]]:
    """Return the tensors to differentiate by, and what puts others into the form of `params`.

    `params` is a tensor, a list or a dict of tensors, or a module: then those that require
    gradients, by their names.
    """
    if isinstance(params, torch.Tensor):
        return [params], itemgetter(0)
    if isinstance(params, torch.nn.Module):
        params = {name: p for name, p in params.named_parameters() if p.requires_grad}
    if isinstance(params, Mapping):
        names = tuple(params)
        return list(params.values()), lambda tensors: dict(zip(names, tensors, strict=True))
    return list(params), list


def digest(tensors: Iterable[torch.Tensor]) -> str:
    """Return a fingerprint of all bits."""
    seen = hashlib.sha256()
    for tensor in tensors:
        raw = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        seen.update(raw.numpy().tobytes())
    return seen.hexdigest()


def require_real(tensors: Sequence[torch.Tensor], what: str) -> None:
    """Refuse an empty list and parameters that are not real numbers."""
    if not tensors:
        raise InputError(f"{what} has no parameters that require gradients; nothing to certify.")
    for tensor in tensors:
        if not isinstance(tensor, torch.Tensor) or not tensor.is_floating_point():
            kind = getattr(tensor, "dtype", type(tensor).__name__)
            raise InputTypeError(f"{what} has a parameter of type {kind}, expected real tensors.")


class PrecisionWatch(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """While active, refuse every coarser number that depends on the given tensors.

    It sees all operations, those of the backward pass and of custom functions too, and slows them
    down: one evaluation is watched, not all of them. Yes and no, and whole numbers, end the
    dependence: `(x > 0).float()` is exact. What a program does to the numbers outside of PyTorch
    (`.item()`, NumPy) and sparse tensors are not seen.

    Attributes
    ----------
    numbers : int
        How many such numbers there were.
    """

    def __init__(self, tensors: Iterable[torch.Tensor], what: str) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._what = what
        self.numbers = 0
        # By storage, since views are other tensors; a weak reference keeps its address from being
        # given to another storage, and frees the memory.
        self._marked: dict[int, StorageWeakRef] = {}
        for tensor in tensors:
            self._mark(tensor)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        answer = func(*args, **(kwargs or {}))
        if any(self._is_marked(leaf) for leaf in tree_leaves((args, kwargs))):
            for leaf in tree_leaves(answer):
                if isinstance(leaf, torch.Tensor) and _is_inexact(leaf):
                    require_float64(leaf.dtype, self._what)
                    self._mark(leaf)
                    self.numbers += leaf.numel()
        return answer

    def _mark(self, tensor: torch.Tensor) -> None:
        if tensor.layout is torch.strided:
            storage: Any = tensor.untyped_storage()
            reference = StorageWeakRef(storage)  # type: ignore[no-untyped-call]
            self._marked[reference.cdata] = reference

    def _is_marked(self, leaf: Any) -> bool:
        if not isinstance(leaf, torch.Tensor) or leaf.layout is not torch.strided:
            return False
        return leaf.untyped_storage()._cdata in self._marked


def _is_inexact(tensor: torch.Tensor) -> bool:
    return tensor.is_floating_point() or tensor.is_complex()
