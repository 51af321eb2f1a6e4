"""The kinds of stationarity that `minimize` and `certify` can be asked for, by name.

No reduction: the solver gets f itself, and the claim is about a ball around its last point.

A minimum: claims of stationarity at shrinking targets, each tried as a proof of a minimum.

Where a proof fails because the function falls, the run goes on from the lower point.
"""

import math
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from goldstein import errors
from goldstein.certificates.kkt import KKTCertificate
from goldstein.certificates.minimum import MinimumCertificate, Refutation
from goldstein.certificates.near import Attempt as Attempt
from goldstein.certificates.near import separating
from goldstein.certificates.verifying import as_proved
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.near import ExactProblem, exact_problem
from goldstein.checker.function import Asked
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.lines import is_large
from goldstein.checker.minimum.lower import certain_fall
from goldstein.checker.rationals import to_fractions
from goldstein.construction.cases import prove_box, with_cases
from goldstein.construction.cold import Cold, hint_around
from goldstein.construction.judge import Judge, last_calls
from goldstein.construction.minimum import prove_minimum, refuted, with_gap
from goldstein.construction.rows import lower_point, minimum_by_rows
from goldstein.numerics.budget import Budget
from goldstein.numerics.streams import smallest_delta
from goldstein.oracles.diagnose import check_gradient
from goldstein.oracles.problem import Problem
from goldstein.reductions.base import FINAL, Answer, Options, Reduction, Run, register_reduction
from goldstein.result import Status
from goldstein.solvers import Request, State
from goldstein.solvers.gather import Enrichment
from goldstein.solvers.loop import ENDINGS, Continuation, Outcome, ended_by

#: (eps, delta, smallest delta) -> targets of the weaker claims that are tried in turn.
Targets = Callable[[float, float, float], Iterator[tuple[float, float]]]
#: (problem, weaker certificate, request, deadline) -> what came of it.
Strengthen = Callable[[Problem, Any, Request, float], Attempt]


@dataclass(frozen=True)
class Stationarity:
    """A kind of stationarity, and how it is reached from Goldstein or KKT certificates.

    Attributes
    ----------
    name : str
        What users write: `stationarity=name`.
    require : callable, optional
        Refuses problems (and starts) that the kind is not for.
    targets : callable, optional
        The targets of the weaker claims whose certificates are tried.
    strengthen : callable, optional
        Makes a verified certificate of this kind of a weaker one; None where the weaker one itself
        is what is asked for.
    needs : frozenset of str
        What it asks of a problem, in the words of `goldstein.api.inputs`.
    reduction : type, optional
        The search for it, where that is one of its own.
    """

    name: str
    require: Callable[[Problem, Vector], None] | None = None
    targets: Targets | None = None
    strengthen: Strengthen | None = None
    needs: frozenset[str] = frozenset()
    reduction: Any = None


_KINDS: dict[str, Stationarity] = {}


def register_stationarity(kind: Stationarity) -> Stationarity:
    """Let `minimize` and `certify` be asked for a kind of stationarity by its name."""
    _KINDS[kind.name] = kind
    return kind


def stationarity_names() -> list[str]:
    """Return the names of all kinds.

    Examples
    --------
    >>> stationarity_names()
    ['goldstein', 'minimum', 'near']
    """
    return sorted(_KINDS)


def stationarity_named(name: Any) -> Stationarity:
    """Return a kind of stationarity, or refuse an unknown one."""
    if not (isinstance(name, str) and name in _KINDS):
        names = " or ".join(map(repr, stationarity_names()))
        raise errors.InputError(f"stationarity must be {names}, got {name!r}.")
    return _KINDS[name]


register_stationarity(Stationarity("goldstein"))


#: First target relative to the near one, and how the next follow from it.
_FIRST_EPS, _FIRST_DELTA = 0.5, 0.25
_NEXT_EPS, _NEXT_DELTA = 0.5, 0.1

#: Seconds that all attempts at the stronger claim may take unless `max_time` says otherwise: as
#: long as the search itself has taken, and this at least.
PATIENT_SECONDS = 3.0

#: Parts of what is left that the first attempt, in the largest ball, may take, and a later one;
#: with fewer seconds left than this no other one begins.
SHARES, WORTH_A_TRY = (0.2, 0.7), 0.25

#: Targets that bring a proof about constraints no nearer, before one gives up.
PATIENCE = 2

#: The check that finds constraints whose gradients prove anything about f, that is nothing.
_EMPTY = "qualification"


