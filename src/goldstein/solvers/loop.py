"""The one loop: budgets, time limit, callbacks, history and progress live here and nowhere else.

A run that has its certificate goes on as long as f keeps falling cheaply.

A certificate can be true and useless: where gradients are as small as eps, far from any minimum,
every point has one. So the first certificate is held, the search is asked for a tenth of its eps
and delta, and its answer counts instead when f does not fall any more, or not fast enough. Where
the certificate itself bounds the optimality gap by little, the run ends with it: of a convex f, the
gradients g_j at points y_j with weights w_j say for every z

    f(z) >= f(x) - |sum w_j g_j| |z - x| - sum w_j (f(x) - f(y_j) - <g_j, x - y_j>),

so that no point within a distance has a value that is lower by more than what stands there.
"""

import inspect
import math
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from goldstein import errors
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.function import Layout, put_together
from goldstein.numerics.streams import smallest_delta
from goldstein.oracles import CountedOracle
from goldstein.result import History, Status
from goldstein.solvers.base import VALUE_LIMIT, Answers, Evidence, Request, Solver, State
from goldstein.solvers.logic.portfolio import IDLE_LIMIT

#: What counts is this part of the whole fall of f: as what a certificate leaves to be gained, and
#: as what the last third or so of the steps has gained.
SHARE = 1e-3
#: And this part of eps delta at least: after a warm start there is no whole fall to speak of.
LEAST = 0.1
#: The search is asked for an accuracy that is finer by this factor, but not below that part.
FINER, FINEST = 0.1, 1e-3
#: Before this many calls nobody knows whether f falls.
EARLY = 40
#: Whenever f falls, the search gets this part of its calls more.
MORE = 0.25
#: Where f has shown that it is not convex, what a certificate says of the gap is not to be
#: believed: the search gets this many calls to show what else there is.
PATIENCE = 200
#: Unless it is smaller by this factor: then there is nothing near that would be worth it.
DOUBTED = 0.1
#: A run may take this many times the calls of its first certificate, and that many more; called
#: back, it may take that many more to certify what it has found.
LONGEST, SHORTEST = 4, 1000
#: A search looks as far as this part of the start's length, or of 1, at least.
REACH = 0.1
#: f is not convex, as seen from the heaviest points of the support, where this part of the
#: gradients says so on average, and no fewer of them.
ODD, LEAST_ODD, SEEN_FROM = 0.035, 2, 8
#: A gradient says so where the cosine between its change and the offset is below minus this.
COSINE = 1e-3
#: Numbers that are copied at a time.
_AT_ONCE = 1_000_000


@dataclass(frozen=True)
class Held:
    """A certificate in hand, and the point that it is about."""

    x: Vector
    fx: float
    certificate: Any


class Continuation:
    """Decides after a certificate whether to go on, and while going on when to stop."""

    def __init__(self, solver: Solver, request: Request) -> None:
        self.solver = solver
        self.request = request
        self.held: Held | None = None
        self._start: tuple[Vector, float]
        self._oracle: CountedOracle
        self._finer = 1.0
        self._lowest = float("inf")
        #: What a certificate says of the gap is not to be believed.
        self._nonconvex = False
        #: The call at which the search is called back, unless f falls; and at which it is anyway.
        self._until = self._limit = 0

    def begins(self, state: State, oracle: CountedOracle) -> None:
        """Note where the run begins."""
        self._start, self._oracle = (state.x.copy(), state.fx), oracle

    def after(self, certificate: Any, state: State) -> bool:
        """Say whether the run goes on although it has this certificate."""
        calls = self._oracle.calls
        first = self.held is None
        if not first and self._finer == 1.0:
            return False  # it was called back to certify, and has
        self.held = Held(state.x.copy(), state.fx, certificate)
        if first:
            # After a warm start f has not fallen so far that a share of that counts.
            come_down = self._least(state) == SHARE * self._fall(state)
            self._nonconvex = come_down and contradicts_convexity(
                certificate, *self.solver.known(state)
            )
        enough = self._least(state) * (DOUBTED if self._nonconvex else 1.0)
        if optimality_gap(certificate, self._start[0]) <= enough:
            return False
        if first:
            self._until, self._limit = EARLY, LONGEST * calls + SHORTEST
            if self._nonconvex:
                self._until = calls + PATIENCE
        self._extend(state, calls)
        self._finer *= FINER
        # More than the certificate says.
        eps, delta = self.request.eps, self.request.delta
        while self._finer >= FINEST and (
            certificate.eps <= self._finer * eps and certificate.delta <= self._finer * delta
        ):
            self._finer *= FINER
        more = self._finer >= FINEST and calls < min(self._until, self._limit)
        return more and self._aim(state, self._finer)

    def watch(self, state: State) -> None:
        """Call the search back to what was asked for when f does not fall any more."""
        calls = self._oracle.calls
        if self.held is None or state.midway:
            return
        if state.fx < self._lowest:
            self._extend(state, calls)
        if self._finer == 1.0:
            if calls >= self._limit:
                state.status = Status.STALLED  # what is in hand will do
        elif calls >= min(self._until, self._limit):
            self._finer = 1.0
            self._limit = calls + SHORTEST
            self._aim(state, 1.0)

    def answer(self, state: State) -> Any:
        """Return the certificate that was kept, and take the run back to its point."""
        assert self.held is not None
        state.x, state.fx = self.held.x, self.held.fx
        return self.held.certificate

    def _extend(self, state: State, calls: int) -> None:
        """Let the search have more calls if f falls."""
        self._lowest = state.fx
        if state.earlier - state.fx > self._least(state):
            self._until = max(self._until, int((1.0 + MORE) * calls))

    def _least(self, state: State) -> float:
        """Return the smallest change of f that counts."""
        return max(SHARE * self._fall(state), LEAST * self.request.eps * self.request.delta)

    def _fall(self, state: State) -> float:
        return self._start[1] - state.fx

    def _aim(self, state: State, finer: float) -> bool:
        return self.solver.retarget(state, finer * self.request.eps, finer * self.request.delta)


