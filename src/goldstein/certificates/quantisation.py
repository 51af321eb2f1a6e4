"""How fine values are: steps in which they change, which differences over a small box do not show.

Values in single precision, or of a program that stops at a tolerance, are flat over a small box.
Differences there are 0 for no good reason, or those of whatever else was added in full precision (a
penalty, say): the steps that make up the true slope are met by next to no sample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import Box
from goldstein.checker.rounding import UNIT, norm_upper
from goldstein.errors import OracleError

#: Values at many points, one per row.
Many = Callable[[Matrix], Vector]

#: Values are believed to be exact to so many units of rounding.
DIGITS = 4.0

#: Points on a line that show how fine values are; lines, at least; and those searched for a step.
LADDER, LINES, SEARCHED = 9, 4, 2

#: How far one looks for a change, relative to the point.
FAR = 0.1

#: A continuous function changes by about 2^-6 of it over 2^-6 of a segment; a step stays.
LEVELS, STAYS = 6, 0.25


def quantum_of(
    values_at: Many,
    points: Matrix,
    widths: Vector,
    slopes: Vector,
    delta: float,
    box: Box,
    rng: np.random.Generator,
) -> float:
    """Return the size of the steps in which values change around the boxes at some points.

    Steps that `slopes` allow for over a box are none: samples meet them often, as they do noise.
    """
    # f may hardly change along one line for another reason, nor around one of the points.
    centres = np.resize(np.arange(len(points)), max(LINES, len(points)))
    vectors = widths * rng.standard_normal((centres.size, widths.size))
    far = [max(delta, FAR * max(1.0, float(np.abs(y).max()))) for y in points]
    flat = max(
        _quantum_along(values_at, points[j], v, far[j], box) for j, v in zip(centres, vectors)
    )
    free = widths > 0
    allowed = float((2.0 * widths * slopes)[free].min(initial=math.inf))
    picked = rng.integers(len(points), size=SEARCHED)
    vectors = np.where(free, rng.standard_normal((SEARCHED, widths.size)), 0.0)
    steps = [
        _step_along(values_at, points[j], v, (far[j], delta), box)
        for j, v in zip(picked, vectors)
        if free.any()
    ]
    return max(flat, *(step for step in steps if step > allowed), 0.0)


def _quantum_along(values_at: Many, centre: Vector, v: Vector, far: float, box: Box) -> float:
    """Return the size of the steps where values hardly change over a box.

    Where a function is flat on one side of a kink, its values still change by as little as one
    likes.
    """
    reach, scale = norm_upper(v), 1.0 / LADDER
    # Beyond the ball, too: a plateau may be larger than that.
    while 0.0 < scale * reach <= far:
        line = box.clip(centre + np.linspace(-scale, scale, LADDER)[:, None] * v)
        values = values_at(line)
        changes = np.abs(np.diff(values))
        if scale < 1.0 and 2 * (changes > 0).sum() >= changes.size:
            return 0.0
        if changes.any():
            k = int(np.where(changes > 0, changes, np.inf).argmin())
            halvings = 16 + max(0, math.ceil(math.log2(scale)))
            smallest = _smallest_change(values_at, line[k : k + 2], values[k : k + 2], halvings)
            # A continuous function changes by less and less: by 2^-16 of that, or so.
            return smallest if smallest > 2.0**-6 * float(changes.max()) else 0.0
        scale *= 8.0
    return 0.0  # f is flat


def _halvings(
    values_at: Many, ends: Matrix, values: Vector, goes_left: Callable[[float, float], bool]
) -> Iterator[float]:
    """Halve a segment to nothing; give the change of f over the half that is chosen each time."""
    (a, b), (at_a, at_b) = ends, values
    while True:
        middle = 0.5 * (a + b)
        if (middle == a).all() or (middle == b).all():
            return
        here = float(values_at(middle[None])[0])
        if goes_left(abs(here - at_a), abs(at_b - here)):
            b, at_b = middle, here
        else:
            a, at_a = middle, here
        yield float(abs(at_b - at_a))


def _smallest_change(values_at: Many, ends: Matrix, values: Vector, halvings: int) -> float:
    """Return by how much f still changes over the shortest part of a segment where it does."""
    change = float(abs(values[1] - values[0]))
    halves = _halvings(values_at, ends, values, lambda left, right: 0 < left <= (right or left))
    return [change, *itertools.islice(halves, halvings)][-1]


def _step_along(
    values_at: Many, centre: Vector, v: Vector, reaches: tuple[float, ...], box: Box
) -> float:
    """Return by how much values jump somewhere along a line, or 0.

    f need not be defined far away: then one looks nearer.
    """
    for reach in reaches:
        length = reach / norm_upper(v)
        line = box.clip(centre + np.linspace(-length, length, LADDER)[:, None] * v)
        try:
            values = values_at(line)
            if np.isfinite(values).all():
                # Steps that matter are everywhere; one wall (a penalty, a failed run) is not one.
                changes = np.abs(np.diff(values))
                moving = np.flatnonzero(changes)[np.argsort(changes[changes > 0])]
                if not moving.size:
                    return 0.0
                k = int(moving[(moving.size - 1) // 2])
                return _jump(values_at, line[k : k + 2], values[k : k + 2])
        except OracleError as failure:
            try:
                values_at(failure.point[None])
            except OracleError:
                continue  # not defined there; what fails once is broken
            raise
    return 0.0


def _jump(values_at: Many, ends: Matrix, values: Vector) -> float:
    """Return the change that stays when a segment is halved to nothing, the steeper half kept."""
    halves = _halvings(values_at, ends, values, lambda left, right: left >= right)
    changes = [abs(values[1] - values[0]), *halves]
    largest = float(np.abs(values).max())
    last, before = changes[-1], changes[max(0, len(changes) - 1 - LEVELS)]
    return float(last) if last > max(STAYS * before, DIGITS * UNIT * largest) else 0.0
