"""Ours against the best peer, problem by problem, on both halves of the public suite.

Run: ``python -m benchmarks.halves`` on results that `benchmarks.run` left behind (at one level for
ours; peers may be missing). Constants are chosen on the first half and reported on the second; the
halves are fixed by the names of the problems, so nobody chooses them.
"""

from __future__ import annotations

import argparse
import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from benchmarks import results
from benchmarks.acceptance import best_known, geometric_mean, in_class
from benchmarks.results import Run

OURS = "auto"
PEERS = ("nonopt", "lmbm", "pygranso", "scipy-bfgs", "scipy-lbfgsb", "nlopt-lbfgs")
#: A problem is solved when this part of the way down is left.
ACCURACIES = (1e-2, 1e-4, 1e-6)
#: More than this many times the best peer's calls is a loss to be explained.
LOST = 1.5
#: The last f is as low as a peer's when it is above it by this part of the whole fall at most.
CLOSE = 1e-3

#: Values, gradients, own and oracle CPU seconds when a value was reached first.
Moment = tuple[int, int, float, float, float]
Cost = Callable[[Moment], float]
COSTS: dict[str, Cost] = {
    "values + gradients": lambda m: m[0] + m[1],
    "gradients": lambda m: max(m[1], 1),
    "CPU": lambda m: m[2] + m[3],
}


def half_of(problem: str) -> int:
    """0 for the half on which constants are chosen, 1 for the one that is reported."""
    name = problem.rsplit("-", 1)[0]
    return zlib.crc32(name.encode()) % 2


@dataclass(frozen=True)
class Comparison:
    """What every method needed on one problem to come this close to the best value."""

    problem: str
    moments: dict[str, Moment | None]

    def ratio(self, ours: str, cost: Cost) -> tuple[float, str] | None:
        """Our cost over the best peer's, and who that is; None unless both get there."""
        mine = self.moments.get(ours)
        theirs = {name: cost(m) for name, m in self.moments.items() if name in PEERS and m}
        if mine is None or not theirs:
            return None
        best = min(theirs, key=theirs.__getitem__)
        return cost(mine) / theirs[best], best


def compare(runs: Sequence[Run], level: float, accuracy: float) -> list[Comparison]:
    """Look at the course of every method's run (at this level, where it depends on one)."""
    best = best_known(runs)
    table: dict[str, dict[str, Moment | None]] = {}
    for run in runs:
        if run.seed == 0 and run.level == level and in_class(run):
            goal = best[run.problem] + accuracy * (run.start_fun - best[run.problem])
            table.setdefault(run.problem, {})[run.method] = run.first_below(goal)
    return [Comparison(problem, table[problem]) for problem in sorted(table)]


def report(runs: Sequence[Run], ours: str = OURS, level: float = 1e-6) -> str:
    """Both halves: how many are solved, what that costs, and where a peer is much cheaper."""
    lines = []
    for half, title in enumerate(("first half (constants are chosen here)", "second half")):
        part = [r for r in runs if half_of(r.problem) == half]
        for accuracy in ACCURACIES:
            lines += _section(compare(part, level, accuracy), ours, f"{title}, {accuracy:g}")
    return "\n".join([*lines, *final_values(runs, ours)])


def final_values(runs: Sequence[Run], ours: str = OURS) -> list[str]:
    """At every level: how often is our last f as low as the best peer's, but for this?"""
    best = best_known(runs)
    peers: dict[str, float] = {}
    for run in runs:
        if run.method in PEERS and not math.isnan(run.fun):
            peers[run.problem] = min(run.fun, peers.get(run.problem, math.inf))
    lines = []
    for level in sorted({r.level for r in runs if r.method == ours}, reverse=True):
        here = [r for r in runs if (r.method, r.level, r.seed) == (ours, level, 0) and in_class(r)]
        here = [r for r in here if r.problem in peers]
        room = {r.problem: CLOSE * (r.start_fun - best[r.problem]) for r in here}
        # Written so that a NaN is bad.
        bad = [r.problem for r in here if not r.fun - peers[r.problem] <= room[r.problem]]
        if here:
            share = 1.0 - len(bad) / len(here)
            calls = median(r.calls for r in here)
            lines.append(
                f"last f at {level:g} within {CLOSE:g} of the best peer's: {share:.0%} of "
                f"{len(here)} problems, median calls {calls:g}; higher: {', '.join(bad)}"
            )
    return lines


def _section(found: Sequence[Comparison], ours: str, title: str) -> list[str]:
    methods = sorted({m for c in found for m in c.moments if m == ours or m in PEERS})
    solved = {m: sum(c.moments.get(m) is not None for c in found) for m in methods}
    lines = [
        f"## {title}",
        f"solved of {len(found)}: " + ", ".join(f"{m} {solved[m]}" for m in methods),
    ]
    for name, cost in COSTS.items():
        ratios = [r[0] for c in found if (r := c.ratio(ours, cost))]
        if ratios:
            lines.append(f"{name}: {geometric_mean(ratios):.2f} ({len(ratios)} problems)")
    cost = COSTS["values + gradients"]
    lost = {c.problem: r for c in found if (r := c.ratio(ours, cost)) and r[0] > LOST}
    for problem, (ratio, peer) in sorted(lost.items(), key=lambda item: -item[1][0]):
        lines.append(f"  lost: {problem}, {ratio:.1f} times the calls of {peer}")
    peers_only = [
        c.problem
        for c in found
        if c.moments.get(ours) is None and any(c.moments.get(p) for p in PEERS)
    ]
    if peers_only:
        lines.append("  solved by a peer only: " + ", ".join(peers_only))
    return [*lines, ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("results"))
    parser.add_argument("--method", default=OURS)
    parser.add_argument("--level", type=float, default=1e-6, help="eps = delta of our runs")
    options = parser.parse_args()
    runs = results.load(sorted(options.out.glob("*.jsonl")))
    if not runs:
        raise SystemExit(f"No results in {options.out}: run `python -m benchmarks.run` first.")
    print(report(runs, options.method, options.level))


if __name__ == "__main__":
    main()
