"""Run `python -m benchmarks.constrained.run`: calls, violation, f, and the certified KKT eps.

Every method starts at the same point. Where no answer is known, the best feasible value of all
methods stands for it. The last column certifies whatever point a method returned, at the same
delta, without moving it (but onto bounds that it misses by less than 1e-9). A run of all methods on
all problems writes results.md.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.constrained.granso import solve
from benchmarks.constrained.problems import Problem, all_problems
from benchmarks.constrained.report import DELTA, EPS, against, summary, together, write
from benchmarks.peers.remote import PYTHON, PeerProcess
from scipy.optimize import NonlinearConstraint, minimize

import goldstein as gs
from goldstein.checker.constrained.limits import Box, as_box
from goldstein.oracles.problem import as_system

#: Methods of SciPy with their most iterations; those of trust-constr take long.
PEERS = {"SLSQP": 3000, "trust-constr": 500, "COBYLA": 3000}
#: In an environment of their own: `sh benchmarks/peers/setup.sh`.
REMOTE = ("pygranso", "pygranso-loose")


class Counter:
    """Values and gradients that were asked for, and those of nonlinear constraints."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.calls, self.constraints = problem, 0, 0
        self.last = problem.x0
        self.limits = dict(problem.limits)
        if "constraints" in self.limits:
            given = self.limits["constraints"]
            given = given if isinstance(given, list) else [given]
            self.limits["constraints"] = [self._counted(one) for one in given]

    def _counted(self, one: Any) -> Any:
        if not isinstance(one, NonlinearConstraint):
            return one
        return NonlinearConstraint(self._one(one.fun), one.lb, one.ub, jac=self._one(one.jac))

    def _one(self, question: Any) -> Any:
        def asked(x: Any) -> Any:
            self.constraints += 1
            return question(x)

        return asked

    def fun(self, x: Any) -> float:
        self.calls += 1
        self.last = np.array(x, dtype=float)
        return self.problem.fun(x)

    def jac(self, x: Any) -> Any:
        self.calls += 1
        return self.problem.jac(x)


def one(problem: Problem, method: str, seed: int, process: PeerProcess) -> dict[str, Any]:
    """Run one method; return what is to be compared."""
    counter = Counter(problem)
    begin = time.perf_counter()
    if method == "goldstein":
        res = gs.minimize(
            counter.fun, problem.x0, counter.jac, eps=EPS, delta=DELTA, rng=seed, **counter.limits
        )
        last, status = res.x, res.status.name
    elif method in REMOTE:
        last, status = solve(process, method, problem, counter, EPS, DELTA)
    else:
        last, status = _of_scipy(method, counter)
    spent = time.perf_counter() - begin
    box = as_box(problem.limits.get("bounds"), problem.x0.size)
    x = _on_bounds(box, np.asarray(last, dtype=float))
    system = as_system(problem.limits.get("constraints", ()), x)
    calls, constraints = counter.calls, counter.constraints
    proved = _certified(problem, counter, x, seed)
    return {
        "problem": problem.name, "method": method, "status": status, "calls": calls,
        "constraints": constraints,
        "time": spent, "violation": system.violation(x), "fun": float(problem.fun(x)),
        "best": problem.best,
        "kkt_eps": proved, "proof": 0 if method == "goldstein" else counter.calls - calls,
    }  # fmt: skip


def _of_scipy(method: str, counter: Counter) -> tuple[Any, str]:
    """Return the last point of one of SciPy's methods and how the run ended."""
    gradients = {} if method == "COBYLA" else {"jac": counter.jac}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            res = minimize(
                counter.fun, counter.problem.x0, method=method,
                options={"maxiter": PEERS[method]}, **gradients, **counter.limits,
            )  # fmt: skip
    except ValueError:  # outside the bounds a function need not be defined
        return np.nan_to_num(counter.last), "error"
    return res.x, "success" if res.success else "failure"


def _on_bounds(box: Box, x: Any) -> Any:
    """Clip a point, and put coordinates onto bounds that they miss by rounding alone."""
    x = np.where(np.abs(x - box.lower) <= 1e-9, box.lower, x)
    return box.clip(np.where(np.abs(x - box.upper) <= 1e-9, box.upper, x))


def _certified(problem: Problem, counter: Counter, x: Any, seed: int) -> float:
    """What can be proved of this point; inf where it violates a constraint visibly."""
    try:
        found = gs.certify(
            counter.fun, x, counter.jac, delta=DELTA, eps=EPS / 2, rng=seed, **problem.limits
        )
    except gs.GoldsteinError:
        return float("inf")
    usable = found.feasibility <= 1e-6 and found.verify(problem.fun, problem.jac, **problem.limits)
    return found.eps if usable else float("inf")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="problems whose name contains this")
    parser.add_argument("--methods", help="separated by commas; default: all that are there")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, help="file for the rows, as JSON")
    options = parser.parse_args()
    methods = ("goldstein", *(REMOTE if PYTHON.exists() else ()), *PEERS)
    methods = tuple(options.methods.split(",")) if options.methods else methods
    process = PeerProcess()
    rows: list[dict[str, Any]] = []
    for problem in all_problems():
        if options.only not in problem.name:
            continue
        mine = [one(problem, m, options.seed, process) for m in methods]
        for row in together(mine):
            print(
                f"{row['problem']:24s} {row['method']:13s} {row['status']:14s} "
                f"{row['calls']:6d} calls {row['time']:7.2f} s  violation {row['violation']:8.1e}  "
                f"gap {row['gap']:9.1e}  KKT eps {row['kkt_eps']:8.1e}",
                flush=True,
            )
        rows += mine
        if options.out is not None:
            options.out.write_text(json.dumps(rows, indent=1))
    process.close()
    print(summary(rows))
    print(against(rows))
    if not options.only and not options.methods:
        write(rows)


if __name__ == "__main__":
    main()
