"""Gradients a hair beside the points of a claim: what may be believed of a black box.

At a kink a program may return anything (automatic differentiation says 0 for relu(x) - relu(-x) at
0, whose derivative is 1), and where a kink is, a black box does not say. Points displaced at random
are almost surely not on one, so a claim is believed for the gradients there, and for those only.
Any convex combination of gradients from the ball proves the claim: the weights may be chosen anew,
or a function that is merely curved would be refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from goldstein.checker import rounding
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.errors import KinkError

#: Asks the function for a gradient; a kink that it knows of is a `KinkError`.
Gradient = Callable[[Vector], Vector]
#: Proposes weights for which a convex combination of rows is short. Any answer is good enough:
#: weights are not believed, their combination is bounded.
Optimise = Callable[[Matrix], Vector]

#: Draws beside every point before a claim is given up, and the rows they may add up to.
ROUNDS, ROWS = 8, 2000

#: A claim of more numbers than this is large: memory is worth saving.
CROWDED = 1_000_000

#: Gradients asked for again are the same up to this part of their length.
SAME = 1e-9

#: A twin is this part of a hair away: some units in the last place.
TWIN = 2.0**-6


def hair(y: Vector, delta: float) -> Vector:
    """Return how far the entries of a point are displaced: a speck of the ball, and of each entry.

    The speck of the ball is what moves an entry 0 off a kink of a function that adds constants to
    it; some hundred units in the last place move the large entries. Constants of size 1 are met
    most often, so a small entry moves as far as one of size 1 if the ball has room for it.
    """
    room = min(2.0**-30 * delta, 2.0**-44)
    width: Vector = 2.0**-36 * delta + np.maximum(2.0**-44 * np.abs(y), max(room, 2.0**-144))
    return width


def has_room(x: Vector, delta: float) -> bool:
    """Does the ball around x hold enough floats to look beside its points?"""
    return delta > 2.0**-44 * float(np.abs(x).max(initial=0.0)) and delta > 0.0


def beside(
    rng: np.random.Generator, y: Vector, x: Vector, delta: float, hairs: float = 1.0
) -> Vector:
    """Displace y by a hair (or some), at random, within the ball around x."""
    return _within(y + hairs * hair(y, delta) * rng.standard_normal(y.size), x, delta)


def _twin(rng: np.random.Generator, z: Vector, x: Vector, delta: float) -> Vector:
    """Move z by a few units in the last place: a kink it sits on is left behind."""
    step = rng.choice([-1.0, 1.0], z.size) * rng.uniform(1.0, 2.0, z.size)
    return _within(z + TWIN * hair(z, delta) * step, x, delta)


def _within(z: Vector, x: Vector, delta: float) -> Vector:
    """Pull a point that has left the ball back into it."""
    distance = rounding.distance_upper(z, x)
    if distance <= delta:
        return z
    pulled: Vector = x + (z - x) * ((1.0 - 2.0**-30) * delta / distance)
    inside = rounding.distance_upper(pulled, x) <= delta
    return pulled if inside else x + (z - x) * (0.5 * delta / distance)


def rounding_slack(count: int, mean: float) -> float:
    """What rounding may add to the bound of so many rows: another machine sums in another order.

    The scale is that of the combination, sum_j w_j |g_j|: a steep gradient of no weight buys none.
    """
    return 64 * rounding.gamma(count + 8) * mean


def mean_length(weights: Vector, rows: Matrix) -> float:
    """Return sum_j w_j |g_j|."""
    return math.fsum(w * n for w, n in zip(weights.tolist(), rounding.norms_upper(rows)) if w > 0)


def differ(weights: Vector, rows: Matrix, others: Matrix, allowed: float) -> bool:
    """Do gradients asked for again differ by more than is allowed: by more than rounding explains?

    That is a part of their mean length and, where they nearly vanish, a part of the bound.
    """
    gap = math.fsum(w * n for w, n in zip(weights.tolist(), rounding.distances_upper(rows, others)))
    return not gap <= allowed < math.inf


def best_bound(
    rows: Matrix, optimise: Optimise, weights: Vector | None = None
) -> tuple[float, Vector]:
    """Return a bound of the shortest vector of the hull, and its weights (these, or better)."""
    best = np.maximum(optimise(rows), 0.0)
    bound = rounding.combination_norm_upper(best, rows)
    if weights is not None:
        given = rounding.combination_norm_upper(weights, rows)
        if given <= bound:
            return given, weights
    return bound, best


def _is_same(g: Vector, h: Vector) -> bool:
    return rounding.norm_upper(g - h) <= SAME * rounding.norm_upper(g)


@dataclass
class Survey:
    """What gradients beside the points of a claim say.

    Attributes
    ----------
    eps : float
        The smallest bound that was found.
    kinks : int
        Draws that met a kink, as far as the function is able to know.
    draws : int
        How often each point was displaced.
    """

    eps: float = math.inf
    kinks: int = 0
    draws: int = 0


def survey(
    gradient: Gradient,
    x: Vector,
    delta: float,
    points: Sequence[Vector] | Matrix,
    weights: Vector,
    goal: float,
    seed: int,
    optimise: Optimise,
    rounds: int = ROUNDS,
) -> Survey:
    """Look for a combination of gradients beside the points that is at most `goal` long.

    Every gradient that carries weight has a twin some units in the last place away, and the hull
    of the twins must reach the goal too. With floats a displaced point can meet a kink by chance,
    and among many points the weights would pick just that one; its twin finds it out.
    """
    found = Survey()
    # Of every row its draw and its point: the places are drawn again where they are needed again.
    places: dict[int, tuple[int, int]] = {}
    rows = np.empty((2 * len(points), x.size))
    for draw in range(max(2, min(rounds, ROWS // len(points)))):
        rng = np.random.default_rng([seed, draw])
        found.draws += 1
        fresh = []
        for j, y in enumerate(points):
            try:
                g = gradient(beside(rng, y, x, delta))
            except KinkError:
                found.kinks += 1
                continue
            # Of a large claim, what was found beside a point before is replaced if it is the same.
            before = places.items() if len(points) * x.size > CROWDED else ()
            same = (r for r, (_, i) in before if i == j and _is_same(g, rows[r]))
            row = next(same, len(places))
            if row == len(rows):
                rows = np.concatenate([rows, np.empty((8 + row // 8, x.size))])
            rows[row], places[row] = g, (draw, j)
            fresh.append(row)
        if not fresh:
            continue
        # The stored weights belong to the points of one draw, if all of them answered.
        whole = len(fresh) == len(points)
        known = np.bincount(fresh, weights, len(places)).astype(np.float64) if whole else None
        bound, used = best_bound(rows[: len(places)], optimise, known)
        if bound > goal:
            found.eps = min(found.eps, bound)
            continue
        support = np.flatnonzero(used > 0)
        twins = np.empty((support.size, x.size))
        wanted = {places[row]: k for k, row in enumerate(support.tolist())}
        try:
            for earlier in range(draw + 1):
                again = np.random.default_rng([seed, earlier])
                for j, y in enumerate(points):
                    z = beside(again, y, x, delta)
                    if (earlier, j) in wanted:
                        twins[wanted[earlier, j]] = gradient(_twin(rng, z, x, delta))
        except KinkError:
            found.kinks += 1
            continue
        bound = max(bound, best_bound(twins, optimise, used[support])[0])
        found.eps = min(found.eps, bound)
        if bound <= goal:
            break
    return found
