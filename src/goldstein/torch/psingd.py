"""Algorithm 2 as a PyTorch optimizer."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from goldstein.errors import InputError
from goldstein.numerics.streams import stream
from goldstein.torch.optimizer import Block, CentredOptimizer, add_scaled, global_norm, move_towards

#: Share of the average's weight that a window holds.
WINDOW_SHARE = 0.95

#: The scale of the gradients is updated every so many steps, with this weight on the past.
SCALE_EVERY = 4
SCALE_MEMORY = 0.9

#: Keeps the gain finite when all gradients are zero.
TINY = 1e-300

#: Coordinates perturbed per step; a larger model is perturbed part after part, in turn.
FRESH = 2**15

#: Makes every byte odd: no coordinate stays where it was, and the noise is symmetric.
ODD_BYTES = np.uint64(0x0101010101010101)


class PSINGD(CentredOptimizer):
    """Perturbed stochastic interpolated normalised gradient descent.

    An average `m` of stochastic gradients moves the iterate by `lr m / (p |m| + q)`, a step never
    longer than `lr / p`; the next gradient is taken at a random, slightly perturbed point of that
    step. With the constants of `goldstein.solvers.stochastic_schedules.psingd_theory` this is
    Algorithm 2 of Tian, Zhou and So (2022). The default follows its rule `q ~ p G` with the scale
    `G` of the gradients measured on the way, so that nothing depends on the scale of the loss; let
    `lr` decay to 0. Between steps the parameters hold the query point; use `at_center` to evaluate,
    save or certify.

    Parameters
    ----------
    params : iterable
        Parameters or parameter groups; only `lr` may differ between groups.
    lr : float
        Factor of every step and perturbation; schedulers act on it.
    seed : int
        All draws are a function of (seed, step): give all replicas the same seed.
    averaging : float
        `beta`, weight of the old average.
    slope : float
        `p`, the inverse of the longest step.
    offset : float, optional
        `q`; None takes p times the recent root mean square of the gradient norms. Zhang et al.
        (2020) trained ResNets with slope 1 and offset 10.
    perturbation : float
        `zeta` as a share of the longest step `lr / p`; 0 switches the perturbation off. See Notes.
    foreach : bool, optional
        Use fused kernels; None decides by the size of the tensors.

    Notes
    -----
    Two things differ from the printed algorithm, for the sake of speed and memory. The perturbation
    displaces the whole step instead of tilting it, and stays in the iterate; the proof goes through
    with `L zeta` in place of `(L + G) zeta`, and a window then needs the ball `K (1/p + zeta)`. The
    noise is uniform over 128 levels per coordinate, and models above 32768 parameters receive it
    part after part. In floating point no law has a density; the purpose is to leave the kinks on
    which a model is initialised or quantised.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> w = torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    >>> opt = goldstein.torch.PSINGD([w], lr=0.1)
    >>> for _ in range(300):
    ...     opt.zero_grad()
    ...     w.abs().sum().backward()
    ...     opt.step()
    >>> with opt.at_center():
    ...     bool(w.abs().sum() < 0.5)
    True
    """

    buffers = ("average",)

    def __init__(
        self,
        params: Any,
        *,
        lr: float = 1.0,
        seed: int = 0,
        averaging: float = 0.9,
        slope: float = 1.0,
        offset: float | None = None,
        perturbation: float = 1e-3,
        foreach: bool | None = None,
    ) -> None:
        if not 0.0 <= averaging < 1.0:
            raise InputError(f"averaging = {averaging} must lie in [0, 1); 0.9 is the default.")
        for name, number in (("slope", slope), ("offset", offset)):
            if number is not None and not (math.isfinite(number) and number > 0.0):
                raise InputError(f"{name} = {number} must be a positive finite number.")
        if not (math.isfinite(perturbation) and perturbation >= 0.0):
            raise InputError(f"perturbation = {perturbation} must be zero or more.")
        super().__init__(
            params, lr, seed, foreach, averaging=averaging, slope=slope, offset=offset,
            perturbation=perturbation, square_mean=0.0, square_weight=0.0,
        )  # fmt: skip

    @property
    def window(self) -> int:
        """How many recent gradients hold 95 % of the average's weight."""
        beta = self.settings["averaging"]
        return max(1, math.ceil(math.log(1 - WINDOW_SHARE) / math.log(beta))) if beta else 1

    @property
    def radius(self) -> float:
        """A ball of this radius around the centre holds the query points of the last window.

        It assumes that `lr` has not grown since the window began.
        """
        slope: float = self.settings["slope"]
        longest = max(float(group["lr"]) for group in self.param_groups) / slope
        share: float = self.settings["perturbation"]
        return longest * (self.window + 1) * (1.0 + share)

    def _begin(self, param: torch.Tensor, gradient: torch.Tensor) -> dict[str, torch.Tensor]:
        # A parameter that joins later had the gradient zero so far.
        first = self.settings["step"] == 0
        return {"average": gradient.detach().clone() if first else torch.zeros_like(gradient)}

    def _advance(self, blocks: list[Block]) -> None:
        settings = self.settings
        fused = self._fused(blocks)
        for block in blocks:
            averages = block.buffer("average")
            add_scaled(block.params, averages, -block.group["owed"], fused)
            move_towards(averages, block.gradients, 1.0 - settings["averaging"], fused)
            block.group["owed"] = 0.0
        norm = global_norm(blocks, "average")
        if not math.isfinite(norm):
            # The iterate is intact: forget the average rather than poison the next steps.
            for block in blocks:
                torch._foreach_zero_(block.buffer("average"))
            raise self._not_finite()
        gain = 1.0 / (settings["slope"] * norm + self._offset(blocks))
        draw = stream(settings["seed"], settings["step"], "psingd")
        position = draw.random()
        for block in blocks:
            step = block.lr * gain
            add_scaled(block.params, block.buffer("average"), -position * step, fused)
            block.group["owed"] = (1.0 - position) * step
        if settings["perturbation"] > 0.0:
            self._perturb(blocks, draw)

    def _offset(self, blocks: list[Block]) -> float:
        """Return `q`: what was given, or p times the recent root mean square of gradient norms."""
        settings = self.settings
        if settings["offset"] is not None:
            return float(settings["offset"])
        if settings["step"] % SCALE_EVERY == 0:
            norm = global_norm(blocks)
            settings["square_mean"] += (1.0 - SCALE_MEMORY) * (norm**2 - settings["square_mean"])
            settings["square_weight"] += (1.0 - SCALE_MEMORY) * (1.0 - settings["square_weight"])
        scale = math.sqrt(settings["square_mean"] / settings["square_weight"])
        return max(float(settings["slope"]) * scale, TINY)

    def _perturb(self, blocks: list[Block], draw: np.random.Generator) -> None:
        """Move the query point by fresh noise of norm at most `zeta`."""
        settings = self.settings
        total = sum(p.numel() for block in blocks for p in block.params)
        rounds = -(-total // FRESH)
        first = settings["step"] % rounds * FRESH
        last = min(first + FRESH, total)
        # Raw bytes: Gaussians would cost more than the rest of the step.
        words = np.asarray(draw.bit_generator.random_raw(-(-(last - first) // 8)))
        words |= ODD_BYTES
        levels = torch.from_numpy(words.view(np.int8)[: last - first])
        begin = 0
        for block in blocks:
            # Entries of `levels` are at most 127 in size, so the norm is at most zeta.
            zeta = block.lr * settings["perturbation"] / settings["slope"]
            for param in block.params:
                low, high = max(begin, first), min(begin + param.numel(), last)
                if low < high:
                    entries = param.as_strided((param.numel(),), (1,))[low - begin : high - begin]
                    noise = levels[low - first : high - first].to(param.device)
                    entries.add_(noise, alpha=zeta / (128.0 * math.sqrt(last - first)))
                begin += param.numel()
