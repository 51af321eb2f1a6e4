"""A search for sums of elements: a bundle of every element, and a sparse model of all of them.

Luksan and Vlcek (Technical report 916, Prague 2005) gave every element a variable metric of its
own. Here every element has linear pieces of its own besides, so one evaluation of the sum teaches
the model as much as K evaluations would teach a bundle of the sum, and a few dozen of them find a
minimum with as many kinks as variables. In the end it places points on chosen sides of all kinks
(`kink_sides`) and leaves their gradients to the half with the guarantee, which has to prove it.
"""

from __future__ import annotations

import math
import time
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.numerics.element_model import ElementSystem
from goldstein.oracles import CountedOracle
from goldstein.oracles.separable import PartiallySeparable
from goldstein.solvers.element_bundle import ElementBundle
from goldstein.solvers.kink_sides import KinkSides
from goldstein.solvers.logic.centre import begin_afresh
from goldstein.solvers.logic.sweeps import leave_to_proof, take_in
from goldstein.solvers.side_expansion import HELP, SideExpansion

#: Pieces of an element, and with little memory.
PIECES, FEWEST = 6, 3

#: A step is taken if f falls by this part of what the model says; where it is as much as the second
#: number, the model is trusted farther.
ACCEPT, GOOD = 0.05, 0.5

#: The weight of |v|^2 grows by this after so many steps in a row that were not taken, and at once
#: by the last number where f rose by so many times what it should have fallen.
GROWTH, AFTER, BAD, FASTER = 2.0, 2, 10.0, 4.0

#: It falls by this, down to this part of the first one.
SHRINK, LEAST = 0.2, 1e-7

#: It has arrived when steps are this part of delta, and the combination of gradients this part of
#: eps; or when this many steps in a row have failed, or after so many in all.
NEAR, SHORT, FAILURES, MOST = 0.1, 0.5, 8, 100

#: Gradients are asked for this far from where values are, against the largest variable.
HAIR = 1e-13

#: Both sides of all kinks, a step, and so on: so many of these before the sides are weighed.
LOOKS = 8

#: How often all this is tried.
RUNS = 3

#: Calls of the others between two runs.
PAUSE = 500


