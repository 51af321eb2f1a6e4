"""The mean loss over a data set as an oracle, batch by batch, whatever the framework."""

from __future__ import annotations

import hashlib
import math
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact import LongSum
from goldstein.numerics.streams import stream
from goldstein.oracles.base import Oracle

#: The dtypes of numbers that a small ball is visible in.
DOUBLE = frozenset({"float64", "complex128"})


def require_float64(dtype: object, what: str) -> None:
    """Refuse a dtype in which `what` computed something that depends on the point.

    A result that is cast up again at the end is no better than its coarsest step, so frameworks ask
    this of every step they can see.

    Parameters
    ----------
    dtype : object
        A dtype of NumPy, JAX or PyTorch; its name is compared.
    what : str
        Whose computation it is, for the message.

    Examples
    --------
    >>> import numpy as np
    >>> require_float64(np.dtype(np.float64), "fn")
    >>> require_float64(np.dtype(np.float32), "fn")
    Traceback (most recent call last):
    ...
    goldstein.errors.InputTypeError: fn computed in float32 what depends on the parameters; ...
    """
    name = str(dtype).removeprefix("torch.")
    if name not in DOUBLE:
        raise InputTypeError(
            f"{what} computed in {name} what depends on the parameters; a point moved by less than "
            "the spacing of such numbers does not move at all, and kinks go unnoticed. Remove the "
            "cast (float(), half(), astype, autocast): parameters arrive in float64."
        )


#: Data up to this many bytes are kept: reading them in every pass may cost more than the model.
KEPT_BYTES = 2**28

#: Kept batches are joined as long as this many numbers or fewer are computed for them: few large
#: batches are faster than many small ones, up to what the memory near the processor holds.
JOINED_NUMBERS = 2**20


