"""Do gradients and values belong to one function? Difference quotients along random directions."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from goldstein.errors import KinkError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.streams import stream
from goldstein.oracles.base import Vector
from goldstein.oracles.counted import CountedOracle

#: Steps relative to the radius; the second one is there to tell kinks and curvature from mistakes.
_STEP, _SHORTER = 2.0**-10, 2.0**-3

#: Allowed disagreement relative to |g|.|v|, beyond the rounding of the values.
_TOLERANCE = 1e-3

#: Values blurred by more than this part of |g|.|v| say nothing.
_BLURRED = 0.05

#: Random points looked at before the gradient is called wrong, and how many must say so.
_POINTS, _NEEDED = 4, 2


def gradient_is_wrong(
    oracle: CountedOracle,
    x: Vector,
    radius: float,
    seed: int,
    known: Iterable[tuple[Vector, Vector]] = (),
) -> bool:
    """Decide whether differences of values contradict the gradients around x.

    One agreement acquits; a contradiction must show at several random points, with two steps that
    agree with each other, because a kink on the way has the same effect at one of them.

    Parameters
    ----------
    oracle : CountedOracle
    x : ndarray
    radius : float
        Size of the neighbourhood; the steps are a thousandth of it.
    seed : int
    known : pairs (point, gradient)
        Tried first: they save the gradients of the random points.

    Examples
    --------
    >>> from goldstein.oracles import FunctionOracle
    >>> right = FunctionOracle(lambda x: np.abs(x).sum(), np.sign)
    >>> wrong = FunctionOracle(lambda x: np.abs(x).sum(), lambda x: 2 * np.sign(x))
    >>> x = np.array([1.0, 2.0])
    >>> [gradient_is_wrong(CountedOracle(f), x, 0.1, 0) for f in (right, wrong)]
    [False, True]
    """
    if not (oracle.has_value and oracle.has_gradient) or oracle.coarse:
        return False
    rng = stream(seed, 0, "agreement")
    for y, g in known:
        if _contradicts(oracle, y, g, rng, radius) is False:
            return False
    contradictions = 0
    for _ in range(_POINTS):
        y = uniform_in_ball(rng, x, 0.5 * radius)
        try:
            verdict = _contradicts(oracle, y, oracle.gradient(y), rng, radius)
        except KinkError:
            continue
        if verdict is False:
            return False
        contradictions += verdict is True
    return contradictions >= _NEEDED


def _contradicts(
    oracle: CountedOracle, y: Vector, g: Vector, rng: np.random.Generator, radius: float
) -> bool | None:
    """True or False where the values are clear, None where they are not."""
    # No entry is small, so that no coordinate goes unnoticed; none is like another, so that
    # mistakes do not cancel.
    v = rng.choice([-1.0, 1.0], y.size) * rng.uniform(0.5, 1.5, y.size)
    expected, scale = float(g @ v), float(np.abs(g) @ np.abs(v))
    step = _STEP * radius / math.sqrt(y.size)
    slopes, allowed = [], []
    # A value seen before tells the blur without another call.
    if 2.0**-49 * abs(oracle.last_value) / step > _BLURRED * scale:
        return None
    for length in (step, _SHORTER * step):
        ahead, behind = y + length * v, y - length * v
        high, low = oracle.trial_value(ahead), oracle.trial_value(behind)
        if not math.isfinite(high - low) or high == low:
            return None  # too far, or values of few digits
        blur = 2.0**-49 * max(abs(high), abs(low)) / length
        slope = (high - low) / (2.0 * length)
        size = max(scale, abs(slope))
        if blur > _BLURRED * size:
            return None
        if abs(slope - expected) <= _TOLERANCE * size + blur:
            return False
        slopes.append(slope)
        allowed.append(blur)
    gap = abs(slopes[1] - expected) - sum(allowed)
    return True if abs(slopes[0] - slopes[1]) <= 0.25 * gap else None
