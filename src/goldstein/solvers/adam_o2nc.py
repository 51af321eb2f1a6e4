"""Per-coordinate online-to-nonconvex conversion with clipped Adam; proofs in docs/adam_o2nc.md."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.oracles import CountedOracle
from goldstein.solvers.adam_schedules import (
    PRACTICAL_BETAS,
    AdamO2NCSchedule,
    adam_o2nc_practice,
    adam_o2nc_theory,
    window_of,
)
from goldstein.solvers.base import Request
from goldstein.solvers.noisy import NoisySolver, NoisyState, draw_gradient, step_stream

#: Half the width of the box from which the noise of a step is drawn, as a share of the longest
#: step. It moves steps off the kinks they would run along.
JITTER = 1e-6


@dataclass
class AdamO2NCState(NoisyState):
    """Adds the learner.

    Attributes
    ----------
    direction : ndarray
        The next step divided by the longest one, in [-1, 1] per coordinate.
    average, square : ndarray
        Discounted sums of the gradients and of their squares.
    """

    direction: Vector | None = None
    average: Vector | None = None
    square: Vector | None = None


class AdamO2NC(NoisySolver):
    """Clipped Adam whose gradients are taken at uniform points of its steps.

    For finite sums and streams. No coordinate moves by more than D per step, so the last K query
    points lie within `K D` of the iterate in the sup norm. The guarantee of `schedule="theory"` is
    in the **per-coordinate notion**: points in the sup norm, average gradient in the 1-norm. What
    `minimize` certifies afterwards is in the Euclidean norm, as always.

    Parameters
    ----------
    schedule : {"practice", "theory"}
        "practice": D decays linearly in each stage. "theory": constants of the theorem, with
        `scale` and `gap` known; the run ends at a random step.
    steps : int, optional
        Noisy gradients ("practice").
    radius : float, optional
        Euclidean radius of the first window ("practice").
    betas : (float, float)
        `(b1, b2)` ("practice").
    scale, noise, gap : float
        `|G|_1`, `|sigma|_1` and `f(x0) - inf f` ("theory").

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> def gradient(x, rng):
    ...     return np.sign(x) * [1.0, 100.0] + 0.1 * rng.normal(size=x.size)
    >>> res = gs.minimize(gradient, [2.0, -3.0], eps=0.1, delta=0.1, method="adam-o2nc", rng=0,
    ...                   max_calls=4000)
    >>> res.status.name, bool(np.abs(res.x).max() < 0.1)
    ('ESTIMATED', True)
    """

    name = "adam-o2nc"
    stage_shrink = 0.5

    def __init__(
        self,
        *,
        schedule: Literal["practice", "theory"] = "practice",
        steps: int | None = None,
        radius: float | None = None,
        betas: tuple[float, float] = PRACTICAL_BETAS,
        scale: float | None = None,
        noise: float | None = None,
        gap: float | None = None,
    ) -> None:
        super().__init__(steps=steps, radius=radius)
        if schedule not in ("practice", "theory"):
            raise InputError(f"schedule = {schedule!r} must be 'practice' or 'theory'.")
        if schedule == "theory" and (scale is None or gap is None):
            raise InputError(
                "schedule='theory' needs scale, the sum of the coordinates' root mean squares of "
                "the noisy gradient, and gap >= f(x0) - inf f; 'practice' needs neither."
            )
        window_of(betas[0])  # refuses what is no weight
        self.schedule, self.betas = schedule, betas
        self.scale, self.noise, self.gap = scale, noise, gap

    def _state(self, x: Vector, value: float) -> AdamO2NCState:
        return AdamO2NCState(x=x, fx=value)

    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[AdamO2NCSchedule, int, bool]:
        assert isinstance(state, AdamO2NCState)
        dim = state.x.size
        state.direction, state.average, state.square = np.zeros(dim), np.zeros(dim), np.zeros(dim)
        if self.schedule == "theory":
            assert self.scale is not None
            assert self.gap is not None
            plan = adam_o2nc_theory(
                request.eps, request.delta, scale=self.scale, gap=self.gap, noise=self.noise
            )
            return plan, plan.output_step(request.seed), True
        longest = radius / (window_of(self.betas[0]) * math.sqrt(dim))
        return adam_o2nc_practice(longest, steps, betas=self.betas), steps, False

    def _reach(self, state: NoisyState) -> float:
        # The window lies in a box; this is the ball around it.
        return super()._reach(state) * math.sqrt(state.x.size)

    def _advance(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        assert isinstance(state, AdamO2NCState)
        assert state.direction is not None
        assert state.average is not None
        assert state.square is not None
        plan: AdamO2NCSchedule = state.schedule
        longest = plan.step_radius * plan.shrink(state.done)
        rng = step_stream(state, request, self.name)
        step = longest * state.direction
        begin = state.iterate + longest * JITTER * rng.uniform(-1.0, 1.0, step.size)
        state.iterate = begin + step
        g = draw_gradient(oracle, state, begin + rng.random() * step, rng, JITTER * longest)
        b, squares = plan.betas
        state.average = b * state.average + g
        state.square = squares * state.square + g * g
        root = np.sqrt(state.square)
        expected = state.average + plan.foresight * g
        ratio = np.divide(expected, root, out=np.zeros(g.size), where=root > 0.0)
        state.direction = -np.clip(ratio, -1.0, 1.0)

    def _output(self, state: NoisyState) -> Vector:
        return state.iterate
