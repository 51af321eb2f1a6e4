"""What the stochastic solvers share: stages of noisy steps, then a full-data certificate."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, KinkError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.result import Status
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.gather import Enrichment, enrich

#: Length of the first stage; each further stage is twice as long.
FIRST_STAGE = 500

#: Gradients spent on a certificate after a stage that is not the last.
TRIAL_GRADIENTS = 60

#: How often the value is looked at during a stage, for history and callback.
LOOKS = 20

#: Draws at one point before a kink is called inescapable.
REDRAWS = 50


@dataclass
class NoisyState(State):
    """State of a stochastic run: one iterate, never a trajectory.

    Attributes
    ----------
    iterate : ndarray
        Where the method stands; `x` is the point the run would return.
    schedule : PSINGDSchedule or O2NCSchedule
        Numbers of the current stage.
    done, stop : int
        Steps made and steps to make in this stage.
    stage : int
        Stages finished.
    last_stage : bool
        No stage follows this one.
    clock : int
        Noisy gradients drawn in all; every draw is a function of (seed, clock).
    proof : Evidence or None
        What the full gradients at `x` gave.
    """

    iterate: Vector = None  # type: ignore[assignment]
    schedule: Any = None
    done: int = 0
    stop: int = 0
    stage: int = 0
    last_stage: bool = False
    clock: int = 0
    proof: Evidence | None = None


class NoisySolver(Solver):
    """Run noisy steps; where full gradients exist, certify the output with them.

    Without `steps` the run goes in stages, each twice as long as the one before, and tries to
    certify after each. With `steps`, or with a schedule of the theory,
    there is one stage. The last stage is fitted to `max_calls`; resume a checkpoint with the same.
    """

    #: Factor of the starting radius from one stage to the next.
    stage_shrink: float = 1.0

    def __init__(self, *, steps: int | None, radius: float | None) -> None:
        if steps is not None and (isinstance(steps, bool) or steps < 1):
            raise InputError(f"steps = {steps} must be a positive integer, or None for stages.")
        if radius is not None and not (math.isfinite(radius) and radius > 0.0):
            raise InputError(f"radius = {radius} must be a positive number, or None.")
        self.steps = steps
        self.radius = radius

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> NoisyState:
        value = oracle.value(x0) if oracle.has_value else math.nan
        state = self._state(x0.copy(), value)
        state.iterate = x0.copy()
        self._open_stage(oracle, state, request)
        return state

    def step(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        if state.rejected is not None:
            state.rejected = None
            self._after_trial(oracle, state, request)
            return
        if state.done < state.stop:
            self._advance(oracle, state, request)
            state.done += 1
            state.steps += 1
            state.x = self._output(state)
            state.radius = self._reach(state)
            if state.done % max(1, state.stop // LOOKS) == 0:
                self._look(oracle, state)
            return
        self._finish_stage(oracle, state, request)

    def best_evidence(self, state: NoisyState) -> Evidence | None:
        return state.proof

    @abstractmethod
    def _state(self, x: Vector, value: float) -> NoisyState:
        """Return an empty state."""

    @abstractmethod
    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[Any, int, bool]:
        """Return the schedule of the next stage, its steps, and whether it is the last."""

    @abstractmethod
    def _advance(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        """Make one noisy step."""

    @abstractmethod
    def _output(self, state: NoisyState) -> Vector:
        """Return the point a run that ends now would give."""

    def _reach(self, state: NoisyState) -> float:
        """Return the Euclidean radius of the ball that holds the window."""
        reach: float = state.schedule.radius * state.schedule.shrink(state.done - 1)
        return reach

    def _open_stage(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        length = self.steps or FIRST_STAGE * 2**state.stage
        # Leave calls for the certificate: as many again as the trial asks, for the checker.
        spare = oracle.limit - oracle.calls - LOOKS - 3 * TRIAL_GRADIENTS
        last = self.steps is not None or length >= spare
        steps = max(1, int(min(length, spare))) if math.isfinite(spare) else length
        size = max(1.0, math.sqrt(float(state.x @ state.x)))
        radius = self.radius or max(10.0 * request.delta, 0.1 * size)
        radius = max(radius * self.stage_shrink**state.stage, min(radius, 2.0 * request.delta))
        state.done = 0
        state.schedule, state.stop, only = self._plan(oracle, state, request, steps, radius)
        state.last_stage = last or only

    def _look(self, oracle: CountedOracle, state: NoisyState) -> None:
        if oracle.has_value:
            state.fx = oracle.value(state.x)
        state.moved = True

    def _finish_stage(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        state.x = self._output(state)
        if oracle.has_value:
            state.fx = oracle.value(state.x)
        state.moved = True
        if not oracle.has_gradient:
            state.status = Status.ESTIMATED
            return
        found = Enrichment()
        left = oracle.limit - oracle.calls
        most = left / 2 - LOOKS if state.last_stage else min(TRIAL_GRADIENTS, left / 2)
        enrich(
            oracle, state.x, request.delta, request.eps, request.seed, found,
            patience=max(30, min(state.x.size, 200)), max_gradients=max(1.0, most),
        )  # fmt: skip
        state.proof = _support(state.x, found) if found.points else None
        state.bound = math.inf if state.proof is None else _norm(state.proof)
        if state.bound <= request.eps:
            state.evidence = state.proof
        else:
            self._after_trial(oracle, state, request)

    def _after_trial(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        if state.last_stage:
            state.status = Status.NOT_VERIFIED
            return
        state.stage += 1
        state.iterate = state.x.copy()
        state.proof = None
        self._open_stage(oracle, state, request)


def draw_gradient(
    oracle: CountedOracle, state: NoisyState, y: Vector, rng: np.random.Generator, hair: float
) -> Vector:
    """Return a noisy gradient at y; where the function knows of a kink, displace y by `hair`."""
    state.clock += 1
    point = y
    for _ in range(REDRAWS):
        try:
            return oracle.sample(point, rng)
        except KinkError:
            point = uniform_in_ball(rng, y, hair)
    raise InputError(
        f"{REDRAWS} random points within {hair:g} of each other are all kinks; this function is "
        "not differentiable almost everywhere, or the radius is too small for float64."
    )


def step_stream(state: NoisyState, request: Request, purpose: str) -> np.random.Generator:
    """Return the generator of the next noisy gradient."""
    return stream(request.seed, state.clock, purpose)


def _support(x: Vector, found: Enrichment) -> Evidence:
    points, gradients = np.array(found.points), np.array(found.gradients)
    weights = min_norm_weights(gradients)
    used = weights > 0
    return Evidence(
        x=x.copy(),
        points=points[used],
        weights=weights[used],
        perturbed=np.ones(int(used.sum()), dtype=np.bool_),
        gradients=gradients[used],
    )


def _norm(evidence: Evidence) -> float:
    assert evidence.gradients is not None
    m = evidence.weights @ evidence.gradients
    return math.sqrt(float(m @ m))
