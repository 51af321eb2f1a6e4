"""Shor's r-algorithm: subgradient steps in a space that is dilated along differences of gradients.

N. Z. Shor, Minimization Methods for Non-Differentiable Functions, Springer 1985; the step rule is
that of the program ralgb5 (Stetsyuk, Theory and Software Implementations of Shor's r-Algorithms,
Cybernetics and Systems Analysis 53, 2017): along one direction as long as f falls, the step growing
with every third one, and shrinking where the first was too long. After a line search the space is
dilated along the difference of the two gradients at its ends, so that the next direction is more
nearly along the kink between them. There is no proof that it ends well, and it usually does.
"""

import math
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.errors import InputError
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.result import Status
from goldstein.solvers.base import Evidence, Request, Solver, State, gradient_of, value_of
from goldstein.solvers.gather import Enrichment, enrich
from goldstein.solvers.logic.portfolio import INSIDE
from goldstein.solvers.logic.questions import TRIAL
from goldstein.solvers.memory import GradientMemory

#: The step grows by this factor with every third step of a line search, and shrinks by the second
#: where the first step was the last.
LONGER, EVERY, SHORTER = 1.1, 3, 0.95

#: Steps of a line search at most: f seems to be unbounded.
MOST_STEPS = 200

#: A search whose steps are shorter than this part of x has ended.
SHORTEST = 1e-13

#: How far aside of a kink a gradient is asked for, by turns, in parts of the point.
ASIDE = tuple(10.0**k for k in range(-12, -2))

#: Where steps are this short against delta, gradients around x are gathered for a proof.
CLOSE = 1e-3


class SpaceDilation:
    """The search itself; one call of `step` is one line search.

    Attributes
    ----------
    x, fx : the best point so far, and f there
    length : how far the last line search went
    ended : steps have become too short for float64
    """

    def __init__(
        self, x: Vector, fx: float, first: float, dilation: float, rng: np.random.Generator
    ) -> None:
        self.x, self.fx = x.copy(), fx
        self.length, self.ended = math.inf, False
        self._at: Vector = self.x
        self._g: Vector | None = None
        self._size, self._dilation, self._rng = first, dilation, rng
        self._space: Matrix = np.eye(x.size)

    def step(self, oracle: CountedOracle, memory: GradientMemory) -> None:
        """Make one line search, and dilate the space."""
        if self._g is None:
            self._g = self._gradient(oracle, memory)
        if self._g is None:
            self.ended = True
            return
        before: Vector = self._g
        g, steepest = before, before @ self._space
        norm = math.sqrt(steepest @ steepest)
        if not norm > 0.0:
            self.ended = True
            return
        along = self._space @ (steepest / norm)
        start, falls = self._at, 0
        for falls in range(1, MOST_STEPS + 1):
            here, self._at = self._at, self._at - self._size * along
            value = value_of(oracle, self._at, TRIAL)
            found = None if value == math.inf else self._gradient(oracle, memory)
            if found is None:  # too far: f, or its gradient, is not defined there
                self._at, self._size = here, 0.25 * self._size
                break
            if value < self.fx:
                self.x, self.fx = self._at, value
            g = self._g = found
            if falls % EVERY == 0:
                self._size *= LONGER
            if not along @ g > 0.0:
                break
        self._size *= SHORTER if falls == 1 else 1.0
        gap = self._at - start
        self.length = math.sqrt(gap @ gap)
        smallest = SHORTEST * max(1.0, float(np.abs(self._at).max()))
        self.ended = self._size * math.sqrt(along @ along) <= smallest
        self._dilate(g - before)

    def _dilate(self, change: Vector) -> None:
        seen = change @ self._space
        norm = math.sqrt(seen @ seen)
        if norm > 0.0:
            seen /= norm
            image = (1.0 / self._dilation - 1.0) * (self._space @ seen)
            self._space += np.outer(image, seen)

    def _gradient(self, oracle: CountedOracle, memory: GradientMemory) -> Vector | None:
        """Return the gradient where the search is, or a little aside of a kink."""
        y, size = self._at, max(1.0, float(np.abs(self._at).max()))
        for aside in ASIDE:
            if (found := gradient_of(oracle, y)) is not None:
                memory.add(y, found, perturbed=y is not self._at)
                return found
            y = self._at + aside * size * self._rng.standard_normal(y.size)
        return None


