"""Where else in a ball a missing gradient may be, once the segment against m has nothing new.

The proof of Algorithm 1 needs the segment from x against the shortest vector m: f falls there, or
a gradient is found that m has not accounted for. A certificate at a fixed point is another matter.
Where f falls (beside a minimum, or at a saddle or a maximum, which may be stationary too) the
segment shows one piece again and again, and the gradients that cancel m are elsewhere.
"""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.numerics.ball import inner_radius, uniform_in_ball
from goldstein.numerics.cone import conic_point

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
