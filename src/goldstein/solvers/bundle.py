"""Bundle-PINGD: Algorithm 1 with the shortest vector of the hull instead of an average."""

from __future__ import annotations

from dataclasses import dataclass

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import Evidence, Request
from goldstein.solvers.line import check_line
from goldstein.solvers.pingd import RoundSolver, RoundState
from goldstein.solvers.point_bundle import PointBundle
from goldstein.solvers.schedules import CHEAP_ROUND_FAILURE


@dataclass(kw_only=True, slots=True)
class BundleState(RoundState):
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


class BundlePINGD(RoundSolver):
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
    line : {"random", "bisection", "hybrid"}
        Where to look after a failed step. The guarantee holds for `random` (Algorithm 1) and
        `hybrid`; `bisection` alone has it for weakly convex and for smooth functions.
    """

    name = "bundle"
    # The hull stays valid whatever L is: a raised L changes only the next trial step.
    _restart_when_raised = False

    def __init__(
        self,
        *,
        lipschitz: float | None = None,
        gamma: float = 0.01,
        gap: float | None = None,
        round_failure: float = CHEAP_ROUND_FAILURE,
        expand: bool = True,
        capacity: int | None = None,
        line: str = "random",
    ) -> None:
        super().__init__(lipschitz=lipschitz, gamma=gamma, gap=gap, round_failure=round_failure)
        if capacity is not None and capacity < 3:
            raise InputError(f"capacity must be at least 3, got {capacity}.")
        self.expand = expand
        self.capacity = capacity
        self.line = check_line(line)

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> BundleState:
        # Room for the d + 1 rows that can matter, and for as many new ones before tidying up.
        capacity = self.capacity or min(2 * x0.size + 20, 200)
        bundle = PointBundle(x0.size, capacity)
        state = BundleState(x=x0.copy(), fx=oracle.value(x0), bundle=bundle)
        return self._started(state, request)
