"""Arrays that become part of an expression: exact, and kept from changing.

Objects that stay what they were made: certificates are about one function.

A matrix whose rows are not in one place: products go where the rows are.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.enclosed.arrays import Enclosure
from goldstein.checker.rationals import exact_floats, exact_sparse

#: Arrays that nobody outside writes to; an array that is gone leaves no entry behind.
_PRIVATE: WeakValueDictionary[int, NDArray[Any]] = WeakValueDictionary()


def own(data: Any, what: str = "a constant") -> Vector:
    """Return exact float64 numbers in an array that nobody else writes to.

    An array that is private already needs no second copy. That it is read-only does not make it
    so: older views of it may be written to.
    """
    if _is_private(data):
        return np.asarray(data)
    floats = exact_floats(data, what)
    if isinstance(data, np.ndarray):
        made_here = not np.may_share_memory(floats, data)
    else:  # arrays of other libraries may share their memory
        made_here = isinstance(data, int | float | np.generic | list | tuple)
    return hand_over(floats if made_here else floats.copy(order="K"))


def own_integers(data: Any) -> NDArray[np.intp]:
    """Return indices in an array that nobody else writes to."""
    return data if _is_private(data) else hand_over(np.array(data, dtype=np.intp))


def own_sparse(data: Any, what: str = "the matrix") -> Any:
    """Return a private copy of a sparse matrix, by rows and without duplicates."""
    if isinstance(data, sparse.csr_array) and all(
        _is_private(part) for part in (data.data, data.indices, data.indptr)
    ):
        # A handle of its own on the same arrays: a new entry replaces the arrays of one handle.
        return copy.copy(data)
    return hand_over_sparse(sparse.csr_array(exact_sparse(data, what), copy=True))


def hand_over(data: NDArray[Any]) -> NDArray[Any]:
    """Return an array as a private one; the caller promises never to write to it.

    The answer is a view that cannot be made writeable again.
    """
    if _is_private(data):
        return data
    data.setflags(write=False)
    guarded = np.asarray(memoryview(data).toreadonly())  # type: ignore[arg-type]
    _PRIVATE[id(guarded)] = guarded
    return guarded


def hand_over_sparse(matrix: Any) -> Any:
    """Make the arrays of a CSR array private to expressions."""
    matrix.sum_duplicates()
    for part in ("data", "indices", "indptr"):
        setattr(matrix, part, hand_over(getattr(matrix, part)))
    return matrix


def _is_private(data: Any) -> bool:
    return isinstance(data, np.ndarray) and _PRIVATE.get(id(data)) is data


class SetOnce:
    """Attributes keep their first value, methods cannot be replaced.

    The names in `adjustable`, those of base classes included, may change: they are memos, and
    settings that change the speed of answers and no answer.

    Examples
    --------
    >>> class Point(SetOnce):
    ...     def __init__(self, x):
    ...         self.x = x
    >>> Point(1.0).x = 2.0
    Traceback (most recent call last):
        ...
    AttributeError: x of Point cannot change: certificates are about one function. Build another...
    """

    adjustable: frozenset[str] = frozenset()

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.adjustable = frozenset().union(
            *(base.__dict__.get("adjustable", ()) for base in cls.__mro__)
        )

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.adjustable and (
            name in self.__dict__ or callable(getattr(type(self), name, None))
        ):
            self._refuse(name)
        super().__setattr__(name, value)

    def __delattr__(self, name: str) -> None:
        if name not in self.adjustable:
            self._refuse(name)
        super().__delattr__(name)

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A copy, or what comes from another process, has arrays of its own, open to everyone.
        self.__dict__.update({name: _closed(value) for name, value in state.items()})

    def _refuse(self, name: str) -> None:
        raise AttributeError(
            f"{name} of {type(self).__name__} cannot change: certificates are about one "
            "function. Build another one."
        )


def _closed(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return hand_over(value)
    if isinstance(value, sparse.csr_array):
        return hand_over_sparse(value)
    return tuple(map(_closed, value)) if type(value) is tuple else value


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
        self._cached: dict[int, Vector] = {}

    def __matmul__(self, v: Any) -> Any:
        if isinstance(v, Enclosure):
            return self.enclosed_product(v)
        return self.product(v) if isinstance(v, np.ndarray) else NotImplemented

    def anew(self) -> BlockedRows:
        """Return the same matrix without the rows that were cached."""
        twin = copy.copy(self)
        twin._cached = {}
        return twin

    @property
    def T(self) -> _Transposed:
        """The transpose, for products only."""
        return _Transposed(self)

    def __getitem__(self, rows: Any) -> Any:
        """Return some rows, in memory."""
        if isinstance(rows, int | np.integer):
            self.keep([int(rows)])
            return self._cached[int(rows)]
        index = np.arange(self.shape[0])[rows]
        if index.size and all(i in self._cached for i in index.tolist()):
            return np.array([self._cached[i] for i in index.tolist()])
        return self.fetch(index)

    def keep(self, rows: Any) -> None:
        """Fetch rows in one pass and keep them: questions about single rows will follow."""
        missing = [i for i in rows if i not in self._cached]
        if missing:
            fetched = self.fetch(np.array(missing))
            fetched.setflags(write=False)
            self._cached.update(zip(missing, fetched))

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
