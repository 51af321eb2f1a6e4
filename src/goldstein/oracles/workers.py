"""Many questions at once: what `workers=` means, wherever it is an argument."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

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
    Python's lock, or of a cluster.

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
    if workers is None or workers == 1:
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
        many = workers
        yield lambda function, items: list(many(function, items))


class Attempt:
    """A function whose exceptions are answers, so that one of many does not cost the others.

    Examples
    --------
    >>> Attempt(float)("one")
    ValueError("could not convert string to float: 'one'")
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function

    def __call__(self, item: Any) -> Any:
        try:
            return self.function(item)
        except Exception as failure:
            return failure


__all__ = ["Attempt", "Mapped", "Workers", "check_workers", "mapped"]
