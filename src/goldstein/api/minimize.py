"""`minimize`: a solver searches, the certificate layer decides."""

from __future__ import annotations

import contextlib
import math
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from goldstein.api.constrained import Answer, ConstrainedSearch
from goldstein.api.feasible import FeasibleSearch
from goldstein.api.inputs import (
    LONGEST,
    RNG,
    PrecisionWarning,
    as_start,
    call_budget,
    check_constrained,
    check_target,
    deadline_after,
    is_number,
    refuse_on_values,
    refuse_workers,
    size_of,
    sized,
    smallest_delta,
)
from goldstein.api.judge import Judge, last_calls
from goldstein.api.options import DELTA, in_words, make_solver, split_options
from goldstein.api.progress import reporter
from goldstein.api.stationarity import Stationarity, stationarity_named
from goldstein.api.task import Task
from goldstein.api.watchdog import watched
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.plus import bounded_term
from goldstein.certificates.verifying import as_proved
from goldstein.checker.arrays import Vector
from goldstein.constrained.box import as_box
from goldstein.constrained.problem import Problem
from goldstein.constrained.reduction import Folded, Violation
from goldstein.constrained.system import given, lacks_gradient
from goldstein.errors import CheckpointError, InputError, InputTypeError, OutOfCalls
from goldstein.numerics.streams import seed_from
from goldstein.oracles import CountedOracle, Oracle, PartiallySeparable, as_oracle
from goldstein.oracles.diagnose import check_gradient
from goldstein.oracles.differences import Differences, Stencil
from goldstein.oracles.function import DIFFERENCES, values_of
from goldstein.oracles.journal import Journal, journal_at, same_value, seed_in
from goldstein.oracles.journalled import JournalOracle
from goldstein.oracles.structure import Structure
from goldstein.oracles.workers import mapped
from goldstein.prox.term import Term
from goldstein.result import Result, Status
from goldstein.solvers import Request, Solver, State
from goldstein.solvers.going_on import GoingOn
from goldstein.solvers.loop import ENDINGS, Outcome, run

#: Part of the time limit that the last word of a run out of time may take besides.
LAST_WORD = 0.1

#: Endings that more digits would not have changed.
_DONE = (Status.VERIFIED, Status.UNBOUNDED, *ENDINGS.values())


