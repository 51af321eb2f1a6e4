"""Counter-based random streams: the same (seed, step, purpose) gives the same draws everywhere.

Uniform points of balls and spheres.

The conic perturbation of Algorithm 1: a random point of a segment that is tilted at random.
"""

import math
import secrets
import zlib
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from scipy.linalg.blas import daxpy

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import InputError, InputTypeError

_WORD = 2**64


class _Key(ISeedSequence):
    """A key for a generator, as it is: one that gets no seed asks the system for one first."""

    def __init__(self, words: list[int]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint64) -> Any:
        return self._words


def stream(seed: int, step: int, purpose: str) -> np.random.Generator:
    """Return the generator of one step and one purpose.

    Streams are independent of each other and of the order in which they are opened, so a run can be
    replayed, resumed or split over workers bit for bit.

    Parameters
    ----------
    seed : int
        Seed of the run.
    step : int
        Counter: outer iteration, round, training step.
    purpose : str
        What the draws are for; different purposes never share draws.

    Examples
    --------
    >>> stream(7, 3, "ball").random() == stream(7, 3, "ball").random()
    True
    >>> stream(7, 3, "ball").random() == stream(7, 4, "ball").random()
    False
    """
    key = _Key([seed % _WORD, zlib.crc32(purpose.encode())])
    # The low counter words advance with the draws; the step lives in the high ones.
    counter = np.array([0, 0, step % _WORD, seed // _WORD % _WORD], dtype=np.uint64)
    # Any ISeedSequence will do, whatever the types say.
    return np.random.Generator(np.random.Philox(key, counter=counter))  # type: ignore[arg-type]


#: Constants of SplitMix64 (Steele, Lea and Flood 2014).
MIX_INCREMENT = 0x9E3779B97F4A7C15
MIX_ROUNDS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))
MIX_UNIT = 2.0**-53


@lru_cache(maxsize=128)
def mixing_key(seed: int, purpose: str) -> int:
    """Return the key that `mixed_uniform` needs, 64 bits of `stream(seed, 0, purpose)`."""
    return int(stream(seed, 0, purpose).integers(_WORD, dtype=np.uint64, endpoint=False))


def mixed_uniform(key: int, step: int) -> float:
    """Return one number of [0, 1) for a step: a stream so short that any device can compute it.

    It takes six operations on 64-bit words, where `stream` takes a generator; use it for a draw per
    step that must not wait for the host.

    Examples
    --------
    >>> key = mixing_key(7, "position")
    >>> mixed_uniform(key, 3) == mixed_uniform(key, 3), mixed_uniform(key, 3) < 1.0
    (True, True)
    """
    z = (key + step * MIX_INCREMENT) % _WORD
    for shift, factor in MIX_ROUNDS:
        z = (z ^ (z >> shift)) * factor % _WORD
    return ((z ^ (z >> 31)) >> 11) * MIX_UNIT


def seed_from(rng: int | np.integer | np.random.Generator | None) -> int:
    """Turn the user's `rng` argument into the integer seed that a result records.

    Examples
    --------
    >>> seed_from(5)
    5
    """
    if rng is None:
        return secrets.randbits(63)
    if isinstance(rng, np.random.Generator):
        return int(rng.integers(2**63))
    if isinstance(rng, int | np.integer) and not isinstance(rng, bool):
        if rng < 0:
            raise InputError(f"rng must be a non-negative integer, got {rng}.")
        return int(rng)
    raise InputTypeError(
        "rng must be None, a non-negative int or a numpy.random.Generator, "
        f"got {type(rng).__name__}."
    )


#: Longest points, radii and gradients that a search computes with: it needs their squares.
LONGEST = 1e152

#: Smallest radius, in units of rounding at x: below it a ball has hardly any points.
_FLOOR = 1e4 * 2.0**-53


def size_of(x: Vector) -> float:
    """Return the size of the largest entry."""
    return abs(x.item(np.abs(x).argmax()))


def smallest_delta(x: Vector) -> float:
    """Return the smallest radius that float64 can sample at a point of this size."""
    return _FLOOR * max(1.0, size_of(x))


def shrink(dim: int) -> float:
    """Return the factor by which balls are sampled smaller, so that rounding stays inside."""
    return 1.0 - 2.0**-40 - dim * 2.0**-50


def inner_radius(centre: Vector, radius: float) -> float:
    """Return a slightly smaller radius: what is drawn within it stays in the ball after rounding.

    Adding an offset to the centre rounds each coordinate to a unit of |y_i| <= |x_i| + radius. In a
    ball too small for that to matter half of the radius is kept.
    """
    return _inside(radius, centre.size, math.sqrt(centre.dot(centre)))


def _inside(radius: float, dim: int, length: float) -> float:
    """The same where the length of the centre is known."""
    return max(radius * shrink(dim) - 2.0**-51 * (length + radius), 0.5 * radius)


