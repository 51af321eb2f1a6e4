"""Do the results hold where no constant was chosen? The suite turned and shifted at random.

    python -m benchmarks.rotated --seed 12345

Every locally Lipschitz problem of the public suite with d <= 60 is rotated and shifted by the seed
and solved as it is and turned, with the same draws.
"""

from __future__ import annotations

import argparse
import math
import warnings

import numpy as np

import goldstein as gs

LEVELS = (1e-2, 1e-3, 1e-4)


def calls(problem: gs.problems.Problem, level: float, seed: int) -> float:
    """Calls to a certificate, infinite without one."""
    res = gs.minimize(
        problem, problem.x0, eps=level, delta=level, rng=seed, max_calls=50_000, max_time=30.0
    )
    return float(res.nfev + res.ngev) if res.success else math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=12345, help="of rotation, shift and draws")
    seed = parser.parse_args().seed
    warnings.simplefilter("ignore", gs.PrecisionWarning)
    plain = [
        p for p in gs.problems.suite("public") if p.bounded and p.locally_lipschitz and p.dim <= 60
    ]
    turned = [gs.problems.rotated(p, seed) for p in plain]
    for level in LEVELS:
        for title, problems in (("as they are", plain), ("turned", turned)):
            spent = np.array([calls(p, level, seed) for p in problems])
            print(
                f"{level:g} {title:12s} certified {np.isfinite(spent).sum()} of {spent.size}, "
                f"median {np.median(spent):g} calls, upper quartile {np.quantile(spent, 0.75):g}",
                flush=True,
            )


if __name__ == "__main__":
    main()
