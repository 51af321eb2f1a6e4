"""Search for the shortest vector of the Goldstein set at one fixed point.

The proof of Algorithm 1 needs the segment from x against the shortest vector m: f falls there, or
a gradient is found that m has not accounted for. A certificate at a fixed point is another matter.
Where f falls (beside a minimum, or at a saddle or a maximum, which may be stationary too) the
segment shows one piece again and again, and the gradients that cancel m are elsewhere.

Points of a proof on definite sides of the kinks next to x.

A search that has arrived crowds at the kinks: what it knows are gradients at points so close to
them that a displaced point is on another side, and no claim that rests on these survives. But its
gradients say which pieces are active at x, and where each of them rules: f being their maximum
there, up to curvature, piece j does where <g_j - g_i, d> is positive for all others. The direction
in which it does so by the largest margin is the shortest vector of the hull of the normals. So one
gradient per piece, at a random point a part of delta away in that direction, is a proof that
survives. Of a sum of kinks there are more pieces than gradients known: then those that are missing
are where the shortest vector points to.

Which sides of many kinks the points of a proof should lie on, so that few gradients cancel.

Close to a minimum with many kinks, each has a multiplier t in [0, 1]: the part of the weight that
its second side must get for the gradients to cancel. Random points would need as many gradients as
there are kinks. But where every side can be had at will, points with the weights (1 - r) r^j serve
all kinks at once: each writes its t as a sum of some of these weights, as in a binary expansion,
and after J points what is missing is about r^J in every kink.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics import streams
from goldstein.numerics.element_model import Mask
from goldstein.numerics.hull import Hull, min_norm_weights
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import Evidence, Request, gradient_of, value_of
from goldstein.solvers.logic.questions import VALUE

#: A bound this small relative to the gradients is rounding error: nothing more to gain.
_FLOOR = 1e-14


#: A gradient that m accounts for up to this part of |m|^2 is nothing new.
NEW = 1e-3

#: After so many of them in a row, or so many gradients (more in many variables) without visible
#: gain, every other point is looked for elsewhere.
_STUCK, _SLOW = 2, 6

#: The cone is at least this wide: a claim must not rest on points next to the kinks that x is on.
_OPEN = 3e-3

#: A fall is more than this part of a value: rounding does not explain it.
ROUNDED = 2.0**-46

#: Patience once f is seen to fall: the point is not stationary, and the bound is for the record.
SETTLED = 30


@dataclass
class Enrichment:
    """Gradients of randomly drawn points near x; grows from call to call."""

    points: list[Vector] = field(default_factory=list)
    gradients: list[Vector] = field(default_factory=list)
    #: A direction along which f falls by more than a quarter of radius times bound.
    descent: Vector | None = None
    #: How far along it.
    descent_step: float = 0.0
    #: And by how much.
    descent_fall: float = 0.0
    kinks: int = 0
    #: f at x, once it is known, and the point where it was last compared with that.
    value: float | None = None
    tried: Vector | None = None

    def value_at(self, oracle: CountedOracle, x: Vector) -> float:
        """Return f at x, asked for once."""
        if self.value is None:
            self.value = value_of(oracle, x, VALUE)
        return self.value

    def saw(self, fall: float, least: float, along: Vector, step: float) -> None:
        """Take note of a step, if f falls by more than the least that counts."""
        if fall > least:
            self.descent, self.descent_fall, self.descent_step = along, fall, step

    def compare(
        self, oracle: CountedOracle, x: Vector, m: Vector, norm: float, radius: float, ratio: float
    ) -> None:
        """Compare f a step against m with f at x, once for each such step."""
        trial = streams.trial_point(x, m, norm, radius, ratio)
        if self.tried is not None and np.array_equal(trial, self.tried):
            return
        self.tried, here = trial, self.value_at(oracle, x)
        fall = here - oracle.value(trial)
        # What rounding explains is no fall.
        least = max(0.25 * radius * norm, ROUNDED * abs(here))
        self.saw(fall, least, -m / norm, radius * (1.0 - ratio / 8.0))


def enrich(
    oracle: CountedOracle,
    x: Vector,
    target: Request,
    found: Enrichment,
    *,
    patience: int,
    max_gradients: float = math.inf,
    deadline: float = math.inf,
) -> None:
    """Add gradients to `found` until the bound is eps, stops improving, or calls or time run out.

    Each new point lies on the tilted segment of Algorithm 1 against the current shortest vector,
    so every gradient is one the vector has not yet accounted for.
    """
    if max_gradients == 0 or (found.points and time.perf_counter() >= deadline):
        return
    eps, radius = target.eps, target.delta
    rng = streams.stream(target.seed, len(found.points), "certify")
    hull = Hull(x.size, max(8, 2 * len(found.points)), min(deadline, oracle.deadline))
    for g in found.gradients:
        hull.add(g)
    lipschitz = max((math.sqrt(g @ g) for g in found.gradients), default=0.0)
    milestone, since, asked, old, turn = math.inf, 0, 0, 0, 0
    m, norm = x, 0.0
    try:
        while asked < max_gradients and (not found.points or time.perf_counter() < deadline):
            if hull.size == 0:
                y = streams.uniform_in_ball(rng, x, radius)
            else:
                m = hull.solve()[1]
                norm = math.sqrt(m @ m)
                if norm <= max(eps, _FLOOR * lipschitz):
                    return
                if norm <= 0.9 * milestone:
                    milestone, since = norm, 0
                ratio = streams.narrow(max(norm / lipschitz, _OPEN), x.size)
                # Values are for the report only: look at the steps 1, 2, 4, 8, ... and at the end.
                look = asked & (asked - 1) == 0 or since == patience - 1
                if look and found.descent is None and oracle.has_value:
                    found.compare(oracle, x, m, norm, radius, ratio)
                if since >= (patience if found.descent is None else min(patience, SETTLED)):
                    return
                stuck = old >= _STUCK or since >= max(_SLOW, x.size // 8)
                if stuck and (asked % 2 or found.descent is not None):
                    support = [found.points[j] for j in hull.support.tolist()]
                    y = elsewhere(rng, turn, x, m, norm, radius, ratio, support)
                    turn += 1
                else:
                    y = streams.conic_point(rng, x, m, norm, radius, ratio)
            asked += 1
            since += 1
            try:
                g = oracle.gradient(y)
            except KinkError:
                found.kinks += 1
                continue
            old = old + 1 if g @ m >= (1.0 - NEW) * norm * norm else 0
            lipschitz = max(lipschitz, math.sqrt(g @ g))
            found.points.append(y)
            found.gradients.append(g)
            hull.add(g)
    except OutOfCalls:
        return


#: Whatever the direction, every other point is drawn from the whole ball.
DIRECTIONS = ("along", "anywhere", "nearer", "anywhere", "opposite", "anywhere")

#: Nearer places are looked at down to this part of the radius.
NEAREST = 2.0**-10


def elsewhere(
    rng: np.random.Generator,
    turn: int,
    x: Vector,
    m: Vector,
    norm: float,
    radius: float,
    ratio: float,
    support: list[Vector],
) -> Vector:
    """Draw a point of the ball, in one of four ways by turns.

    `support` are the points whose gradients make up m. From one of them against m one stays on its
    side of a kink while curvature turns the gradient; opposite to it is the other side; the whole
    ball knows no direction; and nearer to x a curved function has less curvature to hide behind.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> x, m = np.zeros(2), np.array([1.0, 0.0])
    >>> far = [np.linalg.norm(elsewhere(rng, k, x, m, 1.0, 0.1, 1.0, [m / 20])) for k in range(8)]
    >>> bool(max(far) <= 0.1)
    True
    """
    direction = DIRECTIONS[turn % len(DIRECTIONS)]
    if direction == "along":
        y = support[rng.integers(len(support))]
        return _slid(rng, y, x, m, norm, radius)
    if direction == "anywhere":
        return streams.uniform_in_ball(rng, x, radius)
    nearer = radius * NEAREST ** rng.random()
    if direction == "nearer":
        return streams.conic_point(rng, x, m, norm, nearer, ratio)
    y = 2.0 * x - support[rng.integers(len(support))]
    return _inside(streams.uniform_in_ball(rng, y, 0.1 * nearer), x, radius)


def _slid(
    rng: np.random.Generator, y: Vector, x: Vector, m: Vector, norm: float, radius: float
) -> Vector:
    """Move y against m, to a random point of what the ball has of that line, and a bit beside."""
    offset, along_m = y - x, -m / norm
    along = float(offset @ along_m)
    inner = streams.inner_radius(x, radius)
    left = math.sqrt(max(0.0, along * along + inner * inner - float(offset @ offset))) - along
    z = y + rng.random() * max(left, 0.0) * along_m
    return _inside(streams.uniform_in_ball(rng, z, 1e-3 * radius), x, radius)


def _inside(y: Vector, x: Vector, radius: float) -> Vector:
    """Pull a point that has left the ball back into it."""
    offset, inner = y - x, streams.inner_radius(x, radius)
    distance = math.sqrt(offset @ offset)
    pulled: Vector = y if distance <= inner else x + offset * (inner / distance)
    return pulled


#: How far from x the points lie, against delta: the second where curvature is felt at the first.
REACHES = 0.6, 0.05

#: Points that were not drawn at random crowd if they are closer to x than this part of delta.
CROWDED = 0.02

#: Gradients closer than this, against the largest distance between two, are of one piece.
SAME_PIECE = 1e-2

#: In more variables the hull problems take too long.
MOST_VARIABLES = 100


def firm(
    oracle: CountedOracle,
    known: Evidence,
    s: Any,
    refuted: bool,
    seed: int,
    note: Callable[[Vector, Vector], None] = lambda y, g: None,
) -> Evidence:
    """Return this evidence, or better one where it crowds at the kinks or was refuted before.

    That is tried whenever such evidence has become twice as frequent: where it does not come about,
    it seldom does soon after.
    """
    away = np.linalg.norm(known.points - known.x, axis=1)
    crowds = (~known.perturbed & (away < CROWDED * s.delta)).any()
    if not (refuted or crowds):
        return known
    s.doubts += 1
    if s.doubts & (s.doubts - 1):
        return known
    rng = streams.stream(seed, s.doubts, "placement")
    return placed(oracle, known, s.delta, s.eps, rng, note) or known


def placed(
    oracle: CountedOracle,
    evidence: Evidence,
    delta: float,
    eps: float,
    rng: np.random.Generator,
    note: Callable[[Vector, Vector], None] = lambda y, g: None,
) -> Evidence | None:
    """Return evidence whose points are on definite sides, or None where it does not come about.

    First a point for each piece, then, as in Wolfe's method, one in the direction of -m for as long
    as the shortest vector m becomes shorter. `note` is told all gradients.
    """
    if evidence.gradients is None or evidence.x.size > MOST_VARIABLES:
        return None
    x, rows = evidence.x, evidence.gradients
    kept = _pieces(rows, evidence.weights)
    for reach in REACHES:
        first = [_direction(rows, j, rng) for j in kept]
        points, hull = _asked(oracle, x, reach * delta, first, eps, rng, note)
        if hull.size and (m := hull.solve()[1]) @ m <= eps * eps:
            return Evidence.of(x, points, hull.gradients, weights=hull.weights)
    return None


def _asked(
    oracle: CountedOracle,
    x: Vector,
    away: float,
    directions: list[Vector],
    eps: float,
    rng: np.random.Generator,
    note: Callable[[Vector, Vector], None],
) -> tuple[list[Vector], Hull]:
    """Ask so far away in these directions, then in that of -m while m becomes shorter."""
    hull, points, first = Hull(x.size, 8), list[Vector](), len(directions)
    while directions and len(points) < first + x.size + 20:
        y = streams.uniform_in_ball(rng, x + away * directions.pop(0), 1e-3 * away)
        g = gradient_of(oracle, y)
        if g is None:
            continue
        m = hull.point
        news = len(points) < first or float(g @ m) < (1.0 - NEW) * float(m @ m)
        note(y, g)
        points.append(y)
        hull.add(g)
        if directions:
            continue
        m = hull.solve()[1]
        norm = math.sqrt(m @ m)
        if news and norm > eps:
            directions.append(-m / norm)
    return points, hull


def _pieces(rows: Matrix, weights: Vector) -> list[int]:
    """Return one row for each piece: the heaviest of those that are alike."""
    squares = np.einsum("ij,ij->i", rows, rows)
    gaps = squares[:, None] + squares - 2.0 * (rows @ rows.T)
    limit = SAME_PIECE**2 * float(gaps.max())
    kept: list[int] = []
    for j in np.argsort(-weights, kind="stable").tolist():
        if all(gaps[j, i] > limit for i in kept):
            kept.append(j)
    return kept


def _direction(rows: Matrix, j: int, rng: np.random.Generator) -> Vector:
    """Return the direction in which this piece is largest, by the largest margin."""
    normals = rows[j] - rows
    lengths = np.linalg.norm(normals, axis=1)
    others = lengths > SAME_PIECE * lengths.max()
    normal: Vector = rng.standard_normal((rows.shape[1],))
    if others.any():
        normals = normals[others] / lengths[others, None]
        normal = min_norm_weights(normals).dot(normals)
    length = math.sqrt(normal @ normal)
    direction: Vector = normal / length if length > 0.0 else normal
    return direction


#: Ratio of the weights of successive points; above 1/2 a side that was missed is made up for later.
#: Where there is room for few points, no less than the second number.
RATIO, LEAST_RATIO = 0.6, 0.52

#: What the points leave, over all kinks, against eps.
MISSING = 0.1

#: Points of a proof, at most.
POINTS = 40

#: Gradients that do not bring the bound down to this many eps are left out.
HELP = 10.0


class SideExpansion:
    """What every kink still needs of its second side.

    Parameters
    ----------
    share : ndarray
        Weight that the second sides must get.
    jump : float
        Length of the vector of all jumps.
    eps : float
    most : int
        Points there is room for.
    least_ratio : float
        Ratio of the weights of successive points, at least.

    Attributes
    ----------
    ratio : float
        The one that was chosen.
    threshold : float or ndarray
        Kinks want their second side where this part of what is left is missing.

    Examples
    --------
    >>> plan = SideExpansion(np.array([0.0, 0.3, 1.0]), 1.0, 0.01, 40)
    >>> got = np.zeros(3)
    >>> while not plan.is_over:
    ...     second = plan.second()
    ...     got += plan.weight * second
    ...     plan.told(second)
    >>> bool(np.abs(got - [0.0, 0.3, 1.0]).max() < 0.001)
    True
    """

    threshold: float | Vector = 0.5

    def __init__(
        self, share: Vector, jump: float, eps: float, most: int, least_ratio: float = LEAST_RATIO
    ) -> None:
        digits = math.log(MISSING * eps / max(jump, eps))
        most = max(2, min(POINTS, most))
        self.ratio = max(LEAST_RATIO, least_ratio, min(RATIO, math.exp(digits / most)))
        wanted = math.ceil(digits / math.log(self.ratio))
        self._weights = expansion(max(2, min(most, wanted)), self.ratio)
        self._missing, self._left = share.copy(), 1.0
        self._count = 0

    @property
    def is_over(self) -> bool:
        return self._count == len(self._weights)

    @property
    def weight(self) -> float:
        """Weight of the next point."""
        return float(self._weights[self._count])

    def second(self) -> Mask:
        """Which kinks want their second side next?"""
        return wants_second(self._missing, self._left, self.threshold)

    def told(self, there: Mask | Vector) -> None:
        """Take note of which ones had it, or how much of it."""
        self._missing = self._missing - self.weight * there
        self._left -= self.weight
        self._count += 1


def expansion(count: int, ratio: float = RATIO) -> Vector:
    """Return the weights of so many points; the last one gets what is left.

    Examples
    --------
    >>> expansion(3).round(2)
    array([0.4 , 0.24, 0.36])
    """
    weights: Vector = (1.0 - ratio) * np.power(ratio, np.arange(count, dtype=np.float64))
    weights[-1] += 1.0 - weights.sum()
    return weights


def wants_second(missing: Vector, left: float, threshold: float | Vector = 0.5) -> Mask:
    """Which kinks need their second side next, of what is left in all?"""
    wanted: Mask = missing >= threshold * left
    return wanted


def longest_together(lengths: Vector, limit: float) -> float:
    """Return the largest of as many of the shortest lengths as make a vector within the limit.

    Examples
    --------
    >>> longest_together(np.array([4.0, 1.0, 3.0]), 4.0)
    3.0
    """
    shortest = np.sort(lengths)
    return float(shortest[np.cumsum(shortest * shortest) <= limit * limit].max(initial=0.0))