def uniform_in_ball(rng: np.random.Generator, centre: Vector, radius: float) -> Vector:
    """Draw a uniform point of the closed ball, safely inside it in floating point.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> y = uniform_in_ball(rng, np.zeros(3), 2.0)
    >>> bool(np.linalg.norm(y) <= 2.0)
    True
    """
    direction: Vector = rng.standard_normal(centre.size)
    length = math.sqrt(direction.dot(direction))
    # |U|^(1/d) is the radial law; a zero Gaussian vector has probability 0 but must not divide.
    share = rng.random() ** (1.0 / centre.size)
    scale = inner_radius(centre, radius) * share / (length or 1.0)
    direction *= scale
    direction += centre
    return direction


def uniform_in_balls(rng: np.random.Generator, centres: Matrix, radii: Sequence[float]) -> Matrix:
    """Draw a point of each ball: up to rounding those that `uniform_in_ball` draws one by one.

    Examples
    --------
    >>> one, many = np.random.default_rng(0), np.random.default_rng(0)
    >>> centres = np.eye(3)
    >>> each = [uniform_in_ball(one, centre, 2.0) for centre in centres]
    >>> np.allclose(uniform_in_balls(many, centres, [2.0] * 3), each, rtol=1e-14, atol=1e-14)
    True
    """
    dim = centres.shape[1]
    directions = np.empty(centres.shape)
    shares = []
    for direction in directions:
        rng.standard_normal(out=direction)
        shares.append(rng.random() ** (1.0 / dim))
    lengths = np.vecdot(directions, directions).tolist()
    scales = [
        _inside(radius, dim, math.sqrt(far)) * share / (math.sqrt(length) or 1.0)
        for radius, far, share, length in zip(
            radii, np.vecdot(centres, centres).tolist(), shares, lengths
        )
    ]
    directions *= np.array(scales)[:, None]
    directions += centres
    return directions


def sphere_shadow(rng: np.random.Generator, dim: int) -> Vector:
    """Draw the first `dim` coordinates of a uniform point of the unit sphere of R^(dim+1).

    For every subspace the orthogonal projection of this vector has a density, which is what makes
    the conic perturbation of Algorithm 1 avoid null sets.
    """
    v: Vector = rng.standard_normal(dim)
    last = rng.standard_normal()
    v *= 1.0 / (math.sqrt(v @ v + last * last) or 1.0)
    return v


#: Up to this dimension the cone is as wide as in Algorithm 1.
WIDE = 10


def narrow(ratio: float, dim: int) -> float:
    """Return q = |m|/L as the opening of the cone, smaller in many dimensions.

    The proof needs some tilt, and none larger than q/8. The more variables, the more kinks a tilted
    segment crosses one by one that the straight one crosses together, and it is their joint
    crossing that cancels m.

    Examples
    --------
    >>> narrow(0.5, 2), narrow(0.5, 1000), narrow(3.0, 2)
    (0.5, 0.005, 1.0)
    """
    return min(ratio, 1.0) * min(1.0, WIDE / dim)


def tilt(rng: np.random.Generator, m: Vector, norm: float) -> Vector:
    """Return b: a sphere shadow made orthogonal to m (E|b|^2 = (d-1)/(d+1), |b| <= 1).

    In one dimension b is 0.
    """
    v, share, along = _shadow(rng, m, norm)
    v *= share
    daxpy(m, v, a=-share * along)
    return v


def conic_point(
    rng: np.random.Generator, x: Vector, m: Vector, norm: float, radius: float, ratio: float
) -> Vector:
    """Draw y uniformly from [x, x'] where x' is the tilted trial point of Algorithm 1.

    x' = x - (1 - q/8) delta m/|m| + (delta q/8) b with q = `ratio` = |m|/L and b = `tilt`. Then
    |x' - x| <= delta for 0 <= q <= 8, and y has a density: it almost surely misses any null set.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> x, m = np.zeros(2), np.array([3.0, 4.0])
    >>> y = conic_point(rng, x, m, 5.0, 0.1, 1.0)
    >>> bool(0 < np.linalg.norm(y - x) <= 0.1)
    True
    """
    reach = inner_radius(x, radius) * (1.0 - rng.random())  # in (0, 1]: never the apex x itself
    y, share, along = _shadow(rng, m, norm)
    share *= reach * ratio / 8.0
    # y - x = share v - (share along + ...) m: the tilt and the step in one pass over each vector.
    y *= share
    daxpy(m, y, a=-(share * along + reach * (1.0 - ratio / 8.0) / norm))
    y += x
    return y


def _shadow(rng: np.random.Generator, m: Vector, norm: float) -> tuple[Vector, float, float]:
    """Return (v, share, along) with tilt = share (v - along m): no pass more than needed.

    share v is the shadow of a uniform point of the sphere of R^(d+1).
    """
    v: Vector = rng.standard_normal(m.size)
    last = rng.standard_normal()
    if m.size == 1:
        v[0] = 0.0
        return v, 0.0, 0.0
    share = 1.0 / (math.sqrt(v.dot(v) + last * last) or 1.0)
    return v, share, (v.dot(m) / norm) / norm


def trial_point(
    x: Vector, m: Vector, norm: float, radius: float, ratio: float, out: Vector | None = None
) -> Vector:
    """Return x - (1 - q/8) delta m/|m|, the descent trial of Algorithm 1."""
    y: Vector = np.multiply(m, -radius * (1.0 - ratio / 8.0) / norm, out=out)
    y += x
    return y
