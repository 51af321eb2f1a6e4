"""Make claims from values that will survive fresh draws."""

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from goldstein.certificates import values
from goldstein.certificates.confidence import Many
from goldstein.certificates.kkt import KKTCertificate
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.constrained.limits import Box
from goldstein.checker.rounding import distance_upper, norm_upper, up
from goldstein.numerics.hull import min_norm_weights
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.counted import Map
from goldstein.oracles.differences import with_room
from goldstein.oracles.problem import System
from goldstein.solvers import Request

#: Slopes are taken to be this much steeper than the steepest that was met along the coordinate,
#: and than this part of the steepest along any.
STEEPER, SHARE = 1.5, 0.05

#: Samples where no eps is asked for and nothing is seen.
DEFAULT = 200

#: Samples drawn to see how many are needed, and those drawn where there is room for them.
PILOT, USUAL = 8, 64

#: Values kept back for a look at how fine values are.
QUANTISATION = 520

#: Room for fresh draws: standard deviations of the mean, and a part of the whole.
SPARE, ROOM = 6.0, 1.05

#: Of a ball, the part that belongs to the boxes, at least: narrow ones cross no kinks. And so many
#: times the blur of the values, or differences show nothing else.
NARROW, CLEAR = 1e-4, 200.0

#: What the rounding of another machine may add to a radius, relative to it.
OTHERWISE = 2.0**-40

#: A box is at most this part of the room between two bounds.
BETWEEN = 0.125


@dataclass(frozen=True)
class Statistics:
    """What a claim from values is made with.

    Attributes
    ----------
    confidence : float
    request : Request
        What is asked for; with a bound of the slopes, where the user knows one.
    box : Box
    workers : map-like
    meta : dict
        Remarks of the claims.
    attempt : int
        How many claims were tried before.
    """

    confidence: float
    request: Request
    box: Box
    workers: Map
    meta: dict[str, Any]
    attempt: int = 0

    def stream(self, purpose: str) -> np.random.Generator:
        """Return the random numbers of this attempt."""
        return stream(self.request.seed, self.attempt, purpose)

    def asked(self, oracle: CountedOracle) -> Many:
        """Return the values of an oracle at many points."""
        return partial(oracle.values_at, workers=self.workers)


def places_around(
    x: Vector,
    points: Matrix,
    weights: Vector,
    delta: float,
    box: Box,
    most: float = 0.1,
    blur: float = 0.0,
) -> values.Places:
    """Return boxes around the points, all inside ball and bounds.

    They are as narrow as the blur of the values allows; `most` is the part of the radius that they
    may have. Points too far out are pulled towards x: that may make a claim weaker, never wrong.
    """
    dim = max(1, int((~box.fixed).sum()))
    narrow = max(NARROW * delta / math.sqrt(dim), CLEAR * blur)
    narrow = max(narrow, 2.0 * values.VISIBLE * float(np.abs(points).max()))
    wide = min(narrow, most * delta / math.sqrt(dim))
    widths = np.minimum(wide, BETWEEN * (box.upper - box.lower))
    widths = np.where(box.fixed, 0.0, widths)
    used = weights > 0
    placed = []
    for y in points[used]:
        z = with_room(y, box.lower, box.upper, widths)
        for _ in range(60):
            if _farthest(z, x, widths) <= delta:
                break
            z = with_room(x + 0.9 * (z - x), box.lower, box.upper, widths)
        placed.append(z)
    return values.Places(np.array(placed), weights[used] / weights[used].sum(), widths)


def _farthest(y: Vector, x: Vector, widths: Vector) -> float:
    """Return how far from x a box reaches, with room for machines that round otherwise."""
    return up(distance_upper(y, x) + up(norm_upper(widths)), OTHERWISE)


def balanced(values_at: Many, places: values.Places, how: Statistics) -> values.Places:
    """Return the boxes with weights for which the means of a few samples nearly cancel.

    Noisy values need wide boxes, whose means are not the gradients at their centres.
    """
    rng = how.stream("balance")
    means = []
    for y in places.points:
        alone = values.Places(y[None], np.ones(1), places.widths)
        means.append(values.OfFunction(values_at, alone).draw(PILOT, rng).vectors.mean(axis=0))
    weights = min_norm_weights(np.array(means))
    used = weights > 0
    if not (used.any() and np.isfinite(weights).all()):
        return places
    return values.Places(places.points[used], weights[used] / weights[used].sum(), places.widths)


