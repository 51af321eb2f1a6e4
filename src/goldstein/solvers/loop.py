"""The one loop: budgets, time limit, callbacks, history and progress live here and nowhere else."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import (
    BallTooSmallError,
    FunctionHangs,
    KinkError,
    NotDeterministicError,
    OracleError,
    OutOfCalls,
    OutOfTime,
    WrongGradientError,
)
from goldstein.oracles import CountedOracle
from goldstein.result import History, Status
from goldstein.solvers.base import VALUE_LIMIT, Evidence, Request, Solver, State
from goldstein.solvers.going_on import GoingOn
from goldstein.solvers.logic.progress import IDLE_LIMIT

#: Seconds between two calls of `progress`.
_PROGRESS_EVERY = 0.1

#: What the certificate layer may find out about the function.
ENDINGS: dict[type[Exception], Status] = {
    NotDeterministicError: Status.NOT_DETERMINISTIC,
    BallTooSmallError: Status.BALL_TOO_SMALL,
    WrongGradientError: Status.WRONG_GRADIENT,
}

#: Endings that take nothing from a certificate in hand.
_CUT_SHORT = (
    Status.STALLED,
    Status.OUT_OF_TIME,
    Status.OUT_OF_CALLS,
    Status.STOPPED,
    Status.BALL_TOO_SMALL,
)

#: Calls (and two per variable) without a fall of f before something must be wrong.
_NO_DESCENT = 30

#: From here on, whenever the calls have doubled, the function is looked at whatever f does.
LONG = 1000


@dataclass
class Outcome:
    """How the loop ended."""

    state: State
    status: Status
    certificate: Any
    history: History
    iterations: int


@dataclass(frozen=True)
class Intermediate:
    """What a callback with an `intermediate_result` parameter receives (SciPy's new signature)."""

    x: Vector
    fun: float
    bound: float
    calls: int
    violation: float | None = None


Judge = Callable[[Evidence], tuple[Any, Any]]


def run(
    solver: Solver,
    oracle: CountedOracle,
    x0: Vector,
    request: Request,
    *,
    judge: Judge,
    suspect: Callable[[State], None] | None = None,
    max_time: float | None = None,
    callback: Callable[..., Any] | None = None,
    progress: Callable[[State, int], None] | None = None,
    going_on: GoingOn | None = None,
) -> Outcome:
    """Run a solver until its evidence is accepted or a limit is met.

    `judge(evidence)` is the certificate layer: it returns (certificate, None) when the evidence
    holds and (None, (points, gradients)) with the fresh gradients when it does not.
    `suspect(state)` is called if f has not fallen after some dozen calls, and again in long runs:
    it raises if the function is to blame. With `going_on` a certificate is not always the end.
    """
    begin = time.perf_counter()
    deadline = float("inf") if max_time is None else begin + max_time
    history = History()
    notify = adapt_callback(callback)
    state: State | None = None
    certificate: Any = None
    iterations = 0
    last_shown = begin
    calls, idle = 0, 0
    look = _NO_DESCENT + 2 * min(x0.size, 100)

    def record(s: State) -> State:
        s = oracle.seen(s)
        history.append(
            oracle.billed, s.fx, s.bound, s.radius, time.perf_counter() - begin, s.violation
        )
        return s

    try:
        oracle.deadline = deadline
        state = solver.start(oracle, x0, request)
        record(state)
        if going_on is not None:
            going_on.begins(state)
        while True:
            iterations += 1
            state.moved = False
            # Float64 has finitely many points: a random one can be a kink. The next one is not.
            try:  # noqa: SIM105 (cheaper than a context, and in every step)
                solver.step(oracle, state, request)
            except KinkError:
                pass
            if state.moved:
                shown = record(state)
                if notify is not None:
                    notify(shown, oracle.billed)
                if state.fx < VALUE_LIMIT:
                    status = Status.UNBOUNDED
                    break
            if state.evidence is not None:
                # Whatever the solver had in mind, the claim is about the point we return.
                evidence, state.evidence = state.evidence.about(state.x.copy()), None
                certificate, state.rejected = judge(evidence)
                if certificate is not None and (
                    going_on is None or not going_on.after(certificate, state, oracle.calls)
                ):
                    status = Status.VERIFIED
                    break
                certificate = None
            before, calls = calls, oracle.calls
            if going_on is not None:
                going_on.watch(state, calls)
            if state.status is not None:
                status = state.status
                break
            idle = idle + 1 if calls == before else 0
            if idle >= IDLE_LIMIT:
                status = Status.STALLED
                break
            if suspect is not None and calls >= look:
                if state.steps == 0 or calls >= LONG:
                    suspect(state)
                look = max(LONG, 2 * calls)
            now = time.perf_counter()
            if progress is not None and now - last_shown >= _PROGRESS_EVERY:
                progress(oracle.seen(state), oracle.billed)
                last_shown = now
            if now > deadline:
                status = Status.OUT_OF_TIME
                break
    except OutOfTime:
        status = Status.OUT_OF_TIME
    except OutOfCalls:
        status = Status.OUT_OF_CALLS
    except (StopIteration, KeyboardInterrupt) as cause:
        status = stopped(cause, oracle, request)
    except (NotDeterministicError, BallTooSmallError, WrongGradientError) as ending:
        status = ENDINGS[type(ending)]
    except OracleError as failure:
        failure.last_good = None if state is None else state.x.copy()
        raise
    finally:
        oracle.deadline = float("inf")
    if state is None:  # not even the start could be evaluated
        state = State(x=x0.copy(), fx=np.nan)
    elif going_on is not None and going_on.held is not None and status in _CUT_SHORT:
        certificate, status = going_on.answer(state), Status.VERIFIED
    shown = record(state)
    if progress is not None:
        progress(shown, oracle.billed)
    return Outcome(state, status, certificate, history, iterations)


def stopped(cause: BaseException, oracle: CountedOracle, request: Request) -> Status:
    """Return what a run that was interrupted ends with."""
    if isinstance(cause, FunctionHangs):
        oracle.close()
        return Status.OUT_OF_TIME
    request.stop.note(cause)
    return Status.STOPPED


def takes_result(callback: Callable[..., Any]) -> bool:
    """Whether a callback has SciPy's new signature, `callback(intermediate_result=...)`."""
    try:
        return "intermediate_result" in inspect.signature(callback).parameters
    except (TypeError, ValueError):
        return False


def adapt_callback(callback: Callable[..., Any] | None) -> Callable[[State, int], None] | None:
    """Serve both of SciPy's signatures: `callback(x)` and `callback(intermediate_result=...)`."""
    if callback is None:
        return None
    modern, user = takes_result(callback), callback

    def notify(state: State, calls: int) -> None:
        if modern:
            answer = user(
                intermediate_result=Intermediate(
                    state.x.copy(), state.fx, state.bound, calls, state.violation
                )
            )
        else:
            answer = user(state.x.copy())
        if isinstance(answer, bool | np.bool_) and answer:
            raise StopIteration

    return notify
