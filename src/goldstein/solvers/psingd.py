"""Algorithm 2: perturbed stochastic INGD (Tian, Zhou and So 2022), with the corrected constants."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.numerics.ball import sphere_shadow, uniform_in_ball
from goldstein.numerics.cone import tilt
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import Request
from goldstein.solvers.noisy import NoisySolver, NoisyState, draw_gradient, step_stream
from goldstein.solvers.stochastic_schedules import (
    PSINGDSchedule,
    gradient_scale,
    psingd_practice,
    psingd_theory,
)

#: Weight of the past in the measured scale of the gradients.
SCALE_MEMORY = 0.98


@dataclass
class PSINGDState(NoisyState):
    """Adds the average m of the gradients, and that of their squared norms."""

    average: Vector | None = None
    square_mean: float = 0.0


class PSINGD(NoisySolver):
    """Perturbed stochastic interpolated normalised gradient descent.

    Parameters
    ----------
    schedule : {"practice", "theory"}
        "practice" decays a radius in stages; "theory" is the schedule of the theorem, whose output
        is (eps, delta)-stationary with probability at least 3/5, and needs `lipschitz` and `gap`.
        Its number of steps is for the patient: 3e10 at eps = delta = 0.1.
    steps : int, optional
        Noisy gradients; without it, stages of doubling length, each followed by a certificate.
    radius : float, optional
        Ball of the first window ("practice").
    averaging : float
        Weight of the old average ("practice").
    lipschitz, noise, gap : float
        `L`, `sigma` and `Delta` ("theory").

    Notes
    -----
    The output index is drawn first: nothing beyond it is computed and no trajectory is kept.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> targets = np.array([[0.0, 1.0], [1.0, 3.0], [2.0, 8.0]])
    >>> f = gs.FiniteSum(lambda x, i: np.sign(x - targets[i]), n=3, batch_size=1)
    >>> res = gs.minimize(f, [5.0, 5.0], eps=1e-2, delta=1e-1, method="psingd", rng=0)
    >>> res.success, res.certificate.label
    (True, 'conditional')
    """

    name = "psingd"

    def __init__(
        self,
        *,
        schedule: Literal["practice", "theory"] = "practice",
        steps: int | None = None,
        radius: float | None = None,
        averaging: float = 0.9,
        lipschitz: float | None = None,
        noise: float = 0.0,
        gap: float | None = None,
    ) -> None:
        super().__init__(steps=steps, radius=radius)
        if schedule not in ("practice", "theory"):
            raise InputError(f"schedule = {schedule!r} must be 'practice' or 'theory'.")
        if schedule == "theory" and gap is None:
            raise InputError("schedule='theory' needs gap >= f(x0) - inf f (and lipschitz).")
        self.schedule = schedule
        self.averaging = averaging
        self.lipschitz = lipschitz
        self.noise = noise
        self.gap = gap

    def _state(self, x: Vector, value: float) -> PSINGDState:
        return PSINGDState(x=x, fx=value)

    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[PSINGDSchedule, int, bool]:
        assert isinstance(state, PSINGDState)
        if self.schedule == "theory":
            return self._plan_theory(oracle, state, request)
        if state.average is None:
            state.average = self._first_gradient(oracle, state, request, 1e-3 * radius)
        return psingd_practice(radius, steps, averaging=self.averaging), steps, False

    def _plan_theory(
        self, oracle: CountedOracle, state: PSINGDState, request: Request
    ) -> tuple[PSINGDSchedule, int, bool]:
        bound = self.lipschitz if self.lipschitz is not None else request.lipschitz
        if bound is None or self.gap is None:
            raise InputError("schedule='theory' needs lipschitz and gap; use 'practice' otherwise.")
        if request.eps > gradient_scale(bound, self.noise):
            return psingd_practice(request.delta, 1), 0, True  # every point qualifies
        plan = psingd_theory(
            request.eps, request.delta, lipschitz=bound, noise=self.noise, gap=self.gap
        )
        index = int(stream(request.seed, 0, "output").integers(1, plan.steps + 1))
        state.average = self._first_gradient(
            oracle, state, request, min(request.delta, plan.perturbation)
        )
        return plan, max(1, index - plan.window) - 1, True

    def _first_gradient(
        self, oracle: CountedOracle, state: PSINGDState, request: Request, radius: float
    ) -> Vector:
        """Ask near the start, never at it: it may be a kink."""
        rng = step_stream(state, request, self.name)
        y = uniform_in_ball(rng, state.iterate, radius)
        g = draw_gradient(oracle, state, y, rng, radius)
        state.square_mean = float(g @ g)
        return g

    def _advance(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        assert isinstance(state, PSINGDState)
        assert state.average is not None
        plan: PSINGDSchedule = state.schedule
        m, shrink = state.average, plan.shrink(state.done)
        norm = math.sqrt(float(m @ m))
        state.bound = norm
        x = state.iterate
        offset = plan.offset
        if offset is None:
            offset = plan.inverse_longest_step * math.sqrt(state.square_mean)
        # Only a function without slope makes both terms vanish; it is not moved.
        gain = shrink / ((plan.inverse_longest_step * norm + offset) or math.inf)
        after = x - gain * m
        if state.done + 1 < state.stop or not state.last_stage:
            rng = step_stream(state, request, self.name)
            b = tilt(rng, m, norm) if norm > 0.0 else sphere_shadow(rng, x.size)
            zeta = shrink * plan.perturbation
            # In (0, 1]: never at x itself.
            y = x + (1.0 - rng.random()) * (after + zeta * b - x)
            g = draw_gradient(oracle, state, y, rng, zeta)
            state.square_mean += (1.0 - SCALE_MEMORY) * (float(g @ g) - state.square_mean)
            state.average = plan.averaging * m + (1.0 - plan.averaging) * g
        state.iterate = after

    def _output(self, state: NoisyState) -> Vector:
        return state.iterate
