"""Do constraints say something about f? Of black boxes gradients beside x are looked at.

Constraints whose gradients cancel each other prove anything about f, that is nothing. Nobody knows
all gradients of a black box, so what is found here can refuse a claim, and support none.
"""

import math
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np

from goldstein.checker.arrays import Mask, Matrix, Vector
from goldstein.checker.blackbox.perturbed import Neighbourhood, radius
from goldstein.checker.constrained.limits import DEGENERATE, Limits, meant, readings
from goldstein.checker.errors import KinkError
from goldstein.checker.verification import Verification

#: Pairs of points beside x at which constraints are asked for their qualification, rounds of
#: looking along the direction that separates them, how far one looks in perturbation radii, and how
#: much smaller the qualification may be than stated: of black boxes it is measured on samples.
PAIRS, LOOKS, FARTHER, LESS = 2, 6, 2.0**8, 10.0

#: A constraint vanishes at x if its gradients there are shorter than this part of those elsewhere
#: in the ball; and x has to be closer to a constraint with a multiplier than this part of delta,
#: or what holds at the constraint need not show at x.
VANISHED, CLOSE = 0.02, 1e-4


class Hull:
    """Gradients of constraints, times the sign of their multipliers, and normals in use.

    Nobody moves along `fixed` coordinates, or across the linear equalities with these `rows`: what
    gradients say there does not count.
    """

    def __init__(
        self, normal: Vector, fixed: Mask, rows: Matrix, propose: Callable[[Matrix, Matrix], Any]
    ) -> None:
        used = np.flatnonzero((normal != 0.0) & ~fixed)
        self.used, self.signs, self.fixed = used, np.sign(normal[used]), fixed
        inside = np.where(fixed, 0.0, rows)
        inside = inside[inside.any(axis=1)]
        _, sizes, ways = np.linalg.svd(
            inside / np.abs(inside).max(axis=1, keepdims=True, initial=0.0), full_matrices=False
        )
        self.across: Matrix = ways[sizes > 1e-12 * sizes.max(initial=0.0)]
        self.cone = np.zeros((used.size, normal.size))
        self.cone[np.arange(used.size), used] = self.signs
        self.propose = propose
        #: Components of the constraints, and gradients of them.
        self.rows: list[tuple[int, Vector]] = []

    def tangential(self, rows: Matrix) -> Matrix:
        """Return what is left of rows where one can move."""
        rows = np.where(self.fixed, 0.0, rows)
        return rows - (rows @ self.across.T) @ self.across

    def separation(self) -> tuple[float, Vector]:
        """Bound from below how far the hull plus cone is from 0, each row divided by the longest of
        its constraint; and the direction v that shows it. 1 where there is nothing to qualify.

        The proposal is not believed: where <r, v> >= t |v| for every row and <k, v> >= 0 for every
        normal, nothing in hull plus cone is shorter than t.
        """
        if not self.rows:
            return 1.0, np.zeros(self.cone.shape[1])
        index, rows = (np.array(part) for part in zip(*self.rows))
        lengths = np.linalg.norm(rows, axis=1)
        longest = np.array([lengths[index == i].max() for i in index])
        if not (np.isfinite(longest).all() and longest.all()):
            return 0.0, np.zeros(self.cone.shape[1])
        rows, cone = self.tangential(rows / longest[:, None]), self.tangential(self.cone)
        a, b = self.propose(rows, cone)
        v = a @ rows + b @ cone
        # Entries against a normal are 0 up to rounding; without them v is a direction of the cone.
        v[self.used] = np.where(self.signs * v[self.used] >= 0.0, v[self.used], 0.0)
        v = self.tangential(v)
        length = float(np.linalg.norm(v))
        v = v / length if length else v
        if (self.signs * v[self.used] < -1e-9).any():
            return 0.0, v
        return min(1.0, max(0.0, float((rows @ v).min()))), v


def qualification(
    cert: Any, problem: Any, rows: list[tuple[int, Vector]], rng: np.random.Generator,
    resolution: Vector | float, pairs: int = PAIRS,
) -> float:  # fmt: skip
    """Return how far the gradients of the constraints in use are from cancelling each other.

    `rows` are those with weight. The constraints are asked besides at pairs of points next to x, on
    opposite sides of it: there a multiplier has to mean something when delta shrinks. Then one
    looks along the direction that separates them from 0, where a gradient that contradicts it would
    be, until none does. It is an upper bound: of a black box nobody knows all gradients.
    """
    masks = readings(cert, problem.system, problem.system.linear)
    place = Neighbourhood(cert.x, cert.delta, problem.box, resolution)
    return min(_qualified(cert, problem, rows, rng, place, pairs, mask) for mask in masks)