@in_words
def minimize(
    fun: Oracle | Callable[..., Any],
    x0: Any,
    jac: Callable[..., Any] | bool | str | None = None,
    *,
    args: Sequence[Any] = (),
    eps: float | None = None,
    delta: float | None = None,
    rel_eps: float | None = None,
    stationarity: Literal["goldstein", "near"] = "goldstein",
    method: str | Solver = "auto",
    rng: RNG = None,
    lipschitz: float | None = None,
    max_calls: int | None = None,
    max_time: float | None = None,
    bounds: Any = None,
    constraints: Any = (),
    plus: Term | None = None,
    callback: Callable[..., Any] | None = None,
    progress: bool | Callable[[State, int], None] = False,
    checkpoint: str | Path | None = None,
    workers: Callable[..., Any] | int | None = None,
    options: dict[str, Any] | None = None,
) -> Result:
    """Minimise a function with kinks and prove how stationary the answer is.

    Parameters
    ----------
    fun : callable, Oracle or Expression
        The function; with `jac=True` it returns (value, gradient). Sums of many terms of a few
        variables each are best written as `PartiallySeparable`.
    x0 : array_like, or dict, list or tuple of arrays
        Start. `fun`, `jac` and `res.x` have its shape; the certificate lists its numbers in order.
    jac : callable, True, "2-point" or "3-point"
        The gradient. It is asked for at randomly perturbed points only when it counts. The names of
        differences say that there are only values, as `method="values"` does.
    args : sequence
        Extra arguments of `fun` and `jac`.
    eps, delta : float
        The question: some convex combination of gradients within `delta` of x has norm <= `eps`.
        `suggest_target` proposes both.
    rel_eps : float, optional
        Instead of `eps`: this part of the length of the first gradient.
    stationarity : {"goldstein", "near"}
        "near" asks for more: a point within `delta` has a Clarke subgradient of norm <= `eps`.
        It needs an Expression; the certificate is then a `NearCertificate`, exact.
    method : str or Solver
        "auto", "bundle", "pingd", "psingd", "o2nc", or a configured solver; "values" and
        "zeroth-order" ask for values only, and end with a statistical `ValuesCertificate`.
    rng : None, int or Generator
        Same seed, same result; the seed used is in the result.
    lipschitz : float, optional
        Lipschitz constant; estimated and guarded if missing.
    max_calls : int, optional
        Limit on values plus gradients. Default 50,000 + 100 d, and 2,000 d where there are only
        values.
    max_time : float, optional
        Limit in seconds. It is looked at between two calls; a call that goes on for as long again
        is interrupted, in the main thread of Unix systems.
    bounds : scipy.optimize.Bounds or list of pairs, optional
        Bounds of the variables; None or an infinity for none. `fun` and `jac` are never asked
        outside them. The certificate is then a `KKTCertificate`, or a `NearKKTCertificate` where
        near stationarity is asked for and the constraints are expressions or linear.
    constraints : LinearConstraint, NonlinearConstraint, dict, or a list of them
        As SciPy takes them: lb <= c(x) <= ub, equalities where both are equal. Where one has no
        gradient, differences of its values are taken, and what is claimed in the end is
        statistical: a `ValuesKKTCertificate`.
        `res.multipliers` numbers all components in the order given; see also
        `res.bound_multipliers` and `res.violation`.
    plus : Term, optional
        A convex term h of `gs.prox` (`l1`, `group_l2`, `box`, `simplex`, `nuclear`): f + h is
        minimised, with exact zeros in x, and the certificate, a `PlusCertificate`, has exact
        subgradients of h. `res.fun` is f + h. Bounds may come with `l1` and `box`: they are part
        of h then, and f is asked within `delta` of them. With stationarity="near", which needs an
        Expression, f + h is written as one (`l1`, `box`).
    callback : callable
        `callback(x)` or `callback(intermediate_result=...)` after each descent step; StopIteration
        (or a true return value) stops the run.
    progress : bool or callable
        True shows a bar on stderr, on a terminal or in a notebook.
    checkpoint : path
        Journal of the run; if the file is there and belongs to this run, the run resumes from it.
    workers : map-like callable or int
        Something like `map`, or a number of processes of joblib, that evaluates in parallel: where
        there are only values, the points of a difference; where there are gradients, those that a
        claim is tested with. The result is the same without. Not with `checkpoint`, and where there
        are gradients not with `bounds`, `constraints` or `plus`.
    options : dict
        Parameters of the named method; and `check_gradient` (default True): compare a few
        differences of values with the gradients, and say so if they disagree; `go_on` (default
        True; method `auto`, without constraints): with a certificate in hand that leaves much to be
        gained, go on while f keeps falling cheaply; False ends a run with its first certificate;
        `leaps` (default True; method `auto`, without constraints): begin with jumps on a piecewise
        linear model, where `fun` is an expression with few kinks and some of them curved or
        nested; and, with inequalities, `feasible` (default False): every accepted point is
        feasible, from a feasible x0 on.

    Returns
    -------
    Result
        `success` is true exactly when `certificate` was verified and meets the request. Ctrl-C
        ends the run with the best point so far, and what can be proved of it.

    Examples
    --------
    >>> import goldstein as gs
    >>> import numpy as np
    >>> def f(x): return abs(x[0]) + 2 * abs(x[1])
    >>> def g(x): return np.array([np.sign(x[0]), 2 * np.sign(x[1])])
    >>> res = gs.minimize(f, [3.0, -1.0], g, eps=1e-3, delta=1e-3, rng=0)
    >>> res.success
    True
    >>> res.certificate.verify(f, g).ok
    True
    """
    begin = time.perf_counter()
    structure, start = as_start(x0)
    delta = _check_question(eps, rel_eps, delta, start)
    kind = stationarity_named(stationarity)
    bounded = bounds is not None or given(constraints)
    if bounded:
        check_constrained(structure)
    deadline = deadline_after(max_time)
    if callback is not None and not callable(callback):
        raise InputTypeError(f"callback must be callable, got {type(callback).__name__}.")
    own, rest = split_options(options)
    if own.feasible and not bounded:
        raise InputError("options={'feasible': True} is about constraints, and there are none.")
    differences = jac if isinstance(jac, str) and jac in DIFFERENCES else None
    blind = bounded and lacks_gradient(constraints)
    named = "values" if (differences or blind) and method == "auto" else method
    # A journal may be read on another machine: what it is a journal of must not depend on this one.
    # And compiled code sees a sum of elements as a whole.
    interpreted = checkpoint is not None or isinstance(fun, PartiallySeparable)
    solver = make_solver(named, rest, None if interpreted else start.size)
    on_values = solver.on_values
    if not on_values:
        _refuse_differences(differences, solver)
    # Where only constraints lack a gradient, that of f is asked for on the way.
    exact = method == "auto" and differences is None
    read: Any = values_of if on_values and not exact else as_oracle
    task = Task(
        oracle=sized(read(fun, jac, args, structure), start),
        x0=x0, start=start, structure=structure, solver=solver, kind=kind, eps=eps, rel_eps=rel_eps,
        request=Request(float(eps or 1.0), delta, _seed(rng, checkpoint), lipschitz),
        bounds=bounds, constraints=constraints, own=own,
        budget=call_budget(max_calls, 50_000 + (2_000 if on_values else 100) * start.size),
        begin=begin, deadline=deadline, max_time=max_time,
        callback=_in_shape(callback, structure), progress=progress, checkpoint=checkpoint,
        workers=workers,
    )  # fmt: skip
    if on_values:
        if plus is not None:
            raise InputError(
                "plus= needs a gradient of fun; pass jac=, or write the term into fun."
            )
        refuse_on_values(kind, checkpoint, workers)
        central = differences == "3-point"
        return task.carried_out(lambda: _minimize_values(task, central, exact))
    refuse_workers(
        workers,
        ("checkpoint=", checkpoint is not None),
        ("plus=", plus is not None),
        ("bounds= or constraints=", bounded),
    )
    if kind.require is not None:
        kind.require(task.oracle)
    if plus is None:
        return task.carried_out(lambda: _minimize_with_gradients(task))
    term = _checked_plus(plus, start, bounds, given(constraints) or checkpoint is not None)
    if kind.strengthen is None:
        return task.carried_out(lambda: _minimize_plus(task, term), term)
    whole, box = term.added_to(task.oracle)
    return minimize(
        whole, x0, eps=eps, delta=delta, rel_eps=rel_eps, stationarity=stationarity,
        method=method, rng=rng, lipschitz=lipschitz, max_calls=max_calls,
        max_time=max_time, bounds=box, callback=callback, progress=progress,
        options=options,
    )  # fmt: skip


