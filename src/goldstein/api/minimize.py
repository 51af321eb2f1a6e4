"""`minimize`: a solver searches, the certificate layer decides."""

from __future__ import annotations

import contextlib
import hashlib
import math
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from goldstein.api.inputs import (
    RNG,
    as_vector,
    call_budget,
    check_stationarity,
    check_target,
    is_number,
    make_solver,
    sized,
    smallest_delta,
)
from goldstein.api.judge import Judge, describe, last_calls
from goldstein.api.near import near_targets, prove_near, require_structure
from goldstein.errors import InputError, InputTypeError, NotDeterministicError
from goldstein.numerics.streams import seed_from
from goldstein.oracles import CountedOracle, Oracle, as_oracle
from goldstein.oracles.journal import JournalOracle, seed_in
from goldstein.result import Result, Status
from goldstein.solvers import Request, Solver, State
from goldstein.solvers.loop import Outcome, run

Vector = NDArray[np.float64]


class PrecisionWarning(UserWarning):
    """The request is close to what float64 can distinguish."""


def minimize(
    fun: Oracle | Callable[..., Any],
    x0: ArrayLike,
    jac: Callable[..., Any] | bool | None = None,
    *,
    args: Sequence[Any] = (),
    eps: float,
    delta: float,
    stationarity: Literal["goldstein", "near"] = "goldstein",
    method: str | Solver = "auto",
    rng: RNG = None,
    lipschitz: float | None = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    callback: Callable[..., Any] | None = None,
    progress: bool | Callable[[State, int], None] = False,
    checkpoint: str | Path | None = None,
    options: dict[str, Any] | None = None,
) -> Result:
    """Minimise a function with kinks and prove how stationary the answer is.

    Parameters
    ----------
    fun : callable, Oracle or Expression
        The function; with `jac=True` it returns (value, gradient).
    x0 : array_like
        Start.
    jac : callable or True
        The gradient. It is asked for at randomly perturbed points only when it counts.
    args : sequence
        Extra arguments of `fun` and `jac`.
    eps, delta : float
        The question: some convex combination of gradients within `delta` of x has norm <= `eps`.
    stationarity : {"goldstein", "near"}
        "near" asks for more: a point within `delta` has a Clarke subgradient of norm <= `eps`.
        It needs an Expression; the certificate is then a `NearCertificate`, exact.
    method : str or Solver
        "auto", "bundle", "pingd", "psingd", "o2nc", or a configured solver.
    rng : None, int or Generator
        Same seed, same result; the seed used is in the result.
    lipschitz : float, optional
        Lipschitz constant; estimated and guarded if missing.
    max_calls : int, optional
        Limit on values plus gradients. Default 50,000 + 100 d.
    max_time : float, optional
        Limit in seconds.
    callback : callable
        `callback(x)` or `callback(intermediate_result=...)` after each descent step; StopIteration
        (or a true return value) stops the run.
    progress : bool
        Show a status line on stderr, on a terminal only.
    checkpoint : path
        Journal of the run; if the file is there and belongs to this run, the run resumes from it.
    options : dict
        Parameters of the named method.

    Returns
    -------
    Result
        `success` is true exactly when `certificate` was verified and meets the request.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([np.sign(x[0]), 2 * np.sign(x[1])])
    >>> res = gs.minimize(f, [3.0, -1.0], g, eps=1e-3, delta=1e-3, rng=0)
    >>> res.success
    True
    >>> res.certificate.verify(f, g).ok
    True
    """
    start = as_vector(x0, "x0")
    check_target(eps, delta, start)
    check_stationarity(stationarity)
    if bounds is not None or not (isinstance(constraints, tuple | list) and not constraints):
        raise InputError(
            "bounds and constraints are not supported yet; put them into fun as an exact penalty."
        )
    budget = call_budget(max_calls, 50_000 + 100 * start.size)
    if max_time is not None and not (is_number(max_time) and max_time > 0):
        raise InputError(f"max_time must be positive seconds or None, got {max_time!r}.")
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback must be callable, got {type(callback).__name__}.")
    solver = make_solver(method, options)
    if checkpoint is not None and not solver.keeps_journal:
        raise InputError(
            "a checkpoint is the journal of all answers, and compiled code asks without Python; "
            "drop checkpoint=, or options={'compiled': True}."
        )
    oracle = sized(as_oracle(fun, jac, args), start)
    if stationarity == "near":
        require_structure(oracle)
    seed = seed_from(rng)
    begin = time.perf_counter()
    if checkpoint is not None and rng is None:
        recorded = seed_in(checkpoint)
        seed = seed if recorded is None else recorded
    request = Request(float(eps), float(delta), seed, lipschitz)
    identity = {
        "function": oracle.name, "x0": hashlib.sha256(start.tobytes()).hexdigest(),
        "eps": request.eps, "delta": request.delta,
        "method": solver.name, "options": repr(sorted(vars(solver).items())), "seed": seed,
        "stationarity": stationarity, "lipschitz": lipschitz,
    }  # fmt: skip
    with _journalled(oracle, checkpoint, identity) as base:
        counted = CountedOracle(base, budget)
        meta = describe(oracle, solver.name, seed, x0)
        off_the_record = getattr(base, "off_the_record", contextlib.nullcontext)
        deadline = math.inf if max_time is None else begin + max_time
        watch = _status_line if progress is True else progress or None

        def solve(x: Vector, target: Request) -> tuple[Outcome, Any, Status]:
            judge = Judge(counted, target, meta)
            left = None if max_time is None else max(deadline - time.perf_counter(), 1e-3)
            with counted.reserved(last_calls(budget, start.size)):
                outcome = run(
                    solver, counted, x, target,
                    judge=judge, max_time=left, callback=callback, progress=watch,
                )  # fmt: skip
            certificate, status = outcome.certificate, outcome.status
            if certificate is None:
                try:
                    with off_the_record():
                        certificate = judge.last_word(solver, outcome)
                except NotDeterministicError:
                    status = Status.NOT_DETERMINISTIC
                if certificate is not None and certificate.eps <= target.eps:
                    status = Status.VERIFIED  # the run was cut short with the proof in its hands
            return outcome, certificate, status

        if stationarity == "near":
            outcome, certificate, status = _solve_near(solve, oracle, start, request)
        else:
            outcome, certificate, status = solve(start, request)
            exact = hasattr(oracle, "kink_form")
            if status is Status.VERIFIED and exact and not certificate.verify(oracle).ok:
                status = Status.NOT_VERIFIED  # exact gradients overrule those in float64
        if certificate is not None and isinstance(base, JournalOracle) and base.replayed:
            _check_replayed(certificate, oracle, base)
    state = outcome.state
    done = status in (Status.VERIFIED, Status.UNBOUNDED)
    if delta * eps / 4 < 8 * 2.0**-53 * abs(state.fx) and not done:
        warnings.warn(
            f"the descent test compares values to {delta * eps / 4:.3g}, but |f| = "
            f"{abs(state.fx):.3g} is only exact to {abs(state.fx) * 2.0**-52:.3g}; "
            "raise eps or delta, or shift f by a constant.",
            PrecisionWarning,
            stacklevel=2,
        )
    success = status is Status.VERIFIED
    message = status.message
    if status.advice and not success:
        message += f"; {status.advice}"
    return Result(
        x=state.x.copy(),
        fun=state.fx,
        success=success,
        status=status,
        message=message,
        nit=state.steps,
        nfev=counted.values,
        ngev=counted.gradients,
        certificate=certificate,
        history=outcome.history,
        seed=seed,
        time=time.perf_counter() - begin,
        method=solver.name,
    )


