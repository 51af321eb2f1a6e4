"""What gradients of black boxes have to stand, after their claim has been found right.

Values are compared with them, and they are asked for at perturbed points, with weights chosen anew.
Nothing here can accept a claim.
"""

import math
from functools import partial
from typing import Any

import numpy as np

from goldstein.checker import errors, rounding
from goldstein.checker.arrays import Indices, Matrix, Vector
from goldstein.checker.blackbox.differences import Differences
from goldstein.checker.blackbox.errors import ContradictedError
from goldstein.checker.blackbox.perturbed import Neighbourhood, has_room, resample
from goldstein.checker.function import OBJECTIVE
from goldstein.checker.verification import Verification

#: Weights chosen anew may use so many times the multipliers that are stated.
MORE_WEIGHT = 4.0


def look_beside(
    found: Verification, rows: Any, goal: float, share: float, seed: int, check_values: bool
) -> Vector | float:
    """Look for reasons to refuse a claim whose rows have to be `goal` short beside their points.

    `share` is what a convex term adds to eps. Return what the functions resolve.
    """
    cert, problem = rows.cert, rows.problem
    if not has_room(cert.x, cert.delta, problem.box, problem.f.coarse):
        words = f"a ball of radius {cert.delta:g} has too few floats to look beside the points"
        found.add("kinks", False, words + ", and a black box does not say where its kinks are")
        return 0.0
    step = _check_values(found, rows, seed) if check_values else 0.0
    if not found.ok:
        return step
    place = Neighbourhood(cert.x, cert.delta, problem.box, step)
    best = partial(rebound, rows, enough=goal)
    near = resample(rows.ask, place, rows.points, rows.owners, rows.weights, best, goal, seed)
    words = f"eps {near + share:.6g} with every point displaced a little"
    words += "" if near <= goal else ": one sits on a kink, where gradients mean nothing"
    if not found.add("kinks", near <= goal, words):
        found.eps = max(found.eps, near + share)
    return step


def _check_values(found: Verification, rows: Any, seed: int) -> Vector | float:
    """Compare values with the gradients of every function; return what all of them resolve."""
    cert, problem = rows.cert, rows.problem
    step: Vector | float = 0.0
    for i in sorted(set(rows.owners.tolist())):
        f = problem.function(i)
        if not f.has_value:
            continue
        try:
            looked = Differences(f, cert.x, cert.delta, problem.box, seed)
            step = np.maximum(step, looked.resolution(_heaviest(rows, i), closely=True))
        except ContradictedError as failure:
            name = "f" if i == OBJECTIVE else problem.system.name(i)
            found.add("values", False, f"{failure} of {name}; look with gs.check_gradient")
            return step
        except errors.GoldsteinError as failure:
            found.add("resolution", False, str(failure))
            return step
    if np.any(step):
        said = f"differences of values agree, and resolve steps of {np.max(step):.2g}"
        found.add("values", True, said)
    return step


def _heaviest(rows: Any, i: int) -> list[tuple[Vector, Vector]]:
    """Return the points on which a claim rests most, with the gradients of one function."""
    own = np.flatnonzero(rows.owners == i)
    shares = rows.weights[own] * rounding.norms_upper(rows.stored[own])
    order = own[np.argsort(-shares, kind="stable")]
    return [(rows.points[j], rows.sign[i] * rows.stored[j]) for j in order]


def rebound(
    claim: Any, rows: Matrix, owners: Indices, known: Vector | None = None, enough: float = -1.0
) -> tuple[float, Vector]:
    """Return the bound for known weights, or for better ones without larger multipliers, where
    these do not reach `enough`."""
    of_f, weights, best = owners == OBJECTIVE, np.zeros(len(rows)), (math.inf, np.zeros(len(rows)))
    if known is not None:
        best = claim.length(rows, owners, known), known
    if best[0] <= enough or not of_f.any():
        return best
    hull, cone = rows[of_f], rows[~of_f]
    if claim.fixed is None:
        cone = np.concatenate([cone, _normals(claim.low, claim.high)])
    else:
        hull = hull + claim.fixed
    a, b = claim.problem.propose(hull, cone)
    weights[of_f], weights[~of_f] = np.maximum(a, 0.0), np.maximum(b[: (~of_f).sum()], 0.0)
    most = weights[of_f].max()
    if not (most > 0 and np.isfinite(weights).all()):  # what is proposed may be anything
        return best
    with np.errstate(over="ignore", invalid="ignore"):
        weights /= most
        weights /= math.fsum(weights[of_f].tolist())
        used = float(weights[~of_f] @ np.linalg.norm(rows[~of_f], axis=1))
    stated = np.where(claim.owners == OBJECTIVE, 0.0, claim.weights)
    if used <= MORE_WEIGHT * rounding.mean_length(stated, claim.stored) + claim.cert.eps:
        length = claim.length(rows, owners, weights)
        best = (length, weights) if length < best[0] else best
    return best


def _normals(low: Vector, high: Vector) -> Matrix:
    """Return the unit normals of the bounds that may be used."""
    side, places = np.nonzero([low, high])
    found = np.zeros((places.size, low.size))
    found[np.arange(places.size), places] = 2.0 * side - 1.0
    return found
