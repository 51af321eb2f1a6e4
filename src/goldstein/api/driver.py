"""The driver: what a call was asked, the reductions it goes through, and how the answer is told.

A watchdog ends a run whose function does not return, as Ctrl-C would. Python lets signals interrupt
Python code, sleeping and waiting, in the main thread; not a C function that is busy, and not other
threads. There `max_time` is looked at between two calls.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from pathlib import Path
from types import FrameType
from typing import Any, TypeVar

import numpy as np

from goldstein import __version__, errors
from goldstein.api.inputs import deadline_after, refuse, sized
from goldstein.api.progress import reporter
from goldstein.certificates.goldstein import bounded_term
from goldstein.certificates.verifying import with_layout
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.limits import Group, as_box
from goldstein.checker.function import Layout, put_together
from goldstein.construction.judge import describe
from goldstein.numerics.streams import LONGEST, size_of, stream, uniform_in_ball
from goldstein.oracles import CountedOracle, Oracle, as_oracle, differences, function, separable
from goldstein.oracles import problem as problems
from goldstein.oracles.problem import JournalOracle, Problem, given, lacks_gradient
from goldstein.prox.term import Term
from goldstein.reductions.base import USUAL, Answer, Options, Reduction, Run, reduction_for
from goldstein.reductions.functions import Reflected, Violation
from goldstein.reductions.stationarity import Stationarity, Stronger, stationarity_named
from goldstein.result import Asked, Result, Status
from goldstein.solvers import Request, Solver, State
from goldstein.storage.journal import Journal, journal_at, same_value

#: After the end of the time a call may take as long as the whole run, and at least so long.
LEAST = 5.0

#: Where the user's functions are called.
_CALLS = {part.__code__ for part in (CountedOracle.value, CountedOracle._gradient, Group._numbers)}


@contextlib.contextmanager
def watched(max_time: float | None) -> Iterator[None]:
    """Interrupt a call that goes on, after max_time, for `max_time` (at least `LEAST`) seconds."""
    if max_time is None or not _available():
        yield
        return
    grace = max(LEAST, float(max_time))
    before: FrameType | None = None

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal before
        while frame is not None and frame.f_code not in _CALLS:
            frame = frame.f_back
        if frame is not None and frame is before:  # the very call of the last time
            before = None
            raise errors.FunctionHangs
        before = frame

    previous = signal.signal(signal.SIGALRM, look)
    signal.setitimer(signal.ITIMER_REAL, float(max_time), grace)
    try:
        yield
    except errors.FunctionHangs:
        raise errors.GoldsteinError(
            f"the function does not return: after max_time a call went on for {grace:g} s, and so "
            "did one to state what is known by then. See where it waits or loops."
        ) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def _available() -> bool:
    """Whether the alarm clock is there, free, and ours to set."""
    return (
        hasattr(signal, "setitimer")
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
        and signal.getitimer(signal.ITIMER_REAL)[0] == 0.0
    )


T = TypeVar("T")

#: A search that failed and went so many times as far as x0 is told to begin elsewhere.
AWAY = 50.0

#: Variables whose sizes differ by as much, at the start and at the end, are better scaled.
UNEVEN = 100.0

#: Endings that say less than that the user has stopped the run.
_CUT_SHORT = (
    Status.STOPPED,
    Status.VERIFIED,
    Status.NOT_VERIFIED,
    Status.STALLED,
    Status.OUT_OF_CALLS,
)


def first_length(oracle: Oracle, x: Vector, delta: float, seed: int) -> float:
    """Return the length of a gradient next to the start, which may be a kink."""
    y = uniform_in_ball(stream(seed, 0, "rel_eps"), x, delta)
    return float(np.linalg.norm(oracle.gradient(y)))


@dataclass(frozen=True)
class Call:
    """The function and the point of a call as the user wrote them, and the point as a vector."""

    fun: Any
    jac: Any
    args: Any
    x: Any
    layout: Layout | None
    point: Vector
    constraints: Any = ()
    method: Any = "auto"

    @property
    def differences(self) -> str | None:
        """ "2-point" or "3-point" where the user names differences of values."""
        return self.jac if isinstance(self.jac, str) and self.jac in function.DIFFERENCES else None

    @property
    def on_values(self) -> bool:
        """Whether differences of values stand for gradients of f, or of a constraint."""
        return self.differences is not None or lacks_gradient(self.constraints)

    @property
    def exact(self) -> bool:
        """Whether f has a gradient, whatever its constraints have."""
        return self.method == "auto" and self.differences is None


@dataclass
class Task:
    """The arguments of `minimize` or `certify`, read; nobody changes them.

    `request` has everything but an eps that is relative to a gradient, for which nobody has asked
    yet: see `_aimed`.
    """

    oracle: Oracle
    point: Vector
    layout: Layout | None
    kind: Stationarity
    request: Request
    solver: Solver
    budget: int
    #: Values are all that is asked for; there are bounds or constraints.
    on_values: bool = False
    limited: bool = False
    bounds: Any = None
    constraints: Any = ()
    term: Term | None = None
    options: Options = USUAL
    max_time: float | None = None
    deadline: float = math.inf
    rel_eps: float | None = None
    callback: Callable[..., Any] | None = None
    progress: bool | Callable[[State, int], None] = False
    checkpoint: str | Path | None = None
    workers: Any = None
    meta: dict[str, Any] = field(default_factory=dict)
    gradient_source: str = "given"
    begin: float = field(default_factory=time.perf_counter)
    #: The calls of the run, once there may be any.
    counted: CountedOracle | None = None

    @classmethod
    def read(
        cls, call: Call, solver: Solver, stationarity: Any, request: Request, *, name: str = "",
        plus: Any = None, options: Options = USUAL, **more: Any,
    ) -> Task:  # fmt: skip
        """Read what was given; refuse what does not go together."""
        kind, on_values, point = stationarity_named(stationarity), solver.on_values, call.point
        bounds, constrained = more.get("bounds"), given(call.constraints)
        limited = bounds is not None or constrained
        there = {
            "differences": call.differences, "plus": plus is not None, "limits": limited,
            "unlimited": not limited, "constraints": constrained, "layout": call.layout,
            "checkpoint": more.get("checkpoint"), "workers": more.get("workers") is not None,
            "feasible": options.feasible,
        }  # fmt: skip
        present = set(compress(there, there.values())) | solver.needs | kind.needs
        refuse(present, kind=kind.name, jac=call.jac, method=solver.name)
        read: Any = function.values_of if on_values and not call.exact else as_oracle
        if read is as_oracle:
            read = partial(as_oracle, like=point)
        oracle = sized(read(call.fun, call.jac, call.args, call.layout), point)
        term = None if plus is None else _term(plus, point, bounds)
        if term is not None:
            more["bounds"] = None
            if kind.strengthen is not None:
                _require(kind, oracle)
                oracle, more["bounds"] = term.added_to(oracle)
                term = None
        if on_values:
            central = call.differences == "3-point" or options.central
            options = replace(options, central=central, exact=call.exact)
        return cls(
            oracle, point, call.layout, kind, request, solver, term=term, on_values=on_values,
            limited=constrained or more.get("bounds") is not None, constraints=call.constraints,
            options=options, deadline=deadline_after(more.get("max_time")),
            meta=describe(oracle, name or solver.name, request.seed, call.x),
            gradient_source=_source(call.fun, call.jac, on_values), **more,
        )  # fmt: skip

    def identity(self) -> dict[str, Any]:
        """Return what makes a run: a journal belongs to one of them."""
        request, own = self.request, self.options
        told = {} if self.term is None else {"plus": repr(self.term.to_record())}
        if self.on_values:
            told["central"] = str(own.central)
        return {
            "goldstein": __version__,
            "function": self.oracle.name,
            "x0": hashlib.sha256(self.point.tobytes()).hexdigest(),
            "eps": request.eps if self.rel_eps is None else None, "rel_eps": self.rel_eps,
            "delta": request.delta, "seed": request.seed, "lipschitz": request.lipschitz,
            "method": self.solver.name, "options": repr(sorted(vars(self.solver).items())),
            "stationarity": self.kind.name, "check_gradient": own.check_gradient,
            "go_on": own.go_on, "leaps": own.leaps, "feasible": own.feasible, **told,
            **problems.limits_identity(self.bounds, self.constraints, self.point.size),
        }  # fmt: skip

    def _with_reduction(self, use: Callable[[Reduction, Journal | None], T]) -> T:
        """Give the reduction of the problem to a search, with all that a run can have besides."""
        identity = {} if self.checkpoint is None else self.identity()
        with (
            separable.mapped(self.workers) as ask,
            journal_at(self.checkpoint, identity) as journal,
            watched(self.max_time),
        ):
            return use(self._reduced(ask, journal), journal)

    def _reduced(self, ask: Any, journal: Journal | None) -> Reduction:
        base = self.oracle if journal is None else JournalOracle(self.oracle, journal)
        many = None if self.workers is None else ask
        f = self.counted = CountedOracle(base, self.budget, LONGEST, many)
        problem = self.problem(f, ask, journal)
        run = Run(
            problem, self.solver, self.aimed(problem), self.meta, self.deadline, self.callback,
            options=self.options, workers=ask,
        )  # fmt: skip
        kind = reduction_for(problem, self.options)
        if self.kind.strengthen is None:
            return kind(run)
        if self.kind.require is not None:
            self.kind.require(problem, self.point)
        return (self.kind.reduction or Stronger)(run, kind, self.kind)

    def problem(self, f: CountedOracle, ask: Any = map, journal: Journal | None = None) -> Problem:
        """Return what is asked, of a function that counts."""
        how: dict[str, Any] = {"journal": journal, "layout": self.layout}
        if self.on_values:
            how |= {"stencil": self._stencil(self.options.central), "workers": ask}
        return Problem.of(f, self.point, self.bounds, self.constraints, self.term, **how)

    def _stencil(self, central: bool = False) -> differences.Stencil:
        box = as_box(self.bounds, self.point.size)
        return differences.Stencil(box.lower, box.upper, self.request.seed, central=central)

    def aimed(self, problem: Problem) -> Request:
        """Return the request with its eps; a relative one is that of the first gradient."""
        request = self.request
        if self.rel_eps is None:
            return request
        f, x, seed = problem.f, self.point, request.seed
        if self.on_values:
            f = CountedOracle(differences.Differences(f, self._stencil(), exact=self.options.exact))
        if problem.limited or self.on_values:
            f, x = CountedOracle(Reflected(f, problem.box)), problem.box.clip(x)
        length = first_length(f, x, request.delta, seed)
        if length == 0.0:
            raise errors.InputError(
                "rel_eps is relative to the first gradient, and that is 0 next to x0; give eps."
            )
        return replace(request, eps=self.rel_eps * length)

    def stated(self) -> Any:
        """Return what can be proved of the point as it is."""
        found = self._with_reduction(lambda reduction, _: reduction.claim(self.point))
        return with_layout(found, self.layout)

    def searched(self) -> Result:
        """Search; on Ctrl-C return the best point, on an error say which that was."""
        stop = self.request.stop
        try:
            return self._with_reduction(self._searched)
        except KeyboardInterrupt as cause:
            if stop.by:  # the second one
                raise
            stop.note(cause)
            return self._given_up()
        except errors.OracleError as failure:
            if failure.last_good is None and stop.x is not None and failure.call != 1:
                failure.last_good = stop.x.copy()  # between searches
            before = 0 if self.counted is None else self.counted.calls
            failure.call = failure.call or before + 1  # of a constraint
            raise

    def _searched(self, reduction: Reduction, journal: Journal | None) -> Result:
        run = reduction.run
        problem, f = run.problem, run.problem.f
        with reporter(self.progress, self.budget, run.request.eps) as run.progress:
            with f.reserved(reduction.reserve):
                answer = reduction.search(self.point)
            answer = reduction.invert(answer)
        if f.closed:  # no question is answered any more
            answer.status = Status.OUT_OF_TIME
            answer.fun = math.nan if answer.fun is None else answer.fun
        if answer.fun is None:
            answer.fun = self._at_last(lambda: problem.value(answer.x))
        self._at_last(lambda: self._check_replayed(journal, problem, answer))
        return self._result(run, answer)

    def _given_up(self) -> Result:
        """Return where a run was that was interrupted outside of its searches."""
        f = self.counted or CountedOracle(self.oracle)
        problem = replace(Problem.of(f, self.point, self.bounds), term=self.term)
        x = self.request.stop.x
        f.inner, answer = self.oracle, Answer(problem.box.clip(self.point), Status.STOPPED)
        answer.x, answer.fun = answer.x if x is None else x, math.nan
        with contextlib.suppress(errors.GoldsteinError):
            answer.fun = problem.value(answer.x)
        return self._result(Run(problem, self.solver, self.request, self.meta), answer)

    def _at_last(self, ask: Callable[[], T]) -> T:
        """Ask what belongs to an answer in hand; Ctrl-C is noted, and the question repeated."""
        try:
            return ask()
        except KeyboardInterrupt as cause:
            if isinstance(cause, errors.FunctionHangs) or self.request.stop.by:
                raise
            self.request.stop.note(cause)
            return ask()

    @property
    def limits(self) -> dict[str, Any]:
        """What `verify` must be given besides the function."""
        found = {} if self.term is None else {"plus": self.term}
        if self.limited:
            found["bounds"] = self.bounds
            if given(self.constraints) or not self.on_values:
                found["constraints"] = self.constraints
        return found

    def _check_replayed(self, journal: Journal | None, problem: Problem, answer: Answer) -> None:
        """What rests on a checkpoint is believed only after asking the function itself."""
        if journal is None or not journal.recalled:
            return
        x, f, limits, start = answer.x, self.oracle, self.limits, problem.box.clip(self.point)
        if self.layout is not None and "constraints" in limits:
            limits["constraints"] = problems.of_vectors(self.constraints, start, self.layout)
        term = 0.0 if self.term is None else self.term.value(x)
        fun = math.nan if answer.fun is None else answer.fun
        same = not f.has_value or math.isnan(fun) or same_value(fun, f.value(x.copy()) + term)
        if answer.status is Status.INFEASIBLE:
            f = Violation(limits.pop("constraints"), start)
        proof = answer.certificate
        if not same or (proof is not None and not proof.verify(f, **limits).ok):
            raise errors.CheckpointError(
                f"checkpoint {journal.path} was made with another function: the answer does not "
                "hold for this one. Name another file, or delete it to start afresh."
            )

    def _result(self, run: Run, answer: Answer) -> Result:
        """Return what a search has found as a result.

        A run that the user has stopped is said to be so, whatever it had proved by then.
        """
        by, status, f = self.request.stop.by, answer.status, run.problem.f
        success, what = status is Status.VERIFIED, status.message
        if by and status in _CUT_SHORT:
            what = f"the run was stopped by {by}" + (f"; {what}" if success else "")
            status = Status.STOPPED
        proof, request = answer.certificate, run.request
        confidence = getattr(proof, "confidence", None)
        sure = "" if confidence is None else f"by statistics of values, confidence {confidence:g}"
        size = _large_ball(request.delta, self.point, answer.x)
        said = (what, answer.detail, sure, size, "" if success else _advice(self.point, answer.x))
        return Result(
            x=answer.x.copy() if self.layout is None else put_together(self.layout, answer.x),
            fun=math.nan if answer.fun is None else answer.fun,
            success=success,
            status=status,
            message="; ".join(filter(None, (*said, "" if success else status.advice))),
            nit=run.course.steps,
            nfev=f.values,
            ngev=f.gradients,
            # Of the violation, a function of vectors, or of f.
            certificate=with_layout(
                proof, None if answer.status is Status.INFEASIBLE else self.layout
            ),
            history=run.course.history,
            seed=request.seed,
            time=time.perf_counter() - self.begin,
            method=self.solver.name,
            gradient_source=self.gradient_source,
            stopped_by=by or None,
            asked=Asked(request.eps, request.delta, self.kind.name, self.oracle, self.limits),
            gradient_scale=None if self.on_values else f.first_length,
            **(self._multipliers(run.problem, answer) if self.limited else {}),
        )

    def _multipliers(self, problem: Problem, answer: Answer) -> dict[str, Any]:
        # A certificate of infeasibility speaks of the violation: it has no multipliers.
        proof = None if answer.status is Status.INFEASIBLE else answer.certificate
        system = problem.constraints
        return {
            "multipliers": None if proof is None else getattr(proof, "multipliers", np.zeros(0)),
            "bound_multipliers": getattr(proof, "normal", None),
            "violation": self._at_last(lambda: system.violation(answer.x)),
            "constr_nfev": system.nfev,
            "constr_njev": system.njev,
        }


def _source(fun: Any, jac: Any, on_values: bool) -> str:
    """Say where gradients come from."""
    if on_values:
        return "differences"
    if isinstance(fun, Oracle) or not callable(fun):
        return "oracle"
    return "traced" if jac is None else "given"


def _term(plus: Any, point: Vector, bounds: Any) -> Term:
    """Return the term with the bounds in it; refuse what is none."""
    if not isinstance(plus, Term):
        raise errors.InputTypeError(
            f"plus must be a term of gs.prox, as gs.prox.l1(0.1); got {type(plus).__name__}."
        )
    plus.check(point.size)
    return bounded_term(plus, bounds, point.size)


def _require(kind: Stationarity, oracle: Oracle) -> None:
    if kind.require is not None:
        point = np.zeros(oracle.dim or 1)
        kind.require(Problem.of(oracle, point), point)


def _advice(start: Vector, x: Vector) -> str:
    """Say what may help a run that failed: it left everything behind, or has no one scale."""
    if np.abs(x).max() > AWAY * max(1.0, np.abs(start).max()):
        return "x is far from x0: try other starts (goldstein.parallel.multistart takes many)"
    sizes = np.abs([start, x])[:, (start != 0.0) & (x != 0.0)]
    if not sizes.size or (sizes.max(axis=1) < UNEVEN * sizes.min(axis=1)).any():
        return ""
    return (
        f"entries of x have sizes from {sizes[1].min():.2g} to {sizes[1].max():.2g}: search for "
        "z = x / s with s = abs(x0), of f(s * z), whose entries are all about 1"
    )


def _large_ball(delta: float, start: Vector, x: Vector) -> str:
    """Say so where delta is not small against anything in sight: the claim is then about all."""
    scale = size_of(start)
    if scale < delta:
        scale = float(max(scale, np.abs(x).max(), np.abs(x - start).max()))
    if 0.0 < scale < delta:
        return (
            f"note: delta = {delta:g} is larger than x0, x and the way between them "
            f"({scale:.3g}), so the claim says little about x; gs.suggest_target proposes a delta"
        )
    return ""
