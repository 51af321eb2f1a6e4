"""Do gradients and values belong to one function? Difference quotients along random directions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import KinkError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.streams import stream
from goldstein.oracles.counted import CountedOracle

#: Steps relative to the radius: shortest and longest; and the second one relative to the first.
_SHORTEST, _LONGEST, _LONGER = 2.0**-24, 2.0**-10, 2.0**6

#: Rounding of values, which are long sums as a rule, and the part of a slope it may blur at first.
_ROUNDING, _CLEAR = 2.0**-46, 1e-2

#: Disagreement relative to |g|.|v|, beyond the rounding of the values: none, and a mistake.
_TOLERANCE, _MISTAKE = 1e-3, 5e-3

#: Values blurred by more than this part of |g|.|v| say nothing.
_BLURRED = 0.05

#: Random points looked at before the gradient is called wrong, and how many must say so.
_POINTS, _NEEDED = 4, 2

#: Points of a claim that are looked at.
_LOOKED_AT = 4

#: Points beside one that a claim rests on: how many are looked at, how far away they are as a part
#: of the radius (much farther than the longest step: their own kinks are not met), which difference
#: of gradients, relative, is no kink, and how many must contradict: noise in values does, rarely.
_BESIDE, _NEAR, _ALIKE, _SEVERAL = 12, 2.0**-6, 0.1, 3


def gradient_is_wrong(
    oracle: CountedOracle,
    x: Vector,
    radius: float,
    seed: int,
) -> bool:
    """Decide whether differences of values contradict the gradients around x.

    One agreement acquits; a contradiction must show at several random points, with two steps that
    agree with each other, because a kink on the way has the same effect at one of them.

    Parameters
    ----------
    oracle : CountedOracle
    x : ndarray
    radius : float
        Size of the neighbourhood; the steps are a thousandth of it, or less.
    seed : int

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
    contradictions = 0
    for v in _directions(rng, _POINTS, x.size):
        y = uniform_in_ball(rng, x, 0.5 * radius)
        try:
            verdict = _contradicts(oracle, y, oracle.gradient(y), v, radius)
        except KinkError:
            continue
        if verdict is False:
            return False
        contradictions += verdict is True
    return contradictions >= _NEEDED


def heaviest(weights: Vector, points: Matrix, gradients: Matrix) -> list[tuple[Vector, Vector]]:
    """Return the points on which a claim rests most, with their gradients."""
    heavy = weights.tolist()
    order = sorted(range(len(heavy)), key=heavy.__getitem__, reverse=True)[:_LOOKED_AT]
    return [(points[j], gradients[j]) for j in order if heavy[j] > 0]


def claim_is_contradicted(
    oracle: CountedOracle,
    x: Vector,
    radius: float,
    seed: int,
    rests_on: list[tuple[Vector, Vector]],
) -> bool:
    """Decide whether values contradict the gradients around x, or those that a claim rests on.

    Whoever states a claim asks the same as whoever verifies it. Where one of the points agrees with
    its values, random ones around x need not be asked: the gradients are those of the function.
    """
    if not (oracle.has_value and oracle.has_gradient) or oracle.coarse:
        return False
    acquitted = False
    for verdict in _verdicts(oracle, rests_on, x, radius, seed):
        if verdict is True:
            return True
        acquitted |= verdict is False
    if acquitted:
        return False
    wrong = gradient_is_wrong(oracle, x, radius, seed)
    if oracle.last_value == 0.0:
        oracle.value(x)  # values that are no numbers contradict nothing: there must be one
    return wrong


def gradients_are_wrong_at(
    oracle: CountedOracle,
    points: Iterable[tuple[Vector, Vector]],
    x: Vector,
    radius: float,
    seed: int,
) -> bool:
    """Decide whether differences of values contradict one of the gradients that a claim rests on.

    A gradient may be right nearly everywhere and wrong at the one place that matters. Where values
    around such a point contradict its gradient there may be a kink next to it, so they are asked
    for around points beside it, too, whose gradients are like its own: where the gradient is right
    one of them agrees, and where several of them contradict their values, and none agrees, it is
    not.

    Parameters
    ----------
    oracle : CountedOracle
    points : pairs (point, gradient)
        What the claim rests on.
    x : ndarray
    radius : float
        The ball around x in which points are looked at.
    seed : int

    Examples
    --------
    >>> from goldstein.oracles import FunctionOracle
    >>> f = FunctionOracle(lambda x: x[0] + abs(x[1]), lambda x: np.array([np.sign(x[1]), 1.0]))
    >>> points = [(y, f.gradient(y)) for y in np.array([[0.0, 1e-3], [0.0, -1e-3]])]
    >>> gradients_are_wrong_at(CountedOracle(f), points, np.zeros(2), 0.01, 0)
    True
    """
    if not (oracle.has_value and oracle.has_gradient) or oracle.coarse:
        return False
    return any(verdict is True for verdict in _verdicts(oracle, list(points), x, radius, seed))