def near_targets(eps: float, delta: float, smallest: float) -> Iterator[tuple[float, float]]:
    """Yield what was asked for, and smaller targets: whatever comes later, the first is there.

    Examples
    --------
    >>> next(near_targets(1e-3, 1e-2, 1e-9))
    (0.001, 0.01)
    """
    yield eps, delta
    yield from smaller_targets(eps, _NEXT_DELTA * delta, smallest)


def smaller_targets(eps: float, delta: float, smallest: float) -> Iterator[tuple[float, float]]:
    """Yield targets (eps', delta'), down to the smallest radius float64 can sample.

    Examples
    --------
    >>> next(smaller_targets(1e-3, 1e-2, 1e-9))
    (0.0005, 0.0025)
    """
    e, d = _FIRST_EPS * eps, max(_FIRST_DELTA * delta, smallest)
    while True:
        yield e, d
        if d <= smallest:
            return
        e, d = _NEXT_EPS * e, max(_NEXT_DELTA * d, smallest)


class Stronger(Reduction):
    """Searches for weaker claims at shrinking targets, until one can be made the stronger one.

    The calculus can name a Goldstein target that is small enough for certain; moving the
    certificate to a pivot usually succeeds long before, so larger targets are tried first.
    """

    def __init__(self, run: Run, weaker: type[Reduction], kind: Stationarity) -> None:
        super().__init__(run)
        assert kind.targets is not None
        assert kind.strengthen is not None
        self.weaker, self.strengthen, self.targets = weaker, kind.strengthen, kind.targets
        self.reserve = weaker.reserve
        self._verified: Answer | None = None
        self._last: Answer | None = None
        self._nearest, self._idle, self._why = math.inf, 0, ""
        self._worked, self._spent, self._patient = time.process_time(), 0.0, True

    def begin(self, x: Vector) -> Vector:
        request = self.request
        self._aims = list(self.targets(request.eps, request.delta, smallest_delta(x)))
        self.stages = len(self._aims)
        return x

    def _at(self, stage: int) -> Reduction:
        run = self.run.aimed(*self._aims[stage], stage)
        return self.weaker(replace(run, options=replace(run.options, go_on=False)))

    def _weaker_answer(self, x: Vector, stage: int) -> Answer:
        """Search for the weaker claim; what is verified of it is remembered."""
        search = self._at(stage)
        answer = self._last = search.search(x)
        settled = search.invert(answer)
        if settled.status is Status.VERIFIED:
            self._verified = settled
        return answer

    def stage(self, x: Vector, stage: int) -> Vector | Answer:
        answer = self._weaker_answer(x, stage)
        hint = answer.certificate if self.problem.feasible(answer.x) else None
        if hint is not None and not self.stop.by:
            found = self._strengthened(hint, answer)
            if found.degenerate:
                return replace(answer, status=Status.DEGENERATE)
            proof = found.certificate
            if proof is not None and proof.eps <= self.request.eps:
                return replace(answer, status=Status.VERIFIED, certificate=proof, detail="")
            self._why = answer.detail = found.note.removeprefix("not proved: ")
            if self._gives_up(math.inf if proof is None else proof.eps):
                return self._without_proof()
        return answer.x if answer.status is Status.VERIFIED else self._without_proof()

    def _strengthened(self, hint: Any, answer: Answer) -> Attempt:
        """Try for the stronger claim, about as long as the search for the weaker one took."""
        run, f, begin = self.run, self.problem.f.plain, time.perf_counter()
        if run.progress is not None:
            shown = State(answer.x, f.value(answer.x), hint.eps, hint.delta)
            shown.notes["doing"] = "looking for a pivot"
            run.progress(shown, self.problem.f.billed)
        worked = time.process_time() - self._worked
        # On a machine with other work a second of ours takes longer.
        busy = max((begin - run.course.begin) / max(worked, 1e-3), 1.0)
        patience = (max(PATIENT_SECONDS, worked - self._spent) - self._spent) * busy
        left = patience if math.isinf(run.deadline) else run.deadline - begin
        share = SHARES[bool(self._spent)]
        found = self.strengthen(self.problem, hint, self.request, begin + share * left)
        self._spent += time.process_time() - self._worked - worked
        self._patient = begin + left - time.perf_counter() > WORTH_A_TRY
        if found.certificate is None and not self._patient:
            return found._replace(note=f"{found.note}; max_time= allows for more")
        return found

    def _gives_up(self, reached: float) -> bool:
        """At a pivot that is not found exactly, smaller balls do not help."""
        closer = reached < 0.5 * self._nearest
        self._nearest, self._idle = (reached, 0) if closer else (self._nearest, self._idle + 1)
        limited = self.problem.constraints.size or self.problem.limited
        return not self._patient or bool(limited and self._idle >= PATIENCE)

    def _without_proof(self) -> Answer:
        """Return what was verified at a larger target: it is worth more than the last try."""
        last, verified = self._last, self._verified
        assert last is not None
        if verified is None:
            return last
        status = last.status if last.status in FINAL else Status.NOT_VERIFIED
        return replace(verified, status=status, detail=last.detail or self._why)

    def ended(self, x: Vector, status: Status) -> Answer:
        if self._last is None:
            return Answer(x, status)
        found = self._without_proof()
        return replace(found, status=status) if status in FINAL else found

    def claim(self, x: Vector) -> Any:
        """Try the gradients at several radii as hints; return the best proof."""
        self.begin(x)
        best, note = None, "no gradient was found"
        for stage in range(1, self.stages):
            hint = self._at(stage).hint(x)
            if hint is None:
                break
            found = self.strengthen(self.problem, hint, self.request, self.run.deadline)
            note, proof = found.note, None if found.degenerate else found.certificate
            if proof is not None and (best is None or proof.eps < best.eps):
                best = proof
            if best is not None and best.eps <= self.request.eps:
                break
        if best is None:
            raise errors.NotCertifiableError(
                f"no pivot with a verified proof was found within {self.request.delta:g} of x "
                f"({note.removeprefix('not proved: ')}); raise delta or max_calls, or ask for "
                "stationarity='goldstein'."
            )
        return best