def pilot_length(source: values.OfFunction, x: Vector, how: Statistics) -> float:
    """Return about how short the mean of a few samples is, and how much they vary."""
    seen = source.draw(PILOT, how.stream("promise")).vectors
    mean = seen.mean(axis=0)
    short = np.linalg.norm(values.left_by_normals(mean, mean, how.box, x))
    found = float(short + np.linalg.norm(seen.std(axis=0)))
    return found if math.isfinite(found) else math.inf


def least_cost(variables: int) -> int:
    """Return how many values the cheapest claim takes: fewer are not begun with."""
    return QUANTISATION + (PILOT + values.FEWEST) * 2 * variables


def state_values(
    oracle: CountedOracle, x: Vector, places: values.Places, how: Statistics
) -> values.ValuesCertificate | None:
    """Draw what `eps` needs, or what the budget allows, and state what is seen; or None.

    Points and weights must have been fixed before.
    """
    seen = look(values.OfFunction(how.asked(oracle), places), oracle, x, how)
    if seen is None:
        return None
    slopes = "observed" if how.request.lipschitz is None else "given"
    return values.ValuesCertificate(**claimed(x, places, how, seen, slopes))


@dataclass(frozen=True)
class Seen:
    """What samples showed: the fields of a claim that rest on them."""

    eps: float
    slopes: Vector
    samples: int
    mean: Vector
    grain: float