def optimality_gap(certificate: Any, start: Vector) -> float:
    """Return by how much a convex f may be lower than at x, as far from it as the start is."""
    x, gradients = certificate.x, certificate.gradients
    # f(x) - f(y_j) is at most the largest of <g, x - y_j> over the gradients that matter around x.
    rises = gradients @ x - certificate.points @ gradients.T
    errors = rises.max(axis=1) - rises.diagonal()
    offset = x - start
    reach = max(math.sqrt(offset @ offset), REACH * max(1.0, math.sqrt(start @ start)))
    return float(certificate.eps * reach + certificate.weights @ errors)


def contradicts_convexity(certificate: Any, points: Matrix, gradients: Matrix) -> bool:
    """Are there gradients that no convex f has, as seen from the support of the certificate?"""
    heaviest = np.argsort(-certificate.weights, kind="stable")[:SEEN_FROM].tolist()
    odd = np.zeros(len(heaviest), dtype=int)
    width = max(1, _AT_ONCE // certificate.x.size)
    for first in range(0, len(points), width):
        for place, j in enumerate(heaviest):
            offset = points[first : first + width] - certificate.points[j]
            change = gradients[first : first + width] - certificate.gradients[j]
            inner = np.einsum("ij,ij->i", offset, change)
            squares = np.einsum("ij,ij->i", offset, offset) * np.einsum("ij,ij->i", change, change)
            odd[place] += np.count_nonzero(inner < -COSINE * np.sqrt(squares))
    return bool(odd.mean() >= max(LEAST_ODD, ODD * len(points)))


#: Seconds between two calls of `progress`.
_PROGRESS_EVERY = 0.1

#: What the certificate layer may find out about the function.
ENDINGS: dict[type[Exception], Status] = {
    errors.NotDeterministicError: Status.NOT_DETERMINISTIC,
    errors.BallTooSmallError: Status.BALL_TOO_SMALL,
    errors.WrongGradientError: Status.WRONG_GRADIENT,
    errors.UnresolvedError: Status.BALL_TOO_SMALL,
}


def ended_by(ending: Exception) -> tuple[Status, str]:
    """Return how a run ends by what was found out, and what a status does not say by itself."""
    status = ENDINGS[type(ending)]
    return status, str(ending).rstrip(".") if status is Status.BALL_TOO_SMALL else ""


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
    #: What else there is to say about the status.
    detail: str = ""


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
            except errors.KinkError:
                pass
            for look in watchers:
                if (status := look(state)) is not None:
                    break
    except (errors.OutOfTime, errors.OutOfCalls) as limit:
        status = Status.OUT_OF_TIME if isinstance(limit, errors.OutOfTime) else Status.OUT_OF_CALLS
    except (StopIteration, KeyboardInterrupt) as cause:
        status = stopped(cause, oracle, request)
    except tuple(ENDINGS) as ending:
        status, end.detail = ended_by(ending)
    except errors.OracleError as failure:
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
    if isinstance(cause, errors.FunctionHangs):
        oracle.close()
        return Status.OUT_OF_TIME
    request.stop.note(cause)
    return Status.STOPPED


def teller(callback: Callable[..., Any]) -> Callable[[Any], Any]:
    """Serve both of SciPy's signatures: `callback(x)` and `callback(intermediate_result=...)`."""
    with suppress(TypeError, ValueError):
        if "intermediate_result" in inspect.signature(callback).parameters:
            return lambda seen: callback(intermediate_result=seen)
    return lambda seen: callback(seen.x)


def callback_of_layout(user: Callable[..., Any], layout: Layout) -> Callable[..., Any]:
    """Return a callback that hands over points as the user wrote them."""
    tell = teller(user)
    return lambda intermediate_result: tell(
        replace(intermediate_result, x=put_together(layout, intermediate_result.x))
    )


def adapt_callback(callback: Callable[..., Any] | None) -> Told | None:
    """Return what tells a callback of a state; a true answer stops the run."""
    if callback is None:
        return None
    tell = teller(callback)

    def notify(state: State, calls: int) -> None:
        seen = Intermediate(state.x.copy(), state.fx, state.bound, calls, state.violation)
        answer = tell(seen)
        if isinstance(answer, bool | np.bool_) and answer:
            raise StopIteration

    return notify
