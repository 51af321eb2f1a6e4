"""A bound that holds with a stated confidence, for functions known through samples only.

How fine values are: steps in which they change, which differences over a small box do not show.

Values in single precision, or of a program that stops at a tolerance, are flat over a small box.
Differences there are 0 for no good reason, or those of whatever else was added in full precision (a
penalty, say): the steps that make up the true slope are met by next to no sample.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import Box
from goldstein.checker.rationals import exact_floats
from goldstein.checker.rounding import UNIT, distance_upper, norm_upper
from goldstein.errors import InputError, InputTypeError, OracleError
from goldstein.oracles.base import Oracle
from goldstein.result import InNotebooks

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
    lines = zip(centres, vectors)
    flat = max(_quantum_along(values_at, points[j], v, far[j], box) for j, v in lines)
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
