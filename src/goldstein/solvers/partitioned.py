"""A search for sums of elements: a bundle of every element, and a sparse model of all of them.

Luksan and Vlcek (Technical report 916, Prague 2005) gave every element a variable metric of its
own. Here every element has linear pieces of its own besides, each with its curvature, so one
evaluation of the sum teaches the model as much as K evaluations would teach a bundle of the sum,
and some dozens of them find a minimum with as many kinks as variables.

Close to it every element with a kink next to x has multipliers: the shares of the weight that its
sides must get for the gradients to cancel. In the end points are placed on chosen sides of all
kinks at once, and their gradients are left to the bundle member, which has to prove it.
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
from goldstein.solvers.gather import HELP, MISSING, POINTS, RATIO, expansion, longest_together
from goldstein.solvers.logic.portfolio import begin_afresh, leave_to_proof, take_in

#: A piece that lies above its element, which is then not convex, counts by this times the squared
#: distance of its point, at least.
LOCALITY = 0.5

#: A change of slope over the step, against what is known of the curvature, that must be a kink.
JUMP = 10.0

#: A step says nothing about curvature where it is nearly orthogonal to what is not known yet.
UNCLEAR = 0.1

#: Values are the integral of the mean of two slopes up to this part, or there was a kink.
UNEVEN, ROUNDING = 0.01, 1e-15

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
    curvatures : (p, m, m, K): of every piece, as far as it is known
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
        self.curvatures: Cube = np.zeros((pieces, width, width, count))
        self._bent: Mask = np.zeros((pieces, count), dtype=bool)
        self._all: Indices = np.arange(count)
        # The piece that belongs to x must not go while x stays.
        self._home: Indices = np.zeros(count, dtype=np.intp)
        self._put(self._home, values, gradients, system.gather(x))

    @property
    def curvature(self) -> Cube:
        """(m, m, K): that of all pieces, with the multipliers of the last model."""
        return np.einsum("pk,pmnk->mnk", self.weights, self.curvatures)

    def curvatures_of(self, place: tuple[Indices, Indices]) -> Cube:
        """(m, m, K): those of one piece of every element."""
        slot, element = place
        return self.curvatures[slot, :, :, element].transpose(1, 2, 0)

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
        curvature = self.curvature
        found = minimise_elements(
            self.system, self.values - errors, self.slopes, self.used, curvature, mu, ROUGH, late
        )
        self.weights = np.where(self.used, found.weights, 0.0)
        step = self.system.gather(found.v)
        bent = float(np.vdot(step, along(curvature, step)))
        quadratic = 0.5 * (mu * float(found.v @ found.v) + bent)
        fall = float((self.values - found.tops).sum()) - quadratic
        return found, fall, self.system.scatter(combined(self.slopes, found.weights))

    def learn(self, y: Vector, values: Vector, gradients: Matrix, moves: bool) -> None:
        """Take the elements at y in; x moves there, or stays."""
        own = self.system.gather(y)
        offset = self.system.gather(y - self.x)
        bent, curvature = self._learn_curvature(own, offset, values, gradients)
        # The piece that goes is the most similar one: both sides of a kink stay.
        unlike = np.where(self.used, squares(gradients - self.slopes), -1.0)
        if moves:
            slot = unlike.argmin(axis=0)
            self.levels += along(self.slopes, offset)
            self.x, self.values = y, values
            level = values
            self._home = slot
        else:
            # The one of x itself stays, and another one like it is nothing new.
            twin = unlike[self._home, self._all] <= TWIN**2 * squares(gradients)
            unlike[self._home, self._all] = np.where(twin, -2.0, np.inf)
            slot = unlike.argmin(axis=0)
            own = np.where(twin, self.system.gather(self.x), own)
            level = np.where(twin, self.values, values - (gradients * offset).sum(axis=0))
        self._put(slot, level, gradients, own)
        self._bent[slot, self._all] = bent
        self.curvatures[slot, :, :, self._all] = curvature.transpose(2, 0, 1)

    def _put(self, slot: Indices, level: Vector, gradients: Matrix, own: Matrix) -> None:
        self.levels[slot, self._all] = level
        self.slopes[slot, :, self._all] = gradients.T
        self.points[slot, :, self._all] = own.T
        self.used[slot, self._all] = True

    def _learn_curvature(
        self, own: Matrix, offset: Matrix, values: Vector, gradients: Matrix
    ) -> tuple[Mask, Cube]:
        """Symmetric rank one, between points on the same side of the kinks of an element.

        Among such pieces it is the one whose slope differs least, for its distance, from the new.
        Returns the curvature of the new piece, and whether anything is known of it.
        """
        lengths = squares(own - self.points)
        # On one side of the kinks a value follows the mean of both slopes.
        above = values - self.levels - along(self.slopes, offset)
        slope = np.einsum("pmk,pmk->pk", own - self.points, gradients - self.slopes)
        even = np.abs(above - 0.5 * slope) <= UNEVEN * np.abs(slope) + ROUNDING * np.abs(values)
        rates = squares(gradients - self.slopes) / np.where(lengths > 0.0, lengths, 1.0)
        rates = np.where(self.used & (lengths > 0.0) & even, rates, np.inf)
        slot = rates.argmin(axis=0)
        place = slot, self._all
        rate, square = rates[place], lengths[place]
        y = gradients - self.slopes[slot, :, self._all].T
        s = own - self.points[slot, :, self._all].T
        bent, curvature = self._bent[place], self.curvatures_of(place)
        sizes = np.sqrt((curvature * curvature).sum(axis=(0, 1)))
        usual = float(np.median(sizes[bent])) if bent.any() else 0.0
        limit = (JUMP * np.maximum(sizes, usual)) ** 2
        shortest = (TINY * max(1.0, float(np.abs(self.x).max()))) ** 2
        good = np.where(bent, rate <= limit, (square >= shortest) & (rate < np.inf))
        curvature[:, :, rate == np.inf] = 0.0
        bent[rate == np.inf] = False
        first = good & ~bent & (slope[place] > 0.0)
        scale = (y * y).sum(axis=0)[first] / slope[place][first]
        curvature[:, :, first] = np.eye(len(y))[:, :, None] * scale
        bent |= first
        missed = y - along(curvature, s)
        bend = (s * missed).sum(axis=0)
        good &= bent & (bend**2 > UNCLEAR**2 * square * squares(missed))
        missed, bend = missed[:, good], bend[good]
        curvature[:, :, good] += missed[:, None] * missed / bend
        # Flat or bent downwards: then what seemed curvature was a kink, or the piece is not convex.
        less = np.flatnonzero(good)[bend < 0.0]
        if less.size:
            values, vectors = np.linalg.eigh(curvature[:, :, less].transpose(2, 0, 1))
            bowls = vectors * values.clip(0.0)[:, None] @ vectors.transpose(0, 2, 1)
            curvature[:, :, less] = bowls.transpose(1, 2, 0)
        return bent, curvature


def squares(vectors: Cube) -> Matrix:
    """Return squared lengths, element by element: (p, m, K) to (p, K)."""
    answer: Matrix = np.einsum("...mk,...mk->...k", vectors, vectors)
    return answer


#: Sides of an element, at most, and the least multiplier that makes a side.
SIDES, LIGHT = 4, 1e-4

#: Slopes are of one side if they are this close, against the farthest from the first, or if
#: curvature explains all but so much of their difference.
ALIKE, EXPLAINED = 0.1, 0.25

#: Two slopes closer than this, against the longest of the element, are the same; and so close, they
#: are those of one affine function.
SAME, TWIN = 1e-3, 1e-6

#: A slope that differs by this from those that are known next to x is that of another side.
NEW = 1e-2

#: The points lie this part of delta from x, about: curvature must not be felt.
REACH = 0.02

#: And kinks farther than this part of delta, all together, are out of reach.
FARTHEST = 0.3

#: Points are this many times farther from x in a single variable than in the mean, at most.
CROSSED = 10.0

#: Added to the diagonal of the system of kinks, whose rows have length 1.
RIDGE = 1e-10


class KinkSides:
    """The sides of every element next to x, and points on the ones that are wanted.

    Attributes
    ----------
    there : (sides, K), bool: which sides an element has; the first one is always there
    share : (sides, K): weight that each side must get, after `weigh`
    """

    def __init__(self, bundle: ElementBundle, delta: float, rng: np.random.Generator) -> None:
        self.bundle, self.rng = bundle, rng
        used, slopes, weights = bundle.used, bundle.slopes, bundle.weights
        everyone = np.arange(used.shape[1])
        first = weights.argmax(axis=0)
        away = np.where(used, squares(slopes - slopes[first, :, everyone].T), 0.0)
        # Where the piece would meet the first one.
        self._largest = np.where(used, squares(slopes), 0.0).max(axis=0)
        least = SAME**2 * self._largest
        apart = away > least
        gaps = np.abs(bundle.levels - bundle.levels[first, everyone])
        far = np.where(apart, gaps / np.sqrt(np.where(apart, away, 1.0)), np.inf)
        close = far <= longest_together(far.min(axis=0), delta)
        span = np.where(close, away, 0.0).max(axis=0)
        # A kink that the points of the proof may cross counts without a multiplier.
        crossed = far <= CROSSED * REACH * delta / math.sqrt(bundle.x.size)
        order = weights + crossed
        order[first, everyone] = 3.0
        away_from_x = squares(bundle.points - bundle.system.gather(bundle.x))
        free, there, levels, found = used.copy(), [], [], []
        for side in range(SIDES):
            lead = np.where(free, order, -1.0).argmax(axis=0)
            place = lead, everyone
            unlike = slopes - slopes[lead, :, everyone].T
            offset = bundle.points - bundle.points[lead, :, everyone].T
            rest = squares(unlike - np.einsum("mnk,pnk->pmk", bundle.curvatures_of(place), offset))
            gap = squares(unlike)
            group = free & (
                (gap <= ALIKE**2 * span) | (rest <= EXPLAINED**2 * gap) | (gap <= least)
            )
            heavy = close[place] & (weights[place] >= LIGHT)
            # A third one may not meet the others anywhere near.
            there.append(free[place] & (heavy | (side == 0) | (crossed[place] & (side == 1))))
            known = group & (weights >= np.minimum(weights[place], LIGHT))
            nearest = np.where(known, away_from_x, np.inf).argmin(axis=0)
            levels.append(bundle.levels[nearest, everyone])
            found.append(slopes[nearest, :, everyone].T)
            free &= ~group
        self.there: Mask = np.array(there)
        self.levels, self.slopes = np.array(levels), np.array(found)
        self.met: Mask = np.zeros_like(self.there)
        self._base: Indices = rng.integers(0, SIDES, (used.shape[1],))

    @property
    def count(self) -> Indices:
        """(K,): how many sides there are."""
        return self.there.sum(axis=0)

    def prepare(self, delta: float) -> bool:
        """Find out how far the kinks are; return whether points on all sides are close enough."""
        normal = np.where(self.there[1:, None], self.slopes[1:] - self.slopes[0], 0.0)
        length = np.sqrt(squares(normal))
        length = np.where(length > 0.0, length, 1.0)
        self._normal = normal / length[:, None]
        blocks = np.einsum("smk,snk->mnk", self._normal, self._normal)
        solve = self.bundle.system.factorise(blocks, RIDGE)
        if solve is None or not self.there[1:].any():
            return False
        self._solve: Callable[[Vector], Vector] = solve
        self._reach = REACH * delta
        self._to_kinks = self._step((self.levels[0] - self.levels[1:]) / length)
        return float(np.linalg.norm(self._to_kinks)) <= FARTHEST * delta

    def all_in_turn(self) -> Indices:
        """Choose a side for every element; the next choices are the other ones."""
        self._base += 1
        rank = self._base % self.count
        right = self.there & (np.cumsum(self.there, axis=0) - 1 == rank)
        return right.argmax(axis=0)

    def point(self, side: Indices) -> Vector:
        """Return a random point where every element is on this side."""
        height = self.rng.uniform(0.7, 1.3, len(side))
        others = np.arange(1, len(self.there))[:, None]
        heights = np.where(side == 0, -height, np.where(side == others, height, 0.0))
        away = self._step(heights)
        away *= self._reach / max(float(np.linalg.norm(away)), 1e-300)
        return self.bundle.x + self._to_kinks + away

    def told(self, gradients: Matrix) -> Indices:
        """Return which side these gradients are from."""
        gap = np.where(self.there, squares(self.slopes - gradients), np.inf)
        return gap.argmin(axis=0)

    def learn(self, asked: Indices, y: Vector, values: Vector, gradients: Matrix) -> None:
        """Take the sides that were met at y, next to x, for what they are there."""
        side, everyone = self.told(gradients), np.arange(len(values))
        gap = squares(gradients - self.slopes[side, :, everyone].T)
        apart = np.where(self.there, squares(self.slopes - self.slopes[0]), 0.0).max(axis=0)
        new = gap > np.maximum(ALIKE**2 * apart, NEW**2 * self._largest)
        # An unexpected kink has a second side; the side that was asked for is too narrow.
        side = np.where(new, np.where(self.count == 1, 1, asked), side)
        self.there[side, everyone] = self.met[side, everyone] = True
        offset = self.bundle.system.gather(y - self.bundle.x)
        self.levels[side, everyone] = values - (gradients * offset).sum(axis=0)
        self.slopes[side, :, everyone] = gradients.T

    def better(self, mu: float, late: Callable[[], bool]) -> Vector:
        """Return the step to the minimum of the model made of these sides."""
        levels = np.minimum(self.levels, self.bundle.values)
        return self._minimum(levels, self.bundle.curvature, mu, late).v

    def weigh(self, late: Callable[[], bool]) -> float:
        """Find the shares with which the slopes cancel best; return how long what is left is."""
        # A side that was never met is none.
        self.there[1:] &= self.met[1:]
        flat = np.zeros_like(self.bundle.curvature)
        found = self._minimum(np.zeros_like(self.levels), flat, 1.0, late)
        share = np.where(self.there, found.weights.clip(0.0, 1.0), 0.0)
        self.share = share / share.sum(axis=0)
        left = self.bundle.system.scatter(combined(self.slopes, self.share))
        return float(np.linalg.norm(left))

    def _minimum(
        self, levels: Matrix, curvature: Cube, mu: float, late: Callable[[], bool]
    ) -> InteriorPoint:
        return minimise_elements(
            self.bundle.system, levels, self.slopes, self.there, curvature, mu, FINE, late
        )

    def move(self, y: Vector, values: Vector) -> None:
        """Let x be y."""
        offset = self.bundle.system.gather(y - self.bundle.x)
        self.levels = self.levels + along(self.slopes, offset)
        self.bundle.x, self.bundle.values = y, values

    def _step(self, heights: Matrix) -> Vector:
        """Return the shortest step that rises so far above the kinks."""
        return self._solve(self.bundle.system.scatter(combined(self._normal, heights)))


class SidePlan:
    """What every element still needs for the gradients to cancel.

    As in `SideExpansion`, but for any number of sides, and by the gradients that were met: where a
    side is too narrow for a point, the others make up for it.
    """

    def __init__(self, sides: KinkSides, eps: float, most: int) -> None:
        self.sides = sides
        jumps = np.where(sides.there[:, None], sides.slopes - sides.slopes[0], 0.0)
        jump = float(np.linalg.norm(squares(jumps).max(axis=0) ** 0.5))
        ratio = max(RATIO, 1.0 - 1.0 / int(sides.count.max()))
        wanted = math.ceil(math.log(MISSING * eps / max(jump, eps)) / math.log(ratio))
        self.weights = expansion(max(2, min(most, POINTS, wanted)), ratio).tolist()
        self.missing: Matrix = combined(sides.slopes, sides.share)
        # Of three sides the one that lacks most need not be the closest to what is missing.
        self._corners = np.flatnonzero(sides.count > 2)
        there = sides.there[:, self._corners].T
        slopes = sides.slopes[:, :, self._corners].transpose(2, 1, 0)
        ones = np.ones((len(self._corners), 1, there.shape[1]))
        self._inverse = np.linalg.pinv(np.concatenate([slopes, ones], axis=1) * there[:, None])

    def wanted(self) -> Indices:
        """Which side is next, in every element?"""
        mean = self.missing / sum(self.weights)
        side = self.sides.told(mean)
        corners = mean[:, self._corners].T
        extended = np.concatenate([corners, np.ones((len(corners), 1))], axis=1)
        side[self._corners] = np.einsum("ksm,km->ks", self._inverse, extended).argmax(axis=1)
        return side

    def told(self, gradients: Matrix) -> bool:
        """Take note of the gradients of the elements at a point; return whether it was the last."""
        self.missing -= self.weights.pop(0) * gradients
        return not self.weights


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
NEAR, SHORT, FAILURES, MOST = 0.1, 0.5, 25, 200

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
    bundle : what is known of the elements, while it runs
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
        # Pieces, their points, curvature and temporaries; blocks and their assembly.
        fixed = count * (4 * width * width + 10 * width) + 10 * (terms.dim or 0)
        each = count * (9 * width + width * width + 8)
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
        self._plan: SidePlan | None = None

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
        y = sides.point(self._plan.wanted())
        take_in(s, y, oracle.gradient(y))
        if self._plan.told(self.terms.element_gradients(y).T):
            self._end(oracle, s)

    def _visit(self, oracle: CountedOracle, sides: KinkSides) -> None:
        """Go to one side of every kink."""
        side = sides.all_in_turn()
        y = sides.point(side)
        if oracle.trial_value(y) < math.inf:
            values = self.terms.element_values(y)
            sides.learn(side, y, values, self._gradient(oracle, y))

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
        self._plan = SidePlan(sides, s.eps, s.most_gradients)

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
