"""`Monitor`: how stationary a model is while it trains, at a bounded share of the time."""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import KW_ONLY, asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.func import functional_call
from torch.utils._pytree import tree_map
from torch.utils.data import DataLoader, IterableDataset

from goldstein.errors import InputError, InputTypeError
from goldstein.extras import from_extra
from goldstein.numerics.streams import stream
from goldstein.result import Plotted
from goldstein.torch.optimizers import is_count, require
from goldstein.torch.oracle import TREES, Caller, certify, gradients
from goldstein.torch.replicas import unwrap


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
            return self._loader.collate_fn([self._loader.dataset[int(i)] for i in rows])
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
    call = Caller(model, lambda *args, **kw: functional_call(model, displaced, args, kw))
    blocks = min(samples, max(FEWEST_BLOCKS, min(samples // BLOCK, MOST_BLOCKS)))
    leaves = list(displaced.values())
    device = leaves[0].device
    mean = [torch.zeros_like(leaf) for leaf in leaves]
    value, squares, longest = 0.0, 0.0, 0.0
    for batch in data.blocks(rng, samples, blocks):
        moved = tree_map(lambda t: t.to(device) if isinstance(t, torch.Tensor) else t, batch)
        output, target = call(moved)
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


@dataclass(frozen=True)
class Observation:
    """How stationary a model is, and its loss: read both together.

    Attributes
    ----------
    epoch : int
    loss : float
        Mean loss over the samples that were looked at, in evaluation mode.
    eps : float
        Bound on the distance from 0 to the hull of the gradients within `delta`: `observed +
        slack`.
    observed, slack : float
        What was seen, and what the choice of the samples may hide at this confidence.
    confidence : float
        1 where all data were looked at.
    label : str
        "conditional" for a certificate over all data in float64 that can be verified; "estimated"
        for a bound from some samples, or in the precision of the model.
    samples : int
        How many were looked at.
    delta : float
    relative_eps : float
        `eps` divided by the norm of the gradient at the first look.
    relative_delta : float
        `delta` divided by the norm of the weights.
    layers : dict
        The norm of the same combination of gradients in each parameter tensor, by name, without the
        slack.
    seconds : float
        What this look cost.
    """

    epoch: int
    loss: float
    eps: float
    observed: float
    slack: float
    confidence: float
    label: str
    samples: int
    delta: float
    relative_eps: float
    relative_delta: float
    layers: dict[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def __str__(self) -> str:
        sure = "" if self.confidence == 1.0 else f" with confidence {self.confidence:g}"
        return (
            f"epoch {self.epoch}: loss {self.loss:.4g}, eps <= {self.eps:.3g} at delta "
            f"{self.delta:g} ({self.relative_eps:.2g} of the first gradient){sure}, "
            f"{self.samples} samples, {self.label}"
        )

    def scalars(self) -> dict[str, float]:
        """Return what is written to TensorBoard and to other loggers, by tag."""
        named = {
            "goldstein/eps": self.eps, "goldstein/relative_eps": self.relative_eps,
            "goldstein/observed": self.observed, "goldstein/loss": self.loss,
        }  # fmt: skip
        return {**named, **{f"goldstein/layers/{n}": norm for n, norm in self.layers.items()}}

    def to_record(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


class GoldsteinStopping:
    """Stop when eps, relative to the first gradient, stayed small.

    A network of dead units is stationary too, so training is never stopped by this at a loss that
    is not below the first.

    Parameters
    ----------
    rel_eps : float
        Stop at this share of the norm of the first gradient.
    patience : int
        So many looks in a row must agree.

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> model = torch.nn.Linear(1, 1)
    >>> data = [(torch.ones(8, 1), torch.zeros(8, 1))]
    >>> optimizer = torch.optim.SGD(model.parameters(), 0.2)
    >>> monitor = goldstein.torch.Monitor(model, torch.nn.MSELoss(), data, delta=1e-4,
    ...                                   share=float("inf"),
    ...                                   stopping=goldstein.torch.GoldsteinStopping(1e-2))
    >>> for epoch in range(100):
    ...     optimizer.zero_grad()
    ...     torch.nn.functional.mse_loss(model(data[0][0]), data[0][1]).backward()
    ...     optimizer.step()
    ...     _ = monitor.update(epoch)
    ...     if monitor.should_stop:
    ...         break
    >>> epoch < 50
    True
    """

    def __init__(self, rel_eps: float, patience: int = 3) -> None:
        require(0.0 < rel_eps < math.inf, "rel_eps", rel_eps, "a positive number, such as 1e-3")
        require(is_count(patience), "patience", patience, "a positive integer")
        self.rel_eps = rel_eps
        self.patience = patience

    def reached(self, history: Sequence[Observation]) -> bool:
        """Decide from all looks so far."""
        last = history[-self.patience :]
        if len(last) < self.patience or len(history) < 2:
            return False
        return all(
            seen.relative_eps <= self.rel_eps and seen.loss < history[0].loss for seen in last
        )


#: Samples of the first look, and the fewest of a later one.
FIRST, FEWEST = 64, 32

#: What a look will cost is known roughly: this much of what is left is planned with.
CAUTION = 0.7

#: A certificate over all data costs about as much as estimates from so many times their number: a
#: dozen passes, in float64.
PASSES = 40.0


@dataclass(eq=False, repr=False)
class Monitor(Plotted):
    """Watch how stationary a model becomes, whatever trains it.

    Call `update` after every epoch. A look draws random samples, takes one gradient next to the
    weights, and states a bound that holds with `confidence`; as many samples as the share of the
    time allows, and a certificate over all data where that is affordable. Looks that would cost
    more than `share` of the training time so far are left out.

    Parameters
    ----------
    model : Module
    loss_fn : callable
        `loss_fn(output, target)`, a mean over the samples of a batch.
    data : DataLoader or list of batches
        As in `goldstein.torch.certify`; the data set of a DataLoader must be indexable.
    delta : float
        Radius of the ball around the weights, in the norm of all weights together.
    every : int
        Look at every so many updates.
    share : float
        Largest part of the training time that looking may cost; 0.05 is 5 %, `inf` is no limit.
    optimizer : Optimizer, optional
        One with `at_center` (those of this package) or with `eval` and `train` (schedule-free) is
        asked to show the point to be evaluated.
    certified : bool, optional
        True: look at all data or not at all; False: never; None: when it is affordable.
    confidence : float
    stopping : GoldsteinStopping, optional
        Sets `should_stop`.
    writer : SummaryWriter or path, optional
        Anything with `add_scalar(tag, value, step)`; a path makes one of `torch.utils.tensorboard`.
    seed : int
    clock : callable
        Seconds; for tests.

    Attributes
    ----------
    history : list of Observation
    should_stop : bool

    Examples
    --------
    >>> import torch, goldstein.torch
    >>> model = torch.nn.Linear(2, 1)
    >>> data = [(torch.randn(16, 2), torch.randn(16, 1)) for _ in range(4)]
    >>> monitor = goldstein.torch.Monitor(model, torch.nn.L1Loss(), data, delta=1e-3)
    >>> seen = monitor.update(epoch=0)
    >>> seen.eps > 0 and seen.relative_delta < 1
    True
    """

    model: torch.nn.Module
    loss_fn: Callable[[Any, Any], Any]
    data: Any
    _: KW_ONLY
    delta: float
    every: int = 1
    share: float = 0.05
    optimizer: Any = None
    certified: bool | None = None
    confidence: float = 0.99
    stopping: GoldsteinStopping | None = None
    writer: Any = None
    seed: int = 0
    clock: Callable[[], float] = time.perf_counter

    def __post_init__(self) -> None:
        if not isinstance(self.model, torch.nn.Module):
            raise InputTypeError(
                f"model is {type(self.model).__name__}, expected a torch.nn.Module."
            )
        share, sure = self.share, self.confidence
        require(0.0 < self.delta < math.inf, "delta", self.delta, "a positive finite number")
        require(share > 0.0, "share", share, "positive: 0.05 is 5 %, inf is no limit")
        require(is_count(self.every), "every", self.every, "a positive integer")
        require(0.0 < sure < 1.0, "confidence", sure, "strictly between 0 and 1")
        self.history: list[Observation] = []
        self.should_stop, self.skipped = False, ""
        self._samples, self._writer = Samples(self.data), _as_writer(self.writer)
        self._spent, self._updates, self._per_sample = 0.0, 0, math.nan
        self.start()

    @property
    def cost(self) -> float:
        """What looking has cost so far, as a share of the rest of the time."""
        return self._spent / max(self.clock() - self._began - self._spent, 1e-300)

    def start(self) -> None:
        """Start the clock: what came before was no training. The constructor starts it, too."""
        self._began, self._spent = self.clock(), 0.0

    def __repr__(self) -> str:
        seen = f"last: {self.history[-1]}" if self.history else "nothing seen yet"
        return f"<Monitor, {len(self.history)} looks; {seen}{self.skipped and '; ' + self.skipped}>"

    def update(self, epoch: int | None = None, *, last: bool = False) -> Observation | None:
        """Look at the model if it is time and affordable; return what was seen, or None.

        The first look is always taken, and so is the one after the `last` epoch; where none is,
        `skipped` says why.
        """
        self._updates += 1
        self.skipped = ""
        epoch = self._updates - 1 if epoch is None else epoch
        if (self._updates - 1) % self.every and not last:
            self.skipped = f"epoch {epoch} skipped: every = {self.every}"
            return None
        entered = self.clock()
        training = entered - self._began - self._spent
        allowance = math.inf
        if math.isfinite(self.share) and not last:
            allowance = CAUTION * (self.share * training - self._spent)
        with self._prepared():
            seen = self._look(epoch, allowance)
        if seen is not None:
            self.history.append(seen)
            self._write(seen)
            if self.stopping is not None:
                self.should_stop = self.stopping.reached(self.history)
        self._spent += self.clock() - entered
        return seen

    def save(self, path: str | Path) -> None:
        """Write the history as JSON."""
        Path(path).write_text(json.dumps([seen.to_record() for seen in self.history], indent=1))

    def _look(self, epoch: int, allowance: float) -> Observation | None:
        entered = self.clock()
        everything = self._samples.count
        affordable = allowance / self._per_sample if self._per_sample > 0.0 else FIRST
        whole = self.certified is not False and affordable >= PASSES * everything
        if self.certified is True and not whole and self.history:
            self._too_dear(epoch, PASSES * everything * self._per_sample, allowance)
            return None
        model = unwrap(self.model)
        rng = stream(self.seed, self._updates, "monitor")
        samples = int(min(everything, affordable if self.history else FIRST))
        # A look has costs of its own, however few the samples.
        cheapest = min((seen.seconds for seen in self.history), default=0.0)
        if self.history and (samples < min(FEWEST, everything) or allowance < cheapest):
            self._too_dear(epoch, cheapest, allowance)
            return None
        found = estimate(
            model, self.loss_fn, self._samples, delta=self.delta,
            samples=min(samples, FIRST) if whole else samples,
            confidence=self.confidence, rng=rng,
        )  # fmt: skip
        self._per_sample = (self.clock() - entered) / found.samples
        eps, label, looked = found.observed + found.slack, "estimated", found.samples
        observed, slack, sure = found.observed, found.slack, self.confidence if found.slack else 1.0
        if whole or (self.certified is True and not self.history):
            proof = certify(model, self.loss_fn, self.data, delta=self.delta, seed=self.seed)
            eps, observed, slack, sure = proof.eps, proof.eps, 0.0, 1.0
            label, looked = proof.label, everything
        first = self.history[0].eps / self.history[0].relative_eps if self.history else observed
        weights = math.sqrt(_square(list(model.parameters())))
        return Observation(
            epoch=epoch, loss=found.loss, eps=eps, observed=observed, slack=slack,
            confidence=sure, label=label, samples=looked, delta=self.delta,
            relative_eps=eps / first if first > 0.0 else math.nan,
            relative_delta=self.delta / weights if weights > 0.0 else math.inf,
            layers=found.layers, seconds=self.clock() - entered,
        )  # fmt: skip

    def _too_dear(self, epoch: int, cost: float, allowance: float) -> None:
        """Say why there is no look."""
        self.skipped = (
            f"epoch {epoch} skipped: a look takes about {cost:.2g} s, and share = {self.share:g} "
            f"leaves {max(allowance, 0.0):.2g} s now; raise share, or say update(last=True)"
        )

    @contextmanager
    def _prepared(self) -> Iterator[None]:
        """Evaluation mode, at the point that the optimizer would have evaluated."""
        modes = [(module, module.training) for module in self.model.modules()]
        centre = getattr(self.optimizer, "at_center", nullcontext)
        free = not hasattr(self.optimizer, "at_center") and hasattr(self.optimizer, "eval")
        if free:
            self.optimizer.eval()
        self.model.eval()
        try:
            with torch.enable_grad(), centre():
                yield
        finally:
            for module, training in modes:
                module.training = training
            if free:
                self.optimizer.train()

    def _write(self, seen: Observation) -> None:
        if self._writer is not None:
            for tag, number in seen.scalars().items():
                self._writer.add_scalar(tag, number, seen.epoch)


def _as_writer(writer: Any) -> Any:
    if isinstance(writer, str | Path):
        with from_extra("Monitor(writer=path)", "TensorBoard", "watch"):
            from torch.utils.tensorboard import SummaryWriter
        return SummaryWriter(str(writer))
    if writer is not None and not hasattr(writer, "add_scalar"):
        raise InputTypeError(
            f"writer is {type(writer).__name__}, expected a path or something with add_scalar."
        )
    return writer
