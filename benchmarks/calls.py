"""What a method asks: calls until f is low, calls after that, and questions asked twice.

    python -m benchmarks.calls run FILE --set first second --levels 1e-3 1e-6 --method auto
    python -m benchmarks.calls compare BEFORE AFTER
    python -m benchmarks.calls report FILE
    python -m benchmarks.calls peers --set second third     # those that need nothing built
    python -m benchmarks.calls order                        # does convergence speed up?

Sets: both halves of the public suite (`benchmarks.halves`) and the third one (`benchmarks.third`),
up to `--dim` variables. A run has arrived where f is above its last value by 1e-6 of the whole fall
at most, and is near enough where that is eps delta / 4: so far the theorem wants it to fall, and
what comes then is a proof. A duplicate is a question (value or gradient) about a point, to the last
bit, that was asked before; a look for noise has to ask again, and is counted by itself. A run that
fails counts as twice the limit. Finished runs are never repeated. `peers` asks the solvers with
gradients of `benchmarks.optiprofiler` and ours for 1e-6 (eps = delta), all within `--max-calls`
values and gradients, and prints who came how close to the best value of all, and our calls against
those of the best of them; CPU in the same way, that of f included (a gradient costs a peer a value
more). `order` prints for five partly smooth functions when so many digits of the fall were there:
the same calls for every digit is a linear rate, fewer and fewer a faster one.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import sys
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from benchmarks.ablation import use
from benchmarks.halves import half_of
from benchmarks.optiprofiler import solvers
from benchmarks.third import PROBLEMS

import goldstein as gs

#: A run has arrived where this part of its fall is left.
ARRIVED = 1e-6
#: Solved: this part of the way from the start to the best known value is left.
ACCURACIES = (1e-2, 1e-4, 1e-6)

#: A maximum of smooth functions, two of eigenvalues or singular values, one of them beside a smooth
#: term, a sum of maxima, and a smooth function with moduli.
PARTLY_SMOOTH = (
    "max_quadratics", "max_eigenvalue", "nuclear_norm_regression", "chained_cb3_1", "l1_logistic",
)  # fmt: skip

#: Those who ask again on purpose: an answer that is another one is noise.
LOOK_FOR_NOISE = {"require_one_value", "_require_determinism", "_require_same", "_check_gradients"}


class Watched:
    """A function that writes down what it was asked."""

    def __init__(self, fun: Any, jac: Any) -> None:
        self.plain_fun, self.plain_jac = fun, jac
        self.asked: Counter[tuple[str, bytes]] = Counter()
        self.calls = self.noise_looks = 0
        self.best = math.inf
        #: (calls, f) whenever f was lowest, and CPU seconds until then.
        self.course: list[tuple[int, float]] = []
        self.clock: list[float] = []
        self.began = time.process_time()

    def _note(self, kind: str, x: Any) -> None:
        self.calls += 1
        key = kind, np.asarray(x, dtype=float).tobytes()
        frame = sys._getframe() if key in self.asked else None
        while frame is not None and frame.f_code.co_name not in LOOK_FOR_NOISE:
            frame = frame.f_back
        self.noise_looks += frame is not None
        self.asked[key] += 1

    def fun(self, x: Any) -> float:
        self._note("value", x)
        fx = float(self.plain_fun(x))
        if fx < self.best:
            self.best = fx
            self.course.append((self.calls, fx))
            self.clock.append(time.process_time() - self.began)
        return fx

    def jac(self, x: Any) -> Any:
        self._note("gradient", x)
        return self.plain_jac(x)

    def duplicates(self, kind: str) -> int:
        return sum(n - 1 for (k, _), n in self.asked.items() if k == kind)

    def first_below(self, goal: float) -> int | None:
        return next((calls for calls, fx in self.course if fx <= goal), None)


def problems(sets: list[str], dim: int) -> Iterator[tuple[str, str, Any, Any, Any, float | None]]:
    """Set, name, f, gradient, start and best known value."""
    for p in gs.problems.suite():
        half = ("first", "second")[half_of(p.name)]
        if half in sets and p.bounded and p.locally_lipschitz and p.dim <= dim:
            known = [v for v in (p.best_value, p.reference_value) if v is not None]
            yield half, p.name, p.fun, p.jac, p.x0, (min(known) if known else None)
    if "third" in sets:
        for name, make in PROBLEMS.items():
            pair, x0 = make()
            yield "third", name, lambda x, f=pair: f(x)[0], lambda x, f=pair: f(x)[1], x0, None


def one(fun: Any, jac: Any, x0: Any, level: float, seed: int, asked: Any) -> dict[str, Any]:
    watched = Watched(fun, jac)
    try:
        res = gs.minimize(
            watched.fun, x0, watched.jac, eps=level, delta=level, rng=seed,
            max_calls=asked.max_calls, max_time=asked.max_time, method=asked.method,
        )  # fmt: skip
    except gs.GoldsteinError as failure:
        return {"status": type(failure).__name__, "success": False, "calls": watched.calls,
                "fun": watched.best, "course": watched.course[:1]}  # fmt: skip
    fall = float(fun(x0)) - res.fun
    arrived = watched.first_below(res.fun + ARRIVED * fall) or watched.calls
    near = watched.first_below(res.fun + 0.25 * level**2) or watched.calls
    later = [*watched.course[1:], (0, -math.inf)]
    kept = [
        here for here, after in zip(watched.course, later)
        if after[1] < here[1] - 1e-4 * abs(here[1] - res.fun)
    ]  # fmt: skip
    return {
        "status": res.status.name, "success": bool(res.success), "calls": watched.calls,
        "fun": res.fun, "arrived": arrived, "near": near,
        "looks for noise": watched.noise_looks, "values twice": watched.duplicates("value"),
        "gradients twice": watched.duplicates("gradient"), "course": kept, "start": float(fun(x0)),
    }  # fmt: skip


def run(path: Path, asked: Any) -> None:
    warnings.simplefilter("ignore")
    if asked.tuning:
        use(asked.tuning)
    done = {row["run"] for row in rows(path)}
    for part, name, fun, jac, x0, best in problems(asked.set, asked.dim):
        for level in asked.levels:
            for seed in range(asked.seeds):
                key = f"{part} {name} {level:g} {seed}"
                if key in done or asked.only not in key:
                    continue
                row = {"run": key, "best": best, "limit": asked.max_calls}
                row |= one(fun, jac, x0, level, seed, asked)
                with path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def best_values(*tables: dict[str, dict[str, Any]]) -> dict[str, float]:
    best: dict[str, float] = {}
    for table in tables:
        for key, row in table.items():
            name = " ".join(key.split()[:2])
            found = [v for v in (row["fun"], row["best"]) if v is not None and math.isfinite(v)]
            best[name] = min([best.get(name, math.inf), *found])
    return best


def cost(row: dict[str, Any], best: float, accuracy: float | None) -> float | None:
    """Calls to a certificate, or until f is this close to the best value."""
    if accuracy is None:
        return row["calls"] if row["success"] else None
    if "start" not in row:
        return None
    goal = best + accuracy * (row["start"] - best)
    return next((calls for calls, fx in row["course"] if fx <= goal), None)


def compare(before: Path, after: Path) -> None:
    old, new = ({r["run"]: r for r in rows(p)} for p in (before, after))
    best = best_values(old, new)
    keys = [k for k in old if k in new]
    print("| set | level | cost | runs | solved before | after | calls ratio | worst | best |")
    print("|---|---|---|---|---|---|---|---|---|")
    for part in ("first", "second", "third"):
        for level in sorted({k.split()[2] for k in keys}, key=float, reverse=True):
            here = [k for k in keys if k.split()[0] == part and k.split()[2] == level]
            for accuracy in (None, *ACCURACIES[1:]) if here else ():
                pairs = {
                    k: [cost(t[k], best[" ".join(k.split()[:2])], accuracy) for t in (old, new)]
                    for k in here
                }
                solved = [sum(p[i] is not None for p in pairs.values()) for i in (0, 1)]
                logs = {}
                for k, (a, b) in pairs.items():
                    if a is not None or b is not None:
                        twice = 2.0 * old[k]["limit"]
                        logs[k] = math.log((b or twice) / (a or twice))
                if not logs:
                    continue
                worst, good = max(logs, key=logs.get), min(logs, key=logs.get)  # type: ignore[arg-type]
                print(
                    f"| {part} | {level} | {accuracy or 'certificate'} | {len(logs)} | "
                    f"{solved[0]} | {solved[1]} | {math.exp(sum(logs.values()) / len(logs)):.3f} | "
                    f"{math.exp(logs[worst]):.2f} {worst.split()[1]} | "
                    f"{math.exp(logs[good]):.2f} {good.split()[1]} |"
                )


def report(path: Path) -> None:
    table = {r["run"]: r for r in rows(path)}
    best = best_values(table)
    print("| set | level | runs | certified | 1e-2, 1e-4, 1e-6 | calls | after arrival | "
          "of a proof | twice | for noise |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for part in ("first", "second", "third"):
        for level in sorted({k.split()[2] for k in table}, key=float, reverse=True):
            here = [k for k in table if k.split()[0] == part and k.split()[2] == level]
            if not here:
                continue
            solved = [
                sum(cost(table[k], best[" ".join(k.split()[:2])], a) is not None for k in here)
                for a in ACCURACIES
            ]
            share = [
                [1.0 - table[k].get(name, math.nan) / table[k]["calls"] for k in here
                 if table[k]["success"]]
                for name in ("arrived", "near")
            ]  # fmt: skip
            noise, *twice = (
                sum(table[k].get(name, 0) for k in here)
                for name in ("looks for noise", "values twice", "gradients twice")
            )
            print(
                f"| {part} | {level} | {len(here)} | {sum(table[k]['success'] for k in here)} | "
                f"{', '.join(map(str, solved))} | {sum(table[k]['calls'] for k in here)} | "
                f"{' | '.join(f'{median(s) if s else math.nan:.0%}' for s in share)} | "
                f"{sum(twice) - noise} | {noise} |"
            )


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


class OutOfCalls(Exception):
    """The calls of a peer are over."""


def course_of(solver: Any, fun: Any, jac: Any, x0: Any, most: int) -> Watched:
    """What a peer asked."""
    watched = Watched(fun, jac)

    class Problem:
        """A gradient of a peer is counted by a value at its point: see `Counted`."""

        def value(self, x: Any) -> float:
            if watched.calls >= most:
                raise OutOfCalls
            return watched.fun(x)

        def grad(self, x: Any) -> Any:
            return jac(x)

    # Peers divide by zero and overflow as they please: what they found until then counts.
    with contextlib.suppress(OutOfCalls, ArithmeticError, ValueError, gs.GoldsteinError):
        solver(Problem().value, np.array(x0, dtype=float))
    return watched


def peers(asked: Any) -> None:
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    solvers.EVALUATIONS = 10**6  # no limit but ours
    theirs = {k: v for k, v in solvers.with_gradients().items() if k != "auto"}
    for part in asked.set:
        rows = []
        for _, _, fun, jac, x0, best in problems([part], asked.dim):
            start = float(fun(x0))
            watched = Watched(fun, jac)
            with contextlib.suppress(gs.GoldsteinError):
                gs.minimize(
                    watched.fun, x0, watched.jac, eps=1e-6, delta=1e-6, rng=0,
                    max_calls=asked.max_calls, max_time=asked.max_time, method=asked.method,
                    options={"compiled": True} if asked.compiled else None,
                )  # fmt: skip
            courses = {asked.method: watched}
            for name, solver in theirs.items():
                courses[name] = course_of(solver, fun, jac, x0, asked.max_calls)
            lowest = [seen.best for seen in courses.values()]
            rows.append((start, min([*lowest, *([] if best is None else [best])]), courses))
        for accuracy in ACCURACIES[1:]:
            print(compared(rows, part, accuracy, asked.method), flush=True)


def compared(rows: list[Any], part: str, accuracy: float, ours: str) -> str:
    """Who solved how many, and our calls and CPU against those of the best of the others."""
    solved, logs = Counter[str](), []
    for start, best, courses in rows:
        goal = best + accuracy * (start - best)
        costs = {
            name: next(
                ((n, cpu) for (n, fx), cpu in zip(seen.course, seen.clock) if fx <= goal), None
            )
            for name, seen in courses.items()
        }
        there = {name: cost for name, cost in costs.items() if cost is not None}
        solved.update(list(there))
        mine = there.pop(ours, None)
        if mine and there:
            least = map(min, zip(*there.values()))
            logs.append([math.log(own / low) for own, low in zip(mine, least)])
    calls, cpu = (math.exp(sum(one) / len(one)) for one in zip(*logs))
    who = ", ".join(f"{name} {n}" for name, n in solved.most_common())
    return (
        f"{part} {accuracy:g}: {calls:.2f} of the best peer's calls and {cpu:.2f} of the fastest "
        f"one's CPU ({len(logs)}); {who}"
    )


def order(asked: Any) -> None:
    """Calls when 10^-k of the whole fall was left, for k = 2, 4, ..., 12."""
    for name in PARTLY_SMOOTH:
        p = gs.problems.get(name)
        watched = Watched(p.fun, p.jac)
        ask = {"rng": 0, "max_calls": 20_000, "max_time": 5.0 * asked.max_time}
        res = gs.minimize(watched.fun, p.x0, watched.jac, eps=1e-7, delta=1e-7, **ask)
        again = gs.minimize(p.fun, res.x, p.jac, eps=1e-9, delta=1e-9, **ask)
        best = min(res.fun, again.fun)
        fall = float(p.fun(p.x0)) - best
        calls = [watched.first_below(best + fall * 10.0**-k) for k in range(2, 14, 2)]
        print(f"| {name} | {p.dim} | {' | '.join(map(str, calls))} | {watched.calls} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=("run", "compare", "report", "peers", "order"))
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("after", type=Path, nargs="?")
    parser.add_argument("--set", nargs="*", default=["first", "second"])
    parser.add_argument("--levels", nargs="*", type=float, default=[1e-3, 1e-6])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--dim", type=int, default=60)
    parser.add_argument("--max-calls", type=int, default=3000)
    parser.add_argument("--max-time", type=float, default=20.0)
    parser.add_argument("--method", default="auto")
    parser.add_argument("--compiled", action="store_true", help="peers: ours in machine code")
    parser.add_argument("--tuning", default="", help="constants of auto, as in benchmarks.ablation")
    parser.add_argument("--only", default="", help="runs whose name has this in it")
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.file, asked)
    elif asked.command == "compare":
        compare(asked.file, asked.after)
    elif asked.command == "peers":
        peers(asked)
    elif asked.command == "order":
        order(asked)
    else:
        report(asked.file)


if __name__ == "__main__":
    main()
