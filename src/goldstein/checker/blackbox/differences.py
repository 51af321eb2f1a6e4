"""Do gradients and values belong to one function, and how fine is it? Differences of values say.

A gradient may be wrong, everywhere or at the one place that a claim rests on. And a function may
not see short steps: (x + 1e9) - 1e9 does not, nor what computes in single precision; there every
point of a small ball is rounded to a few, which may be kinks. So at the points of a claim, or next
to them, differences of values must agree with gradients, for a step that is short against the ball;
what happens at shorter distances is not believed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Vector
from goldstein.checker.blackbox.perturbed import Neighbourhood
from goldstein.checker.constrained.box import Box
from goldstein.checker.errors import ContradictedError, InputError, KinkError, UnresolvedError

#: Steps relative to delta: the shortest, the longest that accuses a gradient, the longest that
#: still resolves the ball.
SHORTEST, LONGEST, COARSEST = 2.0**-24, 2.0**-10, 2.0**-4

#: How much longer the next step is; the second one of two that have to miss by the same slope; and
#: how far beside a point one looks, in steps.
NEXT, TWICE, BESIDE = 4.0, 2.0**6, 2.0**4

#: What values and gradients may disagree by, relative to |g|.|v|: one coordinate among many hides
#: behind that. Where the digits of values, or noise in them, do not allow for as little, it is this
#: part of the step in the ball.
TIGHT, LOOSE = 1e-4, 2.0**-3

#: A step that agrees shows that f resolves this part of it: it cannot be rounded to anything
#: coarser than what the disagreement allows.
RESOLVED = 0.5

#: Rounding of values in units in the last place, as a rule, and at most: they may be long sums; and
#: the part of a difference that it may blur.
USUAL, ROUNDING, BLURRED = 2.0**3, 2.0**7, 0.05

#: Disagreement that is a mistake; gradients that belong to one piece; a gradient that differs by
#: more than this, asked for again, is noise. Relative to their lengths.
MISTAKE, ALIKE, NOISE = 5e-3, 0.1, 1e-4

#: Points of a claim that are looked at, and looks that must agree; contradictions next to one that
#: accuse it; random points, and how many of these must contradict.
HEAVY, SEVERAL, POINTS, NEEDED = 3, 3, 4, 2

#: Points of a claim that values must not contradict; rounds of looks next to one, at least.
MANY, ROUNDS = 24, 6

#: Entries of gradients that others may hide are at most so many times what may disagree, relative
#: to their sum, and at most this part of their mean; how far outside the ball one looks for larger
#: ones, and in which steps; where values are compared with those that are 0; and the part of the
#: ball, over the number of variables, below which no shorter step is looked for there.
HIDDEN, FAINT, FAR, FARTHER, AROUND, FINE = 4.0, 0.1, 2.0**24, 2.0**3, 2.0**10, 2.0**-8

#: Where one feels a smaller part of the coordinates in question, one goes farther, once.
FEW = 2.0**-4


class Differences:
    """Differences of values around x; `f` answers `value` and `gradient`, inside the box."""

    def __init__(self, f: Any, x: Vector, delta: float, box: Box, seed: int) -> None:
        self.f, self.x, self.delta, self.box = f, x, delta, box
        self.rng = np.random.default_rng([seed, 2**20])
        self._coarsest = COARSEST * delta
        #: Values that cost nothing, because they came with a gradient.
        self._known = getattr(f, "known_value", lambda y: None)
        self._unit = 2.0**-24 if getattr(f, "coarse", "") else 2.0**-53
        self._size: float | None = getattr(f, "size", None)
        #: Whether values that say something did not agree.
        self._clear = False

    def resolution(
        self, known: Sequence[tuple[Vector, Vector]], coarsest: float = COARSEST, many: int = MANY
    ) -> float:
        """Return how far points have to be displaced to leave what f rounds to one value.

        Parameters
        ----------
        known : sequence of (point, gradient)
            What a claim rests on, the heaviest first.
        coarsest : float
            Steps at most this part of delta must agree.
        many : int
            Points whose gradients values must not contradict.

        Raises
        ------
        ContradictedError
            When differences of values contradict the gradients.
        UnresolvedError
            When no such step is resolved.
        """
        self._coarsest = coarsest * self.delta
        free = self.box.lower < self.box.upper
        sizes = np.where(free, np.abs([g for _, g in known]).max(axis=0), 0.0)
        rows = [(y, g) for y, g in known if g[free].any()]
        steps, few = [SHORTEST * self.delta], max(0, HEAVY - len(rows))
        for k, (y, g) in enumerate(rows[:HEAVY]):
            steps.append(self._resolved(y, g, 1 if k else 1 + few))
        for y, g in rows[HEAVY:many]:
            if self._agree(y, g, self._finest(y, g), 1)[0] is False:
                with suppress(UnresolvedError):
                    self._resolved(y, g, 1)
        hides = HIDDEN * self._allowed(max(steps))
        faint = free & (sizes <= min(hides * sizes.sum(), FAINT * sizes.mean()))
        if faint.any():
            steps.append(self._outside(faint, float(sizes[faint].max()), max(steps)))
        return RESOLVED * max(steps)

    def _resolved(self, y: Vector, g: Vector, times: int) -> float:
        """Return a step that f resolves at y, or next to it.

        Where values do not follow the gradient there may be a kink next to y, so one looks beside
        it, too: near by first, then farther away, with longer steps. Where the gradient is right
        one of these looks agrees; where several contradict gradients like that at y, and none like
        it agrees, it is not.
        """
        step, rounds, contradictions = self._finest(y, g), 0, 0
        while 0.0 < step <= self._coarsest:
            verdict, agreed = self._agree(y, g, step, times)
            if verdict:
                return agreed
            if verdict is False and not contradictions:
                self._require_same(y, g)
            z = self._near(y, min(BESIDE * step, 0.5 * self.delta))
            h = self._gradient(z)
            if h is not None:
                alike = accused = np.linalg.norm(h - g) <= ALIKE * np.linalg.norm(g)
                for length in sorted({self._finest(z, h), step}):
                    verdict, agreed = self._agree(z, h, length, times)
                    if verdict and (alike or not contradictions):
                        return max(agreed, float(np.linalg.norm(z - y)) / RESOLVED)
                    accused = accused and verdict is False
                contradictions += bool(accused)
            rounds += 1
            step = NEXT * step if rounds >= ROUNDS else min(NEXT * step, self._coarsest)
        if contradictions >= SEVERAL:
            raise ContradictedError
        if not self._clear and (step := self._smoothly(y, g)):
            return step
        raise UnresolvedError(self._coarsest)

    def _require_same(self, y: Vector, g: Vector) -> None:
        """Accuse a gradient that is another one when it is asked for again."""
        again = self._gradient(y)
        gap = 0.0 if again is None else float(np.linalg.norm(again - g))
        if gap > NOISE * float(np.linalg.norm(g)):
            raise ContradictedError(gap)

    def at_random(self) -> None:
        """Look at random points of the ball; one that agrees acquits.

        Raises
        ------
        ContradictedError
        """
        contradictions = 0
        for _ in range(POINTS):
            z = self._near(self.x, 0.5 * self.delta)
            g = self._gradient(z)
            if g is not None and math.isfinite(step := self._finest(z, g)):
                verdict = self._agree(z, g, step, 1)[0]
                if verdict:
                    return
                contradictions += verdict is False
        if contradictions >= NEEDED:
            raise ContradictedError

    def _smoothly(self, y: Vector, g: Vector) -> float:
        """Return the shortest step along which the gradient changes in proportion, or 0.

        Where values are too large to show a difference, that says that f resolves it.
        """
        step = SHORTEST * self.delta
        while 0.0 < (step := step * NEXT) <= self._coarsest:
            v = self._direction()
            near, far = (self._gradient(self.box.reflect(y + k * step * v)) for k in (1.0, 2.0))
            if near is None or far is None:
                continue
            change = np.abs(far - g)
            bent = np.abs((far - g) - 2.0 * (near - g))
            # Entries that hardly change are rounded; those that do not are not resolved.
            if change.all() and (bent <= 0.25 * change + 2.0**-6 * change.max()).all():
                return step
        return 0.0

    def _outside(self, faint: Mask, most: float, enough: float) -> float:
        """Return what is resolved along coordinates in which f hardly changes near x.

        It may be flat because the ball is too small: then one sees that farther away.
        """
        reach, steps, failures, farther = FARTHER * self.delta, [0.0], 0, FARTHER
        unresolved = np.zeros_like(faint)
        while faint.any() and reach <= FAR * self.delta:
            z = self.box.reflect(self.x + np.where(faint, reach * self._direction(), 0.0))
            g = self._gradient(z)
            if g is None or not (felt := faint & (np.abs(g) > 2.0 * most)).any():
                reach *= FARTHER
                continue
            step, verdict, self._clear = self._finest(z, np.where(felt, g, 0.0)), None, False
            while 0.0 < step <= self._coarsest and not verdict:
                verdict, agreed = self._agree(z, g, step, HEAVY, felt)
                step *= NEXT
            if verdict:
                steps.append(self._finer(felt, reach, agreed, enough))
                faint, unresolved = faint & ~felt, unresolved & ~felt
                if felt.sum() < FEW * faint.sum():  # one step farther away it may be most
                    reach, farther = reach * farther, 1.0
            elif self._clear and (failures := failures + 1) >= POINTS:
                raise UnresolvedError(self._coarsest)
            elif not self._clear:  # farther away values change by more
                reach, unresolved = reach * FARTHER, unresolved | felt
        if unresolved.any():
            raise UnresolvedError(self._coarsest)
        if faint.any():
            self._require_level(faint)
        return max(steps)

    def _finer(self, felt: Mask, reach: float, agreed: float, enough: float) -> float:
        """Return a shorter step that is resolved along these coordinates, where there is one.

        Farther away f is steeper, and its values show shorter steps. No coordinate may hide behind
        another. Steps that are short against the ball and the gaps between as many kinks as there
        are variables are short enough.
        """
        enough = max(enough, FINE * self.delta / felt.size)
        with suppress(InputError):  # outside the domain of f nothing is shown
            while agreed > enough and (reach := NEXT * reach) <= FAR * self.delta:
                z = self.box.reflect(self.x + np.where(felt, reach * self._direction(), 0.0))
                g = self._gradient(z)
                if g is None or (sizes := np.abs(g[felt])).min() <= FAINT * sizes.mean():
                    break
                step, verdict, found = self._finest(z, np.where(felt, g, 0.0)), None, 0.0
                while 0.0 < step < RESOLVED * agreed and not verdict:
                    verdict, found = self._agree(z, g, step, HEAVY, felt)
                    step *= NEXT
                agreed = min(agreed, found) if verdict else agreed
        return agreed

    def _require_level(self, faint: Mask) -> None:
        """Accuse gradients that do not say that values change across the ball, or around it."""
        if all(self._rises(faint, self.delta) for _ in range(NEEDED)) or all(
            self._rises(faint, AROUND * self.delta) for _ in range(NEEDED)
        ):
            raise ContradictedError

    def _rises(self, faint: Mask, reach: float) -> bool:
        """Do values change in proportion, and gradients do not say so?"""
        z, v = self._near(self.x, 0.5 * self.delta), reach * self._direction(faint)
        g = self._gradient(z)
        if g is None:
            return False
        (far, slope, _), (near, other, _) = (
            self._miss(z, g, part * v, constant=True) for part in (0.25, 0.03)
        )
        alike = min(slope / other, other / slope) >= 0.25 if slope * other else False
        return far is near is False and alike

    def _finest(self, y: Vector, g: Vector) -> float:
        """Return the shortest step along which rounding of values does not hide a disagreement."""
        if self._size is None:  # about
            here = self._known(y)
            self._size = abs(self.f.value(self.x) if here is None else here)
        steep = float(np.abs(g).sum()) / math.sqrt(g.size)
        blur = USUAL * self._unit * self._size / steep if steep > 0 else math.inf
        step = min(blur / TIGHT, math.sqrt(blur * self.delta / LOOSE))
        # Steps of few units in the last place show what rounding loses.
        spacing = 2.0**9 * self._unit * float(np.abs(y).max(initial=0.0))
        return max(SHORTEST * self.delta, step, spacing)

    def _allowed(self, step: float) -> float:
        return max(TIGHT, LOOSE * step / self.delta)

    def _agree(
        self, y: Vector, g: Vector, step: float, times: int, along: Mask | None = None
    ) -> tuple[bool | None, float]:
        """True where values around y follow the gradient, and along which step; False where they
        contradict it; or None.

        Two steps that miss by the same slope show a mistake; a kink or curvature changes with them,
        and noise gets smaller. One look alone may be luck: (x + 1e9) - 1e9 is a staircase, and
        where a step is about a multiple of its own the values follow the gradient.
        """
        v, constant, loose = self._direction(along), along is not None, False
        verdict, slope, blur = self._miss(y, g, step * v, constant)
        if not verdict:
            accuses = 8.0 * step <= LONGEST * self.delta
            step = min(TWICE * step, LONGEST * self.delta if accuses else self._coarsest)
            loose = True
            second, other, more = self._miss(y, g, step * v, constant, loose)
            if not second or abs(other) > 0.25 * abs(slope):
                same = abs(slope - other) <= 0.25 * abs(other) + blur + more
                return False if verdict is second is False and accuses and same else None, step
        others = [self.rng.uniform(0.5, 1.0) * step for _ in range(times - 1)]
        looks = (self._miss(y, g, s * self._direction(along), constant, loose) for s in others)
        return all(look[0] for look in looks) or None, step / RESOLVED if loose else step

    def _miss(
        self, y: Vector, g: Vector, step: Vector, constant: bool = False, loose: bool = False
    ) -> tuple[bool | None, float, float]:
        """Compare a central difference with <g, step>: verdict, missed slope, blur of the slope.

        Values that do not change say nothing; or, if they are `constant`, that they should not be.
        """
        step = np.where(self.box.upper - self.box.lower >= 4.0 * np.abs(step), step, 0.0)
        here = None if constant else self._known(y)
        if here is not None:  # one side may do
            verdict = self._difference(g, step, self.f.value(y + step), here, constant, loose)
            if verdict[0]:
                return verdict
        y = self.box.clip(y, np.abs(step))
        ahead, behind = self.box.clip(y + step), self.box.clip(y - step)
        high, low = self.f.value(ahead), self.f.value(behind)
        return self._difference(g, ahead - behind, high, low, constant, loose)

    def _difference(
        self, g: Vector, way: Vector, high: float, low: float, constant: bool, loose: bool
    ) -> tuple[bool | None, float, float]:
        """Compare a difference of values with <g, way>."""
        rise, most = high - low, float(np.abs(g) @ np.abs(way))
        size, blur = max(most, abs(rise)), ROUNDING * self._unit * max(abs(high), abs(low))
        clear = math.isfinite(rise) and size > 0.0 and blur <= BLURRED * size and bool(way.any())
        if not clear or (rise == 0.0 and not constant):
            self._clear |= clear
            return None, 0.0, 0.0
        miss, length = rise - float(g @ way), float(np.linalg.norm(way))
        gap, allowed = abs(miss) - blur, self._allowed(0.5 * length) * size
        verdict = False if gap > MISTAKE * size else None
        blur *= USUAL / ROUNDING
        if max(blur, abs(miss) - blur) <= (allowed if loose else TIGHT * size):
            verdict = True
        # What rounding explains says nothing.
        self._clear |= not verdict and gap > allowed
        return verdict, miss / length, (blur * ROUNDING / USUAL + 2.0**-1000) / length

    def _direction(self, along: Mask | None = None) -> Vector:
        """Draw a direction of about unit length, along some coordinates only.

        No entry is small, so that no coordinate goes unnoticed; none is like another, so that
        mistakes do not cancel: up to a factor their sizes are uniform between 0.5 and 1.5.
        """
        drawn: Vector = self.rng.uniform(-1.0, 1.0, self.x.size)
        drawn += np.copysign(0.5, drawn)
        drawn = drawn if along is None else np.where(along, drawn, 0.0)
        return drawn / math.sqrt(self.x.size)

    def _near(self, y: Vector, radius: float) -> Vector:
        """Draw a point about so far from y, within the ball and the box."""
        z = y + self.rng.uniform(0.1, 0.7) * radius * self._direction()
        return Neighbourhood(self.x, self.delta, self.box).inside(z)

    def _gradient(self, z: Vector) -> Vector | None:
        try:
            found: Vector = self.f.gradient(z)
            return found
        except KinkError:
            return None


__all__ = ["COARSEST", "HEAVY", "RESOLVED", "Differences"]
