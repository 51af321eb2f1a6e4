"""A quick look at one point: few gradients, taken where a step against the shortest vector ends.

Where a function falls, its gradients shrink along the way down, so the far end of the ball holds
the gradients that shorten the hull's shortest vector most. A handful of them comes as near to the
smallest bound as dozens of random ones.
"""

from __future__ import annotations

import math

from goldstein.checker.arrays import Vector
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.ball import inner_radius, uniform_in_ball
from goldstein.numerics.cone import narrow, tilt, trial_point
from goldstein.numerics.hull import Hull
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers.enrich import Enrichment

#: A gradient that shortens the vector by less than this share is the last.
GAIN = 0.02

#: Gradients at most.
MOST = 24


def look_at_far_ends(
    oracle: CountedOracle, x: Vector, radius: float, eps: float, seed: int, found: Enrichment
) -> None:
    """Add gradients to `found` until the bound is eps or hardly improves, and look for descent."""
    rng = stream(seed, len(found.points), "far ends")
    hull = Hull(x.size, 8)
    inner = inner_radius(x, radius)
    y, previous = uniform_in_ball(rng, x, radius), math.inf
    try:
        for _ in range(MOST):
            try:
                g = oracle.gradient(y)
            except KinkError:
                found.kinks += 1
                y = uniform_in_ball(rng, x, radius)
                continue
            found.points.append(y)
            found.gradients.append(g)
            hull.add(g)
            m = hull.approach(eps)[1]
            norm = math.sqrt(m @ m)
            steepest = max(math.sqrt(g @ g) for g in found.gradients)
            if norm <= eps or norm > (1.0 - GAIN) * previous:
                break
            previous = norm
            ratio = narrow(norm / steepest, x.size)
            reach = inner * (1.0 - ratio * rng.random() / 8.0)
            y = trial_point(x, m, norm, reach, ratio) + reach * ratio / 8.0 * tilt(rng, m, norm)
        if found.points and norm > eps and oracle.has_value:
            ratio = narrow(norm / steepest, x.size)
            fall = oracle.value(x) - oracle.value(trial_point(x, m, norm, inner, ratio))
            if fall > 0.25 * radius * norm:
                found.descent, found.descent_fall = -m / norm, fall
                found.descent_step = inner * (1.0 - ratio / 8.0)
    except OutOfCalls:
        return
