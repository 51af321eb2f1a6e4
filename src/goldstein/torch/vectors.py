"""Between lists of tensors and one float64 vector."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence

import torch

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError


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


def trainable(
    module: torch.nn.Module,
) -> tuple[list[torch.Tensor], Callable[[list[torch.Tensor]], dict[str, torch.Tensor]]]:
    """Return the parameters that require gradients, and what gives tensors their names."""
    named = [(name, p) for name, p in module.named_parameters() if p.requires_grad]
    names = [name for name, _ in named]
    return [p for _, p in named], lambda tensors: dict(zip(names, tensors, strict=True))


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
