"""Values only: who comes within 1e-4 of the minimum first, and how often?

    python -m benchmarks.values                 # everything: some minutes of one core
    python -m benchmarks.values --noise 0       # without noise only
    python -m benchmarks.values --methods goldstein Nelder-Mead cma
    python -m benchmarks.values --report        # the tables again

Thirty problems with 2 to 50 variables, small ones turned and shifted at random (the constants of
the method were chosen on the suite as it is, in up to 20 variables). Every method has 500 (d + 1)
values; a value is f plus noise of this standard deviation. Counted is when the *true* f at a point
that was asked for is within 1e-4 (f(x0) - best) of the best value known: what a method reports as
its answer does not matter. With noise 1e-4 every run is made with five draws of it, and counts are
means: first places move by three from one draw to the next, and the means by one or two with the
seed of our search. The constants that matter with noise were chosen on the first half of the
problems (by a hash of their names, `benchmarks.halves`) and on others (functions that are not here,
or turned, in other numbers of variables); the second half is a column of its own, though not one
that nobody had looked at. A run ends after 4 seconds of CPU time (COBYLA and COBYQA: 1 second,
their own arithmetic takes longest). Methods that are not installed (`pip install cma nlopt`) are
left out and said so.

With noise 1e-4 this was tried: longer and shorter differences (what counts is that about a
hundredth of a gradient is noise), central ones, searches that end at the size of the steps, steps
that shrink from search to search: all end between 1e-2 and 1e-4, because the search goes to places
on kinks, where forward differences are no combination of gradients. Steps that follow how much f
fell last, or the root of that times the noise, gradients a little beside the place, central
differences from the first failure on, and on each line the side where f is higher did not help;
differences along the axes of the metric of the search did, each axis limited by itself (without
that noise feeds on itself: gradients too long by a thousand make the metric narrower still), and
so did a simplex after it, in up to eight variables. To leave changes of the gradient below noise
out of the metric, or to search again from where a search has ended, was no gain. With exact
gradients and noisy values most problems would be won; without noise in the differences, or without
kinks in their way, far fewer: it takes both.

CMA-ES after a fixed number of values, or when nothing is gained any more (as it is now), with wider
and narrower starts, and with its mean evaluated each time: nearly everything is solved then, but
about when CMA-ES alone would. A start of CMA-ES from the metric of the search, or from its root
with limited axes, was worse, as the metric is too narrow by then; a quadratic model of the latest
values that saves it some of them (as in Hansen, A global surrogate assisted CMA-ES, 2019) gains a
half from a far start, and next to nothing where the search has ended at a kink. Populations that
grow where only noise is left solve more. A maximum of planes plus a quadratic, fitted to all
values near the end of the search, foretells f well there, but its steps, in a ball, gain little in
a valley; it was not tried in a metric.

Less than the thirteen values that the noise costs to measure: its level was worse, and so were the
results, also where it was measured again later. In two variables others need fewer values. COBYQA
in front, in up to three variables, would tie with COBYQA on its four problems here, but took half
as many values again in the mean of sixteen: it ends on kinks, too.

Finished runs are kept in benchmarks/results/values.jsonl and not repeated; delete it to measure
afresh. The table goes to benchmarks/values.md.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import math
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.halves import half_of
from scipy import optimize

import goldstein as gs

LEVELS = (1e-2, 1e-4, 1e-6)
NOISE = (0.0, 1e-8, 1e-4)
#: Draws of the noise, where it decides who is first.
SEEDS = {1e-4: (0, 1, 2, 3, 4)}
KEPT = Path(__file__).parent / "results" / "values.jsonl"
#: CPU time for one run; less for those whose own arithmetic takes longest.
SECONDS = {"COBYLA": 1.0, "COBYQA": 1.0}
OTHERS = 4.0
TURNED = [
    "crescent", "cb3", "dem", "lq", "mifflin_2", "rosenbrock", "dc_1", "evd52", "rosen_suzuki",
    "davidon_2", "colville_1", "el_attar", "wong_1", "half_and_half", "capped_l1", "maxquad",
]  # fmt: skip
CHAINED = [
    ("chained_lq", 10), ("chained_crescent_1", 10), ("chained_crescent_2", 10), ("maxq", 10),
    ("brown_2", 10), ("active_faces", 10), ("chained_cb3_2", 20), ("test29_6", 20),
    ("mxhilb", 20), ("goffin", 20), ("test29_22", 30), ("chained_cb3_1", 30),
    ("chained_crescent_1", 50), ("chained_mifflin_2", 50),
]  # fmt: skip


class Spent(Exception):
    """The values, or the seconds, are used up."""


class Recorder:
    """f plus noise, and when the true f was first within each level of the best."""

    def __init__(
        self, problem: gs.problems.Problem, noise: float, seed: int, seconds: float
    ) -> None:
        self.problem, self.noise = problem, noise
        self.draw = np.random.default_rng(seed)
        self.budget = 500 * (problem.dim + 1)
        self.calls = 0
        self.end = time.process_time() + seconds
        gap = problem.value(problem.x0) - problem.best_value
        self.marks = {level: problem.best_value + level * gap for level in LEVELS}
        self.reached = dict.fromkeys(LEVELS, math.inf)

    def __call__(self, x: Any, *_: Any) -> float:
        if self.calls >= self.budget or time.process_time() > self.end:
            raise Spent
        self.calls += 1
        value = float(self.problem.value(np.array(x, dtype=float)))
        for level, mark in self.marks.items():
            if value <= mark and math.isinf(self.reached[level]):
                self.reached[level] = self.calls
        return value + self.noise * self.draw.standard_normal() if self.noise else value


def goldstein(f: Recorder, x0: np.ndarray) -> None:
    gs.minimize(f, x0, eps=1e-6, delta=1e-6, method="values", rng=0, max_calls=f.budget)


def scipys(name: str, **options: Any) -> Callable[[Recorder, np.ndarray], None]:
    def run(f: Recorder, x0: np.ndarray) -> None:
        limit = {} if name == "BFGS" else {"maxiter" if name == "COBYLA" else "maxfev": f.budget}
        optimize.minimize(f, x0, method=name, options={**options, **limit})

    return run


def cma(f: Recorder, x0: np.ndarray) -> None:
    import cma

    spread = 0.3 * max(1.0, float(np.abs(x0).max()))
    options = {"verbose": -9, "seed": 1, "maxfevals": f.budget, "tolfun": 0, "tolx": 1e-14}
    cma.fmin(f, x0, spread, options)


def bobyqa(f: Recorder, x0: np.ndarray) -> None:
    import nlopt

    search = nlopt.opt(nlopt.LN_BOBYQA, x0.size)
    search.set_min_objective(f)
    search.set_maxeval(f.budget)
    search.set_xtol_rel(1e-14)
    search.optimize(x0)


METHODS: dict[str, Callable[[Recorder, np.ndarray], None]] = {
    "goldstein": goldstein,
    "Nelder-Mead": scipys("Nelder-Mead", adaptive=True, xatol=1e-12, fatol=1e-14, maxiter=10**7),
    "Powell": scipys("Powell", xtol=1e-10, ftol=1e-14, maxiter=10**7),
    "COBYLA": scipys("COBYLA", tol=1e-10),
    "COBYQA": scipys("COBYQA", final_tr_radius=1e-10, maxiter=10**7),
    "BFGS": scipys("BFGS", gtol=1e-10),
    "cma": cma,
    "BOBYQA": bobyqa,
}
NEEDS = {"cma": "cma", "BOBYQA": "nlopt"}


def problems() -> list[gs.problems.Problem]:
    turned = [gs.problems.rotated(gs.problems.get(name), 7) for name in TURNED]
    return turned + [gs.problems.get(name, d=dim) for name, dim in CHAINED]


#: For each problem, the values until each level.
Rows = list[dict[float, float]]


def kept() -> dict[tuple[str, float, int], Rows]:
    """Return the runs that were made before, by method, noise and seed of the noise."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    found = {}
    for line in lines:
        run = json.loads(line)
        rows = [{float(level): calls for level, calls in row.items()} for row in run["rows"]]
        found[run["method"], run["noise"], run["seed"]] = rows
    return found


