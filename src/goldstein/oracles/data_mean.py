"""The mean loss over a data set as an oracle, batch by batch."""

from __future__ import annotations

import hashlib
import math
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.long_sum import LongSum
from goldstein.oracles.base import Oracle
from goldstein.oracles.batches import KeptBatches, Trees
from goldstein.oracles.mean_inspection import inspect_mean, uneven

Reduction = Literal["mean", "sum"]
Progress = bool | Callable[[int, int], None]

#: A model with up to this many parameters, of which nothing else is known, computes no more than
#: this many numbers for every number of a batch.
SMALL_MODEL, COMPUTED = 2**17, 32

#: Values that are remembered at most.
KEPT_VALUES = 4096


class DataMean(Oracle):
    """The mean loss over all samples of a data set; a pass over the data per call.

    Before the first answer two passes find out whether there is such a function
    (`goldstein.oracles.mean_inspection`). Data that are small enough are read in these passes only
    (`goldstein.oracles.batches`). Subclasses say how a batch is evaluated.

    Parameters
    ----------
    data : iterable
        Batches; it must start afresh each time it is iterated.
    trees : Trees
    start : ndarray
        The parameters.
    reduction : {"mean", "sum"}
        What the loss of a batch is.

    Attributes
    ----------
    start : ndarray
    samples : int
        Samples per pass, known after the first call.
    """

    #: True when other processes hold batches as well.
    shared = False

    def __init__(self, data: Any, trees: Trees, start: Vector, reduction: Reduction) -> None:
        if not isinstance(data, Iterable) or iter(data) is data:
            raise InputTypeError(
                f"data is {type(data).__name__}, expected something that can be iterated again and "
                f"again over batches: a DataLoader or a list, not a generator.{_samples(data)}"
            )
        if reduction not in ("mean", "sum"):
            raise InputError(f"reduction is {reduction!r}, expected 'mean' or 'sum'.")
        self._data = data
        self.trees = trees
        self.reduction = reduction
        self._kept: list[Any] | None = None
        self._inspected = False
        #: Values that came with gradients, by a fingerprint of the point.
        self._values: dict[bytes, float] = {}
        self._tell: Callable[[], None] | None = None
        self.start = start
        self.dim = start.size
        self.samples = 0

    @abstractmethod
    def move(self, x: Vector) -> None:
        """Put the parameters at x."""

    @abstractmethod
    def loss(self, batch: Any) -> float:
        """Return the loss of a batch at the parameters."""

    @abstractmethod
    def slope(self, batch: Any) -> Vector:
        """Return the gradient of the loss of a batch at the parameters."""

    def loss_and_slope(self, batch: Any) -> tuple[float, Vector]:
        """Return both; the loss is nan where it would cost more than the gradient alone."""
        return math.nan, self.slope(batch)

    def prepared(self, batch: Any) -> Any:
        """Return a batch of the data as `loss` takes it."""
        return batch

    def weight(self, batch: Any) -> float:
        """Return the number that the mean over a batch was divided by, or one in proportion."""
        return self.trees.samples(batch)

    def computed(self, batch: Any) -> float:
        """Return how many numbers are computed for a batch, roughly; inf where that is unknown."""
        small = self.start.size <= SMALL_MODEL
        return COMPUTED * self.trees.numbers(batch) if small else math.inf

    def how_called(self) -> str:
        """Say what a loss that failed was called with."""
        leaves, _ = self.trees.flatten(next(iter(self._data)))
        shapes = ", ".join(str(tuple(np.shape(leaf))) for leaf in leaves)
        return (
            "The loss is called with one batch after the other; the shapes of the first one are: "
            f"{shapes}. If data is one batch, pass [data]."
        )

    def why_not_mean(self, whole: Any, parts: list[Any]) -> str:
        """Return a sentence about what may make the loss depend on the batches."""
        return (
            "Class weights, masks and padding in a mean divide by something else than the number "
            "of samples; batch statistics let the samples of a batch influence each other."
        )

    def value(self, x: Vector) -> float:
        self._inspect_once()
        self._agree_on(x)
        known = self.known_value(x)
        if known is not None:
            return known
        self.move(x)
        sums = LongSum(3)
        for batch in self.batches():
            sums.add(self.terms(batch, self.loss(batch)))
        total, weight, samples = self._total(sums).tolist()
        self._finish_pass(samples)
        return float(total / weight)

    def known_value(self, x: Vector) -> float | None:
        return self._values.get(_fingerprint(x))

    def gradient(self, y: Vector) -> Vector:
        self._inspect_once()
        self._agree_on(y)
        self.move(y)
        sums = LongSum(self.start.size + 3)
        for batch in self.batches():
            loss, slope = self.loss_and_slope(batch)
            sums.add(self.terms(batch, np.append(slope, loss)))
        total = self._total(sums)
        self._finish_pass(total[-1])
        answer: Vector = total[:-3] / total[-2]
        value = float(total[-3] / total[-2])
        if math.isfinite(value):
            if len(self._values) >= KEPT_VALUES:
                self._values.clear()
            self._values[_fingerprint(y)] = value
        return answer

    @property
    def meta(self) -> dict[str, Any]:
        """What a certificate should record of the data."""
        return {"samples": self.samples, "reduction": self.reduction}

    @contextmanager
    def reporting(self, progress: Progress, budget: int) -> Iterator[None]:
        """Tell `progress` after every call how many were made, and of how many at most.

        True writes a line to a terminal.
        """
        if not (isinstance(progress, bool) or callable(progress)):
            raise InputTypeError(
                f"progress is {progress!r}, expected True, False or a callable that takes the "
                "number of passes made and the largest number there can be."
            )
        tell = _line() if progress is True else progress
        made = 0

        def told() -> None:
            nonlocal made
            made += 1
            if callable(tell):
                tell(made, budget)

        self._tell = told
        try:
            yield
        finally:
            self._tell = None

    def batches(self) -> Iterator[Any]:
        """Visit all samples."""
        if self._kept is not None:
            yield from self._kept
            return
        for raw in self._data:
            batch = self.prepared(raw)
            # Nothing counts in it: its mean is 0 / 0.
            if self.reduction == "sum" or self.weight(batch) > 0:
                yield batch

    def terms(self, batch: Any, answer: float | Vector) -> Vector:
        """Return what a batch adds to the total, to the number it is divided by, to the samples."""
        samples, factor = self.trees.samples(batch), self.factor(batch)
        share = factor if self.reduction == "mean" else samples
        return np.append(factor * np.asarray(answer), [share, samples])

    def factor(self, batch: Any) -> float:
        """Return by what the loss of a batch is multiplied in the total."""
        return self.weight(batch) if self.reduction == "mean" else 1.0

    def _agree_on(self, x: Vector) -> None:
        """Make sure that all processes are about to visit the same point."""

    def _total(self, sums: LongSum) -> Vector:
        return sums.total()

    def _finish_pass(self, samples: float) -> None:
        if samples == 0 or (self.samples and samples != self.samples):
            raise uneven(samples, self.samples)
        self.samples = round(samples)
        if self._tell is not None:
            self._tell()

    def _inspect_once(self) -> None:
        if not self._inspected:
            self._inspect()
            self._inspected = True

    def _inspect(self) -> None:
        kept = KeptBatches(self.trees, self.computed)
        inspect_mean(self, kept.add)
        self._kept = kept.all()


def _samples(data: Any) -> str:
    """What to do with a data set that gives samples, not batches."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return f" This one gives samples: pass DataLoader({type(data).__name__}, batch_size=...)."
    return ""


def _fingerprint(x: Vector) -> bytes:
    return hashlib.blake2b(x.tobytes(), digest_size=16).digest()


def _line() -> Callable[[int, int], None]:
    began = time.perf_counter()

    def write(calls: int, most: int) -> None:
        if sys.stderr.isatty():
            seconds = time.perf_counter() - began
            sys.stderr.write(f"\rpass {calls} over the data, of at most {most}   {seconds:.1f} s  ")
            sys.stderr.flush()

    return write
