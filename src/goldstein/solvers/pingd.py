"""Algorithm 1: Perturbed INGD (Tian, Zhou, So 2022), corrected as in docs/errata.md.

Bundle-PINGD: Algorithm 1 with the shortest vector of the hull instead of an average.
"""

import math
from dataclasses import dataclass, field

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.numerics.streams import stream, uniform_in_ball
from goldstein.oracles import CountedOracle
from goldstein.result import Status
from goldstein.solvers import ball_state
from goldstein.solvers.base import Evidence, Request, Solver, gradient_of, value_of
from goldstein.solvers.logic import bundle_member
from goldstein.solvers.logic.questions import NOTHING, VALUE
from goldstein.solvers.memory import LipschitzGuard, PointBundle


@dataclass(slots=True)
class PingdState(ball_state.BallState):
    """A round at one point: m is an average of gradients, and all of them are known."""

    guard: LipschitzGuard = field(default_factory=lambda: LipschitzGuard(None))
    seed: int = 0
    rounds_opened: int = 0
    rounds_here: int = 0
    max_steps: int = 1
    informed: bool = False  # some gradient near the current x is known
    points: list[Vector] = field(default_factory=list)
    gradients: list[Vector] = field(default_factory=list)

    def begin(self) -> None:
        """Let m be the gradient that was found."""
        self.points, self.gradients = [self.point], [self.found]
        self.m = self.found

    def include(self) -> None:
        """Make m shorter with the gradient that was found."""
        assert self.m is not None
        beta = ball_state.averaging_weight(self.ratio)
        self.m = beta * self.m + (1.0 - beta) * self.found
        self.points.append(self.point)
        self.gradients.append(self.found)

    def gathered(self) -> Evidence:
        """Return the points behind m: of thousands, d + 1 prove as much, with other weights."""
        return Evidence.of(self.x, self.points, self.gradients)


