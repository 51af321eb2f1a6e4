"""Quasi-Newton search for functions with kinks (Lewis and Overton 2013): fast, without guarantee.

BFGS with a weak Wolfe line search works astonishingly well on functions with kinks. Nothing that is
proved rests on it: it proposes points, and its gradients are asked for again before they certify.
Here is its memory and its arithmetic; the decisions are those of `logic.line_search`.
"""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import drive
from goldstein.solvers.logic import line_search
from goldstein.solvers.memory import GradientMemory
from goldstein.solvers.metric import FactorMetric, LimitedMetric
from goldstein.solvers.tuning import TUNING


class QuasiNewton:
    """A resumable descent: one call of `step` is one line search.

    The direction minimises the model: maximum of the latest linear pieces plus the quasi-Newton
    quadratic (a variable-metric bundle step, Luksan and Vlcek 1999).

    Attributes
    ----------
    x, fx, g : current point, value and gradient (which is not `known` before the first step)
    moved : the last line search led down
    stuck : no descent was found from here
    barren : not even along the gradient
    length : length of the last step
    null_steps : corrections of the model before a step is cut
    limited : its metric is, though there is room for a dense matrix
    steady : there is no noise in its gradients
    gradients, levels : slope of each linear piece, and its value at x
    y, trial, trial_value : the latest trial x + trial p, and f there
    p, slope, reach : the direction, the slope that the model expects along it, and its length
    """

    def __init__(
        self,
        dim: int,
        rng: np.random.Generator,
        memory: GradientMemory | None = None,
        *,
        dense_limit: int = TUNING.dense_limit,
        pairs: int = TUNING.pairs,
    ) -> None:
        dense = dim <= dense_limit
        self.dim = dim
        self.capacity = min(dim + 10, TUNING.small if dense else pairs)
        self.limited = not dense
        self.steady = True
        # With very many kinks it is no gain to go beyond the step of the model.
        self.extrapolates = dense
        self.gradients: Matrix = np.zeros((self.capacity, dim))
        self.levels: Vector = np.zeros(self.capacity)
        self.pieces = 0
        self.metric: FactorMetric | LimitedMetric
        if dense:
            self.metric = FactorMetric(self.gradients)
        else:
            self.metric = LimitedMetric(self.gradients, pairs)
        self.rng = rng
        self.memory = memory
        self.noting = memory is not None
        self.x: Vector = np.zeros(0)
        self.fx = math.inf
        self.g: Vector = np.zeros(0)
        self.known = False
        self.moved = False
        self.stuck = self.barren = False
        self.scaled = False
        self.length = math.inf
        self.null_steps = TUNING.null_steps
        # The question that is open, the answer, and how often it was asked elsewhere.
        self.phase = self.aside = 0
        self.point: Vector = self.x
        self.reply = math.inf
        self.found: Vector = self.x
        # The line search: its direction, its trial, its bracket and the best trial so far.
        self.p: Vector = self.x
        self.slope = self.reach = 0.0
        self.y: Vector = self.x
        self.trial = 1.0
        self.trial_value = math.inf
        self.attempt = self.trials = self.looks = 0
        #: Who made the first trial; how often, of late, it was wrong with the model and without.
        self.first = 0
        self.model_misses = self.plain_misses = TUNING.guess
        #: How far f fell in all, and in a line search of late.
        self.whole_fall = self.recent_fall = 0.0
        #: Line searches in a row whose model had to be corrected.
        self.corrected = 0
        self.low, self.high = 0.0, math.inf
        self.best_trial, self.best_value, self.best_slot = 0.0, math.inf, -1
        self.best: Vector = self.x
        self._step: Vector = self.x
        self._change: Vector = self.x
        self._rises: Vector = self.x

    def restart(self, x: Vector, fx: float) -> None:
        """Continue from another point; the metric and the pieces are kept."""
        if self.pieces:
            self._step = x - self.x
            self.shift_pieces()
        self.known = self.known and np.array_equal(x, self.x)
        self.x, self.fx = x, fx
        self.stuck = self.barren = False

    def step(self, oracle: CountedOracle) -> bool:
        """Make one line search; return whether it led down."""
        drive(oracle, self, line_search.begin(self), line_search.told, line_search.kinked)
        return self.moved

    # ---------------------------------------------------------------- where to ask

    def place_trial(self, trial: float) -> None:
        self.y = self.point = self.x + (self.p if trial == 1.0 else trial * self.p)

    def step_aside(self, share: float) -> None:
        radius = share * max(1.0, float(np.abs(self.y).max()))
        self.point = self.y + radius * self.rng.standard_normal(self.y.size)

    def note(self) -> None:
        """Let the other member know of the gradient."""
        assert self.memory is not None
        self.memory.add(self.point, self.found, perturbed=False)

    # ---------------------------------------------------------------- the direction

    def minimise_model(self) -> float:
        count = min(self.pieces, self.capacity)
        # How far each piece lies below f at x; one above it has no place in a convex model.
        errors: Vector = self.fx - self.levels[:count]
        np.maximum(errors, -TUNING.above * errors, out=errors)
        image, fall = self.metric.minimise(errors)
        self.p = -image
        return -fall

    def follow_metric(self) -> float:
        self.p = -self.metric.apply(self.g)
        return float(self.p @ self.g)

    def follow_gradient(self) -> float:
        self.p = -self.g
        return -float(self.g @ self.g)

    def direction_length(self) -> float:
        return math.sqrt(self.p.dot(self.p))

    def largest(self) -> float:
        return float(np.abs(self.x).max())

    # ---------------------------------------------------------------- the model

    def slope_found(self) -> float:
        return float(self.found.dot(self.p))

    def store_piece(self, slot: int, level: float) -> None:
        self.gradients[slot] = self.found
        self.levels[slot] = level
        self.metric.replaced(slot)

    def settle_piece(self, slot: int, level: float) -> None:
        self.levels[slot] = level

    def shift_pieces(self) -> None:
        """x moves by the step."""
        self.find_rises()
        self.levels += self._rises

    def find_rises(self) -> None:
        """How much does each piece rise along the step?"""
        self._rises = self.gradients.dot(self._step)

    def measure_change(self, trial: float) -> float:
        """Return s'y for the step s to the best trial and the change y of the gradient."""
        self._step = self.p if trial == 1.0 else trial * self.p
        self._change = self.found - self.g
        return float(self._step.dot(self._change))

    def change_counts(self) -> bool:
        return bool(self._change.dot(self._change) > 0.0)

    def learn(self, sy: float) -> None:
        self.metric.update(self._step, self._change, sy, self._rises)

    def square_of_gradient(self) -> float:
        """Return g'Hg."""
        return self.metric.square(self.g)

    def square_of_change(self) -> float:
        """Return y'Hy."""
        return self.metric.square(self._change)

    def scale_metric(self, factor: float) -> None:
        self.metric.scale(factor)

    def clear_model(self) -> None:
        self.metric.reset()
