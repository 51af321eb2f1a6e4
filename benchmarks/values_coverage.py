"""How often are claims from values wrong? A KKT claim, drawn again and again.

    python -m benchmarks.values_coverage [trials]

f, two constraints and a bound in two variables, with kinks through every box, so that samples vary
as much as they can; the mean of the samples is known from a million of them. A claim misses where
its bound is below the length of this mean, less what normals of the bound take. Printed are the
misses at 95 % for different numbers of samples: none may exceed 5 %.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.optimize import NonlinearConstraint

from goldstein.certificates.values import Multiples, OfMultiples, left_by_normals, upper_bound
from goldstein.checker.constrained.limits import Box
from goldstein.oracles.differences import Stencil
from goldstein.oracles.problem import as_system

CONFIDENCE = 0.95
BOX = Box(np.array([-1.0, 0.0]), np.array([1.0, 1.0]))
X = np.zeros(2)


def objective(points: np.ndarray) -> np.ndarray:
    a, b = points.T
    return np.abs(a - b) + np.maximum(a + 2 * b, 0.0) - 0.7 * np.abs(b - 0.03) + 0.4 * a


def constraints(x: np.ndarray) -> np.ndarray:
    a, b = x
    return np.array([max(a, 0.3 * b) + 0.2 * abs(a + b), abs(a - 0.01) - b])


def source() -> OfMultiples:
    """Two boxes, in which f and both constraints count."""
    stencil = Stencil(BOX.lower, BOX.upper, 0, central=True)
    system = as_system(NonlinearConstraint(constraints, -np.inf, 0.0), X, stencil=stencil)
    multiples = Multiples(
        points=np.array([[0.02, 0.06], [-0.03, 0.05]]), weights=np.array([0.7, 0.3]),
        widths=np.full(2, 0.05), constraint_weights=np.array([0.4, 0.3, 0.5]),
        constraint_index=np.array([0, 0, 1]), point_index=np.array([0, 1, 1]),
    )  # fmt: skip
    return OfMultiples(objective, multiples, system)


def misses(trials: int, samples: int, seed: int, known: int = 20_000) -> float:
    """Return the part of claims whose bound is too small."""
    rng, of = np.random.default_rng(seed), source()
    whole = of.draw(known, rng)
    mean = whole.vectors.mean(axis=0)
    truth = float(np.linalg.norm(left_by_normals(mean, mean, BOX, X)))
    # The slopes are believed; here they are known.
    slopes = 1.0001 * whole.steepest
    draws = of.draw(trials * samples, rng).vectors.reshape(trials, samples, 2)
    bounds = [upper_bound(one, slopes, BOX, X, 1.0 - CONFIDENCE) for one in draws]
    return float((np.array(bounds) < truth).mean())


def main(trials: int) -> int:
    worst = 0.0
    for samples in (24, 64, 200):
        found = misses(trials, samples, samples, known=100_000)
        worst = max(worst, found)
        print(f"{trials} claims of {samples} samples at {CONFIDENCE:.0%}: {found:.2%} missed")
    return 0 if worst <= 1.0 - CONFIDENCE else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000))
