"""`CompiledAuto`: runs the compiled search in stretches and speaks for it in Python."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, OutOfCalls
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.function import FunctionOracle
from goldstein.result import Status
from goldstein.solvers.ask_tell import gradient_of, value_of
from goldstein.solvers.auto import HALVED, LEAST_EPS
from goldstein.solvers.ball_state import check_line
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.compiled import layout
from goldstein.solvers.compiled.machine import Machine, machine
from goldstein.solvers.logic.portfolio import BUNDLE, NEWTON
from goldstein.solvers.logic.questions import GRADIENT
from goldstein.solvers.memory import LipschitzGuard
from goldstein.solvers.placement import firm

#: Above this many variables a matrix of all pairs of them is too much.
DENSE_LIMIT = 1000
#: More calls than anyone will make, for runs without a limit.
_FOREVER = 2**62


#: Where fields are that are looked at often.
_FX, _BOUND, _RADIUS, _REPLY = map(layout.word_of, ("fx", "bound", "radius", "reply"))
_VALUES, _GRADIENTS = map(layout.word_of, ("values", "gradients"))
_CEILING, _PAUSE, _QUESTION = map(layout.word_of, ("ceiling", "pause", "question"))
_STEPS, _STALLED = map(layout.word_of, ("steps", "stalled"))
_EARLIER, _MARK_VALUE = map(layout.word_of, ("earlier", "mark_value"))
_EPS, _DELTA, _LIPSCHITZ = map(layout.word_of, ("eps", "delta", "lipschitz"))
_WORKING, _HAS_PORTFOLIO = map(layout.word_of, ("working", "has_portfolio"))
_HULL_COUNT = layout.word_of("hull", "count")
_MEMBER, _ASKING, _KINKS, _ENTRY = map(layout.word_of, ("member", "asking", "kinks", "entry"))
_FRESH = [layout.word_of(f"fresh_{what}") for what in ("count", "points", "gradients")]


@dataclass
class CompiledState(State):
    """The arrays of the compiled search, and the user's functions in the form it can call."""

    memory: layout.Memory = None  # type: ignore[assignment]
    machine: Machine = None  # type: ignore[assignment]
    #: What compiled code calls; None where Python answers.
    adapter: Any = None
    #: What it holds addresses of.
    alive: Any = None
    #: Whoever runs the search wants to see every step.
    watched: bool = False

    @property
    def record(self) -> Any:
        return self.memory.search[0]

    @property
    def eps(self) -> float:
        return self.memory.numbers.item(_EPS)

    @property
    def delta(self) -> float:
        return self.memory.numbers.item(_DELTA)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        return self.memory.arrays


class CompiledAuto(Solver):
    """`auto` in machine code; ``minimize(..., options={"compiled": True})`` makes one.

    Functions compiled by Numba are called from there; all others through Python.

    Parameters
    ----------
    newton : bool
        Switch the quasi-Newton member off to see Bundle-PINGD with a working radius alone.
    line : {"random"}
        Deprecated; see `BundlePINGD`.
    stretch : int
        Calls of functions compiled by Numba between two returns to Python: only there callbacks are
        called, the clock is looked at, and the history grows. It does not change the search. With
        other functions that happens after every step.

    Examples
    --------
    >>> import numpy as np
    >>> import goldstein as gs
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([1.0, 2.0]) * np.sign(x)
    >>> res = gs.minimize(f, [3.0, -1.0], g, eps=1e-3, delta=1e-3, rng=0,
    ...                   options={"compiled": True})
    >>> res.success
    True
    """

    name = "auto (compiled)"

    def __init__(self, *, newton: bool = True, line: str = "random", stretch: int = 100) -> None:
        if isinstance(stretch, bool) or not isinstance(stretch, int) or stretch < 1:
            raise InputError(f"stretch must be a positive integer, got {stretch!r}.")
        self.newton = newton
        check_line(line)
        self.stretch = stretch

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> CompiledState:
        if x0.size > DENSE_LIMIT:
            raise InputError(
                f"compiled=True works with dense matrices, up to {DENSE_LIMIT} variables, but x0 "
                f"has {x0.size}; drop the option: auto itself uses limited memory."
            )
        code = machine()
        adapter, words, alive = _bound(oracle)
        draws = stream(request.seed, 0, "compiled").bit_generator.random_raw(4)
        memory = layout.allocate(x0, words, draws)
        fx = oracle.value(x0)
        numbers, counts = memory.numbers, memory.counts
        numbers[_EPS], numbers[_DELTA] = request.eps, request.delta
        numbers[_FX] = numbers[_EARLIER] = numbers[_MARK_VALUE] = fx
        numbers[_LIPSCHITZ] = LipschitzGuard(request.lipschitz).value
        numbers[_WORKING] = max(request.delta, 0.1 * max(1.0, math.sqrt(float(x0 @ x0))))
        counts[_HAS_PORTFOLIO] = self.newton
        counts[_MEMBER] = NEWTON if self.newton else BUNDLE
        counts[_ASKING] = 0 if adapter is None else adapter.address
        state = CompiledState(
            x0.copy(), fx, memory=memory, machine=code, adapter=adapter, alive=alive
        )
        _count(state, oracle)
        code.begin(memory.address)
        return state

    def step(self, oracle: CountedOracle, state: CompiledState, request: Request) -> None:
        memory, asking = state.memory, state.adapter is None
        counts = memory.counts
        _count(state, oracle)
        if state.rejected is not None:
            less = max(LEAST_EPS * request.eps, HALVED * state.eps)
            memory.numbers[_EPS] = min(state.eps, less)
            _learn_refuted(state)
        counts[_CEILING] = min(oracle.limit, _FOREVER)
        counts[_PAUSE] = 0 if asking else oracle.calls + (1 if state.watched else self.stretch)
        search_on = state.machine.stretch_asking if asking else state.machine.stretch
        while (reason := search_on(memory.address)) == layout.ASKS:
            if not asking:
                _spend(state, oracle)
            _answer(state, oracle)
        if not asking:
            _spend(state, oracle)
        _take_over(state)
        if reason == layout.OUT_OF_CALLS:
            raise OutOfCalls("value")
        if reason == layout.EVIDENCE:
            refuted = bool(state.record["refuted"])
            state.evidence = firm(oracle, _evidence(state), state, refuted, request.seed)
        if reason == layout.GIVEN_UP or counts.item(_STALLED):
            state.status = Status.STALLED

    def retarget(self, state: CompiledState, eps: float, delta: float) -> bool:
        numbers = state.memory.numbers
        numbers[_EPS], numbers[_DELTA] = eps, delta
        state.machine.aim_again(state.memory.address)
        # From now on the loop looks at every step.
        state.watched = True
        return True

    def known(self, state: CompiledState) -> tuple[Matrix, Matrix]:
        count = min(int(state.record["added"]), int(state.record["ring_size"]))
        return state.arrays["ring_points"][:count], state.arrays["ring_gradients"][:count]

    def best_evidence(self, state: CompiledState) -> Evidence | None:
        return _evidence(state) if state.machine.last(state.memory.address) else None


