"""Run `python -m benchmarks.leaping`: Nesterov's Chebyshev-Rosenbrock functions, written out.

d = 2 to 10, from the usual start and nine random ones, eps = delta = 1e-6, at most 20,000 calls:
`auto` with and without the head start by leaps, and SciPy's BFGS. `--first 10` takes starts on
which no constant was chosen. The minimum is 0 at (1, ..., 1). For each: runs that end below 1e-4
and 1e-8, median calls (values + gradients; of a leap all derivatives count as one gradient), CPU
seconds of the ten runs. Whatever is certified is verified again.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import minimize as scipy_minimize

import goldstein as gs

Run = Callable[[gs.Expression, np.ndarray, int], tuple[float, int, bool]]


def squares(d: int) -> gs.Expression:
    x = gs.Variable(d)
    return 0.25 * gs.abs(x[0] - 1.0) + gs.sum(gs.abs(x[1:] - 2.0 * x[:-1] ** 2 + 1.0))


def folds(d: int) -> gs.Expression:
    x = gs.Variable(d)
    return 0.25 * gs.abs(x[0] - 1.0) + gs.sum(gs.abs(x[1:] - 2.0 * gs.abs(x[:-1]) + 1.0))


def smooth_first(d: int) -> gs.Expression:
    x = gs.Variable(d)
    return 0.25 * (x[0] - 1.0) ** 2 + gs.sum(gs.abs(x[1:] - 2.0 * x[:-1] ** 2 + 1.0))


FUNCTIONS = {"squares": squares, "folds": folds, "smooth first term": smooth_first}


def start(d: int, seed: int) -> np.ndarray:
    x = np.ones(d)
    x[0] = -1.0
    return x if seed == 0 else np.random.default_rng(seed).uniform(-2.0, 2.0, d)


def auto(leaps: bool) -> Run:
    def run(F: gs.Expression, x0: np.ndarray, seed: int) -> tuple[float, int, bool]:
        res = gs.minimize(
            F, x0, eps=1e-6, delta=1e-6, rng=seed, max_calls=20_000, max_time=20,
            options={"leaps": leaps},
        )  # fmt: skip
        refused = res.certificate is not None and not res.certificate.verify(F).ok
        return res.fun, res.nfev + res.ngev, refused

    return run


def bfgs(F: gs.Expression, x0: np.ndarray, seed: int) -> tuple[float, int, bool]:
    def gradient(x: np.ndarray) -> np.ndarray:
        try:
            return F.gradient(x)
        except gs.KinkError:
            return F.gradient(x + 1e-12 * np.random.default_rng(seed).standard_normal(x.size))

    res = scipy_minimize(F.value, x0, jac=gradient, method="BFGS")
    return float(res.fun), res.nfev + res.njev, False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", nargs="+", type=int, default=[2, 3, 4, 5, 6, 7, 8, 9, 10])
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="0 is the usual start")
    parser.add_argument("--skip", nargs="*", default=[])
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.starts)
    warnings.simplefilter("ignore")
    runs: dict[str, Any] = {"auto": auto(True), "auto without leaps": auto(False), "BFGS": bfgs}
    for title, function in FUNCTIONS.items():
        for d in options.dims:
            F = function(d)
            for name, run in runs.items():
                if name in options.skip:
                    continue
                begin = time.process_time()
                found = [run(F, start(d, seed), seed) for seed in seeds]
                low = [sum(f <= limit for f, _, _ in found) for limit in (1e-4, 1e-8)]
                print(
                    f"{title}, d = {d}, {name}: {low[0]} of {len(found)} below 1e-4, {low[1]} "
                    f"below 1e-8, median calls {median(c for _, c, _ in found):g}, "
                    f"{sum(r for *_, r in found)} refused, {time.process_time() - begin:.1f} s",
                    flush=True,
                )


if __name__ == "__main__":
    main()
