"""Run `python -m benchmarks.constrained.run`: calls, violation, f, and the certified KKT eps.

Every method starts at the same point. Where no answer is known, the best feasible value of all
methods stands for it. The last column certifies whatever point a method returned, at the same
delta, without moving it (but onto bounds that it misses by less than 1e-9).
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
from benchmarks.peers.remote import PYTHON, PeerProcess
from scipy.optimize import minimize

import goldstein as gs
from goldstein.constrained import Box, as_box, as_system

PEERS = ("SLSQP", "trust-constr", "COBYLA")
#: In an environment of their own: `sh benchmarks/peers/setup.sh`.
REMOTE = ("pygranso", "pygranso-loose")
EPS = DELTA = 1e-3


class Counter:
    """Values and gradients that were asked for."""

    def __init__(self, problem: Problem) -> None:
        self.problem, self.calls = problem, 0

    def fun(self, x: Any) -> float:
        self.calls += 1
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
            counter.fun, problem.x0, counter.jac, eps=EPS, delta=DELTA, rng=seed, **problem.limits
        )
        last, status = res.x, res.status.name
    elif method in REMOTE:
        last, status = solve(process, method, problem, counter, EPS, DELTA)
    else:
        gradients = {} if method == "COBYLA" else {"jac": counter.jac}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            res = minimize(
                counter.fun, problem.x0, method=method, options={"maxiter": 3000}, **gradients,
                **problem.limits,
            )  # fmt: skip
        last, status = res.x, "success" if res.success else "failure"
    spent = time.perf_counter() - begin
    box = as_box(problem.limits.get("bounds"), problem.x0.size)
    x = _on_bounds(box, np.asarray(last, dtype=float))
    system = as_system(problem.limits.get("constraints", ()), x)
    calls = counter.calls
    proved = _certified(problem, counter, x, seed)
    return {
        "problem": problem.name, "method": method, "status": status, "calls": calls,
        "time": spent, "violation": system.violation(x), "fun": float(problem.fun(x)),
        "kkt_eps": proved, "proof": 0 if method == "goldstein" else counter.calls - calls,
    }  # fmt: skip


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
        values = [row["fun"] for row in mine if row["violation"] <= 1e-9]
        best = problem.best if problem.best is not None else min(values, default=np.nan)
        for row in mine:
            row["gap"] = row["fun"] - best
            print(
                f"{row['problem']:24s} {row['method']:13s} {row['status']:14s} "
                f"{row['calls']:6d} calls {row['time']:7.2f} s  violation {row['violation']:8.1e}  "
                f"gap {row['gap']:9.1e}  KKT eps {row['kkt_eps']:8.1e}",
                flush=True,
            )
        rows += mine
    process.close()
    _summary(rows)
    _against(rows)
    if options.out is not None:
        options.out.write_text(json.dumps(rows, indent=1))


def _summary(rows: list[dict[str, Any]]) -> None:
    for method in dict.fromkeys(row["method"] for row in rows):
        mine = [row for row in rows if row["method"] == method]
        feasible = [row for row in mine if row["violation"] <= 1e-9]
        near = [row for row in feasible if row["gap"] <= 1e-4 * max(1.0, abs(row["fun"]))]
        proved = [row for row in feasible if row["kkt_eps"] <= EPS]
        print(
            f"{method:14s} of {len(mine)}: feasible {len(feasible)}, f within 1e-4 {len(near)}, "
            f"certified KKT at ({EPS:g}, {DELTA:g}) {len(proved)}, "
            f"median calls {int(np.median([row['calls'] for row in mine]))}"
        )


def _arrived(row: dict[str, Any]) -> bool:
    """Feasible, with a certificate, and as low as the best known."""
    near = row["gap"] <= 1e-4 * max(1.0, abs(row["fun"]))
    return bool(row["violation"] <= 1e-9 and row["kkt_eps"] <= EPS and near)


def _against(rows: list[dict[str, Any]]) -> None:
    """Compare calls with each setting of PyGRANSO, and with the better one of those that arrive."""
    ours = {row["problem"]: row for row in rows if row["method"] == "goldstein"}
    for method in REMOTE:
        theirs = {row["problem"]: row for row in rows if row["method"] == method}
        both = [name for name in ours if name in theirs]
        fewer = [name for name in both if ours[name]["calls"] < theirs[name]["calls"]]
        if both:
            print(f"fewer calls than {method}, whatever it ends with: {len(fewer)} of {len(both)}")
    rivals = [row for row in rows if row["method"] in REMOTE]
    names = [name for name in ours if any(row["problem"] == name for row in rivals)]
    for proof, remark in ((0, "before"), (1, "with")):
        fewer = [
            name
            for name in names
            if _arrived(ours[name])
            and all(
                ours[name]["calls"] < row["calls"] + proof * row["proof"]
                for row in rivals
                if row["problem"] == name and _arrived(row)
            )
        ]
        if names:
            print(
                f"to the answer in fewer calls than PyGRANSO ({remark} its certificate), or alone: "
                f"{len(fewer)} of {len(names)}"
            )


if __name__ == "__main__":
    main()