def _count(state: CompiledState, oracle: CountedOracle) -> None:
    """Let compiled code know of all calls, those of the judge among them."""
    counts = state.memory.counts
    counts[_VALUES], counts[_GRADIENTS] = oracle.values, oracle.gradients


def _spend(state: CompiledState, oracle: CountedOracle) -> None:
    """Let the oracle know of the calls that compiled code made."""
    counts = state.memory.counts
    values, gradients = counts.item(_VALUES), counts.item(_GRADIENTS)
    if values > oracle.values and math.isfinite(last := state.memory.numbers.item(_REPLY)):
        oracle.last_value = last
    oracle.spend(values - oracle.values, gradients - oracle.gradients)


def _answer(state: CompiledState, oracle: CountedOracle) -> None:
    """Answer the open question.

    It is open because the function is not compiled, or because compiled code could not make sense
    of its answer: then the oracle finds out why.
    """
    memory = state.memory
    question, point = memory.counts.item(_QUESTION), memory.arrays["point"]
    if question != GRADIENT:
        memory.numbers[_REPLY] = value_of(oracle, point, question)
    elif (found := gradient_of(oracle, point)) is None:
        memory.counts[_KINKS], memory.counts[_ENTRY] = 1, layout.KINKED
    else:
        memory.arrays["found"][:] = found


def _learn_refuted(state: CompiledState) -> None:
    assert state.rejected is not None
    points, fresh = (np.ascontiguousarray(part) for part in state.rejected)
    state.rejected = None
    state.memory.counts[_FRESH] = len(points), layout.address(points), layout.address(fresh)
    state.machine.learn_refuted(state.memory.address)


def _bound(oracle: CountedOracle) -> tuple[Any, NDArray[np.int64], Any]:
    """Return what compiled code needs to ask the user's function, if it can."""
    inner = oracle.inner
    if isinstance(inner, FunctionOracle) and inner.layout is None and "numba" in sys.modules:
        bound: tuple[Any, NDArray[np.int64], Any] | None
        bound = _bind()(inner.fun, inner.jac, inner.args)
        if bound is not None:
            return bound
    return None, np.zeros(1, dtype=np.int64), None


@cache
def _bind() -> Any:
    from goldstein.solvers.compiled.binding import bind  # needs Numba

    return bind


def _take_over(state: CompiledState) -> None:
    """Copy what the loop looks at."""
    numbers, steps = state.memory.numbers, state.memory.counts.item(_STEPS)
    state.moved = steps != state.steps
    state.steps = steps
    state.x, state.fx = state.arrays["x"].copy(), numbers.item(_FX)
    state.earlier = numbers.item(_EARLIER)
    state.bound, state.radius = numbers.item(_BOUND), numbers.item(_RADIUS)


def _evidence(state: CompiledState) -> Evidence:
    memory, count = state.memory, state.memory.counts.item(_HULL_COUNT)
    safe = memory.arrays["perturbed"][:count] == 1
    weights = memory.hull["weights"][:count]
    return Evidence.of(state.x, memory.arrays["points"], memory.hull["rows"], safe, weights)
