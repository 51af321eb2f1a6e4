"""`workers`: how many values are asked for at a time."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.extras import missing_extra
from goldstein.oracles.counted import Workers


@contextlib.contextmanager
def workers_from(workers: Any) -> Iterator[Workers]:
    """Yield a map: the one given, or one of joblib with this many processes (-1 for all).

    Examples
    --------
    >>> with workers_from(None) as ask:
    ...     list(ask(lambda x: x * x, [1, 2, 3]))
    [1, 4, 9]
    """
    if workers is None or workers == 1:
        yield map
    elif isinstance(workers, int) and not isinstance(workers, bool) and workers != 0:
        try:
            from joblib import Parallel, delayed
        except ImportError as missing:
            raise missing_extra("workers=<a number>", "joblib", "parallel") from missing
        with Parallel(n_jobs=workers) as pool:

            def ask(function: Callable[[Vector], Any], points: list[Vector]) -> Iterable[Any]:
                answers: Iterable[Any] = pool(delayed(function)(x) for x in points)
                return answers

            yield ask
    elif callable(workers):
        yield workers
    else:
        raise InputTypeError(
            f"workers must be a map-like callable or a number of processes, got {workers!r}."
        )
