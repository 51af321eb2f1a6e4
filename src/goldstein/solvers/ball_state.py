"""The ball that Algorithm 1 works in: what a step remembers, and its arithmetic.

The constants of Algorithm 1 (Perturbed INGD), each as a small function.

Corrected as explained in docs/errata.md; L is a Lipschitz constant on the delta-neighbourhood of
the sublevel set of the start, q = |m|/L.
"""

import math
import sys
import warnings
from dataclasses import dataclass, field

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.numerics.streams import conic_point, trial_point
from goldstein.solvers.base import State

#: What could be asked for once, see `check_line`.
LINES = ("random", "bisection", "hybrid")


def check_line(line: str) -> None:
    """Say that there is no choice any more: over the suite the three needed as many calls."""
    if line not in LINES:
        raise InputError(f"line must be one of {', '.join(LINES)}; got {line!r}.")
    if line != "random":
        message = f"line={line!r} is ignored, and goes with the next release: drop the option."
        warnings.warn(message, DeprecationWarning, stacklevel=4)


_EMPTY: Vector = np.zeros(0)


@dataclass(slots=True)
class BallState(State):
    """A centre, a combination m of gradients from the ball around it, and a step along -m.

    Attributes
    ----------
    eps, delta : the request
    phase, point, reply, found : the question that is open, and the answer to it
    centre, centre_value : the centre of the ball and f there
    m : the combination of gradients
    failed_steps : descent steps that failed since the last success
    span : the step goes so far
    norm, ratio : length of m in this step, and its ratio q to the Lipschitz constant
    look_radius : the part of the ball where gradients are asked for
    """

    eps: float = 0.0
    delta: float = math.inf
    phase: int = 0
    point: Vector = field(default_factory=lambda: _EMPTY)
    reply: float = math.inf
    found: Vector = field(default_factory=lambda: _EMPTY)
    rng: np.random.Generator = field(default_factory=np.random.default_rng)
    centre: Vector = field(default_factory=lambda: _EMPTY)
    centre_value: float = math.inf
    m: Vector | None = None
    failed_steps: int = 0
    span: float = 0.0
    norm: float = 0.0
    ratio: float = 0.0
    look_radius: float = 0.0
    #: Memory for the next trial point.
    spare: Vector | None = None
    #: m as it was when the step began.
    _aimed: Vector = field(default_factory=lambda: _EMPTY)

    def place_descent(self) -> None:
        """Ask at the trial point of Algorithm 1."""
        m = self.m
        assert m is not None
        self._aimed = m
        self.point = trial_point(self.centre, m, self.norm, self.span, self.ratio, self.spare)
        self.spare = None

    def place_farther(self) -> None:
        """Ask at the end of a step of length `span`."""
        self.point = self.centre - (self.span / self.norm) * self._aimed

    def draw_conic(self) -> None:
        """Ask at a random point of the tilted segment."""
        self.point = conic_point(
            self.rng, self.centre, self._aimed, self.norm, self.look_radius, self.ratio
        )


#: Failure probability of one round. 1/e makes the product of rounds and steps cheapest.
CHEAP_ROUND_FAILURE = 1.0 / math.e


def averaging_weight(q: float) -> float:
    """Return beta(q): the weight of the old average that minimises the proof's bound on E|m'|^2.

    Valid for 0 <= q <= 1; beyond that L was too small (beta even has a pole at q = 1.833751).

    Examples
    --------
    >>> averaging_weight(1.0)
    0.5
    """
    return (8.0 - q - 4.0 * q * q) / (8.0 - q - q**3)


def steps_per_round(
    lipschitz: float, eps: float, round_failure: float = CHEAP_ROUND_FAILURE
) -> int:
    """Return K: after this many failed steps |m| <= eps fails with probability < round_failure.

    Examples
    --------
    >>> steps_per_round(1.0, 0.1, 1 / 16), steps_per_round(1.0, 0.1)
    (8000, 1360)
    """
    ratio = lipschitz / eps
    if not ratio < 1e100:  # more steps than anyone will make, but still a number
        return sys.maxsize
    return max(1, math.ceil(_snap(5.0 * ratio**2 / round_failure)))


def descent_steps(gap: float, eps: float, delta: float) -> int:
    """Return T: more moves than this would take f below f(x1) - gap.

    Examples
    --------
    >>> descent_steps(1.0, 0.1, 0.1)
    400
    """
    return max(1, math.ceil(_snap(4.0 * gap / (eps * delta))))


def rounds(moves: int, gamma: float, round_failure: float = CHEAP_ROUND_FAILURE) -> int:
    """Return R: restarts at one point, so that all T points fail with probability <= gamma.

    Examples
    --------
    >>> rounds(400, 0.01, 1 / 16), rounds(400, 0.01)
    (4, 11)
    """
    return max(1, math.ceil(math.log(moves / gamma) / math.log(1.0 / round_failure)))


def _snap(value: float) -> float:
    """Undo the last-bit error of the division, so that 4/(0.1*0.1) means 400 and not 401."""
    nearest = round(value)
    return float(nearest) if abs(value - nearest) <= 1e-12 * value else value
