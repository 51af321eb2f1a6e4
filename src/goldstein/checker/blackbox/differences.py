"""Do gradients and values belong to one function, and how fine is it? Differences of values say.

A gradient may be wrong, everywhere or at the one place that a claim rests on. And a function may
not see short steps: (x + 1e9) - 1e9 does not, nor what computes in single precision; there every
point of a small ball is rounded to a few, which may be kinks. So at the points of a claim, or next
to them, differences of values must agree with gradients, for a step that is short against the ball;
what happens at shorter distances is not believed.
"""

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Vector
from goldstein.checker.blackbox.errors import ContradictedError, UnresolvedError
from goldstein.checker.blackbox.perturbed import Neighbourhood
from goldstein.checker.constrained.limits import Box
from goldstein.checker.errors import KinkError

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

#: A line without a kink bends by less than this part of what its slope misses.
STRAIGHT = 2.0**-5

#: Points of a claim that are looked at; looks that must agree, or contradict, to count; random
#: points, and how many of these must contradict.
HEAVY, SEVERAL, POINTS, NEEDED = 3, 3, 4, 2

#: Points of a claim that values must not contradict; rounds of looks next to one, at least.
MANY, ROUNDS = 24, 8

#: Looks at other pieces that leave a point behind, for each undecided one at a gradient alike.
MOSTLY = 4.0

#: Entries of gradients that others may hide are at most so many times what may disagree, relative
#: to their sum, and at most this part of their mean; in which steps one looks for larger ones
#: outside the ball, how far at least, which steps are fine, and how many looks there are.
HIDDEN, FAINT, FARTHER, FAR, FINE, LOOKS = 4.0, 0.1, 2.0**6, 2.0**12, 2.0**-12, 3

#: How far around the ball values are compared with gradients that are 0.
AROUND = 2.0**10