@dataclass(frozen=True)
class Trees:
    """How a framework takes containers apart, puts them together, and joins its arrays.

    Parameters
    ----------
    flatten : callable
        Returns the leaves of a container, and a function that puts such leaves in their places.
    concatenate : callable
        Joins a list of arrays along their rows; always a copy.
    to_numpy : callable
        Returns an array as a NumPy array.
    """

    flatten: Callable[[Any], tuple[list[Any], Callable[[list[Any]], Any]]]
    concatenate: Callable[[list[Any]], Any]
    to_numpy: Callable[[Any], Any]

    def arrays(self, batch: Any) -> list[Any]:
        """Return the leaves that have rows."""
        return [leaf for leaf in self.flatten(batch)[0] if _has_rows(leaf)]

    def numbers(self, batch: Any) -> int:
        """Return how many numbers a batch holds."""
        return sum(math.prod(array.shape) for array in self.arrays(batch))

    def samples(self, batch: Any) -> int:
        """Return the number of rows of the last array, the targets; 1 where there is no array."""
        arrays = self.arrays(batch)
        return int(arrays[-1].shape[0]) if arrays else 1

    def has_rows_only(self, batch: Any) -> bool:
        """True when all arrays have one row per sample, so that the batch can be cut."""
        return len({int(array.shape[0]) for array in self.arrays(batch)}) == 1

    def rows(self, batch: Any, begin: int, end: int) -> Any:
        """Return the samples from `begin` to `end`."""
        leaves, rebuild = self.flatten(batch)
        return rebuild([leaf[begin:end] if _has_rows(leaf) else leaf for leaf in leaves])

    def halves(self, batch: Any) -> list[Any]:
        """Return two batches with the samples of this one; itself where it cannot be cut.

        Programs that take a single sample for no batch at all are common: nothing that small.
        """
        count = self.samples(batch)
        if count < 4 or not self.has_rows_only(batch):
            return [batch]
        return [self.rows(batch, 0, count // 2), self.rows(batch, count // 2, count)]

    def joined(self, batches: Sequence[Any]) -> Any | None:
        """Return one batch with the samples of all, a copy; None where they do not fit together."""
        taken = [self.flatten(batch)[0] for batch in batches]
        if len(batches) > 1 and not self._alike(batches, taken):
            return None
        leaves = [
            self.concatenate(list(column)) if _has_rows(column[0]) else column[0]
            for column in zip(*taken, strict=True)
        ]
        return self.flatten(batches[0])[1](leaves)

    def _alike(self, batches: Sequence[Any], taken: list[list[Any]]) -> bool:
        first = taken[0]
        return all(self.has_rows_only(batch) for batch in batches) and all(
            len(leaves) == len(first) and all(map(_fit, leaves, first)) for leaves in taken
        )

    def fingerprint(self, batch: Any) -> int:
        """Return a number for the samples of a batch; such numbers add up in any order."""
        count = self.samples(batch)
        cuts = range(count) if self.has_rows_only(batch) else range(1)
        total = 0
        for i in cuts:
            sample = self.rows(batch, i, i + 1) if len(cuts) == count else batch
            seen = hashlib.blake2b(digest_size=8)
            for array in self.arrays(sample):
                seen.update(np.ascontiguousarray(self.to_numpy(array)).tobytes())
            total += int.from_bytes(seen.digest())
        return total % 2**64


class BatchCache:
    """Copies of batches, joined to larger ones, as long as they are not too large for that.

    Parameters
    ----------
    trees : Trees
    computed : callable
        Returns how many numbers are computed for a batch, roughly; inf where none is to be joined.
    """

    def __init__(self, trees: Trees, computed: Callable[[Any], float]) -> None:
        self._trees = trees
        self._computed = computed
        self._bytes_left = KEPT_BYTES
        self._waiting: list[Any] = []
        self._numbers = 0.0
        self._batches: list[Any] | None = []

    def add(self, batch: Any) -> None:
        """Take a copy of a batch."""
        if self._batches is None:
            return
        self._bytes_left -= sum(int(array.nbytes) for array in self._trees.arrays(batch))
        if self._bytes_left < 0:
            self._batches, self._waiting = None, []
            return
        numbers = self._computed(batch)
        if self._numbers + numbers > JOINED_NUMBERS:
            self._join()
        self._waiting.append(self._trees.joined([batch]))
        self._numbers += numbers

    def all(self) -> list[Any] | None:
        """Return the batches; None when they were too large."""
        self._join()
        return self._batches

    def _join(self) -> None:
        waiting, self._waiting, self._numbers = self._waiting, [], 0.0
        if self._batches is None or not waiting:
            return
        whole = self._trees.joined(waiting) if len(waiting) > 1 else waiting[0]
        self._batches.extend(waiting if whole is None else [whole])


def _has_rows(leaf: Any) -> bool:
    return len(getattr(leaf, "shape", ())) > 0


def _fit(one: Any, other: Any) -> bool:
    if _has_rows(one) and _has_rows(other):
        return bool(one.shape[1:] == other.shape[1:] and one.dtype == other.dtype)
    return not _has_rows(one) and not _has_rows(other) and bool(one == other)


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
    (`goldstein.oracles.data_mean`). Data that are small enough are read in these passes only
    (`goldstein.oracles.data_mean`). Subclasses say how a batch is evaluated.

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

    #: How the loss is computed, and from which types the parameters had to be converted for that.
    evaluated_in, converted_from = "float64", ""

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
        self._batches: list[Any] | None = None
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
            sums.add(self.terms(batch, slope, loss))
            del slope
        total = self._total(sums)
        del sums
        self._finish_pass(total[-1])
        total[:-2] /= total[-2]
        answer, value = total[:-3], float(total[-3])
        if math.isfinite(value):
            if len(self._values) >= KEPT_VALUES:
                self._values.clear()
            self._values[_fingerprint(y)] = value
        return answer

    @property
    def meta(self) -> dict[str, Any]:
        """What a certificate should record of the data."""
        found = {"samples": self.samples, "reduction": self.reduction}
        told = {"evaluated_in": self.evaluated_in, "converted_from": self.converted_from}
        return {**found, **{name: words for name, words in told.items() if words}}

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
        if self._batches is not None:
            yield from self._batches
            return
        for raw in self._data:
            batch = self.prepared(raw)
            # Nothing counts in it: its mean is 0 / 0.
            if self.reduction == "sum" or self.weight(batch) > 0:
                yield batch

    def terms(self, batch: Any, *answers: float | Vector) -> Vector:
        """Return what a batch adds to the total, to the number it is divided by, to the samples."""
        samples, factor = self.trees.samples(batch), self.factor(batch)
        share = factor if self.reduction == "mean" else samples
        found = np.hstack([*answers, share, samples])
        found[:-2] *= factor
        return found

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
        kept = BatchCache(self.trees, self.computed)
        inspect_mean(self, kept.add)
        self._batches = kept.all()


def _samples(data: Any) -> str:
    """What to do with a data set that gives samples, not batches."""
    if hasattr(data, "__getitem__") and hasattr(data, "__len__"):
        return f" This one gives samples: pass DataLoader({type(data).__name__}, batch_size=...)."
    return ""


def _fingerprint(x: Vector) -> bytes:
    return hashlib.blake2b(np.ascontiguousarray(x).data, digest_size=16).digest()


def _line() -> Callable[[int, int], None]:
    began = time.perf_counter()

    def write(calls: int, most: int) -> None:
        if sys.stderr.isatty():
            seconds = time.perf_counter() - began
            sys.stderr.write(f"\rpass {calls} over the data, of at most {most}   {seconds:.1f} s  ")
            sys.stderr.flush()

    return write


#: Losses that differ by less than this, relative to their size, differ by rounding.
ROUNDING = 1e-10

#: Losses below this are rounding errors of larger terms.
TINY = 1e-14

NOISE = (
    "For a function that is known through noisy gradients only, see goldstein.FiniteSum, "
    "minimize with grad(x, rng), and goldstein.confidence_bound."
)


def inspect_mean(subject: DataMean, keep: Callable[[Any], None]) -> None:
    """Raise an error that names the cause unless there is one mean over all samples.

    The loss of a batch must be the mean (or the sum) of the losses of its parts, and so must
    that of parts of two batches together, or the answer depends on the batches; the same batch
    must have the same loss when asked again; and the two passes must give the same, in whatever
    order. The second pass therefore groups the samples in another way than the first. Where the
    two totals differ, or nothing can be said, every batch is compared with its own parts to
    find the cause.

    Parameters
    ----------
    subject : DataMean
    keep : callable
        Gets the batches of the first pass.
    """
    subject.move(_somewhere(subject.start))
    first = _Tally()
    for batch in subject.batches():
        loss = subject.loss(batch)
        if first.sums[2] == 0:
            if not math.isfinite(loss):
                subject.move(subject.start)
                loss = subject.loss(batch)
            _ask_again(subject, batch, loss)
        first.add(subject.terms(batch, loss))
        keep(batch)
    if not first.agrees(_regrouped(subject)):
        _find_cause(subject)


def _regrouped(subject: DataMean) -> _Tally:
    """Visit all samples again, in groups that begin and end in the middle of batches."""
    tally = _Tally()
    group: list[Any] = []

    def add_group(together: bool = True) -> None:
        joined = subject.trees.joined(group) if together and len(group) > 1 else None
        for part in group if joined is None else [joined]:
            tally.add(subject.terms(part, subject.loss(part)))
        group.clear()

    count = 0
    try:
        for batch in subject.batches():
            count += 1
            # Copies, since loaders may refill their memory.
            first, *rest = (subject.trees.joined([part]) for part in subject.trees.halves(batch))
            group.append(first)
            if len(group) > 1 and sum(map(subject.computed, group)) > JOINED_NUMBERS:
                add_group()
            group += rest
        add_group(together=count > 1)  # two halves of one batch would be that batch
    except Exception:
        tally.sums[:] = math.nan  # the cause is looked for batch by batch
    return tally


def _find_cause(subject: DataMean) -> None:
    """Compare every batch with its halves and its neighbours, then two passes over all."""
    first, second = _Tally(), _Tally()
    objection: InputError | None = None
    end: tuple[Any, float] | None = None
    for batch in subject.batches():
        if objection is not None:
            raise objection
        loss = subject.loss(batch)
        try:
            end = _examined(subject, batch, loss, end)
        except InputError as found:
            # One batch alone may be any function of its samples.
            if end is not None or subject.shared:
                raise
            objection = found
        first.add(subject.terms(batch, loss))
    for batch in subject.batches():
        second.add(subject.terms(batch, subject.loss(batch)))
    # Where there is nothing to compare, whoever asks is told so.
    if np.isfinite([first.sums, second.sums]).all() and not first.agrees(second):
        raise _changed(subject, first.sums, second.sums)


def _examined(
    subject: DataMean, batch: Any, loss: float, before: tuple[Any, float] | None
) -> tuple[Any, float]:
    """Compare a batch with its halves, and with the end of the one before; return its own end."""
    parts = subject.trees.halves(batch)
    losses = [_loss_of_part(subject, part) for part in parts] if len(parts) > 1 else [loss]
    _compare(subject, batch, loss, parts, losses)
    if before is not None:
        pair = [before[0], parts[0]]
        both = subject.trees.joined(pair)
        if both is not None:
            _compare(subject, both, _loss_of_part(subject, both), pair, [before[1], losses[0]])
    # A copy, since loaders may refill their memory.
    return subject.trees.joined(parts[-1:]), losses[-1]


def uneven(samples: float, before: float) -> InputError:
    """Return the error for passes of different length."""
    return InputError(
        f"data yielded {samples:.0f} samples in one pass"
        + (f" and {before:.0f} in another" if before else "")
        + "; it must give all samples every time it is iterated."
    )


def _somewhere(start: Vector) -> Vector:
    """Return a point at which losses do not vanish, as they may at trained parameters."""
    size = float(np.sqrt(np.mean(start**2))) or 1.0
    return start + 0.1 * size * stream(0, 0, "mean inspection").standard_normal(start.size)


def _ask_again(subject: DataMean, batch: Any, loss: float) -> None:
    again = subject.loss(batch)
    if math.isfinite(loss) and not _same(loss, again, abs(loss) + abs(again)):
        raise InputError(
            f"{subject.name} is not deterministic: the loss of one batch is {loss:.6g}, and "
            f"{again:.6g} when asked again. Something draws random numbers (dropout that is "
            "always on, augmentation inside the model, noise); switch it off. " + NOISE
        )


def _loss_of_part(subject: DataMean, part: Any) -> float:
    try:
        return subject.loss(part)
    except Exception as failure:
        raise InputError(
            f"the loss of {subject.trees.samples(part)} samples, parts of one batch or of two, "
            f"raised {type(failure).__name__}: {failure}. What is certified is the mean over all "
            "samples, so batches of any size must work; or give all data as one batch."
        ) from failure


def _compare(
    subject: DataMean, whole: Any, loss: float, parts: list[Any], losses: list[float]
) -> None:
    """Raise what is wrong if the losses of the parts do not add up to that of the whole."""
    if len(parts) < 2 or not all(map(math.isfinite, [loss, *losses])):
        return  # a part in which nothing counts has the mean 0 / 0
    total = subject.factor(whole) * loss
    terms = [subject.factor(part) * value for part, value in zip(parts, losses, strict=True)]
    if _same(total, sum(terms), abs(total) + sum(map(abs, terms))):
        return
    _ask_again(subject, whole, loss)
    sizes = [subject.trees.samples(part) for part in parts]
    shown = (
        f"{sum(sizes)} samples have the loss {loss:.6g}, {sizes[0]} of them {losses[0]:.6g} "
        f"and the other {sizes[1]} {losses[1]:.6g}"
    )
    other, found = "sum", sum(losses)
    if subject.reduction == "sum":
        other, found = "mean", float(np.average(losses, weights=sizes))
    if _same(loss, found, abs(loss) + abs(found)):
        raise InputError(
            f"the loss of a batch is the {other} over its samples, expected the "
            f"{subject.reduction}: {shown}. Pass reduction={other!r}, or a loss that is the "
            f"{subject.reduction}."
        )
    raise InputError(
        f"the loss of a batch is not the {subject.reduction} over its samples: {shown}. "
        f"{subject.why_not_mean(whole, parts)} What is certified is the mean over all samples and "
        "must not depend on the batches: use a loss that is the sum over the samples of a batch "
        "and pass reduction='sum', or give all data as one batch."
    )


def _changed(subject: DataMean, first: Vector, second: Vector) -> InputError:
    if first[2] != second[2]:
        return uneven(second[2], first[2])
    once, twice = (sum(map(subject.trees.fingerprint, subject.batches())) % 2**64 for _ in range(2))
    means = first[0] / first[1], second[0] / second[1]
    shown = f"two passes at the same parameters give {means[0]:.6g} and {means[1]:.6g}"
    if once != twice:
        return InputError(
            f"{subject.name} is not deterministic: {shown}, because data gave other samples in the "
            "second pass. A loader that shuffles must not drop the last batch; sampling with "
            "weights or with replacement and random augmentation must be switched off: every "
            "pass must visit the same samples, in any order. " + NOISE
        )
    return InputError(
        f"{subject.name} is not deterministic: {shown}, with the same samples. Something draws "
        "random numbers, or remembers earlier batches. " + NOISE
    )


class _Tally:
    """The sums of a pass."""

    def __init__(self) -> None:
        self.sums, self.size = np.zeros(3), 0.0

    def add(self, terms: Vector) -> None:
        self.sums += terms
        self.size += abs(float(terms[0]))

    def agrees(self, other: _Tally) -> bool:
        sizes = (self.size + other.size, float(self.sums[1]), 0.0)
        return all(map(_same, self.sums.tolist(), other.sums.tolist(), sizes))


def _same(one: float, other: float, size: float) -> bool:
    return abs(one - other) <= ROUNDING * size + TINY
