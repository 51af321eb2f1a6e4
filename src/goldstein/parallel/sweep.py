"""`sweep`: one problem for each parameter, side by side or along a path."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goldstein.api.inputs import RNG
from goldstein.errors import InputError, InputTypeError
from goldstein.parallel.gathering import Failure, How, OnResult, Searches, gather, seed_of
from goldstein.result import Result


@dataclass(repr=False)
class Sweep:
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
    failures: list[Failure]
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
                calls = result.nfev + result.ngev
                lines.append(
                    f"  {shown}: f = {result.fun:.10g}, {result.status.name}, {calls} calls"
                )
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
    on_result: OnResult | None = None,
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
    seed = seed_of(rng, folder)
    length = _stretch(warm_start, len(listed))
    options = {**options, "eps": eps, "delta": delta}
    name = getattr(problem_of, "__qualname__", type(problem_of).__name__)
    known = {**options, "x0": x0}
    identity = {"kind": "sweep", "problem": name, "stretch": length, "options": known}
    how = How(n_jobs, blas_threads, folder, progress, on_result)
    work = Searches(problem_of, x0, options)
    results, failures = gather(work, listed, seed, identity, how, "parameters", length)
    return Sweep(listed, results, failures, seed, time.perf_counter() - begin)


def _stretch(warm_start: Any, total: int) -> int:
    if isinstance(warm_start, bool):
        return total if warm_start else 1
    if not isinstance(warm_start, int) or warm_start < 1:
        raise InputError(f"warm_start must be True, False or a positive int, got {warm_start!r}.")
    return warm_start
