"""`CompiledAuto`: runs the compiled search in stretches and speaks for it in Python."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError, KinkError, OutOfCalls
from goldstein.extras import missing_extra
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.function import FunctionOracle
from goldstein.oracles.lipschitz import LipschitzGuard
from goldstein.result import Status
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.compiled import layout
from goldstein.solvers.line import LINES, check_line
from goldstein.solvers.logic.turns import BUNDLE, NEWTON
from goldstein.solvers.tuning import TUNING

#: Above this many variables a matrix of all pairs of them is too much.
DENSE_LIMIT = 1000
#: More calls than anyone will make, for runs without a limit.
_FOREVER = 2**62


@dataclass
class CompiledState(State):
    """The arrays of the compiled search, and the user's functions in the form it can call."""

    memory: layout.Memory | None = None
    #: What compiled code holds addresses of.
    alive: Any = None
    #: Whoever runs the search wants to see every step.
    watched: bool = False

    @property
    def record(self) -> Any:
        assert self.memory is not None
        return self.memory.search[0]

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        assert self.memory is not None
        return self.memory.arrays


class CompiledAuto(Solver):
    """`auto` in machine code; ``minimize(..., options={"compiled": True})`` makes one.

    Parameters
    ----------
    newton : bool
        Switch the quasi-Newton half off to see Bundle-PINGD with a working radius alone.
    line : {"random", "bisection", "hybrid"}
        Where the bundle half looks after a failed step; see `BundlePINGD`.
    stretch : int
        Calls between two returns to Python: only there callbacks are called, the clock is looked
        at, and the history grows. It does not change the search.

    Examples
    --------
    >>> import numba
    >>> import numpy as np
    >>> import goldstein as gs
    >>> f = numba.njit(lambda x: abs(x[0]) + 2 * abs(x[1]))
    >>> g = numba.njit(lambda x: np.array([1.0, 2.0]) * np.sign(x))
    >>> res = gs.minimize(f, [3.0, -1.0], g, eps=1e-3, delta=1e-3, rng=0,
    ...                   options={"compiled": True})
    >>> res.success
    True
    """

    name = "auto (compiled)"
    keeps_journal = False

    def __init__(self, *, newton: bool = True, line: str = "random", stretch: int = 100) -> None:
        if isinstance(stretch, bool) or not isinstance(stretch, int) or stretch < 1:
            raise InputError(f"stretch must be a positive integer, got {stretch!r}.")
        self.newton = newton
        self.line = check_line(line)
        self.stretch = stretch

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> CompiledState:
        if x0.size > DENSE_LIMIT:
            raise InputError(
                f"compiled=True works with dense matrices, up to {DENSE_LIMIT} variables, but x0 "
                f"has {x0.size}; drop the option: auto itself uses limited memory."
            )
        answer, words, alive = _bound(oracle)
        draws = stream(request.seed, 0, "compiled").integers(2**64, size=4, dtype=np.uint64)
        memory = layout.allocate(x0, words, draws)
        fx = oracle.value(x0)
        record = memory.search[0]
        for name in ("bound", "radius", "centre_value", "turn_value", "counted_value",
                     "progress_value", "progress_bound"):  # fmt: skip
            record[name] = math.inf
        record["newton_rate"] = record["bundle_rate"] = math.nan
        record["newton"]["length"] = math.inf
        record["eps"], record["delta"], record["fx"] = request.eps, request.delta, fx
        record["earlier"] = record["mark_value"] = fx
        record["lipschitz"] = LipschitzGuard(request.lipschitz).value
        record["working"] = max(request.delta, 0.1 * max(1.0, math.sqrt(float(x0 @ x0))))
        record["share"], record["close"] = TUNING.share, TUNING.close
        record["short"], record["line"] = TUNING.short, LINES.index(self.line)
        record["two_halves"] = self.newton
        record["turn"] = NEWTON if self.newton else BUNDLE
        record["asking"] = answer.address
        kernels = _kernels()
        kernels.connect(record)
        _count(record, oracle)
        kernels.BEGIN.ctypes(record["address"])
        return CompiledState(x=x0.copy(), fx=fx, memory=memory, alive=(answer, alive))

    def step(self, oracle: CountedOracle, state: CompiledState, request: Request) -> None:
        kernels, record = _kernels(), state.record
        _count(record, oracle)
        if state.rejected is not None:
            points, fresh = (np.ascontiguousarray(part) for part in state.rejected)
            state.rejected = None
            record["fresh_count"] = len(points)
            record["fresh_points"] = points.ctypes.data
            record["fresh_gradients"] = fresh.ctypes.data
            kernels.REFUTED.ctypes(record["address"])
        record["ceiling"] = min(oracle.limit, _FOREVER)
        record["pause"] = oracle.calls + (1 if state.watched else self.stretch)
        reason = kernels.STRETCH.ctypes(record["address"])
        oracle.spend(
            int(record["values"]) - oracle.values, int(record["gradients"]) - oracle.gradients
        )
        _take_over(state)
        if reason == layout.OUT_OF_CALLS:
            raise OutOfCalls("value")
        if reason == layout.EVIDENCE:
            state.evidence = _evidence(state)
        if reason == layout.GIVEN_UP or record["stalled"]:
            state.status = Status.STALLED
        # An answer that compiled code could not make sense of: Python asks again.
        point = state.arrays["point"].copy()
        if reason == layout.BAD_VALUE:
            record["reply"] = oracle.value(point)
        elif reason == layout.BAD_GRADIENT:
            try:
                state.arrays["found"][:] = oracle.gradient(point)
            except KinkError:
                record["kinks"], record["entry"] = 1, layout.KINKED

    def retarget(self, state: CompiledState, eps: float, delta: float) -> bool:
        record = state.record
        record["eps"], record["delta"] = eps, delta
        _kernels().RETARGET.ctypes(record["address"])
        # From now on the loop looks at every step.
        state.watched = True
        return True

    def best_evidence(self, state: CompiledState) -> Evidence | None:
        if _kernels().LAST.ctypes(state.record["address"]) == 0:
            return None
        return _evidence(state)


