"""Points on chosen sides of the kinks of many elements at once.

Close to a minimum of a sum of many elements, every element has a kink of its own next to x, and a
share of the weight that its second side must get for the gradients to cancel; `side_expansion`
says which sides a few points must lie on for that, and here they are placed there.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.element_model import FINE, Cube, Mask, Minimum, minimise_elements
from goldstein.solvers.element_bundle import ElementBundle, squares
from goldstein.solvers.side_expansion import longest_together

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
    share : (K,): weight that the second side must get
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
        self.share: Vector = np.where(near_second, weights, 0.0).sum(axis=0)
        # Where curvature may be all there is to the two sides: to be decided next to x.
        bend = (bundle.curvature * bundle.curvature).sum(axis=(0, 1))
        way = bundle.points[first, :, everyone] - bundle.points[second, :, everyone]
        self._curved: Mask = away[second, everyone] <= CURVED**2 * bend * squares(way.T)
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
        # One that is no kink asks for a long way to where its pieces would meet.
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
        way = self.bundle.system.gather(y - self.bundle.x)
        level = values - (gradients * way).sum(axis=0)
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
    ) -> Minimum:
        used = np.stack([np.ones_like(self.kinked), self.kinked])
        slopes = np.stack(self.slopes)
        return minimise_elements(
            self.bundle.system, levels, slopes, used, curvature, mu, FINE, late
        )

    def move(self, y: Vector, values: Vector) -> None:
        """Let x be y."""
        way = self.bundle.system.gather(y - self.bundle.x)
        for side in range(2):
            self.levels[side] = self.levels[side] + (self.slopes[side] * way).sum(axis=0)
        self.bundle.x, self.bundle.values = y, values

    def _step(self, heights: Vector) -> Vector:
        """Return the shortest step that rises so far above the kinks."""
        return self._solve(self.bundle.system.scatter(self._normal * heights))
