"""Hand searches to the workers, and keep what comes back: results, and failures by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from goldstein.api.driver import first_length
from goldstein.api.progress import counter
from goldstein.certificates.kinds import limits_for
from goldstein.certificates.plus import bounded_term
from goldstein.checker.arrays import Vector
from goldstein.checker.constrained.box import as_box
from goldstein.errors import GoldsteinError, InputError
from goldstein.kept import digest
from goldstein.oracles import CountedOracle, Oracle, as_oracle
from goldstein.oracles.constraints import given, lacks_gradient
from goldstein.oracles.differences import Differences, Stencil
from goldstein.oracles.function import values_of
from goldstein.oracles.journal import same_value
from goldstein.oracles.structure import Structure
from goldstein.parallel.folder import Folder
from goldstein.parallel.jobs import Done, Trouble
from goldstein.parallel.pool import Pool
from goldstein.prox.term import Term
from goldstein.reductions.functions import Folded, Violation
from goldstein.result import Result, Status
from goldstein.solvers.base import CTRL_C

#: Numbers found again differ by no more than this part.
SAME = 1e-9

#: What is said of a search that was not begun.
NOT_RUN = Trouble("not run: the others were stopped before")

OnResult = Callable[[int, Result], Any]


@dataclass(frozen=True)
class Job:
    """Searches that one worker does one after the other.

    Attributes
    ----------
    indices : sequence of int
        Their numbers.
    subjects : sequence
        Their starts, or their parameters.
    seeds : sequence of int
    stored : sequence of Result, optional
        Their results from a folder, to be confirmed.
    """

    indices: Sequence[int]
    subjects: Sequence[Any]
    seeds: Sequence[int]
    stored: Sequence[Result] | None = None


@dataclass(frozen=True)
class Failure:
    """A search without a result, and why.

    Attributes
    ----------
    index : int
        Its number.
    start : object
        Where it began; for a sweep the parameter.
    seed : int
        With it `minimize` can be run alone.
    reason : str
    traceback : str
        Empty if the worker died.
    tries : int
    """

    index: int
    start: Any
    seed: int
    reason: str
    traceback: str
    tries: int

    def __repr__(self) -> str:
        return f"<Failure of {self.index}: {self.reason} ({self.tries} tries)>"


@dataclass
class Gathered:
    """What came back, in the order of the searches."""

    results: list[Result | None]
    failures: list[Failure]


def gather(
    work: Callable[[Job], Sequence[Result | Trouble]],
    jobs: Sequence[Job],
    *,
    n_jobs: int | None,
    threads: int,
    folder: Folder | None,
    progress: bool,
    what: str,
    on_result: OnResult | None,
) -> Gathered:
    """Do all jobs; write, report and list what comes back.

    After Ctrl-C in one search no further one is begun. What that one has proved by then is kept,
    but not in the folder: resumed, it would have gone on. Where nothing is, Ctrl-C is all there is.
    """
    total = sum(len(job.indices) for job in jobs)
    results: list[Result | None] = [None] * total
    troubles: dict[int, Trouble] = {}
    pool = Pool(work, jobs, n_jobs=n_jobs, threads=threads)
    lowest, pressed = np.inf, False

    def take(done: Done) -> None:
        nonlocal lowest, pressed
        job: Job = jobs[done.position]
        if job.stored is not None and done.trouble is not None:
            raise done.trouble.refused or GoldsteinError(done.trouble.reason)
        answers = done.answer if done.trouble is None else [done.trouble] * len(job.indices)
        for index, subject, answer in zip(job.indices, job.subjects, answers):
            if isinstance(answer, Trouble):
                troubles[index] = answer
                continue
            interrupted = answer.stopped_by == CTRL_C
            if interrupted:
                pressed = True
                pool.stop()
            if interrupted and not answer.success:
                troubles[index] = Trouble("stopped by Ctrl-C", tries=1)
                continue
            results[index] = answer
            lowest = min(lowest, answer.fun)
            if folder is not None and job.stored is None and not interrupted:
                folder.save(index, digest(subject), answer)
            if on_result is not None and _wants_to_stop(on_result, index, answer):
                pool.stop()

    with counter(progress, total, what) as tell:
        try:
            for done in pool.completed():
                take(done)
                there = sum(result is not None for result in results)
                remark = f"   {len(troubles)} failed" if troubles else ""
                tell(there + len(troubles), f"lowest f {lowest:.8g}{remark}")
        except KeyboardInterrupt:
            pressed = True
            pool.stop()
    failures = []
    for job in jobs:
        for index, subject, seed in zip(job.indices, job.subjects, job.seeds):
            if results[index] is None:
                why = troubles.get(index, NOT_RUN)
                failures.append(Failure(index, subject, seed, why.reason, why.traceback, why.tries))
    if total and all(result is None for result in results):
        if pressed:
            raise KeyboardInterrupt
        _say_why(troubles)
    return Gathered(results, sorted(failures, key=lambda failure: failure.index))


def asked_oracle(
    fun: Any, jac: Any, options: dict[str, Any], structure: Structure | None = None
) -> Oracle:
    """Return the function of a task as an oracle, which may have values only."""
    args = options.get("args", ())
    if _blind(jac, options):
        return values_of(fun, jac, args, structure)
    return as_oracle(fun, jac, args, structure)


def _blind(jac: Any, options: dict[str, Any]) -> bool:
    """Whether a task asks for values of f only."""
    method = options.get("method")
    named = method in ("values", "zeroth-order") or getattr(method, "on_values", False)
    return named or isinstance(jac, str)


def confirm(
    result: Result, fun: Any, jac: Any, options: dict[str, Any], start: Any, seed: int
) -> Result:
    """Ask the function itself whether a stored result is about it; believe nothing else."""
    structure, x = _flat(result.x)
    oracle = asked_oracle(fun, jac, options, structure)
    if options.get("plus") is not None and options.get("stationarity", "goldstein") != "goldstein":
        # As `minimize` does: stronger claims are about f + h, written as one.
        term = bounded_term(options["plus"], options.get("bounds"), x.size)
        whole, box = term.added_to(oracle)
        written = {**options, "plus": None, "bounds": box, "args": ()}
        return confirm(result, whole, None, written, start, seed)
    fits = structure == _flat(start)[0] and _agrees_with_itself(result, options, x)
    if fits and oracle.has_value:
        fits = same_value(result.fun, total_value(oracle, options)(x))
    if fits and result.certificate is not None:
        fits = _holds(result, x, fun, jac, options)
    if fits and result.success:
        fits = _reached(result, options, _asked_eps(oracle, options, start, seed))
    if not fits:
        raise InputError(
            "the folder holds results of another function: asked again, it answers otherwise. "
            "Name another folder, or delete this one to start afresh."
        )
    return result


def _agrees_with_itself(result: Result, options: dict[str, Any], x: Vector) -> bool:
    """Whether it can have been stored: not cut short, with the forces of its certificate."""
    claim, limits = result.certificate, options.get("constraints")
    if given(limits):
        violation = Violation(limits, x).system.violation(x)
        if not (result.violation is not None and same_value(result.violation, violation)):
            return False
    elif result.violation or result.status is Status.INFEASIBLE:
        return False
    forces: dict[str, Any] = {
        "multipliers": getattr(claim, "multipliers", np.zeros(0)),
        "bound_multipliers": getattr(claim, "normal", None),
    }
    said = all(
        getattr(result, name) is None or np.array_equal(getattr(result, name), force)
        for name, force in forces.items()
    )
    unsaid = result.status is Status.VERIFIED and not result.success
    return said and not unsaid and result.stopped_by != CTRL_C


def _holds(result: Result, x: Vector, fun: Any, jac: Any, options: dict[str, Any]) -> bool:
    """Whether the certificate is of a kind that answers what was asked, and verifies."""
    claim, args, asked = result.certificate, options.get("args", ()), options
    if claim.kind not in _kinds(jac, options) or not np.array_equal(claim.x, x):
        return False
    about = (fun,) if jac is None and not args else (fun, jac, args)
    if result.status is Status.INFEASIBLE:
        about = (Violation(options.get("constraints"), x),)
        asked = {"bounds": options.get("bounds")}
    limits = limits_for(claim, asked)
    if claim.kind == "plus":
        limits["plus"] = bounded_term(options["plus"], options.get("bounds"), x.size)
    if _flat(result.x)[0] is not None and result.status is not Status.INFEASIBLE:
        limits["like"] = result.x
    return bool(claim.verify(*about, **limits).ok)


def _kinds(jac: Any, options: dict[str, Any]) -> tuple[str, ...]:
    """Return the kinds of certificates that answer what was asked."""
    if options.get("plus") is not None:
        return ("plus",)
    constraints = options.get("constraints")
    if _blind(jac, options) or lacks_gradient(constraints):
        return ("values-kkt", "values") if given(constraints) else ("values",)
    limited = given(constraints) or options.get("bounds") is not None
    return ("kkt", "near-kkt") if limited else ("goldstein", "near")


def _asked_eps(oracle: Oracle, options: dict[str, Any], start: Any, seed: int) -> float:
    """Return the eps that was asked for; a relative one as `minimize` finds it."""
    if options.get("rel_eps") is None:
        return float(options["eps"])
    x = _flat(start)[1]
    box = as_box(options.get("bounds"), x.size)
    slopes: Any = oracle
    if not oracle.has_gradient:
        stencil = Stencil(box.lower, box.upper, seed)
        slopes = Differences(CountedOracle(oracle), stencil)
    folded = CountedOracle(Folded(slopes, box))
    return float(options["rel_eps"]) * first_length(folded, box.clip(x), options["delta"], seed)


def _reached(result: Result, options: dict[str, Any], eps: float) -> bool:
    """Whether the certificate is as strong as what was asked for."""
    claim = result.certificate
    if claim is None or result.status not in (Status.VERIFIED, Status.STOPPED):
        return False
    if options.get("stationarity") == "near" and not claim.kind.startswith("near"):
        return False
    if given(options.get("constraints")) and not claim.kind.endswith("kkt"):
        return False
    return bool(claim.delta <= options["delta"] and claim.eps <= eps * (1.0 + SAME))


def total_value(oracle: Oracle, options: dict[str, Any]) -> Callable[[Vector], float]:
    """Return what `result.fun` is the value of: f, plus the term of `plus=` if there is one."""
    term: Term | None = options.get("plus")

    def value(x: Vector) -> float:
        return float(oracle.value(x)) + (0.0 if term is None else term.value(x))

    return value


def _flat(point: Any) -> tuple[Structure | None, Vector]:
    structure, x = Structure.of(point, "x")
    return (None if structure.is_vector else structure), x


def _wants_to_stop(on_result: OnResult, index: int, result: Result) -> bool:
    try:
        return bool(on_result(index, result))
    except StopIteration:
        return True


def _say_why(troubles: dict[int, Trouble]) -> None:
    """Nothing came back: say why, in the words of the first failure."""
    for _, trouble in sorted(troubles.items()):
        if trouble.refused is not None:
            raise trouble.refused
        if trouble.tries:
            raise GoldsteinError(
                f"every search failed; the first: {trouble.reason}\n{trouble.traceback}"
            )
