"""`CompiledAuto`: runs the compiled search in stretches and speaks for it in Python."""

import math
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, OutOfCalls
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.function import FunctionOracle
from goldstein.result import Status
from goldstein.solvers.auto import HALVED, LEAST_EPS
from goldstein.solvers.ball_state import check_line
from goldstein.solvers.base import Evidence, Request, Solver, State, gradient_of, value_of
from goldstein.solvers.compiled import layout
from goldstein.solvers.compiled.machine import Machine, machine
from goldstein.solvers.gather import firm
from goldstein.solvers.logic.portfolio import BUNDLE, NEWTON
from goldstein.solvers.logic.questions import GRADIENT
from goldstein.solvers.memory import LipschitzGuard

#: More calls than anyone will make, for runs without a limit.
_FOREVER = 2**62


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
    def eps(self) -> float:
        return float(self.memory.record.eps)

    @property
    def delta(self) -> float:
        return float(self.memory.record.delta)


@dataclass(kw_only=True, eq=False)
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

    newton: bool = True
    line: str = "random"
    stretch: int = 100

    name = "auto (compiled)"

    def __post_init__(self) -> None:
        stretch = self.stretch
        if isinstance(stretch, bool) or not isinstance(stretch, int) or stretch < 1:
            raise InputError(f"stretch must be a positive integer, got {stretch!r}.")
        check_line(self.line)

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> CompiledState:
        code = machine()
        adapter, words, alive = _bound(oracle)
        draws = stream(request.seed, 0, "compiled").bit_generator.random_raw(4)
        memory = layout.Memory(x0, words, draws)
        fx = oracle.value(x0)
        record = memory.record
        record.eps, record.delta = request.eps, request.delta
        record.fx = record.earlier = record.mark_value = fx
        record.lipschitz = LipschitzGuard(request.lipschitz).value
        record.working = max(request.delta, 0.1 * max(1.0, math.sqrt(float(x0 @ x0))))
        record.has_portfolio = self.newton
        record.member = NEWTON if self.newton else BUNDLE
        record.asking = 0 if adapter is None else adapter.address
        record.values, record.gradients = oracle.values, oracle.gradients
        code.begin(record.address)
        return CompiledState(
            x0.copy(), fx, memory=memory, machine=code, adapter=adapter, alive=alive
        )

    def step(self, oracle: CountedOracle, state: CompiledState, request: Request) -> None:
        record, asking = state.memory.record, state.adapter is None
        # Let compiled code know of all calls, those of the judge among them.
        record.values, record.gradients = oracle.values, oracle.gradients
        if state.rejected is not None:
            record.eps = min(record.eps, max(LEAST_EPS * request.eps, HALVED * record.eps))
            _learn_refuted(state)
        record.ceiling = int(min(oracle.limit, _FOREVER))
        record.pause = 0 if asking else oracle.calls + (1 if state.watched else self.stretch)
        search_on = state.machine.stretch_asking if asking else state.machine.stretch
        while (reason := search_on(record.address)) == layout.ASKS:
            if not asking:
                _spend(record, oracle)
            _answer(state.memory, oracle)
        if not asking:
            _spend(record, oracle)
        # What the loop looks at.
        state.moved, state.steps = record.steps != state.steps, record.steps
        state.x, state.fx, state.earlier = (
            state.memory.arrays["x"].copy(),
            record.fx,
            record.earlier,
        )
        state.bound, state.radius = record.bound, record.radius
        if reason == layout.OUT_OF_CALLS:
            raise OutOfCalls("value")
        if reason == layout.EVIDENCE:
            refuted = bool(record.refuted)
            state.evidence = firm(oracle, _evidence(state), state, refuted, request.seed)
        if reason == layout.GIVEN_UP or record.stalled:
            state.status = Status.STALLED

    def retarget(self, state: CompiledState, eps: float, delta: float) -> bool:
        record = state.memory.record
        record.eps, record.delta = eps, delta
        state.machine.aim_again(record.address)
        # From now on the loop looks at every step.
        state.watched = True
        return True

    def known(self, state: CompiledState) -> tuple[Matrix, Matrix]:
        record, arrays = state.memory.record, state.memory.arrays
        count = min(record.added, record.ring_size)
        return arrays["ring_points"][:count], arrays["ring_gradients"][:count]

    def best_evidence(self, state: CompiledState) -> Evidence | None:
        return _evidence(state) if state.machine.last(state.memory.record.address) else None


def _spend(record: Any, oracle: CountedOracle) -> None:
    """Let the oracle know of the calls that compiled code made."""
    if record.values > oracle.values and math.isfinite(record.reply):
        oracle.last_value = record.reply
    oracle.spend(record.values - oracle.values, record.gradients - oracle.gradients)


def _answer(memory: layout.Memory, oracle: CountedOracle) -> None:
    """Answer the open question.

    It is open because the function is not compiled, or because compiled code could not make sense
    of its answer: then the oracle finds out why.
    """
    record, point = memory.record, memory.arrays["point"]
    if record.question != GRADIENT:
        record.reply = value_of(oracle, point, record.question)
    elif (found := gradient_of(oracle, point)) is None:
        record.kinks, record.entry = 1, layout.KINKED
    else:
        memory.arrays["found"][:] = found


def _learn_refuted(state: CompiledState) -> None:
    assert state.rejected is not None
    record = state.memory.record
    points, fresh = (np.ascontiguousarray(part) for part in state.rejected)
    state.rejected = None
    record.fresh_count = len(points)
    record.fresh_points, record.fresh_gradients = layout.address(points), layout.address(fresh)
    state.machine.learn_refuted(record.address)


def _bound(oracle: CountedOracle) -> tuple[Any, NDArray[np.int64], Any]:
    """Return what compiled code needs to ask the user's function, if it can."""
    inner = oracle.inner
    if isinstance(inner, FunctionOracle) and inner.layout is None and "numba" in sys.modules:
        from goldstein.solvers.compiled.binding import bind  # needs Numba

        bound = bind(inner.fun, inner.jac, inner.args)
        if bound is not None:
            return bound
    return None, np.zeros(1, dtype=np.int64), None


def _evidence(state: CompiledState) -> Evidence:
    arrays, hull, count = state.memory.arrays, state.memory.hull, state.memory.record.hull.count
    safe = arrays["perturbed"].view(np.int64)[:count] == 1
    return Evidence.of(state.x, arrays["points"], hull["rows"], safe, hull["weights"][:count])
