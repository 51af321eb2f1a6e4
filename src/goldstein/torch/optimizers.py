"""O2NC, PSINGD and AdamO2NC as PyTorch optimizers.

First what they share: global norms, replayable draws, a centre to evaluate at.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch

from goldstein.errors import InputError, InputTypeError
from goldstein.numerics import streams
from goldstein.solvers import stochastic_schedules
from goldstein.torch.replicas import digest

#: Keys that only saved states have: the query points, and fingerprints of both places.
QUERY, PLACES = "query", "places"

Tensors = list[torch.Tensor]


def require(allowed: bool, name: str, given: Any, wanted: str) -> None:
    """Refuse a setting: what was given, and what was expected."""
    if not allowed:
        raise InputError(f"{name} = {given!r} must be {wanted}.")


def is_count(number: Any) -> bool:
    """Whether it is a positive integer."""
    return isinstance(number, int) and not isinstance(number, bool) and number >= 1


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
    and `lr` is the only setting that may differ between groups. Subclasses implement `_advance`
    (one step) and name their `buffers`; a step is along the last one, and `sign` says which way.

    The gradient of step t is taken at `x + s (x+ - x)`, a random point of the step from x to x+.
    The parameters hold that point; each group remembers in `owed` the factor of the part of the
    step that is still to be made, so that no copy of x is kept.
    """

    #: The query points, while the parameters are at the centre.
    _queries: dict[torch.Tensor, torch.Tensor] | None = None

    #: Fingerprints of the parameters that belong to a state that was just loaded.
    _places: dict[str, str] | None = None

    #: The settings that may differ between groups.
    own_settings: tuple[str, ...] = ("lr",)

    #: The tensors of a parameter's state, zero at first.
    buffers: tuple[str, ...] = ("direction",)

    #: The part of a step that is still to be made is `sign * owed` times the last buffer.
    sign: float = -1.0

    #: Below this mean size, many small tensors are better served by the fused `foreach` kernels.
    foreach_below = 65_536

    def __init__(
        self, params: Any, lr: Any, seed: int, foreach: bool | None, maximize: bool, **settings: Any
    ) -> None:
        if isinstance(lr, torch.Tensor) and not settings.get("capturable"):
            lr = float(lr)
        require(math.isfinite(lr) and lr >= 0.0, "lr", lr, "a finite number, zero or more")
        require(seed == 0 or is_count(seed), "seed", seed, "a non-negative integer")
        common = {"lr": lr, "seed": seed, "foreach": foreach, "step": 0, "owed": 0.0,
                  "maximize": maximize}  # fmt: skip
        super().__init__(params, {**common, **settings})

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; only the settings named in `own_settings` may differ from the others."""
        for key, default in self.defaults.items():
            if key not in self.own_settings and param_group.get(key, default) != default:
                raise InputError(
                    f"{key} = {param_group[key]} in one parameter group, {default} in the others: "
                    "the method takes one step in all parameters together, only "
                    f"{' and '.join(self.own_settings)} may differ."
                )
        super().add_param_group(param_group)
        for param in self.param_groups[-1]["params"]:
            if not param.is_floating_point():
                raise InputTypeError(
                    f"a parameter has dtype {param.dtype}, expected a real floating-point one."
                )

    @property
    def _longest(self) -> float:
        """The largest learning rate."""
        return max(float(group["lr"]) for group in self.param_groups)

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
        if self._queries is not None:
            raise InputError(
                "step() inside at_center(): the gradients belong to the query points, which come "
                "back when the block ends. Leave the block first."
            )
        self._require_query_points()
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

        The query points come back, bit for bit, when the block ends. A checkpoint may be made
        inside or outside, as long as model and optimizer are saved in one place; load the model
        before the optimizer.
        """
        if self._queries is not None:  # already there
            yield
            return
        moved = list(self._moving())
        self._queries = {param: param.detach().clone() for param, _ in moved}
        with torch.no_grad():
            for param, group in moved:
                param.copy_(self._moved(param, group, 1.0))
        try:
            yield
        finally:
            with torch.no_grad():
                for param, query in self._queries.items():
                    param.copy_(query)
            self._queries = None

    def state_dict(self) -> dict[str, Any]:
        """Return the state; it knows the query points and the centre, to tell them when loaded."""
        packed = super().state_dict()
        order = [param for group in self.param_groups for param in group["params"]]
        moved = list(self._moving())
        queries = self._queries or {param: param.detach() for param, _ in moved}
        if self._queries is not None:
            for param, query in queries.items():
                index = next(i for i, other in enumerate(order) if other is param)
                packed["state"][index] = {**packed["state"][index], QUERY: query.clone()}
            centres = [param.detach() for param, _ in moved]
        else:
            centres = [self._moved(param, group, 1.0) for param, group in moved]
        first, *others = packed["param_groups"]
        places = {"query": digest(queries.values()), "centre": digest(centres)}
        return {**packed, "param_groups": [{**first, PLACES: places}, *others]}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Load a state; parameters that were saved inside `at_center` go back to query points."""
        if self._queries is not None:
            raise InputError("load_state_dict() inside at_center(); leave the block first.")
        first, *others = state_dict["param_groups"]
        first = dict(first)
        self._places = first.pop(PLACES, None)
        super().load_state_dict({**state_dict, "param_groups": [first, *others]})
        moved = list(self._moving())
        queries = {param: self.state[param].pop(QUERY, None) for param, _ in moved}
        if self._places is None or not self._is_at("centre"):
            return
        with torch.no_grad():
            for param, group in moved:
                query = queries[param]
                param.copy_(self._moved(param, group, -1.0) if query is None else query)
        self._places = None

    def _require_query_points(self) -> None:
        """Notice a model that was loaded after the optimizer: the gradients are of the centre."""
        if self._places is not None and not self._is_at("query") and self._is_at("centre"):
            raise InputError(
                "the parameters are those of at_center(), loaded after the optimizer: load the "
                "model first, then the optimizer, which moves it back to its query points."
            )
        self._places = None

    def _is_at(self, place: str) -> bool:
        assert self._places is not None
        return digest(param.detach() for param, _ in self._moving()) == self._places[place]

    def _moving(self) -> Iterator[tuple[torch.Tensor, dict[str, Any]]]:
        """Yield the parameters that have a centre, and their groups."""
        for group in self.param_groups:
            for param in group["params"]:
                if self.state.get(param):
                    yield param, group

    def _begin(self, param: torch.Tensor, gradient: torch.Tensor) -> dict[str, torch.Tensor]:
        """Return the state of a parameter that meets its first gradient."""
        return {name: torch.zeros_like(param) for name in self.buffers}

    @abstractmethod
    def _advance(self, blocks: list[Block]) -> None:
        """Take one step in all parameters that received a gradient."""

    def _moved(self, param: torch.Tensor, group: dict[str, Any], share: float) -> torch.Tensor:
        """Return a parameter after this share of what is owed: 1 leads from query to centre."""
        step = self.state[param][self.buffers[-1]]
        return torch.add(param.detach(), step, alpha=share * self.sign * float(group["owed"]))

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
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in params]
            if group.get("maximize"):
                gradients = [-g for g in gradients]
            for param, gradient in zip(params, gradients, strict=True):
                if not self.state[param]:
                    self.state[param].update(self._begin(param, gradient))
            if params:
                yield Block(group, params, gradients, [self.state[p] for p in params])

    def _finite(self, norm: float) -> float:
        """Refuse the norm of a gradient that is not finite; the iterate has not been touched."""
        if math.isfinite(norm):
            return norm
        raise InputError(
            f"the gradient is not finite at step {self.settings['step']}; the iterate was left as "
            "it was, so training can go on. Lower lr, or use torch.amp.GradScaler, which skips "
            "such steps."
        )

    def _fused(self, blocks: Iterable[Block]) -> bool:
        chosen = self.settings["foreach"]
        if chosen is not None:
            return bool(chosen)
        sizes = [p.numel() for block in blocks for p in block.params]
        return len(sizes) > 1 and sum(sizes) < self.foreach_below * len(sizes)


def global_norm(blocks: list[Block], name: str = "") -> float:
    """Return the Euclidean norm of all entries of the gradients, or of a buffer."""
    tensors = [t for b in blocks for t in (b.buffer(name) if name else b.gradients)]
    norms = torch.stack(torch._foreach_norm(tensors))
    # Of a sharded tensor every process holds a part.
    whole = norms.full_tensor() if hasattr(norms, "full_tensor") else norms
    return math.hypot(*whole.tolist())


def add_scaled(target: Tensors, source: Tensors, alpha: float | torch.Tensor, fused: bool) -> None:
    """`target += alpha * source`, in place; a tensor `alpha` is not read back."""
    if fused and not isinstance(alpha, torch.Tensor):
        torch._foreach_add_(target, source, alpha=alpha)
        return
    for t, s in zip(target, source, strict=True):
        if isinstance(alpha, torch.Tensor):
            t.addcmul_(s, alpha.to(t.dtype))
        else:
            t.add_(s, alpha=alpha)


def move_towards(target: Tensors, source: Tensors, weight: float, fused: bool) -> None:
    """`target += weight * (source - target)`, in place."""
    if fused:
        torch._foreach_lerp_(target, source, weight)
    else:
        for t, s in zip(target, source, strict=True):
            t.lerp_(s, weight)


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
    maximize : bool
        Climb instead of descend.

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
        maximize: bool = False,
    ) -> None:
        require(0.0 < radius < math.inf, "radius", radius, "a positive finite number")
        require(is_count(window), "window", window, "a positive integer; 21 is the default")
        scaled = gradient_scale is None or 0.0 < gradient_scale < math.inf
        require(scaled, "gradient_scale", gradient_scale, "positive, or None")
        super().__init__(
            params, lr, seed, foreach, maximize, radius=radius, window=window, restart=restart,
            gradient_scale=gradient_scale, square_sum=0.0, direction_scale=1.0,
        )  # fmt: skip

    @property
    def radius(self) -> float:
        """A ball of this radius around the centre holds the query points of the window.

        It assumes that `lr` has not grown since the window began.
        """
        return self._longest * self.settings["radius"] * (self.settings["window"] + 1)

    def _advance(self, blocks: list[Block]) -> None:
        settings = self.settings
        fused = self._fused(blocks)
        norm = self._finite(global_norm(blocks))
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
        position = streams.stream(settings["seed"], settings["step"], "o2nc").random()
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
    maximize : bool
        Climb instead of descend.

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
        maximize: bool = False,
    ) -> None:
        require(0.0 <= averaging < 1.0, "averaging", averaging, "in [0, 1); 0.9 is the default")
        for name, number in (("slope", slope), ("offset", offset)):
            there = number is None or 0.0 < number < math.inf
            require(there, name, number, "a positive finite number")
        require(0.0 <= perturbation < math.inf, "perturbation", perturbation, "zero or more")
        super().__init__(
            params, lr, seed, foreach, maximize, averaging=averaging, slope=slope, offset=offset,
            perturbation=perturbation, square_mean=0.0, square_weight=0.0,
        )  # fmt: skip

    @property
    def window(self) -> int:
        """How many recent gradients hold 95 % of the average's weight."""
        return stochastic_schedules.window_of(self.settings["averaging"])

    @property
    def radius(self) -> float:
        """A ball of this radius around the centre holds the query points of the last window.

        It assumes that `lr` has not grown since the window began.
        """
        slope, share = self.settings["slope"], self.settings["perturbation"]
        return self._longest / slope * (self.window + 1) * (1.0 + share)

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
        self._finite(norm)
        gain = 1.0 / (settings["slope"] * norm + self._offset(blocks))
        draw = streams.stream(settings["seed"], settings["step"], "psingd")
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

    @torch.compiler.disable  # type: ignore[untyped-decorator]
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
    maximize : bool
        Climb instead of descend.
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
        betas: float | tuple[float, float] = stochastic_schedules.PRACTICAL_BETAS,
        weight_decay: float = 0.0,
        seed: int = 0,
        kappa: float = 1.0,
        foresight: float = stochastic_schedules.FORESIGHT,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
    ) -> None:
        averaging, squares = (betas, betas * betas) if isinstance(betas, int | float) else betas
        require(0.0 <= averaging < 1.0, "betas[0]", averaging, "in [0, 1); 0.9 is the default")
        if not averaging**2 * (1.0 - 1e-12) <= squares < 1.0:
            raise InputError(
                f"betas = ({averaging}, {squares}): the second must be at least the square of the "
                "first and less than 1, or the bound on the learner's regret fails. Pass one "
                "number b for (b, b * b)."
            )
        stochastic_schedules.regret_constant(kappa, foresight)  # refuses bad ones
        super().__init__(
            params, lr, seed, foreach, maximize, capturable=capturable, weight_decay=weight_decay,
            betas=(float(averaging), float(squares)), kappa=kappa, foresight=foresight,
        )  # fmt: skip

    @classmethod
    def from_schedule(
        cls, params: Any, schedule: stochastic_schedules.AdamO2NCSchedule, **settings: Any
    ) -> AdamO2NC:
        """Return the optimizer of a schedule.

        `goldstein.solvers.stochastic_schedules` has one for practice and one with the theorem's
        constants; `LambdaLR(optimizer, schedule.shrink)` is its decay.
        """
        chosen = {"betas": schedule.betas, "foresight": schedule.foresight, **settings}
        return cls(params, schedule.step_radius, **chosen)

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group; its `lr` and `weight_decay` may differ from the others."""
        decay = param_group.get("weight_decay", self.defaults["weight_decay"])
        there = math.isfinite(decay) and decay >= 0.0
        require(there, "weight_decay", decay, "a finite number, zero or more")
        super().add_param_group(param_group)
        if self.defaults["capturable"]:
            group = self.param_groups[-1]
            device = group["params"][0].device
            group["owed"] = torch.zeros((), dtype=torch.float64, device=device)
            group["step"] = torch.zeros((), dtype=torch.int64, device=device)

    @property
    def window(self) -> int:
        """How many recent gradients hold 95 % of the average's weight."""
        return stochastic_schedules.window_of(self.settings["betas"][0])

    @property
    def radius(self) -> float:
        """A ball of this radius in the **sup norm** around the centre holds the last window.

        It assumes that `lr` has not grown since the window began, and that `weight_decay` is 0. In
        the Euclidean norm the radius is larger by the root of the number of parameters.
        """
        return self._longest * (self.window + 1)

    def _advance(self, blocks: list[Block]) -> None:
        settings = self.settings
        capturable = settings["capturable"]
        if not capturable:
            self._finite(global_norm(blocks))
        fused = self._fused(blocks)
        uniform: Any = device_uniform if capturable else streams.mixed_uniform
        position = uniform(streams.mixing_key(settings["seed"], "adam-o2nc"), settings["step"])
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
            # Hardly any entry notices it, and 0 / 0 is never asked for.
            torch._foreach_add_(directions, max(torch.finfo(u.dtype).tiny for u in directions))
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
    parts: Any = (block.params, block.gradients)
    params, gradients = ([tensor.to_local() for tensor in part] for part in parts)
    states = [{name: t.to_local() for name, t in state.items()} for state in block.states]
    return Block(block.group, params, gradients, states)


def device_uniform(key: int, step: torch.Tensor) -> torch.Tensor:
    """Return the number of (key, step) as a float64 scalar, without reading `step` back.

    Integers of PyTorch wrap around like those of the definition; only its shifts differ, because
    they keep the sign.
    """
    z = step * _signed(streams.MIX_INCREMENT) + _signed(key)
    for shift, factor in streams.MIX_ROUNDS:
        z = (z ^ _shifted(z, shift)) * _signed(factor)
    z = z ^ _shifted(z, 31)
    return _shifted(z, 11).to(torch.float64) * streams.MIX_UNIT


def _shifted(z: torch.Tensor, bits: int) -> torch.Tensor:
    return (z >> bits) & ((1 << (64 - bits)) - 1)


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word
