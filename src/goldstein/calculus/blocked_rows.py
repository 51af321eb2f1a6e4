"""A matrix whose rows are not in one place: products go where the rows are."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.arrays import Enclosure


class BlockedRows(ABC):
    """A float64 matrix in blocks of rows; it stands where a dense or sparse matrix would.

    Proofs ask for the same things as in memory: enclosures of products, which are sums over the
    blocks, and the few rows that decide on which side of a kink a point lies. Whoever implements it
    promises that the rows stay what they are.

    Attributes
    ----------
    shape : (int, int)
    """

    shape: tuple[int, int]

    def __init__(self) -> None:
        self._kept: dict[int, Vector] = {}

    def __matmul__(self, v: Any) -> Any:
        if isinstance(v, Enclosure):
            return self.enclosed_product(v)
        return self.product(v) if isinstance(v, np.ndarray) else NotImplemented

    def anew(self) -> BlockedRows:
        """Return the same matrix without the rows that were kept."""
        twin = copy.copy(self)
        twin._kept = {}
        return twin

    @property
    def T(self) -> _Transposed:
        """The transpose, for products only."""
        return _Transposed(self)

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, in memory."""
        if isinstance(rows, int | np.integer):
            self.keep([int(rows)])
            return self._kept[int(rows)]
        index = np.arange(self.shape[0])[rows]
        if index.size and all(i in self._kept for i in index.tolist()):
            return np.array([self._kept[i] for i in index.tolist()])
        return self.fetch(index)

    def keep(self, rows: Any) -> None:
        """Fetch rows in one pass and keep them: questions about single rows will follow."""
        missing = [i for i in rows if i not in self._kept]
        if missing:
            fetched = self.fetch(np.array(missing))
            fetched.setflags(write=False)
            self._kept.update(zip(missing, fetched))

    def toarray(self) -> Matrix:
        """Return all rows; for small data only."""
        return self.fetch(np.arange(self.shape[0]))

    @abstractmethod
    def product(self, v: Vector) -> Vector:
        """Return the product with a vector."""

    @abstractmethod
    def enclosed_product(self, v: Enclosure) -> Enclosure:
        """Return an enclosure of the product with every member."""

    @abstractmethod
    def transposed_product(self, a: Vector) -> Vector:
        """Return the rows' combination with coefficients a."""

    @abstractmethod
    def enclosed_transposed_product(self, a: Enclosure) -> Enclosure:
        """Return an enclosure of the rows' combinations with every member."""

    @abstractmethod
    def fetch(self, index: NDArray[np.intp]) -> Matrix:
        """Return the rows with these numbers."""

    @abstractmethod
    def norms(self) -> Vector:
        """Return the norms of the rows, to rounding; refuse rows that are not finite."""

    @abstractmethod
    def scaled(self, factors: Vector) -> BlockedRows:
        """Return the rows times factors, rounded; for searches only."""


class _Transposed:
    def __init__(self, rows: BlockedRows) -> None:
        self._rows = rows

    def __matmul__(self, a: Any) -> Any:
        if isinstance(a, Enclosure):
            return self._rows.enclosed_transposed_product(a)
        return self._rows.transposed_product(a)