def _minimize_with_gradients(task: Task) -> Result:
    """Search with all that a run can have beside the function: limits, a journal, workers."""
    if task.workers is None and task.checkpoint is None and task.max_time is None:
        return _minimize_bare(task, task.oracle, None, None)
    with (
        mapped(task.workers) as ask,
        # What it is a journal of: a hash, and words for all options.
        journal_at(task.checkpoint, {} if task.checkpoint is None else task.identity()) as journal,
        watched(task.max_time),
    ):
        base = task.oracle if journal is None else JournalOracle(task.oracle, journal)
        return _minimize_bare(task, base, journal, None if task.workers is None else ask)


def _minimize_bare(task: Task, base: Oracle, journal: Journal | None, ask: Any) -> Result:
    if task.bounded:
        return _minimize_constrained(task, base, journal)
    return _minimize_plain(task, base, journal, ask)


def _minimize_plain(task: Task, base: Oracle, journal: Journal | None, ask: Any) -> Result:
    oracle, start, kind = task.oracle, task.start, task.kind
    counted = task.counted = CountedOracle(base, task.budget, LONGEST, ask)
    request = task.request_at(counted)
    with reporter(task.progress, task.budget, request.eps) as watch:
        search = _Search(
            oracle, counted, task.solver, request, meta=task.meta(), deadline=task.deadline,
            callback=task.callback, watch=watch, checked=task.own.check_gradient,
            goes_on=task.own.go_on and kind.strengthen is None,
        )  # fmt: skip
        leaps = task.own.leaps and task.solver.name.startswith("auto")
        first = _after_leaps(oracle, counted, start, task.deadline) if leaps else start
        outcome, certificate, status = search.run(first, kind)
    detail = search.blame(outcome.state.x) if status is Status.WRONG_GRADIENT else ""
    weaker = kind.strengthen is not None and isinstance(certificate, GoldsteinCertificate)
    if status is Status.NOT_VERIFIED and weaker:
        detail = "no pivot was found within delta, so the certificate is a Goldstein one"
    state = outcome.state
    task.at_last(lambda: _check_replayed(task, journal, state.x, state.fx, certificate, oracle))
    _warn_of_precision(request, state.fx, status)
    return task.result(
        counted, state.x, state.fx, status, certificate, outcome.history, state.steps,
        remarks=(detail, _large_ball(request, start, state.x)), eps=request.eps,
        gradient_scale=counted.first_length,
    )  # fmt: skip


