"""Jobs on the workers of Dask, where `joblib.parallel_config(backend="dask")` chose them.

joblib's own way to Dask waits for ever for a job that Dask gave up, because its worker died again
and again. Dask itself says which job that was.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from joblib.parallel import get_active_backend

from goldstein.parallel.jobs import Call, Done, Trouble, first_line, guarded

#: Jobs per thread of the cluster that are on their way at a time.
AHEAD = 2


def dask_client() -> Any:
    """Return the client of the Dask cluster that joblib is told to use, or None."""
    backend, _ = get_active_backend()
    return backend.client if type(backend).__name__ == "DaskDistributedBackend" else None


def on_dask(client: Any, calls: Iterator[Call]) -> Iterator[Done]:
    """Yield the answers to these calls as they come; Dask does again what a dead worker lost."""
    import distributed

    most = AHEAD * max(1, sum(client.ncores().values()))
    completed: Any = distributed.as_completed
    ready = completed(with_results=True, raise_errors=False, loop=client.loop)
    positions: dict[Any, int] = {}
    shared: Any = None

    def fill() -> None:
        nonlocal shared
        while len(positions) < most and (call := next(calls, None)) is not None:
            work, position, job, threads = call
            if shared is None:  # made on a worker, so that Dask can make it again
                shared = client.submit(_itself, work, pure=False)
            future = client.submit(guarded, shared, position, job, threads, pure=False)
            positions[future.key] = position
            ready.add(future)

    fill()
    for future, result in ready:
        position = positions.pop(future.key)
        if future.status == "finished":
            yield result
        else:
            failure = result[1] if isinstance(result, tuple) else RuntimeError(future.status)
            tries = 1 + getattr(failure, "allowed_failures", 0)
            yield Done(
                position, trouble=Trouble(f"the worker died: {first_line(failure)}", tries=tries)
            )
        fill()


def _itself(work: Any) -> Any:
    return work