def require_structure(problem: Problem, x: Vector) -> None:
    """Refuse a black box: its kinks are unknown, so no pivot can be verified."""
    if not problem.f.plain.is_written:
        raise errors.InputTypeError(
            f"stationarity='near' needs a function whose kinks are known, got the black box "
            f"{problem.f.name}; build it from goldstein.Variable and the atoms of goldstein, or "
            "use goldstein.models."
        )
    if problem.limited:
        exact_problem(problem.box.clip(x), problem.box, problem.constraints, separating)


def prove_near(problem: Problem, hint: Any, request: Request, deadline: float) -> Attempt:
    """Return the best verified near certificate that is found from weaker evidence."""
    if not problem.limited:
        return attempt_near(problem.f.plain, hint, request, deadline=deadline)
    if not isinstance(hint, KKTCertificate):
        return Attempt(None, "not proved: there are no multipliers")
    from goldstein.construction.near.pivot import search_near_kkt

    fun: Any = problem.f.plain
    search = partial(search_near_kkt, fun, problem, hint, request, deadline)
    limits = {"bounds": problem.box, "constraints": problem.constraints}
    return _verified(request.eps, fun, search, **limits)


def attempt_near(oracle: Any, hint: Any, request: Request, *, deadline: float) -> Attempt:
    """Search an expression for a near certificate, verify it, and say how that ended.

    The hint, a Goldstein certificate, says where to look.
    """
    from goldstein.construction.near.pivot import MAX_WORK, search_near

    target, budget = (request.delta, request.eps, request.seed), Budget(deadline, MAX_WORK)
    return _verified(request.eps, oracle, partial(search_near, oracle, hint, *target, budget))


def _verified(eps: float, fun: Any, search: Callable[[], Attempt], **limits: Any) -> Attempt:
    """Believe what is found only after its own check."""
    try:
        found = search()
    except errors.NotCertifiableError as why:
        return Attempt(None, f"not proved: {why}")
    proof = found.certificate
    if proof is None:
        return found
    failed = [check.name for check in proof.verify(fun, **limits).checks if not check.ok]
    if not failed:
        return found
    note = f"not proved: what was found did not pass its verification ({', '.join(failed)})"
    return Attempt(None, note, failed == [_EMPTY] and proof.eps <= eps)


register_stationarity(
    Stationarity("near", require_structure, near_targets, prove_near, frozenset({"an expression"}))
)


