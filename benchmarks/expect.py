"""Run `python -m benchmarks.expect 1e-3`: what `auto` certifies of the built-in problems.

Problems with at most 60 variables, one seed, at most 20,000 calls and 8 s each; every certificate
is verified again with a seed that nobody can foresee. docs/auto.md quotes the last line.
"""

from __future__ import annotations

import sys
from statistics import median

import goldstein as gs


def main(level: float) -> None:
    calls, refused, count = [], 0, 0
    for problem in gs.problems.suite():
        if problem.dim > 60:
            continue
        count += 1
        res = gs.minimize(
            problem, problem.x0, eps=level, delta=level, rng=0, max_calls=20_000, max_time=8
        )
        if not res.success:
            print(f"{problem.name}: {res.status.name}", flush=True)
            continue
        calls.append(res.nfev + res.ngev)
        if not res.certificate.verify(problem):
            refused += 1
            print(f"{problem.name}: certificate refused", flush=True)
    print(
        f"{level:g}: {len(calls)} of {count} certified, {refused} refused by verify, "
        f"median calls {median(calls):g}"
    )


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 1e-3)
