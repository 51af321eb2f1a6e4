"""Per-coordinate online-to-nonconvex conversion: clipped Adam with a theorem."""

from __future__ import annotations

import math
from typing import Any

import torch

from goldstein.errors import InputError
from goldstein.numerics.streams import (
    MIX_INCREMENT,
    MIX_ROUNDS,
    MIX_UNIT,
    mixed_uniform,
    mixing_key,
)
from goldstein.solvers.adam_schedules import (
    FORESIGHT,
    PRACTICAL_BETAS,
    AdamO2NCSchedule,
    regret_constant,
    window_of,
)
from goldstein.torch.optimizer import Block, CentredOptimizer, add_scaled, global_norm


class AdamO2NC(CentredOptimizer):
    """Online-to-nonconvex conversion whose learner, coordinate by coordinate, is clipped Adam.

    With sums `S` of gradients and `V` of their squares, which forget at the rates `betas`, every
    coordinate moves by `-lr clip(kappa (S + foresight g) / sqrt(V), -1, 1)`, where `g` is the last
    gradient, and the next gradient is taken at a uniform point of that step. For constant `lr` and
    `weight_decay=0` a bound holds after finitely many steps without any knowledge of the function:
    docs/adam_o2nc.md states and proves it. Between steps the parameters hold the query point; use
    `at_center` to evaluate, save or certify.

    Parameters
    ----------
    params : iterable
        Parameters or parameter groups; `lr` and `weight_decay` may differ between groups.
    lr : float
        `D`, the longest step of a coordinate. It is about 3 times smaller than a good `lr` of Adam;
        let it decay to 0.
    betas : (float, float)
        Weights of the past in `S` and `V`, `betas[0]**2 <= betas[1]`. One number `b` stands for
        `(b, b * b)`.
    weight_decay : float
        Decoupled, as in AdamW: weights shrink by `lr * weight_decay` per step.
    seed : int
        All draws are a function of (seed, step): give all replicas the same seed.
    kappa : float
        Gain in front of the ratio.
    foresight : float
        How much of the last gradient is expected to come again. Gradients are taken half a step
        behind the iterate on average; without foresight that acts like more momentum, and long
        steps become unstable.
    foreach : bool, optional
        Use fused kernels; None decides by the size of the tensors.
    capturable : bool
        Make steps that never wait for the host: nothing is read back, so they can be captured in a
        CUDA graph. `lr` may then be a tensor, and gradients that are not finite go unnoticed.

    Notes
    -----
    This is Adam with Nesterov's momentum (NAdam), without bias correction, and with the learning
    rate `kappa lr sqrt(1 - b2) / (1 - b1)`, its update clipped at `lr`. Memory: three numbers per
    parameter, one more than Adam.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> w = torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    >>> opt = goldstein.torch.AdamO2NC([w], lr=0.1)
    >>> scheduler = torch.optim.lr_scheduler.LinearLR(opt, 1.0, 0.0, total_iters=300)
    >>> for _ in range(300):
    ...     opt.zero_grad()
    ...     w.abs().sum().backward()
    ...     opt.step()
    ...     scheduler.step()
    >>> with opt.at_center():
    ...     bool(w.abs().sum() < 0.05)
    True
    """

    own_settings = ("lr", "weight_decay")
    buffers = ("average", "square", "direction")
    # Its fused kernels need more memory than one tensor after the other.
    foreach_below = 8192

    def __init__(
        self,
        params: Any,
        lr: float | torch.Tensor = 1e-3,
        *,
        betas: float | tuple[float, float] = PRACTICAL_BETAS,
        weight_decay: float = 0.0,
        seed: int = 0,
        kappa: float = 1.0,
        foresight: float = FORESIGHT,
        foreach: bool | None = None,
        capturable: bool = False,
    ) -> None:
        averaging, squares = (betas, betas * betas) if isinstance(betas, int | float) else betas
        if not 0.0 <= averaging < 1.0:
            raise InputError(f"betas[0] = {averaging} must lie in [0, 1); 0.9 is the default.")
        if not averaging**2 * (1.0 - 1e-12) <= squares < 1.0:
            raise InputError(
                f"betas = ({averaging}, {squares}): the second must be at least the square of the "
                "first and less than 1, or the bound on the learner's regret fails. Pass one "
                "number b for (b, b * b)."
            )
        regret_constant(kappa, foresight)  # refuses bad ones
        super().__init__(
            params, lr, seed, foreach, capturable=capturable, weight_decay=weight_decay,
            betas=(float(averaging), float(squares)), kappa=kappa, foresight=foresight,
        )  # fmt: skip

    @classmethod
    def from_schedule(cls, params: Any, schedule: AdamO2NCSchedule, **settings: Any) -> AdamO2NC:
        """Return the optimizer of a schedule.

        `goldstein.solvers.adam_schedules` has one for practice and one with the theorem's
        constants; `LambdaLR(optimizer, schedule.shrink)` is its decay.
        """
        chosen = {"betas": schedule.betas, "foresight": schedule.foresight, **settings}
        return cls(params, schedule.step_radius, **chosen)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its `lr` and `weight_decay` may differ from the others."""
        decay = param_group.get("weight_decay", self.defaults["weight_decay"])
        if not (math.isfinite(decay) and decay >= 0.0):
            raise InputError(f"weight_decay = {decay} must be a finite number, zero or more.")
        super().add_param_group(param_group)
        if self.defaults["capturable"]:
            group = self.param_groups[-1]
            device = group["params"][0].device
            group["owed"] = torch.zeros((), dtype=torch.float64, device=device)
            group["step"] = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def window(self) -> int:
        """How many recent gradients hold 95 % of the average's weight."""
        return window_of(self.settings["betas"][0])

    @property
    def radius(self) -> float:
        """A ball of this radius in the **sup norm** around the centre holds the last window.

        It assumes that `lr` has not grown since the window began, and that `weight_decay` is 0. In
        the Euclidean norm the radius is larger by the root of the number of parameters.
        """
        return max(float(group["lr"]) for group in self.param_groups) * (self.window + 1)

    def _advance(self, blocks: list[Block]) -> None:
        settings = self.settings
        capturable = settings["capturable"]
        if not capturable:
            norm = global_norm(blocks)
            if not math.isfinite(norm):
                raise self._not_finite()
        fused = self._fused(blocks)
        uniform: Any = device_uniform if capturable else mixed_uniform
        position = uniform(mixing_key(settings["seed"], "adam-o2nc"), settings["step"])
        for block in map(_local, blocks):
            self._finish_step(block, fused)
            self._choose_direction(block, fused)
            group = block.group
            share = position.to(group["owed"].device) if capturable else position
            longest = group["lr"] if capturable else block.lr
            add_scaled(block.params, block.buffer("direction"), -share * longest, fused)
            if capturable:
                # In place: a captured graph reads and writes the same memory in every replay.
                group["owed"].copy_((1.0 - share) * longest)
            else:
                group["owed"] = (1.0 - share) * longest

    @staticmethod
    def _finish_step(block: Block, fused: bool) -> None:
        """Make the rest of the last step, then shrink the weights."""
        group = block.group
        add_scaled(block.params, block.buffer("direction"), -group["owed"], fused)
        if group["weight_decay"] != 0.0:
            torch._foreach_mul_(block.params, 1.0 - group["lr"] * group["weight_decay"])

    def _choose_direction(self, block: Block, fused: bool) -> None:
        """`direction = clip(kappa (S + foresight g) / sqrt(V), -1, 1)`, where 0 / 0 = 0."""
        averaging, squares = block.group["betas"]
        averages, seconds = block.buffer("average"), block.buffer("square")
        directions = block.buffer("direction")
        # `average` is (1 - b) S; `square` is ((1 - b) / kappa)^2 V, so that their ratio is the one
        # above and never overflows. What is foreseen is added and taken away again: a copy of the
        # averages would cost more.
        fresh = ((1.0 - averaging) / block.group["kappa"]) ** 2
        foreseen = (1.0 - averaging) * block.group["foresight"]
        with_it = 1.0 - averaging + foreseen
        if fused:
            torch._foreach_mul_(averages, averaging)
            torch._foreach_add_(averages, block.gradients, alpha=with_it)
            torch._foreach_mul_(seconds, squares)
            torch._foreach_addcmul_(seconds, block.gradients, block.gradients, value=fresh)
            torch._foreach_copy_(directions, seconds)
            torch._foreach_sqrt_(directions)
            torch._foreach_add_(directions, _smallest(directions))
            torch._foreach_reciprocal_(directions)
            torch._foreach_mul_(directions, averages)
            torch._foreach_clamp_min_(directions, -1.0)
            torch._foreach_clamp_max_(directions, 1.0)
            torch._foreach_add_(averages, block.gradients, alpha=-foreseen)
            return
        for m, v, u, g in zip(averages, seconds, directions, block.gradients, strict=True):
            m.mul_(averaging).add_(g, alpha=with_it)  # faster than lerp_
            v.mul_(squares).addcmul_(g, g, value=fresh)
            torch.sqrt(v, out=u).add_(torch.finfo(u.dtype).tiny)
            torch.div(m, u, out=u).clamp_(-1.0, 1.0)
            m.sub_(g, alpha=foreseen)


def _local(block: Block) -> Block:
    """Return the shards that this process holds: every coordinate moves by itself."""
    if not any(hasattr(p, "to_local") for p in block.params):
        return block
    params, gradients = list(map(_shard, block.params)), list(map(_shard, block.gradients))
    states = [{name: _shard(t) for name, t in state.items()} for state in block.states]
    return Block(block.group, params, gradients, states)


def _shard(tensor: Any) -> torch.Tensor:
    own: torch.Tensor = tensor.to_local()
    return own


def _smallest(tensors: list[torch.Tensor]) -> float:
    """Return a number that hardly any entry notices, and that keeps 0 / 0 from being asked."""
    return max(torch.finfo(t.dtype).tiny for t in tensors)


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
