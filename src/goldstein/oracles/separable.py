"""Sums of many terms of a few variables each, with the values and gradients of the terms.

Many questions at once: what `workers=` means, wherever it is an argument.
"""

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.extras import from_extra
from goldstein.oracles.base import Oracle

#: A value and a gradient.
Term = tuple[Callable[[Any], Any], Callable[[Any], Any]]


@dataclass(frozen=True)
class _Group:
    """Elements that share a pair of callables; `single` where it takes one element at a time."""

    value: Callable[[Any], Any]
    gradient: Callable[[Any], Any]
    indices: Indices
    single: bool


class PartiallySeparable(Oracle):
    """f(x) = sum_k f_k(x[I_k]): a sum of elements that depend on a few variables each.

    An evaluation of the whole sum is one call. `minimize` (method `auto`) lets a search of its own
    take part that knows every element by itself: what would be thousands of calls for a black box
    becomes a few dozen, whatever the number of variables. The certificate is the ordinary one.

    Parameters
    ----------
    terms : (value, gradient) or list of such pairs
        One pair serves many elements: it takes their variables as the rows of a (K, m) array and
        returns their values, shape (K,), and gradients, shape (K, m). In a list every pair has an
        entry of `indices` of its own.
    indices : array of int, shape (K, m), or a list
        Row k: the variables of element k. In a list, beside each pair: such an array, or the
        variables of a single element, shape (m,), whose pair then takes a vector and returns a
        number and a vector.
    dim : int, optional
        Number of variables; default one more than the largest index.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> def value(u): return np.abs(u[:, 1] - u[:, 0] ** 2) + (1 - u[:, 0]) ** 2
    >>> def gradient(u):
    ...     s = np.sign(u[:, 1] - u[:, 0] ** 2)
    ...     return np.stack([-2 * s * u[:, 0] - 2 * (1 - u[:, 0]), s], axis=1)
    >>> chain = np.arange(999)[:, None] + [0, 1]
    >>> f = gs.PartiallySeparable((value, gradient), chain)
    >>> f.dim, f.value(np.ones(1000))
    (1000, 0.0)
    >>> res = gs.minimize(f, np.zeros(1000), eps=1e-3, delta=1e-3, rng=0)
    >>> res.success
    True
    """

    def __init__(
        self,
        terms: Term | Sequence[Term],
        indices: ArrayLike | Sequence[ArrayLike],
        dim: int | None = None,
    ) -> None:
        pairs, rows = ([terms], [indices]) if _is_pair(terms) else (terms, indices)
        if not isinstance(pairs, list | tuple) or not pairs:
            raise InputTypeError(
                f"terms is {type(terms).__name__}, expected a pair (value, gradient) of callables, "
                "or a list of such pairs."
            )
        entries = len(rows) if isinstance(rows, list | tuple | np.ndarray) else 0
        if not isinstance(rows, list | tuple | np.ndarray) or entries != len(pairs):
            raise InputError(
                f"there are {len(pairs)} pairs in terms, {entries} entries in indices; every pair "
                "needs the variables of its elements. For one pair and many elements, pass the "
                "pair itself and an array of shape (K, m)."
            )
        self._groups = [_group(pair, row, j) for j, (pair, row) in enumerate(zip(pairs, rows))]
        least = 1 + max(int(group.indices.max()) for group in self._groups)
        if dim is not None and (isinstance(dim, bool) or not isinstance(dim, int | np.integer)):
            raise InputTypeError(f"dim must be an integer, got {dim!r}.")
        if dim is not None and dim < least:
            raise InputError(f"dim = {dim}, but indices name variable {least - 1}.")
        self.dim = least if dim is None else int(dim)
        #: How many elements there are.
        self.elements = sum(len(group.indices) for group in self._groups)
        self._name = f"sum of {self.elements} elements"
        #: Answers for the elements at the points that were asked about last.
        self._known: dict[str, tuple[Vector, Any]] = {}

    @property
    def indices(self) -> Indices:
        """The variables of each element; where one has fewer than others, `dim` stands for none."""
        width = max(group.indices.shape[1] for group in self._groups)
        table: Indices = np.full((self.elements, width), self.dim, dtype=np.intp)
        for first, group in self._placed():
            count, own = group.indices.shape
            table[first : first + count, :own] = group.indices
        return table

    # Whoever asks for the sum asks the functions: a check must not be answered from memory.
    def value(self, x: Vector) -> float:
        self._known.pop("value", None)
        return float(self.element_values(x).sum())

    def gradient(self, y: Vector) -> Vector:
        self._known.pop("gradient", None)
        rows = self.element_gradients(y)
        total = np.zeros(self.dim or 0)
        for first, group in self._placed():
            count, width = group.indices.shape
            part = rows[first : first + count, :width]
            total += np.bincount(group.indices.ravel(), part.ravel(), total.size)
        return total

    def element_values(self, x: Vector) -> Vector:
        """Return f_k(x[I_k]) for all k; asked again about the last point, nothing is computed."""
        return self._elements("value", x, np.zeros(self.elements))

    def element_gradients(self, y: Vector) -> Matrix:
        """Return the gradients of the elements, one per row, as wide as `indices`."""
        width = max(group.indices.shape[1] for group in self._groups)
        return self._elements("gradient", y, np.zeros((self.elements, width)))

    def _elements(self, what: str, x: Vector, answers: Any) -> Any:
        known = self._known.get(what)
        if known is not None and np.array_equal(known[0], x):
            return known[1]
        for first, group in self._placed():
            count, own = group.indices.shape
            asked = x[group.indices[0] if group.single else group.indices]
            found = np.asarray(getattr(group, what)(asked), dtype=np.float64)
            expected: Any = asked.shape
            meant = "one partial derivative for every variable of the element"
            if what == "value":
                expected, meant = asked.shape[:-1], "one value for every row of variables"
            if found.shape != expected:
                raise InputError(
                    f"the {what} of the elements {first} to {first + count - 1} has shape "
                    f"{found.shape}, expected {expected or 'a number'}: {meant}."
                )
            answers[(slice(first, first + count), slice(own))[: answers.ndim]] = found
        answers.setflags(write=False)
        self._known[what] = x.copy(), answers
        return answers

    def _placed(self) -> list[tuple[int, _Group]]:
        """The groups, each with the number of its first element."""
        firsts = np.cumsum([0, *(len(group.indices) for group in self._groups)]).tolist()
        return list(zip(firsts, self._groups))


