"""The Goldstein claim: gradients within delta of x have a convex combination of norm <= eps.

The gradients of a black box are believed, but for kinks: they are asked for again at the stored
points, and beside them (`goldstein.checker.beside`). A function whose structure is known also says
how far float64 is from the truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.beside import (
    SAME,
    Gradient,
    Optimise,
    differ,
    has_room,
    mean_length,
    rounding_slack,
    survey,
)
from goldstein.checker.errors import GoldsteinError, KinkError
from goldstein.checker.rationals import squared_distance
from goldstein.checker.rounding import combination_norm_upper, distance_upper, distances_upper
from goldstein.checker.sides import Program
from goldstein.checker.verification import Label, Verification

#: Another machine rounds the user's own code differently: by this part of the claimed eps.
SAME_SHARE = 0.01


class WithGradients(Protocol):
    """The part of a certificate that speaks of gradients of f."""

    @property
    def eps(self) -> float: ...
    @property
    def points(self) -> Matrix: ...
    @property
    def gradients(self) -> Matrix: ...
    @property
    def weights(self) -> Vector: ...


class Claim(WithGradients, Protocol):
    """What is claimed, and the evidence."""

    @property
    def x(self) -> Vector: ...
    @property
    def delta(self) -> float: ...
    @property
    def label(self) -> Label: ...
    @property
    def digest(self) -> str: ...
    def content_digest(self) -> str: ...


def check_goldstein(
    cert: Claim, gradient: Gradient, knows_kinks: bool, seed: int, optimise: Optimise
) -> Verification:
    """Decide a Goldstein claim, with a sentence for everything that was looked at.

    Parameters
    ----------
    cert : Claim
    gradient : callable
        The function's gradient; it raises `KinkError` on kinks it knows of.
    knows_kinks : bool
        It knows all of them.
    seed : int
        Seed of the displacements.
    optimise : callable
        Proposes weights for displaced gradients; not believed.
    """
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    arrays = (cert.x, cert.points, cert.gradients, cert.weights)
    finite = all(np.isfinite(a).all() for a in arrays) and cert.weights.size > 0
    finite = finite and all(math.isfinite(v) and v >= 0 for v in (cert.eps, cert.delta))
    if not found.add("numbers", finite, "all entries finite" if finite else "non-finite or empty"):
        return found
    sealed = cert.digest == cert.content_digest()
    found.add("content", sealed, "unaltered" if sealed else "a field was changed after it was made")
    simplex = _on_simplex(cert.weights)
    if not found.add("weights", simplex, "nonnegative, sum 1" if simplex else "not convex weights"):
        return found
    supported = cert.label in ("conditional", "estimated")
    found.add("label", supported, f"claimed {cert.label}, this check can support conditional")
    used = np.flatnonzero(cert.weights > 0)
    if not _check_ball(found, cert, cert.points[used]):
        return found
    try:
        _check_gradients(found, cert, used, gradient, knows_kinks, seed, optimise)
    except KinkError as kink:
        found.add("gradients", False, f"the function has a kink at a stored point: {kink}")
    except GoldsteinError as failure:
        found.add("gradients", False, f"the function could not be evaluated: {failure}")
    return found


def _on_simplex(weights: Vector) -> bool:
    try:
        return bool((weights >= 0).all() and abs(math.fsum(weights) - 1.0) <= 1e-9)
    except OverflowError:
        return False


def _check_ball(found: Verification, cert: Claim, points: Matrix) -> bool:
    found.delta = max(distances_upper(points, cert.x))
    inside = found.delta <= cert.delta
    if not inside and all(_within(y, cert.x, cert.delta) for y in points):
        # The claim is the exact radius, or between it and our upper bound of it.
        found.delta, inside = cert.delta, True
    return found.add("ball", inside, f"points within {found.delta:.6g}, claimed {cert.delta:.6g}")


def _within(y: Vector, x: Vector, radius: float) -> bool:
    """Decide |y - x| <= radius, exactly where the float bound does not."""
    return distance_upper(y, x) <= radius or squared_distance(y, x) <= Fraction(radius) ** 2


def _check_gradients(
    found: Verification,
    cert: Claim,
    used: NDArray[np.intp],
    gradient: Gradient,
    knows_kinks: bool,
    seed: int,
    optimise: Optimise,
) -> None:
    """Ask for the gradients again: at the stored points, and a hair beside them."""
    points, weights = cert.points[used], cert.weights[used]
    fresh = np.array([gradient(y.copy()) for y in points])
    stored, mean = cert.gradients[used], mean_length(weights, fresh)
    same = not differ(weights, fresh, stored, SAME * mean + SAME_SHARE * cert.eps)
    gap = max(distances_upper(fresh, stored))
    found.add(
        "gradients",
        same,
        f"asked again, largest difference {gap:.3g}"
        + ("" if same else "; this is another function, or its gradient is not deterministic"),
    )
    found.eps = combination_norm_upper(weights, fresh)
    limit = cert.eps + rounding_slack(weights.size, mean)
    if not found.add(
        "bound", found.eps <= limit, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    ):
        return
    if not has_room(cert.x, cert.delta):
        # Only a function that knows its kinks can be believed at the stored points themselves.
        found.add(
            "kinks",
            knows_kinks,
            "the function knows its kinks, and has none at the points"
            if knows_kinks
            else f"a ball of radius {cert.delta:g} has too few floats to look beside the points, "
            "and a black box does not say where its kinks are",
        )
        return
    # A kink shows as a jump; curvature changes gradients a hair away by less than this.
    goal = limit + SAME * mean
    near = survey(gradient, cert.x, cert.delta, points, weights, goal, seed, optimise)
    survives = near.eps <= goal
    found.add(
        "kinks",
        survives,
        f"eps {near.eps:.6g} with every point displaced a little"
        + (
            ""
            if survives
            else f", after {near.draws} draws: a stored point sits on a kink, where "
            "gradients mean nothing, or float64 cannot tell the points apart"
        ),
    )
    if not survives:
        found.eps = max(found.eps, near.eps)


def gradient_gap(program: Program, y: Vector, stored: Vector, allowed: float) -> tuple[float, bool]:
    """Return by how much a stored gradient at a point surely differs from the exact one."""
    from contextlib import suppress

    from goldstein.checker.enclosed.point import EnclosedPoint, require_finite
    from goldstein.checker.errors import Irrational
    from goldstein.checker.rationals import sqrt_upper, to_fractions
    from goldstein.checker.rounding import norm_upper
    from goldstein.checker.sides import Side

    side = Side(EnclosedPoint(program, y), None)
    g = side.gradient()
    require_finite(g.mid, g.rad)
    if norm_upper(np.abs(stored - g.mid) + g.rad) <= allowed:
        return 0.0, True
    if program.is_small():
        with suppress(Irrational):
            exact = side.point._exact_gradient(side)
            return sqrt_upper(squared_distance(exact, to_fractions(stored))), True
    gaps = np.abs(stored - g.mid) * (1.0 - 2.0**-50) - g.rad * (1.0 + 2.0**-50)
    least = float(np.linalg.norm(np.maximum(gaps, 0.0))) * (1.0 - 2.0**-40)
    return least, least > allowed


def check_rounding(found: Verification, cert: WithGradients, program: Program) -> None:
    """A function whose structure is known says how far its float64 gradients are from the truth."""
    used = np.flatnonzero(cert.weights > 0)
    weights: Sequence[float] = cert.weights[used].tolist()
    allowed = 0.05 * cert.eps + SAME * mean_length(cert.weights[used], cert.gradients[used])
    try:
        gaps = [
            gradient_gap(program, y, g, allowed)
            for y, g in zip(cert.points[used], cert.gradients[used])
        ]
    except GoldsteinError:  # an extra that is not installed, an overflow: nothing more is known
        return
    far = math.fsum(w * gap for w, (gap, _) in zip(weights, gaps))
    kept = "no gradient is lost in rounding"
    if not all(decided for _, decided in gaps):
        kept = "gradients in float64 are believed: sums too long to be bounded cancel"
    found.add(
        "rounding", far <= allowed, kept if far <= allowed else f"a gradient errs by {far:.3g}"
    )
    if far > allowed:
        found.eps = math.inf


__all__ = ["SAME_SHARE", "Claim", "WithGradients", "check_goldstein", "check_rounding"]
