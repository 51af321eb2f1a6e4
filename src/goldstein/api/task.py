"""What one run of `minimize` was asked, read and checked, and how its answer is written down."""

from __future__ import annotations

import contextlib
import hashlib
import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from goldstein import __version__
from goldstein.api.judge import describe
from goldstein.api.options import OwnOptions
from goldstein.api.stationarity import Stationarity
from goldstein.certificates.verifying import with_layout
from goldstein.checker.arrays import Vector
from goldstein.constrained.box import as_box
from goldstein.constrained.problem import Problem
from goldstein.constrained.system import given
from goldstein.errors import FunctionHangs, GoldsteinError, InputError, OracleError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.structure import Structure
from goldstein.prox.term import Term
from goldstein.result import Asked, History, Result, Status
from goldstein.solvers import Request, Solver, State

T = TypeVar("T")

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


@dataclass
class Task:
    """The arguments of `minimize` as its searches need them; nobody changes them.

    `request` has everything but an eps that is relative to a gradient, for which nobody has asked
    yet: see `request_at`.
    """

    oracle: Oracle
    x0: Any
    start: Vector
    structure: Structure | None
    solver: Solver
    kind: Stationarity
    eps: float | None
    rel_eps: float | None
    request: Request
    bounds: Any
    constraints: Any
    own: OwnOptions
    budget: int
    begin: float
    deadline: float
    max_time: float | None
    callback: Callable[..., Any] | None
    progress: bool | Callable[[State, int], None]
    checkpoint: str | Path | None
    workers: Any
    #: The calls of the run, once there may be any.
    counted: CountedOracle | None = None

    @property
    def bounded(self) -> bool:
        """Whether there are bounds or constraints."""
        return self.bounds is not None or given(self.constraints)

    def meta(self) -> dict[str, Any]:
        """Return what a certificate says about its origin."""
        return describe(self.oracle, self.solver.name, self.request.seed, self.x0)

    def identity(self) -> dict[str, Any]:
        """Return what makes a run: a journal belongs to one of them."""
        own, limits = self.own, {}
        if self.bounded:
            limits = Problem.identity(self.bounds, self.constraints, self.start.size)
        return {
            "goldstein": __version__,
            "function": self.oracle.name,
            "x0": hashlib.sha256(self.start.tobytes()).hexdigest(),
            "eps": self.eps, "rel_eps": self.rel_eps, "delta": self.request.delta,
            "method": self.solver.name, "options": repr(sorted(vars(self.solver).items())),
            "seed": self.request.seed, "lipschitz": self.request.lipschitz,
            "stationarity": self.kind.name, "check_gradient": own.check_gradient,
            "go_on": own.go_on, "leaps": own.leaps, "feasible": own.feasible, **limits,
        }  # fmt: skip

    def request_at(self, oracle: CountedOracle, start: Vector | None = None) -> Request:
        """Return the request with its eps; a relative one is that of the first gradient."""
        if self.rel_eps is None:
            return self.request
        x = self.start if start is None else start
        length = first_length(oracle, x, self.request.delta, self.request.seed)
        if length == 0.0:
            raise InputError(
                "rel_eps is relative to the first gradient, and that is 0 next to x0; give eps."
            )
        return replace(self.request, eps=self.rel_eps * length)

    def carried_out(self, search: Callable[[], Result], term: Term | None = None) -> Result:
        """Return what a search finds; on Ctrl-C the best point, on an error say which that was."""
        stop = self.request.stop
        try:
            return search()
        except KeyboardInterrupt as cause:
            if stop.by:  # the second one
                raise
            stop.note(cause)
            counted = self.counted or CountedOracle(self.oracle)
            x = as_box(self.bounds, self.start.size).clip(self.start) if stop.x is None else stop.x
            fun, counted.inner = math.nan, self.oracle  # a journal is closed by now
            with contextlib.suppress(GoldsteinError):
                fun = counted.value(x) + (0.0 if term is None else term.value(x))
            return self.result(
                counted, x, fun, Status.STOPPED, None, History(), 0, eps=self.request.eps
            )
        except OracleError as failure:
            if stop.x is not None:
                failure.last_good = stop.x.copy()
            before = 0 if self.counted is None else self.counted.calls
            failure.call = failure.call or before + 1  # of a constraint
            raise

    def at_last(self, ask: Callable[[], T]) -> T:
        """Ask what belongs to an answer in hand; Ctrl-C is noted, and the question repeated."""
        try:
            return ask()
        except KeyboardInterrupt as cause:
            if isinstance(cause, FunctionHangs) or self.request.stop.by:
                raise
            self.request.stop.note(cause)
            return ask()

    def result(
        self,
        counted: CountedOracle,
        x: Vector,
        fun: float,
        status: Status,
        certificate: Any,
        history: History,
        steps: int,
        *,
        eps: float,
        remarks: Sequence[str] = (),
        limits: dict[str, Any] | None = None,
        **more: Any,
    ) -> Result:
        """Return what a search has found as a result.

        A run that the user has stopped is said to be so, whatever it had proved by then.
        """
        by, success = self.request.stop.by, status is Status.VERIFIED
        what = status.message
        if by and status in _CUT_SHORT:
            what = f"the run was stopped by {by}" + (f"; {what}" if success else "")
            status = Status.STOPPED
        advice = "" if success else status.advice
        return Result(
            x=x.copy() if self.structure is None else self.structure.build(x),
            fun=fun,
            success=success,
            status=status,
            message="; ".join(filter(None, (what, *remarks, advice))),
            nit=steps,
            nfev=counted.values,
            ngev=counted.gradients,
            certificate=with_layout(certificate, self.structure and self.structure.spec),
            history=history,
            seed=self.request.seed,
            time=time.perf_counter() - self.begin,
            method=self.solver.name,
            stopped_by=by or None,
            asked=Asked(eps, self.request.delta, self.kind.name, self.oracle, limits or {}),
            **more,
        )