def _qualified(
    cert: Any, problem: Any, rows: list[tuple[int, Vector]], rng: np.random.Generator,
    place: Neighbourhood, pairs: int, linear: Mask,
) -> float:  # fmt: skip
    system, x = problem.system, cert.x
    some, equations = meant(cert, system, linear)
    bent = [i for i in some if not system.linear[i]]
    centre = []
    for _ in range(pairs if bent else 0):
        offset = place.perturbed(rng, x) - x
        centre += _jacobians(system, [place.inside(x + offset), place.inside(x - offset)])
    across = np.zeros((0, x.size))
    if some and equations:
        seen = centre or _jacobians(system, [place.perturbed(rng, x)])
        if not seen:
            return 0.0
        across = seen[0][equations]
    hull = Hull(cert.normal, problem.box.fixed, across, problem.propose)
    signs = np.sign(cert.multipliers)
    hull.rows += [(i, signs[i] * g) for i, g in rows if i in some]
    hull.rows += [(i, signs[i] * jacobian[i]) for jacobian in centre for i in bent]
    q, v = hull.separation()
    near = radius(x, cert.delta, place.resolution).max()
    reaches = near, max(near, FARTHER * radius(x, cert.delta).max())
    for _ in range(LOOKS if bent else 0):
        steps = [sign * reach * math.sqrt(x.size) * v for reach in reaches for sign in (1.0, -1.0)]
        seen = _jacobians(system, [place.inside(x + step) for step in steps])
        centre += seen
        found = [(i, signs[i] * jacobian[i]) for jacobian in seen for i in bent]
        against = [(i, g) for i, g in found if g @ v < 0.5 * q * np.linalg.norm(g)]
        if not against:
            break
        hull.rows += against
        q, v = hull.separation()
    vanished = bent and _vanishes(centre, rows, bent, problem, place, rng, pairs)
    return 0.0 if vanished else q


def _jacobians(system: Limits, points: list[Vector]) -> list[Matrix]:
    found = []
    for y in points:
        with suppress(KinkError):
            found.append(system.rows(y).copy())
    return found


def _vanishes(
    centre: list[Matrix], rows: list[tuple[int, Vector]], bent: list[int], problem: Any,
    place: Neighbourhood, rng: np.random.Generator, pairs: int,
) -> bool:  # fmt: skip
    """Whether gradients of a constraint are next to 0 at x, or x is too far from it to tell."""
    if not centre:
        return True
    x, delta, system = place.x, place.delta, problem.system
    wide = 0.9 * delta / math.sqrt(x.size) * rng.standard_normal((pairs, x.size))
    around = centre + _jacobians(system, [place.inside(x + s * w) for w in wide for s in (1, -1)])
    violated = np.abs(system.excess(system.values(x)))
    strict = math.sqrt(pairs / PAIRS)  # who looks more often than a check is to be stricter as well
    for i in bent:
        shortest = min(float(np.linalg.norm(jacobian[i])) for jacobian in centre)
        others = [jacobian[i] for jacobian in around] + [g for k, g in rows if k == i]
        longest, far = max(float(np.linalg.norm(g)) for g in others), strict * violated[i]
        if shortest <= strict * VANISHED * longest or far > CLOSE * delta * shortest:
            return True
    return False


def check_qualification(
    found: Verification, cert: Any, problem: Any, resolution: Vector | float, seed: int
) -> None:
    """Constraints whose gradients cancel each other prove anything about f, that is nothing."""
    used = np.flatnonzero(cert.constraint_weights)
    rows = [(int(cert.constraint_index[r]), cert.constraint_gradients[r]) for r in used]
    q = qualification(cert, problem, rows, np.random.default_rng([seed, 2**21]), resolution)
    honest, empty = cert.qualification <= LESS * q, min(q, cert.qualification) <= DEGENERATE
    words = f"the constraint gradients that were looked at stay {q:.3g} away from 0"
    words += "" if honest else f", {cert.qualification:.3g} is stated"
    words += ": degenerate, the claim says nothing about f" if empty else ""
    found.add("qualification", honest and not empty, words)
