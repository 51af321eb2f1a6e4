"""The check of a KKT certificate: everything is asked again, inside the bounds only."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.certificates.kkt import (
    DEGENERATE,
    KKTCertificate,
    best_normal,
    combined_upper,
    fit_message,
    qualification_of,
)
from goldstein.certificates.near import Described
from goldstein.checker.arrays import Matrix, Vector
from goldstein.checker.beside import ROUNDS, ROWS, SAME, beside, hair, rounding_slack
from goldstein.checker.goldstein import SAME_SHARE, check_rounding
from goldstein.checker.rounding import UNIT, distance_upper, norm_upper, up
from goldstein.checker.verification import Verification
from goldstein.constrained.box import Box
from goldstein.constrained.problem import Problem, tolerances
from goldstein.constrained.reduction import Component, Folded
from goldstein.constrained.system import System, as_system
from goldstein.errors import CheckpointError, GoldsteinError, KinkError, NotCertifiableError
from goldstein.numerics.conic_hull import conic_weights
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.agreement import gradient_is_wrong

#: Weights chosen anew may use so many times the multipliers that are stated.
MORE_WEIGHT = 4.0

#: Pairs of points a hair beside x at which constraints are asked for their qualification, and how
#: much smaller it may be than stated: it is an upper bound from samples.
PAIRS, LESS = 2, 10.0

#: A constraint vanishes at x if its gradients there are shorter than this part of those elsewhere
#: in the ball; and x has to be closer to a constraint with a multiplier than this part of delta,
#: or what holds at the constraint need not show at x.
VANISHED, CLOSE = 0.02, 1e-4


def check_kkt(
    cert: KKTCertificate,
    oracle: Oracle,
    bounds: Any,
    constraints: Any,
    seed: int,
    check_values: bool,
) -> Verification:
    """Return what was found; the checks stop where a later one would mean nothing."""
    found = Verification(eps=math.inf, delta=math.inf, label="conditional")
    if not _plain_checks(found, cert):
        return found
    try:
        problem = Problem.of(oracle, cert.x, bounds, constraints)
    except CheckpointError:  # nothing about the claim
        raise
    except GoldsteinError as failure:
        found.add("problem", False, f"bounds or constraints do not fit: {failure}")
        return found
    if not (_check_place(found, cert, problem.box) and _check_signs(found, cert, problem)):
        return found
    try:
        _check_activity(found, cert, problem)
        if not found.ok:
            return found
        _check_bound(found, cert, problem, seed)
        if found.ok:
            _check_qualification(found, cert, problem, seed)
        if found.ok and check_values:
            _check_values(found, cert, problem, seed)
        plain = oracle.plain
        if found.ok and isinstance(plain, Described):
            with contextlib.suppress(NotCertifiableError):  # user code: nothing more is known
                check_rounding(found, cert, plain.program())
    except KinkError as kink:
        found.add("gradients", False, f"a function has a kink at a stored point: {kink}")
    except CheckpointError:  # nothing about the claim
        raise
    except GoldsteinError as failure:
        found.add("gradients", False, f"a function could not be evaluated: {failure}")
    return found


def _plain_checks(found: Verification, cert: KKTCertificate) -> bool:
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


def _check_place(found: Verification, cert: KKTCertificate, box: Box) -> bool:
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


def _check_signs(found: Verification, cert: KKTCertificate, problem: Problem) -> bool:
    """Signs of the normal and of the multipliers."""
    low, high = problem.box.normal_signs(cert.x)
    allowed = ((cert.normal >= 0) | low) & ((cert.normal <= 0) | high)
    wrong = np.flatnonzero(~allowed)
    found.add(
        "normal",
        not wrong.size,
        "normal to the bounds at x"
        if not wrong.size
        else f"entry {wrong[0]} is {cert.normal[wrong[0]]:g}, but x is not on that bound",
    )
    system, index = problem.system, cert.constraint_index
    if not found.add(
        "constraints",
        cert.multipliers.size == system.size and bool(((index >= 0) & (index < system.size)).all()),
        fit_message(cert.multipliers.size, system.size),
    ):
        return False
    found.add("multipliers", *_signs_fit(cert, problem))
    return found.ok


def _signs_fit(cert: KKTCertificate, problem: Problem) -> tuple[bool, str]:
    system = problem.system
    for i in range(system.size):
        weights = cert.constraint_weights[cert.constraint_index == i]
        if (weights > 0).any() and (weights < 0).any():
            return False, f"{system.name(i)}: weights of both signs cancel each other"
        total = math.fsum(weights.tolist())
        if abs(total - cert.multipliers[i]) > 1e-9 * abs(total):
            return False, f"{system.name(i)}: {cert.multipliers[i]:g} is stated, {total:g} is used"
        side = system.upper[i] if total > 0 else system.lower[i]
        if total and not math.isfinite(side):
            return False, f"{system.name(i)}: {total:g} has the wrong sign, there is no such limit"
    return True, "signs fit the limits"


def _check_activity(found: Verification, cert: KKTCertificate, problem: Problem) -> None:
    """Feasible at x, and every constraint with a multiplier reached in the ball."""
    system = problem.system
    violation = system.violation(cert.x)
    # Another machine rounds the user's own code differently.
    scale = float(np.abs(system.values(cert.x)).max(initial=0.0))
    found.add(
        "feasibility",
        violation <= cert.feasibility + 2.0**-48 * scale,
        f"violation {violation:.3g} at x, claimed {cert.feasibility:.3g}",
    )
    missing = [i for i in cert.active if not _reached(cert, problem, i)]
    found.add(
        "activity",
        not missing,
        f"a multiplier on {system.name(missing[0])}, which no stored point reaches"
        if missing
        else "every constraint with a multiplier is reached in the ball",
    )


def _reached(cert: KKTCertificate, problem: Problem, i: int) -> bool:
    """Whether stored points reach the limit that the multiplier of component i belongs to.

    An equality holds at x, or has values on both sides of its limit.
    """
    system = problem.system
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


def _check_bound(found: Verification, cert: KKTCertificate, problem: Problem, seed: int) -> None:
    """Ask for the gradients again: at the stored points, and a hair beside them."""
    oracle, system = problem.objective, problem.system
    gradients = np.array([oracle.gradient(y.copy()) for y in cert.points])
    oracle.require_visible(cert.x, cert.delta)
    rows = np.zeros_like(cert.constraint_gradients)
    for r, (y, i) in enumerate(zip(cert.constraint_points, cert.constraint_index.tolist())):
        # Rows of weight 0 are there for their values; they may be kinks.
        rows[r] = system.rows(y)[i] if cert.constraint_weights[r] else 0.0
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
    limit = cert.eps + rounding_slack(factors, fresh)
    if not found.add(
        "bound", found.eps <= limit, f"recomputed eps {found.eps:.6g}, claimed {cert.eps:.6g}"
    ):
        return
    near = survey_kkt(cert, problem, limit + SAME * size, seed)
    survives = near <= limit + SAME * size
    found.add(
        "kinks",
        survives,
        f"eps {near:.6g} with every point displaced a little"
        + ("" if survives else ": a stored point sits on a kink, where gradients mean nothing"),
    )
    if not survives:
        found.eps = max(found.eps, near)


@dataclass
class _Draw:
    """Gradients at displaced points: those of f, and those of constraints times their sign."""

    places: list[tuple[Vector, int]]
    rows: list[Vector]


def survey_kkt(cert: KKTCertificate, problem: Problem, goal: float, seed: int) -> float:
    """Return the smallest bound found at points a hair beside; the search ends at `goal`.

    As for Goldstein certificates the weights may be chosen anew, and whatever then carries weight
    has a twin some units in the last place away that must do as well.
    """
    used = np.flatnonzero(cert.constraint_weights)
    asked = [(y, -1) for y in cert.points[cert.weights > 0]]
    asked += [(cert.constraint_points[r], int(cert.constraint_index[r])) for r in used]
    known = np.concatenate([cert.weights[cert.weights > 0], np.abs(cert.constraint_weights[used])])
    best = math.inf
    draws = _Draw([], [])
    for draw in range(max(2, min(ROUNDS, ROWS // len(asked)))):
        rng = stream(seed, draw, "beside")
        places = [(displaced(rng, y, cert, problem.box), i) for y, i in asked]
        try:
            rows = _signed_rows(places, cert, problem)
        except KinkError:
            continue
        bound, weights = _bound(places, rows, cert, problem, known)
        if bound > goal:
            draws = _Draw(draws.places + places, draws.rows + rows)
            places, rows = draws.places, draws.rows
            bound, weights = _bound(places, rows, cert, problem, None)
        best = min(best, bound) if bound > goal else best
        if bound > goal:
            continue
        support = np.flatnonzero(weights > 0)
        twins = [
            (displaced(rng, places[j][0], cert, problem.box, 2.0**-6), places[j][1])
            for j in support.tolist()
        ]
        try:
            beside_rows = _signed_rows(twins, cert, problem)
        except KinkError:
            continue
        bound = max(bound, _bound(twins, beside_rows, cert, problem, weights[support])[0])
        best = min(best, bound)
        if bound <= goal:
            break
    return best


def displaced(
    rng: np.random.Generator, y: Vector, cert: KKTCertificate, box: Box, hairs: float = 1.0
) -> Vector:
    """Displace y by a hair, within the ball and the bounds."""
    z = box.clip(box.fold(beside(rng, y, cert.x, cert.delta, hairs)))
    if distance_upper(z, cert.x) <= cert.delta:
        return z
    return box.clip(cert.x + 0.999 * (z - cert.x))


def _signed_rows(
    places: list[tuple[Vector, int]], cert: KKTCertificate, problem: Problem
) -> list[Vector]:
    """Return gradients of f (index -1), and of constraints times the sign of the multiplier."""
    return [
        problem.objective.gradient(z.copy())
        if i < 0
        else np.sign(cert.multipliers[i]) * problem.system.rows(z)[i]
        for z, i in places
    ]


def _bound(
    places: list[tuple[Vector, int]],
    rows: list[Vector],
    cert: KKTCertificate,
    problem: Problem,
    known: Vector | None,
) -> tuple[float, Vector]:
    """Return the bound for the known weights, or for better ones that use no larger multipliers."""
    low, high = problem.box.normal_signs(cert.x)
    matrix = np.array(rows)
    of_f = np.array([i < 0 for _, i in places])
    normals = np.concatenate([-np.eye(low.size)[low], np.eye(low.size)[high]])

    def bound(weights: Vector) -> float:
        normal = best_normal(weights @ matrix, low, high)
        return combined_upper(weights[of_f], matrix[of_f], weights[~of_f], matrix[~of_f], normal)

    best = math.inf, np.zeros(len(rows))
    if known is not None:
        best = bound(known), known
    a, b = conic_weights(matrix[of_f], np.concatenate([matrix[~of_f], normals]))
    weights = np.zeros(len(rows))
    weights[of_f], weights[~of_f] = a, b[: int((~of_f).sum())]
    lengths = np.linalg.norm(matrix, axis=1)
    stated = math.fsum(
        abs(w) * norm_upper(g)
        for w, g in zip(cert.constraint_weights.tolist(), cert.constraint_gradients)
    )
    if float(weights[~of_f] @ lengths[~of_f]) <= MORE_WEIGHT * stated + cert.eps:
        best = min(best, (bound(weights), weights), key=lambda pair: pair[0])
    return best


def qualification(
    multipliers: Vector,
    normal: Vector,
    rows: list[tuple[int, Vector]],
    problem: Problem,
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
    system, box = problem.system, problem.box
    asked = [
        int(i) for i in np.flatnonzero(multipliers) if not (system.linear[i] and system.equal[i])
    ]
    rows = [(i, g) for i, g in rows if i in asked]
    bent = [i for i in asked if not system.linear[i]]
    centre = _jacobians([hair(x, delta) for _ in range(pairs)] if bent else [], x, box, system, rng)
    if bent and _vanishes(centre, rows, bent, problem, x, delta, rng, pairs):
        return 0.0
    rows += [(i, jacobian[i]) for jacobian in centre for i in bent]
    index = np.array([i for i, _ in rows], dtype=np.intp)
    matrix = np.array([np.sign(multipliers[i]) * g for i, g in rows]).reshape(-1, x.size)
    return qualification_of(index, matrix, normal, ~box.fixed)


def _jacobians(
    widths: list[Vector], x: Vector, box: Box, system: System, rng: np.random.Generator
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
    problem: Problem,
    x: Vector,
    delta: float,
    rng: np.random.Generator,
    pairs: int,
) -> bool:
    """Whether gradients of a constraint are next to 0 at x, or x is too far from it to tell."""
    system = problem.system
    if not centre:
        return True
    wide = np.full(x.size, 0.9 * delta / math.sqrt(x.size))
    around = centre + _jacobians([wide] * pairs, x, problem.box, system, rng)
    excess = np.abs(system.excess(system.values(x)))
    for i in bent:
        shortest = min(float(np.linalg.norm(jacobian[i])) for jacobian in centre)
        longest = max(float(np.linalg.norm(jacobian[i])) for jacobian in around)
        longest = max([longest, *(float(np.linalg.norm(g)) for k, g in rows if k == i)])
        # Who looks more often than a check is to be stricter as well.
        strict = math.sqrt(pairs / PAIRS)
        if shortest <= strict * VANISHED * longest or strict * excess[i] > CLOSE * delta * shortest:
            return True
    return False


def _check_qualification(
    found: Verification, cert: KKTCertificate, problem: Problem, seed: int
) -> None:
    """Constraints whose gradients cancel each other prove anything about f, that is nothing."""
    used = np.flatnonzero(cert.constraint_weights)
    rows = [(int(cert.constraint_index[r]), cert.constraint_gradients[r]) for r in used]
    rng = stream(seed, 0, "centre")
    q = qualification(cert.multipliers, cert.normal, rows, problem, cert.x, cert.delta, rng)
    honest = cert.qualification <= LESS * q
    found.add(
        "qualification",
        honest and q > DEGENERATE and not cert.degenerate,
        f"constraint gradients stay {q:.3g} away from 0"
        + ("" if honest else f", {cert.qualification:.3g} is stated")
        + (
            ": degenerate, the claim says nothing about f"
            if q <= DEGENERATE or cert.degenerate
            else ""
        ),
    )


def _check_values(found: Verification, cert: KKTCertificate, problem: Problem, seed: int) -> None:
    """A gradient of another function proves nothing about this one."""
    system = problem.system
    functions: list[Oracle] = [problem.objective.inner]
    functions += [Component(system, i) for i in cert.active if not system.linear[i]]
    wrong = wrong_gradients(functions, problem.box, cert.x, cert.delta, seed)
    found.add(
        "values",
        not wrong,
        f"differences of values contradict the gradient of {wrong[0]}"
        if wrong
        else "differences of values do not contradict the gradients",
    )


def wrong_gradients(
    functions: list[Oracle], box: Box, x: Vector, radius: float, seed: int
) -> list[str]:
    """Return the names of functions whose gradients differences of values contradict."""
    return [
        function.name
        for function in functions
        if gradient_is_wrong(CountedOracle(Folded(function, box)), x, radius, seed)
    ]


def convex_gap(cert: KKTCertificate, oracle: Oracle, constraints: Any, radius: float) -> float:
    """Return the bound of `KKTCertificate.gap`, rounded up."""
    system = as_system(constraints, cert.x)

    def error(at_x: float, at_y: float, y: Vector, g: Vector) -> float:
        """at_x - at_y - <g, x - y>, with room for the rounding of its terms."""
        size = abs(at_x) + abs(at_y) + norm_upper(g) * distance_upper(y, cert.x)
        return at_x - at_y - float(g @ (cert.x - y)) + 4 * (cert.x.size + 4) * UNIT * size

    here = float(oracle.value(cert.x.copy()))
    terms = [
        w * error(here, float(oracle.value(y.copy())), y, g)
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
    for i in cert.active:
        terms.append(abs(float(cert.multipliers[i])) * max(0.0, float(slack[i])))
    return up(max(0.0, math.fsum(terms)) + up(cert.eps * radius), 64 * UNIT)
