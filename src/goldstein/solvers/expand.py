"""The expanding search after a successful step of Bundle-PINGD."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from goldstein.oracles import CountedOracle
from goldstein.solvers.base import VALUE_LIMIT, State

Vector = NDArray[np.float64]


def expand(
    oracle: CountedOracle,
    state: State,
    origin: Vector,
    origin_value: float,
    m: Vector,
    norm: float,
    step: float,
) -> float:
    """Double the step that led from `origin` to `state.x` while the decrease stays proportional.

    The state follows every success, so that nothing is lost when the calls run out on the way.
    Returns the first length that was not taken.
    """
    length = 2.0 * step
    while state.fx >= VALUE_LIMIT:
        farther = origin - (length / norm) * m
        there = oracle.trial_value(farther)
        if there >= state.fx or there - origin_value >= -0.25 * length * norm:
            break
        state.x, state.fx = farther, there
        length *= 2.0
    return length
