"""Online-to-nonconvex conversion as a PyTorch optimizer."""

from __future__ import annotations

import math
from typing import Any

import torch

from goldstein.errors import InputError
from goldstein.numerics.streams import stream
from goldstein.torch.optimizer import Block, CentredOptimizer, add_scaled, global_norm


class O2NC(CentredOptimizer):
    """Online-to-nonconvex conversion with a parameter-free learner.

    An online learner chooses every step inside a ball of radius `D = lr * radius`; the gradient is
    taken at a uniform point of that step (Cutkosky, Mehta and Orabona 2023). The default learner is
    AdaGrad on the ball with a memory of `window` gradients, and knows no constant of the problem.
    The last `window` query points lie within `(window + 1) D` of the iterate, the centre, so their
    mean gradient is an element of the Goldstein subdifferential there. Between steps the parameters
    hold the query point; use `at_center` to evaluate, save or certify.

    Parameters
    ----------
    params : iterable
        Parameters or parameter groups; only `lr` may differ between groups.
    lr : float
        Factor of the radius; schedulers act on it. Let it decay to 0: that is the practical preset.
    seed : int
        All draws are a function of (seed, step): give all replicas the same seed.
    radius : float
        Longest step at `lr = 1`, in the norm of all parameters together.
    window : int
        `M`, how many gradients the learner's step size remembers.
    restart : bool
        True forgets them all at once every `window` steps, as in the theory; False forgets
        gradually, which trained better on every problem tried.
    gradient_scale : float, optional
        `G`, the root mean square of the gradient norm: selects the optimal-rate learner (projected
        online gradient descent with step `D / (G sqrt(window))`) instead of AdaGrad.
    foreach : bool, optional
        Use fused kernels; None decides by the size of the tensors.

    Notes
    -----
    With `restart=True` the learner keeps its last step when a window ends and forgets only its step
    size: the regret bound of AdaGrad on a ball, 3 D sqrt(sum |g|^2), holds from every starting
    point of the ball.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> w = torch.nn.Parameter(torch.tensor([3.0, -2.0], dtype=torch.float64))
    >>> opt = goldstein.torch.O2NC([w], radius=0.1)
    >>> for _ in range(300):
    ...     opt.zero_grad()
    ...     w.abs().sum().backward()
    ...     opt.step()
    >>> with opt.at_center():
    ...     bool(w.abs().sum() < 0.5)
    True
    """

    sign = 1.0

    def __init__(
        self,
        params: Any,
        *,
        lr: float = 1.0,
        seed: int = 0,
        radius: float = 0.15,
        window: int = 21,
        restart: bool = False,
        gradient_scale: float | None = None,
        foreach: bool | None = None,
    ) -> None:
        if not (math.isfinite(radius) and radius > 0.0):
            raise InputError(f"radius = {radius} must be a positive finite number.")
        if isinstance(window, bool) or not isinstance(window, int) or window < 1:
            raise InputError(f"window = {window!r} must be a positive integer; 21 is the default.")
        if gradient_scale is not None and not (
            math.isfinite(gradient_scale) and gradient_scale > 0.0
        ):
            raise InputError(f"gradient_scale = {gradient_scale} must be positive, or None.")
        super().__init__(
            params, lr, seed, foreach, radius=radius, window=window, restart=restart,
            gradient_scale=gradient_scale, square_sum=0.0, direction_scale=1.0,
        )  # fmt: skip

    @property
    def radius(self) -> float:
        """A ball of this radius around the centre holds the query points of the window.

        It assumes that `lr` has not grown since the window began.
        """
        longest = max(float(group["lr"]) for group in self.param_groups)
        reach: float = longest * self.settings["radius"] * (self.settings["window"] + 1)
        return reach

    def _advance(self, blocks: list[Block]) -> None:
        settings = self.settings
        fused = self._fused(blocks)
        norm = global_norm(blocks)
        if not math.isfinite(norm):
            raise self._not_finite()
        if settings["step"] % settings["window"] == 0:
            self._fold_scale(blocks)
        settings["square_sum"] *= self._memory()
        settings["square_sum"] += norm * norm
        gain = self._gain() / settings["direction_scale"]
        for block in blocks:
            directions = block.buffer("direction")
            add_scaled(block.params, directions, block.group["owed"], fused)
            add_scaled(directions, block.gradients, -gain, fused)
        length = global_norm(blocks, "direction")
        # The stored direction times `direction_scale` lies in the unit ball: projecting is free.
        settings["direction_scale"] = min(settings["direction_scale"], 1.0 / max(length, 1e-300))
        position = stream(settings["seed"], settings["step"], "o2nc").random()
        for block in blocks:
            step = block.lr * settings["radius"] * settings["direction_scale"]
            add_scaled(block.params, block.buffer("direction"), position * step, fused)
            block.group["owed"] = (1.0 - position) * step

    def _memory(self) -> float:
        """Share of the past that the learner's step size keeps."""
        if not self.settings["restart"]:
            return 1.0 - 1.0 / float(self.settings["window"])
        return 0.0 if self.settings["step"] % self.settings["window"] == 0 else 1.0

    def _fold_scale(self, blocks: list[Block]) -> None:
        """Multiply the scale into the stored direction, before it grows out of range."""
        for block in blocks:
            torch._foreach_mul_(block.buffer("direction"), self.settings["direction_scale"])
        for group in self.param_groups:
            group["owed"] /= self.settings["direction_scale"]
        self.settings["direction_scale"] = 1.0

    def _gain(self) -> float:
        """Step of the learner relative to the radius: the direction lives in the unit ball."""
        scale = self.settings["gradient_scale"]
        if scale is not None:
            return 1.0 / (float(scale) * math.sqrt(self.settings["window"]))
        total = float(self.settings["square_sum"])
        return 1.0 / math.sqrt(total) if total > 0.0 else 0.0
