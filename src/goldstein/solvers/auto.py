"""`auto`: a quasi-Newton search and Bundle-PINGD take turns over one shared bundle.

The quasi-Newton half is fast and proves nothing. The bundle half is Algorithm 1 with the shortest
vector of the hull: from wherever it stands it descends by a fixed amount or certifies, whatever the
other half does. Neither half ever takes the other to a higher value, and the bundle half keeps at
least a fixed share of the calls, so the finite-time bound holds up to that share.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from goldstein.errors import InputError, KinkError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.cone import narrow, trial_point
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.lipschitz import LipschitzGuard
from goldstein.result import Status
from goldstein.solvers.base import Evidence, Request, Solver, State
from goldstein.solvers.expand import expand
from goldstein.solvers.line_oracles import check_line, gradients_along
from goldstein.solvers.memory import GradientMemory
from goldstein.solvers.point_bundle import PointBundle
from goldstein.solvers.quasi_newton import DENSE_LIMIT, MAX_NULL_STEPS, QuasiNewton
from goldstein.solvers.schedules import steps_per_round

Vector = NDArray[np.float64]
Half = Literal["newton", "bundle"]

#: Points are taken this far inside the ball, to leave room for the checker's displacement.
_INSIDE = 1.0 - 4e-3
#: Share of the calls given to the quasi-Newton half: at the start, and its limits.
_SHARE, _LEAST, _MOST = 0.6, 0.15, 0.85
#: As long as its steps are this long against delta, the fast half is far from done: its share
#: then, and how often it corrects its model.
_FAR, _FAR_SHARE, _FAR_NULL = 10.0, 0.95, 1
#: The half that lowered f faster per call in its last turns gets better odds by this factor.
_REWARD = 1.5
#: When the free bound is this close to eps, or the steps this short against delta, close in.
_CLOSE, _SHORT = 3.0, 0.1
#: After a rejection the fast half asks for gradients this far (in units of delta) off its points.
_JITTER = 1e-3
#: The bundle has room for this many gradients in any dimension.
_GATHER = 60
#: The first gradient in a ball is taken this close to the centre, where symmetries are kept.
_FIRST = 1e-3
#: Every so many failed steps, try to step along the entries of m that make up this part of its
#: squared length, with this share of the radius.
_SPARSE_EVERY = 8
_SPARSE = ((0.9, 1.0), (0.99, 1.0), (0.7, 1.0), (0.9, 0.125), (0.99, 0.125), (0.7, 0.125))
#: Steps of the fast half that are this short against delta lead nowhere: it starts afresh.
_CRAWL = 1e-3
#: After this many calls per variable the fast half goes on without its model, up to this dimension.
_PLAIN_AFTER, _PLAIN_LIMIT = 4, 3000
#: It is done when its steps are this short against delta.
_DONE = 1e-6
#: Moves of the centre by the fast half between two falls of f that count in the theorem.
_SMALL_MOVES = 50
#: Calls per variable without progress before a run that float64 cannot finish is ended.
_PATIENCE = 100
#: The working radius shrinks by this when its ball is certified.
_SHRINK = 0.3


@dataclass
class AutoState(State):
    """Both searches, and whose turn it is."""

    memory: GradientMemory = field(default_factory=lambda: GradientMemory(1, 1))
    newton: QuasiNewton = field(default_factory=lambda: QuasiNewton(1))
    bundle: PointBundle = field(default_factory=lambda: PointBundle(1, 3))
    guard: LipschitzGuard = field(default_factory=lambda: LipschitzGuard(None))
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    #: The start and its value.
    origin: tuple[Vector, float] = field(default_factory=lambda: (np.zeros(0), math.inf))
    #: Centre, value and radius of the ball the bundle half is working in.
    centre: Vector = field(default_factory=lambda: np.zeros(0))
    centre_value: float = math.inf
    working: float = math.inf
    #: The radius that was asked for.
    delta: float = math.inf
    #: Entries of the memory that were offered to the bundle, and the radius they were offered for.
    offered: int = 0
    #: Gradients at points that were not drawn at random have failed the judge.
    refuted: bool = False
    gathered: float = 0.0
    #: The fast half, without its model, has ended.
    settled: bool = False
    failed_steps: int = 0
    turn: Half = "newton"
    turn_began: int = 0
    turn_ends: int = 0
    turn_value: float = math.inf
    share: float = _SHARE
    counted_value: float = math.inf
    small_moves: int = 0
    progress_value: float = math.inf
    progress_bound: float = math.inf
    progress_calls: int = 0
    close: float = _CLOSE
    short: float = _SHORT
    rates: dict[Half, float] = field(default_factory=dict)


class Auto(Solver):
    """The solver to use unless you know better.

    Parameters
    ----------
    newton : bool
        Switch the quasi-Newton half off to see Bundle-PINGD with a working radius alone.
    capacity : int, optional
        Gradients kept by the bundle half; default d + 2, at least 60 and at most 1000 (fewer
        above d = 2e4: 160 MB).
    memory : int, optional
        Gradients shared between the halves; default 4 min(d, 200) + 100, with the same limit.
    line : {"random", "bisection", "hybrid"}
        Where the bundle half looks after a failed step; see `BundlePINGD`.

    Examples
    --------
    >>> import goldstein as gs
    >>> problem = gs.problems.get("chained_crescent_1", d=20)
    >>> res = gs.minimize(problem, problem.x0, eps=1e-4, delta=1e-4, rng=0)
    >>> res.success
    True
    """

    name = "auto"

    def __init__(
        self,
        *,
        newton: bool = True,
        capacity: int | None = None,
        memory: int | None = None,
        line: str = "random",
    ) -> None:
        if capacity is not None and capacity < 3:
            raise InputError(f"capacity must be at least 3, got {capacity}.")
        if memory is not None and memory < 3:
            raise InputError(f"memory must be at least 3, got {memory}.")
        self.newton = newton
        self.capacity = capacity
        self.memory = memory
        self.line = check_line(line)

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> AutoState:
        d = x0.size
        capacity = self.capacity or max(_GATHER, min(d + 2, 1000, _rows(d)))
        fx = oracle.value(x0)
        state = AutoState(
            x=x0.copy(),
            fx=fx,
            origin=(x0.copy(), fx),
            memory=GradientMemory(d, self.memory or min(4 * min(d, 200) + 100, _rows(d))),
            newton=self._quasi_newton(d),
            bundle=PointBundle(d, capacity, max_points=2 * max(capacity, _rows(d))),
            centre=x0.copy(),
            guard=LipschitzGuard(request.lipschitz),
            rng=stream(request.seed, 0, self.name),
            working=max(request.delta, 0.1 * max(1.0, math.sqrt(float(x0 @ x0)))),
            delta=request.delta,
            turn="newton" if self.newton else "bundle",
        )
        state.newton.restart(state.x, fx)
        _open_turn(oracle, state, request)
        return state

    def _quasi_newton(self, dim: int) -> QuasiNewton:
        """The seam where a test sabotages the fast half."""
        return QuasiNewton(dim)

    def step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        if state.rejected is not None:
            self._learn_from_rejection(oracle, state, request)
        if state.turn == "newton":
            self._newton_step(oracle, state, request)
        else:
            self._bundle_step(oracle, state, request)
        if self.newton and oracle.calls >= state.turn_ends and state.evidence is None:
            _switch(oracle, state, request)
        if _stalled(oracle, state, request):
            state.status = Status.STALLED

    def best_evidence(self, state: AutoState) -> Evidence | None:
        if state.working > state.delta or not np.array_equal(state.centre, state.x):
            state.working = state.delta
            _recentre(state, state.delta)
        if state.bundle.size == 0:
            return None
        state.bundle.shortest()
        return state.bundle.evidence(state.x)

    # ---------------------------------------------------------------- the fast half

    def _newton_step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        newton = state.newton
        seen: list[tuple[Vector, Vector]] = []
        moved = True  # a step that the end of the calls cuts short has gained what it has gained
        try:
            moved = newton.step(oracle, state.rng, seen)
        finally:
            # Without its model it works so close to the kinks that no displaced point agrees.
            if newton.jitter > 0 or (newton.has_model and not state.refuted):
                for y, g in seen:
                    _remember(state, y, g, perturbed=newton.jitter > 0)
            state.moved = moved and newton.fx < state.fx
            if state.moved:
                state.x, state.fx = newton.x, newton.fx
                state.steps += 1
        if not moved:
            state.turn_ends = oracle.calls
        if not state.moved:
            return
        if newton.length > request.delta or not _may_recentre(state, request):
            return
        # The gradients around x are there already: trying them as a certificate costs no call.
        _recentre(state, request.delta)
        if state.bundle.size == 0:
            return
        norm = _length(state.bundle.shortest(request.eps))
        state.bound, state.radius = norm, request.delta
        if norm <= request.eps:
            state.evidence = state.bundle.evidence(state.x)
        elif norm <= state.close * request.eps or newton.length <= state.short * request.delta:
            # Close in; should that fail, not again before things look better than now.
            state.close = min(state.close, 0.5 * norm / request.eps)
            state.short = min(state.short, 0.5 * newton.length / request.delta)
            state.working = request.delta
            state.turn_ends = oracle.calls

    # ---------------------------------------------------------------- the half with the guarantee

    def _bundle_step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        radius = state.working
        # A fall of f too small for the theorem must not restart its argument again and again.
        if state.fx < state.centre_value - 0.25 * request.delta * request.eps:
            _recentre(state, radius)
        else:
            _offer(state, radius)
        x = state.centre
        if state.bundle.size == 0:
            y = uniform_in_ball(state.rng, x, radius * _FIRST)
            self._learn(state, y, oracle.gradient(y))
        goal = request.eps * max(1.0, radius / request.delta)
        m = state.bundle.shortest(goal)
        norm = _length(m)
        state.bound, state.radius = norm, radius
        if norm <= goal:
            if radius <= request.delta:
                state.x, state.fx = x, state.centre_value
                state.evidence = state.bundle.evidence(x)
            else:
                state.working = max(request.delta, _SHRINK * radius)
                _recentre(state, state.working)
            return
        ratio = narrow(norm / state.guard.value, x.size)
        trial = trial_point(x, m, norm, radius, ratio)
        value = oracle.trial_value(trial) if radius > request.delta else oracle.value(trial)
        if value == math.inf:
            state.working = max(request.delta, _SHRINK * radius)
            _recentre(state, state.working)
        elif value - state.centre_value < -0.25 * radius * norm:
            self._descend(oracle, state, trial, value, m, norm, radius)
        else:
            state.failed_steps += 1
            if state.failed_steps % _SPARSE_EVERY == 0 and self._sparse_step(oracle, state, m):
                return
            if state.failed_steps >= steps_per_round(state.guard.value, request.eps):
                state.bundle.clear()
                state.failed_steps = 0
                return
            with contextlib.suppress(KinkError):  # in floating point: the next draw is another
                for y, g in gradients_along(
                    self.line, oracle, state.rng, x, state.centre_value, m, norm,
                    radius * _INSIDE, ratio, value,
                ):  # fmt: skip
                    self._learn(state, y, g)

    def _sparse_step(self, oracle: CountedOracle, state: AutoState, m: Vector) -> bool:
        """Try a step along the largest entries of m only.

        In high dimension the many small entries of m are noise, which a function with many kinks
        does not forgive: the step fails although its few large entries lead down.
        """
        part, share = _SPARSE[(state.failed_steps // _SPARSE_EVERY) % len(_SPARSE)]
        squares = m * m
        order = np.argsort(squares)[::-1]
        falling = np.cumsum(squares[order])
        count = int(np.searchsorted(falling, part * falling[-1])) + 1
        if count > 0.5 * m.size:
            return False
        sparse = np.zeros(m.size)
        sparse[order[:count]] = m[order[:count]]
        norm = _length(sparse)
        length = share * state.working
        trial = state.centre - (length / norm) * sparse
        value = oracle.trial_value(trial)
        if value - state.centre_value >= -0.25 * length * norm:
            return False
        self._descend(oracle, state, trial, value, sparse, norm, length)
        return True

    def _learn(self, state: AutoState, y: Vector, g: Vector) -> None:
        _remember(state, y, g, perturbed=True)
        state.offered = state.memory.added
        state.bundle.add(y, g, reach=state.working)

    def _descend(
        self,
        oracle: CountedOracle,
        state: AutoState,
        trial: Vector,
        value: float,
        m: Vector,
        norm: float,
        step: float,
    ) -> None:
        """Take the step, and double it while the decrease stays proportional."""
        radius = state.working
        state.x, state.fx = trial, value
        state.steps += 1
        state.moved = True
        length = expand(oracle, state, state.centre, state.centre_value, m, norm, step)
        if length > 4.0 * radius:
            state.working = 2.0 * radius
        _recentre(state, state.working)

    def _learn_from_rejection(
        self, oracle: CountedOracle, state: AutoState, request: Request
    ) -> None:
        assert state.rejected is not None
        points, gradients = state.rejected
        state.rejected = None
        # Gradients at unperturbed points were refuted: asked again nearby, they are different.
        state.refuted = True
        if state.newton.has_model:
            state.newton.jitter = _JITTER * request.delta
        state.bundle.drop_unperturbed()
        state.memory.drop_unperturbed()
        for y, g in zip(points, gradients):
            _remember(state, y, g, perturbed=True)
        state.working = request.delta
        _recentre(state, request.delta)
        state.turn = "bundle"
        _open_turn(oracle, state, request)


def _stalled(oracle: CountedOracle, state: AutoState, request: Request) -> bool:
    """Has nothing improved for long, where float64 cannot even resolve the descent test?

    Where it can, the guarantee holds and giving up would break it.
    """
    bound = state.bound if state.radius <= request.delta else math.inf
    if state.fx < state.progress_value or bound < 0.99 * state.progress_bound:
        state.progress_value = min(state.progress_value, state.fx)
        state.progress_bound = min(state.progress_bound, bound)
        state.progress_calls = oracle.calls
        return False
    resolved = 0.25 * request.delta * request.eps >= 8.0 * 2.0**-53 * abs(state.fx)
    idle = oracle.calls - state.progress_calls
    return not resolved and idle > _PATIENCE * (state.x.size + 10)


def _switch(oracle: CountedOracle, state: AutoState, request: Request) -> None:
    """Give the turn to the other half, and more calls to the one that earns them."""
    used = max(1, oracle.calls - state.turn_began)
    rate = (state.turn_value - state.fx) / used
    state.rates[state.turn] = 0.5 * (state.rates.get(state.turn, rate) + rate)
    if len(state.rates) == 2:
        odds = state.share / (1.0 - state.share)
        crawling = _crawling(state, request)
        better = state.rates["newton"] > state.rates["bundle"] and not crawling
        odds *= _REWARD if better else 1.0 / _REWARD
        state.share = min(_MOST, max(_LEAST, odds / (1.0 + odds)))
    if not state.newton.has_model:
        # It has to catch up before it can show what it is worth; when it is done, it is done.
        done = state.newton.stuck or state.newton.length < _DONE * request.delta
        state.share = _LEAST if done else _MOST
        if done and not state.settled:
            _settle(state, request)
    if state.turn == "newton":
        state.turn = "bundle"
        if _crawling(state, request):
            state.newton.forget(request.delta)
    else:
        state.turn = "newton"
        _without_model(oracle, state)
        if state.newton.stuck or (state.newton.has_model and state.newton.fx > state.fx):
            state.newton.restart(state.x, state.fx)
    _open_turn(oracle, state, request)


def _without_model(oracle: CountedOracle, state: AutoState) -> None:
    """Let plain BFGS have a try where the model has not succeeded after many calls.

    With about as many curved kinks as variables, a few linear pieces mislead, and so does a limited
    memory. BFGS learns the whole space in a few thousand steps, if it begins where kinks are far
    apart and is left alone with its point.
    """
    d, newton = state.x.size, state.newton
    many = DENSE_LIMIT < d <= _PLAIN_LIMIT
    if many and newton.has_model and oracle.calls > _PLAIN_AFTER * d:
        state.newton = QuasiNewton(d, model=False)
        state.newton.restart(*state.origin)


def _settle(state: AutoState, request: Request) -> None:
    """Let the bundle half begin afresh where the fast half has ended.

    What it gathered on the way shows the kinks in many combinations that do not matter here.
    """
    state.settled = True
    state.memory.clear()
    state.bundle.clear()
    state.working = request.delta
    _recentre(state, request.delta)


def _crawling(state: AutoState, request: Request) -> bool:
    """Are the steps of the fast half so short that its model must be wrong?"""
    return state.newton.has_model and state.newton.length < _CRAWL * request.delta


def _open_turn(oracle: CountedOracle, state: AutoState, request: Request) -> None:
    far = state.newton.length > _FAR * request.delta
    state.newton.null_steps = _FAR_NULL if far else MAX_NULL_STEPS
    newtons = max(state.share, _FAR_SHARE) if far else state.share
    share = newtons if state.turn == "newton" else 1.0 - newtons
    state.turn_began, state.turn_value = oracle.calls, state.fx
    state.turn_ends = oracle.calls + max(6, int(2.0 * share * (min(state.x.size, 100) + 10)))


def _may_recentre(state: AutoState, request: Request) -> bool:
    """May the fast half move the centre of the other one?

    Always after a fall of f that counts in the theorem; otherwise only so often between two of
    them, or falls too small to count could interrupt the bundle half for ever.
    """
    if state.fx < state.counted_value - 0.25 * request.delta * request.eps:
        state.counted_value, state.small_moves = state.fx, 0
        return True
    state.small_moves += 1
    return state.small_moves <= _SMALL_MOVES


def _recentre(state: AutoState, radius: float) -> None:
    """Move the bundle half to the best point, with the gradients known around it."""
    moved = _length(state.x - state.centre)
    state.centre, state.centre_value = state.x, state.fx
    state.failed_steps = 0
    if radius <= state.gathered:
        state.bundle.recentre(state.centre, moved, radius * _INSIDE)
    else:
        state.bundle.clear()
    if state.bundle.size == 0:
        state.offered = 0
    _offer(state, radius)
    state.gathered = radius


def _offer(state: AutoState, radius: float) -> None:
    """Let the bundle have what the memory learned around the centre since it was last asked."""
    memory = state.memory
    if state.offered == memory.added:
        return
    rows = memory.near(state.centre, radius * _INSIDE, state.offered)
    for row in rows[: state.bundle.capacity]:
        state.bundle.add(
            memory.points[row].copy(),
            memory.gradients[row],
            bool(memory.perturbed[row]),
            radius * _INSIDE,
        )
    state.offered = memory.added


def _rows(dim: int) -> int:
    """How many vectors of this dimension fit into 160 MB."""
    return max(_GATHER, 20_000_000 // dim)


def _remember(state: AutoState, y: Vector, g: Vector, *, perturbed: bool) -> None:
    state.guard.observe(_length(g))
    state.memory.add(y, g, perturbed)


def _length(v: Vector) -> float:
    return math.sqrt(v.dot(v))