def _verdicts(
    oracle: CountedOracle,
    points: list[tuple[Vector, Vector]],
    x: Vector,
    radius: float,
    seed: int,
) -> Iterator[bool | None]:
    """Yield for each point whether its gradient is wrong, as far as anybody knows."""
    rng = stream(seed, 0, "agreement at points")
    for (y, g), v in zip(points, _directions(rng, len(points), x.size)):
        yield _wrong_at(oracle, y, g, v, x, radius, rng)


def _directions(rng: np.random.Generator, count: int, dim: int) -> Matrix:
    """Draw directions, one in each row.

    No entry is small, so that no coordinate goes unnoticed; none is like another, so that mistakes
    do not cancel: up to a factor their sizes are uniform between 0.5 and 1.5.
    """
    drawn: Matrix = rng.uniform(-1.0, 1.0, (count, dim))
    drawn += np.copysign(0.5, drawn)
    drawn /= math.sqrt(dim)
    return drawn


def _wrong_at(
    oracle: CountedOracle,
    y: Vector,
    g: Vector,
    v: Vector,
    x: Vector,
    radius: float,
    rng: np.random.Generator,
) -> bool | None:
    """True where the gradient at y is wrong, False where it is right, None where nobody knows."""
    verdict = _contradicts(oracle, y, g, v, radius)
    if verdict is not True:
        return verdict
    contradictions = 0
    for other in _directions(rng, _BESIDE, x.size):
        z = uniform_in_ball(rng, y, _NEAR * radius)
        z = x + (z - x) * min(1.0, radius / max(float(np.linalg.norm(z - x)), radius))
        try:
            h = oracle.gradient(z)
        except KinkError:
            continue
        if np.linalg.norm(h - g) > _ALIKE * np.linalg.norm(g):
            continue  # beyond a kink
        verdict = _contradicts(oracle, z, h, other, radius)
        if verdict is False:
            return False
        contradictions += verdict is True
    return True if contradictions >= _SEVERAL else None


def _contradicts(
    oracle: CountedOracle, y: Vector, g: Vector, v: Vector, radius: float
) -> bool | None:
    """True or False where the values along v are clear, None where they are not."""
    steep = float(np.abs(g).dot(np.abs(v)))
    here = oracle.known_value(y)
    if oracle.values == 0:
        oracle.trial_value(y)  # how many digits a difference has must be known
    # As short as the digits of the values allow: a short step meets no kink.
    digits = _ROUNDING * abs(oracle.last_value) / (_CLEAR * steep) if steep > 0 else math.inf
    spacing = 2.0**-44 * abs(y.item(np.abs(y).argmax()))
    if _LONGEST * radius < spacing:
        return None  # steps of few units in the last place: what values lose to rounding shows
    step = max(_SHORTEST * radius, min(digits, _LONGEST * radius), spacing)
    gaps, sizes = [], []
    longer = min(_LONGER * step, _LONGEST * radius)
    if longer < 8.0 * step:  # two steps alike would show the same noise
        step = longer / 8.0
    for length in (step, longer):
        way = length * v
        ahead, behind = y + way, y - way
        high = oracle.trial_value(ahead)
        # Where f(y) is known, one side may do; curvature and kinks are seen from both.
        expected = length * steep
        if here is not None and _Difference(g, ahead - y, expected, high, here).verdict() is False:
            return False
        low = oracle.trial_value(behind)
        found = _Difference(g, ahead - behind, 2.0 * expected, high, low)
        verdict = found.verdict()
        if verdict is not True:
            return verdict
        gaps.append(found.miss / length)
        sizes.append(found.blur / length)
    # Two steps that miss by the same slope show a mistake; a kink or curvature changes with them.
    return True if abs(gaps[0] - gaps[1]) <= 0.25 * abs(gaps[1]) + sum(sizes) else None


class _Difference:
    """A difference of two values, and what a gradient expects of it: at most so much, |g|.|way|."""

    def __init__(self, g: Vector, way: Vector, most: float, high: float, low: float) -> None:
        rise = high - low
        self.clear = math.isfinite(rise) and rise != 0.0  # neither too far nor of few digits
        self.miss = rise - float(g.dot(way))
        self.size = max(most, abs(rise))
        self.blur = _ROUNDING * max(abs(high), abs(low))

    def verdict(self) -> bool | None:
        """As in `_contradicts`."""
        if not self.clear or self.blur > _BLURRED * self.size:
            return None
        gap = abs(self.miss) - self.blur
        if gap <= _TOLERANCE * self.size:
            return False
        return None if gap <= _MISTAKE * self.size else True
