"""A minimum: claims of stationarity at shrinking targets, each tried as a proof of a minimum.

Where a proof fails because the function falls, the run goes on from the lower point.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import Any

from goldstein.certificates.minimum import MinimumCertificate, Refutation
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.near import ExactProblem, exact_problem
from goldstein.checker.function import Asked
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.lower import certain_fall
from goldstein.checker.rationals import to_fractions
from goldstein.construction.cases import with_cases
from goldstein.construction.faces import prove_box
from goldstein.construction.minimum import prove_minimum, refuted, with_gap
from goldstein.errors import (
    ContradictedError,
    GoldsteinError,
    NotCertifiableError,
    UnresolvedError,
)
from goldstein.oracles.problem import Problem
from goldstein.reductions.base import Answer
from goldstein.reductions.stationarity import (
    PATIENCE,
    Attempt,
    Stationarity,
    Stronger,
    prove_near,
    register_stationarity,
    smaller_targets,
)
from goldstein.result import Status
from goldstein.solvers import Request

#: Without a bound of their own, minorants as flat as this count as flat.
FLAT = 1e-8

#: The ball on which a gap is stated where no minimum is proved, in units of delta.
AROUND = 10.0

PROVED = "proved"


def is_minimum(found: Any, eps: float, delta: float) -> bool:
    """Is a claim one about a minimum: nothing is lower but by what eps and rounding allow?"""
    if not isinstance(found, MinimumCertificate) or found.delta > delta:
        return False
    low = found.strict or found.scope != "ball" or found.gap <= found.eps * found.radius + FLAT
    return low and found.growth >= 0 and found.eps <= (eps or FLAT)


def limits_at(problem: Problem, x: Vector) -> ExactProblem | None:
    """Return bounds and constraints as the checker reads them; None where there are none."""
    if not problem.limited:
        return None
    if not problem.feasible(x):
        raise NotCertifiableError("the point is not feasible.")
    return exact_problem(x, problem.box, problem.constraints, None)


def prove(problem: Problem, hint: Any, request: Request, deadline: float) -> Attempt:
    """Try to prove a minimum next to what a weaker certificate speaks of."""
    fun: Any = problem.f.plain
    if not fun.is_written:
        return Attempt(None, "not proved: it takes an expression")
    program, x, near = fun.program(), hint.x, None
    try:
        limits = limits_at(problem, x)
        found = prove_minimum(program, x, x.tolist(), deadline, limits)
        if is_minimum(found, request.eps, request.delta):
            return Attempt(found, PROVED)
        near = prove_near(problem, hint, request, deadline).certificate
        pivot = x.tolist() if near is None else near.exact_pivot
        if near is not None and near.delta > 0:
            found = prove_minimum(program, x, pivot, deadline, limits)
            if is_minimum(found, request.eps, request.delta):
                return Attempt(found, PROVED)
        descent = getattr(hint, "descent", None)
        more = [] if descent is None else [descent]
        denied = refuted(program, x, pivot, 0.0 if near is None else near.eps, more, limits)
    except GoldsteinError as why:
        return Attempt(near, f"not proved: {why}")
    if denied is not None:
        return Attempt(denied, denied.said())
    return Attempt(near, "not proved: no minorant was found that shows a minimum")


def everywhere(problem: Problem, found: Any, deadline: float) -> tuple[Any, Vector | None]:
    """Look at a function of few kinks case by case; return the claim, and a lower point met."""
    fun: Any = problem.f.plain
    if not (fun.is_written and isinstance(found, MinimumCertificate) and found.scope == "ball"):
        return found, None
    try:
        limits, program = limits_at(problem, found.x), fun.program()
        if limits is not None and found.penalties is not None:
            program = Feasible(program, limits, found.penalties).program
        found, lower = with_cases(program, found, deadline=deadline)
    except GoldsteinError:
        return found, None
    return found, lower if lower is None or problem.feasible(lower) else None


class Minimal(Stronger):
    """Searches for a minimum; goes on where the function is seen to fall."""

    def _prove(self, hint: Any) -> Attempt:
        f, curvature = self.problem.f, self.run.options.curvature
        if f.plain.is_written or self.problem.limited:
            return self.strengthen(self.problem, hint, self.request, self.run.deadline)
        if curvature is not None:
            points, eps = getattr(hint, "points", []), float(hint.eps)
            with f.reserved(int(max(0, f.limit - f.calls) // 2)):
                found = prove_box(f, hint.x, curvature, points, eps, self.run.deadline)
            if found is not None:
                return Attempt(found, PROVED)
        denied = self._denied(hint)
        return denied or Attempt(None, "not proved: a black box needs curvature=, or an Expression")

    def _denied(self, hint: Any) -> Attempt | None:
        """Return the lower point that a search has met, where there is one."""
        step, direction = hint.meta.get("descent_step"), getattr(hint, "descent", None)
        if direction is None or not isinstance(step, float):
            return None
        point, fall = hint.x + step * direction, 0.0
        with suppress(ContradictedError, UnresolvedError):
            # With more room than a check leaves: another machine rounds otherwise.
            fall = certain_fall(Asked(self.problem.f), hint.x, point, rooms=2.0)
        if not fall > 0:
            return None
        denied = Refutation(
            x=hint.x, point=point, direction=direction, fall=fall, label="conditional",
            exact_pivot=tuple(to_fractions(hint.x)),
        )  # fmt: skip
        return Attempt(denied, denied.said())

    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        answer = self._weaker_answer(x, stage)
        if answer.certificate is None or self.stop.by:
            return self._without_proof()
        found = self._prove(answer.certificate)
        if found.note == PROVED:
            proof, better = everywhere(self.problem, found.certificate, self.run.deadline)
            if better is not None and stage + 1 < self.stages:
                return better
            return replace(answer, status=Status.VERIFIED, certificate=proof, detail="")
        self._why = answer.detail = found.note.removeprefix("not proved: ")
        if isinstance(found.certificate, Refutation) and stage + 1 < self.stages:
            self._verified = None  # what was shown is about a point that is no minimum
            lower: Vector = found.certificate.point
            return lower
        self._idle += 1
        going = answer.status is Status.VERIFIED and self._idle < PATIENCE
        return answer.x if going else self._without_proof()

    def claim(self, x: Vector) -> Any:
        """Return a minimum, a refutation, a ball with its gap, or what is weaker."""
        self.begin(x)
        weaker = None
        for stage in range(min(self.stages, PATIENCE)):
            hint = self._at(stage).hint(x)
            if hint is None:
                break
            found = self._prove(hint)
            if found.note == PROVED or isinstance(found.certificate, Refutation):
                return everywhere(self.problem, found.certificate, self.run.deadline)[0]
            weaker = found.certificate or weaker
        fun: Any = self.problem.f.plain
        if fun.is_written:
            with suppress(GoldsteinError):
                limits, size = limits_at(self.problem, x), AROUND * self.request.delta
                around = with_gap(fun.program(), x, x.tolist(), size, limits)
                if around is not None and around.eps <= (self.request.eps or FLAT):
                    return around
        if weaker is not None:
            return weaker
        found = self.weaker(self.run).claim(x)
        denied = None if self.problem.limited or not found.is_short else self._denied(found)
        return found if denied is None else denied.certificate


register_stationarity(Stationarity("minimum", None, smaller_targets, prove, reduction=Minimal))