def measure(names: list[str], noise: float, seed: int) -> dict[str, Rows]:
    """Return what each method needed."""
    found: dict[str, Rows] = {}
    for name in names:
        if (name, noise, seed) in kept():
            found[name] = kept()[name, noise, seed]
            continue
        rows = []
        for problem in problems():
            f = Recorder(problem, noise, seed, SECONDS.get(name, OTHERS))
            with contextlib.suppress(Exception), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                METHODS[name](f, problem.x0.copy())
            rows.append(f.reached)
        found[name] = rows
        KEPT.parent.mkdir(exist_ok=True)
        run = {"method": name, "noise": noise, "seed": seed, "rows": rows}
        with KEPT.open("a") as file:
            file.write(json.dumps(run) + "\n")
        print(f"noise {noise:g}, seed {seed}: {name} done", flush=True)
    return found


def table(draws: list[dict[str, Rows]], noise: float) -> str:
    """Return the counts as a table, in the mean of the draws: reached, and first at 1e-4."""
    # By method, draw and problem.
    spent = {
        name: np.array([[row[1e-4] for row in draw[name]] for draw in draws]) for name in draws[0]
    }
    fewest = np.min(list(spent.values()), axis=0)
    solved = np.isfinite(fewest)
    dims = np.array([problem.dim for problem in problems()])
    second = np.array([half_of(p.name.split("_rotated")[0]) == 1 for p in problems()])
    several = f", means of {len(draws)} draws" if len(draws) > 1 else ""
    lines = [
        f"Noise {noise:g}: {len(dims)} problems, {_mean(solved)} of them brought to 1e-4 by "
        f"somebody{several}.",
        "",
        "| method | 1e-2 | 1e-4 | 1e-6 | first at 1e-4 | of the second half | median values / "
        "(d + 1) to 1e-4 |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, values in spent.items():
        reached = [[[math.isfinite(r[level]) for r in draw[name]] for draw in draws]
                   for level in LEVELS]  # fmt: skip
        counts = " | ".join(_mean(np.array(level)) for level in reached)
        won = solved & (values == fewest)
        done = np.isfinite(values)
        median = f"{np.median((values / (dims + 1))[done]):.0f}" if done.any() else "-"
        share = f"{_mean(won)} ({100 * won.sum() / max(1, solved.sum()):.0f} %)"
        later = f"{_mean(won[:, second])} of {_mean(solved[:, second])}"
        lines.append(f"| {name} | {counts} | {share} | {later} | {median} |")
    return "\n".join(lines)


def _mean(happened: np.ndarray) -> str:
    """Return how many there are in a draw, in the mean."""
    return f"{happened.sum() / len(happened):.1f}".removesuffix(".0")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", nargs="+", choices=list(METHODS), default=list(METHODS))
    parser.add_argument("--noise", nargs="+", type=float, default=list(NOISE))
    parser.add_argument("--report", action="store_true", help="tables of what was run before")
    asked = parser.parse_args()
    names = [
        n for n in asked.methods if n not in NEEDS or importlib.util.find_spec(NEEDS[n]) is not None
    ]
    parts = []
    for noise in asked.noise:
        seeds = SEEDS.get(noise, (0,))
        made = [n for n in names if not asked.report or all((n, noise, s) in kept() for s in seeds)]
        parts.append(table([measure(made, noise, seed) for seed in seeds], noise))
        missing = [name for name in asked.methods if name not in made]
        parts += [f"Not run here: {', '.join(missing)}."] if missing else []
    text = "\n\n".join(parts) + "\n"
    print(text)
    if asked.methods == list(METHODS) and asked.noise == list(NOISE):
        head = "# Values only\n\nWritten by `python -m benchmarks.values`; see there.\n\n"
        Path(__file__).with_suffix(".md").write_text(head + text)


if __name__ == "__main__":
    main()