class PartitionedSearch:
    """The memory of the search; one call of `step` is a trial, or one point beside the kinks.

    Attributes
    ----------
    active : it is its turn
    due : calls when the next run may begin
    runs : how many there have been
    """

    def __init__(
        self, terms: PartiallySeparable, system: ElementSystem, pieces: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self.terms, self.system, self.pieces, self.rng = terms, system, pieces, rng
        self.runs, self.due = 0, 0
        self._rest()

    @classmethod
    def of(
        cls, oracle: CountedOracle, max_memory: int, rng: np.random.Generator
    ) -> PartitionedSearch | None:
        """Return a search if the function is a sum of elements that it can deal with."""
        terms = oracle.plain
        if not isinstance(terms, PartiallySeparable):
            return None
        indices = np.ascontiguousarray(terms.indices.T)
        width, count = indices.shape
        # Pieces, their points and four temporaries of that size; blocks and their assembly.
        fixed = count * (4 * width * width + 10 * width) + 10 * (terms.dim or 0)
        each = count * (6 * width + 8)
        pieces = min(PIECES, int((max_memory / 8 - fixed) / each))
        if pieces < FEWEST:
            return None
        system = ElementSystem(indices, terms.dim or 0)
        return cls(terms, system, pieces, rng) if system.is_narrow else None

    def takes_turn(self, calls: int) -> bool:
        """Is it the turn of this search?"""
        return self.bundle is not None or (self.runs < RUNS and calls >= self.due)

    def step(self, oracle: CountedOracle, s: Any) -> None:
        """Make a trial, or prepare the proof."""
        self._deadline = oracle.deadline
        if self.bundle is None:
            self._begin(oracle, s)
        elif self._sides is None:
            self._trial(oracle, s)
        else:
            self._look(oracle, s)

    def again(self) -> None:
        """Another accuracy is asked for: a run from here is worth its calls."""
        self.runs, self.due = min(self.runs, RUNS - 1), 0

    def _rest(self) -> None:
        self.bundle: ElementBundle | None = None
        self._sides: KinkSides | None = None
        self._failures = self._steps = self._round = 0
        self._mu = self._least = 0.0
        self._plan: SideExpansion | None = None

    def _late(self) -> bool:
        return time.perf_counter() > self._deadline

    def _begin(self, oracle: CountedOracle, s: Any) -> None:
        self.runs += 1
        x = s.x.copy()
        gradient = self._gradient(oracle, x)
        values = self.terms.element_values(x)
        self.bundle = ElementBundle(self.system, self.pieces, x, values, gradient)
        steepest = float(np.abs(self.system.scatter(gradient)).max())
        self._mu = max(steepest, 1e-300) / max(1.0, float(np.abs(x).max()))
        self._least = LEAST * self._mu

    def _trial(self, oracle: CountedOracle, s: Any) -> None:
        bundle = self.bundle
        assert bundle is not None
        found, fall, combined = bundle.model(self._mu, self._late)
        length = float(np.linalg.norm(found.v))
        there = length <= NEAR * s.delta and float(np.linalg.norm(combined)) <= SHORT * s.eps
        self._steps += 1
        spent = self._failures > FAILURES or self._steps > MOST
        if there or spent or not 0.0 < fall < math.inf or not np.isfinite(found.v).all():
            self._prepare(oracle, s)
            return
        y = bundle.x + found.v
        value = oracle.trial_value(y)
        if value == math.inf:
            self._mu *= BAD
            self._failures += 1
            return
        values = self.terms.element_values(y)
        gain = bundle.value - value
        moves = gain >= ACCEPT * fall
        bundle.learn(y, values, self._gradient(oracle, y), moves)
        if moves:
            self._failures = 0
            self._adopt(s, value)
            if gain >= GOOD * fall:
                self._mu = max(self._least, SHRINK * self._mu)
            return
        self._failures += 1
        if gain < -BAD * fall:
            self._mu *= FASTER
        elif self._failures > AFTER:
            self._mu *= GROWTH

    def _prepare(self, oracle: CountedOracle, s: Any) -> None:
        """It has arrived, or come to an end: are there sides to choose?"""
        bundle = self.bundle
        assert bundle is not None
        sides = KinkSides(bundle, s.delta, self.rng)
        begin_afresh(s)
        if not sides.prepare(s.delta):
            self._end(oracle, s)
            return
        self._sides = sides
        self._round = 0

    def _look(self, oracle: CountedOracle, s: Any) -> None:
        """Look at all sides of all kinks, weigh them, then place the points of the proof."""
        sides = self._sides
        assert sides is not None
        if self._round < LOOKS:
            if self._round % 3 == 2:
                self._improve(oracle, s)
            else:
                self._visit(oracle)
            sides.prepare(s.delta)
            self._round += 1
            if self._round == LOOKS and not self._weigh(s):
                self._end(oracle, s)
            return
        assert self._plan is not None
        y = sides.point(self._plan.second())
        take_in(s, y, oracle.gradient(y))
        self._plan.told(sides.told(self.terms.element_gradients(y).T))
        if self._plan.is_over:
            self._end(oracle, s)

    def _visit(self, oracle: CountedOracle) -> None:
        """Go to one side of every kink, chosen at random, or to the other one."""
        sides = self._sides
        assert sides is not None
        if self._round % 3 == 0:
            self._pattern = self.rng.random(len(sides.kinked)) < 0.5
        else:
            self._pattern = ~self._pattern
        y = sides.point(self._pattern)
        if oracle.trial_value(y) < math.inf:
            values = self.terms.element_values(y)
            sides.learn(y, values, self._gradient(oracle, y))

    def _improve(self, oracle: CountedOracle, s: Any) -> None:
        """Step to the minimum of the model made of the sides, if f is lower there."""
        sides = self._sides
        assert sides is not None
        assert self.bundle is not None
        y = self.bundle.x + sides.better(self._mu, self._late)
        value = oracle.trial_value(y)
        if value < self.bundle.value:
            sides.move(y, self.terms.element_values(y))
            self._adopt(s, value)
            begin_afresh(s)

    def _weigh(self, s: Any) -> bool:
        """Choose the weights of the points, if they are of use."""
        sides = self._sides
        assert sides is not None
        if sides.weigh(self._late) > HELP * s.eps:
            return False
        jumps = sides.slopes[1] - sides.slopes[0]
        size = float(np.linalg.norm(jumps[:, sides.kinked]))
        self._plan = SideExpansion(sides.share, size, s.eps, s.most_gradients)
        return True

    def _adopt(self, s: Any, value: float) -> None:
        assert self.bundle is not None
        if value < s.fx:
            s.x, s.fx = self.bundle.x.copy(), value
            s.steps += 1
            s.moved = True

    def _end(self, oracle: CountedOracle, s: Any) -> None:
        """Leave the rest to the half with the guarantee."""
        self._rest()
        leave_to_proof(s, oracle.calls, HELP * s.eps)
        self.due = oracle.calls + PAUSE
        if s.sweep is not None:
            s.sweep.due = max(s.sweep.due, self.due)

    def _gradient(self, oracle: CountedOracle, y: Vector) -> Any:
        """Ask for the gradient, a hair beside y; return those of the elements."""
        hair = HAIR * max(1.0, float(np.abs(y).max()))
        beside = y + hair * self.rng.standard_normal(y.size)
        oracle.gradient(beside)
        return np.ascontiguousarray(self.terms.element_gradients(beside).T)
