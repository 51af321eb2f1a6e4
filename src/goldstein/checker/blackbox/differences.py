"""Do gradients and values belong to one function, and how fine is it? Differences of values say.

A gradient may be wrong, everywhere or at the one place that a claim rests on. And a function may not
see short steps: (x + 1e9) - 1e9 does not, nor what computes in single precision; there every point
of a small ball is rounded to a few, which may be kinks. So somewhere near x a difference of values
must agree with a gradient, for a step that is short against the ball; what happens at shorter
distances is not believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Vector
from goldstein.checker.constrained.box import Box
from goldstein.checker.errors import ContradictedError, KinkError, UnresolvedError

#: Steps relative to delta: the shortest, the longest, the longest that still resolves the ball; and
#: how much longer the next one is: to see a mistake twice, and to find what is resolved.
SHORTEST, LONGEST, COARSEST, TWICE, NEXT = 2.0**-24, 2.0**-10, 2.0**-4, 2.0**6, 2.0**4

#: A step that agrees shows that f resolves this part of it: it cannot be rounded to anything coarser
#: than what the disagreement allows.
RESOLVED = 2.0**-3

#: Rounding of values, which are long sums as a rule, and the part of a slope it may blur at first,
#: and at most.
ROUNDING, CLEAR, BLURRED = 2.0**-46, 1e-2, 0.05

#: Disagreement relative to |g|.|v|, beyond the rounding of the values: none, and a mistake.
TOLERANCE, MISTAKE = 1e-3, 5e-3

#: Points of a claim that are looked at, and looks that must agree; random points; and how many of
#: these must contradict.
HEAVY, POINTS, NEEDED = 3, 4, 2

#: Points beside one that a claim rests on: how many are looked at, how far away they are relative to
#: delta (much farther than the longest step: their own kinks are not met), which difference of
#: gradients, relative, is no kink, and how many must contradict: noise in values does, rarely.
BESIDE, NEAR, ALIKE, SEVERAL = 12, 2.0**-6, 0.1, 3

#: A gradient that differs by more than this part of it, asked for again, is noise.
NOISE = 1e-4

#: How far outside the ball one looks, and in which steps, where f is flat in it.
FAR, FARTHER = 2.0**24, 2.0**3


class Differences:
    """Differences of values around x; `f` answers `value` and `gradient`, inside the box."""

    def __init__(self, f: Any, x: Vector, delta: float, box: Box, seed: int) -> None:
        self.f, self.x, self.delta, self.box = f, x, delta, box
        self.rng = np.random.default_rng([seed, 2**20])
        self._coarsest = COARSEST * delta
        #: Values that cost nothing, because they came with a gradient.
        self._known = getattr(f, "known_value", lambda y: None)
        self._size: float | None = getattr(f, "size", None)
        #: Whether values that say something did not agree.
        self._clear = False

    def resolution(
        self, known: Sequence[tuple[Vector, Vector]], coarsest: float = COARSEST
    ) -> float:
        """Return a step that f resolves near x; steps at most `coarsest` of delta must agree.

        Parameters
        ----------
        known : sequence of (point, gradient)
            What a claim rests on, the heaviest first.

        Raises
        ------
        ContradictedError
            When differences of values contradict the gradients.
        UnresolvedError
            When no such step is resolved.
        """
        self._coarsest = coarsest * self.delta
        free = self.box.lower < self.box.upper
        rows = [(y, g) for y, g in known[:HEAVY] if g[free].any()]
        found = [(self._finest(y, g), y, g) for y, g in rows]
        steps = [step for step, _, _ in found]
        if rows and all(steps):
            steps.append(self._confirmed(*max(found, key=lambda look: look[0]), HEAVY - len(rows)))
        if not all(steps):  # a kink is everywhere near, or f is too coarse
            steps.append(self.at_random(known))
        silent = free & np.logical_and.reduce([g == 0.0 for _, g in known])
        if silent.any():
            steps.append(self._outside(silent))
        return RESOLVED * max([SHORTEST * self.delta, *steps])

    def _confirmed(
        self, step: float, y: Vector, g: Vector, times: int = 2, along: Mask | None = None
    ) -> float:
        """Return a step with which further looks agree, too: one alone may be luck; 0 if none does.

        (x + 1e9) - 1e9 is a staircase, and where a step is about a multiple of its own the values
        follow the gradient.
        """
        while step and times:
            shorter = self.rng.uniform(0.5, 1.0) * step
            if self._miss(y, g, self._way(shorter, along), along is not None)[0]:
                times -= 1
            else:
                step, times = self._longer(y, g, step, along), HEAVY - 1
        return step

    def _way(self, step: float, along: Mask | None = None) -> Vector:
        """Draw a step of this length, along some coordinates only."""
        way = step * self._direction()
        return way if along is None else np.where(along, way, 0.0)

    def _finest(self, y: Vector, g: Vector) -> float:
        """Return the shortest step with which the values around y agree, or 0.

        Where they contradict the gradient there may be a kink next to y, so they are asked for
        around points beside it, too, whose gradients are like its own: where the gradient is right
        one of them agrees; where several of them contradict, and none agrees, it is not.
        """
        verdict, step = self._compare(y, g)
        contradictions = 0
        if verdict is False:
            again = self._gradient(y)
            gap = 0.0 if again is None else float(np.linalg.norm(again - g))
            if gap > NOISE * float(np.linalg.norm(g)):
                raise ContradictedError(gap)
        for _ in range(BESIDE if verdict is False else 0):
            z = self._near(y, NEAR * self.delta)
            h = self._gradient(z)
            if h is None or np.linalg.norm(h - g) > ALIKE * np.linalg.norm(g):
                continue  # beyond a kink
            beside, other = self._compare(z, h)
            if beside:
                return other
            contradictions += beside is False
        if contradictions >= SEVERAL:
            raise ContradictedError
        return step if verdict else self._longer(y, g, step)

    def _longer(self, y: Vector, g: Vector, step: float, along: Mask | None = None) -> float:
        """Return the next longer step with which the values around y agree, or 0."""
        while 0.0 < (step := step * NEXT) <= self._coarsest:
            if self._miss(y, g, self._way(step, along), along is not None)[0]:
                return step
        return 0.0

    def at_random(self, known: Sequence[tuple[Vector, Vector]] = ()) -> float:
        """Return the shortest step that agrees at a random point of the ball; one acquits.

        Where values are too large to show a difference, gradients (at the `known` points, too) that
        change in proportion to the step, in every entry, say that f resolves it.
        """
        contradictions, places = 0, []
        for _ in range(POINTS):
            z = self._near(self.x, 0.5 * self.delta)
            g = self._gradient(z)
            if g is not None:
                verdict, step = self._compare(z, g)
                if verdict and (step := self._confirmed(step, z, g)):
                    return step
                contradictions += verdict is False
                places.append((z, g, step))
        if contradictions >= NEEDED:
            raise ContradictedError
        for z, g, step in places:
            if step := self._confirmed(self._longer(z, g, step), z, g):
                return step
        for y, g in [*known[:1], *((z, g) for z, g, _ in places[:1])]:
            if not self._clear and (step := self._smoothly(y, g)):
                return step
        raise UnresolvedError(self._coarsest)

    def _smoothly(self, y: Vector, g: Vector) -> float:
        """Return the shortest step along which the gradient changes in proportion, or 0."""
        step, v = SHORTEST * self.delta, self._direction()
        while 0.0 < (step := step * NEXT) <= self._coarsest:
            near, far = (self._gradient(self.box.reflect(y + k * step * v)) for k in (1.0, 2.0))
            if near is None or far is None:
                continue
            change = far - g
            if (change != 0.0).all() and (
                np.abs(change - 2.0 * (near - g)) <= 0.25 * np.abs(change)
            ).all():
                return step
        return 0.0

    def _outside(self, silent: Mask) -> float:
        """Return what is resolved along coordinates in which f is flat near x; 0 if nobody knows.

        It may be flat because the ball is too small: then one sees that farther away.
        """
        for _ in range(POINTS):
            reach, g = self.delta, None
            while g is None or not g[silent].any():
                reach *= FARTHER
                if reach > FAR * self.delta:
                    return 0.0
                z = self.box.reflect(self.x + np.where(silent, reach * self._direction(), 0.0))
                g = self._gradient(z)
            self._clear = False
            step = self._confirmed(
                self._longer(z, g, SHORTEST * self.delta, silent), z, g, 2, silent
            )
            if step or not self._clear:
                return step
        raise UnresolvedError(self._coarsest)

    def _compare(self, y: Vector, g: Vector) -> tuple[bool | None, float]:
        """True or False where the values around y are clear, None where not; and the step taken."""
        v = self._direction()
        if self._size is None:  # about
            here = self._known(y)
            self._size = abs(self.f.value(self.x) if here is None else here)
        steep = float(np.abs(g) @ np.abs(v))
        digits = ROUNDING * self._size / (CLEAR * steep) if steep > 0 else math.inf
        spacing = 2.0**-44 * float(np.abs(y).max(initial=0.0))
        step = max(SHORTEST * self.delta, min(digits, LONGEST * self.delta), spacing)
        if spacing > LONGEST * self.delta:
            return None, step  # steps of few units in the last place show what rounding loses
        longer = min(TWICE * step, LONGEST * self.delta)
        step = min(step, longer / 8.0)  # two steps alike would show the same noise
        first, slope, blur = self._miss(y, g, step * v)
        if first is not False:
            return first, step
        second, other, more = self._miss(y, g, longer * v)
        # Two steps that miss by the same slope show a mistake; a kink or curvature changes with them.
        same = abs(slope - other) <= 0.25 * abs(other) + blur + more
        return (second if second is not False else False if same else None), longer

    def _miss(
        self, y: Vector, g: Vector, step: Vector, constant: bool = False
    ) -> tuple[bool | None, float, float]:
        """Compare a central difference with <g, step>: verdict, missed slope, blur of the slope.

        Values that do not change say nothing; or, if they are `constant`, that they should not be.
        """
        step = np.where(self.box.upper - self.box.lower >= 4.0 * np.abs(step), step, 0.0)
        here = None if constant else self._known(y)
        if here is not None:  # one side may do
            verdict = self._difference(g, step, self.f.value(y + step), here)
            if verdict[0]:
                return verdict
        y = self.box.clip(y, np.abs(step))
        ahead, behind = self.box.clip(y + step), self.box.clip(y - step)
        high, low = self.f.value(ahead), self.f.value(behind)
        return self._difference(g, ahead - behind, high, low, constant)

    def _difference(
        self, g: Vector, way: Vector, high: float, low: float, constant: bool = False
    ) -> tuple[bool | None, float, float]:
        """Compare a difference of values with <g, way>."""
        rise, most = high - low, float(np.abs(g) @ np.abs(way))
        size, blur = max(most, abs(rise)), ROUNDING * max(abs(high), abs(low))
        clear = math.isfinite(rise) and size > 0.0 and blur <= BLURRED * size
        if not clear or (rise == 0.0 and not constant):
            self._clear |= clear
            return None, 0.0, 0.0
        miss, length = rise - float(g @ way), float(np.linalg.norm(way))
        gap = abs(miss) - blur
        verdict = True if gap <= TOLERANCE * size else None if gap <= MISTAKE * size else False
        self._clear |= not verdict
        return verdict, miss / length, (blur + 2.0**-1000) / length

    def _direction(self) -> Vector:
        """Draw a direction of about unit length.

        No entry is small, so that no coordinate goes unnoticed; none is like another, so that
        mistakes do not cancel: up to a factor their sizes are uniform between 0.5 and 1.5.
        """
        drawn: Vector = self.rng.uniform(-1.0, 1.0, self.x.size)
        drawn += np.copysign(0.5, drawn)
        return drawn / math.sqrt(self.x.size)

    def _near(self, y: Vector, radius: float) -> Vector:
        """Draw a point about so far from y, within the ball and the box."""
        z = self.box.reflect(y + self.rng.uniform(0.1, 0.7) * radius * self._direction())
        away = max(float(np.linalg.norm(z - self.x)), self.delta)
        return self.box.clip(self.x + (z - self.x) * (self.delta / away))

    def _gradient(self, z: Vector) -> Vector | None:
        try:
            found: Vector = self.f.gradient(z)
            return found
        except KinkError:
            return None


__all__ = ["COARSEST", "HEAVY", "RESOLVED", "Differences"]
