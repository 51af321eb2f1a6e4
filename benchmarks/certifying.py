"""Run `python -m benchmarks.certifying 1e-3 1e-6`: does `certify` find what `auto` knows?

Every built-in problem with at most 60 variables is minimised at eps = delta = level (one seed, at
most 20,000 calls and 8 s), and the point that `auto` certifies is given to `certify`, which knows
nothing but the function: once with `eps=level` (its bound must come below that) and once with
`eps=0` (it should come near the bound that `auto` proved, or fall below it). Each certificate is
verified with a seed that nobody can foresee.
"""

from __future__ import annotations

import sys
import warnings
from statistics import median

import goldstein as gs
from goldstein.oracles import CountedOracle

#: A bound is as good as another one within this factor, or below this part of the level.
ALIKE, SMALL = 10.0, 1e-3


def main(levels: list[float]) -> None:
    warnings.simplefilter("ignore", gs.PrecisionWarning)
    for level in levels:
        missed, worse, refused, count = 0, 0, 0, 0
        calls: dict[float, list[int]] = {level: [], 0.0: []}
        for problem in gs.problems.suite():
            if problem.dim > 60:
                continue
            res = gs.minimize(
                problem, problem.x0, eps=level, delta=level, rng=0, max_calls=20_000, max_time=8
            )
            if not res.success:
                continue
            count += 1
            known = res.certificate.eps
            for eps in (level, 0.0):
                counted = CountedOracle(problem)
                found = gs.certify(counted, res.x, delta=level, eps=eps, rng=1)
                calls[eps].append(counted.calls)
                goal = level if eps else max(ALIKE * known, SMALL * level)
                if found.eps > goal:
                    missed, worse = (missed + 1, worse) if eps else (missed, worse + 1)
                    print(
                        f"  {problem.name} (d = {problem.dim}), eps = {eps:g}: "
                        f"{found.eps:.2g} with {counted.calls} calls, auto proved {known:.2g}",
                        flush=True,
                    )
                if not found.verify(problem):
                    refused += 1
                    print(f"  {problem.name}, eps = {eps:g}: REFUSED by verify", flush=True)
        print(
            f"{level:g}: {count} points; eps = {level:g}: {missed} missed, median calls "
            f"{median(calls[level]):g}, mean {sum(calls[level]) / count:.0f}; eps = 0: {worse} "
            f"worse than auto, median calls {median(calls[0.0]):g}, mean "
            f"{sum(calls[0.0]) / count:.0f}; {refused} refused by verify",
            flush=True,
        )


if __name__ == "__main__":
    main([float(level) for level in sys.argv[1:]] or [1e-3, 1e-6])