#: What is said where values contradict gradients next to x, and nowhere around it.
STEEP = (
    "values follow the gradient around x, but not next to it: f is not Lipschitz there, as a root "
    "at 0, or eigenvalues that meet, or the gradient is wrong at that place; try other starts "
    "(goldstein.parallel.multistart takes many)"
)

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
        from goldstein.construction.prox_linear import applies, head_start  # brings linear programs

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
            status, outcome.detail = ended_by(ending)
        if certificate is not None and certificate.eps <= self.request.eps:
            status = Status.VERIFIED  # the run was cut short with the proof in its hands
        return certificate, status

    def _answer(self, outcome: Outcome, certificate: Any, status: Status) -> Answer:
        x, detail = outcome.state.x, outcome.detail
        if status is Status.WRONG_GRADIENT:
            status, detail = self._blame(x)
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

    def _blame(self, x: Vector) -> tuple[Status, str]:
        """Name the coordinates in which the gradient is wrong, as far as calls are left."""
        with suppress(errors.OutOfCalls, errors.InputError):
            found = check_gradient(self.problem.f, x=x, points=3)
            return (Status.STALLED, STEEP) if found.ok else (Status.WRONG_GRADIENT, found.message)
        return Status.WRONG_GRADIENT, ""

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
            raise errors.NotCertifiableError(
                f"the gradients of {f.name} are lost to rounding in float64; rescale the data or "
                "rearrange the expression."
            )
        return proved

    def hint(self, x: Vector) -> Any:
        return hint_around(self.problem.f, x, self.request, self.run.deadline)


#: Without a bound of their own, minorants as flat as this count as flat.
FLAT = 1e-8

#: With so many numbers in the gradients of all entries, more than a gap is tried to be proved.
SOME = 2**18

#: The part of the time limit that an interior point method may take, before a search begins.
ROWS_SHARE = 0.5

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
        raise errors.NotCertifiableError("the point is not feasible.")
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
        least = 0.0 if near is None else near.eps
        denied = refuted(program, x, pivot, least, more, limits, deadline)
    except errors.GoldsteinError as why:
        return Attempt(near, f"not proved: {why}")
    if denied is not None:
        return Attempt(denied, denied.said())
    return Attempt(near, "not proved: no minorant was found that shows a minimum")


def by_rows(problem: Problem, x: Vector, request: Request, deadline: float, stay: bool) -> Any:
    """Return what the multipliers of a function of rows show; None where it is none.

    It is about a point found from x, or x itself: then it may be a lower point. Of a function that
    is not large only a strict minimum counts, for a search may show more than a gap.
    """
    fun: Any = problem.f.plain
    with suppress(errors.GoldsteinError):
        program = None if problem.limited or not fun.is_written else fun.program()
        if program is None:
            return None
        large = is_large(program)
        found, best = minimum_by_rows(program, x, deadline, stay)
        if found.eps > (request.eps or FLAT) or found.gap > FLAT * max(1.0, abs(fun.value(x))):
            return lower_point(program, x, best) if stay and large else None
        if max(node.size for node in program.nodes) * program.dim <= SOME:
            with suppress(errors.GoldsteinError):
                more = prove_minimum(program, found.x, found.x.tolist(), deadline)
                if more is not None and more.strict and is_minimum(more, request.eps, 0.0):
                    return more
        return found if large else None
    return None


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
    except errors.GoldsteinError:
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
        with suppress(errors.ContradictedError, errors.UnresolvedError):
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
        begin, deadline = time.perf_counter(), self.run.deadline
        if not stage:
            until = deadline if math.isinf(deadline) else begin + ROWS_SHARE * (deadline - begin)
            found = by_rows(self.problem, x, self.request, until, False)
            if found is not None:
                return Answer(found.x, Status.VERIFIED, found)
        answer = self._weaker_answer(x, stage)
        if answer.certificate is None or self.stop.by:
            return self._without_proof()
        found = self._prove(answer.certificate)
        if found.note == PROVED:
            proof, better = everywhere(self.problem, found.certificate, deadline)
            if better is not None and stage + 1 < self.stages:
                return better
            return replace(answer, status=Status.VERIFIED, certificate=proof, detail="")
        self._why = answer.detail = found.note.removeprefix("not proved: ")
        late = time.perf_counter() > deadline
        if isinstance(found.certificate, Refutation) and stage + 1 < self.stages and not late:
            self._verified = None  # what was shown is about a point that is no minimum
            lower: Vector = found.certificate.point
            return lower
        self._idle += 1
        going = answer.status is Status.VERIFIED and self._idle < PATIENCE
        return answer.x if going else self._without_proof()

    def claim(self, x: Vector) -> Any:
        """Return a minimum, a refutation, a ball with its gap, or what is weaker."""
        self.begin(x)
        weaker = by_rows(self.problem, x, self.request, self.run.deadline, True)
        if weaker is not None:
            return weaker
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
            with suppress(errors.GoldsteinError):
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
