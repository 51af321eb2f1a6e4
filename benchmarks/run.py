"""Run the comparison, or a part of it, and write results, tables and plots.

Run: ``python -m benchmarks.run --help``. Finished runs are kept in ``benchmarks/results`` and not
repeated; ``--report`` only rewrites the tables and plots.
"""

from __future__ import annotations

import argparse
import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from benchmarks import acceptance, results, tables
from benchmarks.methods import METHODS, PEER_PROCESS, Method
from benchmarks.recorder import OutOfBudget, Recorder, thin

import goldstein as gs
from goldstein.problems import Problem

LEVELS = (1e-2, 1e-3, 1e-4, 1e-6)
DEFAULT_OUT = Path(__file__).with_name("results")


def label(problem: Problem) -> str:
    """The name of a problem in results: name and dimension."""
    return f"{problem.name}-{problem.dim}"


@dataclass(frozen=True)
class Solved:
    """A finished search, before its final point is judged."""

    oracle: Recorder
    x: np.ndarray
    status: str
    certificate: gs.GoldsteinCertificate | None
    own_cpu: float
    wall: float


def search(
    problem: Problem, method: Method, level: float, seed: int, max_calls: int, max_cpu: float
) -> Solved:
    """Run one method on one problem at eps = delta = level."""
    oracle = Recorder(problem, max_calls=max_calls, max_cpu=max_cpu)
    certificate = None
    begin = time.perf_counter()
    try:
        answer = method.solve(oracle, np.array(problem.x0), level, level, seed)
        x, status, certificate = answer.x, answer.status, answer.certificate
    except OutOfBudget as limit:
        x, status = oracle.best_x, f"out of {limit}"
    except gs.GoldsteinError as failure:
        x, status = oracle.best_x, f"{type(failure).__name__}: {failure}"
    wall = time.perf_counter() - begin
    return Solved(oracle, x, status, certificate, oracle.own_cpu, wall)


def fastest(repeat: int, *question: Any) -> Solved:
    """Search several times, which differ in time only unless it runs out; keep the fastest."""
    runs = (search(*question) for _ in range(repeat))
    return min(runs, key=lambda solved: solved.own_cpu)


def judge(problem: Problem, method: Method, level: float, seed: int, solved: Solved) -> results.Run:
    """Say what a search is worth: its own certificate, or the one `gs.certify` finds."""
    oracle, x, certificate = solved.oracle, solved.x, solved.certificate
    counter = Recorder(problem, max_calls=math.inf, max_cpu=oracle.max_cpu)
    try:
        # From nothing but the point, and with other random numbers than the search.
        proof = gs.certify(counter, x, delta=level, eps=level, rng=seed + 1_000_003)
        certify_eps = proof.eps
    except (gs.GoldsteinError, OutOfBudget):
        certify_eps = math.inf
    if method.group == "peer":
        bound = certify_eps
    else:
        meets_delta = certificate is not None and certificate.delta <= level
        bound = certificate.eps if meets_delta else math.inf
    return results.Run(
        problem=label(problem),
        dim=problem.dim,
        convex=problem.convex,
        bounded=problem.bounded,
        locally_lipschitz=problem.locally_lipschitz,
        method=method.name,
        group=method.group,
        level=level,
        seed=seed,
        status=solved.status[:200],
        certified=bound <= level,
        certified_eps=bound,
        values=oracle.values,
        gradients=oracle.gradients,
        own_cpu=solved.own_cpu,
        oracle_cpu=oracle.oracle_cpu,
        wall=solved.wall,
        certify_values=counter.values,
        certify_gradients=counter.gradients,
        certify_ok=certify_eps <= level,
        start_fun=problem.value(problem.x0),
        fun=problem.value(x),
        best_value=problem.best_value,
        progress=[
            (m.values, m.gradients, m.own_cpu, m.oracle_cpu, m.fun) for m in thin(oracle.progress)
        ],
    )


