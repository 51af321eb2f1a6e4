"""Gradients at perturbed points: what may be believed of a black box.

At a kink a program may return anything (automatic differentiation says 0 for relu(x) - relu(-x) at
0, whose derivative is 1), and where a kink is, a black box does not say. Points displaced at random
are almost surely not on one, so a claim is believed for the gradients there, and for those only.
Any convex combination of gradients from the ball proves the claim: the weights may be chosen anew,
or a function that is merely curved would be refused.

Displacements are no shorter than what the values of f resolve (`goldstein.checker.resolution`):
nearer by, (x + 1e9) - 1e9 is on its kink wherever x is.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from goldstein.checker import rounding
from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.constrained.limits import Box
from goldstein.checker.errors import KinkError

#: Draws beside every point before a claim is given up, and the rows they may add up to.
ROUNDS, ROWS = 8, 2000

#: Gradients asked for again are the same up to this part of their length.
SAME = 1e-9

#: A gradient that differs from that of its twin by more than this part of its length met a kink.
JUMP = 2.0**-10

#: A twin is this part of a perturbation away: no plateau of rounding is as wide.
TWIN = 2.0**-2

#: Perturbations are at most this part of what the bounds leave free: a reflected point stays off
#: the faces.
THIN = 2.0**-3

#: Entries of points that are moved together.
TOGETHER = 2**16

#: Asks for a gradient of the function with this number at a point; a known kink is a `KinkError`.
Ask = Callable[[int, Vector], Vector]
#: Bounds a combination of rows of these functions: with the known weights, and with better ones.
Bound = Callable[[Matrix, Indices, Vector | None], tuple[float, Vector]]


def has_room(x: Vector, delta: float, box: Box, coarse: str = "") -> bool:
    """Do the ball around x and the box hold enough floats to look beside points?

    Squares of steps that are short against the ball must not underflow; and single precision, of
    `coarse` gradients, must tell points of the ball from x.
    """
    widths = (box.upper - box.lower)[~box.fixed]
    least, size = min(delta, widths.min(initial=np.inf)), float(np.abs(x).max(initial=0.0))
    told = not coarse or delta >= 100 * 2.0**-24 * max(1.0, size)
    return bool(told and least > max(2.0**-44 * size, 2.0**-400))


def radius(y: Vector, delta: float, resolution: Vector | float = 0.0) -> Vector:
    """Return how far the entries of a point are displaced: a speck of the ball, and of each entry.

    The speck of the ball is what moves an entry 0 off a kink of a function that adds constants to
    it; some hundred units in the last place move the large entries. Constants of size 1 are met
    most often, so a small entry moves as far as one of size 1 if the ball has room for it.
    """
    room = max(min(2.0**-30 * delta, 2.0**-44), 2.0**-144)
    own = np.maximum(room, np.asarray(resolution) / math.sqrt(y.shape[-1]))
    width: Vector = 2.0**-36 * delta + np.maximum(2.0**-44 * np.abs(y), own)
    return width


class Neighbourhood:
    """The part of the ball around x that is inside the bounds, and how f resolves it."""

    def __init__(self, x: Vector, delta: float, box: Box, resolution: Vector | float = 0.0) -> None:
        self.x, self.delta, self.box, self.resolution = x, delta, box, resolution

    def perturbed(self, rng: np.random.Generator, y: Vector, times: float = 1.0) -> Vector:
        """Displace y at random by its perturbation radius, or some of them; or all rows of y."""
        return self.inside(y + self._steps(y, times) * rng.standard_normal(y.shape))

    def twin(self, rng: np.random.Generator, z: Vector) -> Vector:
        """Move z by a few units in the last place: a kink it sits on is left behind."""
        step = rng.uniform(-1.0, 1.0, z.shape)
        return self.inside(z + TWIN * self._steps(z) * (step + np.copysign(1.0, step)))

    def _steps(self, y: Vector, times: float = 1.0) -> Vector:
        wide = times * radius(y, self.delta, self.resolution)
        return np.minimum(wide, THIN * (self.box.upper - self.box.lower))

    def inside(self, z: Vector) -> Vector:
        """Pull a point that has left the ball or the box back into them; or all rows of z."""
        z = self.box.reflect(z)
        if z.ndim > 1:
            for row in np.flatnonzero(np.array(rounding.distances_upper(z, self.x)) > self.delta):
                z[row] = self.inside(z[row])
            return z
        for factor in (1.0 - 2.0**-30, 0.999, 0.5):
            distance = rounding.distance_upper(z, self.x)
            if distance <= self.delta:
                return z
            z = self.box.clip(self.x + (z - self.x) * (factor * self.delta / distance))
        return z


def in_parts(
    move: Callable[[Matrix], Matrix], points: Sequence[Vector] | Matrix
) -> Iterator[Vector]:
    """Yield points that are moved, some at a time: long ones one by one, for their memory."""
    some = max(1, TOGETHER // len(points[0]))
    for first in range(0, len(points), some):
        yield from move(np.array(points[first : first + some]))


def resample(
    ask: Ask, place: Neighbourhood, points: Matrix, owners: Indices,
    weights: Vector, bound: Bound, goal: float, seed: int, rounds: int = ROUNDS,
) -> float:  # fmt: skip
    """Return the smallest bound of gradients at perturbed points; the search ends at `goal`.

    Every gradient that carries weight has a twin some units in the last place away, and the twins
    must reach the goal too. With floats a displaced point can meet a kink by chance, and among many
    points the weights would pick just that one; its twin finds it out.
    """
    best = math.inf
    # Of every row the point it belongs to, and the place next to that where it was found.
    keys: list[tuple[int, Vector]] = []
    refuted: set[int] = set()  # by their twins
    rows: list[Vector] = []
    for draw in range(max(2, min(rounds, ROWS // len(points)))):
        fresh, rng = [], np.random.default_rng([seed, draw])
        for j, z in enumerate(in_parts(partial(place.perturbed, rng), points)):
            try:
                g = ask(int(owners[j]), z)
            except KinkError:
                continue
            row = _row_of(g, j, keys, rows)
            if row == len(rows):
                rows.append(g)
                keys.append((j, z))
            elif row in refuted:  # the same gradient elsewhere
                keys[row] = j, z
                refuted.remove(row)
            fresh.append(row)
        if not fresh:
            continue
        used = np.array(fresh)
        of = np.array([owners[j] for j, _ in keys])
        complete = weights if len(fresh) == len(points) else None
        value, chosen = bound(np.array([rows[r] for r in used]), of[used], complete)
        if value > goal and draw:
            used = np.array([r for r in range(len(keys)) if r not in refuted])
            value, chosen = bound(np.array([rows[r] for r in used]), of[used], None)
        if value <= goal:
            support = np.flatnonzero(chosen > 0)
            carry = used[support]
            others = in_parts(partial(place.twin, rng), [keys[r][1] for r in carry])
            try:
                twins = np.array(list(map(ask, of[carry].tolist(), others)))
            except KinkError:
                continue
            value = max(value, bound(twins, of[carry], chosen[support])[0])
            if value <= goal:
                return min(best, value)
            refuted.update(r for r, twin in zip(carry.tolist(), twins) if _differ(twin, rows[r]))
        best = min(best, value)
    return best


def _row_of(g: Vector, j: int, keys: list[tuple[int, Vector]], rows: list[Vector]) -> int:
    """Return a new row; what was found beside a point before is not kept twice."""
    known = (r for r, key in enumerate(keys) if key[0] == j and not _differ(g, rows[r], SAME))
    return next(known, len(keys))


def _differ(g: Vector, h: Vector, share: float = JUMP) -> bool:
    return rounding.norm_upper(g - h) > share * rounding.norm_upper(g)
