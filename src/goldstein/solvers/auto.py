"""`auto`: quasi-Newton and Bundle-PINGD taking turns over one shared bundle."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from goldstein.numerics.cone import conic_point, trial_point
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.hull import Hull
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.memory import GradientMemory
from goldstein.solvers.quasi_newton import DenseMetric, LimitedMetric, QuasiNewton

Vector = NDArray[np.float64]
Indices = NDArray[np.intp]

#: Up to here the quasi-Newton matrix is dense.
DENSE_LIMIT = 500
_INSIDE = 1.0 - 4e-3


@dataclass
class AutoState(State):
    memory: GradientMemory = field(default_factory=lambda: GradientMemory(1, 1))
    newton: QuasiNewton = field(default_factory=lambda: QuasiNewton(DenseMetric(1)))
    hull: Hull = field(default_factory=lambda: Hull(1, 1))
    rows: list[int] = field(default_factory=list)
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    working: float = 1.0
    turn: str = "newton"
    turn_ends: int = 0
    fresh: bool = True
    lipschitz: float = 0.0
    failures: int = 0


class Auto(Solver):
    name = "auto"

    def __init__(self, *, newton: bool = True) -> None:
        self.newton = newton

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> AutoState:
        d = x0.size
        fx = oracle.value(x0)
        capacity = 4 * min(d, 200) + 100
        state = AutoState(
            x=x0.copy(),
            fx=fx,
            memory=GradientMemory(d, capacity),
            newton=QuasiNewton(DenseMetric(d) if d <= DENSE_LIMIT else LimitedMetric(d)),
            hull=Hull(d, 2 * min(d, 200) + 50),
            rng=stream(request.seed, 0, self.name),
            working=max(request.delta, 0.1 * max(1.0, math.sqrt(float(x0 @ x0)))),
        )
        state.newton.restart(state.x, fx)
        state.turn = "newton" if self.newton else "bundle"
        state.turn_ends = oracle.calls + self._turn(d)
        return state

    def _turn(self, d: int) -> int:
        return min(d, 100) + 10

    def step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        if state.rejected is not None:
            for y, g in zip(*state.rejected):
                self._remember(state, y, g, True)
            state.rejected = None
            state.fresh = True
            state.turn = "bundle"
            state.turn_ends = oracle.calls + self._turn(state.x.size)
        if state.turn == "newton":
            self._newton_step(oracle, state, request)
        else:
            self._bundle_step(oracle, state, request)
        if oracle.calls >= state.turn_ends and self.newton:
            self._switch(oracle, state)

    def _switch(self, oracle: CountedOracle, state: AutoState) -> None:
        if state.turn == "newton":
            state.turn = "bundle"
            state.fresh = True
        else:
            state.turn = "newton"
            if state.newton.fx > state.fx or state.newton.stuck:
                state.newton.restart(state.x, state.fx)
        state.turn_ends = oracle.calls + self._turn(state.x.size)

    def _remember(self, state: AutoState, y: Vector, g: Vector, perturbed: bool) -> int:
        state.lipschitz = max(state.lipschitz, math.sqrt(float(g @ g)))
        return state.memory.add(y, g, perturbed)

    def _newton_step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        newton = state.newton
        seen: list[tuple[Vector, Vector]] = []
        try:
            moved = newton.step(oracle, state.rng, seen)
        finally:
            for y, g in seen:
                self._remember(state, y, g, False)
        if not moved:
            state.turn_ends = oracle.calls
            return
        if newton.fx < state.fx:
            state.x, state.fx = newton.x, newton.fx
            state.steps += 1
            state.moved = True
            if newton.length <= request.delta:
                self._gather(state, request.delta)
                m = state.hull.solve()[1]
                norm = math.sqrt(float(m @ m))
                state.bound, state.radius = norm, request.delta
                if norm <= request.eps:
                    state.evidence = self._evidence(state)

    def _gather(self, state: AutoState, radius: float) -> None:
        slots = state.memory.near(
            state.x, radius * _INSIDE, state.hull.gradients.base.shape[0] // 2 if False else 60
        )
        state.hull.clear()
        state.rows = [int(s) for s in slots]
        for s in state.rows:
            state.hull.add(state.memory.gradients[s])

    def _bundle_step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        r = state.working
        x = state.x
        if state.fresh:
            self._gather(state, r)
            state.fresh = False
            state.failures = 0
        if state.hull.size == 0:
            y = uniform_in_ball(state.rng, x, r * _INSIDE)
            g = oracle.gradient(y)
            state.rows.append(self._remember(state, y, g, True))
            state.hull.add(g)
        m = state.hull.solve()[1]
        norm = math.sqrt(float(m @ m))
        state.bound, state.radius = norm, r
        target = request.eps * max(1.0, r / request.delta)
        if norm <= target:
            if r <= request.delta:
                state.evidence = self._evidence(state)
                return
            state.working = max(request.delta, 0.3 * r)
            state.fresh = True
            return
        ratio = min(norm / state.lipschitz, 1.0)
        trial = trial_point(x, m, norm, r, ratio)
        value = oracle.trial_value(trial) if r > request.delta else oracle.value(trial)
        if value == math.inf:
            state.working = max(request.delta, 0.3 * r)
            state.fresh = True
            return
        if value - state.fx < -0.25 * r * norm:
            self._expand(oracle, state, trial, value, m, norm, r)
            return
        y = conic_point(state.rng, x, m, norm, r * _INSIDE, ratio)
        g = oracle.gradient(y)
        state.failures += 1
        state.rows.append(self._remember(state, y, g, True))
        state.hull.add(g)

    def _expand(self, oracle, state, trial, value, m, norm, r) -> None:
        origin, f0 = state.x, state.fx
        state.x, state.fx = trial, value
        state.steps += 1
        state.moved = True
        length = 2.0 * r
        while True:
            farther = origin - (length / norm) * m
            there = oracle.trial_value(farther)
            if there >= state.fx or there - f0 >= -0.25 * length * norm:
                break
            state.x, state.fx = farther, there
            length *= 2.0
        if length > 4.0 * r:
            state.working = 2.0 * r
        state.fresh = True

    def _evidence(self, state: AutoState) -> Evidence:
        w = state.hull.weights
        used = np.flatnonzero(w > 0)
        slots = np.array(state.rows)[used]
        return Evidence(
            state.x.copy(),
            state.memory.points[slots],
            w[used].copy(),
            state.memory.perturbed[slots],
            state.memory.gradients[slots],
        )
