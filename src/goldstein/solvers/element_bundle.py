"""What is known of the elements of a sum: linear pieces of each one, and its curvature."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.numerics.element_model import (
    ROUGH,
    Cube,
    ElementSystem,
    Mask,
    Minimum,
    along,
    combined,
    minimise_elements,
)

#: A piece that lies above its element, which is then not convex, counts by this times the squared
#: distance of its point, at least.
LOCALITY = 0.5

#: A change of slope over the step, against what is known of the curvature, that must be a kink.
JUMP = 10.0

#: Curvature falls by no more than this factor at once.
FLAT = 1e-2

#: Steps below this part of the largest variable say nothing about curvature where none is known.
SHORT = 1e-3


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
    ) -> tuple[Minimum, float, Vector]:
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
        way = self.system.gather(y - self.x)
        self._learn_curvature(own, gradients)
        # The piece that goes is the most similar one: both sides of a kink stay.
        unlike = np.where(self.used, squares(gradients - self.slopes), -1.0)
        slot = unlike.argmin(axis=0)
        if moves:
            self.levels += along(self.slopes, way)
            self.x, self.values = y, values
            level = values
            self._home = slot
        else:
            # Where that is the one of x itself, the lowest goes.
            heights = self.levels.copy()
            heights[self._home, self._all] = np.inf
            slot = np.where(slot == self._home, heights.argmin(axis=0), slot)
            level = values - (gradients * way).sum(axis=0)
        self._put(slot, level, gradients, own)

    def _put(self, slot: Indices, level: Vector, gradients: Matrix, own: Matrix) -> None:
        everyone = self._all
        self.levels[slot, everyone] = level
        self.slopes[slot, :, everyone] = gradients.T
        self.points[slot, :, everyone] = own.T
        self.used[slot, everyone] = True

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
        shortest = (SHORT * max(1.0, float(np.abs(self.x).max()))) ** 2
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
