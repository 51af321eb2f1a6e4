"""Per-coordinate online-to-nonconvex conversion with a decaying radius, for many variables.

Each coordinate has a learner of its own, clipped Adam with b2 = b1^2 (which is follow the
regularised leader; Ahn and Cutkosky 2024), that chooses its next step within the radius D. The
gradient is taken at a random point of the step. D shrinks by a constant factor: in the end every
coordinate is far closer to its kinks than delta / sqrt(d), and few gradients prove that. No values
are needed. Here is the memory of the search and its arithmetic; its decisions are in
`logic.portfolio`.

The proof after a sweep, where every variable has a kink of its own: an l1 norm, say.

Gradients at opposite corners of small boxes around x show both sides of every variable, and how
much its partial derivatives depend on the sides of the others (not at all for an l1 norm, in a
chain of terms on those of its neighbours). If 0 lies between the two sides all the same, a few
dozen gradients at chosen corners cancel (`side_expansion`), however many kinks there are. They are
left to the bundle member.
"""

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError
from goldstein.numerics.element_model import Mask
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import gradient_of, value_of
from goldstein.solvers.gather import HELP, MISSING, SideExpansion, longest_together
from goldstein.solvers.logic import portfolio
from goldstein.solvers.logic.portfolio import begin_afresh, leave_to_proof, take_in
from goldstein.solvers.logic.questions import TRIAL

#: What a learner remembers of its sum of gradients; of its sum of squares, the square of this.
KEPT = 0.9

#: The first radius, against the largest entry of x (or 1).
WIDE = 0.1

#: The last radius, against delta / sqrt(d).
NARROW = 1e-4


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
        self.due = portfolio.FIRST
        self.began = self.last_calls = 0
        self.last_value = value
        self.others_fell = 0.0
        self.bound = math.inf
        self.point: Vector = np.zeros(0)
        self.reply = math.inf
        self._last = NARROW * delta / math.sqrt(dim)
        self._radius = self._factor = 0.0
        self.rest()

    def step(self, oracle: CountedOracle) -> bool:
        """Ask for one gradient, or for f in the end; return whether that was the end."""
        if self.steps < self.length:
            # At a random point of the step; in floating point that may be a kink, the next is not.
            found = gradient_of(oracle, self._at + self.rng.random() * self._step)
            if found is None:
                return False
            self._learn(found)
        else:
            self.point, self.ended = self._at, True
            self.reply = value_of(oracle, self.point, TRIAL)
        self.steps += 1
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

    def _learn(self, g: Vector) -> None:
        """Make the step; let every learner choose its next one."""
        step, spare = self._step, self._spare
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


#: The corners lie this part of delta from x, about: curvature must not be felt, but kinks must be
#: crossed that a sweep has ended beside.
REACH = 0.02

#: The corners that are looked at, and those of the proof, in units of that: kinks that were crossed
#: once are crossed again, and variables without one stay where none can be met. Steps of about one
#: length, or neighbours change sides whose steps are much shorter.
FIRST, AGAIN, STILL = (0.9, 1.1), (1.1, 1.4), (0.0, 0.01)

#: Pairs of opposite corners that are looked at, at most: as long as they show something new.
LOOKS = 24

#: Variables that can only cancel for some sides of the others: this part of all jumps, at most.
FEW = 0.03

#: The ratio of the weights grows up to this where variables depend on others.
LARGEST_RATIO = 0.7


