"""Confidence limits for the means of bounded variables, by betting against wrong means.

For X_1, ..., X_n in [0, 1], independent with mean m, and bets l_t >= 0 that depend on X_1, ...,
X_(t-1) only, with l_t m <= c < 1, the capital K = prod_t (1 + l_t (X_t - m)) is positive and has
expectation 1: each factor has conditional expectation 1. By Markov P(K >= 1/a) <= a, so the true
mean is, with probability 1 - a, among those m whose capital is below 1/a. Every factor falls with
m, hence these m are an interval [lower, 1]. (Waudby-Smith and Ramdas, Estimating means of bounded
random variables by betting, 2024, who also choose the bets as below.) The interval is as short as
the variance allows, up to a term c' log(1/a) / n; nothing about the variance is assumed.
"""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Matrix, Vector

#: The largest part of the capital that is staked.
_STAKE = 0.9

#: Halvings of the interval in which the limit lies; the end on the safe side is returned.
_HALVINGS = 30


def lower_limits(samples: Matrix, miss: float) -> Vector:
    """Return lower limits of the means of the columns, each wrong with probability <= `miss`.

    Parameters
    ----------
    samples : ndarray, shape (n, m)
        Independent rows, entries in [0, 1].
    miss : float

    Examples
    --------
    >>> x = np.full((100, 1), 0.5)
    >>> float(lower_limits(x, 0.05)[0].round(4))
    0.4829
    """
    n = len(samples)
    bets = _bets(samples, miss)
    threshold = -math.log(miss)
    low, high = np.zeros(samples.shape[1]), samples.mean(axis=0)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        with np.errstate(divide="ignore"):
            stakes = np.minimum(bets, _STAKE / middle)
        capital = np.log1p(stakes * (samples - middle)).sum(axis=0)
        # Rounding of n logarithms must not let a mean be excluded.
        excluded = capital >= threshold + 1e-12 * n
        low, high = np.where(excluded, middle, low), np.where(excluded, high, middle)
    return low


def mean_limits(samples: Matrix, bounds: Vector, miss: float) -> tuple[Vector, Vector]:
    """Return limits of the means of columns with entries in [-bound, bound].

    All limits hold together with probability at least 1 - `miss`.
    """
    moving = bounds > 0.0
    low, high = np.zeros(bounds.size), np.zeros(bounds.size)
    if moving.any():
        share = miss / (2 * int(moving.sum()))
        half = samples[:, moving] / (2.0 * bounds[moving])
        rising, falling = np.clip(0.5 + half, 0.0, 1.0), np.clip(0.5 - half, 0.0, 1.0)
        low[moving] = 2.0 * bounds[moving] * (lower_limits(rising, share) - 0.5)
        high[moving] = -2.0 * bounds[moving] * (lower_limits(falling, share) - 0.5)
    return low, high


def _bets(samples: Matrix, miss: float) -> Matrix:
    """Bets for each draw from the draws before it: larger where these varied little."""
    n = len(samples)
    count = np.arange(1, n + 1)[:, None]
    means = (0.5 + np.cumsum(samples, axis=0)) / (count + 1)
    spread = (0.25 + np.cumsum((samples - means) ** 2, axis=0)) / (count + 1)
    before = np.vstack([np.full((1, samples.shape[1]), 0.25), spread[:-1]])
    found: Matrix = np.sqrt(-2.0 * math.log(miss) / (n * before))
    return found
