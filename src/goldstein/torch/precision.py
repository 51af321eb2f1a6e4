"""Finds the steps of a PyTorch program that are computed in less than float64."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from goldstein.oracles.precision import require_float64


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