@dataclass(kw_only=True, eq=False)
class PINGD(Solver):
    """Algorithm 1 as proved: gradients are averaged with the weight beta(|m|/L).

    The reference implementation. It keeps the finite-time guarantee to the letter and is slow in
    practice; `bundle` and `auto` keep the guarantee and are fast.

    Parameters
    ----------
    lipschitz : float, optional
        L on the delta-neighbourhood of the sublevel set. Estimated and guarded if missing.
    gamma : float
        Allowed failure probability of the whole run.
    gap : float, optional
        An upper bound of f(x1) - inf f. With it the theory's limits on moves (T) and rounds (R)
        apply; without it the call budget is the only limit.
    round_failure : float
        Failure probability of a single round (pi); sets the steps per round (K).

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> res = gs.minimize(lambda x: abs(x[0]), [0.7], np.sign, eps=0.3, delta=0.1,
    ...                   method=gs.PINGD(lipschitz=1.0), rng=0)
    >>> res.success
    True
    """

    lipschitz: float | None = None
    gamma: float = 0.01
    gap: float | None = None
    round_failure: float = ball_state.CHEAP_ROUND_FAILURE

    name = "pingd"
    expand = False
    # An average that was made with too small an L is not the one of the proof.
    _restart_when_raised = True

    def __post_init__(self) -> None:
        for label, value in (("gamma", self.gamma), ("round_failure", self.round_failure)):
            if not 0 < value < 1:
                raise InputError(f"{label} must lie strictly between 0 and 1, got {value!r}.")
        if self.gap is not None and not self.gap >= 0:
            raise InputError(f"gap must be a nonnegative number or None, got {self.gap!r}.")
        LipschitzGuard(self.lipschitz)  # refuses bad values with its own message

    def _state(self, x: Vector, fx: float) -> PingdState:
        return PingdState(x=x, fx=fx)

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> PingdState:
        state = self._state(x0.copy(), oracle.value(x0))
        given = self.lipschitz if self.lipschitz is not None else request.lipschitz
        state.guard = LipschitzGuard(given)
        state.eps, state.delta, state.seed = request.eps, request.delta, request.seed
        return state

    def step(self, oracle: CountedOracle, state: PingdState, request: Request) -> None:
        """Test m; where it is too long, descend along it, or learn a gradient that shortens it."""
        if state.m is None or state.rejected is not None:
            if not self._opens_round(state) or self._learn(oracle, state) is None:
                return
            state.begin()
            state.informed = True
        m = state.m
        assert m is not None
        norm = math.sqrt(m.dot(m))
        state.bound, state.radius = norm, state.delta
        # The first test: nothing divides by |m| before it.
        if norm <= state.eps:
            state.evidence = state.gathered()
            return
        state.centre, state.centre_value = state.x, state.fx
        bundle_member.aim(state, norm, state.delta, min(norm / state.guard.value, 1.0))
        state.reply = value_of(oracle, state.point, VALUE)
        if bundle_member.descends(state):
            bundle_member.move(state)
            state.rounds_here, state.m, state.informed = 0, None, False
            question = bundle_member.try_farther(state) if self.expand else NOTHING
            while question != NOTHING:
                state.reply = value_of(oracle, state.point, question)
                question = bundle_member.told_farther(state)
            return
        state.spare = state.point
        state.failed_steps += 1
        if state.failed_steps >= state.max_steps:
            state.m = None  # a gradient whose m is never tested would be wasted
            return
        bundle_member.look(state, state.delta)
        raised = self._learn(oracle, state)
        if raised and self._restart_when_raised:
            state.m = None
        elif raised is not None:
            state.include()

    def _opens_round(self, state: PingdState) -> bool:
        """Draw the first point of a round; give up where the theory says that is justified."""
        state.rejected = state.m = None
        if self.gap is not None:
            moves = ball_state.descent_steps(self.gap, state.eps, state.delta)
            if state.steps >= moves:
                state.status = Status.STEPS_EXHAUSTED
                return False
            if state.rounds_here >= ball_state.rounds(moves, self.gamma, self.round_failure):
                state.status = Status.ROUNDS_EXHAUSTED
                return False
        state.rounds_here += 1
        state.rounds_opened += 1
        state.rng = stream(state.seed, state.rounds_opened, self.name)
        state.failed_steps = 0
        state.point = uniform_in_ball(state.rng, state.x, state.delta)
        return True

    def _learn(self, oracle: CountedOracle, state: PingdState) -> bool | None:
        """Ask for a gradient; return whether it raised L, or None for a kink: redrawn next time."""
        found = gradient_of(oracle, state.point)
        if found is None:
            return None
        state.found = found
        raised = state.guard.observe(math.sqrt(found.dot(found)))
        if raised or state.failed_steps == 0:
            level = max(state.guard.value, state.eps)
            state.max_steps = ball_state.steps_per_round(level, state.eps, self.round_failure)
        return raised

    def best_evidence(self, state: PingdState) -> Evidence | None:
        # After a failed round its gradients still speak about this x; after a move they do not.
        return state.gathered() if state.informed else None


@dataclass(kw_only=True, slots=True)
class BundleState(PingdState):
    bundle: PointBundle

    def begin(self) -> None:
        self.bundle.clear()
        self.bundle.add(self.point, self.found)
        self.m = self.found

    def include(self) -> None:
        self.bundle.add(self.point, self.found)
        self.m = self.bundle.shortest()

    def gathered(self) -> Evidence:
        self.bundle.shortest()
        return self.bundle.evidence(self.x)


@dataclass(kw_only=True, eq=False)
class BundlePINGD(PINGD):
    """Algorithm 1 with m = the shortest vector of conv{all gradients of the round}.

    Every guarantee of Algorithm 1 holds unchanged, because this vector is never longer than the
    average it replaces, and the proof uses nothing else about it. A successful descent step is
    doubled while the decrease stays proportional, which only lowers f further.

    Parameters
    ----------
    lipschitz, gamma, gap, round_failure
        As in `PINGD`.
    expand : bool
        Double successful steps while they keep paying.
    capacity : int, optional
        Gradients kept at a time; default min(2 d + 20, 200).
    line : {"random"}
        Deprecated: where to look after a failed step is always at random, as in Algorithm 1.
    """

    expand: bool = True
    capacity: int | None = None
    line: str = "random"

    name = "bundle"
    # The hull stays valid whatever L is: a raised L changes only the next trial step.
    _restart_when_raised = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.capacity is not None and self.capacity < 3:
            raise InputError(f"capacity must be at least 3, got {self.capacity}.")
        ball_state.check_line(self.line)

    def _state(self, x: Vector, fx: float) -> BundleState:
        # Room for the d + 1 rows that can matter, and for as many new ones before tidying up.
        capacity = self.capacity or min(2 * x.size + 20, 200)
        return BundleState(x=x, fx=fx, bundle=PointBundle(x.size, capacity))
