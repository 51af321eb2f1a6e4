"""A bound on stationarity from random samples: one gradient, block by block, near the weights."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.func import functional_call
from torch.utils.data import DataLoader, IterableDataset

from goldstein.errors import InputError, InputTypeError
from goldstein.torch.batches import TREES, Caller
from goldstein.torch.vectors import gradients


class Samples:
    """The samples of a DataLoader or of a list of batches, by number."""

    def __init__(self, data: Any) -> None:
        self._loader = data if isinstance(data, DataLoader) else None
        if self._loader is not None:
            if isinstance(self._loader.dataset, IterableDataset):
                raise InputTypeError(
                    "data is a DataLoader over an IterableDataset, whose samples cannot be drawn "
                    "at random; pass one over a map-style data set, or a list of batches."
                )
            self.count = len(self._loader.dataset)  # type: ignore[arg-type]
        elif isinstance(data, list | tuple) and data:
            self._batches = data
            self._ends = np.cumsum([TREES.samples(batch) for batch in data])
            self.count = int(self._ends[-1])
        else:
            raise InputTypeError(
                f"data is {type(data).__name__}, expected a DataLoader or a list of batches."
            )
        if self.count < 1:
            raise InputError("data holds no samples.")

    def blocks(self, rng: np.random.Generator, samples: int, blocks: int) -> Iterator[Any]:
        """Draw samples without replacement and yield them in blocks of (almost) equal size."""
        for rows in np.array_split(rng.permutation(self.count)[:samples], blocks):
            yield self._batch(rows)

    def _batch(self, rows: np.ndarray[Any, Any]) -> Any:
        if self._loader is not None:
            collate = self._loader.collate_fn
            return collate([self._loader.dataset[int(i)] for i in rows])
        pieces = []
        for i in rows:
            batch = int(np.searchsorted(self._ends, i, side="right"))
            first = int(self._ends[batch - 1]) if batch else 0
            pieces.append(TREES.rows(self._batches[batch], int(i) - first, int(i) - first + 1))
        joined = TREES.joined(pieces)
        if joined is None:
            raise InputError("samples of different shapes cannot be put into one batch.")
        return joined


#: Samples are looked at in blocks of eight, whose spread says what the choice may hide: not fewer
#: blocks than the first number, or the slack is large, nor more than the second.
FEWEST_BLOCKS, BLOCK, MOST_BLOCKS = 16, 8, 64

#: No block is assumed to have a gradient longer than this many times the longest seen.
LONGER = 1.2


@dataclass(frozen=True)
class Estimate:
    """Mean gradient at a point within `delta`, with what the choice of samples may hide."""

    loss: float
    observed: float
    slack: float
    samples: int
    layers: dict[str, float]


class _Displaced(torch.nn.Module):
    """A model that is called with other parameters than its own."""

    def __init__(self, model: torch.nn.Module, params: dict[str, torch.Tensor]) -> None:
        super().__init__()
        self.__dict__["_model"], self.__dict__["_params"] = model, params
        self.__dict__["forward"] = model.forward  # whose signature says what it takes

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return functional_call(self.__dict__["_model"], self.__dict__["_params"], args, kwargs)


def estimate(
    model: torch.nn.Module,
    loss_fn: Callable[[Any, Any], Any],
    data: Samples,
    *,
    delta: float,
    samples: int,
    confidence: float,
    rng: np.random.Generator,
) -> Estimate:
    """Bound `|grad F(y)|` for a random y within `delta` of the weights.

    The slack is an empirical Bernstein bound over the blocks; it trusts that no block has a much
    longer gradient than those seen. Where all samples are looked at it is 0.
    """
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not named:
        raise InputError("model has no parameters that require gradients.")
    displaced = _nearby(named, delta, rng)
    call = Caller(_Displaced(model, displaced))
    blocks = min(samples, max(FEWEST_BLOCKS, min(samples // BLOCK, MOST_BLOCKS)))
    leaves = list(displaced.values())
    device = leaves[0].device
    mean = [torch.zeros_like(leaf) for leaf in leaves]
    value, squares, longest = 0.0, 0.0, 0.0
    for batch in data.blocks(rng, samples, blocks):
        output, target = call(_moved(batch, device))
        loss = loss_fn(output, target)
        block = gradients(loss, leaves)
        square = _square(block)
        weight = TREES.samples(batch) / samples
        squares += weight * square
        longest = max(longest, math.sqrt(square))
        for total, g in zip(mean, block, strict=True):
            total.add_(g, alpha=weight)
        value += weight * float(loss.detach())
    observed = math.sqrt(_square(mean))
    variance = max(0.0, squares - observed**2) * blocks / max(1, blocks - 1)
    slack = 0.0
    if samples < data.count:
        tail = math.log(4.0 / (1.0 - confidence))
        slack = math.sqrt(2.0 * variance * tail / blocks)
        slack += 7.0 * LONGER * longest * tail / (3.0 * max(1, blocks - 1))
    layers = {name: math.sqrt(_square([g])) for name, g in zip(named, mean, strict=True)}
    return Estimate(value, observed, slack, samples, layers)


def _nearby(
    named: dict[str, torch.nn.Parameter], delta: float, rng: np.random.Generator
) -> dict[str, torch.Tensor]:
    """Return parameters displaced to a random point of the ball: on no kink, almost surely."""
    draw = torch.Generator().manual_seed(int(rng.integers(2**62)))
    noise = {n: torch.randn(p.shape, generator=draw, dtype=torch.float32) for n, p in named.items()}
    dimension = sum(v.numel() for v in noise.values())
    length = math.sqrt(sum(float(v.double().square().sum()) for v in noise.values()))
    # Strictly inside, so that rounding in the precision of the model does not leave the ball.
    reach = 0.99 * delta * float(rng.random()) ** (1.0 / dimension) / max(length, 1e-300)
    return {
        name: (p.detach() + (reach * noise[name]).to(p)).requires_grad_()
        for name, p in named.items()
    }


def _square(tensors: list[torch.Tensor]) -> float:
    return sum(float(t.detach().double().square().sum()) for t in tensors)


def _moved(batch: Any, device: torch.device) -> Any:
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {name: _moved(part, device) for name, part in batch.items()}
    if isinstance(batch, tuple | list):
        return tuple(_moved(part, device) for part in batch)
    return batch
