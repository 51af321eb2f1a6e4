"""What is known of the elements of a sum: linear pieces of each one, and its curvature.

Points on chosen sides of the kinks of many elements at once.

Close to a minimum of a sum of many elements, every element has a kink of its own next to x, and a
share of the weight that its second side must get for the gradients to cancel; `side_expansion`
says which sides a few points must lie on for that, and here they are placed there.

A search for sums of elements: a bundle of every element, and a sparse model of all of them.

Luksan and Vlcek (Technical report 916, Prague 2005) gave every element a variable metric of its
own. Here every element has linear pieces of its own besides, so one evaluation of the sum teaches
the model as much as K evaluations would teach a bundle of the sum, and a few dozen of them find a
minimum with as many kinks as variables. In the end it places points on chosen sides of all kinks
(`kink_sides`) and leaves their gradients to the bundle member, which has to prove it.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.numerics.element_model import (
    FINE,
    ROUGH,
    Cube,
    ElementSystem,
    InteriorPoint,
    Mask,
    along,
    combined,
    minimise_elements,
)
from goldstein.oracles import CountedOracle
from goldstein.oracles.separable import PartiallySeparable
from goldstein.solvers.gather import HELP, SideExpansion, longest_together
from goldstein.solvers.logic.portfolio import begin_afresh, leave_to_proof, take_in

#: A piece that lies above its element, which is then not convex, counts by this times the squared
#: distance of its point, at least.
LOCALITY = 0.5

#: A change of slope over the step, against what is known of the curvature, that must be a kink.
JUMP = 10.0

#: Curvature falls by no more than this factor at once.
FLAT = 1e-2

#: Steps below this part of the largest variable say nothing about curvature where none is known.
TINY = 1e-3


class ElementBundle:
    """Linear pieces of every element around x, all elements at once; elements come last.

    Attributes
    ----------
    x, values : the point, and the values of the elements there
    levels, slopes, points : (p, K), (p, m, K), (p, m, K): the pieces, at x, and where they are from
    used : (p, K), bool
    weights : (p, K): multipliers of the last model
    curvature : (m, m, K)
    """

    def __init__(
        self, system: ElementSystem, pieces: int, x: Vector, values: Vector, gradients: Matrix
    ) -> None:
        self.system = system
        width, count = gradients.shape
        self.x, self.values = x, values
        self.levels: Matrix = np.zeros((pieces, count))
        self.slopes: Cube = np.zeros((pieces, width, count))
        self.points: Cube = np.zeros((pieces, width, count))
        self.used: Mask = np.zeros((pieces, count), dtype=bool)
        self.weights: Matrix = np.zeros((pieces, count))
        self.curvature: Cube = np.zeros((width, width, count))
        self._bent: Mask = np.zeros(count, dtype=bool)
        self._all: Indices = np.arange(count)
        # The piece that belongs to x must not go while x stays.
        self._home: Indices = np.zeros(count, dtype=np.intp)
        self._put(self._home, values, gradients, system.gather(x))

    @property
    def value(self) -> float:
        return float(self.values.sum())

    def model(
        self, mu: float, late: Callable[[], bool] = lambda: False
    ) -> tuple[InteriorPoint, float, Vector]:
        """Minimise the model; return the fall it predicts and the gradient it ends with, too."""
        errors = self.values - self.levels
        far = LOCALITY * squares(self.points - self.system.gather(self.x))
        errors = np.where(errors < 0.0, np.maximum(-errors, far), errors)
        found = minimise_elements(
            self.system, self.values - errors, self.slopes, self.used, self.curvature, mu, ROUGH,
            late,
        )  # fmt: skip
        self.weights = found.weights
        step = self.system.gather(found.v)
        bent = float(np.vdot(step, along(self.curvature, step)))
        quadratic = 0.5 * (mu * float(found.v @ found.v) + bent)
        fall = float((self.values - found.tops).sum()) - quadratic
        return found, fall, self.system.scatter(combined(self.slopes, found.weights))

    def learn(self, y: Vector, values: Vector, gradients: Matrix, moves: bool) -> None:
        """Take the elements at y in; x moves there, or stays."""
        own = self.system.gather(y)
        offset = self.system.gather(y - self.x)
        self._learn_curvature(own, gradients)
        # The piece that goes is the most similar one: both sides of a kink stay.
        unlike = np.where(self.used, squares(gradients - self.slopes), -1.0)
        slot = unlike.argmin(axis=0)
        if moves:
            self.levels += along(self.slopes, offset)
            self.x, self.values = y, values
            level = values
            self._home = slot
        else:
            # Where that is the one of x itself, the lowest goes.
            heights = self.levels.copy()
            heights[self._home, self._all] = np.inf
            slot = np.where(slot == self._home, heights.argmin(axis=0), slot)
            level = values - (gradients * offset).sum(axis=0)
        self._put(slot, level, gradients, own)

    def _put(self, slot: Indices, level: Vector, gradients: Matrix, own: Matrix) -> None:
        self.levels[slot, self._all] = level
        self.slopes[slot, :, self._all] = gradients.T
        self.points[slot, :, self._all] = own.T
        self.used[slot, self._all] = True

    def _learn_curvature(self, own: Matrix, gradients: Matrix) -> None:
        """BFGS, element by element, between points on the same side of its kinks.

        Among the pieces it is the one whose slope differs least, for its distance, from the new.
        """
        lengths = squares(own - self.points)
        known = self.used & (lengths > 0.0)
        rates = squares(gradients - self.slopes) / np.where(known, lengths, 1.0)
        slot = np.where(known, rates, np.inf).argmin(axis=0)
        place = slot, self._all
        y = gradients - self.slopes[slot, :, self._all].T
        s = own - self.points[slot, :, self._all].T
        rate, square = rates[place], lengths[place]
        sy = (s * y).sum(axis=0)
        sizes = np.sqrt((self.curvature * self.curvature).sum(axis=(0, 1)))
        usual = float(np.median(sizes[self._bent])) if self._bent.any() else 0.0
        limit = (JUMP * np.maximum(sizes, usual)) ** 2
        shortest = (TINY * max(1.0, float(np.abs(self.x).max()))) ** 2
        plausible = np.where(self._bent, rate <= limit, square >= shortest)
        # Flat or bent downwards, on the same side: then what seemed curvature was a kink.
        flat = self._bent & (sy < FLAT * sizes * square)
        y = np.where(flat, FLAT * sizes * s, y)
        sy = np.where(flat, FLAT * sizes * square, sy)
        good = known[place] & (sy > 1e-12 * square) & plausible
        first = good & ~self._bent
        scale = (y * y).sum(axis=0)[first] / sy[first]
        self.curvature[:, :, first] = np.eye(len(y))[:, :, None] * scale
        self._bent |= first
        image = along(self.curvature, s)
        bend = (s * image).sum(axis=0)
        good &= bend > 1e-12 * square
        y, image, sy, bend = y[:, good], image[:, good], sy[good], bend[good]
        self.curvature[:, :, good] += y[:, None] * y / sy - image[:, None] * image / bend


def squares(vectors: Cube) -> Matrix:
    """Return squared lengths, element by element: (p, m, K) to (p, K)."""
    answer: Matrix = np.einsum("...mk,...mk->...k", vectors, vectors)
    return answer


#: Slopes that differ by less than this times what the curvature explains need not be those of a
#: kink; they are, if next to x there is this part of the difference.
CURVED, SEEN = 5.0, 0.1

#: A piece is from the other side of a kink if its slope is this part, at least, as far from the
#: first as that of any.
ACROSS = 0.5

#: Two slopes closer than this, against the longer of them, are the same.
SAME = 1e-6

#: The points lie this part of delta from x, about: curvature must not be felt.
REACH = 0.02

#: And kinks farther than this part of delta, all together, are out of reach.
FARTHEST = 0.3

#: Added to the diagonal of the system of kinks, whose rows have length 1.
RIDGE = 1e-10


class KinkSides:
    """Two sides of every element next to x, and points on the ones that are wanted.

    Attributes
    ----------
    kinked : (K,), bool: elements with two sides that matter
    share : (K,): weight that the second side must get, after `weigh`
    """

    def __init__(self, bundle: ElementBundle, delta: float, rng: np.random.Generator) -> None:
        self.bundle, self.rng = bundle, rng
        used = bundle.used
        everyone = np.arange(used.shape[1])
        weights = np.where(used, bundle.weights, 0.0)
        first = weights.argmax(axis=0)
        away = squares(bundle.slopes - bundle.slopes[first, :, everyone].T)
        away = np.where(used, away, 0.0)
        # Where the piece would meet the first one.
        apart = away > (SAME**2 * squares(bundle.slopes)).max(axis=0)
        gaps = np.abs(bundle.levels - bundle.levels[first, everyone])
        far = np.where(apart, gaps / np.sqrt(np.where(apart, away, 1.0)), np.inf)
        close = far <= longest_together(far.min(axis=0), delta)
        away = np.where(close, away, 0.0)
        across = close & (away >= ACROSS**2 * away.max(axis=0))
        second = np.where(across, weights, -1.0).argmax(axis=0)
        self.kinked: Mask = across.any(axis=0)
        back = squares(bundle.slopes - bundle.slopes[second, :, everyone].T)
        near_second = back < squares(bundle.slopes - bundle.slopes[first, :, everyone].T)
        away_from_x = squares(bundle.points - bundle.system.gather(bundle.x))
        self.levels: list[Vector] = []
        self.slopes: list[Matrix] = []
        for there in (used & ~near_second, used & near_second):
            nearest = np.where(there, away_from_x, np.inf).argmin(axis=0)
            self.levels.append(bundle.levels[nearest, everyone])
            self.slopes.append(bundle.slopes[nearest, :, everyone].T)
        # Where curvature may be all there is to the two sides: to be decided next to x.
        bend = (bundle.curvature * bundle.curvature).sum(axis=(0, 1))
        offset = bundle.points[first, :, everyone] - bundle.points[second, :, everyone]
        self._curved: Mask = away[second, everyone] <= CURVED**2 * bend * squares(offset.T)
        self._before: Matrix | None = None

    def prepare(self, delta: float) -> bool:
        """Find out how far the kinks are; return whether points on all sides are close enough."""
        normal = self.slopes[1] - self.slopes[0]
        self._length = np.where(self.kinked, np.sqrt(squares(normal)), 1.0)
        self._normal = np.where(self.kinked, normal / self._length, 0.0)
        solve = self.bundle.system.factorise(self._normal[:, None] * self._normal, RIDGE)
        if solve is None or not self.kinked.any():
            return False
        self._solve: Callable[[Vector], Vector] = solve
        self._reach = REACH * delta
        gap = (self.levels[1] - self.levels[0]) / self._length
        if float(np.linalg.norm(self._step(-gap))) <= FARTHEST * delta:
            return True
        # One that is no kink asks for a long step to where its pieces would meet.
        doubtful = self.kinked & self._curved
        self.kinked &= ~doubtful
        return bool(doubtful.any()) and self.prepare(delta)

    def point(self, second: Mask) -> Vector:
        """Return a random point where these elements are on their second side, others not."""
        gap = (self.levels[1] - self.levels[0]) / self._length
        height = self.rng.uniform(0.7, 1.3, len(second))
        away = self._step(np.where(second, height, -height))
        away *= self._reach / max(float(np.linalg.norm(away)), 1e-300)
        return self.bundle.x + self._step(-gap) + away

    def told(self, gradients: Matrix) -> Mask:
        """Return which elements have these gradients from their second side."""
        there: Mask = squares(gradients - self.slopes[1]) < squares(gradients - self.slopes[0])
        return there & self.kinked

    def learn(self, y: Vector, values: Vector, gradients: Matrix) -> None:
        """Take the sides that were met at y, next to x, for what they are there."""
        there = self.told(gradients)
        self._sort_out(gradients)
        offset = self.bundle.system.gather(y - self.bundle.x)
        level = values - (gradients * offset).sum(axis=0)
        for side, met in enumerate((~there, there)):
            self.levels[side] = np.where(met, level, self.levels[side])
            self.slopes[side] = np.where(met, gradients, self.slopes[side])

    def _sort_out(self, gradients: Matrix) -> None:
        """After a visit to each side: was there a jump, next to x, or was it curvature?"""
        if self._before is None:
            self._before = gradients
            return
        jump = squares(self.slopes[1] - self.slopes[0])
        smooth = squares(gradients - self._before) < SEEN**2 * jump
        self.kinked &= ~(self._curved & smooth)
        self._before = None

    def better(self, mu: float, late: Callable[[], bool]) -> Vector:
        """Return the step to the minimum of the model made of these sides."""
        levels = np.minimum(np.stack(self.levels), self.bundle.values)
        return self._minimum(levels, self.bundle.curvature, mu, late).v

    def weigh(self, late: Callable[[], bool]) -> float:
        """Find the shares with which the slopes cancel best; return how long what is left is."""
        flat = np.zeros_like(self.bundle.curvature)
        found = self._minimum(np.zeros((2, self.kinked.size)), flat, 1.0, late)
        self.share = np.where(self.kinked, found.weights[1].clip(0.0, 1.0), 0.0)
        left = self.slopes[0] + self.share * (self.slopes[1] - self.slopes[0])
        return float(np.linalg.norm(self.bundle.system.scatter(left)))

    def _minimum(
        self, levels: Matrix, curvature: Cube, mu: float, late: Callable[[], bool]
    ) -> InteriorPoint:
        used = np.stack([np.ones_like(self.kinked), self.kinked])
        slopes = np.stack(self.slopes)
        return minimise_elements(
            self.bundle.system, levels, slopes, used, curvature, mu, FINE, late
        )

    def move(self, y: Vector, values: Vector) -> None:
        """Let x be y."""
        offset = self.bundle.system.gather(y - self.bundle.x)
        for side in range(2):
            self.levels[side] = self.levels[side] + (self.slopes[side] * offset).sum(axis=0)
        self.bundle.x, self.bundle.values = y, values

    def _step(self, heights: Vector) -> Vector:
        """Return the shortest step that rises so far above the kinks."""
        return self._solve(self.bundle.system.scatter(self._normal * heights))


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
PERTURBATION = 1e-13

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
    active : it runs
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
        cls, terms: PartiallySeparable, max_memory: int, rng: np.random.Generator
    ) -> PartitionedSearch | None:
        """Return a search if it can deal with this sum of elements."""
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

    def is_due(self, calls: int) -> bool:
        """Is this search due?"""
        return self.bundle is not None or (self.runs < RUNS and calls >= self.due)

    def step(self, oracle: CountedOracle, s: Any) -> None:
        """Make a trial, or prepare the proof."""
        self._deadline = oracle.deadline
        if self.bundle is None:
            self._begin(oracle, s)
        elif self._sides is None:
            self._trial(oracle, s, self.bundle)
        else:
            self._look(oracle, s, self._sides)

    def again(self) -> None:
        """Another accuracy is asked for: a run from here is worth its calls."""
        self.runs, self.due = min(self.runs, RUNS - 1), 0

    def _rest(self) -> None:
        self.bundle: ElementBundle | None = None
        self._sides: KinkSides | None = None
        self._failures = self._steps = self._round = 0
        self._mu = self._least = 0.0
        self._pattern: Mask = np.zeros(0, dtype=bool)
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

    def _trial(self, oracle: CountedOracle, s: Any, bundle: ElementBundle) -> None:
        found, fall, combined = bundle.model(self._mu, self._late)
        length = float(np.linalg.norm(found.v))
        there = length <= NEAR * s.delta and float(np.linalg.norm(combined)) <= SHORT * s.eps
        self._steps += 1
        spent = self._failures > FAILURES or self._steps > MOST
        if there or spent or not 0.0 < fall < math.inf or not np.isfinite(found.v).all():
            self._prepare(oracle, s, bundle)
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
            self._adopt(s, y, value)
            if gain >= GOOD * fall:
                self._mu = max(self._least, SHRINK * self._mu)
            return
        self._failures += 1
        if gain < -BAD * fall:
            self._mu *= FASTER
        elif self._failures > AFTER:
            self._mu *= GROWTH

    def _prepare(self, oracle: CountedOracle, s: Any, bundle: ElementBundle) -> None:
        """It has arrived, or come to an end: are there sides to choose?"""
        sides = KinkSides(bundle, s.delta, self.rng)
        begin_afresh(s)
        if not sides.prepare(s.delta):
            self._end(oracle, s)
            return
        self._sides, self._round = sides, 0

    def _look(self, oracle: CountedOracle, s: Any, sides: KinkSides) -> None:
        """Look at all sides of all kinks, weigh them, then place the points of the proof."""
        if self._plan is None:
            if self._round % 3 == 2:
                self._improve(oracle, s, sides)
            else:
                self._visit(oracle, sides)
            sides.prepare(s.delta)
            self._round += 1
            if self._round == LOOKS:
                self._weigh(oracle, s, sides)
            return
        y = sides.point(self._plan.second())
        take_in(s, y, oracle.gradient(y))
        self._plan.told(sides.told(self.terms.element_gradients(y).T))
        if self._plan.is_over:
            self._end(oracle, s)

    def _visit(self, oracle: CountedOracle, sides: KinkSides) -> None:
        """Go to one side of every kink, chosen at random, or to the other one."""
        again = self._round % 3
        self._pattern = ~self._pattern if again else self.rng.random(len(sides.kinked)) < 0.5
        y = sides.point(self._pattern)
        if oracle.trial_value(y) < math.inf:
            values = self.terms.element_values(y)
            sides.learn(y, values, self._gradient(oracle, y))

    def _improve(self, oracle: CountedOracle, s: Any, sides: KinkSides) -> None:
        """Step to the minimum of the model made of the sides, if f is lower there."""
        y = sides.bundle.x + sides.better(self._mu, self._late)
        value = oracle.trial_value(y)
        if value < sides.bundle.value:
            sides.move(y, self.terms.element_values(y))
            self._adopt(s, y, value)
            begin_afresh(s)

    @staticmethod
    def _adopt(s: Any, y: Vector, value: float) -> None:
        if value < s.fx:
            s.x, s.fx = y.copy(), value
            s.steps += 1
            s.moved = True

    def _weigh(self, oracle: CountedOracle, s: Any, sides: KinkSides) -> None:
        """Choose the weights of the points, if they are of use."""
        if sides.weigh(self._late) > HELP * s.eps:
            self._end(oracle, s)
            return
        jumps = sides.slopes[1] - sides.slopes[0]
        size = float(np.linalg.norm(jumps[:, sides.kinked]))
        self._plan = SideExpansion(sides.share, size, s.eps, s.most_gradients)

    def _end(self, oracle: CountedOracle, s: Any) -> None:
        """Leave the rest to the bundle member."""
        self._rest()
        leave_to_proof(s, oracle.calls, HELP * s.eps)
        self.due = oracle.calls + PAUSE
        if s.sweep is not None:
            s.sweep.due = max(s.sweep.due, self.due)

    def _gradient(self, oracle: CountedOracle, y: Vector) -> Any:
        """Ask for the gradient, at a perturbed point next to y; return those of the elements."""
        radius = PERTURBATION * max(1.0, float(np.abs(y).max()))
        perturbed = y + radius * self.rng.standard_normal(y.size)
        oracle.gradient(perturbed)
        return np.ascontiguousarray(self.terms.element_gradients(perturbed).T)
