"""The one loop: budgets, time limit, callbacks, history and progress live here and nowhere else."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
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
from goldstein.numerics.ball import smallest_delta
from goldstein.oracles import CountedOracle
from goldstein.result import History, Status
from goldstein.solvers.ask_tell import Answers
from goldstein.solvers.base import VALUE_LIMIT, Evidence, Request, Solver, State
from goldstein.solvers.continuation import Continuation
from goldstein.solvers.logic.portfolio import IDLE_LIMIT

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

#: A search that has gone so far without an end has none.
FAR = 2.0**40

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

#: Looks at the state after every step, and says when and how the run ends.
Watcher = Callable[[State], Status | None]

#: Is told a state and the calls so far.
Told = Callable[[State, int], None]


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
    progress: Told | None = None,
    continuation: Continuation | None = None,
) -> Outcome:
    """Run a solver until its evidence is accepted or a limit is met.

    `judge(evidence)` is the certificate layer: it returns (certificate, None) when the evidence
    holds and (None, (points, gradients)) with the fresh gradients when it does not.
    `suspect(state)` is called if f has not fallen after some dozen calls, and again in long runs:
    it raises if the function is to blame. With `continuation` a certificate is not always the end.
    """
    # Not even the start has been evaluated.
    end = Outcome(State(x=x0.copy(), fx=np.nan), Status.STALLED, None, History(), 0)
    notify, delta = adapt_callback(callback), request.delta
    watch = _Watch(oracle, end, judge, notify, progress, suspect, continuation, delta)
    watch.deadline = math.inf if max_time is None else watch.begin + max_time
    watchers = watch.watchers()
    status: Status | None = None
    try:
        oracle.deadline = watch.deadline
        # Differences of noisy values are other ones each time.
        oracle.answers = None if solver.on_values else Answers(x0.size)
        state = end.state = solver.start(oracle, x0, request)
        watch.record(state)
        if continuation is not None:
            continuation.begins(state, oracle)
        while status is None:
            end.iterations += 1
            state.moved = False
            # Float64 has finitely many points: a random one can be a kink. The next one is not.
            try:  # noqa: SIM105 (cheaper than a context, and in every step)
                solver.step(oracle, state, request)
            except KinkError:
                pass
            for look in watchers:
                if (status := look(state)) is not None:
                    break
    except (OutOfTime, OutOfCalls) as limit:
        status = Status.OUT_OF_TIME if isinstance(limit, OutOfTime) else Status.OUT_OF_CALLS
    except (StopIteration, KeyboardInterrupt) as cause:
        status = stopped(cause, oracle, request)
    except (NotDeterministicError, BallTooSmallError, WrongGradientError) as ending:
        status = ENDINGS[type(ending)]
    except OracleError as failure:
        failure.last_good = oracle.seen(end.state).x.copy() if end.history.calls else None
        raise
    finally:
        oracle.deadline, oracle.answers = math.inf, None
    end.status = status
    if continuation is not None and continuation.held is not None and status in _CUT_SHORT:
        end.certificate, end.status = continuation.answer(end.state), Status.VERIFIED
    shown = watch.record(end.state)
    if progress is not None:
        progress(shown, oracle.billed)
    return end


@dataclass
class _Watch:
    """Those who look at the state after every step, and what they remember."""

    oracle: CountedOracle
    end: Outcome
    judge: Judge
    notify: Told | None
    progress: Told | None
    suspect: Callable[[State], None] | None
    continuation: Continuation | None
    delta: float
    deadline: float = math.inf
    begin: float = field(default_factory=time.perf_counter)
    calls: int = 0
    idle: int = 0

    def watchers(self) -> list[Watcher]:
        """Return them in the order in which they look."""
        self.shown = self.begin
        self.due = _NO_DESCENT + 2 * min(self.end.state.x.size, 100)
        chosen: list[Watcher] = [self.course, self.judged]
        chosen += [self.continuation.watch] if self.continuation is not None else []
        chosen += [self.gives_up]
        chosen += [self.doubts] if self.suspect is not None else []
        return [*chosen, self.clock]

    def record(self, state: State) -> State:
        """Write into the history what users see of a state, and return that."""
        s = self.oracle.seen(state)
        now = time.perf_counter() - self.begin
        self.end.history.append(self.oracle.billed, s.fx, s.bound, s.radius, now, s.violation)
        return s

    def course(self, state: State) -> Status | None:
        """History and callback; a function that falls without end."""
        if not state.moved:
            return None
        shown = self.record(state)
        if self.notify is not None:
            self.notify(shown, self.oracle.billed)
        return Status.UNBOUNDED if state.fx < VALUE_LIMIT else None

    def judged(self, state: State) -> Status | None:
        """Has the solver evidence that holds?"""
        if state.evidence is None:
            return None
        # Whatever the solver had in mind, the claim is about the point we return.
        evidence, state.evidence = state.evidence.about(state.x.copy()), None
        certificate, state.rejected = self.judge(evidence)
        further = self.continuation
        if certificate is None or (further is not None and further.after(certificate, state)):
            return None
        self.end.certificate = certificate
        return Status.VERIFIED

    def gives_up(self, state: State) -> Status | None:
        """Has the solver ended, or stopped asking?"""
        before, self.calls = self.calls, self.oracle.calls
        self.idle = self.idle + 1 if self.calls == before else 0
        if state.status is not Status.STALLED and self.idle < IDLE_LIMIT:
            return state.status
        # Far out, where nothing moves any more, the ball is to blame.
        far = np.abs(state.x).max() >= FAR and self.delta < smallest_delta(state.x)
        return Status.BALL_TOO_SMALL if far else Status.STALLED

    def doubts(self, state: State) -> None:
        """Where f does not fall, and now and then in long runs: is the function to blame?"""
        if self.calls >= self.due:
            assert self.suspect is not None
            if state.steps == 0 or self.calls >= LONG:
                self.suspect(state)
            self.due = max(LONG, 2 * self.calls)

    def clock(self, state: State) -> Status | None:
        """Progress now and then; the end of the time."""
        now = time.perf_counter()
        if self.progress is not None and now - self.shown >= _PROGRESS_EVERY:
            self.progress(self.oracle.seen(state), self.oracle.billed)
            self.shown = now
        return Status.OUT_OF_TIME if now > self.deadline else None


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


def adapt_callback(callback: Callable[..., Any] | None) -> Told | None:
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