def _after_leaps(oracle: Oracle, counted: CountedOracle, start: Vector, deadline: float) -> Vector:
    """Return where an expression is better searched from, if its structure shows such a place."""
    if not hasattr(oracle, "kink_form"):
        return start
    from goldstein.calculus.leaps import applies, head_start  # brings linear programs

    if not applies(oracle):
        return start
    return head_start(oracle, counted, start, deadline)  # type: ignore[arg-type]


def _seed(rng: RNG, checkpoint: str | Path | None) -> int:
    """Return the seed of a run: that of the journal where the user names none."""
    recorded = seed_in(checkpoint) if checkpoint is not None and rng is None else None
    return seed_from(rng) if recorded is None else recorded


def _refuse_differences(differences: Any, solver: Solver) -> None:
    if differences is not None:
        raise InputError(
            f"jac={differences!r} goes with method='auto' or 'values', not with {solver.name!r}: "
            "it needs gradients."
        )


def _minimize_values(task: Task, central: bool, exact: bool) -> Result:
    from goldstein.api.values import ValuesSearch

    values, bounds, constraints = task.oracle, task.bounds, task.constraints
    box = as_box(bounds, task.start.size)
    inside = box.clip(task.start)
    limits = {"bounds": bounds} if task.bounded else {}
    if given(constraints):
        limits["constraints"] = constraints
    with (
        mapped(task.workers) as ask,
        journal_at(task.checkpoint, {**task.identity(), "central": central}) as journal,
    ):
        counted = task.counted = CountedOracle(
            values if journal is None else JournalOracle(values, journal), task.budget
        )
        stencil = Stencil(box.lower, box.upper, task.request.seed)
        slopes = CountedOracle(Folded(Differences(counted, stencil, exact=exact), box))
        request = task.request_at(slopes, inside)
        with reporter(task.progress, task.budget, request.eps) as watch:
            search = ValuesSearch(
                counted, box, task.solver, request, task.meta(), task.deadline, central, ask,
                task.callback, watch, constraints, journal, exact,
            )  # fmt: skip
            found = search.run(inside)
        proved = found.certificate
        about, shared = values, limits
        if found.status is Status.INFEASIBLE:
            about, shared = Violation(constraints, inside), {"bounds": bounds}
        task.at_last(
            lambda: _check_replayed(task, journal, found.x, found.fun, proved, about, **shared)
        )
    sure = "" if proved is None else f"by statistics of values, confidence {proved.confidence:g}"
    bounded, system = task.bounded, search.system
    return task.result(
        counted, found.x, found.fun, found.status, proved, found.history, found.steps,
        remarks=(sure, _large_ball(request, task.start, found.x)), eps=request.eps, limits=limits,
        multipliers=getattr(proved, "multipliers", np.zeros(0)) if bounded else None,
        bound_multipliers=None if not bounded or proved is None else proved.normal,
        violation=task.at_last(lambda: system.violation(found.x)) if bounded else None,
        constr_nfev=system.nfev if system.size else None,
        constr_njev=system.njev if system.size else None,
    )  # fmt: skip


