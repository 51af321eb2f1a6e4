"""Random samples of data that are given in batches, without reading all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from torch.utils.data import DataLoader, IterableDataset

from goldstein.errors import InputError, InputTypeError
from goldstein.torch.batches import TREES


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
            collate = self._loader.collate_fn
            return collate([self._loader.dataset[int(i)] for i in rows])
        pieces = []
        for i in rows:
            batch = int(np.searchsorted(self._ends, i, side="right"))
            first = int(self._ends[batch - 1]) if batch else 0
            pieces.append(TREES.rows(self._batches[batch], int(i) - first, int(i) - first + 1))
        joined = TREES.joined(pieces)
        if joined is None:
            raise InputError("samples of different shapes cannot be put into one batch.")
        return joined