@dataclass
class RAlgState(State):
    """The search, and all gradients that may prove something."""

    search: SpaceDilation = field(kw_only=True)
    memory: GradientMemory = field(kw_only=True)
    tries: int = 0


@dataclass(kw_only=True, eq=False)
class RAlgorithm(Solver):
    """Shor's r-algorithm, and a proof where it ends.

    Strong on functions of up to some hundred variables whose kinks meet at sharp angles; `auto`
    tries it where its own searches have come to an end. It has no guarantee.

    Parameters
    ----------
    dilation : float
        Space is dilated by this factor after each line search; 2 to 4 are usual.
    first_step : float, optional
        Length of the first step; default the largest entry of the start, at least 1.

    Examples
    --------
    >>> import goldstein as gs
    >>> problem = gs.problems.get("maxquad")
    >>> res = gs.minimize(problem, problem.x0, eps=1e-3, delta=1e-3, method="ralg", rng=0)
    >>> res.success
    True
    """

    dilation: float = 2.0
    first_step: float | None = None

    name = "ralg"

    def __post_init__(self) -> None:
        dilation, first = self.dilation, self.first_step
        if not 1.0 < dilation < math.inf:
            raise InputError(f"dilation must be a finite number above 1, got {dilation!r}.")
        if first is not None and not 0.0 < first < math.inf:
            raise InputError(f"first_step must be a positive number or None, got {first!r}.")

    def start(self, oracle: CountedOracle, x0: Vector, request: Request) -> RAlgState:
        fx = oracle.value(x0)
        memory = GradientMemory(x0.size, 4 * min(x0.size, 200) + 100, request.lipschitz)
        return RAlgState(x0.copy(), fx, search=self._search(x0, fx, request, 0), memory=memory)

    def _search(self, x: Vector, fx: float, request: Request, tries: int) -> SpaceDilation:
        first = self.first_step or max(1.0, float(np.abs(x).max()))
        rng = stream(request.seed, tries, self.name)
        return SpaceDilation(x, fx, first * 0.01**tries, self.dilation, rng)

    def step(self, oracle: CountedOracle, state: RAlgState, request: Request) -> None:
        search, memory = state.search, state.memory
        if state.rejected is not None:
            for y, g in zip(*state.rejected):
                memory.add(y, g, perturbed=True)
            state.rejected = None
        search.step(oracle, memory)
        if search.fx < state.fx:
            state.x, state.fx = search.x, search.fx
            state.moved, state.steps = True, state.steps + 1
        if search.length > request.delta and not search.ended:
            return
        near = memory.near(state.x, INSIDE * request.delta)
        done = search.ended or search.length <= CLOSE * request.delta
        self._prove(memory.points[near], memory.gradients[near], memory.perturbed[near], state)
        if state.bound <= request.eps or not done:
            state.radius = request.delta
            state.evidence = state.evidence if state.bound <= request.eps else None
            return
        self._close_in(oracle, state, request)

    def _close_in(self, oracle: CountedOracle, state: RAlgState, request: Request) -> None:
        """The search has ended: gather gradients around its point, and begin again there."""
        state.tries += 1
        found, x = Enrichment(), state.x
        for row in state.memory.near(x, INSIDE * request.delta):
            found.points.append(state.memory.points[row].copy())
            found.gradients.append(state.memory.gradients[row].copy())
        seen = len(found.points)
        enrich(
            oracle, x, replace(request, seed=request.seed + state.tries), found,
            patience=x.size + 20,
        )  # fmt: skip
        for y, g in zip(found.points[seen:], found.gradients[seen:]):
            state.memory.add(y, g, perturbed=True)
        if found.points:
            safe = np.arange(len(found.points)) >= seen
            self._prove(found.points, found.gradients, safe, state)
        if not state.bound <= request.eps:
            state.evidence = None
            if found.descent is None and state.tries > 5:
                state.status = Status.STALLED
        state.search = self._search(x, state.fx, request, state.tries)

    def _prove(self, points: Any, gradients: Any, safe: Mask, state: RAlgState) -> None:
        """Let the shortest vector of the hull of these gradients be the evidence."""
        if len(points):
            state.evidence = Evidence.of(state.x, points, gradients, safe)
            state.bound = state.evidence.length()

    def best_evidence(self, state: RAlgState) -> Evidence | None:
        return state.evidence
