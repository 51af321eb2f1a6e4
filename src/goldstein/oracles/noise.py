"""How noisy values are: the level of what is not smooth in them, from one table of differences.

After More and Wild, Estimating computational noise (2011): along a line, differences of order k of
a smooth function fall with k, those of noise grow by a known factor.
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.oracles.counted import CountedOracle, Map

#: Below this part of the values it is rounding.
ROUNDING = 2.0**-44

#: Points on a line, and lines: a kink may lie across one of them. So many of the first points show
#: already that values are smooth up to rounding, where they are.
POINTS, LINES, FEW = 7, 2, 4


def noise_level(
    oracle: CountedOracle,
    x: Vector,
    step: Vector,
    rng: np.random.Generator,
    workers: Map = map,
    known: float | None = None,
) -> float:
    """Return the standard deviation of the noise of f around x; 0 if it is but rounding.

    Parameters
    ----------
    oracle : CountedOracle
    x : ndarray
        The points asked are within `POINTS * step` of it.
    step : ndarray
        Along each coordinate; 0 where x must not move.
    rng, workers
    known : float, optional
        The value at x, which is not asked for then.

    Examples
    --------
    >>> from goldstein.oracles.function import ValueOracle
    >>> draw = np.random.default_rng(0)
    >>> noisy = CountedOracle(ValueOracle(lambda x: x @ x + 1e-3 * draw.standard_normal()))
    >>> level = noise_level(noisy, np.ones(3), np.full(3, 1e-7), np.random.default_rng(1))
    >>> 2e-4 < level < 5e-3
    True
    """
    start = oracle.values_at(x[None], workers)[0] if known is None else known
    levels = []
    for _ in range(LINES):
        way = step * rng.uniform(-1.0, 1.0, x.size)
        points = x + np.arange(POINTS)[:, None] * way
        values = np.append(start, oracle.values_at(points[1:FEW], workers))
        if not np.isfinite(values).all():
            continue
        rounding = ROUNDING * float(np.abs(values).max())
        if _level_at(np.diff(values, FEW - 1), FEW - 1) <= rounding:
            return 0.0
        values = np.append(values, oracle.values_at(points[FEW:], workers))
        if not np.isfinite(values).all():
            continue
        level = _level(values)
        if level <= rounding:
            return 0.0
        levels.append(level)
    return min(levels, default=0.0)


def _level_at(differences: Vector, order: int) -> float:
    """Return the standard deviation of noise that has differences of an order of this size."""
    factor = math.factorial(order) ** 2 / math.factorial(2 * order)
    return math.sqrt(factor * float(np.mean(differences**2)))


def _level(values: Vector) -> float:
    """Return the smallest level that two orders of differences agree on; 0 where none do."""
    table, found = values, []
    for order in range(1, 6):
        table = np.diff(table)
        level = _level_at(table, order)
        changes = bool((table > 0).any() and (table < 0).any())
        found.append(level if changes else math.inf)
    pairs = [max(a, b) for a, b in itertools.pairwise(found) if max(a, b) < 4.0 * min(a, b)]
    return min(filter(math.isfinite, pairs), default=0.0)
