"""The driver of all searches: a run, its stages, and how each of them ends."""

from __future__ import annotations

import importlib
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, OutOfCalls
from goldstein.oracles import CountedOracle
from goldstein.oracles.counted import Map
from goldstein.oracles.problem import Problem
from goldstein.result import History, Status
from goldstein.solvers import Request, Solver, State, loop

#: Endings of a search that another stage would not change.
FINAL = (
    Status.STOPPED,
    Status.OUT_OF_TIME,
    Status.OUT_OF_CALLS,
    Status.NOT_DETERMINISTIC,
    Status.WRONG_GRADIENT,
)

#: Answers that no further stage would change.
DECIDED = (Status.VERIFIED, Status.DEGENERATE, *FINAL)


@dataclass(frozen=True)
class Options:
    """Options of `minimize` itself.

    Are gradients checked, are iterates feasible, does a run go on while f falls cheaply, and does
    it begin with a prox-linear initialisation where an expression allows for it?
    """

    check_gradient: bool = True
    feasible: bool = False
    go_on: bool = True
    leaps: bool = True
    #: Of values only: central differences; f itself has a gradient, its constraints have none.
    central: bool = False
    exact: bool = False
    #: What the user declares: f - curvature/2 |x|^2 is convex.
    curvature: float | None = None


USUAL = Options()


@dataclass
class Answer:
    """Where a search ended, and what was proved there."""

    x: Vector
    status: Status
    certificate: Any = None
    detail: str = ""
    #: f + term at x, where it is known.
    fun: float | None = None


@dataclass
class Course:
    """The way a run has come, all its searches together."""

    history: History = field(default_factory=History)
    steps: int = 0
    begin: float = field(default_factory=time.perf_counter)


@dataclass
class Run:
    """What all searches of one call share."""

    problem: Problem
    solver: Solver
    request: Request
    meta: dict[str, Any]
    deadline: float = math.inf
    callback: Callable[..., Any] | None = None
    progress: Callable[[State, int], None] | None = None
    options: Options = USUAL
    workers: Map = map
    course: Course = field(default_factory=Course)

    def __post_init__(self) -> None:
        self._notify = loop.adapt_callback(self.callback)

    def aimed(self, eps: float, delta: float, more: int = 0) -> Run:
        """Return this run with another target, and a seed so much larger."""
        request = replace(self.request, eps=eps, delta=delta, seed=self.request.seed + more)
        return replace(self, request=request)

    def apart(self, problem: Problem, target: Request) -> Run:
        """Return a run on another problem, inside this one, that nobody watches."""
        request = Request(target.eps, target.delta, target.seed, target.lipschitz)
        return replace(
            self, problem=problem, request=request, callback=None, progress=None, course=Course()
        )

    @property
    def late(self) -> bool:
        return time.perf_counter() > self.deadline

    def time_left(self) -> float | None:
        left = self.deadline - time.perf_counter()
        return None if math.isinf(left) else max(left, 1e-3)

    def solve(
        self,
        function: CountedOracle,
        x: Vector,
        target: Request,
        judge: Any,
        continuation: loop.Continuation | None = None,
    ) -> loop.Outcome:
        """Let the solver search on a function that the problem was reduced to."""
        suspect = getattr(judge, "suspect", None)
        outcome = loop.run(
            self.solver, function, x, target, judge=judge, suspect=suspect,
            max_time=self.time_left(), callback=self.callback, progress=self.progress,
            continuation=continuation,
        )  # fmt: skip
        self.course.history.extend(outcome.history)
        self.course.steps += outcome.state.steps
        return outcome

    def moved(self, x: Vector, fun: float, violation: float | None = None) -> None:
        """Note a step that was made without a solver, and tell those who watch."""
        state = State(x=x, fx=fun, radius=self.request.delta, violation=violation)
        self.course.steps += 1
        now, calls = time.perf_counter() - self.course.begin, self.problem.f.calls
        self.course.history.append(calls, fun, math.inf, state.radius, now, violation)
        if self.progress is not None:
            self.progress(state, calls)
        if self._notify is not None:
            self._notify(state, calls)


def no_gradient(delta: float) -> InputError:
    """Return the refusal of a claim about a ball in which nothing is known."""
    return InputError(f"no gradient could be had within {delta:g} of x; raise max_calls or delta.")


