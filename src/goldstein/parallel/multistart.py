"""`multistart`: one function, many starts, the stationary points that they lead to."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from goldstein.api.certify import best_of
from goldstein.api.inputs import RNG
from goldstein.api.minimize import task_of
from goldstein.checker.arrays import Vector
from goldstein.checker.function import is_vector
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.base import name_of
from goldstein.parallel import gathering
from goldstein.result import InNotebooks, Reported, Result

#: How many points a printed result lists.
_LISTED = 8

#: Where the function is looked at between two answers.
BETWEEN = (0.5, 0.25, 0.75)


@dataclass
class StationaryPoint:
    """A stationary point that was found, perhaps from several starts.

    Attributes
    ----------
    x : ndarray, or in the layout of the starts
    fun : float
    count : int
        How many starts led here.
    certificate : GoldsteinCertificate, ...
    starts : list of int
        Which ones.
    scope : {"ball", "box", "global"} or None
        Where the point is lowest, if stationarity="minimum" was asked for and proved.
    """

    x: Any
    fun: float
    certificate: Any
    starts: list[int]

    @property
    def count(self) -> int:
        return len(self.starts)

    @property
    def scope(self) -> str | None:
        return getattr(self.certificate, "scope", None)

    def __repr__(self) -> str:
        times = "once" if self.count == 1 else f"{self.count} times"
        return f"<StationaryPoint f = {self.fun:.10g}, reached {times}>"


@dataclass(repr=False)
class MultiStart(Reported):
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
    failures: list[gathering.Failure]
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
    on_result: gathering.OnResult | None = None,
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
    seed = gathering.seed_of(rng, folder)
    points = start_points(starts, n_starts, seed)
    options = {**options, "eps": eps, "delta": delta}
    identity = {"kind": "multistart", "function": name_of(fun), "options": options}
    how = gathering.How(n_jobs, blas_threads, folder, progress, on_result)
    work = gathering.Searches(partial(_problem, fun, jac), None, options)
    results, failures = gathering.gather(work, points, seed, identity, how, "starts")
    found = _distinct(results, fun, jac, options)
    return MultiStart(results, found, failures, seed, time.perf_counter() - begin)


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


def _problem(fun: Any, jac: Any, start: Any) -> dict[str, Any]:
    return {"fun": fun, "jac": jac, "x0": start}


def _distinct(
    results: Sequence[Result | None], fun: Any, jac: Any, options: dict[str, Any]
) -> list[StationaryPoint]:
    """Return the stationary points among verified results, best first.

    Two answers are one point if their balls of radius `delta` meet, or if the function is flat to
    within `eps` between them: an answer may be anywhere on such a plain. The values are asked for
    there, where there are any and nothing limits x; otherwise only the balls count.
    """
    verified = [(r.fun, k, r) for k, r in enumerate(results) if r is not None and r.success]
    if not verified:
        return []
    eps = max([res.certificate.eps for *_, res in verified] + [options.get("eps") or 0.0])
    value: Callable[[Vector], float] | None = None
    constrained = options.get("constraints", ()) != () or options.get("bounds") is not None
    if not constrained and is_vector(getattr(verified[0][2].certificate, "layout", [0])):
        point = verified[0][2].certificate.x
        task = task_of(fun=fun, x0=point, jac=jac, **options)
        problem = task.problem(CountedOracle(task.oracle))
        value = problem.value if task.oracle.has_value else None
    found: list[StationaryPoint] = []
    for _, k, res in sorted(verified, key=lambda one: one[:2]):
        here = res.certificate.x
        for point in found:
            there = point.certificate.x
            far = float(np.linalg.norm(here - there))
            if far <= 2.0 * options["delta"] or (
                value is not None and _flat(res.fun, here, point.fun, there, eps * far, value)
            ):
                point.starts = sorted([*point.starts, k])
                break
        else:
            found.append(StationaryPoint(res.x, res.fun, res.certificate, [k]))
    return found


def _shown(point: StationaryPoint) -> str:
    times = "once" if point.count == 1 else f"{point.count} times"
    return f"f = {point.fun:.12g}, reached {times}, {point.certificate.summary()}"


def _why(failure: gathering.Failure) -> str:
    return f"start {failure.index}: {failure.reason} ({failure.tries} tries)"


def _listed(label: str, lines: list[str]) -> list[str]:
    shown = [f"{label}: {line}" for line in lines[:_LISTED]]
    more = len(lines) - _LISTED
    return shown if more <= 0 else [*shown, f"{label}: and {more} more"]


def _flat(
    f: float, x: Vector, g: float, y: Vector, rise: float, value: Callable[[Vector], float]
) -> bool:
    """Does the function stay within `rise` between x and y, as far as one sees?"""
    if abs(f - g) > rise:
        return False
    try:
        return all(value(y + t * (x - y)) <= max(f, g) + rise for t in BETWEEN)
    except GoldsteinError:  # the function does not answer there
        return False


@dataclass(repr=False)
class Sweep(InNotebooks):
    """What a sweep found.

    Attributes
    ----------
    parameters : list
    results : list of Result or None
        One for each parameter, in their order; None where it failed.
    failures : list of Failure
    seed : int
    time : float
        Seconds.
    """

    parameters: list[Any]
    results: list[Result | None]
    failures: list[gathering.Failure]
    seed: int
    time: float

    def __repr__(self) -> str:
        verified = sum(result is not None and result.success for result in self.results)
        lines = [f"{len(self.parameters)} parameters: {verified} verified; {self.time:.3g} s"]
        failed = {failure.index: failure.reason for failure in self.failures}
        for k, (parameter, result) in enumerate(zip(self.parameters, self.results)):
            shown = repr(parameter)
            shown = shown if len(shown) <= 30 else shown[:27] + "..."
            if result is None:
                lines.append(f"  {shown}: FAILED, {failed[k]}")
            else:
                told = f"{result.status.name}, {result.nfev + result.ngev} calls"
                lines.append(f"  {shown}: f = {result.fun:.10g}, {told}")
        return "\n".join(lines)


def sweep(
    problem_of: Callable[[Any], Any],
    parameters: Any,
    x0: Any = None,
    *,
    eps: float | None = None,
    delta: float | None = None,
    warm_start: bool | int = False,
    n_jobs: int | None = None,
    rng: RNG = None,
    folder: str | Path | None = None,
    progress: bool = False,
    on_result: gathering.OnResult | None = None,
    blas_threads: int = 1,
    **options: Any,
) -> Sweep:
    """Minimise one function for each parameter, on many cores or a cluster.

    Parameters
    ----------
    problem_of : callable
        `problem_of(parameter)` returns an Oracle or Expression, a pair (fun, jac), or a dict of
        arguments of `minimize` ("fun", and "jac", "x0", "bounds", ... as needed).
    parameters : sequence
    x0 : array_like, optional
        The start of all problems that do not bring their own.
    eps, delta : float
        As in `minimize`, unless the problem says otherwise.
    warm_start : bool or int
        True: one worker follows all parameters in their order, each search from the answer of the
        one before. A number: the same along stretches of so many parameters, side by side.
    n_jobs, rng, folder, progress, on_result, blas_threads
        As in `multistart`. Files of a stretch are written when it is done.
    **options
        Other arguments of `minimize`.

    Returns
    -------
    Sweep
        `results` in the order of the parameters, and `failures`.

    Examples
    --------
    >>> import numpy as np
    >>> from goldstein.parallel import sweep
    >>> def problem(c):
    ...     return lambda x: abs(x[0] - c) + x[0] ** 2, lambda x: np.sign(x - c) + 2 * x
    >>> found = sweep(problem, [0.0, 0.25, 1.0], [2.0], eps=1e-6, delta=1e-6, rng=0)
    >>> [round(float(result.x[0]), 4) for result in found.results]
    [0.0, 0.25, 0.5]
    """
    begin = time.perf_counter()
    if not callable(problem_of):
        raise InputTypeError(f"problem_of must be callable, got {type(problem_of).__name__}.")
    listed = list(parameters)
    if not listed:
        raise InputError("there are no parameters.")
    seed = gathering.seed_of(rng, folder)
    length = _stretch(warm_start, len(listed))
    options = {**options, "eps": eps, "delta": delta}
    name = getattr(problem_of, "__qualname__", type(problem_of).__name__)
    known = {**options, "x0": x0}
    identity = {"kind": "sweep", "problem": name, "stretch": length, "options": known}
    how = gathering.How(n_jobs, blas_threads, folder, progress, on_result)
    work = gathering.Searches(problem_of, x0, options)
    results, failures = gathering.gather(work, listed, seed, identity, how, "parameters", length)
    return Sweep(listed, results, failures, seed, time.perf_counter() - begin)


def _stretch(warm_start: Any, total: int) -> int:
    if isinstance(warm_start, bool):
        return total if warm_start else 1
    if not isinstance(warm_start, int) or warm_start < 1:
        raise InputError(f"warm_start must be True, False or a positive int, got {warm_start!r}.")
    return warm_start