def _minimize_constrained(task: Task, base: Oracle, journal: Journal | None) -> Result:
    bounds, constraints = task.bounds, task.constraints
    problem = Problem.of(base, task.start, bounds, constraints, task.budget, journal)
    counted, inside, system = problem.objective, problem.box.clip(task.start), problem.system
    task.counted = counted
    request = task.request_at(CountedOracle(Folded(counted, problem.box)), inside)
    with reporter(task.progress, int(counted.limit), request.eps) as watch:
        kind = FeasibleSearch if task.own.feasible else ConstrainedSearch
        search = kind(
            problem, task.solver, request, task.meta(), task.deadline, task.callback, watch,
            task.own.check_gradient,
        )  # fmt: skip
        near = task.kind.strengthen is not None
        with counted.reserved(1):
            answer = _run_near(search, task.start) if near else search.run(task.start)
    status = Status.OUT_OF_TIME if counted.closed else answer.status
    certificate = answer.certificate
    # A certificate of infeasibility speaks of the violation: it has no multipliers.
    proved = None if status is Status.INFEASIBLE else certificate
    fun = math.nan if counted.closed else task.at_last(lambda: counted.value(answer.x))
    violation = task.at_last(lambda: system.violation(answer.x))
    about = _about(status, task.oracle, constraints, inside)
    shared = {"bounds": bounds, **about[1]}
    task.at_last(
        lambda: _check_replayed(task, journal, answer.x, fun, certificate, about[0], **shared)
    )
    return task.result(
        counted, answer.x, fun, status, certificate, answer.history, answer.steps,
        remarks=(answer.detail,), eps=request.eps,
        limits={"bounds": bounds, "constraints": constraints},
        gradient_scale=counted.first_length,
        multipliers=None if proved is None else proved.multipliers.copy(),
        bound_multipliers=None if proved is None else proved.normal.copy(),
        violation=violation, constr_nfev=system.nfev, constr_njev=system.njev,
    )  # fmt: skip


def _checked_plus(plus: Any, start: Vector, bounds: Any, more: bool) -> Term:
    """Return the term with the bounds in it; refuse what is none, or does not go with one."""
    if not isinstance(plus, Term):
        raise InputTypeError(
            f"plus must be a term of gs.prox, as gs.prox.l1(0.1); got {type(plus).__name__}."
        )
    if more:
        raise InputError(
            "plus= does not go together with constraints or checkpoint; write h into fun."
        )
    plus.check(start.size)
    return bounded_term(plus, bounds, start.size)


def _minimize_plus(task: Task, term: Term) -> Result:
    from goldstein.api.plus import PlusSearch

    counted = task.counted = CountedOracle(task.oracle, task.budget, LONGEST)
    request = task.request_at(counted)
    with reporter(task.progress, task.budget, request.eps) as watch:
        search = PlusSearch(
            counted, term, task.solver, request, task.meta(), task.deadline, task.callback, watch,
            task.own.check_gradient,
        )  # fmt: skip
        with counted.reserved(1):
            x, status = search.run(task.start)
    return task.result(
        counted, x, task.at_last(lambda: search.value(x)), status, search.certificate,
        search.history, search.steps, eps=request.eps, limits={"plus": term},
        gradient_scale=counted.first_length,
    )  # fmt: skip


