"""`multistart`: one function, many starts, the stationary points that they lead to."""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.api import minimize
from goldstein.api.inputs import RNG
from goldstein.api.starts import best_of, start_seed
from goldstein.checker.arrays import Vector
from goldstein.checker.layout import is_vector
from goldstein.errors import InputError, InputTypeError
from goldstein.kept import described, digest, seed_in
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.parallel.distinct import StationaryPoint, distinct
from goldstein.parallel.folder import folder_at
from goldstein.parallel.gathering import (
    Failure,
    Job,
    OnResult,
    asked_oracle,
    confirm,
    gather,
    total_value,
)
from goldstein.result import Result

#: How many points a printed result lists.
_LISTED = 8


@dataclass(repr=False)
class MultiStart:
    """What many starts led to.

    Attributes
    ----------
    results : list of Result or None
        One for each start, in their order; None where it failed.
    points : list of StationaryPoint
        The distinct ones among verified results, best first, with `x`, `fun`, `count`,
        `certificate` and `starts`.
    failures : list of Failure
        Starts without a result, and why.
    seed : int
    time : float
        Seconds.
    """

    results: list[Result | None]
    points: list[StationaryPoint]
    failures: list[Failure]
    seed: int
    time: float

    @property
    def best(self) -> Result:
        """The verified result of smallest value; of all results if none is verified."""
        there = [result for result in self.results if result is not None]
        if not there:
            raise InputError("no start has a result; see failures.")
        verified = [result for result in there if result.success]
        return best_of(verified or there, lambda result: result.fun)

    def report(
        self,
        path: str | Path,
        fun: Any = None,
        jac: Callable[..., Any] | bool | str | None = None,
        *,
        limits: dict[str, Any] | None = None,
        title: str = "",
    ) -> Path:
        """Write a page about the best run and the distinct stationary points (extra `report`).

        The arguments are those of `Result.report`. Results that come from other processes have
        lost their function: give it for checks, level lines and the curve.
        """
        write = importlib.import_module("goldstein.reporting.report").write_report
        written: Path = write(self, path, fun, jac, limits, title)
        return written

    def __repr__(self) -> str:
        there = [result for result in self.results if result is not None]
        verified = sum(result.success for result in there)
        counts = [f"{verified} verified"]
        if len(there) > verified:
            counts.append(f"{len(there) - verified} not")
        if self.failures:
            counts.append(f"{len(self.failures)} failed")
        lines = [f"{len(self.results)} starts: {', '.join(counts)}; {self.time:.3g} s"]
        if there:
            lines.append(f"   best: f = {self.best.fun:.12g}, {self.best.status.name}")
        lines += _listed("  point", [_shown(point) for point in self.points])
        lines += _listed("failure", [_why(failure) for failure in self.failures])
        return "\n".join(lines)


def multistart(
    fun: Oracle | Callable[..., Any],
    starts: Any,
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    eps: float | None = None,
    delta: float | None = None,
    n_starts: int | None = None,
    n_jobs: int | None = None,
    rng: RNG = None,
    folder: str | Path | None = None,
    progress: bool = False,
    on_result: OnResult | None = None,
    blas_threads: int = 1,
    **options: Any,
) -> MultiStart:
    """Minimise from many starts, on many cores or a cluster, and tell the stationary points apart.

    The answers do not depend on the number of workers, on their kind or on their order: each start
    has a seed of its own, made of `rng` and its number.

    Parameters
    ----------
    fun, jac
        As in `minimize`.
    starts : sequence of points, array of shape (n, d), or callable
        A callable is a sampler: `starts(rng)` returns one start.
    eps, delta : float
        As in `minimize`.
    n_starts : int, optional
        How many starts to draw, or to take of those given.
    n_jobs : int, optional
        Workers, as in joblib: -1 for all cores; None for 1, or what `joblib.parallel_config` says.
        Dask and Ray clusters are chosen there.
    rng : None, int or Generator
        Same seed, same answers.
    folder : path, optional
        One file for each start that is done. If the folder is there, what it holds is confirmed by
        the function and not searched again; a folder of another run is refused.
    progress : bool
        Show a bar on stderr, on a terminal or in a notebook.
    on_result : callable, optional
        `on_result(index, result)` as results arrive, in any order; StopIteration or a true return
        value: no further start is begun.
    blas_threads : int
        Threads of BLAS in each worker. One is fastest where all cores have a worker, and adds up in
        the same order everywhere.
    **options
        Other arguments of `minimize`.

    Returns
    -------
    MultiStart
        `best`, `results`, `points`, `failures`. A start that raises an error, or whose worker dies,
        is tried once more and then listed in `failures`; the error is raised only if no start has
        a result.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.parallel import multistart
    >>> def f(x): return abs(abs(x[0]) - 1) + abs(x[1]) - 0.1 * x[0]
    >>> def g(x): return np.array([np.sign(abs(x[0]) - 1) * np.sign(x[0]) - 0.1, np.sign(x[1])])
    >>> def anywhere(rng): return rng.uniform(-2, 2, 2)
    >>> found = multistart(f, anywhere, g, n_starts=8, eps=1e-3, delta=1e-3, rng=0)
    >>> [(round(point.fun, 2), point.count) for point in found.points]
    [(-0.1, 3), (0.1, 5)]
    """
    begin = time.perf_counter()
    taken = [name for name in ("checkpoint", "x0") if name in options]
    if taken:
        raise InputTypeError(f"multistart has no argument {taken[0]!r}; see starts= and folder=.")
    recorded = seed_in(folder) if rng is None else None
    seed = seed_from(rng) if recorded is None else recorded
    points = start_points(starts, n_starts, seed)
    options = {**options, "eps": eps, "delta": delta}
    identity = {
        "kind": "multistart", "function": _name(fun), "seed": seed,
        "options": described(options) if folder is not None else None,
    }  # fmt: skip
    with folder_at(folder, identity) as store:
        jobs = []
        for k, point in enumerate(points):
            stored = None if store is None else store.load(k, digest(point))
            seeds = [start_seed(seed, k)]
            jobs.append(Job([k], [point], seeds, None if stored is None else [stored]))
        gathered = gather(
            _Searches(fun, jac, options), jobs, n_jobs=n_jobs, threads=blas_threads, folder=store,
            progress=progress, what="starts", on_result=on_result,
        )  # fmt: skip
    found = _distinct(gathered.results, fun, jac, options)
    seconds = time.perf_counter() - begin
    return MultiStart(gathered.results, found, gathered.failures, seed, seconds)


