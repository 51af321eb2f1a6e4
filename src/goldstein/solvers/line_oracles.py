"""Where to ask for the next gradient after a step along -m has failed.

The step failed, so f falls by less than |m|/4 per unit on the way: somewhere on the segment the
gradient g has <g, m> well below |m|^2, and with g in the bundle its shortest vector gets shorter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, cast, get_args

import numpy as np
from numpy.typing import NDArray

from goldstein.errors import InputError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.cone import conic_point
from goldstein.oracles import CountedOracle

Vector = NDArray[np.float64]
Line = Literal["random", "bisection", "hybrid"]

#: A gradient with <g, m> at most this share of |m|^2 is what a bisection looks for.
_SUCCESS = 0.5
#: Halvings before a bisection gives up.
_HALVINGS = 8
#: Midpoints are displaced at random by this share of the interval, off any kink.
_DISPLACED = 1e-3


def check_line(line: str) -> Line:
    """Refuse an unknown line oracle."""
    if line not in get_args(Line):
        raise InputError(f"line must be one of {', '.join(get_args(Line))}; got {line!r}.")
    return cast(Line, line)


def gradients_along(
    line: Line,
    oracle: CountedOracle,
    rng: np.random.Generator,
    x: Vector,
    fx: float,
    m: Vector,
    norm: float,
    radius: float,
    ratio: float,
    end_value: float,
) -> Iterator[tuple[Vector, Vector]]:
    """Yield points of the segment from x along -m, with their gradients; the last one counts.

    `random` draws one point of the tilted segment of Algorithm 1. `bisection` halves the segment
    and keeps the half along which f falls less, until a gradient at a midpoint is good enough; for
    weakly convex and for smooth functions that takes logarithmically many halvings, for others it
    may fail. `hybrid` falls back on a random point then, which keeps the guarantee of Algorithm 1
    at a constant factor. `end_value` is f at the trial point of the failed step.
    """
    if line != "random":
        left, right = 0.0, 1.0 - ratio / 8.0
        left_value, right_value = fx, end_value
        for _ in range(_HALVINGS):
            middle = 0.5 * (left + right)
            centre = x - (middle * radius / norm) * m
            y = uniform_in_ball(rng, centre, _DISPLACED * (right - left) * radius)
            g = oracle.gradient(y)
            yield y, g
            if float(g @ m) <= _SUCCESS * norm * norm:
                return
            value = oracle.value(y)
            if right_value - value >= value - left_value:
                left, left_value = middle, value
            else:
                right, right_value = middle, value
    if line != "bisection":
        y = conic_point(rng, x, m, norm, radius, ratio)
        yield y, oracle.gradient(y)
