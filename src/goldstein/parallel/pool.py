"""Jobs on the workers of joblib: answers as they come, and none lost when a worker dies.

joblib says that a worker died, but not over which job. The jobs that were in flight are known here,
because they are handed out one by one: these are done again together, and where workers go on
dying, in halves, until the one that kills them is alone.

On the workers of Dask (`joblib.parallel_config(backend="dask")`) joblib waits for ever for a job
that Dask gave up, because its worker died again and again. Dask itself says which job that was.

One worker on each core leaves nothing for more threads of BLAS than one; and one thread adds up in
one order, so that every worker gets the same digits.
"""

from __future__ import annotations

import contextlib
import threading
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pickle import PicklingError
from typing import Any

from joblib import Parallel, delayed, effective_n_jobs
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from goldstein.errors import GoldsteinError, InputError, InputTypeError

#: A job is done at most so often where it fails by itself.
TRIES = 2

#: Jobs per worker handed out at once to backends that give nothing back before all are done.
WAVE = 2

#: Jobs per thread of the cluster that are on their way at a time.
AHEAD = 2

#: The arguments of `guarded`.
Call = tuple[Callable[[Any], Any], int, Any, int]

_lock = threading.Lock()
_inside = 0
_limits: threadpool_limits | None = None


@contextlib.contextmanager
def blas_threads(most: int) -> Iterator[None]:
    """Cap the threads of BLAS and OpenMP in this process while anybody is inside.

    The cap belongs to the process, and several threads of it may be workers: the first sets it,
    the last takes it away.

    Examples
    --------
    >>> with blas_threads(1):
    ...     pass
    """
    global _inside, _limits
    with _lock:
        _inside += 1
        if _inside == 1:
            _limits = threadpool_limits(limits=most)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if _inside == 0 and _limits is not None:
                _limits.restore_original_limits()
                _limits = None


@dataclass(frozen=True)
class Trouble:
    """Why a job has no answer.

    Attributes
    ----------
    reason : str
        One line.
    traceback : str
        Where it was raised; empty if the worker died.
    tries : int
        How often it was tried.
    refused : InputError or InputTypeError, optional
        The error itself, where the input was refused: no second try.
    """

    reason: str
    traceback: str = ""
    tries: int = 0
    refused: Exception | None = None


@dataclass(frozen=True)
class Done:
    """The answer to a job, or the trouble with it."""

    position: int
    answer: Any = None
    trouble: Trouble | None = None


def guarded(work: Callable[[Any], Any], position: int, job: Any, threads: int) -> Done:
    """Do one job on a worker. Errors travel as text: not every exception can be pickled."""
    try:
        with blas_threads(threads):
            return Done(position, work(job))
    except Exception as failure:
        refused = failure if isinstance(failure, InputError | InputTypeError) else None
        reason = f"{type(failure).__name__}: {first_line(failure)}"
        return Done(position, trouble=Trouble(reason, traceback.format_exc(), refused=refused))


def first_line(failure: BaseException) -> str:
    """Return the first line of a message."""
    return next(iter(str(failure).strip().splitlines()), "no message")