def look(source: values.OfFunction, f: CountedOracle, x: Vector, how: Statistics) -> Seen | None:
    """Draw samples, as many as `eps` needs or the budget of the oracle allows; None where too few,
    or where float64 does not see the boxes.

    A run that tries several times and stops when it likes what it sees divides the probability of
    being wrong among its attempts: 6 / (pi k)^2 of it for attempt k.
    """
    rng, cost = how.stream("differences"), source.places.cost
    request, box = how.request, how.box
    spare = int(min(f.limit - f.calls, 2**53)) - QUANTISATION
    if spare < (PILOT + values.FEWEST) * cost or cost == 0:
        return None
    if not values.are_visible(source.places.points, source.places.widths, box):
        return None
    pilot = source.draw(PILOT, rng)
    miss = (1.0 - how.confidence) * 6.0 / (math.pi * how.attempt) ** 2
    slopes = _slopes(pilot.steepest, request.lipschitz, box)
    grain = 4.0 * source.quantum(request.delta, slopes, box, rng)
    needed = _needed(pilot.vectors.mean(axis=0), slopes, request.eps, miss)
    samples = int(min(needed, (spare - PILOT * cost) // cost))
    draws = source.draw(samples, rng)
    if not np.isfinite(draws.vectors).all():
        return None
    slopes = _slopes(np.maximum(pilot.steepest, draws.steepest), request.lipschitz, box)
    bound = values.upper_bound(draws.vectors, slopes, box, x, miss, spare=SPARE)
    rounding = values.rounding_of(source.places.widths, 2.0 * draws.largest_value, grain)
    eps = up(ROOM * bound + rounding, 8e-9)
    return Seen(eps, slopes, samples, draws.vectors.mean(axis=0), grain)


def claimed(
    x: Vector, places: values.Places, how: Statistics, seen: Seen, slopes: str
) -> dict[str, Any]:
    """Return the fields that all claims from values share."""
    box, meta = how.box, {**how.meta, "slopes": slopes}
    return {
        **vars(seen), "x": x, "delta": max(_farthest(y, x, places.widths) for y in places.points),
        "points": places.points, "weights": places.weights, "widths": places.widths,
        "confidence": how.confidence, "lower": box.lower, "upper": box.upper, "meta": meta,
    }  # fmt: skip


def _slopes(seen: Vector, lipschitz: float | None, box: Box) -> Vector:
    """Return bounds of the slopes along the coordinates; given ones are overruled by what is."""
    if lipschitz is not None:
        bounds = np.maximum(lipschitz, seen)
    else:
        bounds = STEEPER * np.maximum(seen, SHARE * seen.max(initial=0.0))
    return np.where(box.fixed, 0.0, bounds)


def _needed(mean: Vector, slopes: Vector, eps: float, miss: float) -> float:
    """Return how many samples a claim of eps takes, if they vary little; too few do not help."""
    left = eps / ROOM - float(np.linalg.norm(mean))
    left = max(left, 0.1 * eps) if left > -eps else 0.1 * float(np.linalg.norm(mean))
    size = float(np.linalg.norm(slopes))
    if left == 0.0 or not math.isfinite(size / left):
        return DEFAULT
    count = max(1, int((slopes > 0).sum()))
    return max(USUAL, math.ceil(1.5 * size * math.log(2.0 * count / miss) / left))


#: Pairs of points beside x that are looked at: more than a check will.
CENTRE_PAIRS = 6


def multiples_around(
    hint: KKTCertificate, box: Box, delta: float, most: float, blur: float
) -> values.Multiples:
    """Return boxes around the points of a hint, with its weights; the hint is not believed."""
    used = np.flatnonzero(hint.constraint_weights)
    both = np.concatenate([hint.points[hint.weights > 0], hint.constraint_points[used]])
    points, owner = np.unique(both, axis=0, return_inverse=True)
    owner = owner.ravel()
    convex = hint.weights[hint.weights > 0]
    weights = np.bincount(owner[: convex.size], convex, minlength=len(points))
    # All of them are kept, so all have a weight here.
    placed = places_around(hint.x, points, np.ones(len(points)), delta, box, most, blur)
    return values.Multiples(
        placed.points, weights / math.fsum(weights.tolist()), placed.widths,
        hint.constraint_weights[used], hint.constraint_index[used], owner[convex.size :],
    )  # fmt: skip


def state_values_kkt(
    oracle: CountedOracle, system: System, hint: KKTCertificate, multiples: values.Multiples,
    how: Statistics,
) -> values.ValuesKKTCertificate | None:  # fmt: skip
    """Draw what `eps` needs, or what the budget allows, and state what is seen; or None.

    All but the samples must have been fixed before; of the hint only its witnesses are used, whose
    values are looked up.
    """
    x, delta = hint.x, how.request.delta
    witnesses, index = _witnesses(hint, system, multiples)
    if witnesses is None:
        return None
    source = values.OfMultiples(how.asked(oracle), multiples, system)
    seen = look(source, oracle, x, how)
    if seen is None:
        return None
    rng = how.stream("centre")
    q = values.measured_qualification(source, how.box, x, delta, seen.mean, rng, pairs=CENTRE_PAIRS)
    return values.ValuesKKTCertificate(
        **{**claimed(x, multiples, how, seen, "observed"), "delta": delta},
        constraint_weights=multiples.constraint_weights,
        constraint_index=multiples.constraint_index,
        point_index=multiples.point_index,
        multipliers=multiples.multipliers(system.size),
        witnesses=witnesses,
        witness_index=index,
        feasibility=system.violation(x),
        qualification=q,
    )


def _witnesses(
    hint: KKTCertificate, system: System, multiples: values.Multiples
) -> tuple[Vector | None, values.Rows]:
    """Return stored points that reach the limits of constraints with a multiplier; None if none."""
    here = system.values(hint.x).copy()
    rows: list[tuple[Vector, int]] = []
    multipliers = multiples.multipliers(system.size)
    for i in np.flatnonzero(multipliers).tolist():
        if values.reached(system, i, multipliers[i], here, []):
            continue
        several = [*hint.constraint_points[hint.constraint_index == i], *hint.points]
        if not values.reached(system, i, multipliers[i], here, several):
            return None, np.zeros(0, dtype=np.int64)
        kept = [z for z in several if values.reached(system, i, multipliers[i], here, [z])][:1]
        rows += [(z, i) for z in kept or several]
    points = np.array([z for z, _ in rows]).reshape(-1, hint.x.size)
    return points, np.array([i for _, i in rows], dtype=np.int64)
