"""A certificate at a given point, from nothing but the function."""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import Any

import numpy as np

from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.verifying import CHECKS, confirmed
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import as_box
from goldstein.checker.rounding import distance_upper, norms_upper
from goldstein.construction.goldstein_claim import FINE, UNSEEN, Construction
from goldstein.errors import InputError, OutOfCalls, UnresolvedError
from goldstein.numerics.ball import smallest_delta
from goldstein.oracles import CountedOracle
from goldstein.oracles.agreement import STRICTLY, required_resolution
from goldstein.solvers.gather import Enrichment, enrich

#: How often the search goes on after a claim that would not have survived.
SEARCHES = 4

#: A function of which so many calls do not say what it resolves hardly does.
MANY_CALLS = 100

#: How much shorter a vector is looked for after a claim that came out too large.
CLOSER = 4.0

#: How much smaller a ball is tried where values do not resolve this one.
SMALLER = 64.0


def gathered(
    oracle: CountedOracle,
    x: Vector,
    radius: float,
    eps: float,
    seed: int,
    found: Enrichment,
    deadline: float,
) -> Enrichment:
    """Gather gradients around x; some calls are kept back to look beside those that matter."""
    left = int(min(oracle.limit - oracle.calls, 2.0**62))
    with oracle.reserved(min(x.size + 41, left // 2)):
        # Gradients without visible gain before the search gives up.
        patience = max(30, min(x.size, 400))
        enrich(oracle, x, radius, eps, seed, found, patience=patience, deadline=deadline)
    return found


def certificate_from(
    found: Enrichment,
    x: Vector,
    delta: float,
    eps: float,
    oracle: CountedOracle,
    meta: dict[str, Any],
    deadline: float = math.inf,
    check_gradient: bool = True,
    confirm: bool = True,
) -> GoldsteinCertificate:
    """Gather gradients and state the strongest claim that survives its own check.

    Where a claim would rest on points next to a kink, the gradients found beside them are added,
    and the search goes on without those points.
    """
    best: GoldsteinCertificate | None = None
    seed = int(meta["seed"])
    refused: UnresolvedError | None = None
    goal = eps
    resolution: Vector | float = 0.0
    # Calls that are kept back to check the claim in the end.
    keep = min(CHECKS * (8 * x.size + 40), (oracle.limit - oracle.calls) // 3) if confirm else 0

    def kept() -> int:
        return int(max(0, min(keep, oracle.limit - oracle.calls)))

    for _ in range(SEARCHES):
        with oracle.reserved(kept()):
            gathered(oracle, x, delta, goal, seed, found, deadline)
        oracle.require_visible(x, delta)
        if not found.points:
            break
        near = [j for j, y in enumerate(found.points) if distance_upper(y, x) <= delta]
        points = np.array([found.points[j] for j in near]).reshape(-1, x.size)
        gradients = np.array([found.gradients[j] for j in near]).reshape(-1, x.size)
        if len(near) == len(found.points):  # once is enough, where they are long
            found.points, found.gradients = list(points), list(gradients)
        built = Construction(oracle, x, delta, points, gradients, seed)
        left = oracle.limit - oracle.calls
        try:
            if check_gradient:  # of these points: others may have been next to a kink
                known = built.rests_on()
                resolution = required_resolution(oracle, x, delta, seed, known)
        except OutOfCalls:
            if left >= MANY_CALLS:
                raise UnresolvedError(STRICTLY * delta) from None
        except UnresolvedError as unresolved:
            if refused is not None or delta / SMALLER < smallest_delta(x):
                raise refused or unresolved from None
            # What is proved of a smaller ball is true of this one, and f may be smooth there.
            delta, found, refused = delta / SMALLER, Enrichment(), unresolved
            continue
        built.place.resolution = resolution
        with oracle.reserved(kept()):
            claim = built.claim(eps, *remarks(found, meta))
        if claim is not None and (best is None or claim.eps < best.eps):
            best = claim
        if best is not None and best.eps <= eps:
            break
        # What is stated allows for more than what was found: then more has to be found.
        if 0.0 < (bound := built.best()[0]) <= goal:
            goal = min(goal, bound) / CLOSER
        elif not built.unsteady:
            break
        if time.perf_counter() > deadline:
            break
        found.points, found.gradients = built.steady()
    if best is None:
        raise InputError(
            f"no gradient could be had within {delta:g} of x ({found.kinks} kinks met); "
            "raise max_calls or delta."
        )
    if confirm and np.max(resolution) > FINE * delta:
        try:
            stated = confirmed(best, oracle, as_box(None, x.size), None, seed, True)
        except OutOfCalls:
            stated = None
        proved = UNSEEN * max(norms_upper(best.gradients))
        if stated is not None:  # the next check may see more than those few have
            proved = min(2.0 * stated.eps, eps if stated.eps <= eps else math.inf)
        best = replace(best, eps=max(best.eps, proved), digest="")
    return best


def hint_around(
    oracle: CountedOracle, x: Vector, delta: float, eps: float, seed: int, deadline: float
) -> GoldsteinCertificate | None:
    """Return gradients around x as a hint where a pivot may be; it need not survive a check."""
    found = gathered(oracle, x, delta, eps, seed, Enrichment(), deadline)
    if not found.points:
        return None
    inside = [distance_upper(y, x) <= delta for y in found.points]
    return GoldsteinCertificate.from_gradients(
        x, np.array(found.points)[inside], np.array(found.gradients)[inside]
    )


def remarks(found: Enrichment, meta: dict[str, Any]) -> tuple[dict[str, Any], Vector | None]:
    """Return the remarks of a certificate and the direction of descent that was met."""
    if found.descent is None:
        return meta, None
    # Where squares underflow, a direction can miss the length 1 visibly.
    direction = found.descent / np.linalg.norm(found.descent)
    more = {"descent_step": found.descent_step, "descent_fall": found.descent_fall}
    return {**meta, **more}, direction
