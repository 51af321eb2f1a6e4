"""What the optimizers share: global norms, replayable draws, a centre to evaluate at."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, overload

import torch

from goldstein.errors import InputError, InputTypeError
from goldstein.torch.oracle import digest

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
        here: str = digest(param.detach() for param, _ in self._moving())
        return here == self._places[place]

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