def _solve_near(
    solve: Callable[[Vector, Request], tuple[Outcome, Any, Status]],
    oracle: Oracle,
    start: Vector,
    request: Request,
) -> tuple[Outcome, Any, Status]:
    """Shrink the Goldstein target until its certificate transports to a pivot."""
    whole, certificate = None, None
    x = start
    for stage, (eps, delta) in enumerate(
        near_targets(request.eps, request.delta, smallest_delta(start))
    ):
        target = replace(request, eps=eps, delta=delta, seed=request.seed + stage)
        outcome, goldstein, status = solve(x, target)
        whole = outcome if whole is None else whole.followed_by(outcome)
        x = outcome.state.x
        near = None
        if goldstein is not None:
            near = prove_near(oracle, goldstein, request.eps, request.delta, request.seed)
        if near is not None and near.eps <= request.eps:
            return whole, near, Status.VERIFIED
        # Only the last stage speaks about the point that is returned.
        certificate = near or goldstein
        if status is not Status.VERIFIED:
            return whole, certificate, status
    assert whole is not None
    return whole, certificate, Status.NOT_VERIFIED


def _check_replayed(certificate: Any, oracle: Oracle, journal: JournalOracle) -> None:
    """What rests on a checkpoint is believed only after asking the function itself."""
    if not certificate.verify(oracle).ok:
        raise InputError(
            f"checkpoint {journal.path} was made with another function: the certificate does not "
            "hold for this one. Name another file, or delete it to start afresh."
        )


@contextlib.contextmanager
def _journalled(
    oracle: Oracle, path: str | Path | None, identity: dict[str, Any]
) -> Iterator[Oracle]:
    if path is None:
        yield oracle
        return
    journal = JournalOracle(oracle, path, identity)
    try:
        yield journal
    finally:
        journal.close()


def _status_line(state: State, calls: int) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"\rcalls {calls:>8}   f {state.fx:.8g}   |m| {state.bound:.3g}    ")
        sys.stderr.flush()
