"""The KKT claim: gradients of f and of constraints near x, and normals of the bounds, cancel.

|sum_j w_j grad f(y_j) + sum_r mu_r grad c_i(r)(z_r) + n| <= eps, all points within delta of x and
inside the bounds, w convex, n normal to the bounds at x, the sign of mu_r that of its limit, every
constraint with a multiplier reached or crossed at a stored point. As for Goldstein claims the
gradients are believed, but for kinks; everything is asked again, inside the bounds only.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.beside import ROUNDS, ROWS, SAME, Gradient, beside, hair, rounding_slack
from goldstein.checker.box import Box
from goldstein.checker.constraints import (
    DEGENERATE,
    ConicOptimise,
    Constraints,
    WithMultipliers,
    best_normal,
    combined_upper,
    excess,
    fits,
    qualification_of,
    signs_fit,
    tolerances,
)
from goldstein.checker.errors import GoldsteinError, KinkError
from goldstein.checker.goldstein import SAME_SHARE, Claim
from goldstein.checker.rounding import UNIT, distance_upper, norm_upper, up
from goldstein.checker.verification import Verification

#: Weights chosen anew may use so many times the multipliers that are stated.
MORE_WEIGHT = 4.0

#: Pairs of points a hair beside x at which constraints are asked for their qualification, and how
#: much smaller it may be than stated: it is measured on samples.
PAIRS, LESS = 2, 10.0

#: A constraint vanishes at x if its gradients there are shorter than this part of those elsewhere
#: in the ball; and x has to be closer to a constraint with a multiplier than this part of delta,
#: or what holds at the constraint need not show at x.
VANISHED, CLOSE = 0.02, 1e-4


class KKTClaim(Claim, WithMultipliers, Protocol):
    """What is claimed, and the evidence."""

    @property
    def feasibility(self) -> float: ...
    @property
    def constraint_points(self) -> Matrix: ...
    @property
    def constraint_gradients(self) -> Matrix: ...
    @property
    def normal(self) -> Vector: ...
    @property
    def qualification(self) -> float: ...


@dataclass(frozen=True)
class Asked:
    """The problem, as far as a check asks about it.

    `optimise` proposes weights for gradients; it is not believed.
    """

    gradient: Gradient
    box: Box
    system: Constraints
    optimise: ConicOptimise


def check_kkt(cert: KKTClaim, asked: Asked, seed: int) -> Verification:
    """Decide a KKT claim; the checks stop where a later one would mean nothing."""
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    if not (
        _plain_checks(found, cert)
        and _check_place(found, cert, asked.box)
        and _check_signs(found, cert, asked)
    ):
        return found
    try:
        _check_activity(found, cert, asked.system)
        if found.ok:
            _check_bound(found, cert, asked, seed)
        if found.ok:
            _check_qualification(found, cert, asked, seed)
    except KinkError as kink:
        found.add("gradients", False, f"a function has a kink at a stored point: {kink}")
    except GoldsteinError as failure:
        found.add("gradients", False, f"a function could not be evaluated: {failure}")
    return found


def _plain_checks(found: Verification, cert: KKTClaim) -> bool:
    """What can be said without asking anything."""
    arrays = (
        cert.x, cert.points, cert.gradients, cert.weights, cert.constraint_points,
        cert.constraint_gradients, cert.constraint_weights, cert.normal, cert.multipliers,
    )  # fmt: skip
    numbers = (cert.eps, cert.delta, cert.feasibility, cert.qualification)
    finite = all(np.isfinite(a).all() for a in arrays) and cert.weights.size > 0
    finite = finite and all(math.isfinite(v) and v >= 0 for v in numbers)
    if not found.add("numbers", finite, "all entries finite" if finite else "non-finite or empty"):
        return False
    sealed = cert.digest == cert.content_digest()
    found.add("content", sealed, "unaltered" if sealed else "a field was changed after it was made")
    total = math.fsum(cert.weights.tolist())
    convex = bool((cert.weights >= 0).all()) and abs(total - 1.0) <= 1e-9
    found.add(
        "weights",
        convex,
        "those of f nonnegative, sum 1"
        if convex
        else f"those of f sum to {total:g} or are negative; without f nothing is said about it",
    )
    supported = cert.label in ("conditional", "estimated")
    found.add("label", supported, f"claimed {cert.label}, this check can support conditional")
    return convex


def _check_place(found: Verification, cert: KKTClaim, box: Box) -> bool:
    """x and all points inside the bounds and the ball, before anything is asked there."""
    inside = all(box.contains(p) for p in (cert.x, cert.points, cert.constraint_points))
    if not found.add(
        "bounds", inside, "all points inside" if inside else "x or a stored point is outside"
    ):
        return False
    places = [*cert.points, *cert.constraint_points]
    found.delta = max(distance_upper(y, cert.x) for y in places)
    return found.add(
        "ball",
        found.delta <= cert.delta,
        f"points within {found.delta:.6g}, claimed {cert.delta:.6g}",
    )


def _check_signs(found: Verification, cert: KKTClaim, asked: Asked) -> bool:
    """Signs of the normal and of the multipliers."""
    low, high = asked.box.normal_signs(cert.x)
    allowed = ((cert.normal >= 0) | low) & ((cert.normal <= 0) | high)
    wrong = np.flatnonzero(~allowed)
    found.add(
        "normal",
        not wrong.size,
        "normal to the bounds at x"
        if not wrong.size
        else f"entry {wrong[0]} is {cert.normal[wrong[0]]:g}, but x is not on that bound",
    )
    if not found.add("constraints", *fits(cert, asked.system)):
        return False
    found.add("multipliers", *signs_fit(cert, asked.system))
    return found.ok


def _check_activity(found: Verification, cert: KKTClaim, system: Constraints) -> None:
    """Feasible at x, and every constraint with a multiplier reached in the ball."""
    values = system.values(cert.x)
    violation = float(np.abs(excess(system, values)).max(initial=0.0))
    # Another machine rounds the user's own code differently.
    scale = float(np.abs(values).max(initial=0.0))
    found.add(
        "feasibility",
        violation <= cert.feasibility + 2.0**-48 * scale,
        f"violation {violation:.3g} at x, claimed {cert.feasibility:.3g}",
    )
    missing = [i for i in np.flatnonzero(cert.multipliers) if not _reached(cert, system, int(i))]
    found.add(
        "activity",
        not missing,
        f"a multiplier on {system.name(int(missing[0]))}, which no stored point reaches"
        if missing
        else "every constraint with a multiplier is reached in the ball",
    )


def _reached(cert: KKTClaim, system: Constraints, i: int) -> bool:
    """Whether stored points reach the limit that the multiplier of component i belongs to.

    An equality holds at x, or has values on both sides of its limit.
    """
    values = np.array(
        [
            system.values(y)[i]
            for y in (cert.x, *cert.constraint_points[cert.constraint_index == i], *cert.points)
        ]
    )
    above, below = bool((values >= system.upper[i]).any()), bool((values <= system.lower[i]).any())
    if system.equal[i]:
        holds = abs(values[0] - system.upper[i]) <= tolerances(system)[i]
        return bool(holds) or (above and below)
    return above if cert.multipliers[i] > 0 else below


def _check_bound(found: Verification, cert: KKTClaim, asked: Asked, seed: int) -> None:
    """Ask for the gradients again: at the stored points, and a hair beside them."""
    gradients = np.array([asked.gradient(y.copy()) for y in cert.points])
    rows = np.zeros_like(cert.constraint_gradients)
    for r, (y, i) in enumerate(zip(cert.constraint_points, cert.constraint_index.tolist())):
        # Rows of weight 0 are there for their values; they may be kinks.
        rows[r] = asked.system.rows(y)[i] if cert.constraint_weights[r] else 0.0
    factors = np.concatenate([cert.weights, np.abs(cert.constraint_weights)])
    fresh, stored = (
        np.concatenate(pair)
        for pair in ((gradients, rows), (cert.gradients, cert.constraint_gradients))
    )
    size = math.fsum(w * norm_upper(g) for w, g in zip(factors.tolist(), fresh) if w > 0)
    gap = math.fsum(w * distance_upper(g, h) for w, g, h in zip(factors.tolist(), fresh, stored))
    same = gap <= SAME * size + SAME_SHARE * cert.eps
    found.add(
        "gradients",
        same,
        f"asked again, weighted difference {gap:.3g}"
        + ("" if same else "; another function or constraint, or one that is not deterministic"),
    )
    found.eps = combined_upper(cert.weights, gradients, cert.constraint_weights, rows, cert.normal)
    limit = cert.eps + rounding_slack(factors.size, size)
    if not found.add(
        "bound", found.eps <= limit, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    ):
        return
    near = survey_kkt(cert, asked, limit + SAME * size, seed)
    survives = near <= limit + SAME * size
    found.add(
        "kinks",
        survives,
        f"eps {near:.6g} with every point displaced a little"
        + ("" if survives else ": a stored point sits on a kink, where gradients mean nothing"),
    )
    if not survives:
        found.eps = max(found.eps, near)


#: A point, and whose gradient is meant there: component i of the constraints, or f (-1).
Place = tuple[Vector, int]


def survey_kkt(cert: KKTClaim, asked: Asked, goal: float, seed: int) -> float:
    """Return the smallest bound found at points a hair beside; the search ends at `goal`.

    As for Goldstein certificates the weights may be chosen anew, and whatever then carries weight
    has a twin some units in the last place away that must do as well.
    """
    used = np.flatnonzero(cert.constraint_weights)
    stored: list[Place] = [(y, -1) for y in cert.points[cert.weights > 0]]
    stored += [(cert.constraint_points[r], int(cert.constraint_index[r])) for r in used]
    known = np.concatenate([cert.weights[cert.weights > 0], np.abs(cert.constraint_weights[used])])
    best = math.inf
    all_places: list[Place] = []
    all_rows: list[Vector] = []
    for draw in range(max(2, min(ROUNDS, ROWS // len(stored)))):
        rng = np.random.default_rng([seed, draw])
        places = [(displaced(rng, y, cert, asked.box), i) for y, i in stored]
        try:
            rows = _signed_rows(places, cert, asked)
        except KinkError:
            continue
        bound, weights = _bound(places, rows, cert, asked, known)
        if bound > goal:
            places = all_places = all_places + places
            rows = all_rows = all_rows + rows
            bound, weights = _bound(places, rows, cert, asked, None)
        if bound <= goal:
            support = np.flatnonzero(weights > 0).tolist()
            twins = [
                (displaced(rng, places[j][0], cert, asked.box, 2.0**-6), places[j][1])
                for j in support
            ]
            try:
                beside_rows = _signed_rows(twins, cert, asked)
            except KinkError:
                continue
            bound = max(bound, _bound(twins, beside_rows, cert, asked, weights[support])[0])
        best = min(best, bound)
        if bound <= goal:
            break
    return best


def displaced(
    rng: np.random.Generator, y: Vector, cert: KKTClaim, box: Box, hairs: float = 1.0
) -> Vector:
    """Displace y by a hair, within the ball and the bounds."""
    z = box.clip(box.fold(beside(rng, y, cert.x, cert.delta, hairs)))
    if distance_upper(z, cert.x) <= cert.delta:
        return z
    return box.clip(cert.x + 0.999 * (z - cert.x))


def _signed_rows(places: list[Place], cert: KKTClaim, asked: Asked) -> list[Vector]:
    """Return gradients of f, and of constraints times the sign of the multiplier."""
    return [
        asked.gradient(z.copy())
        if i < 0
        else np.sign(cert.multipliers[i]) * asked.system.rows(z)[i]
        for z, i in places
    ]


def _bound(
    places: list[Place], rows: list[Vector], cert: KKTClaim, asked: Asked, known: Vector | None
) -> tuple[float, Vector]:
    """Return the bound for the known weights, or for better ones that use no larger multipliers."""
    low, high = asked.box.normal_signs(cert.x)
    matrix = np.array(rows)
    of_f = np.array([i < 0 for _, i in places])
    normals = np.concatenate([-np.eye(low.size)[low], np.eye(low.size)[high]])

    def bound(weights: Vector) -> float:
        normal = best_normal(weights @ matrix, low, high)
        return combined_upper(weights[of_f], matrix[of_f], weights[~of_f], matrix[~of_f], normal)

    best = math.inf, np.zeros(len(rows))
    if known is not None:
        best = bound(known), known
    weights = np.zeros(len(rows))
    if of_f.any():
        a, b = asked.optimise(matrix[of_f], np.concatenate([matrix[~of_f], normals]))
        a, b = np.maximum(a, 0.0), np.maximum(b[: int((~of_f).sum())], 0.0)
        weights[of_f], weights[~of_f] = a / (math.fsum(a.tolist()) or 1.0), b
    lengths = np.linalg.norm(matrix, axis=1)
    stated = math.fsum(
        abs(w) * norm_upper(g)
        for w, g in zip(cert.constraint_weights.tolist(), cert.constraint_gradients)
    )
    usable = weights[of_f].any() and np.isfinite(weights).all()  # what is proposed may be anything
    if usable and float(weights[~of_f] @ lengths[~of_f]) <= MORE_WEIGHT * stated + cert.eps:
        best = min(best, (bound(weights), weights), key=lambda pair: pair[0])
    return best


def qualification(
    multipliers: Vector,
    normal: Vector,
    rows: list[tuple[int, Vector]],
    asked: Asked,
    x: Vector,
    delta: float,
    rng: np.random.Generator,
    pairs: int = PAIRS,
) -> float:
    """Return how far the gradients of the constraints in use are from cancelling each other.

    `rows` are those with weight; the constraints are asked besides at pairs of points a hair beside
    x, on opposite sides of it: there a multiplier has to mean something when delta shrinks. Linear
    equalities are left out, their gradients form a line by nature.
    """
    system, box = asked.system, asked.box
    meant = [
        int(i) for i in np.flatnonzero(multipliers) if not (system.linear[i] and system.equal[i])
    ]
    rows = [(i, g) for i, g in rows if i in meant]
    bent = [i for i in meant if not system.linear[i]]
    centre = _jacobians([hair(x, delta) for _ in range(pairs)] if bent else [], x, box, system, rng)
    if bent and _vanishes(centre, rows, bent, asked, x, delta, rng, pairs):
        return 0.0
    rows += [(i, jacobian[i]) for jacobian in centre for i in bent]
    index = np.array([i for i, _ in rows], dtype=np.intp)
    matrix = np.array([np.sign(multipliers[i]) * g for i, g in rows]).reshape(-1, x.size)
    return qualification_of(index, matrix, normal, box, asked.optimise)


def _jacobians(
    widths: list[Vector], x: Vector, box: Box, system: Constraints, rng: np.random.Generator
) -> list[Matrix]:
    """Return Jacobians at pairs of random points on opposite sides of x."""
    found = []
    for width in widths:
        offset = width * rng.standard_normal(x.size)
        for sign in (1.0, -1.0):
            with contextlib.suppress(KinkError):
                found.append(system.rows(box.clip(box.fold(x + sign * offset))).copy())
    return found


def _vanishes(
    centre: list[Matrix],
    rows: list[tuple[int, Vector]],
    bent: list[int],
    asked: Asked,
    x: Vector,
    delta: float,
    rng: np.random.Generator,
    pairs: int,
) -> bool:
    """Whether gradients of a constraint are next to 0 at x, or x is too far from it to tell."""
    if not centre:
        return True
    wide = np.full(x.size, 0.9 * delta / math.sqrt(x.size))
    around = centre + _jacobians([wide] * pairs, x, asked.box, asked.system, rng)
    violated = np.abs(excess(asked.system, asked.system.values(x)))
    for i in bent:
        shortest = min(float(np.linalg.norm(jacobian[i])) for jacobian in centre)
        longest = max(float(np.linalg.norm(jacobian[i])) for jacobian in around)
        longest = max([longest, *(float(np.linalg.norm(g)) for k, g in rows if k == i)])
        # Who looks more often than a check is to be stricter as well.
        strict = math.sqrt(pairs / PAIRS)
        if shortest <= strict * VANISHED * longest:
            return True
        if strict * violated[i] > CLOSE * delta * shortest:
            return True
    return False


def _check_qualification(found: Verification, cert: KKTClaim, asked: Asked, seed: int) -> None:
    """Constraints whose gradients cancel each other prove anything about f, that is nothing."""
    used = np.flatnonzero(cert.constraint_weights)
    rows = [(int(cert.constraint_index[r]), cert.constraint_gradients[r]) for r in used]
    rng = np.random.default_rng([seed, ROUNDS])
    q = qualification(cert.multipliers, cert.normal, rows, asked, cert.x, cert.delta, rng)
    honest = cert.qualification <= LESS * q
    empty = min(q, cert.qualification) <= DEGENERATE
    found.add(
        "qualification",
        honest and not empty,
        f"constraint gradients stay {q:.3g} away from 0"
        + ("" if honest else f", {cert.qualification:.3g} is stated")
        + (": degenerate, the claim says nothing about f" if empty else ""),
    )


def convex_gap(
    cert: KKTClaim, value: Callable[[Vector], float], system: Constraints, radius: float
) -> float:
    """Bound f(x) - f(z) for feasible z within `radius` of x, rounded up; f and c are convex.

    sum_j mu_j e_j + sum_i |multiplier_i| slack_i + eps radius, e_j the error at x of the
    linearisation at stored point j. The certificate itself is to be verified besides.
    """

    def error(at_x: float, at_y: float, y: Vector, g: Vector) -> float:
        """at_x - at_y - <g, x - y>, with room for the rounding of its terms."""
        size = abs(at_x) + abs(at_y) + norm_upper(g) * distance_upper(y, cert.x)
        return at_x - at_y - float(g @ (cert.x - y)) + 4 * (cert.x.size + 4) * UNIT * size

    here = float(value(cert.x.copy()))
    terms = [
        w * error(here, float(value(y.copy())), y, g)
        for w, y, g in zip(cert.weights.tolist(), cert.points, cert.gradients)
        if w > 0
    ]
    values = system.values(cert.x)
    for r in np.flatnonzero(cert.constraint_weights).tolist():
        i, y = int(cert.constraint_index[r]), cert.constraint_points[r]
        weight = float(cert.constraint_weights[r])
        sign = math.copysign(1.0, weight)
        there = float(system.values(y)[i])
        g = sign * cert.constraint_gradients[r]
        terms.append(abs(weight) * error(sign * float(values[i]), sign * there, y, g))
    slack = np.where(cert.multipliers > 0, system.upper - values, values - system.lower)
    for i in np.flatnonzero(cert.multipliers).tolist():
        terms.append(abs(float(cert.multipliers[i])) * max(0.0, float(slack[i])))
    return up(max(0.0, math.fsum(terms)) + up(cert.eps * radius), 64 * UNIT)


__all__ = ["Asked", "KKTClaim", "check_kkt", "convex_gap", "displaced", "qualification"]
