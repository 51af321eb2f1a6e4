"""Methods for noisy gradients: one step rule, three ways to choose the step and to learn from it.

In each step the method chooses where it goes next, asks for one noisy gradient at a random point on
the way there, and learns from it. `O2NC` is the online-to-nonconvex conversion of Cutkosky, Mehta
and Orabona (2023), with and without constants; `PSINGD` Algorithm 2 of Tian, Zhou and So (2022),
perturbed stochastic INGD with the corrected constants; `AdamO2NC` the conversion per coordinate
with clipped Adam, proofs in docs/adam_o2nc.md. They run in stages; where full gradients exist, each
is followed by an attempt to certify with them.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, KinkError
from goldstein.numerics.streams import sphere_shadow, stream, tilt, uniform_in_ball
from goldstein.oracles import CountedOracle
from goldstein.result import Status
from goldstein.solvers import stochastic_schedules as plans
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

#: Radius of the jitter of the start of O2NC, as a share of the longest step; for AdamO2NC, half the
#: width of the box from which the noise of a step is drawn: it moves steps off the kinks they would
#: run along.
JITTER, BOX_JITTER = 1e-3, 1e-6

#: Weight of the past in the scale of the gradients that PSINGD measures.
SCALE_MEMORY = 0.98


@dataclass
class NoisyState(State):
    """State of a stochastic run: one iterate, never a trajectory.

    Attributes
    ----------
    iterate : ndarray
        Where the method stands; `x` is the point the run would return.
    schedule : PSINGDSchedule, O2NCSchedule or AdamO2NCSchedule
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
    direction : ndarray
        The next step divided by the longest one.
    average, square : ndarray, float or ndarray
        Discounted sums or means of the gradients, and of their squares.
    mean : ndarray or None
        Mean of the query points of a window.
    """

    iterate: Vector = field(default_factory=lambda: np.zeros(0))
    schedule: Any = None
    done: int = 0
    stop: int = 0
    stage: int = 0
    last_stage: bool = False
    clock: int = 0
    proof: Evidence | None = None
    direction: Vector = field(default_factory=lambda: np.zeros(0))
    average: Vector | None = None
    square: Any = 0.0
    mean: Vector | None = None


@dataclass(kw_only=True, eq=False)
class NoisySolver(Solver):
    """Run noisy steps; where full gradients exist, certify the output with them.

    Without `steps` the run goes in stages, each twice as long as the one before, and tries to
    certify after each. With `steps`, or with a schedule of the theory,
    there is one stage. The last stage is fitted to `max_calls`; resume a checkpoint with the same.
    """

    schedule: str = "practice"
    steps: int | None = None
    radius: float | None = None

    #: Names of its schedules.
    schedules: ClassVar[tuple[str, ...]] = ("practice", "theory")
    #: Factor of the starting radius from one stage to the next.
    stage_shrink: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        schedule, steps, radius = self.schedule, self.steps, self.radius
        *others, last = map(repr, self.schedules)
        if schedule not in self.schedules:
            raise InputError(f"schedule = {schedule!r} must be {', '.join(others)} or {last}.")
        if steps is not None and (isinstance(steps, bool) or steps < 1):
            raise InputError(f"steps = {steps} must be a positive integer, or None for stages.")
        if radius is not None and not (math.isfinite(radius) and radius > 0.0):
            raise InputError(f"radius = {radius} must be a positive number, or None.")

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> NoisyState:
        value = oracle.value(x0) if oracle.has_value else math.nan
        state = NoisyState(x=x0.copy(), fx=value, iterate=x0.copy(), direction=np.zeros(x0.size))
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
    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[Any, int, bool]:
        """Return the schedule of the next stage, its steps, and whether it is the last."""

    @abstractmethod
    def _choose(self, state: NoisyState, rng: np.random.Generator) -> tuple[Vector, Vector, float]:
        """Return where to go, where to ask, and how far from there where that is a kink."""

    @abstractmethod
    def _learn(self, state: NoisyState, y: Vector, g: Vector) -> None:
        """Take in the noisy gradient g at y."""

    def _advance(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        """Make one noisy step."""
        rng = stream(request.seed, state.clock, self.name)
        after, y, radius = self._choose(state, rng)
        state.iterate = after
        self._learn(state, y, draw_gradient(oracle, state, y, rng, radius))

    def _output(self, state: NoisyState) -> Vector:
        """Return the point a run that ends now would give."""
        return state.iterate

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
        self._look(oracle, state)
        if not oracle.has_gradient:
            state.status = Status.ESTIMATED
            return
        found = Enrichment()
        left = oracle.limit - oracle.calls
        most = left / 2 - LOOKS if state.last_stage else min(TRIAL_GRADIENTS, left / 2)
        enrich(
            oracle, state.x, request, found, max_gradients=max(1.0, most),
            patience=max(30, min(state.x.size, 200)),
        )  # fmt: skip
        state.proof, state.bound = None, math.inf
        if found.points:
            state.proof = Evidence.of(state.x, found.points, found.gradients)
            state.bound = state.proof.length()
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


@dataclass(kw_only=True, eq=False)
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

    schedule: Literal["practice", "parameter-free", "optimal"] = "practice"
    window: int = 21
    lipschitz: float | None = None
    noise: float = 0.0
    gap: float | None = None

    name = "o2nc"
    schedules = ("practice", "parameter-free", "optimal")
    stage_shrink = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "optimal" and self.gap is None:
            raise InputError("schedule='optimal' needs gap >= f(x0) - inf f (and lipschitz).")
        if isinstance(self.window, bool) or self.window < 1:
            raise InputError(f"window = {self.window} must be a positive integer.")

    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[plans.O2NCSchedule, int, bool]:
        practical = self.schedule == "practice"
        if practical:
            plan = plans.o2nc_practice(radius, steps, window=self.window)
        elif self.schedule == "parameter-free":
            spare = oracle.limit - oracle.calls
            steps = self.steps or (int(0.8 * spare) if math.isfinite(spare) else steps)
            plan = plans.o2nc_parameter_free(request.delta, max(1, steps))
        else:
            bound = self.lipschitz if self.lipschitz is not None else request.lipschitz
            if bound is None or self.gap is None:
                raise InputError(
                    "schedule='optimal' needs lipschitz and gap; 'parameter-free' needs neither."
                )
            scale = plans.gradient_scale(bound, self.noise)
            plan = plans.o2nc_optimal(request.eps, request.delta, scale=scale, gap=self.gap)
        rng = stream(request.seed, state.stage, "start")
        state.iterate = uniform_in_ball(rng, state.iterate, JITTER * plan.step_radius)
        if practical:
            return plan, steps, False
        chosen = int(stream(request.seed, 0, "output").integers(1, plan.windows + 1))
        return plan, chosen * plan.window, True

    def _choose(self, state: NoisyState, rng: np.random.Generator) -> tuple[Vector, Vector, float]:
        plan: plans.O2NCSchedule = state.schedule
        longest = plan.step_radius * plan.shrink(state.done)
        step = longest * state.direction
        return state.iterate + step, state.iterate + rng.random() * step, JITTER * longest

    def _learn(self, state: NoisyState, y: Vector, g: Vector) -> None:
        plan: plans.O2NCSchedule = state.schedule
        inside = state.done % plan.window
        if inside == 0 or state.mean is None:
            state.mean = y
        else:
            state.mean = state.mean + (y - state.mean) / (inside + 1)
        kept = float(inside > 0) if plan.restart else 1.0 - 1.0 / plan.window
        state.square = kept * state.square + float(g @ g)
        # The step of the learner, relative to its radius.
        if plan.gradient_scale is not None:
            gain = 1.0 / (plan.gradient_scale * math.sqrt(plan.window))
        else:
            gain = 1.0 / math.sqrt(state.square) if state.square > 0.0 else 0.0
        direction = state.direction - gain * g
        state.direction = direction / max(1.0, math.sqrt(float(direction @ direction)))

    def _output(self, state: NoisyState) -> Vector:
        return state.iterate if state.mean is None else state.mean


@dataclass(kw_only=True, eq=False)
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

    schedule: Literal["practice", "theory"] = "practice"
    averaging: float = 0.9
    lipschitz: float | None = None
    noise: float = 0.0
    gap: float | None = None

    name = "psingd"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "theory" and self.gap is None:
            raise InputError("schedule='theory' needs gap >= f(x0) - inf f (and lipschitz).")

    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[plans.PSINGDSchedule, int, bool]:
        practical = self.schedule == "practice"
        if practical:
            plan, last = plans.psingd_practice(radius, steps, averaging=self.averaging), steps
        else:
            bound = self.lipschitz if self.lipschitz is not None else request.lipschitz
            if bound is None or self.gap is None:
                raise InputError(
                    "schedule='theory' needs lipschitz and gap; use 'practice' otherwise."
                )
            if request.eps > plans.gradient_scale(bound, self.noise):
                return plans.psingd_practice(request.delta, 1), 0, True  # every point qualifies
            plan = plans.psingd_theory(
                request.eps, request.delta, lipschitz=bound, noise=self.noise, gap=self.gap
            )
            index = int(stream(request.seed, 0, "output").integers(1, plan.steps + 1))
            last = max(1, index - plan.window) - 1
        if state.average is None:
            # Ask near the start, never at it: it may be a kink.
            near = 1e-3 * radius if practical else min(request.delta, plan.perturbation)
            rng = stream(request.seed, state.clock, self.name)
            y = uniform_in_ball(rng, state.iterate, near)
            state.average = g = draw_gradient(oracle, state, y, rng, near)
            state.square = float(g @ g)
        return plan, last, not practical

    def _advance(self, oracle: CountedOracle, state: NoisyState, request: Request) -> None:
        if state.done + 1 < state.stop or not state.last_stage:
            super()._advance(oracle, state, request)
        else:  # nothing is to be learned any more
            state.iterate = self._next(state)

    def _next(self, state: NoisyState) -> Vector:
        plan: plans.PSINGDSchedule = state.schedule
        m = state.average
        assert m is not None
        state.bound = norm = math.sqrt(float(m @ m))
        offset = plan.offset
        if offset is None:
            offset = plan.inverse_longest_step * math.sqrt(state.square)
        # Only a function without slope makes both terms vanish; it is not moved.
        gain = plan.shrink(state.done) / ((plan.inverse_longest_step * norm + offset) or math.inf)
        return state.iterate - gain * m

    def _choose(self, state: NoisyState, rng: np.random.Generator) -> tuple[Vector, Vector, float]:
        x, after, m = state.iterate, self._next(state), state.average
        assert m is not None
        b = tilt(rng, m, state.bound) if state.bound > 0.0 else sphere_shadow(rng, x.size)
        zeta = state.schedule.shrink(state.done) * state.schedule.perturbation
        # In (0, 1]: never at x itself.
        return after, x + (1.0 - rng.random()) * (after + zeta * b - x), zeta

    def _learn(self, state: NoisyState, y: Vector, g: Vector) -> None:
        beta = state.schedule.averaging
        state.square += (1.0 - SCALE_MEMORY) * (float(g @ g) - state.square)
        state.average = beta * state.average + (1.0 - beta) * g


@dataclass(kw_only=True, eq=False)
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

    schedule: Literal["practice", "theory"] = "practice"
    betas: tuple[float, float] = plans.PRACTICAL_BETAS
    scale: float | None = None
    noise: float | None = None
    gap: float | None = None

    name = "adam-o2nc"
    stage_shrink = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.schedule == "theory" and (self.scale is None or self.gap is None):
            raise InputError(
                "schedule='theory' needs scale, the sum of the coordinates' root mean squares of "
                "the noisy gradient, and gap >= f(x0) - inf f; 'practice' needs neither."
            )
        plans.window_of(self.betas[0])  # refuses what is no weight

    def _plan(
        self, oracle: CountedOracle, state: NoisyState, request: Request, steps: int, radius: float
    ) -> tuple[plans.AdamO2NCSchedule, int, bool]:
        dim = state.x.size
        state.direction, state.average, state.square = np.zeros(dim), np.zeros(dim), np.zeros(dim)
        if self.schedule == "theory":
            assert self.scale is not None
            assert self.gap is not None
            plan = plans.adam_o2nc_theory(
                request.eps, request.delta, scale=self.scale, gap=self.gap, noise=self.noise
            )
            return plan, plan.output_step(request.seed), True
        longest = radius / (plans.window_of(self.betas[0]) * math.sqrt(dim))
        return plans.adam_o2nc_practice(longest, steps, betas=self.betas), steps, False

    def _reach(self, state: NoisyState) -> float:
        # The window lies in a box; this is the ball around it.
        return super()._reach(state) * math.sqrt(state.x.size)

    def _choose(self, state: NoisyState, rng: np.random.Generator) -> tuple[Vector, Vector, float]:
        plan: plans.AdamO2NCSchedule = state.schedule
        longest = plan.step_radius * plan.shrink(state.done)
        step = longest * state.direction
        begin = state.iterate + longest * BOX_JITTER * rng.uniform(-1.0, 1.0, step.size)
        return begin + step, begin + rng.random() * step, BOX_JITTER * longest

    def _learn(self, state: NoisyState, y: Vector, g: Vector) -> None:
        plan: plans.AdamO2NCSchedule = state.schedule
        b, squares = plan.betas
        assert state.average is not None
        state.average = b * state.average + g
        state.square = squares * state.square + g * g
        root = np.sqrt(state.square)
        expected = state.average + plan.foresight * g
        ratio = np.divide(expected, root, out=np.zeros(g.size), where=root > 0.0)
        state.direction = -np.clip(ratio, -1.0, 1.0)


def draw_gradient(
    oracle: CountedOracle, state: NoisyState, y: Vector, rng: np.random.Generator, radius: float
) -> Vector:
    """Return a noisy gradient at y, or within `radius` of it where the function knows of a kink."""
    state.clock += 1
    point = y
    for _ in range(REDRAWS):
        try:
            return oracle.sample(point, rng)
        except KinkError:
            point = uniform_in_ball(rng, y, radius)
    raise InputError(
        f"{REDRAWS} random points within {radius:g} of each other are all kinks; this function is "
        "not differentiable almost everywhere, or the radius is too small for float64."
    )
