"""Online-to-nonconvex conversion (Cutkosky, Mehta and Orabona 2023), with and without constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import Request
from goldstein.solvers.noisy import NoisySolver, NoisyState, draw_gradient, step_stream
from goldstein.solvers.stochastic_schedules import (
    O2NCSchedule,
    gradient_scale,
    o2nc_optimal,
    o2nc_parameter_free,
    o2nc_practice,
)

#: Radius of the jitter of the start, as a share of the longest step.
JITTER = 1e-3


@dataclass
class O2NCState(NoisyState):
    """Adds the learner and the mean of the window.

    Attributes
    ----------
    direction : ndarray
        The learner's step divided by its radius: a point of the unit ball.
    square_sum : float
        Sum of the squared gradient norms that the learner remembers.
    mean : ndarray
        Mean of the query points of the window.
    """

    direction: Vector | None = None
    square_sum: float = 0.0
    mean: Vector | None = None


class O2NC(NoisySolver):
    """Online-to-nonconvex conversion.

    A learner chooses each step in a ball of radius D; the gradient is taken at a uniform point of
    the step. The query points of a window lie within `M D` of their mean, the output, so their mean
    gradient is an element of the Goldstein subdifferential there.

    Parameters
    ----------
    schedule : {"practice", "parameter-free", "optimal"}
        "practice": short windows, radius decaying in stages. "parameter-free": the AdaGrad learner
        of the theory, which knows no constant of the problem. "optimal": the best rate, with
        `lipschitz`, `noise` and `gap` known.
    steps : int, optional
        Noisy gradients ("parameter-free" needs it, or takes it from `max_calls`).
    radius : float, optional
        Ball of the first window ("practice").
    window : int
        Steps per window ("practice").
    lipschitz, noise, gap : float
        `L`, `sigma` and `Delta` ("optimal").

    Notes
    -----
    In the two schedules of the theory the output window is drawn first and nothing beyond it is
    computed.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> def gradient(x, rng):
    ...     return np.sign(x) + 0.1 * rng.normal(size=x.size)
    >>> res = gs.minimize(gradient, [2.0, -3.0], eps=0.1, delta=0.1, method="o2nc", rng=0,
    ...                   max_calls=4000)
    >>> res.status.name, bool(np.abs(res.x).max() < 0.1)
    ('ESTIMATED', True)
    """

    name = "o2nc"
    stage_shrink = 0.5

    def __init__(
        self,
        *,
        schedule: Literal["practice", "parameter-free", "optimal"] = "practice",
        steps: int | None = None,
        radius: float | None = None,
        window: int = 21,
        lipschitz: float | None = None,
        noise: float = 0.0,
        gap: float | None = None,
    ) -> None:
        super().__init__(steps=steps, radius=radius)
        if schedule not in ("practice", "parameter-free", "optimal"):
            raise InputError(
                f"schedule = {schedule!r} must be 'practice', 'parameter-free' or 'optimal'."
            )
        if schedule == "optimal" and gap is None:
            raise InputError("schedule='optimal' needs gap >= f(x0) - inf f (and lipschitz).")
        if isinstance(window, bool) or window < 1:
            raise InputError(f"window = {window} must be a positive integer.")
        self.schedule = schedule
        self.window = window
        self.lipschitz = lipschitz
        self.noise = noise
        self.gap = gap

    def _state(self, x: Vector, value: float) -> O2NCState:
        return O2NCState(x=x, fx=value, direction=np.zeros(x.size))

    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[O2NCSchedule, int, bool]:
        if self.schedule == "practice":
            plan = o2nc_practice(radius, steps, window=self.window)
            self._jitter(state, request, plan)
            return plan, steps, False
        if self.schedule == "parameter-free":
            spare = oracle.limit - oracle.calls
            steps = self.steps or (int(0.8 * spare) if math.isfinite(spare) else steps)
            plan = o2nc_parameter_free(request.delta, max(1, steps))
        else:
            bound = self.lipschitz if self.lipschitz is not None else request.lipschitz
            if bound is None or self.gap is None:
                raise InputError(
                    "schedule='optimal' needs lipschitz and gap; 'parameter-free' needs neither."
                )
            scale = gradient_scale(bound, self.noise)
            plan = o2nc_optimal(request.eps, request.delta, scale=scale, gap=self.gap)
        self._jitter(state, request, plan)
        chosen = int(stream(request.seed, 0, "output").integers(1, plan.windows + 1))
        return plan, chosen * plan.window, True

    def _jitter(self, state: NoisyState, request: Request, plan: O2NCSchedule) -> None:
        rng = stream(request.seed, state.stage, "start")
        state.iterate = uniform_in_ball(rng, state.iterate, JITTER * plan.step_radius)

    def _advance(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        assert isinstance(state, O2NCState)
        assert state.direction is not None
        plan: O2NCSchedule = state.schedule
        longest = plan.step_radius * plan.shrink(state.done)
        inside = state.done % plan.window
        rng = step_stream(state, request, self.name)
        step = longest * state.direction
        z = state.iterate + rng.random() * step
        state.iterate = state.iterate + step
        g = draw_gradient(oracle, state, z, rng, JITTER * longest)
        if inside == 0 or state.mean is None:
            state.mean = z
        else:
            state.mean = state.mean + (z - state.mean) / (inside + 1)
        kept = float(inside > 0) if plan.restart else 1.0 - 1.0 / plan.window
        state.square_sum = kept * state.square_sum + float(g @ g)
        direction = state.direction - self._gain(state, plan) * g
        state.direction = direction / max(1.0, math.sqrt(float(direction @ direction)))

    def _gain(self, state: O2NCState, plan: O2NCSchedule) -> float:
        """Step of the learner relative to its radius."""
        if plan.gradient_scale is not None:
            return 1.0 / (plan.gradient_scale * math.sqrt(plan.window))
        return 1.0 / math.sqrt(state.square_sum) if state.square_sum > 0.0 else 0.0

    def _output(self, state: NoisyState) -> Vector:
        assert isinstance(state, O2NCState)
        return state.iterate if state.mean is None else state.mean