class Pool:
    """Do jobs on joblib's workers.

    Parameters
    ----------
    work : callable
        work(job) makes the answer; both must be picklable for workers in other processes.
    jobs : sequence
    n_jobs : int, optional
        As in joblib: -1 for all cores; None for 1, or what `joblib.parallel_config` says.
    threads : int
        Threads of BLAS per worker.

    Examples
    --------
    >>> pool = Pool(abs, [-1, -2])
    >>> sorted(done.answer for done in pool.completed())
    [1, 2]
    """

    def __init__(
        self,
        work: Callable[[Any], Any],
        jobs: Sequence[Any],
        *,
        n_jobs: int | None = None,
        threads: int = 1,
    ) -> None:
        self.work, self.jobs, self.n_jobs, self.threads = work, jobs, n_jobs, threads
        self.stopped = False
        self.tries: Counter[int] = Counter()
        self._raised: list[int] = []

    def stop(self) -> None:
        """Hand out no further job; those in flight still answer."""
        self.stopped = True

    def completed(self) -> Iterator[Done]:
        """Yield answers and troubles as they come, each job once unless the pool is stopped."""
        with blas_threads(self.threads):
            yield from self._all_of(range(len(self.jobs)))
            again, self._raised = self._raised, []
            yield from self._all_of(again)

    def _all_of(self, positions: Iterable[int]) -> Iterator[Done]:
        left = deque(positions)
        while left and not self.stopped:
            before = len(left)
            this = _Round(self, left)
            yield from self._take(this)
            left = this.waiting
            if this.broken and len(left) == before:
                raise GoldsteinError(f"the workers could not be started: {this.broken}")
            yield from self._settle(sorted(this.in_flight))

    def _settle(self, suspects: list[int]) -> Iterator[Done]:
        """Do again what was in flight when a worker died."""
        if not suspects or self.stopped:
            return
        this = _Round(self, deque(suspects))
        yield from self._take(this)
        left = sorted(this.in_flight.union(this.waiting))
        if this.broken and len(left) == 1:
            tries = self.tries[left[0]]
            yield Done(left[0], trouble=Trouble(f"the worker died: {this.broken}", tries=tries))
            return
        half = len(left) // 2
        yield from self._settle(left[:half])
        yield from self._settle(left[half:])

    def _take(self, this: _Round) -> Iterator[Done]:
        for done in this.answers():
            if done.trouble is None:
                yield done
                continue
            # What has counted its tries, or refuses the input, is not worth another one.
            tries = done.trouble.tries or self.tries[done.position]
            if tries < TRIES and done.trouble.refused is None:
                self._raised.append(done.position)
            else:
                yield Done(done.position, trouble=replace(done.trouble, tries=tries))


class _Round:
    """One use of the workers: until all jobs are done, or a worker dies."""

    def __init__(self, pool: Pool, waiting: deque[int]) -> None:
        self.pool = pool
        self.waiting = waiting
        self.in_flight: set[int] = set()
        self.broken = ""

    def answers(self) -> Iterator[Done]:
        try:
            for done in self._answers():
                self.in_flight.discard(done.position)
                yield done
        except Exception as failure:  # of the workers: those of the work are caught there
            if _cannot_travel(failure):
                raise InputError(
                    f"the function cannot be sent to other processes ({failure}); define it at the "
                    "top of a module, or use threads: "
                    "with joblib.parallel_config(backend='threading'): ..."
                ) from failure
            self.broken = f"{type(failure).__name__}: {first_line(failure)}"

    def _answers(self) -> Iterator[Done]:
        pool = self.pool
        client = dask_client()
        if client is not None:
            yield from on_dask(client, self._handed_out(len(self.waiting)))
            return
        try:
            streaming = Parallel(
                n_jobs=pool.n_jobs,
                return_as="generator_unordered",
                batch_size=1,
                pre_dispatch="n_jobs",
            )
        except ValueError:  # a backend that gives back everything at once
            size = WAVE * effective_n_jobs(pool.n_jobs)
            whole = Parallel(n_jobs=pool.n_jobs, batch_size=1)
            while self.waiting and not pool.stopped:
                yield from whole(delayed(guarded)(*call) for call in self._handed_out(size))
        else:
            calls = self._handed_out(len(self.waiting))
            yield from streaming(delayed(guarded)(*call) for call in calls)

    def _handed_out(self, most: int) -> Iterator[Call]:
        pool = self.pool
        for _ in range(most):
            if pool.stopped or not self.waiting:
                return
            position = self.waiting.popleft()
            self.in_flight.add(position)
            pool.tries[position] += 1
            yield pool.work, position, pool.jobs[position], pool.threads


def _cannot_travel(failure: Exception) -> bool:
    text = str(failure).lower()
    return isinstance(failure, PicklingError) or "serializ" in text or "cannot pickle" in text


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