class CoordinateSides:
    """One call of `step` is one gradient.

    Parameters
    ----------
    x : ndarray
    delta : float
    rng : Generator
    """

    def __init__(self, x: Vector, delta: float, rng: np.random.Generator) -> None:
        self.x, self.rng = x, rng
        self._height = REACH * delta / math.sqrt(x.size)
        self._up = rng.random(x.size) < 0.5
        #: The gradient at the first corner of a pair.
        self._opposite: Vector | None = None
        self._pairs = 0
        self._plan: SideExpansion | None = None

    def step(self, oracle: CountedOracle, s: Any) -> bool:
        """Ask for one gradient; return whether that was the last."""
        y = self._corner()
        try:
            g = oracle.gradient(y)
        except KinkError:  # in floating point a random point may be a kink; the next is another
            return False
        if self._plan is None:
            if self._pairs == 0:
                take_in(s, y, g)
            return self._look(g, s)
        take_in(s, y, g)
        self._plan.told(g)
        if not self._plan.is_over:
            return False
        leave_to_proof(s, oracle.calls, HELP * s.eps)
        return True

    def _corner(self) -> Vector:
        """Return the next point to ask at."""
        dim = self.x.size
        if self._plan is None:
            up, height = self._up, self.rng.uniform(*FIRST, dim)
        else:
            up = self._plan.second() ^ self._falling
            height = self.rng.uniform(*AGAIN, dim)
            height[~self._kinked] = self.rng.uniform(*STILL, dim - int(self._kinked.sum()))
        height *= self._height
        np.negative(height, out=height, where=~up)
        height += self.x
        return height

    def _look(self, g: Vector, s: Any) -> bool:
        """Take a corner in; after two of them, weigh the sides. Return whether they are no use."""
        if self._opposite is None:
            self._opposite = g
            self._up = ~self._up
            return False
        # The first corner had the variables on the other side.
        other, self._opposite = self._opposite, None
        above, below = np.where(self._up, g, other), np.where(self._up, other, g)
        news = self._note(above, below)
        self._pairs += 1
        (lowest, low), (high, highest) = self._low, self._high
        # Is 0 between the sides of most variables, whatever those of the others?
        few = max(HELP * s.eps, FEW * float(np.linalg.norm(highest - lowest)))
        if _distance_of_0(low, high) > few:
            return True
        if news > MISSING * s.eps and self._pairs < LOOKS:
            self._up = self.rng.random(g.size) < 0.5
            return False
        # And for some sides of the others between those of the rest?
        if _distance_of_0(lowest, highest) > HELP * s.eps:
            return True
        self._prepare(s)
        return False

    def _note(self, above: Vector, below: Vector) -> float:
        """Widen what is known of the partial derivatives on both sides; return by how much."""
        if self._pairs == 0:
            #: Variables whose partial derivative is larger below the kink than above it.
            self._falling: Mask = above < below
            low, high = np.minimum(above, below), np.maximum(above, below)
            #: The smallest and the largest that were seen on either side.
            self._low, self._high = (low, low.copy()), (high, high.copy())
            return math.inf
        news = 0.0
        low = np.where(self._falling, above, below)
        high = np.where(self._falling, below, above)
        for g, (least, most) in ((low, self._low), (high, self._high)):
            news += float(np.square(np.maximum(least - g, 0.0) + np.maximum(g - most, 0.0)).sum())
            np.minimum(least, g, out=least)
            np.maximum(most, g, out=most)
        return math.sqrt(news)

    def _prepare(self, s: Any) -> None:
        """Plan the proof: where a variable may go either way, the mean of the rest is still 0."""
        (lowest, low), (high, highest) = self._low, self._high
        width = highest - lowest
        self._kinked: Mask = width > longest_together(width, MISSING * s.eps)
        begin_afresh(s)
        # The mean that is missing stays between `low` and `high` if it is above this for the one
        # side, and below the same with the other ends for the other.
        sure = (high - low)[self._kinked]
        share = sure / (width[self._kinked] + sure)
        ratio = 1.0 - float(np.median(share)) if share.size else 0.5
        self._plan = SideExpansion(
            np.zeros(width.size),
            float(np.linalg.norm(width)),
            s.eps,
            s.most_gradients,
            least_ratio=min(ratio, LARGEST_RATIO),
        )
        ratio = self._plan.ratio
        self._plan.threshold = 0.5 * (ratio * (low + high) + (1.0 - ratio) * (lowest + highest))
        del self._low, self._high


def _distance_of_0(low: Vector, high: Vector) -> float:
    """Return how far 0 is from the box between these corners."""
    return float(np.linalg.norm(np.maximum(low, 0.0) + np.minimum(high, 0.0)))
