"""Hand searches to the workers, and keep what comes back: results, and failures by name."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from goldstein.api import minimize
from goldstein.api.certify import start_seed
from goldstein.api.driver import Task
from goldstein.api.inputs import RNG
from goldstein.api.minimize import task_of
from goldstein.api.progress import counter
from goldstein.checker.arrays import Vector
from goldstein.errors import GoldsteinError, InputError, InputTypeError
from goldstein.numerics.streams import seed_from
from goldstein.oracles import CountedOracle, Oracle
from goldstein.oracles.function import flat_point
from goldstein.oracles.problem import given
from goldstein.parallel.pool import TRIES, Done, Pool, Trouble, guarded
from goldstein.reductions.functions import Violation
from goldstein.result import Result, Status
from goldstein.solvers import Request
from goldstein.solvers.base import CTRL_C
from goldstein.storage.codec import limits_for
from goldstein.storage.folder import Folder, described, digest, seed_in
from goldstein.storage.journal import same_value

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


class How(NamedTuple):
    """How searches are done: see `multistart`."""

    n_jobs: int | None
    blas_threads: int
    folder: str | Path | None
    progress: bool
    on_result: OnResult | None


def seed_of(rng: RNG, folder: str | Path | None) -> int:
    """Return the seed of a run; where none is given, that of the run in the folder."""
    recorded = seed_in(folder) if rng is None else None
    return seed_from(rng) if recorded is None else recorded


def gather(
    work: Callable[[Job], Sequence[Result | Trouble]],
    subjects: Sequence[Any],
    seed: int,
    identity: dict[str, Any],
    how: How,
    what: str,
    length: int = 1,
) -> tuple[list[Result | None], list[Failure]]:
    """Search for all subjects, so many in a job; return what came back, in their order.

    `identity` says what the folder is about, with the options of the run.
    """
    if how.folder is None:
        return _Gathering(work, _jobs(subjects, length, seed, None), how, None).all(what)
    identity = {**identity, "seed": seed, "options": described(identity["options"])}
    with Folder(how.folder, identity) as folder:
        return _Gathering(work, _jobs(subjects, length, seed, folder), how, folder).all(what)


def _jobs(subjects: Sequence[Any], length: int, seed: int, folder: Folder | None) -> list[Job]:
    jobs = []
    for first in range(0, len(subjects), length):
        own = subjects[first : first + length]
        indices = range(first, first + len(own))
        found = [folder.load(k, digest(subjects[k])) for k in indices] if folder else []
        stored = [result for result in found if result is not None]
        whole = stored if len(stored) == len(own) else None
        jobs.append(Job(indices, own, [start_seed(seed, k) for k in indices], whole))
    return jobs


class _Gathering:
    """Hand out jobs; write, report and list what comes back.

    After Ctrl-C in one search no further one is begun. What that one has proved by then is kept,
    but not in the folder: resumed, it would have gone on. Where nothing is, Ctrl-C is all there is.
    """

    def __init__(
        self, work: Callable[[Job], Any], jobs: Sequence[Job], how: How, folder: Folder | None
    ) -> None:
        self.jobs, self.how, self.folder = jobs, how, folder
        self.results: dict[int, Result] = {}
        self.troubles: dict[int, Trouble] = {}
        self.pool = Pool(work, jobs, n_jobs=how.n_jobs, threads=how.blas_threads)
        self.pressed = False

    def all(self, what: str) -> tuple[list[Result | None], list[Failure]]:
        total = sum(len(job.indices) for job in self.jobs)
        with counter(self.how.progress, total, what) as tell:
            try:
                for done in self.pool.completed():
                    self._take(done)
                    lowest = min((found.fun for found in self.results.values()), default=np.inf)
                    remark = f"   {len(self.troubles)} failed" if self.troubles else ""
                    there = len(self.results) + len(self.troubles)
                    tell(there, f"lowest f {lowest:.8g}{remark}")
            except KeyboardInterrupt:
                self.pressed = True
                self.pool.stop()
        if total and not self.results:
            if self.pressed:
                raise KeyboardInterrupt
            _say_why(self.troubles)
        failures = [
            Failure(index, subject, seed, why.reason, why.traceback, why.tries)
            for job in self.jobs
            for index, subject, seed in zip(job.indices, job.subjects, job.seeds)
            if index not in self.results
            for why in [self.troubles.get(index, NOT_RUN)]
        ]
        return [self.results.get(k) for k in range(total)], failures

    def _take(self, done: Done) -> None:
        job = self.jobs[done.position]
        if done.trouble is not None and job.stored is not None:
            raise done.trouble.refused or GoldsteinError(done.trouble.reason)
        answers = done.answer if done.trouble is None else [done.trouble] * len(job.indices)
        for index, subject, answer in zip(job.indices, job.subjects, answers):
            if isinstance(answer, Trouble):
                self.troubles[index] = answer
            elif answer.stopped_by == CTRL_C and not answer.success:
                self._press()
                self.troubles[index] = Trouble("stopped by Ctrl-C", tries=1)
            else:
                self._accept(index, subject, answer, stored=job.stored is not None)

    def _accept(self, index: int, subject: Any, answer: Result, stored: bool) -> None:
        self.results[index] = answer
        if answer.stopped_by == CTRL_C:
            self._press()
        elif self.folder is not None and not stored:
            self.folder.save(index, digest(subject), answer)
        if self.how.on_result is not None and _wants_to_stop(self.how.on_result, index, answer):
            self.pool.stop()

    def _press(self) -> None:
        self.pressed = True
        self.pool.stop()


@dataclass(frozen=True)
class Searches:
    """The work of some parameters one after the other, on any worker."""

    problem_of: Callable[[Any], Any]
    x0: Any
    options: dict[str, Any]

    def __call__(self, job: Job) -> Sequence[Result | Trouble]:
        if job.stored is not None:
            before = [None, *(result.x for result in job.stored)]
            parts = zip(job.subjects, job.stored, before, job.seeds)
            return [self._confirm(*part) for part in parts]
        if len(job.subjects) == 1:
            return [self._solve(job.subjects[0], job.seeds[0], None)]
        answers: list[Result | Trouble] = []
        last = None
        for parameter, seed in zip(job.subjects, job.seeds):
            # One that fails is tried again and then left out: the path goes on from the one before.
            answer = self._tried(parameter, seed, last)
            answers.append(answer)
            if isinstance(answer, Result):
                if answer.stopped_by == CTRL_C:
                    break
                last = answer.x
        return answers

    def _tried(self, parameter: Any, seed: int, start: Any) -> Result | Trouble:
        trouble = Trouble("")
        for tries in range(1, TRIES + 1):
            done = guarded(lambda _: self._solve(parameter, seed, start), 0, None, 1)
            if done.trouble is None:
                return done.answer
            trouble = replace(done.trouble, tries=tries)
            if trouble.refused is not None:
                break
        return trouble

    def _solve(self, parameter: Any, seed: int, start: Any) -> Result:
        problem = self._arguments(parameter)
        if start is not None:
            problem["x0"] = start
        if problem["x0"] is None:
            raise InputTypeError("no start: pass x0=..., or let problem_of return a dict with x0.")
        return minimize(rng=seed, **problem)

    def _confirm(self, parameter: Any, result: Result, before: Any, seed: int) -> Result:
        problem = self._arguments(parameter)
        start = problem["x0"] if before is None else before
        return confirm(result, problem.pop("fun"), problem.pop("jac", None), problem, start, seed)

    def _arguments(self, parameter: Any) -> dict[str, Any]:
        problem = self.problem_of(parameter)
        if isinstance(problem, dict):
            own = problem
        elif isinstance(problem, tuple) and len(problem) == 2:
            own = {"fun": problem[0], "jac": problem[1]}
        elif isinstance(problem, Oracle):
            own = {"fun": problem}
        else:
            raise InputTypeError(
                "problem_of must return an Oracle or Expression, a pair (fun, jac) or a dict of "
                f"arguments of minimize; got {type(problem).__name__}."
            )
        if "fun" not in own:
            raise InputTypeError("problem_of returned a dict without 'fun'.")
        return {"x0": self.x0, **self.options, **own}


def confirm(
    result: Result, fun: Any, jac: Any, options: dict[str, Any], start: Any, seed: int
) -> Result:
    """Ask the function itself whether a stored result is about it; believe nothing else."""
    layout, x = flat_point(result.x, "x")
    task = task_of(**{**options, "fun": fun, "jac": jac, "x0": start, "rng": seed})
    fits = (task.layout or [task.point.size]) == layout and _agrees_with_itself(result, options, x)
    problem = task.problem(CountedOracle(task.oracle)) if fits else None
    if problem is not None and task.oracle.has_value:
        fits = same_value(result.fun, problem.value(x))
    if fits and result.certificate is not None:
        fits = _holds(task, result, x, (fun, jac, options.get("args", ())))
    if fits and problem is not None and result.success:
        fits = _reached(task, result, task.aimed(problem))
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


def _holds(task: Task, result: Result, x: Vector, written: tuple[Any, ...]) -> bool:
    """Whether the certificate is of a kind that answers what was asked, and verifies."""
    claim = result.certificate
    if claim.kind not in _kinds(task) or not np.array_equal(claim.x, x):
        return False
    about: tuple[Any, ...] = (task.oracle,)
    told = limits_for(claim, task.limits)
    if claim.kind == "plus":
        told["plus"] = task.term
    if result.status is Status.INFEASIBLE:
        about, told = (Violation(task.constraints, x),), {"bounds": task.bounds}
    elif task.layout is not None:
        about, told["like"] = written, result.x
    return bool(claim.verify(*about, **told).ok)


def _kinds(task: Task) -> tuple[str, ...]:
    """Return the kinds of certificates that answer what was asked."""
    if task.term is not None:
        return ("plus",)
    if task.on_values:
        return ("values-kkt", "values") if given(task.constraints) else ("values",)
    own = ("minimum", "refutation") if task.kind.name == "minimum" else ()
    return ("kkt", "near-kkt", *own) if task.limited else ("goldstein", "near", *own)


def _reached(task: Task, result: Result, asked: Request) -> bool:
    """Whether the certificate is as strong as what was asked for."""
    claim = result.certificate
    if claim is None or result.status not in (Status.VERIFIED, Status.STOPPED):
        return False
    kinds = {"near": claim.kind.startswith("near"), "minimum": claim.kind == "minimum"}
    fits = not given(task.constraints) or claim.kind.endswith(("kkt", "minimum"))
    small = claim.delta <= asked.delta and claim.eps <= asked.eps * (1.0 + SAME)
    return bool(kinds.get(task.kind.name, True) and fits and small)


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
