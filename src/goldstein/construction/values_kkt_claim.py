"""Make KKT claims from values that will survive fresh draws."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.values import Places
from goldstein.certificates.values_kkt import (
    Multiples,
    OfMultiples,
    Rows,
    ValuesKKTCertificate,
    measured_qualification,
    reached,
)
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import Box
from goldstein.construction.values_claim import Statistics, claimed, look, places_around
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.constraints import System
from goldstein.oracles.problem import Problem

#: Pairs of points beside x that are looked at: more than a check will.
CENTRE_PAIRS = 6


def multiples_around(hint: KKTCertificate, box: Box, delta: float, most: float, blur: float) -> (
    Multiples
):  # fmt: skip
    """Return boxes around the points of a hint, with its weights; the hint is not believed."""
    used = np.flatnonzero(hint.constraint_weights)
    both = np.concatenate([hint.points[hint.weights > 0], hint.constraint_points[used]])
    points, owner = np.unique(both, axis=0, return_inverse=True)
    owner = owner.ravel()
    convex = hint.weights[hint.weights > 0]
    weights = np.bincount(owner[: convex.size], convex, minlength=len(points))
    # All of them are kept, so all have a weight here.
    placed = places_around(hint.x, points, np.ones(len(points)), delta, box, most, blur)
    return Multiples(
        placed.points, weights / math.fsum(weights.tolist()), placed.widths,
        hint.constraint_weights[used], hint.constraint_index[used], owner[convex.size :],
    )  # fmt: skip


def source_of(
    oracle: CountedOracle, system: System, multiples: Multiples, how: Statistics
) -> OfMultiples:
    """Return what samples are drawn from."""
    return OfMultiples(lambda points: oracle.values_at(points, how.workers), system, multiples)


def state_values_kkt(
    oracle: CountedOracle,
    problem: Problem,
    hint: KKTCertificate,
    multiples: Multiples,
    delta: float,
    eps: float,
    how: Statistics,
    attempt: int,
    meta: dict[str, Any],
) -> ValuesKKTCertificate | None:
    """Draw what `eps` needs, or what the budget allows, and state what is seen; or None.

    All but the samples must have been fixed before; of the hint only its witnesses are used, whose
    values are looked up.
    """
    system, box, x = problem.constraints, problem.box, hint.x
    witnesses, index = _witnesses(hint, system, multiples)
    if witnesses is None:
        return None
    source = source_of(oracle, system, multiples, how)
    seen = look(source, oracle, x, multiples.widths, delta, eps, box, how, attempt)
    if seen is None:
        return None
    rng = stream(how.seed, attempt, "centre")
    q = measured_qualification(system, box, multiples, x, delta, seen.mean, rng, pairs=CENTRE_PAIRS)
    places = Places(multiples.points, multiples.weights, multiples.widths)
    return ValuesKKTCertificate(
        points=multiples.points,
        weights=multiples.weights,
        **{**claimed(x, places, box, how, seen), "delta": delta},
        constraint_weights=multiples.constraint_weights,
        constraint_index=multiples.constraint_index,
        point_index=multiples.point_index,
        multipliers=multiples.multipliers(system.size),
        witnesses=witnesses,
        witness_index=index,
        feasibility=system.violation(x),
        qualification=q,
        meta={**meta, "slopes": "observed"},
    )


def _witnesses(
    hint: KKTCertificate, system: System, multiples: Multiples
) -> tuple[Vector | None, Rows]:
    """Return stored points that reach the limits of constraints with a multiplier; None if none."""
    here = system.values(hint.x).copy()
    points: list[Vector] = []
    index: list[int] = []
    multipliers = multiples.multipliers(system.size)
    for i in np.flatnonzero(multipliers).tolist():
        if reached(system, i, multipliers[i], here, []):
            continue
        mine = list(hint.constraint_points[hint.constraint_index == i])
        several = [*mine, *hint.points]
        if not reached(system, i, multipliers[i], here, several):
            return None, np.zeros(0, dtype=np.int64)
        kept = [z for z in several if reached(system, i, multipliers[i], here, [z])][:1]
        for z in kept or several:
            points.append(z)
            index.append(i)
    return np.array(points).reshape(-1, hint.x.size), np.array(index, dtype=np.int64)
