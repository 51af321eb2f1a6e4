"""What `auto` itself costs, per call and per run: interpreted, compiled, and compiled throughout.

    python benchmarks/own_time.py                   # d = 10
    python benchmarks/own_time.py --against ../old  # and the interpreted one of another clone

Own time is CPU time without that of the function, which is measured alone, on the points it was
asked at. "Per call" is the search: the time between two calls of the function. "Per run" is all the
rest: checks, the memory of the search, judges, certificate, result. With plain functions a compiled
search calls them through Python; with functions compiled by Numba it stays in machine code for up
to 100 calls. The smallest of many repetitions counts, which a busy machine blurs least; another
clone is measured in turns with this one, by processes of its own.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import goldstein as gs
from goldstein.solvers import Auto

NAMES = ("chained_lq", "chained_cb3_1", "maxq", "chained_mifflin_2", "chained_crescent_2")
DIM, LEVEL, REPEATS, TURNS = 10, 1e-3, 15, 3

clock = time.process_time


def timed(kind: type) -> Any:
    """Return a solver of this kind that adds up the time of its steps, and between them.

    A step that ends with evidence is followed by the judge, who is not part of the search.
    """

    class Timed(kind):  # type: ignore[misc]
        spent = 0.0
        calls = 0
        left: float | None = None

        def step(self, oracle: Any, state: Any, request: Any) -> None:
            calls = oracle.calls
            begin = clock() if self.left is None else self.left
            super().step(oracle, state, request)
            end = clock()
            self.spent += end - begin
            self.calls += oracle.calls - calls
            self.left = None if state.evidence is not None else end

    return Timed()


def own_time(
    fun: Callable[..., Any], jac: Callable[..., Any], x0: np.ndarray, kind: type, answer: float
) -> dict[str, float]:
    """Return microseconds per call and per run, where the function takes this long to answer."""
    calls, per_call, per_run = 0, np.inf, np.inf
    for _ in range(REPEATS):
        solver = timed(kind)
        begin = clock()
        res = gs.minimize(fun, x0, jac, eps=LEVEL, delta=LEVEL, rng=0, method=solver)
        whole = clock() - begin
        calls = res.nfev + res.ngev
        per_call = min(per_call, solver.spent / solver.calls - answer)
        per_run = min(per_run, whole - solver.spent - (calls - solver.calls) * answer)
    return {"calls": calls, "per call": 1e6 * per_call, "per run": 1e6 * per_run}


def seconds_per_answer(fun: Callable[..., Any], jac: Callable[..., Any], x0: np.ndarray) -> float:
    """Mean time of the answers of a run, asked for again."""
    asked: list[tuple[Callable[..., Any], np.ndarray]] = []

    def noting(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda x: (asked.append((function, x.copy())), function(x))[1]

    gs.minimize(noting(fun), x0, noting(jac), eps=LEVEL, delta=LEVEL, rng=0)
    best = np.inf
    for _ in range(REPEATS):
        begin = clock()
        for function, x in asked:
            function(x)
        best = min(best, (clock() - begin) / len(asked))
    return best


def interpreted() -> dict[str, dict[str, float]]:
    """Measure `auto` of the tree that is imported, on plain functions."""
    found = {}
    for name in NAMES:
        problem = gs.problems.get(name, d=DIM)
        pair = problem.value, problem.gradient
        answer = seconds_per_answer(*pair, problem.x0)
        found[name] = own_time(*pair, problem.x0, Auto, answer)
    return found


def compiled() -> dict[str, dict[str, float]]:
    """Measure the compiled search, on plain functions and on some compiled by Numba."""
    from goldstein.solvers.compiled import CompiledAuto

    found = {}
    for name in NAMES:
        problem = gs.problems.get(name, d=DIM)
        pair = problem.value, problem.gradient
        answer = seconds_per_answer(*pair, problem.x0)
        found[name] = own_time(*pair, problem.x0, CompiledAuto, answer)
    from benchmarks import compiled as jitted

    for label in ("chained LQ", "chained CB3", "maxq"):
        fun, jac, start, _ = jitted.PROBLEMS[label]
        answer = jitted.seconds_per_answer(label, DIM)
        found[f"{label}, by Numba"] = own_time(fun, jac, start(DIM), CompiledAuto, answer)
    return found


MEASURED = {"interpreted": interpreted, "compiled": compiled}


def in_a_process(what: str, tree: Path) -> dict[str, dict[str, float]]:
    path = os.pathsep.join([str(tree / "src"), str(Path(__file__).parent.parent)])
    ran = subprocess.run(
        [sys.executable, __file__, "--measure", what], check=True, capture_output=True, text=True,
        env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
    )  # fmt: skip
    answer: dict[str, dict[str, float]] = json.loads(ran.stdout)
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another clone, for its interpreted search")
    parser.add_argument("--measure", choices=MEASURED, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(MEASURED[options.measure]()))
        return
    here = Path(__file__).parent.parent
    kinds = {"interpreted": ("interpreted", here), "compiled": ("compiled", here)}
    if options.against:
        kinds = {"the other": ("interpreted", options.against.resolve()), **kinds}
    best: dict[tuple[str, str], dict[str, float]] = {}
    for _ in range(TURNS):
        for label, (what, tree) in kinds.items():
            for name, row in in_a_process(what, tree).items():
                kept = best.setdefault((label, name), row)
                best[label, name] = {key: min(kept[key], row[key]) for key in row}
    print("| search | problem | calls | own µs per call | own µs per run |\n" + "|---" * 5 + "|")
    for (label, name), row in best.items():
        calls, per_call, per_run = row.values()
        print(f"| {label} | {name} | {calls:.0f} | {per_call:.1f} | {per_run:.0f} |")
    for label in kinds:
        rows = [row for (each, name), row in best.items() if each == label and "Numba" not in name]
        middle = {key: np.median([row[key] for row in rows]) for key in ("per call", "per run")}
        print(f"{label}: median {middle['per call']:.1f} per call, {middle['per run']:.0f} per run")


if __name__ == "__main__":
    main()
