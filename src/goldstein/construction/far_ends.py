"""A quick look at one point: few gradients, each taken where the shortest one is to be expected.

Where a function falls, its gradients shrink along the way down, so the second gradient is taken at
the far end of the ball. From then on gradients are compared with an affine function: the next one
is taken where that is shortest within the ball, and a little further against what is left there. A
handful of them comes as near to the smallest bound as dozens of random ones, and the last ones are
short by themselves, so that a claim rests on one or two points: these have to be checked.
"""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.errors import KinkError, OutOfCalls
from goldstein.numerics.ball import inner_radius, uniform_in_ball
from goldstein.numerics.cone import narrow, tilt
from goldstein.numerics.hull import Hull, min_norm_weights
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers.gather import ROUNDED, Enrichment

#: Halvings of the interval in which the multiplier of the ball is looked for, in powers of ten.
HALVINGS, SMALLEST, LARGEST = 40, -13.0, 6.0


def shortest_in_ball(offsets: Matrix, gradients: Matrix, radius: float) -> Vector:
    """Return weights that sum to 1, negative ones too, with a short combination of gradients.

    Were the gradient an affine function of the point, the combination of the gradients would be the
    gradient at the combination of the points; `offsets` are these points from the centre of a ball,
    and the weights keep their combination within `radius`, up to rounding, where that is possible.

    Examples
    --------
    >>> offsets = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> gradients = np.array([[3.0, 1.0], [2.0, 1.0]])
    >>> shortest_in_ball(offsets, gradients, 10.0).round(6)
    array([-2.,  3.])
    >>> shortest_in_ball(offsets, gradients, 2.0).round(6)
    array([-1.,  2.])
    """
    squared, far = gradients @ gradients.T, offsets @ offsets.T
    squared, far_scaled = squared / (np.trace(squared) or 1.0), far / (np.trace(far) or 1.0)
    ones, small = np.ones(len(far)), 1e-14 * np.eye(len(far))

    def weights(power: float) -> tuple[Vector, float]:
        """The shortest combination, with a price for its distance from the centre."""
        w: Vector = np.linalg.lstsq(squared + 10.0**power * far_scaled + small, ones)[0]
        w /= w.sum()
        return w, math.sqrt(max(float(w @ far @ w), 0.0))

    found, distance = weights(SMALLEST)
    if distance <= radius:
        return found
    low, high = SMALLEST, LARGEST
    for _ in range(HALVINGS):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if weights(middle)[1] > radius else (low, middle)
    return weights(high)[0]


#: A gradient that shortens the vector by less than this share is the last, unless so many more like
#: it would do.
GAIN, MORE = 0.02, 4.0

#: Gradients at most.
MOST = 24

#: The first gradient is taken within this part of the radius: next to x, and on no kink.
NEAR = 0.125

#: How far one goes beyond the place where the affine function is shortest, as a part of the radius.
BEYOND = 0.15


def look_at_far_ends(
    oracle: CountedOracle, x: Vector, radius: float, eps: float, seed: int, found: Enrichment
) -> None:
    """Add gradients to `found` until the bound is eps or hardly improves, and look for descent."""
    rng = stream(seed, len(found.points), "far ends")
    hull = Hull(x.size, 8)
    inner = inner_radius(x, radius)
    y, previous = uniform_in_ball(rng, x, NEAR * radius), math.inf
    try:
        for _ in range(MOST):
            try:
                g = oracle.gradient(y)
            except KinkError:
                found.kinks += 1
                y = uniform_in_ball(rng, x, NEAR * radius)
                continue
            found.points.append(y)
            found.gradients.append(g)
            hull.add(g)
            m = hull.solve()[1]
            norm = math.sqrt(m @ m)
            steepest = max(math.sqrt(g @ g) for g in found.gradients)
            gain = previous - norm
            if norm <= eps or (gain < GAIN * previous and norm - MORE * gain > eps):
                break
            previous = norm
            ratio = narrow(norm / steepest, x.size)
            reach = inner * (1.0 - ratio * rng.random() / 8.0)
            way = _next_offset(np.array(found.points) - x, np.array(found.gradients), m, reach)
            y = x + (1.0 - ratio / 8.0) * way + reach * ratio / 8.0 * tilt(rng, m, norm)
        if norm <= eps:
            _keep_few(found, eps)
        elif len(found.points) > 1 and oracle.has_value:
            # The value at the last point came with its gradient where that is cheap.
            there, way = oracle.value(found.points[-1]), found.points[-1] - x
            here = oracle.value(x)
            fall = here - there
            if fall > max(0.25 * radius * norm, ROUNDED * abs(here)):
                found.descent_step = math.sqrt(way @ way)
                found.descent, found.descent_fall = way / found.descent_step, fall
    except OutOfCalls:
        return


def _next_offset(offsets: Matrix, gradients: Matrix, m: Vector, radius: float) -> Vector:
    """Return where to look next, from the centre of the ball."""
    if len(offsets) == 1:
        far_end: Vector = m * (-radius / math.sqrt(m @ m))
        return far_end
    weights = shortest_in_ball(offsets, gradients, radius)
    way, left = weights @ offsets, weights @ gradients
    way -= BEYOND * radius / (math.sqrt(left @ left) or 1.0) * left
    way *= min(1.0, radius / math.sqrt(way @ way))
    return way


def _keep_few(found: Enrichment, eps: float) -> None:
    """Keep few rows whose hull reaches eps: beside every row of a claim one has to look again."""
    rows = np.array(found.gradients)
    chosen = [int(np.einsum("ij,ij->i", rows, rows).argmin())]
    while len(chosen) < len(rows):
        m = min_norm_weights(rows[chosen]) @ rows[chosen]
        entering = int((rows @ m).argmin())
        if m @ m <= eps**2 or entering in chosen:
            break
        chosen.append(entering)
    m = min_norm_weights(rows[chosen]) @ rows[chosen]
    if m @ m <= eps**2:
        found.points = [found.points[j] for j in chosen]
        found.gradients = [found.gradients[j] for j in chosen]
