"""Per-coordinate online-to-nonconvex conversion with a decaying radius, for many variables.

Each coordinate has a learner of its own, clipped Adam with b2 = b1^2 (which is follow the
regularised leader; Ahn and Cutkosky 2024), that chooses its next step within the radius D. The
gradient is taken at a random point of the step. D shrinks by a constant factor: in the end every
coordinate is far closer to its kinks than delta / sqrt(d), and few gradients prove that. No values
are needed. Here is the memory of the search and its arithmetic; its decisions are in
`logic.sweeps`.
"""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.oracles import CountedOracle
from goldstein.solvers.converse import converse
from goldstein.solvers.logic import sweeps

#: What a learner remembers of its sum of gradients; of its sum of squares, the square of this.
KEPT = 0.9

#: The first radius, against the largest entry of x (or 1).
WIDE = 0.1

#: The last radius, against delta / sqrt(d).
NARROW = 1e-3


class CoordinateSweep:
    """A search that is told gradients only; one call of `step` is one gradient.

    Attributes
    ----------
    sweeps, length, steps : sweeps so far, gradients of this one (0 between two), and those it had
    ended : it was told f where it ended
    due : calls when the next one may begin
    losses : how many in a row have lost
    began, last_calls, last_value, others_fell : to compare it with the other searches
    bound : the best bound that was found where it ended
    """

    def __init__(self, dim: int, delta: float, value: float, rng: np.random.Generator) -> None:
        self.dim = dim
        self.rng = rng
        self.sweeps = self.length = self.steps = self.losses = 0
        self.ended = False
        self.due = sweeps.FIRST
        self.began = self.last_calls = 0
        self.last_value = value
        self.others_fell = 0.0
        self.bound = math.inf
        self.point: Vector = np.zeros(0)
        self.reply = math.inf
        self.found: Vector = self.point
        self._last = NARROW * delta / math.sqrt(dim)
        self._radius = self._factor = 0.0
        self.rest()

    def step(self, oracle: CountedOracle) -> bool:
        """Ask for one gradient, or for f in the end; return whether that was the end."""
        converse(oracle, self, sweeps.begin(self), sweeps.told, sweeps.kinked)
        return self.ended

    def depart(self, x: Vector, length: int) -> None:
        """Begin at x."""
        self.length, self.steps, self.ended = length, 0, False
        self._at = x.copy()
        self._step = np.zeros(self.dim)
        self._sum = np.zeros(self.dim)
        self._squares = np.zeros(self.dim)
        self._spare = np.empty(self.dim)
        wide = WIDE * max(1.0, float(np.abs(x).max()))
        self._radius = max(wide, self._last)
        self._factor = (self._last / self._radius) ** (1.0 / length)

    def place_step(self) -> None:
        """Ask at a random point of the step."""
        self.point = self._at + self.rng.random() * self._step

    def place_end(self) -> None:
        self.point = self._at

    def learn(self) -> None:
        """Make the step; let every learner choose its next one."""
        g, step, spare = self.found, self._step, self._spare
        self._at += step
        self._sum *= KEPT
        self._sum += g
        np.multiply(g, g, out=spare)
        self._squares *= KEPT * KEPT
        self._squares += spare
        np.sqrt(self._squares, out=spare)
        step[:] = 0.0
        np.divide(self._sum, spare, out=step, where=spare > 0.0)
        np.clip(step, -1.0, 1.0, out=step)
        step *= -self._radius
        self._radius *= self._factor

    def touched(self) -> float:
        """Return the part of the coordinates whose partial derivative was not always 0."""
        return float(np.count_nonzero(self._squares)) / self.dim

    def rest(self) -> None:
        """Give the memory back until the next sweep."""
        self.length = self.steps = 0
        self.ended = False
        self._at = self._step = self._sum = self._squares = self._spare = np.zeros(0)