def _run_near(search: ConstrainedSearch, start: Vector) -> Answer:
    from goldstein.api.near_kkt import run_near  # brings all of the calculus

    return run_near(search, start)


@dataclass
class _Search:
    """One run of a solver, or several at shrinking targets, until the claim is proved."""

    oracle: Oracle
    counted: CountedOracle
    solver: Solver
    request: Request
    meta: dict[str, Any]
    deadline: float
    callback: Callable[..., Any] | None
    watch: Callable[[State, int], None] | None
    checked: bool
    goes_on: bool = False

    def run(self, start: Vector, kind: Stationarity) -> tuple[Outcome, Any, Status]:
        """Return how it went, what was proved, and whether that is what was asked for."""
        if kind.strengthen is not None:
            return self._strengthened(start, kind)
        outcome, certificate, status = self._goldstein(start, self.request)
        if status is not Status.VERIFIED or not hasattr(self.oracle, "kink_form"):
            return outcome, certificate, status
        certificate = as_proved(certificate, self.oracle, self.request.seed)
        if certificate is None or certificate.eps > self.request.eps:
            return outcome, certificate, Status.NOT_VERIFIED
        return outcome, certificate, status

    def _goldstein(self, x: Vector, target: Request) -> tuple[Outcome, Any, Status]:
        left = max(self.deadline - time.perf_counter(), 1e-3)
        judge = Judge(self.counted, target, self.meta, self.checked, LAST_WORD * left)
        with self.counted.reserved(last_calls(self.counted, x.size)):
            outcome = run(
                self.solver, self.counted, x, target, judge=judge, suspect=judge.suspect,
                max_time=None if math.isinf(left) else left,
                callback=self.callback, progress=self.watch,
                going_on=GoingOn(self.solver, target) if self.goes_on else None,
            )  # fmt: skip
        self.request.stop.x = outcome.state.x
        certificate, status = outcome.certificate, outcome.status
        if certificate is None:
            try:
                certificate = judge.last_word(self.solver, outcome)
            except tuple(ENDINGS) as ending:
                status = ENDINGS[type(ending)]
            if certificate is not None and certificate.eps <= target.eps:
                status = Status.VERIFIED  # the run was cut short with the proof in its hands
        return outcome, certificate, status

    def _strengthened(self, start: Vector, kind: Stationarity) -> tuple[Outcome, Any, Status]:
        """Shrink the Goldstein target until its certificate makes one of the stronger kind."""
        assert kind.targets is not None
        request = self.request
        whole, certificate = None, None
        x = start
        for stage, (eps, delta) in enumerate(
            kind.targets(request.eps, request.delta, smallest_delta(start))
        ):
            target = replace(request, eps=eps, delta=delta, seed=request.seed + stage)
            outcome, goldstein, status = self._goldstein(x, target)
            whole = outcome if whole is None else whole.followed_by(outcome)
            x = outcome.state.x
            stronger = None if goldstein is None else self._strengthen(kind, goldstein)
            if stronger is not None and stronger.eps <= request.eps:
                return whole, stronger, Status.VERIFIED
            # Only the last stage speaks about the point that is returned; a Goldstein certificate
            # of what was asked for says more than a stronger one of less.
            certificate = goldstein if status is Status.VERIFIED else stronger or goldstein
            if status is Status.STALLED and stage > 0:
                return self._at_least_goldstein(whole, certificate)
            if status is not Status.VERIFIED:
                return whole, certificate, status
            if request.stop.by:
                break
        assert whole is not None
        return whole, certificate, Status.NOT_VERIFIED

    def _at_least_goldstein(self, whole: Outcome, certificate: Any) -> tuple[Outcome, Any, Status]:
        """Nothing stronger before float64 ended: state what is true of the point at least."""
        outcome, goldstein, status = self._goldstein(whole.state.x, self.request)
        whole = whole.followed_by(outcome)
        if status is Status.VERIFIED:
            return whole, goldstein, Status.NOT_VERIFIED
        return whole, goldstein or certificate, Status.STALLED

    def _strengthen(self, kind: Stationarity, goldstein: Any) -> Any:
        assert kind.strengthen is not None
        deadline = None if math.isinf(self.deadline) else self.deadline
        eps, delta, seed = self.request.eps, self.request.delta, self.request.seed
        try:
            return kind.strengthen(self.oracle, goldstein, eps, delta, seed, deadline)
        except KeyboardInterrupt as cause:  # what is proved is proved
            self.request.stop.note(cause)
            return None

    def blame(self, x: Vector) -> str:
        """Name the coordinates in which the gradient is wrong, as far as calls are left."""
        with contextlib.suppress(OutOfCalls, InputError):
            return check_gradient(self.counted, x=x, points=3).message
        return ""