class Standing(CountedOracle):
    """A function that stands for f in a search; the calls that users see are those of f."""

    def __init__(self, inner: Any, source: CountedOracle, **guard: Any) -> None:
        super().__init__(inner, **guard)
        self.source = source

    @property
    def billed(self) -> int:
        return self.source.billed

    def close(self) -> None:
        super().close()
        self.source.close()


class Reduced(Standing):
    """One with other variables.

    `inner` has `invert(z)`, and `shown(z, value)` with the value of f and the violation there.
    """

    def gradients_at(self, points: Matrix) -> Iterator[Vector | None]:
        if self.source.workers is not None:
            self.inner.fetch(points)  # type: ignore[attr-defined]
        return super().gradients_at(points)

    def seen(self, state: Any) -> Any:
        x, fun, violation = self.inner.shown(state.x, state.fx)  # type: ignore[attr-defined]
        return State(
            x=x, fx=fun, bound=state.bound, radius=state.radius, steps=state.steps,
            violation=violation,
        )  # fmt: skip


class Reduction(ABC):
    """One way to search. Subclasses say how a stage goes; the loop over stages is here.

    `accepts` says which problems it is for, `apply` where a search begins, `invert` what an answer
    of the search is worth, `claim` what can be said of a point without a search.
    """

    #: Stages at most, and calls kept back for the value of the answer.
    stages, reserve = 1, 1

    def __init__(self, run: Run) -> None:
        self.run, self.problem, self.request = run, run.problem, run.request
        self.stop = run.request.stop

    def search(self, start: Vector) -> Answer:
        """Search until the claim is proved, or a limit is met."""
        self.stop.x, detail = self.apply(start), ""
        try:
            return self._through_stages(self.stop.x)
        except OutOfCalls:
            status = Status.OUT_OF_CALLS
        except (StopIteration, KeyboardInterrupt) as cause:
            if self.stop.by:
                raise
            status = loop.stopped(cause, self.problem.f, self.request)
        except tuple(loop.ENDINGS) as ending:
            status, detail = loop.ended_by(ending)
        answer = self.ended(self.best, status)
        answer.detail = answer.detail or detail
        return answer

    def _through_stages(self, x: Vector) -> Answer:
        found = self.begin(x)
        for stage in range(self.stages):
            if isinstance(found, Answer):
                return found
            if self.stop.by:
                break
            self.stop.x = found
            found = self.stage(found, stage)
        if isinstance(found, Answer):
            return found
        return self.ended(found, Status.STOPPED if self.stop.by else Status.NOT_VERIFIED)

    @property
    def best(self) -> Vector:
        """The best point so far."""
        assert self.stop.x is not None
        return self.stop.x

    @classmethod
    def accepts(cls, problem: Problem, options: Options) -> bool:
        """Return whether this is the way for a problem."""
        return False

    def apply(self, start: Vector) -> Vector:
        """Return the point of the problem that is nearest to a start."""
        return self.problem.box.clip(start)

    def begin(self, x: Vector) -> Vector | Answer:
        """Return where to search from, or the answer."""
        return x

    @abstractmethod
    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        """Search once; return where to go on, or the answer."""

    def ended(self, x: Vector, status: Status) -> Answer:
        """Return what is known of x when nothing more is searched."""
        return Answer(x, status)

    def invert(self, answer: Answer) -> Answer:
        """Return the answer of a run with what is proved of it in the end."""
        return answer

    @abstractmethod
    def claim(self, x: Vector) -> Any:
        """Return what can be claimed of a point as it is."""

    def hint(self, x: Vector) -> Any:
        """Return a claim about x that a stronger one may come from, or None."""
        return self.claim(x)


#: Modules of the library's own reductions, loaded one by one until one of them accepts.
_OWN = ("stationarity", "penalty", "prox_term", "values_only")

_known: list[type[Reduction]] = []

R = TypeVar("R", bound=type[Reduction])


def register_reduction(kind: R) -> R:
    """Let it be asked about problems, before those that came earlier (a decorator)."""
    _known.insert(0, kind)
    return kind


def reduction_for(problem: Problem, options: Options) -> type[Reduction]:
    """Return the reduction that accepts a problem."""
    for module in (None, *_OWN):
        if module is not None:
            importlib.import_module(f"goldstein.reductions.{module}")
        for kind in _known:
            if kind.accepts(problem, options):
                return kind
    raise NotImplementedError(f"no way to search on {problem}")
