"""What is known of the elements of a sum: linear pieces of each one, and its curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.numerics.element_model import (
    Cube,
    ElementSystem,
    Mask,
    Minimum,
    minimise_elements,
)

#: A piece that lies above its element, which is then not convex, counts by this times the squared
#: distance of its point, at least.
LOCALITY = 0.5

#: A change of slope over the step, against what is known of the curvature, that must be a kink.
JUMP = 10.0

#: Steps below this part of the largest variable say nothing about curvature where none is known.
SHORT = 1e-3

#: Age, in steps, is worth this much weight when a piece has to go.
AGE = 1e-4


class ElementBundle:
    """Linear pieces of every element around x, all elements at once.

    Attributes
    ----------
    x, values : the point, and the values of the elements there
    levels, slopes, points : (K, p), (K, p, m), (K, p, m): the pieces, at x, and where they are from
    used : (K, p), bool
    weights : (K, p): multipliers of the last model
    curvature : (K, m, m)
    """

    def __init__(
        self, system: ElementSystem, pieces: int, x: Vector, values: Vector, gradients: Matrix
    ) -> None:
        self.system = system
        count, width = gradients.shape
        self.x, self.values = x, values
        self.levels: Matrix = np.zeros((count, pieces))
        self.slopes: Cube = np.zeros((count, pieces, width))
        self.points: Cube = np.zeros((count, pieces, width))
        self.used: Mask = np.zeros((count, pieces), dtype=bool)
        self.weights: Matrix = np.zeros((count, pieces))
        self.curvature: Cube = np.zeros((count, width, width))
        self._bent: Mask = np.zeros(count, dtype=bool)
        self._age: Matrix = np.zeros((count, pieces))
        self._all: Indices = np.arange(count)
        # The piece that belongs to x must not go while x stays.
        self._home: Indices = np.zeros(count, dtype=np.intp)
        self._put(self._home, values, gradients, system.gather(x))

    @property
    def value(self) -> float:
        return float(self.values.sum())

    def model(
        self, mu: float, late: Callable[[], bool] = lambda: False
    ) -> tuple[Minimum, float, Vector]:
        """Minimise the model; return the fall it predicts and the gradient it ends with, too."""
        own = self.system.gather(self.x)
        errors = self.values[:, None] - self.levels
        gaps = self.points - own[:, None]
        far = LOCALITY * np.vecdot(gaps, gaps)
        errors = np.where(errors < 0.0, np.maximum(-errors, far), errors)
        found = minimise_elements(
            self.system, self.values[:, None] - errors, self.slopes, self.used, self.curvature, mu,
            late,
        )  # fmt: skip
        self.weights = found.weights
        step = self.system.gather(found.v)
        bent = np.matmul(self.curvature, step[:, :, None])[:, :, 0]
        quadratic = 0.5 * (mu * float(found.v @ found.v) + float(np.vecdot(step, bent).sum()))
        combined = np.matmul(found.weights[:, None], self.slopes)[:, 0]
        fall = float((self.values - found.tops).sum()) - quadratic
        return found, fall, self.system.scatter(combined)

    def learn(self, y: Vector, values: Vector, gradients: Matrix, moves: bool) -> None:
        """Take the elements at y in; x moves there, or stays."""
        own = self.system.gather(y)
        way = self.system.gather(y - self.x)
        self._learn_curvature(own, gradients)
        priority = np.where(self.used, self.weights - AGE * self._age, -np.inf)
        if moves:
            self.levels += np.matmul(self.slopes, way[:, :, None])[:, :, 0]
            self.x, self.values = y, values
            level = values
        else:
            priority[self._all, self._home] = np.inf
            level = values - np.vecdot(gradients, way)
        slot = priority.argmin(axis=1)
        if moves:
            self._home = slot
        self._put(slot, level, gradients, own)

    def _put(self, slot: Indices, level: Vector, gradients: Matrix, own: Matrix) -> None:
        place = self._all, slot
        self._age += 1.0
        self.levels[place], self.slopes[place], self.points[place] = level, gradients, own
        self.used[place], self._age[place] = True, 0.0

    def _learn_curvature(self, own: Matrix, gradients: Matrix) -> None:
        """BFGS, element by element, between points on the same side of its kinks.

        Among the pieces it is the one whose slope differs least, for its distance, from the new.
        """
        changes = gradients[:, None] - self.slopes
        steps = own[:, None] - self.points
        lengths = np.vecdot(steps, steps)
        known = self.used & (lengths > 0.0)
        rates = np.where(known, np.vecdot(changes, changes) / np.where(known, lengths, 1.0), np.inf)
        place = self._all, rates.argmin(axis=1)
        y, s, rate, square = changes[place], steps[place], rates[place], lengths[place]
        sy = np.vecdot(s, y)
        sizes = np.sqrt(np.vecdot(self.curvature, self.curvature).sum(axis=1))
        usual = float(np.median(sizes[self._bent])) if self._bent.any() else 0.0
        limit = (JUMP * np.maximum(sizes, usual)) ** 2
        shortest = (SHORT * max(1.0, float(np.abs(self.x).max()))) ** 2
        plausible = np.where(self._bent, rate <= limit, square >= shortest)
        good = np.isfinite(rate) & (sy > 1e-8 * square) & plausible
        first = good & ~self._bent
        scale = np.vecdot(y, y)[first] / sy[first]
        self.curvature[first] = scale[:, None, None] * np.eye(y.shape[1])
        self._bent |= first
        image = np.matmul(self.curvature, s[:, :, None])[:, :, 0]
        along = np.vecdot(s, image)
        good &= along > 1e-12 * square
        y, image, sy, along = y[good], image[good], sy[good], along[good]
        self.curvature[good] += (
            y[:, :, None] * y[:, None] / sy[:, None, None]
            - image[:, :, None] * image[:, None] / along[:, None, None]
        )
