"""The draws of `goldstein.numerics.streams.mixed_uniform`, made on a device."""

from __future__ import annotations

import torch

from goldstein.numerics.streams import MIX_INCREMENT, MIX_ROUNDS, MIX_UNIT


def device_uniform(key: int, step: torch.Tensor) -> torch.Tensor:
    """Return the number of (key, step) as a float64 scalar, without reading `step` back.

    Integers of PyTorch wrap around like those of the definition; only its shifts differ, because
    they keep the sign.
    """
    z = step * _signed(MIX_INCREMENT) + _signed(key)
    for shift, factor in MIX_ROUNDS:
        z = (z ^ _shifted(z, shift)) * _signed(factor)
    z = z ^ _shifted(z, 31)
    return _shifted(z, 11).to(torch.float64) * MIX_UNIT


def _shifted(z: torch.Tensor, bits: int) -> torch.Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word