def chosen_problems(names: list[str], dims: list[int]) -> list[Problem]:
    """The public suite, or the part of it that was named, or named problems at other dimensions."""
    if dims:
        return [gs.problems.get(name, d=d) for d in dims for name in names]
    suite = gs.problems.suite("public")
    if not names:
        return list(suite)
    picked = [p for p in suite if p.name in names or label(p) in names]
    missing = set(names) - {p.name for p in picked} - {label(p) for p in picked}
    if missing:
        raise SystemExit(f"Not in the public suite: {', '.join(sorted(missing))}.")
    return picked


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Compare solvers on the public problems.")
    parser.add_argument("--problems", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--dims", nargs="*", type=int, default=[], help="for scalable problems")
    parser.add_argument("--methods", nargs="*", default=["auto"], choices=[*METHODS, "all"])
    parser.add_argument("--levels", nargs="*", type=float, default=list(LEVELS))
    parser.add_argument("--seeds", type=int, default=1, help="how many seeds, from 0 on")
    parser.add_argument("--max-calls", type=int, default=50_000)
    parser.add_argument("--max-cpu", type=float, default=20.0, help="seconds per run")
    parser.add_argument("--budget", type=float, default=math.inf, help="seconds for all runs")
    parser.add_argument("--repeat", type=int, default=1, help="run so often, keep the fastest")
    parser.add_argument(
        "--in-turns", action="store_true",
        help="all methods on a problem before the next: a busy machine is then busy for all",
    )  # fmt: skip
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT)
    parser.add_argument("--again", action="store_true", help="repeat runs that are on file")
    parser.add_argument("--report", action="store_true", help="only tables, plots and acceptance")
    options = parser.parse_args()
    if options.repeat < 1:
        parser.error(f"--repeat must be at least 1, got {options.repeat}")
    return options


def run_all(options: argparse.Namespace, names: list[str]) -> None:
    """Run what is not on file yet, and put it on file."""
    for reason in filter(None, (METHODS[name].missing() for name in names)):
        print(reason)
    names = [name for name in names if METHODS[name].missing() is None]
    end = time.monotonic() + options.budget
    done: set[results.Key] = set()
    if not options.again:
        done = {run.key for run in results.load(options.out / f"{n}.jsonl" for n in names)}
    jobs = [
        (METHODS[name], problem, seed, level)
        for name in names
        for seed in range(options.seeds)
        for problem in chosen_problems(options.problems, options.dims)
        for level in options.levels
        if (label(problem), name, level, seed) not in done
    ]
    if options.in_turns:
        order = [label(problem) for _, problem, _, _ in jobs]
        jobs.sort(key=lambda job: order.index(label(job[1])))
    warm: set[str] = set()
    last: tuple[tuple[str, str, int], Solved] | None = None
    for count, (method, problem, seed, level) in enumerate(jobs, 1):
        if time.monotonic() > end:
            print(f"time is up: {len(jobs) - count + 1} runs left; run again to continue")
            break
        if method.name not in warm:
            # Imports and first calls are nobody's solving time.
            search(gs.problems.get("crescent"), method, 0.1, 0, 200, 5.0)
            warm.add(method.name)
        task = (method.name, label(problem), seed)
        if method.ignores_level and last is not None and last[0] == task:
            solved = last[1]
        else:
            solved = fastest(
                options.repeat, problem, method, level, seed, options.max_calls, options.max_cpu
            )
        last = (task, solved)
        run = judge(problem, method, level, seed, solved)
        results.append(options.out / f"{method.name}.jsonl", run)
        print(
            f"{count}/{len(jobs)} {method.name:18s} {run.problem:28s} {level:g} "
            f"{'certified' if run.certified else 'FAILED':9s} eps {run.certified_eps:9.2e} "
            f"calls {run.calls:6d} + {run.certify_values + run.certify_gradients:5d} "
            f"f {run.fun:.8g} cpu {run.own_cpu:.3f} + {run.oracle_cpu:.3f} s  {run.status[:40]}",
            flush=True,
        )
    PEER_PROCESS.close()


def main() -> None:
    options = arguments()
    if not options.report:
        run_all(options, list(METHODS) if "all" in options.methods else options.methods)
    everything = results.load(sorted(options.out.glob("*.jsonl")))
    if everything:
        tables.write(everything, options.out)
        print(acceptance.report(everything))


if __name__ == "__main__":
    main()
