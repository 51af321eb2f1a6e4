"""What compiling the whole search saves: `auto` in machine code against `auto` in Python.

    python benchmarks/compiled.py            # d = 10, 100, 500
    python benchmarks/compiled.py 10 50      # other dimensions

Both run the same functions, compiled by Numba, with the same requests and seeds. Times are CPU
times of a whole run, certificate included, median over the seeds; compilation is timed apart.
"Own" time per call is the time of a run without that of the user's function, which is measured
alone.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import goldstein as gs

#: (eps, delta), and the number of seeds; the first of each from the dimension LARGE on, where runs
#: are also cut short: Python would take minutes.
LEVELS, SEEDS, LARGE = ((1e-2, 1e-2), (1e-4, 1e-4)), 3, 500
MAX_CALLS, MAX_CALLS_LARGE = 20_000, 2_000

clock = time.process_time


@numba.njit
def chained_lq(x: Any) -> Any:
    total = 0.0
    for i in range(x.size - 1):
        a, b = x[i], x[i + 1]
        total += max(-a - b, -a - b + a * a + b * b - 1.0)
    return total


@numba.njit
def chained_lq_gradient(x: Any) -> Any:
    g = np.zeros(x.size)
    for i in range(x.size - 1):
        a, b = x[i], x[i + 1]
        curved = a * a + b * b > 1.0
        g[i] += 2.0 * a * curved - 1.0
        g[i + 1] += 2.0 * b * curved - 1.0
    return g


@numba.njit
def chained_cb3(x: Any) -> Any:
    total = 0.0
    for i in range(x.size - 1):
        a, b = x[i], x[i + 1]
        total += max(a**4 + b * b, (2.0 - a) ** 2 + (2.0 - b) ** 2, 2.0 * np.exp(b - a))
    return total


@numba.njit
def chained_cb3_gradient(x: Any) -> Any:
    g = np.zeros(x.size)
    for i in range(x.size - 1):
        a, b = x[i], x[i + 1]
        one, two, three = a**4 + b * b, (2.0 - a) ** 2 + (2.0 - b) ** 2, 2.0 * np.exp(b - a)
        if one >= two and one >= three:
            g[i] += 4.0 * a**3
            g[i + 1] += 2.0 * b
        elif two >= three:
            g[i] -= 2.0 * (2.0 - a)
            g[i + 1] -= 2.0 * (2.0 - b)
        else:
            g[i] -= three
            g[i + 1] += three
    return g


@numba.njit
def maxq(x: Any) -> Any:
    top = 0.0
    for i in range(x.size):
        top = max(top, x[i] * x[i])
    return top


@numba.njit
def maxq_gradient(x: Any) -> Any:
    top = 0
    for i in range(x.size):
        if abs(x[i]) > abs(x[top]):
            top = i
    g = np.zeros(x.size)
    g[top] = 2.0 * x[top]
    return g


@numba.njit
def pieces(x: Any, slopes: Any, levels: Any) -> Any:
    return np.max(np.dot(slopes, x) + levels)


@numba.njit
def pieces_gradient(x: Any, slopes: Any, levels: Any) -> Any:
    return slopes[np.argmax(np.dot(slopes, x) + levels)]


def affine_pieces(dim: int) -> tuple[Any, ...]:
    """A maximum of 2 d random affine functions, bounded below."""
    rng = np.random.default_rng(0)
    slopes = rng.standard_normal((2 * dim, dim))
    slopes -= slopes.mean(axis=0)
    return slopes, rng.standard_normal(2 * dim)


def far_apart(dim: int) -> np.ndarray:
    x0 = np.arange(1.0, dim + 1.0)
    x0[dim // 2 :] *= -1.0
    return x0


PROBLEMS: dict[str, tuple[Any, Any, Callable[[int], np.ndarray], Callable[[int], Any]]] = {
    "chained LQ": (chained_lq, chained_lq_gradient, lambda d: np.full(d, -0.5), lambda d: ()),
    "chained CB3": (chained_cb3, chained_cb3_gradient, lambda d: np.full(d, 2.0), lambda d: ()),
    "maxq": (maxq, maxq_gradient, far_apart, lambda d: ()),
    "affine": (pieces, pieces_gradient, np.ones, affine_pieces),
}


def run(name: str, dim: int, level: tuple[float, float], compiled: bool) -> tuple[float, ...]:
    """Return (certified, calls, seconds) as medians over the seeds."""
    fun, jac, start, data = PROBLEMS[name]
    rows = []
    args, x0 = data(dim), start(dim)
    for seed in range(SEEDS if dim < LARGE else 1):
        begin = clock()
        res = gs.minimize(
            fun, x0, jac, args=args, eps=level[0], delta=level[1], rng=seed,
            max_calls=MAX_CALLS if dim < LARGE else MAX_CALLS_LARGE, options={"compiled": compiled},
        )  # fmt: skip
        rows.append((res.success, res.nfev + res.ngev, clock() - begin))
    return tuple(float(np.median(column)) for column in zip(*rows))


def seconds_per_answer(name: str, dim: int) -> float:
    """Mean time of a value and of a gradient in compiled code."""
    fun, jac, start, data = PROBLEMS[name]

    @numba.njit
    def ask(x: Any, args: Any, times: int) -> Any:
        total = 0.0
        for _ in range(times):
            total += fun(x, *args) + jac(x, *args)[0]
        return total

    x0, args, times = start(dim), data(dim), 200
    ask(x0, args, 1)
    begin = clock()
    ask(x0, args, times)
    return (clock() - begin) / (2 * times)


def first_calls() -> None:
    """Time the first run of a process, and the first with another function."""
    for label, (fun, jac, start, data) in list(PROBLEMS.items())[:2]:
        begin = clock()
        gs.minimize(
            fun, start(5), jac, args=data(5), eps=1e-2, delta=1e-2, options={"compiled": True}
        )
        print(f"first run with {label}: {clock() - begin:.1f} s")


def main() -> None:
    dims = [int(text) for text in sys.argv[1:]] or [10, 100, 500]
    first_calls()
    heads = ["problem", "d", "eps", "certified", "calls", "ms", "own us/call", "times faster"]
    print("| " + " | ".join(heads) + " |\n|" + "---|" * len(heads))
    for name in PROBLEMS:
        for dim in dims:
            answer = seconds_per_answer(name, dim)
            for level in LEVELS[: None if dim < LARGE else 1]:
                run(name, dim, level, True)
                fast, slow = (run(name, dim, level, compiled) for compiled in (True, False))
                own = [1e6 * (t / calls - answer) for _, calls, t in (fast, slow)]
                print(
                    f"| {name} | {dim} | {level[0]:g} | {fast[0]:.0f}, {slow[0]:.0f} "
                    f"| {fast[1]:.0f}, {slow[1]:.0f} | {1e3 * fast[2]:.1f}, {1e3 * slow[2]:.0f} "
                    f"| {own[0]:.1f}, {own[1]:.0f} | {slow[2] / fast[2]:.0f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
