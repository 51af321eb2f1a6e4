"""Many questions at once: what `workers=` means, wherever it is an argument."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from goldstein.errors import InputError, InputTypeError
from goldstein.extras import missing_extra

#: A number of processes (-1: one per core), a function like `map`, or None for neither.
Workers = int | Callable[..., Iterable[Any]] | None

#: Takes a function and a list of arguments, and returns the list of answers.
Mapped = Callable[[Callable[..., Any], list[Any]], list[Any]]


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
    ...     ask(abs, [-1, 2])
    [1, 2]
    >>> from concurrent.futures import ThreadPoolExecutor
    >>> with ThreadPoolExecutor(2) as pool, mapped(pool.map) as ask:
    ...     ask(abs, [-1, 2])
    [1, 2]
    """
    check_workers(workers)
    if workers in (None, 1, map):
        yield lambda function, items: [function(item) for item in items]
    elif isinstance(workers, int):
        try:
            import joblib
        except ImportError:
            raise missing_extra(f"workers={workers}", "joblib", "sklearn") from None
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
