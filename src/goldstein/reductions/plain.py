"""No reduction: the solver gets f itself, and the claim is about a ball around its last point."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import Any

from goldstein.certificates.verifying import as_proved
from goldstein.checker.arrays import Vector
from goldstein.construction.cold import Cold, hint_around
from goldstein.construction.judge import Judge, last_calls
from goldstein.errors import InputError, NotCertifiableError, OutOfCalls
from goldstein.oracles.diagnose import check_gradient
from goldstein.oracles.problem import Problem
from goldstein.reductions.base import Answer, Options, Reduction, register_reduction
from goldstein.result import Status
from goldstein.solvers.continuation import Continuation
from goldstein.solvers.gather import Enrichment
from goldstein.solvers.loop import ENDINGS, Outcome

#: Part of the time limit that the last word of a run out of time may take besides.
LAST_WORD = 0.1


@register_reduction
class Plain(Reduction):
    """One run of a solver on f."""

    reserve = 0

    @classmethod
    def accepts(cls, problem: Problem, options: Options) -> bool:
        return not problem.limited and problem.term is None and problem.stencil is None

    def begin(self, x: Vector) -> Vector:
        run, f = self.run, self.problem.f
        if not (run.options.leaps and run.solver.name.startswith("auto") and f.plain.is_written):
            return x
        from goldstein.construction.prox_linear import (  # brings linear programs
            applies,
            head_start,
        )

        oracle: Any = f.plain
        return head_start(oracle, f, x, run.deadline) if applies(oracle) else x

    def stage(self, x: Vector, stage: int) -> Answer:
        run, f, request = self.run, self.problem.f, self.request
        left = max(run.deadline - time.perf_counter(), 1e-3)
        judge = Judge(f, request, run.meta, run.options.check_gradient, LAST_WORD * left)
        further = Continuation(run.solver, request) if run.options.go_on else None
        with f.reserved(last_calls(f, x.size)):
            outcome = run.solve(f, x, request, judge, further)
        self.stop.x = outcome.state.x
        return self._answer(outcome, *self._claimed(judge, outcome))

    def _claimed(self, judge: Judge, outcome: Outcome) -> tuple[Any, Status]:
        certificate, status = outcome.certificate, outcome.status
        if certificate is not None:
            return certificate, status
        try:
            certificate = judge.last_word(self.run.solver, outcome)
        except tuple(ENDINGS) as ending:
            status = ENDINGS[type(ending)]
        if certificate is not None and certificate.eps <= self.request.eps:
            status = Status.VERIFIED  # the run was cut short with the proof in its hands
        return certificate, status

    def _answer(self, outcome: Outcome, certificate: Any, status: Status) -> Answer:
        x = outcome.state.x
        detail = self._blame(x) if status is Status.WRONG_GRADIENT else ""
        return Answer(x, status, certificate, detail, outcome.state.fx)

    def invert(self, answer: Answer) -> Answer:
        """Let exact gradients overrule those in float64, where the function has them."""
        certificate, f = answer.certificate, self.problem.f.plain
        if answer.status is not Status.VERIFIED or not f.is_written:
            return answer
        certificate = as_proved(certificate, f, self.request.seed, self.request.eps)
        met = certificate is not None and certificate.eps <= self.request.eps
        status = Status.VERIFIED if met else Status.NOT_VERIFIED
        return replace(answer, certificate=certificate, status=status)

    def _blame(self, x: Vector) -> str:
        """Name the coordinates in which the gradient is wrong, as far as calls are left."""
        with contextlib.suppress(OutOfCalls, InputError):
            return check_gradient(self.problem.f, x=x, points=3).message
        return ""

    def claim(self, x: Vector) -> Any:
        request, f = self.request, self.problem.f
        meta = {**self.run.meta, "asked_delta": request.delta}
        written = f.plain.is_written
        cold = Cold(f, x, request, meta, self.run.deadline, check_gradient=not written)
        found = cold.certificate(Enrichment())
        if not written:
            return found
        proved = as_proved(found, f.plain, request.seed, request.eps)
        if proved is None:
            raise NotCertifiableError(
                f"the gradients of {f.name} are lost to rounding in float64; rescale the data or "
                "rearrange the expression."
            )
        return proved

    def hint(self, x: Vector) -> Any:
        return hint_around(self.problem.f, x, self.request, self.run.deadline)
