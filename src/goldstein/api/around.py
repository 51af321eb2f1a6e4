"""`look_around`: which share of a ball is lower than its centre, for functions of any kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import betaincinv

from goldstein.api.inputs import RNG, as_point, is_number
from goldstein.checker.verification import Label
from goldstein.errors import InputError
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.streams import seed_from, stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.function import values_of


@dataclass(frozen=True)
class LookAround:
    """What values at random points of a ball say.

    Attributes
    ----------
    share : float
        Part of the points that were lower than x.
    upper : float
        With the stated confidence, no larger part of the ball is lower than x.
    lowest : float
        The lowest value seen minus f(x); 0 if none was lower.
    point : ndarray
        Where that was; x if none was lower.
    radius, confidence : float
    n : int
    label : str
        "estimated".
    """

    share: float
    upper: float
    lowest: float
    point: Any
    radius: float
    n: int
    confidence: float
    label: Label = "estimated"

    def __repr__(self) -> str:
        return (
            f"{100 * self.share:.3g} % of {self.n} points within {self.radius:g} are lower, at "
            f"most {100 * self.upper:.3g} % of the ball with confidence {self.confidence:g}; "
            f"lowest: {self.lowest:.3g} from f(x), {self.label}"
        )


def look_around(
    fun: Oracle | Callable[..., Any],
    x: Any,
    *,
    radius: float,
    n: int = 3000,
    confidence: float = 0.95,
    rng: RNG = None,
) -> LookAround:
    """Say which share of a ball is lower than its centre: statistics, for any function.

    Parameters
    ----------
    fun : callable, Oracle or Expression
        Only its values are asked for.
    x : array_like
        The centre.
    radius : float
        Points are uniform in the ball of this radius.
    n : int
        How many.
    confidence : float
        Of the upper limit (Clopper and Pearson, Biometrika 26, 1934).
    rng : None, int or Generator

    Returns
    -------
    LookAround

    Examples
    --------
    >>> import goldstein as gs
    >>> seen = gs.look_around(lambda x: abs(x[0]) - 0.1 * abs(x[1]), [0.0, 0.0], radius=1.0, rng=0)
    >>> 0.02 < seen.share < seen.upper < 0.1, seen.lowest < 0, seen.label
    (True, True, 'estimated')
    """
    layout, point = as_point(x, "x")
    for name, value, high in (("radius", radius, np.inf), ("confidence", confidence, 1.0)):
        if not (is_number(value) and 0 < value < high):
            raise InputError(f"{name} must be a number between 0 and {high:g}, got {value!r}.")
    if isinstance(n, bool) or not isinstance(n, int) or n < 1:
        raise InputError(f"n must be a positive integer, got {n!r}.")
    oracle = CountedOracle(values_of(fun, None, (), layout))
    draw = stream(seed_from(rng), 0, "look around")
    here = oracle.value(point)
    lower, best, where = 0, here, point
    for _ in range(n):
        z = uniform_in_ball(draw, point, float(radius))
        value = oracle.value(z)
        lower += value < here
        if value < best:
            best, where = value, z
    upper = 1.0 if lower == n else float(betaincinv(lower + 1, n - lower, confidence))
    return LookAround(lower / n, upper, best - here, where, float(radius), n, float(confidence))
