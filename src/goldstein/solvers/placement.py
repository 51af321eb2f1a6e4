"""Points of a proof on definite sides of the kinks next to x.

A search that has arrived crowds at the kinks: what it knows are gradients at points so close to
them that a displaced point is on another side, and no claim that rests on these survives. But its
gradients say which pieces are active at x, and where each of them rules: f being their maximum
there, up to curvature, piece j does where <g_j - g_i, d> is positive for all others. The direction
in which it does so by the largest margin is the shortest vector of the hull of the normals. So one
gradient per piece, at a random point a part of delta away in that direction, is a proof that
survives. Of a sum of kinks there are more pieces than gradients known: then those that are missing
are where the shortest vector points to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.numerics.hull import Hull, min_norm_weights
from goldstein.numerics.streams import stream, uniform_in_ball
from goldstein.oracles import CountedOracle
from goldstein.solvers.base import Evidence, gradient_of

#: How far from x the points lie, against delta: the second where curvature is felt at the first.
REACHES = 0.6, 0.05

#: Points that were not drawn at random crowd if they are closer to x than this part of delta.
CROWDED = 0.02

#: Gradients closer than this, against the largest distance between two, are of one piece.
SAME_PIECE = 1e-2

#: In more variables the hull problems take too long.
MOST_VARIABLES = 100

#: A gradient that m accounts for up to this part of |m|^2 is nothing new.
NEW = 1e-3


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
    rng = stream(seed, s.doubts, "placement")
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
        # Where pieces were missing, once more in the midst of where those that count rule.
        for again in range(2):
            first = [_direction(rows, j, rng) for j in kept]
            count = len(first)
            points, hull = _asked(oracle, x, reach * delta, first, eps, rng, note)
            if not hull.size or (m := hull.solve()[1]) @ m > eps * eps:
                break
            used, found = hull.support, hull.gradients
            if again or len(points) == count:
                return Evidence.of(x, points, found, weights=hull.weights)
            rows, kept = np.concatenate([rows, found]), (used + len(rows)).tolist()
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
        y = uniform_in_ball(rng, x + away * directions.pop(0), 1e-3 * away)
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
