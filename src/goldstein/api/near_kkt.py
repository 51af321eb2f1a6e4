"""Near-KKT: KKT searches at shrinking targets, each tried as a proof in rational arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from goldstein.api.constrained import FINAL, Answer, ConstrainedSearch, certify_constrained
from goldstein.api.inputs import smallest_delta
from goldstein.api.near import near_targets
from goldstein.calculus.near_kkt import NearKKTSearch, search_near_kkt
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.near_kkt import NearKKTCertificate
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.near import exact_problem
from goldstein.constrained.problem import Problem
from goldstein.errors import InputError, NotCertifiableError
from goldstein.numerics.hull_problems import shortest_weights
from goldstein.result import Status

#: Targets that bring the proof no nearer, before one gives up: at a pivot that no rational is on,
#: smaller balls do not help.
PATIENCE = 2

#: The check that finds constraints whose gradients prove anything about f, that is nothing.
_EMPTY = "qualification"


def run_near(search: ConstrainedSearch, start: Vector) -> Answer:
    """Search until a KKT certificate moves to a pivot that is feasible and KKT exactly."""
    problem, request = search.problem, search.request
    exact_problem(
        start, problem.box, problem.system, shortest_weights
    )  # a black box is refused before anything is asked
    x, whole, kept = start, None, None
    nearest, idle = math.inf, 0
    for stage, (eps, delta) in enumerate(
        near_targets(request.eps, request.delta, smallest_delta(start))
    ):
        target = replace(request, eps=eps, delta=delta, seed=request.seed + stage)
        answer = replace(search, request=target).run(x)
        whole = answer if whole is None else whole.followed_by(answer)
        x = answer.x
        if answer.status is Status.VERIFIED:
            kept = answer
        try:
            hint = answer.certificate if problem.feasible(x) else None
            if isinstance(hint, KKTCertificate):
                found, empty = attempt(
                    problem, hint, request.eps, request.delta, request.seed, search.deadline
                )
        except KeyboardInterrupt as cause:  # what is proved is proved
            request.stop.note(cause)
            break
        if isinstance(hint, KKTCertificate):
            if empty:
                return replace(whole, status=Status.DEGENERATE)
            if found.certificate is not None and found.certificate.eps <= request.eps:
                return replace(whole, status=Status.VERIFIED, certificate=found.certificate)
            whole = replace(whole, detail=found.note.removeprefix("not proved: "))
            reached = math.inf if found.certificate is None else found.certificate.eps
            nearest, idle = (reached, 0) if reached < 0.5 * nearest else (nearest, idle + 1)
            if idle >= PATIENCE:
                break
        if answer.status is not Status.VERIFIED or request.stop.by:
            break
    assert whole is not None
    if kept is None:
        return whole
    # Without the proof, what was verified at a larger target is worth more than the last try.
    status = whole.status if whole.status in FINAL else Status.NOT_VERIFIED
    return replace(whole, x=kept.x, certificate=kept.certificate, status=status)


def certify_near_kkt(
    problem: Problem,
    x: Vector,
    delta: float,
    eps: float,
    seed: int,
    meta: dict[str, Any],
    deadline: float,
) -> NearKKTCertificate:
    """Prove a near-KKT claim about a point without moving it; gradients at several radii hint."""
    exact_problem(x, problem.box, problem.system, shortest_weights)
    best: NearKKTCertificate | None = None
    note = "no gradient was found"
    for wanted, radius in near_targets(eps, delta, smallest_delta(x)):
        try:
            hint = certify_constrained(problem, x, radius, wanted, seed, meta, deadline)
        except InputError:
            if problem.box.contains(x):
                break
            raise
        found, empty = attempt(problem, hint, eps, delta, seed, deadline)
        note = "the constraints are degenerate at the pivot" if empty else found.note
        proof = found.certificate
        if proof is not None and not empty and (best is None or proof.eps < best.eps):
            best = proof
        if best is not None and best.eps <= eps:
            break
    if best is None:
        raise NotCertifiableError(
            f"no feasible pivot with verified multipliers was found within {delta:g} of x "
            f"({note.removeprefix('not proved: ')}); raise delta or max_calls, or ask for "
            "stationarity='goldstein'."
        )
    return best


def attempt(
    problem: Problem,
    hint: KKTCertificate,
    eps: float,
    delta: float,
    seed: int,
    deadline: float = math.inf,
) -> tuple[NearKKTSearch, bool]:
    """Search a near-KKT certificate and verify it; say besides whether it is degenerate."""
    fun: Any = problem.objective.plain
    limit = None if math.isinf(deadline) else deadline
    try:
        found = search_near_kkt(
            fun, problem.box, problem.system, hint, delta, eps, seed=seed, deadline=limit
        )
    except NotCertifiableError as why:
        return NearKKTSearch(None, f"not proved: {why}"), False
    if found.certificate is None:
        return found, False
    checked = found.certificate.verify(fun, bounds=problem.box, constraints=problem.system)
    failed = [check.name for check in checked.checks if not check.ok]
    if failed:
        note = f"not proved: what was found did not pass its verification ({', '.join(failed)})"
        return NearKKTSearch(None, note), failed == [_EMPTY] and found.certificate.eps <= eps
    return found, False
