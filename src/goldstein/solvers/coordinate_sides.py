"""The proof after a sweep, where every kink is that of one variable: an l1 norm, say.

Two gradients, at opposite corners of a small box around x, show both sides of every variable. If
the partial derivatives cancel with the right shares of the two sides, a few dozen gradients at
chosen corners prove it (`side_expansion`), however many kinks there are. They are left to the half
with the guarantee.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError
from goldstein.oracles import CountedOracle
from goldstein.solvers.logic.sweeps import leave_to_proof, take_in
from goldstein.solvers.side_expansion import HELP, MISSING, SideExpansion, longest_together

#: The corners lie this part of delta from x, about: curvature must not be felt, but kinks must be
#: crossed that a sweep has ended beside.
REACH = 0.02

#: The first two corners, and those of the proof, in units of that: kinks that were crossed once are
#: crossed again, and variables without one stay where none can be met.
FIRST, AGAIN, STILL = (0.7, 1.3), (1.3, 1.6), (0.0, 0.01)


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
        self._below: Vector | None = None
        self._above: Vector | None = None
        self._plan: SideExpansion | None = None

    def step(self, oracle: CountedOracle, s: Any) -> bool:
        """Ask for one gradient; return whether that was the last."""
        y = self._corner()
        try:
            g = oracle.gradient(y)
        except KinkError:  # in floating point a random point may be a kink; the next is another
            return False
        take_in(s, y, g)
        if self._plan is None:
            return self._look(g, s)
        assert self._above is not None
        assert self._below is not None
        self._plan.told(np.abs(g - self._above) < np.abs(g - self._below))
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
            up = self._plan.second()
            again, still = self.rng.uniform(*AGAIN, dim), self.rng.uniform(*STILL, dim)
            height = np.where(self._kinked, again, still)
        height *= self._height
        answer: Vector = self.x + np.where(up, height, -height)
        return answer

    def _look(self, g: Vector, s: Any) -> bool:
        """Take a corner in; after two of them, weigh the sides. Return whether they are no use."""
        if self._above is None:
            self._above = g
            self._up = ~self._up
            return False
        # The first corner had the variables on the other side.
        up = self._up
        above, below = np.where(up, g, self._above), np.where(up, self._above, g)
        jump = above - below
        share = np.divide(-below, jump, out=np.zeros(g.size), where=jump != 0.0).clip(0.0, 1.0)
        if float(np.linalg.norm(below + share * jump)) > HELP * s.eps:
            return True
        self._above, self._below = above, below
        self._kinked = np.abs(jump) > longest_together(np.abs(jump), MISSING * s.eps)
        most = s.most_gradients - s.bundle_size()
        self._plan = SideExpansion(share, float(np.linalg.norm(jump)), s.eps, most)
        return False
