"""Which sides of many kinks the points of a proof should lie on, so that few gradients cancel.

Close to a minimum with many kinks, each has a multiplier t in [0, 1]: the part of the weight that
its second side must get for the gradients to cancel. Random points would need as many gradients as
there are kinks. But where every side can be had at will, points with the weights (1 - r) r^j serve
all kinks at once: each writes its t as a sum of some of these weights, as in a binary expansion,
and after J points what is missing is about r^J in every kink.
"""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.numerics.element_model import Mask

#: Ratio of the weights of successive points; above 1/2 a side that was missed is made up for later.
#: Where there is room for few points, no less than the second number.
RATIO, LEAST_RATIO = 0.6, 0.52

#: What the points leave, over all kinks, against eps.
MISSING = 0.1

#: Points of a proof, at most.
POINTS = 40

#: Gradients that do not bring the bound down to this many eps are left out.
HELP = 10.0


class SideExpansion:
    """What every kink still needs of its second side.

    Parameters
    ----------
    share : ndarray
        Weight that the second sides must get.
    jump : float
        Length of the vector of all jumps.
    eps : float
    most : int
        Points there is room for.
    least_ratio : float
        Ratio of the weights of successive points, at least.

    Attributes
    ----------
    ratio : float
        The one that was chosen.
    threshold : float or ndarray
        Kinks want their second side where this part of what is left is missing.

    Examples
    --------
    >>> plan = SideExpansion(np.array([0.0, 0.3, 1.0]), 1.0, 0.01, 40)
    >>> got = np.zeros(3)
    >>> while not plan.is_over:
    ...     second = plan.second()
    ...     got += plan.weight * second
    ...     plan.told(second)
    >>> bool(np.abs(got - [0.0, 0.3, 1.0]).max() < 0.001)
    True
    """

    threshold: float | Vector = 0.5

    def __init__(
        self, share: Vector, jump: float, eps: float, most: int, least_ratio: float = LEAST_RATIO
    ) -> None:
        digits = math.log(MISSING * eps / max(jump, eps))
        most = max(2, min(POINTS, most))
        self.ratio = max(LEAST_RATIO, least_ratio, min(RATIO, math.exp(digits / most)))
        wanted = math.ceil(digits / math.log(self.ratio))
        self._weights = expansion(max(2, min(most, wanted)), self.ratio)
        self._missing, self._left = share.copy(), 1.0
        self._count = 0

    @property
    def is_over(self) -> bool:
        return self._count == len(self._weights)

    @property
    def weight(self) -> float:
        """Weight of the next point."""
        return float(self._weights[self._count])

    def second(self) -> Mask:
        """Which kinks want their second side next?"""
        return wants_second(self._missing, self._left, self.threshold)

    def told(self, there: Mask | Vector) -> None:
        """Take note of which ones had it, or how much of it."""
        self._missing = self._missing - self.weight * there
        self._left -= self.weight
        self._count += 1


def expansion(count: int, ratio: float = RATIO) -> Vector:
    """Return the weights of so many points; the last one gets what is left.

    Examples
    --------
    >>> expansion(3).round(2)
    array([0.4 , 0.24, 0.36])
    """
    weights: Vector = (1.0 - ratio) * np.power(ratio, np.arange(count, dtype=np.float64))
    weights[-1] += 1.0 - weights.sum()
    return weights


def wants_second(missing: Vector, left: float, threshold: float | Vector = 0.5) -> Mask:
    """Which kinks need their second side next, of what is left in all?"""
    wanted: Mask = missing >= threshold * left
    return wanted


def longest_together(lengths: Vector, limit: float) -> float:
    """Return the largest of as many of the shortest lengths as make a vector within the limit.

    Examples
    --------
    >>> longest_together(np.array([4.0, 1.0, 3.0]), 4.0)
    3.0
    """
    shortest = np.sort(lengths)
    return float(shortest[np.cumsum(shortest * shortest) <= limit * limit].max(initial=0.0))
