"""Batches of samples: containers of arrays with one row per sample, whatever the framework."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

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
        self._room = KEPT_BYTES
        self._waiting: list[Any] = []
        self._numbers = 0.0
        self._kept: list[Any] | None = []

    def add(self, batch: Any) -> None:
        """Take a copy of a batch."""
        if self._kept is None:
            return
        self._room -= sum(int(array.nbytes) for array in self._trees.arrays(batch))
        if self._room < 0:
            self._kept, self._waiting = None, []
            return
        numbers = self._computed(batch)
        if self._numbers + numbers > JOINED_NUMBERS:
            self._join()
        self._waiting.append(self._trees.joined([batch]))
        self._numbers += numbers

    def all(self) -> list[Any] | None:
        """Return the batches; None when they were too large."""
        self._join()
        return self._kept

    def _join(self) -> None:
        waiting, self._waiting, self._numbers = self._waiting, [], 0.0
        if self._kept is None or not waiting:
            return
        whole = self._trees.joined(waiting) if len(waiting) > 1 else waiting[0]
        self._kept.extend(waiting if whole is None else [whole])


def _has_rows(leaf: Any) -> bool:
    return len(getattr(leaf, "shape", ())) > 0


def _fit(one: Any, other: Any) -> bool:
    if _has_rows(one) and _has_rows(other):
        return bool(one.shape[1:] == other.shape[1:] and one.dtype == other.dtype)
    return not _has_rows(one) and not _has_rows(other) and bool(one == other)
