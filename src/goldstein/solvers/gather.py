"""Search for the shortest vector of the Goldstein set at one fixed point.

The proof of Algorithm 1 needs the segment from x against the shortest vector m: f falls there, or
a gradient is found that m has not accounted for. A certificate at a fixed point is another matter.
Where f falls (beside a minimum, or at a saddle or a maximum, which may be stationary too) the
segment shows one piece again and again, and the gradients that cancel m are elsewhere.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.hull import Hull
from goldstein.numerics.streams import (
    conic_point,
    inner_radius,
    narrow,
    stream,
    trial_point,
    uniform_in_ball,
)
from goldstein.oracles import CountedOracle

#: A bound this small relative to the gradients is rounding error: nothing more to gain.
_FLOOR = 1e-14


#: A gradient that m accounts for up to this part of |m|^2 is nothing new.
_NEW = 1e-3

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

    def saw(self, fall: float, least: float, along: Vector, step: float) -> None:
        """Take note of a step, if f falls by more than the least that counts."""
        if fall > least:
            self.descent, self.descent_fall, self.descent_step = along, fall, step


def enrich(
    oracle: CountedOracle,
    x: Vector,
    radius: float,
    eps: float,
    seed: int,
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
    if max_gradients == 0:
        return
    rng = stream(seed, len(found.points), "certify")
    hull = Hull(x.size, max(8, 2 * len(found.points)), min(deadline, oracle.deadline))
    for g in found.gradients:
        hull.add(g)
    value_at_x: float | None = None
    lipschitz = max((math.sqrt(g @ g) for g in found.gradients), default=0.0)
    milestone, since, asked, old, turn = math.inf, 0, 0, 0, 0
    m, norm = x, 0.0
    try:
        while asked < max_gradients and (not found.points or time.perf_counter() < deadline):
            if hull.size == 0:
                y = uniform_in_ball(rng, x, radius)
            else:
                m = hull.solve()[1]
                norm = math.sqrt(m @ m)
                if norm <= max(eps, _FLOOR * lipschitz):
                    return
                if norm <= 0.9 * milestone:
                    milestone, since = norm, 0
                ratio = narrow(max(norm / lipschitz, _OPEN), x.size)
                # Values are for the report only: look at the steps 1, 2, 4, 8, ... and at the end.
                look = asked & (asked - 1) == 0 or since == patience - 1
                if look and found.descent is None and oracle.has_value:
                    value_at_x = oracle.value(x) if value_at_x is None else value_at_x
                    fall = value_at_x - oracle.value(trial_point(x, m, norm, radius, ratio))
                    # What rounding explains is no fall.
                    least = max(0.25 * radius * norm, ROUNDED * abs(value_at_x))
                    found.saw(fall, least, -m / norm, radius * (1.0 - ratio / 8.0))
                if since >= (patience if found.descent is None else min(patience, SETTLED)):
                    return
                stuck = old >= _STUCK or since >= max(_SLOW, x.size // 8)
                if stuck and (asked % 2 or found.descent is not None):
                    support = [found.points[j] for j in hull.support.tolist()]
                    y = elsewhere(rng, turn, x, m, norm, radius, ratio, support)
                    turn += 1
                else:
                    y = conic_point(rng, x, m, norm, radius, ratio)
            asked += 1
            since += 1
            try:
                g = oracle.gradient(y)
            except KinkError:
                found.kinks += 1
                continue
            old = old + 1 if g @ m >= (1.0 - _NEW) * norm * norm else 0
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
        return uniform_in_ball(rng, x, radius)
    nearer = radius * NEAREST ** rng.random()
    if direction == "nearer":
        return conic_point(rng, x, m, norm, nearer, ratio)
    y = 2.0 * x - support[rng.integers(len(support))]
    return _inside(uniform_in_ball(rng, y, 0.1 * nearer), x, radius)


def _slid(
    rng: np.random.Generator, y: Vector, x: Vector, m: Vector, norm: float, radius: float
) -> Vector:
    """Move y against m, to a random point of what the ball has of that line, and a bit beside."""
    offset, along_m = y - x, -m / norm
    along = float(offset @ along_m)
    inner = inner_radius(x, radius)
    left = math.sqrt(max(0.0, along * along + inner * inner - float(offset @ offset))) - along
    z = y + rng.random() * max(left, 0.0) * along_m
    return _inside(uniform_in_ball(rng, z, 1e-3 * radius), x, radius)


def _inside(y: Vector, x: Vector, radius: float) -> Vector:
    """Pull a point that has left the ball back into it."""
    offset, inner = y - x, inner_radius(x, radius)
    distance = math.sqrt(offset @ offset)
    pulled: Vector = y if distance <= inner else x + offset * (inner / distance)
    return pulled
