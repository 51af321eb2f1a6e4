"""Loops over vectors that Numba turns into vector instructions.

Random points: xoshiro256++ (Blackman and Vigna 2021) and Marsaglia's polar method.

The four words of the generator belong to the run: no global generator is touched, and the same
seed gives the same draws however the run is cut into stretches.
"""

import math
from typing import Any

import numpy as np

from goldstein.solvers.compiled.records import make_kernels, words


def dot(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


def length(a: Any) -> Any:
    return math.sqrt(dot(a, a))


def distance(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return math.sqrt(total)


def copy(source: Any, target: Any) -> None:
    for i in range(source.size):
        target[i] = source[i]


def fill(value: Any, target: Any) -> None:
    for i in range(target.size):
        target[i] = value


def add_multiple(factor: Any, a: Any, target: Any) -> None:
    for i in range(a.size):
        target[i] += factor * a[i]


def scale(factor: Any, target: Any) -> None:
    for i in range(target.size):
        target[i] *= factor


def move(x: Any, factor: Any, direction: Any, target: Any) -> None:
    """Set target = x + factor direction."""
    for i in range(x.size):
        target[i] = x[i] + factor * direction[i]


def largest(a: Any) -> Any:
    """Return the largest absolute value."""
    top = 0.0
    for i in range(a.size):
        if abs(a[i]) > top:
            top = abs(a[i])
    return top


_ROOM = 2.0**-40


def _rotated(word: Any, by: Any) -> Any:
    return (word << np.uint64(by)) | (word >> np.uint64(64 - by))


def uniform(state: Any) -> Any:
    """Return a number of [0, 1)."""
    answer = _rotated(state[0] + state[3], 23) + state[0]
    shifted = state[1] << np.uint64(17)
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotated(state[3], 45)
    return np.float64(answer >> np.uint64(11)) * 2.0**-53


def fill_normal(search: Any, target: Any) -> Any:
    """Fill with independent standard normal numbers, and return one more."""
    return normal_numbers(words(search.draws, 4), target)


def normal_numbers(state: Any, target: Any) -> Any:
    spare = 0.0
    have = False
    for i in range(target.size + 1):
        if have:
            number = spare
            have = False
        else:
            square = 2.0
            while square >= 1.0 or square == 0.0:
                a = 2.0 * uniform(state) - 1.0
                b = 2.0 * uniform(state) - 1.0
                square = a * a + b * b
            scale = math.sqrt(-2.0 * math.log(square) / square)
            number = a * scale
            spare = b * scale
            have = True
        if i < target.size:
            target[i] = number
    return number


def inner_radius(centre: Any, radius: Any) -> Any:
    """Return a slightly smaller radius: draws within it stay in the ball after rounding."""
    rounding = 2.0**-51 * (math.sqrt(dot(centre, centre)) + radius)
    smaller = radius * (1.0 - _ROOM - centre.size * 2.0**-50) - rounding
    return max(smaller, 0.5 * radius)


def ball_point(search: Any, centre: Any, radius: Any) -> None:
    """Ask at a uniform point of the ball."""
    y = search.point
    fill_normal(search, y)
    norm = length(y)
    share = uniform(words(search.draws, 4)) ** (1.0 / centre.size)
    move(centre, inner_radius(centre, radius) * share / (norm if norm > 0.0 else 1.0), y, y)


def draw_conic(search: Any) -> None:
    """Ask at a random point of the tilted segment of Algorithm 1 (see `numerics.cone`)."""
    x, m, y, norm = search.centre, search.aimed, search.point, search.norm
    reach = inner_radius(x, search.look_radius) * (1.0 - uniform(words(search.draws, 4)))
    last = fill_normal(search, y)
    share = 0.0
    along = 0.0
    if y.size > 1:
        share = reach * search.ratio / 8.0 / math.sqrt(dot(y, y) + last * last)
        along = (dot(y, m) / norm) / norm
    back = share * along + reach * (1.0 - search.ratio / 8.0) / norm
    for i in range(y.size):
        y[i] = x[i] + share * y[i] - back * m[i]


make_kernels(globals())