def _check_question(
    eps: float | None, rel_eps: float | None, delta: float | None, start: Vector
) -> float:
    """Return delta; refuse a question that is none."""
    if delta is None:
        raise InputTypeError(
            f"delta is missing: {DELTA}. Give eps= and delta=; gs.suggest_target proposes both."
        )
    check_target(1.0 if eps is None else eps, delta, start)
    if (eps is None) == (rel_eps is None):
        given = "eps must be a number, got NoneType" if eps is None else "got both"
        raise InputTypeError(
            f"{given}: give eps, the length that a combination of gradients must not exceed, or "
            "rel_eps, the same relative to the first gradient. gs.suggest_target proposes eps and "
            "delta."
        )
    if rel_eps is not None and not (is_number(rel_eps) and 0 < rel_eps < math.inf):
        raise InputError(f"rel_eps must be a positive finite number, got {rel_eps!r}.")
    return float(delta)


def _in_shape(
    callback: Callable[..., Any] | None, structure: Structure | None
) -> Callable[..., Any] | None:
    """Let a callback see points as the user wrote them."""
    if callback is None or structure is None:
        return callback
    return structure.callback(callback)


def _large_ball(request: Request, start: Vector, x: Vector) -> str:
    """Say so where delta is not small against anything in sight: the claim is then about all."""
    scale = size_of(start)
    if scale < request.delta:
        scale = float(max(scale, np.abs(x).max(), np.abs(x - start).max()))
    if 0.0 < scale < request.delta:
        return (
            f"note: delta = {request.delta:g} is larger than x0, x and the way between them "
            f"({scale:.3g}), so the claim says little about x; gs.suggest_target proposes a delta"
        )
    return ""


def _warn_of_precision(request: Request, fx: float, status: Status) -> None:
    test = request.delta * request.eps / 4
    if test < 8 * 2.0**-53 * abs(fx) and status not in _DONE:
        warnings.warn(
            f"the descent test compares values to {test:.3g}, but |f| = "
            f"{abs(fx):.3g} is only exact to {abs(fx) * 2.0**-52:.3g}; "
            "raise eps or delta, or shift f by a constant.",
            PrecisionWarning,
            stacklevel=7,
        )


def _about(
    status: Status, oracle: Oracle, constraints: Any, x: Vector
) -> tuple[Oracle, dict[str, Any]]:
    """Return the function and the constraints that the certificate of a result is about."""
    if status is Status.INFEASIBLE:
        return Violation(constraints, x), {}
    return oracle, {"constraints": constraints}


def _check_replayed(
    task: Task, journal: Journal | None, x: Vector, fun: float, certificate: Any, oracle: Oracle,
    **limits: Any,
) -> None:  # fmt: skip
    """What rests on a checkpoint is believed only after asking the function itself."""
    if journal is None or not journal.recalled:
        return
    hangs = task.counted is not None and task.counted.closed
    told = task.oracle.has_value and not (hangs or math.isnan(fun))
    same = not told or same_value(fun, task.oracle.value(x))
    if not same or (certificate is not None and not certificate.verify(oracle, **limits).ok):
        raise CheckpointError(
            f"checkpoint {journal.path} was made with another function: the answer does not hold "
            "for this one. Name another file, or delete it to start afresh."
        )
