"""`auto`: a portfolio of a quasi-Newton search and Bundle-PINGD over one shared bundle.

In many variables a third search joins them (`coordinate_sweep`) for as long as it wins.

The quasi-Newton member is fast and proves nothing. The bundle member is Algorithm 1 with the
shortest vector of the hull: from wherever it stands it descends by a fixed amount or certifies,
whatever the other does. Neither ever takes the other to a higher value, and the bundle member keeps
at least a fixed share of the calls, so the finite-time bound holds up to that share.

Here is the memory of the search and its arithmetic; its decisions are in `logic`.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, OutOfCalls
from goldstein.numerics.hull import MANY_VARIABLES
from goldstein.numerics.streams import stream, uniform_in_ball
from goldstein.oracles import CountedOracle, PartiallySeparable
from goldstein.result import Status
from goldstein.solvers.ball_state import BallState, check_line
from goldstein.solvers.base import Evidence, Request, Solver, drive
from goldstein.solvers.coordinate_sweep import CoordinateSides, CoordinateSweep
from goldstein.solvers.gather import firm
from goldstein.solvers.logic import bundle_member, line_search, portfolio
from goldstein.solvers.memory import DEFAULT, ELEMENTS, GradientMemory, PointBundle, plan
from goldstein.solvers.partitioned import PartitionedSearch
from goldstein.solvers.quasi_newton import QuasiNewton
from goldstein.solvers.tuning import TUNING

#: A proof that failed is tried again for an eps smaller by this factor (in many variables by the
#: second), down to this part of the one that was asked for.
HALVED, LESS_EPS, LEAST_EPS = 0.5, 0.9, 0.3


@dataclass(kw_only=True, slots=True)
class AutoState(BallState):
    """Both searches, and which one runs."""

    memory: GradientMemory
    newton: QuasiNewton
    bundle: PointBundle
    dim: int
    #: The start and its value.
    origin: tuple[Vector, float]
    #: Radius of the ball the bundle member is working in.
    working: float
    #: Its last trial point, and f there.
    tried: Vector = field(default_factory=lambda: np.zeros(0))
    tried_value: float = math.inf
    #: The evidence is in the bundle.
    proved: bool = False
    #: Entries of the memory that were offered to the bundle, and the radius they were offered for.
    offered: int = 0
    gathered: float = 0.0
    #: Gradients at points that were not drawn at random have failed the judge.
    refuted: bool = False
    #: There is a quasi-Newton member; which one runs, when and where it began, and when it ends.
    has_portfolio: bool = True
    member: int = portfolio.NEWTON
    slice_began: int = 0
    slice_ends: int = 0
    slice_value: float = math.inf
    #: The quasi-Newton member's share of the calls; how fast the members lowered f.
    share: float = 0.5
    newton_rate: float = math.nan
    bundle_rate: float = math.nan
    #: The last value that counted in the theorem, and moves since then that do not.
    counted_value: float = math.inf
    small_moves: int = 0
    #: The best so far, and when something was last improved.
    progress_value: float = math.inf
    progress_bound: float = math.inf
    progress_calls: int = 0
    #: f when it was last looked at, and the step from which on that is done again.
    mark_value: float = math.inf
    mark_steps: int = 0
    #: When to close in.
    close: float = TUNING.close
    short: float = TUNING.short
    #: The third search, if there is one.
    sweep: CoordinateSweep | None = None
    #: The points of a proof that are placed where a sweep has won.
    sides: CoordinateSides | None = None
    #: The search for sums of elements, if f is one.
    partitioned: PartitionedSearch | None = None
    #: Memory is short: the bundle makes room while its evidence is judged.
    short_of_memory: bool = False

    @property
    def lipschitz(self) -> float:
        return self.memory.guard.value

    @property
    def added(self) -> int:
        return self.memory.added

    @property
    def most_gradients(self) -> int:
        """How many gradients there is room for."""
        return self.bundle.capacity

    # ---------------------------------------------------------------- the bundle

    def bundle_size(self) -> int:
        return self.bundle.size

    def shortest(self) -> float:
        m = self.m = self.bundle.shortest()
        return math.sqrt(m.dot(m))

    def clear_bundle(self) -> None:
        self.bundle.clear()

    def keep_near(self, moved: float, radius: float) -> None:
        self.bundle.recentre(self.centre, moved, radius)

    def gather(self, radius: float) -> None:
        """Let the bundle have what the memory knows within the radius and it was not offered."""
        memory = self.memory
        for row in memory.near(self.centre, radius, self.offered)[: self.bundle.capacity]:
            point, safe = memory.points[row].copy(), bool(memory.perturbed[row])
            self.bundle.add(point, memory.gradients[row], safe, radius)

    def add_found(self) -> None:
        self.bundle.add(self.point, self.found, reach=self.working)

    # ---------------------------------------------------------------- the memory

    def remember_found(self) -> None:
        self.memory.add(self.point, self.found, perturbed=True)

    def learn(self, point: Vector, gradient: Vector) -> None:
        self.memory.add(point, gradient, perturbed=True)

    def remember_fresh(self) -> None:
        """Believe what the judge was told."""
        assert self.rejected is not None
        for y, g in zip(*self.rejected):
            self.memory.add(y, g, perturbed=True)
            if self.short_of_memory:
                self.bundle.add(y.copy(), g, reach=self.working)
        if self.short_of_memory:
            self.offered = self.added

    def drop_unperturbed(self) -> None:
        self.bundle.drop_unperturbed()
        self.memory.drop_unperturbed()

    def clear_memory(self) -> None:
        self.memory.clear()

    # ---------------------------------------------------------------- points

    def move_centre(self) -> float:
        """Move the centre to x; return how far that is."""
        offset = self.x - self.centre
        self.centre = self.x
        return math.sqrt(offset.dot(offset))

    def is_centred(self) -> bool:
        return np.array_equal(self.centre, self.x)

    def was_tried(self) -> bool:
        return np.array_equal(self.point, self.tried)

    def draw_first(self, radius: float) -> None:
        self.point = uniform_in_ball(self.rng, self.centre, radius)

    # ---------------------------------------------------------------- the quasi-Newton member

    def restart_newton(self) -> None:
        self.newton.restart(self.x, self.fx)


@dataclass(kw_only=True, eq=False)
class Auto(Solver):
    """The solver to use unless you know better.

    Parameters
    ----------
    newton : bool
        Switch the quasi-Newton member off to see Bundle-PINGD with a working radius alone.
    capacity : int, optional
        Gradients kept by the bundle member; default d + 2, at least 60 and at most 1000 (fewer
        above d = 2e4: what fits into `max_memory`).
    memory : int, optional
        Gradients shared between the members; default 4 min(d, 200) + 100, with the same limit.
    line : {"random"}
        Deprecated; see `BundlePINGD`.
    max_memory : int, optional
        Bytes that the arrays of the search may take, judging its evidence included; default 2e9.
        Fewer gradients are kept to stay below it.
    sweep : bool
        Switch the third search off, which joins from 1000 variables on.
    elements : bool
        Switch the search off that knows the elements of a `PartiallySeparable` sum.

    Examples
    --------
    >>> import goldstein as gs
    >>> problem = gs.problems.get("chained_crescent_1", d=20)
    >>> res = gs.minimize(problem, problem.x0, eps=1e-4, delta=1e-4, rng=0)
    >>> res.success
    True
    """

    newton: bool = True
    capacity: int | None = None
    memory: int | None = None
    line: str = "random"
    max_memory: int | None = None
    sweep: bool = True
    elements: bool = True

    name = "auto"

    def __post_init__(self) -> None:
        for label, count in (("capacity", self.capacity), ("memory", self.memory)):
            if count is not None and count < 3:
                raise InputError(f"{label} must be at least 3, got {count}.")
        check_line(self.line)
        most = self.max_memory
        if most is not None and most <= 0:
            raise InputError(f"max_memory must be a positive number of bytes, got {most}.")

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> AutoState:
        d = x0.size
        budget = plan(d, self.max_memory)
        capacity = self.capacity or budget.bundle
        merged = 2 * capacity if self.capacity else 0
        fx = oracle.value(x0)
        memory = GradientMemory(d, self.memory or budget.memory, request.lipschitz)
        rng = stream(request.seed, 0, self.name)
        state = AutoState(
            x=x0.copy(),
            fx=fx,
            eps=request.eps,
            delta=request.delta,
            dim=d,
            origin=(x0.copy(), fx),
            earlier=fx,
            mark_value=fx,
            memory=memory,
            newton=self._quasi_newton(d, rng, memory),
            bundle=PointBundle(d, capacity, max(merged, budget.points), oracle.deadline),
            centre=x0.copy(),
            rng=rng,
            working=max(request.delta, 0.1 * max(1.0, math.sqrt(float(x0 @ x0)))),
            has_portfolio=self.newton,
            member=portfolio.NEWTON if self.newton else portfolio.BUNDLE,
            short_of_memory=not budget.ample,
        )
        if self.sweep and d >= MANY_VARIABLES:
            own = stream(request.seed, 0, "sweep")
            state.sweep = CoordinateSweep(d, request.delta, fx, own)
        if self.elements and isinstance(oracle.plain, PartiallySeparable):
            own = stream(request.seed, 0, "partitioned")
            allowed = int(ELEMENTS * (self.max_memory or DEFAULT))
            state.partitioned = PartitionedSearch.of(oracle.plain, allowed, own)
        state.newton.restart(state.x, fx)
        portfolio.open_slice(state, oracle.calls)
        return state

    def _quasi_newton(
        self, dim: int, rng: np.random.Generator, memory: GradientMemory
    ) -> QuasiNewton:
        """The seam where a test sabotages the quasi-Newton member."""
        budget = plan(dim, self.max_memory)
        newton = QuasiNewton(dim, rng, memory, pairs=budget.pairs)
        newton.limited = newton.limited and budget.matrix
        return newton

    def step(self, oracle: CountedOracle, state: AutoState, request: Request) -> None:
        state.proved = state.midway = False
        rejected = state.rejected is not None
        if rejected:
            portfolio.refuted(state, oracle.calls)
            state.rejected = None
            # The same gradients would be offered again: shorter vectors give the judge room.
            less = LESS_EPS if state.dim >= MANY_VARIABLES else HALVED
            state.eps = min(state.eps, max(LEAST_EPS * request.eps, less * state.eps))
        if self._searches_structure(oracle, state, rejected):
            return
        if state.member == portfolio.NEWTON:
            line_search.prepare(state)
            try:
                state.newton.step(oracle)
            except OutOfCalls:
                line_search.cut_short(state.newton)
                line_search.adopt(state)
                raise
            line_search.ended(state)
        else:
            first = bundle_member.begin(state)
            drive(oracle, state, first, bundle_member.told, bundle_member.kinked)
        if state.proved:
            known = state.bundle.evidence(state.x, state.dim < MANY_VARIABLES)
            state.evidence = firm(oracle, known, state, state.refuted, request.seed, state.learn)
            if state.short_of_memory:
                state.bundle.release()
        portfolio.reschedule(state, oracle.calls)
        portfolio.look_back(state)
        if portfolio.stalled(state, oracle.calls):
            state.status = Status.STALLED

    def _searches_structure(self, oracle: CountedOracle, state: AutoState, rejected: bool) -> bool:
        """Let those that know the elements of a sum, or the coordinates, run."""
        partitioned = state.partitioned
        if partitioned is not None and partitioned.is_due(oracle.calls):
            partitioned.step(oracle, state)
            portfolio.look_back(state)
            return True
        if state.sides is not None:
            state.midway = True
            if state.sides.step(oracle, state):
                state.sides = None
            return True
        portfolio.stay(state, oracle.calls, rejected)
        if portfolio.is_due(state, oracle.calls):
            assert state.sweep is not None
            state.midway = True
            if state.sweep.step(oracle) and portfolio.ended(state, oracle.calls):
                state.sides = CoordinateSides(state.x, state.delta, state.sweep.rng)
            return True
        return False

    def best_evidence(self, state: AutoState) -> Evidence | None:
        portfolio.close_in(state)
        if state.bundle.size == 0:
            return None
        state.bundle.shortest()
        evidence = state.bundle.evidence(state.x)
        if state.dim >= MANY_VARIABLES:
            state.bundle.release()  # its judge needs the room
        return evidence

    def retarget(self, state: AutoState, eps: float, delta: float) -> bool:
        portfolio.retarget(state, eps, delta)
        if state.partitioned is not None:
            state.partitioned.again()
        return True

    def known(self, state: AutoState) -> tuple[Matrix, Matrix]:
        memory = state.memory
        count = min(memory.added, memory.capacity)
        return memory.points[:count], memory.gradients[:count]
