"""Search for the shortest vector of the Goldstein set at one fixed point."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.ball import uniform_in_ball
from goldstein.numerics.cone import conic_point, narrow, trial_point
from goldstein.numerics.hull import Hull
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers.elsewhere import elsewhere

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

    def saw(self, fall: float, along: Vector, radius: float, norm: float, ratio: float) -> None:
        """Take note of a step, if f falls as much as the bound promises."""
        if fall > 0.25 * radius * norm:
            self.descent, self.descent_fall = along, fall
            self.descent_step = radius * (1.0 - ratio / 8.0)


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
                m = hull.approach(eps)[1]
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
                    if fall > ROUNDED * abs(value_at_x):
                        found.saw(fall, -m / norm, radius, norm, ratio)
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
