"""What `auto` itself costs, per call and per run: interpreted, compiled, and compiled throughout.

    python benchmarks/own_time.py                   # d = 10
    python benchmarks/own_time.py --against ../old  # and the interpreted one of another clone

Own time is CPU time without that of the function, which is measured alone, on the points it was
asked at. "Per call" is the search: the time between two calls of the function. "Per run" is all the
rest: checks, the memory of the search, judges, certificate, result. With plain functions a compiled
search calls them through Python; with functions compiled by Numba it stays in machine code for up
to 100 calls. The smallest of many repetitions counts, which a busy machine blurs least; every kind
of search has a process of its own, and they take turns every few runs: it is as busy for all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import goldstein as gs
from goldstein.solvers import Auto

NAMES = ("chained_lq", "chained_cb3_1", "maxq", "chained_mifflin_2", "chained_crescent_2")
DIM, LEVEL, REPEATS, TURNS = 10, 1e-3, 3, 25

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


#: Measures one kind of search on one problem.
Measure = Callable[[], dict[str, float]]


def on_plain_functions(kind: type) -> dict[str, Measure]:
    found = {}
    for name in NAMES:
        problem = gs.problems.get(name, d=DIM)
        pair = problem.value, problem.gradient
        answer = seconds_per_answer(*pair, problem.x0)
        found[name] = partial(own_time, *pair, problem.x0, kind, answer)
    return found


def interpreted() -> dict[str, Measure]:
    """`auto` of the tree that is imported."""
    return on_plain_functions(Auto)


def compiled() -> dict[str, Measure]:
    """The compiled search, on plain functions and on some compiled by Numba."""
    from benchmarks import compiled as jitted

    from goldstein.solvers.compiled import CompiledAuto

    found = on_plain_functions(CompiledAuto)
    for label in ("chained LQ", "chained CB3", "maxq"):
        fun, jac, start, _ = jitted.PROBLEMS[label]
        answer = jitted.seconds_per_answer(label, DIM)
        found[f"{label}, by Numba"] = partial(own_time, fun, jac, start(DIM), CompiledAuto, answer)
    return found


MEASURED = {"interpreted": interpreted, "compiled": compiled}


def serve(what: str) -> None:
    """Say what can be measured, then measure whatever is named on standard input."""
    measures = MEASURED[what]()
    print(json.dumps(list(measures)), flush=True)
    for line in sys.stdin:
        print(json.dumps(measures[line.strip()]()), flush=True)


class Process:
    """A process that measures one kind of search of one tree."""

    def __init__(self, what: str, tree: Path) -> None:
        path = os.pathsep.join([str(tree / "src"), str(Path(__file__).parent.parent)])
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--measure", what], text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path, "OPENBLAS_NUM_THREADS": "1"},
        )  # fmt: skip
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())

    def measure(self, name: str) -> dict[str, float]:
        assert self._process.stdin is not None
        print(name, file=self._process.stdin, flush=True)
        row: dict[str, float] = self._answer()
        return row

    def close(self) -> None:
        self._process.communicate()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="another clone, for its interpreted search")
    parser.add_argument("--measure", choices=MEASURED, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        serve(options.measure)
        return
    here = Path(__file__).parent.parent
    kinds = {"interpreted": ("interpreted", here), "compiled": ("compiled", here)}
    if options.against:
        kinds = {"the other": ("interpreted", options.against.resolve()), **kinds}
    processes = {label: Process(what, tree) for label, (what, tree) in kinds.items()}
    best: dict[tuple[str, str], dict[str, float]] = {}
    for _ in range(TURNS):
        for name in processes["compiled"].names:
            for label, process in processes.items():
                if name in process.names:
                    row = process.measure(name)
                    kept = best.setdefault((label, name), row)
                    best[label, name] = {key: min(kept[key], row[key]) for key in row}
    for process in processes.values():
        process.close()
    print("| search | problem | calls | own µs per call | own µs per run |\n" + "|---" * 5 + "|")
    for (label, name), row in sorted(best.items(), key=lambda item: list(kinds).index(item[0][0])):
        calls, per_call, per_run = row.values()
        print(f"| {label} | {name} | {calls:.0f} | {per_call:.1f} | {per_run:.0f} |")
    for label in kinds:
        rows = [row for (each, name), row in best.items() if each == label and "Numba" not in name]
        middle = {key: np.median([row[key] for row in rows]) for key in ("per call", "per run")}
        print(f"{label}: median {middle['per call']:.1f} per call, {middle['per run']:.0f} per run")


if __name__ == "__main__":
    main()
