"""A bound that holds with a stated confidence, for functions known through samples only."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.rationals import exact_floats
from goldstein.checker.rounding import distance_upper
from goldstein.display import InNotebooks
from goldstein.errors import InputError, InputTypeError
from goldstein.oracles.base import Oracle

#: The largest part of the capital that is staked.
_STAKE = 0.9

#: Halvings of the interval in which the limit lies; the end on the safe side is returned.
_HALVINGS = 30


def lower_limits(samples: Matrix, miss: float) -> Vector:
    """Return lower limits of the means of the columns, each wrong with probability <= `miss`.

    For X_1, ..., X_n in [0, 1], independent with mean m, and bets l_t >= 0 that depend on X_1,
    ..., X_(t-1) only, with l_t m <= c < 1, the capital K = prod_t (1 + l_t (X_t - m)) is
    positive and has expectation 1: each factor has conditional expectation 1. By Markov P(K >=
    1/a) <= a, so the true mean is, with probability 1 - a, among those m whose capital is below
    1/a. Every factor falls with m, hence these m are an interval [lower, 1]. (Waudby-Smith and
    Ramdas, Estimating means of bounded random variables by betting, 2024, who also choose the
    bets as below.) The interval is as short as the variance allows, up to a term c' log(1/a) /
    n; nothing about the variance is assumed.

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
    return np.sqrt(-2.0 * math.log(miss) / (n * before))


@dataclass(frozen=True)
class ConfidenceBound(InNotebooks):
    """With probability at least `confidence`, dist(0, Goldstein set at x) <= `eps`.

    Attributes
    ----------
    x : ndarray
    delta : float
        Radius of the ball that holds the points.
    eps : float
        `observed + slack`.
    confidence : float
        Over the fresh samples only; the points were fixed before.
    observed : float
        Norm of the sample mean of the combined gradients.
    slack : float
        `G (1 + sqrt(2 ln(1/gamma))) / sqrt(n)`.
    samples : int
        `n`.
    gradient_bound : float
        `G`, an almost sure bound of every combined sample gradient, as stated by the caller.
    label : str
        Always "estimated": it is statistics, and `G` is taken on trust.
    """

    x: Vector
    delta: float
    eps: float
    confidence: float
    observed: float
    slack: float
    samples: int
    gradient_bound: float
    label: str = "estimated"

    def __repr__(self) -> str:
        return (
            f"<ConfidenceBound ({self.eps:.3g}, {self.delta:.3g})-Goldstein stationary with "
            f"confidence {self.confidence:.4g}, {self.samples} samples, {self.label}>"
        )


def sampling_slack(samples: int, gradient_bound: float, confidence: float) -> float:
    """Return how far the mean of n vectors of norm <= G may lie from its expectation.

    `G (1 + sqrt(2 ln(1/gamma))) / sqrt(n)` with probability `1 - gamma`: the norm of the centred
    mean has expectation at most `G / sqrt(n)`, and changing one vector moves it by at most `2 G /
    n` (McDiarmid).

    Examples
    --------
    >>> round(sampling_slack(10_000, 1.0, 0.99), 4)
    0.0403
    """
    if isinstance(samples, bool) or samples < 1:
        raise InputError(f"samples = {samples} must be a positive integer.")
    if not (math.isfinite(gradient_bound) and gradient_bound >= 0.0):
        raise InputError(f"gradient_bound = {gradient_bound} must be a finite number >= 0.")
    if not 0.0 < confidence < 1.0:
        raise InputError(f"confidence = {confidence} must lie strictly between 0 and 1.")
    tail = math.sqrt(-2.0 * math.log1p(-confidence))
    return gradient_bound * (1.0 + tail) / math.sqrt(samples)


def confidence_bound(
    oracle: Oracle,
    x: ArrayLike,
    points: ArrayLike,
    weights: ArrayLike,
    *,
    samples: int,
    gradient_bound: float,
    confidence: float = 0.99,
    rng: np.random.Generator,
) -> ConfidenceBound:
    """Bound the stationarity of x from fresh samples.

    Points and weights must be fixed before and independently of the samples drawn here, for
    instance on other data. Each sample is shared by all points.

    Parameters
    ----------
    oracle : Oracle
        Its `sample(y, rng)` draws one noisy gradient; the same rng state draws the same sample.
    x : array_like
    points : array_like, shape (k, d)
    weights : array_like, shape (k,)
        Convex weights.
    samples : int
        Fresh samples to draw.
    gradient_bound : float
        Almost sure bound `G` of the norm of a sample's gradient at every point. A sample above it
        is an error: the bound was wrong.
    confidence : float
        `1 - gamma`.
    rng : numpy.random.Generator

    Returns
    -------
    ConfidenceBound

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> stream = gs.SampleStream(lambda x, rng: np.sign(x - rng.uniform(-1, 1, x.size)))
    >>> bound = confidence_bound(stream, [0.0], [[-0.01], [0.01]], [0.5, 0.5], samples=2000,
    ...                          gradient_bound=1.0, rng=np.random.default_rng(0))
    >>> bound.eps < 0.15, bound.label
    (True, 'estimated')
    """
    centre = np.atleast_1d(exact_floats(x, "x"))
    places = np.atleast_2d(exact_floats(points, "points"))
    convex = np.atleast_1d(exact_floats(weights, "weights"))
    if places.shape != (convex.size, centre.size):
        raise InputError(
            f"points have shape {places.shape}, expected {(convex.size, centre.size)}: one row per "
            "weight, one column per variable."
        )
    if not ((convex >= 0.0).all() and abs(math.fsum(convex) - 1.0) <= 1e-9):
        raise InputError("weights must be non-negative and sum to 1.")
    if not isinstance(rng, np.random.Generator):
        raise InputTypeError(f"rng is {type(rng).__name__}, expected a numpy.random.Generator.")
    slack = sampling_slack(samples, gradient_bound, confidence)
    total = np.zeros(centre.size)
    for _ in range(samples):
        seed = int(rng.integers(2**63))
        for place, weight in zip(places, convex):
            # The same seed at every point: one sample, seen from all of them.
            g = oracle.sample(place.copy(), np.random.default_rng(seed))
            norm = math.sqrt(float(g @ g))
            if not norm <= gradient_bound * (1.0 + 1e-12):
                raise InputError(
                    f"a sample has gradient norm {norm:g} above gradient_bound = "
                    f"{gradient_bound:g}; the bound must hold for every sample. Raise it."
                )
            total += weight * g
    mean = total / samples
    observed = math.sqrt(float(mean @ mean))
    return ConfidenceBound(
        x=centre, delta=max(distance_upper(place, centre) for place in places),
        eps=observed + slack, confidence=confidence, observed=observed, slack=slack,
        samples=samples, gradient_bound=float(gradient_bound),
    )  # fmt: skip


def confidence_of(
    certificate: GoldsteinCertificate,
    oracle: Oracle,
    *,
    samples: int,
    gradient_bound: float,
    confidence: float = 0.99,
    rng: np.random.Generator,
) -> ConfidenceBound:
    """Carry a certificate of training data over to the population, with confidence.

    The points and weights of `certificate` are reused; `oracle` draws samples that played no part
    in finding them (held-out data, or the live stream).
    """
    return confidence_bound(
        oracle, certificate.x, certificate.points, certificate.weights, samples=samples,
        gradient_bound=gradient_bound, confidence=confidence, rng=rng,
    )  # fmt: skip