def start_points(starts: Any, n_starts: int | None, seed: int) -> Sequence[Any]:
    """Return the starts: those given, or drawn, each from a stream of its own."""
    whole = isinstance(n_starts, int | np.integer) and not isinstance(n_starts, bool)
    if n_starts is not None and not (whole and n_starts >= 1):
        raise InputError(f"n_starts must be a positive integer or None, got {n_starts!r}.")
    if callable(starts):
        if n_starts is None:
            raise InputTypeError("starts is a sampler: say how many to draw, n_starts=...")
        return [starts(stream(seed, k, "start")) for k in range(n_starts)]
    try:
        points = list(starts)
    except TypeError:
        points = []
    if not points or (isinstance(starts, np.ndarray) and starts.ndim < 2):
        raise InputTypeError(
            "starts must be a sequence of points, an array with one start in each row, or a "
            f"callable starts(rng) that draws one; got {type(starts).__name__}"
            + (f" of shape {starts.shape}." if isinstance(starts, np.ndarray) else ".")
        )
    if n_starts is not None and n_starts > len(points):
        raise InputError(f"n_starts = {n_starts}, but only {len(points)} starts are given.")
    return points[:n_starts]


@dataclass(frozen=True)
class _Searches:
    """The work of one start, on any worker."""

    fun: Any
    jac: Any
    options: dict[str, Any]

    def __call__(self, job: Job) -> Sequence[Result]:
        if job.stored is not None:
            return [
                confirm(result, self.fun, self.jac, self.options, x0, seed)
                for result, x0, seed in zip(job.stored, job.subjects, job.seeds)
            ]
        return [
            minimize(self.fun, x0, self.jac, rng=seed, **self.options)
            for x0, seed in zip(job.subjects, job.seeds)
        ]


def _distinct(
    results: Sequence[Result | None], fun: Any, jac: Any, options: dict[str, Any]
) -> list[StationaryPoint]:
    verified = [result for result in results if result is not None and result.success]
    if not verified:
        return []
    flat = max(result.certificate.eps for result in verified)
    value: Callable[[Vector], float] | None = None
    constrained = options.get("constraints", ()) != () or options.get("bounds") is not None
    plain = is_vector(getattr(verified[0].certificate, "layout", [0]))
    if not constrained and plain:
        counted = CountedOracle(asked_oracle(fun, jac, options))
        value = total_value(counted, options) if counted.has_value else None
    eps = options.get("eps")
    return distinct(results, value, flat if eps is None else max(eps, flat), options["delta"])


def _name(fun: Any) -> str:
    return fun.name if isinstance(fun, Oracle) else getattr(fun, "__name__", type(fun).__name__)


def _shown(point: StationaryPoint) -> str:
    times = "once" if point.count == 1 else f"{point.count} times"
    return f"f = {point.fun:.12g}, reached {times}, {point.certificate.summary()}"


def _why(failure: Failure) -> str:
    return f"start {failure.index}: {failure.reason} ({failure.tries} tries)"


def _listed(label: str, lines: list[str]) -> list[str]:
    shown = [f"{label}: {line}" for line in lines[:_LISTED]]
    more = len(lines) - _LISTED
    return shown if more <= 0 else [*shown, f"{label}: and {more} more"]