class Differences:
    """Differences of values around x; `f` answers `value` and `gradient`, inside the box."""

    def __init__(self, f: Any, x: Vector, delta: float, box: Box, seed: int) -> None:
        self.f, self.x, self.delta, self.box = f, x, delta, box
        self._bounded = bool(np.isfinite([box.lower, box.upper]).any())
        self._moduli = np.abs(x)
        self.rng = np.random.default_rng([seed, 2**20])
        self._coarsest = COARSEST * delta
        #: Values that cost nothing, because they came with a gradient.
        self._known = getattr(f, "known_value", lambda y: None)
        self._unit = 2.0**-24 if getattr(f, "coarse", "") else 2.0**-53
        self._size: float | None = getattr(f, "size", None)
        #: Whether values that say something did not agree; and whether some did wherever needed.
        self._clear, self.clear = False, True
        # Whether a claim is looked at closely; whether it rests on gradients that are 0, or on one.
        self._closely = self._level = self._alone = False

    def resolution(
        self, known: Sequence[tuple[Vector, Vector]], coarsest: float = COARSEST, many: int = MANY,
        closely: bool = False,
    ) -> Vector:  # fmt: skip
        """Return how far points have to be displaced to leave what f rounds to one value.

        Parameters
        ----------
        known : sequence of (point, gradient)
            What a claim rests on, the heaviest first.
        coarsest : float
            Steps at most this part of delta must agree.
        many : int
            Points whose gradients values must not contradict.
        closely : bool
            As a check does: values are to follow the only gradient of a claim in three directions,
            and what a look leaves open is looked at again.

        Returns
        -------
        ndarray, shape (d,)
            One length for each coordinate: those that others hide are looked at by themselves.

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
        self._closely, self._level = closely, not rows
        self._alone = closely and len(rows) == 1
        step = max([SHORTEST * self.delta, *(self._resolved(y, g) for y, g in rows[:HEAVY])])
        for y, g in rows[HEAVY:many]:
            if self.agree(y, g, self.finest(y, g))[0] is False:
                with suppress(UnresolvedError):
                    self._resolved(y, g)
        hides = HIDDEN * self._allowed(step)
        faint = free & (sizes <= min(hides * sizes.sum(), FAINT * sizes.mean()))
        steps = np.full(self.x.size, step)
        if faint.any():
            steps = np.maximum(steps, self._outside(faint, float(sizes[faint].max())))
        return RESOLVED * steps

    def _resolved(self, y: Vector, g: Vector) -> float:
        """Return a step that f resolves at y, or next to it.

        Where values do not follow the gradient there may be a kink next to y, so one looks beside
        it, too: near by first, then farther away, with longer steps. Where the gradient is right
        one of these looks agrees; where several contradict gradients like that at y, and none like
        it agrees, it is not. Another piece that agrees will do if y is left behind with its own:
        where there is much of that, values have to follow it there.
        """
        finest, rounds, contradictions, accused = self.finest(y, g), 0, 0, False
        beyond, others, alikes = math.inf, 0, 0
        while 0.0 < (step := finest * NEXT ** max(0, rounds - ROUNDS)) <= self._coarsest:
            if rounds == 0 or rounds > ROUNDS:
                verdict, agreed = self.agree(y, g, step)
                if verdict:
                    return agreed
                if verdict is False and not accused:
                    accused = True
                    self._require_same(y, g)
                    self._require_kink(y, g, agreed)
            # Every other look is one of those by which y may be left behind.
            reach = (0.5 * self.delta, RESOLVED * self._coarsest)[rounds % 2]
            z = self._near(y, min(BESIDE * finest * NEXT ** (rounds // 2), reach))
            h = self._gradient(z)
            if h is not None:
                alike = np.linalg.norm(h - g) <= ALIKE * np.linalg.norm(g)
                verdict, agreed = self._decided(z, h, max(step, self.finest(z, h)), bool(alike))
                if verdict and alike:
                    return agreed
                away = float(np.linalg.norm(z - y)) / RESOLVED
                if verdict and away <= self._coarsest:
                    beyond = min(beyond, max(agreed, away))
                alikes += bool(alike)
                others += bool(verdict)
                if others > SEVERAL and not alikes and beyond < math.inf:
                    break
                contradictions += bool(alike and verdict is False)
            rounds += 1
        if beyond < math.inf and others >= MOSTLY * alikes and not contradictions:
            return beyond
        if contradictions >= SEVERAL:
            raise ContradictedError
        if not self._clear and (step := self._smoothly(y, g)):
            self.clear = False
            return step
        raise UnresolvedError(self._coarsest)

    def _decided(self, z: Vector, h: Vector, step: float, alike: bool) -> tuple[bool | None, float]:
        """Return what values say; where that is nothing, and counts, what a longer step says."""
        found = self.agree(z, h, step)
        again = self._closely and alike and found[0] is None
        if again and NEXT * step <= self._coarsest:
            found = self.agree(z, h, NEXT * step)
        return found

    def _require_same(self, y: Vector, g: Vector) -> None:
        """Accuse a gradient that is another one when it is asked for again."""
        again = self._gradient(y)
        gap = 0.0 if again is None else float(np.linalg.norm(again - g))
        if gap > NOISE * float(np.linalg.norm(g)):
            raise ContradictedError(gap)

    def _require_kink(self, y: Vector, g: Vector, step: float) -> None:
        """Accuse a gradient where f is straight past y, with another slope: that is no kink."""
        for _ in range(SEVERAL):
            v = step * self._direction()
            at = self.box.clip(y, np.abs(v))
            high, here, low = (self.f.value(self.box.clip(at + k * v)) for k in (1.0, 0.0, -1.0))
            verdict, slope, _ = self._difference(g, 2.0 * v, high, low, False, False)
            miss = abs(slope) * 2.0 * float(np.linalg.norm(v))
            if verdict is not False or not abs(high + low - 2.0 * here) <= STRAIGHT * miss:
                return
        raise ContradictedError

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
            if g is not None and math.isfinite(step := self.finest(z, g)):
                verdict = self.agree(z, g, step)[0]
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

    def _outside(self, faint: Mask, most: float) -> Vector:
        """Return what is resolved along coordinates in which f hardly changes near x.

        It may be flat because the ball is too small: then one sees that farther away.
        """
        reach, steps, looks = FARTHER * self.delta, np.zeros(faint.size), 0
        far = max(FAR * self.delta, 1.0, float(np.abs(self.x).max()))
        unresolved = np.zeros_like(faint)
        while faint.any() and reach <= far and looks < LOOKS:
            z = self.box.reflect(self.x + np.where(faint, reach * self._direction(), 0.0))
            found = self._gradient(z)
            g = np.zeros_like(z) if found is None else found
            felt = faint & (np.abs(g) > 2.0 * most)
            step = self.finest(z, g, felt) if felt.any() else math.inf
            if step == math.inf or (step > FINE * self.delta and reach * FARTHER <= far):
                reach *= FARTHER  # there values change by more
                continue
            verdict = None
            while 0.0 < step <= self._coarsest and not verdict:
                verdict, agreed = self.agree(z, g, step, felt)
                step *= NEXT
            if verdict:
                steps[felt], looks = agreed, looks + 1
                faint, unresolved = faint & ~felt, unresolved & ~felt
            else:
                reach, unresolved = reach * FARTHER, unresolved | felt
        if unresolved.any():
            raise UnresolvedError(self._coarsest)
        if looks < LOOKS:
            self._require_level(faint)
        steps[faint] = steps.max()
        return steps

    def _require_level(self, faint: Mask) -> None:
        """Accuse gradients that do not say that values change across the ball, or around it."""
        for reach in (self.delta, AROUND * self.delta):
            if faint.any() and all(self._rises(faint, reach) for _ in range(NEEDED)):
                raise ContradictedError

    def _rises(self, faint: Mask, reach: float) -> bool:
        """Do values change in proportion, and gradients do not say so?"""
        z, v, slopes = self._direction(), reach * self._direction(faint), []
        z = self.box.reflect(self.x + 0.5 * reach * z)
        g = self._gradient(z)
        if g is None:
            return False
        for part in (0.25, 0.03):
            verdict, slope, _ = self._miss(z, g, part * v, constant=True)
            if verdict is not False:
                return False
            slopes.append(slope)
        # Across a kink gradients change with the values: they do say so.
        ends = (self._gradient(self.box.reflect(z + part * v)) for part in (0.25, -0.25))
        missed = 0.25 * abs(slopes[0]) * float(np.linalg.norm(v))
        if any(h is not None and abs(float((h - g) @ v)) >= missed for h in ends):
            return False
        return 0.25 <= slopes[0] / slopes[1] <= 4.0

    def finest(self, y: Vector, g: Vector, along: Mask | None = None) -> float:
        """Return the shortest step along which rounding of values does not hide a disagreement."""
        if self._size is None:  # about
            here = self._known(y)
            self._size = abs(self.f.value(self.x) if here is None else here)
        steep = float(np.abs(g if along is None else g[along]).sum()) / math.sqrt(g.size)
        # What a unit in the last place of x changes, no value is more exact than.
        size = max(self._size, float(np.abs(g) @ np.abs(y)))
        blur = USUAL * self._unit * size / steep if steep > 0 else math.inf
        step = min(blur / TIGHT, 2.0 * math.sqrt(blur * self.delta / LOOSE))
        # Steps of few units in the last place show what rounding loses.
        spacing = 2.0**9 * self._unit * float(np.abs(y).max(initial=0.0))
        return max(SHORTEST * self.delta, step, spacing)

    def _allowed(self, step: float) -> float:
        return max(TIGHT, LOOSE * step / self.delta)

    def agree(
        self, y: Vector, g: Vector, step: float, along: Mask | None = None
    ) -> tuple[bool | None, float]:
        """True where values around y follow the gradient, and along which step; False where they
        contradict it; or None. Once values have disagreed, one direction in which they follow the
        gradient is not enough: a mistake hides where it is at right angles to the step. They may
        in others, which are looked at, too, where a claim rests on one gradient.

        Two steps that miss by the same slope show a mistake; a kink or curvature changes with them,
        and noise gets smaller. One look that is loose, or for a claim about a level place, may be
        luck: (x + 1e9) - 1e9 is a staircase, and where a step is about a multiple of its own the
        values follow the gradient.
        """
        v, constant = self._direction(along), along is not None
        verdict, slope, blur = self._miss(y, g, step * v, constant)
        sharp = blur * USUAL / ROUNDING * np.linalg.norm(v) <= TIGHT * (np.abs(g) @ np.abs(v))
        luck = self._level or not sharp
        for _ in range((SEVERAL - 1) * bool(verdict and self._alone and not luck)):
            far = max(step, min(TWICE * step, LONGEST * self.delta))
            self._miss(y, g, far * self._direction())  # may disagree
        doubt = self._clear and along is None
        if verdict and (not (luck or doubt) or self._again(y, g, step, along, luck)):
            return True, step if sharp else step / RESOLVED
        accuses = 8.0 * step <= LONGEST * self.delta
        step = min(TWICE * step, LONGEST * self.delta if accuses else self._coarsest)
        second, other, more = self._miss(y, g, step * v, constant, loose=True)
        # What is missed by noise falls with the step, or is explained by rounding in both.
        noise = 0.25 * abs(slope) + (0.0 if sharp else more * USUAL / ROUNDING)
        if not second or abs(other) > noise:
            same = abs(slope - other) <= 0.25 * abs(other) + blur + more
            return False if verdict is second is False and accuses and same else None, step
        return self._again(y, g, step, along, True) or None, step / RESOLVED

    def _again(
        self, y: Vector, g: Vector, step: float, along: Mask | None, loose: bool = True
    ) -> bool:
        """Do values follow the gradient along other directions, and steps that are no multiples?"""
        others = [self.rng.uniform(0.5, 1.0) * step for _ in range(SEVERAL - 1)]
        constant = along is not None
        return all(self._miss(y, g, s * self._direction(along), constant, loose)[0] for s in others)

    def _miss(
        self, y: Vector, g: Vector, step: Vector, constant: bool = False, loose: bool = False
    ) -> tuple[bool | None, float, float]:
        """Compare a central difference with <g, step>: verdict, missed slope, blur of the slope.

        Values that do not change say nothing; or, if they are `constant`, that they should not be.
        """
        if self._bounded:
            step = np.where(self.box.upper - self.box.lower >= 4.0 * np.abs(step), step, 0.0)
        here = None if constant else self._known(y)
        if here is not None:  # one side may do
            verdict = self._difference(g, step, self.f.value(y + step), here, constant, loose)
            if verdict[0]:
                return verdict
        y = self.box.clip(y, np.abs(step)) if self._bounded else y
        ahead, behind = y + step, y - step
        if self._bounded:
            ahead, behind = self.box.clip(ahead), self.box.clip(behind)
        high, low = self.f.value(ahead), self.f.value(behind)
        ahead -= behind
        del behind  # points are long where memory is short
        return self._difference(g, ahead, high, low, constant, loose)

    def _difference(
        self, g: Vector, way: Vector, high: float, low: float, constant: bool, loose: bool
    ) -> tuple[bool | None, float, float]:
        """Compare a difference of values with <g, way>."""
        moduli = np.abs(g)
        rise, most = high - low, float(moduli @ np.abs(way))
        largest = max(abs(high), abs(low), float(moduli @ self._moduli))
        size, blur = max(most, abs(rise)), ROUNDING * self._unit * largest
        clear = math.isfinite(rise) and size > 0.0 and blur <= BLURRED * size and bool(way.any())
        if not clear or (rise == 0.0 and not constant):
            self._clear |= clear
            return None, 0.0, 0.0 if clear else math.inf
        miss, length = rise - float(g @ way), math.sqrt(way @ way)
        gap, allowed = abs(miss) - blur, self._allowed(0.5 * length) * size
        verdict = False if gap > MISTAKE * size else None
        blur *= USUAL / ROUNDING
        loose = loose or blur > TIGHT * size
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
