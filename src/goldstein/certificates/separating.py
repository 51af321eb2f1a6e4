"""Directions along which gradients of constraints rise: searched here, proved by the checker."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.multipliers import DEGENERATE, Hull
from goldstein.checker.constrained.near import ExactProblem
from goldstein.checker.rationals import exact_dot, nearest_float, squared_norm, to_fractions
from goldstein.errors import NotCertifiableError
from goldstein.numerics.hull_problems import shortest_weights

#: Random directions in which gradients of constraints are looked at, and rounds of looking along
#: the direction that separates them from 0.
RANDOM, LOOKS = 4, 8

Row = Sequence[Fraction]


def separating(
    problem: ExactProblem, cert: Any, some: list[int], rows: list[Row], seed: int,
    weights: Callable[..., Any] = shortest_weights,
) -> Iterator[list[Fraction]]:  # fmt: skip
    """Propose directions across which no row leads and along which some constraints rise.

    Some limits of gradients propose one; who asks for the next one has found others that do not
    agree: then one looks along it.
    """
    rng, d = np.random.default_rng(seed), cert.x.size
    hull = Hull(
        cert.normal, problem.box.fixed, np.array([*map(_near, rows)]).reshape(-1, d), weights
    )
    random = rng.standard_normal((RANDOM, d))
    ways = np.concatenate([cert.constraint_directions, cert.directions, random])
    for _ in range(LOOKS):
        for i in some:
            for way in np.concatenate([ways, -ways]):
                with suppress(NotCertifiableError):  # this direction stays on a kink
                    row = _near(problem.limit(cert, i, way)[0])
                    hull.rows.append((i, math.copysign(1.0, cert.multipliers[i]) * row))
        q, v = hull.separation()
        if q <= DEGENERATE:
            return
        yield _tangent(v, rows, hull)
        noise = rng.standard_normal((RANDOM, d)) / math.sqrt(d)
        ways = np.concatenate([v[None], v + 1e-3 * noise, v + 1e-6 * noise])


def _near(row: Row) -> Vector:
    return np.array([nearest_float(a) for a in row])


def _tangent(v: Vector, rows: Sequence[Row], hull: Hull) -> list[Fraction]:
    """Return what is left of v without its parts across linear equalities, exactly.

    It is 0 along coordinates that are fixed, or held by a normal, up to rounding.
    """
    still = hull.fixed.copy()
    still[hull.used[hull.signs * v[hull.used] <= 1e-9]] = True
    basis: list[list[Fraction]] = []
    rest: list[Fraction] = []
    for row in [*rows, to_fractions(v)]:  # Gram and Schmidt
        rest = [Fraction(0) if stays else a for a, stays in zip(row, still)]
        for other in basis:
            share = exact_dot(rest, other) / squared_norm(other)
            rest = [a - share * b for a, b in zip(rest, other)]
        basis += [rest] if any(rest) else []
    return rest


__all__ = ["separating"]