def _count(record: Any, oracle: CountedOracle) -> None:
    """Let compiled code know of all calls, those of the judge among them."""
    record["values"], record["gradients"] = oracle.values, oracle.gradients


def _kernels() -> Any:
    from goldstein.solvers.compiled import search

    return search


def _bound(oracle: CountedOracle) -> tuple[Any, NDArray[np.int64], list[Any]]:
    """Return what compiled code needs to ask the user's function."""
    try:
        import numba  # noqa: F401
    except ImportError as failure:
        raise missing_extra("compiled=True", "Numba", "fast") from failure
    from goldstein.solvers.compiled.binding import bind

    inner = oracle.inner
    if not isinstance(inner, FunctionOracle):
        raise InputTypeError(
            f"compiled=True needs functions compiled by Numba, but {inner.name} is an oracle of "
            f"type {type(inner).__name__}; pass fun and jac decorated with numba.njit, or drop the "
            "option."
        )
    return bind(inner.fun, inner.jac, inner.args)


def _take_over(state: CompiledState) -> None:
    """Copy what the loop looks at."""
    record = state.record
    state.moved = int(record["steps"]) != state.steps
    state.steps = int(record["steps"])
    state.x, state.fx = state.arrays["x"].copy(), float(record["fx"])
    state.earlier = float(record["earlier"])
    state.bound, state.radius = float(record["bound"]), float(record["radius"])


def _evidence(state: CompiledState) -> Evidence:
    assert state.memory is not None
    hull = state.memory.hull
    weights = hull["weights"][: int(state.record["hull"]["count"])]
    used = np.flatnonzero(weights > 0)
    return Evidence(
        state.x.copy(),
        state.arrays["points"][used],
        weights[used],
        state.arrays["perturbed"][used] == 1,
        hull["rows"][used],
    )
