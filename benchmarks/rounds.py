"""Run `python -m benchmarks.rounds`: how many rounds a run takes on 1, 2, 4 and 8 workers.

One gradient or value that is asked for alone is a round; k gradients that are asked for at once are
ceil(k / workers) rounds. The run is the same for any number of workers, so that it is counted once.
First `minimize`, then `certify` with eps = 0 at the point that was found.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import goldstein as gs
from goldstein.oracles import CountedOracle

WORKERS = (1, 2, 4, 8)
PROBLEMS = ("crescent", "maxq", "mxhilb", "chained_lq", "active_faces", "wong_1")


class Batches:
    """Like `map`; remembers how much was asked for at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, function: Callable[..., Any], items: list[Any]) -> Iterable[Any]:
        self.sizes.append(len(items))
        return map(function, items)

    def rounds(self, calls: int, workers: int) -> int:
        """Return the rounds of a run that made so many calls."""
        sizes = np.array(self.sizes, dtype=int)
        return calls - int((sizes - -(-sizes // workers)).sum())


def report(what: str, calls: int, batches: Batches) -> None:
    rounds = [batches.rounds(calls, workers) for workers in WORKERS]
    ratios = "  ".join(f"{n:6d} ({calls / n:4.2f})" for n in rounds)
    print(f"{what:32s} {calls:6d}  {ratios}", flush=True)


def main(names: list[str], level: float = 1e-3) -> None:
    heads = "  ".join(f"{f'{workers} workers':>13s}" for workers in WORKERS)
    print(f"{f'eps = delta = {level:g}':32s} {'calls':>6s}  {heads}")
    for name in names:
        problem = gs.problems.get(name)
        searched, certified, counted = Batches(), Batches(), CountedOracle(problem)
        res = gs.minimize(problem, problem.x0, eps=level, delta=level, rng=0, workers=searched)
        report(f"minimize {name} (d = {problem.dim})", res.nfev + res.ngev, searched)
        gs.certify(counted, res.x, delta=level, rng=1, workers=certified)
        report(f"certify  {name} (d = {problem.dim})", counted.calls, certified)


if __name__ == "__main__":
    main(sys.argv[1:] or list(PROBLEMS))
