"""What the two optimizers share: global norms, replayable draws, a centre to evaluate at."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

import torch

from goldstein.errors import InputError, InputTypeError

#: Below this mean size, many small tensors are better served by the fused `foreach` kernels.
FOREACH_BELOW = 65_536

Tensors = list[torch.Tensor]


@dataclass
class Block:
    """The parameters of one group that received a gradient."""

    group: dict[str, Any]
    params: Tensors
    gradients: Tensors
    states: list[dict[str, Any]]

    @property
    def lr(self) -> float:
        """Learning rate of the group."""
        return float(self.group["lr"])

    def buffer(self, name: str) -> Tensors:
        """Return the state tensors called `name`, in the order of the parameters."""
        return [state[name] for state in self.states]


class CentredOptimizer(torch.optim.Optimizer):
    """An optimizer whose parameters sit at random query points around a smoother centre.

    Norms are taken over all parameter groups together, every draw is a function of (seed, step),
    and `lr` is the only setting that may differ between groups. Subclasses implement `_begin`
    (state of a parameter), `_advance` (one step) and `_centre` (where to evaluate).

    The gradient of step t is taken at `x + s (x+ - x)`, a random point of the step from x to x+.
    The parameters hold that point; each group remembers in `owed` the factor of the part of the
    step that is still to be made, so that no copy of x is kept.
    """

    def __init__(
        self,
        params: Any,
        *,
        lr: float,
        seed: int,
        foreach: bool | None,
        settings: dict[str, Any],
    ) -> None:
        if isinstance(lr, torch.Tensor):
            lr = float(lr)
        if not (math.isfinite(lr) and lr >= 0.0):
            raise InputError(
                f"lr = {lr} must be a finite number, zero or more; 1.0 is the default."
            )
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"seed = {seed!r} must be a non-negative integer.")
        common = {"lr": lr, "seed": seed, "foreach": foreach, "step": 0, "owed": 0.0}
        super().__init__(params, {**common, **settings})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; only its `lr` may differ from the others."""
        for key, default in self.defaults.items():
            if key != "lr" and param_group.get(key, default) != default:
                raise InputError(
                    f"{key} = {param_group[key]} in one parameter group, {default} in the others: "
                    "the method takes one step in all parameters together, only lr may differ."
                )
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if not param.is_floating_point():
                raise InputTypeError(
                    f"a parameter has dtype {param.dtype}, expected a real floating-point one."
                )

    @property
    def settings(self) -> dict[str, Any]:
        """The settings all groups share, the step counter included."""
        return self.param_groups[0]

    @overload
    def step(self, closure: None = None) -> None: ...
    @overload
    def step(self, closure: Callable[[], float]) -> float: ...
    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Take one step from the gradients in `.grad`; a closure is accepted but never needed."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        blocks = list(self._blocks())
        if blocks:
            self._advance(blocks)
        self.settings["step"] += 1
        return loss

    @contextmanager
    def at_center(self) -> Iterator[None]:
        """Show the centre in the parameters: evaluate, save and certify inside this block.

        The query points come back, bit for bit, when the block ends.
        """
        moved = [
            (param, self._centre(param, self.state[param], group))
            for group in self.param_groups
            for param in group["params"]
            if self.state.get(param)
        ]
        kept = [param.detach().clone() for param, _ in moved]
        with torch.no_grad():
            for param, centre in moved:
                param.copy_(centre)
        try:
            yield
        finally:
            with torch.no_grad():
                for (param, _), query in zip(moved, kept, strict=True):
                    param.copy_(query)

    @abstractmethod
    def _begin(self, param: torch.Tensor, gradient: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the state of a parameter that meets its first gradient."""

    @abstractmethod
    def _advance(self, blocks: list[Block]) -> None:
        """Take one step in all parameters that received a gradient."""

    @abstractmethod
    def _centre(
        self, param: torch.Tensor, state: dict[str, torch.Tensor], group: dict[str, Any]
    ) -> torch.Tensor:
        """Return the centre of one parameter."""

    def _blocks(self) -> Iterator[Block]:
        """Yield the groups; a known parameter without a gradient has the gradient zero."""
        for group in self.param_groups:
            params = [p for p in group["params"] if p.grad is not None or self.state.get(p)]
            for param in params:
                if param.grad is not None and param.grad.is_sparse:
                    raise InputTypeError(
                        "sparse gradients are not supported, the norm of the whole gradient is "
                        "needed; build the layer with sparse=False."
                    )
                if not self.state[param]:
                    self.state[param].update(self._begin(param, param.grad))
            if params:
                yield Block(
                    group=group,
                    params=params,
                    gradients=[torch.zeros_like(p) if p.grad is None else p.grad for p in params],
                    states=[self.state[p] for p in params],
                )

    def _fused(self, blocks: Iterable[Block]) -> bool:
        chosen = self.settings["foreach"]
        if chosen is not None:
            return bool(chosen)
        sizes = [p.numel() for block in blocks for p in block.params]
        return len(sizes) > 1 and sum(sizes) < FOREACH_BELOW * len(sizes)


def global_norm(tensors: Tensors) -> float:
    """Return the Euclidean norm of all entries of all tensors."""
    return math.hypot(*torch.stack(torch._foreach_norm(tensors)).tolist())


def add_scaled(target: Tensors, source: Tensors, alpha: float, fused: bool) -> None:
    """`target += alpha * source`, in place."""
    if fused:
        torch._foreach_add_(target, source, alpha=alpha)
        return
    for t, s in zip(target, source, strict=True):
        t.add_(s, alpha=alpha)


def move_towards(target: Tensors, source: Tensors, weight: float, fused: bool) -> None:
    """`target += weight * (source - target)`, in place."""
    if fused:
        torch._foreach_lerp_(target, source, weight)
        return
    for t, s in zip(target, source, strict=True):
        t.lerp_(s, weight)


def not_finite(step: int) -> InputError:
    """Return the error for a gradient that is not finite; the iterate has not been touched."""
    return InputError(
        f"the gradient is not finite at step {step}; the iterate was left as it was, so training "
        "can go on. Lower lr, or use torch.amp.GradScaler, which skips such steps."
    )