def _is_pair(terms: Any) -> bool:
    return isinstance(terms, tuple) and len(terms) == 2 and all(map(callable, terms))


def _group(pair: Any, rows: Any, place: int) -> _Group:
    """Read one pair and the variables of its elements."""
    if not (isinstance(pair, tuple | list) and len(pair) == 2 and all(map(callable, pair))):
        raise InputTypeError(
            f"terms[{place}] is {pair!r}, expected a pair (value, gradient) of callables."
        )
    try:
        table = np.asarray(rows)
    except ValueError as failure:
        raise InputError(
            f"the indices beside terms[{place}] are no array: {failure}. Elements with different "
            "numbers of variables need a pair each."
        ) from failure
    if table.ndim not in (1, 2) or table.size == 0:
        raise InputError(
            f"the indices beside terms[{place}] have shape {table.shape}, expected (K, m) or (m,)."
        )
    if table.dtype.kind not in "iu":
        raise InputTypeError(
            f"the indices beside terms[{place}] are {table.dtype}, expected integers."
        )
    single = table.ndim == 1
    table = np.atleast_2d(table).astype(np.intp)
    if (table < 0).any():
        element = int((table < 0).any(axis=1).argmax())
        raise InputError(
            f"element {element} of terms[{place}] has the variables {table[element].tolist()}; "
            "indices count from 0."
        )
    ordered = np.sort(table, axis=1)
    twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if twice.any():
        element = int(twice.argmax())
        raise InputError(
            f"element {element} of terms[{place}] has the variables {table[element].tolist()}, "
            "one of them twice; an element takes each of its variables once."
        )
    table.setflags(write=False)
    return _Group(pair[0], pair[1], table, single)


#: A number of processes (-1: one per core), a function like `map`, or None for neither.
Workers = int | Callable[..., Iterable[Any]] | None

#: Takes a function and a list of arguments, and gives the answers.
Mapped = Callable[[Callable[..., Any], list[Any]], Iterable[Any]]


def check_workers(workers: Workers) -> Workers:
    """Return `workers` if it can be one."""
    if workers is None or callable(workers):
        return workers
    if isinstance(workers, bool) or not isinstance(workers, int):
        raise InputTypeError(
            f"workers must be an int or a function like map, got {type(workers).__name__}; for "
            "example workers=4, or workers=concurrent.futures.ThreadPoolExecutor(4).map."
        )
    if workers == 0 or workers < -1:
        raise InputError(f"workers must be positive, or -1 for one per core; got {workers}.")
    return workers


@contextlib.contextmanager
def mapped(workers: Workers) -> Iterator[Mapped]:
    """Give a function that answers many questions at once, in their order.

    A number means processes (joblib's, so lambdas and closures may be sent); a function like `map`
    is used as it is, for instance the `map` of a `ThreadPoolExecutor` for functions that let go of
    Python's lock, or of a cluster. One that answers in another order (`imap_unordered`) is refused:
    answers of other points would make claims that are not true.

    Examples
    --------
    >>> with mapped(None) as ask:
    ...     list(ask(abs, [-1, 2]))
    [1, 2]
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool, mapped(pool.map) as ask:
    ...     ask(abs, [-1, 2])
    [1, 2]
    """
    check_workers(workers)
    if workers in (None, 1, map):
        yield map
    elif isinstance(workers, int):
        with from_extra(f"workers={workers}", "joblib", "sklearn"):
            import joblib
        with joblib.Parallel(n_jobs=workers, max_nbytes=None) as pool:
            call = joblib.delayed
            yield lambda function, items: list(pool(call(function)(item) for item in items))
    else:
        yield _in_order(workers)


def _in_order(many: Callable[..., Iterable[Any]]) -> Mapped:
    """Return a map of the user's, whose answers say what they are answers to."""

    def ask(function: Callable[..., Any], items: list[Any]) -> list[Any]:
        answers = list(many(_Marking(function), items))
        if len(answers) != len(items):
            raise InputError(
                f"workers gave {len(answers)} answers to {len(items)} questions; it must return "
                "one for each, as map does."
            )
        for item, answer in zip(items, answers):
            if isinstance(answer, _Marked) and answer.mark != _mark(item):
                raise InputError(
                    "workers gave answers in another order than it was asked; use a map that keeps "
                    "the order: pool.map or pool.imap, not pool.imap_unordered."
                )
        return [part.answer if isinstance(part, _Marked) else part for part in answers]

    return ask


class _Marked(NamedTuple):
    """An answer, and a short hash of the question."""

    mark: bytes
    answer: Any


class _Marking:
    """A function whose answers are marked."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> _Marked:
        mark = _mark(item)  # before the function, which may write into its argument
        return _Marked(mark, self.function(item))


def _mark(item: Any) -> bytes:
    return hashlib.blake2b(np.asarray(item).tobytes(), digest_size=8).digest()
