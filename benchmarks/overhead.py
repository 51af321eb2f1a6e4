"""What the library costs per inner iteration of `bundle`, on an objective that costs nothing.

    python benchmarks/overhead.py            # both targets
    python benchmarks/overhead.py --profile  # where the time goes at d = 10

An inner iteration is one failed descent test: a value, a random point of the cone, a gradient, the
shortest vector of the hull. The objective returns stored answers, so all time is overhead.

d = 10: the target is 40 microseconds per iteration.

d = 10^6: the target is twice the memory traffic of the vector operations, over the first 40
iterations of a round, from an empty bundle to k = 40 gradients. What counts as traffic, in vectors
of d float64 read or written: the list `TRAFFIC`. Its price per vector is measured on this machine
by a triad (y += a x: two reads, one write) over arrays as large as the bundle, so that no cache
holds them. Drawing the d Gaussians is arithmetic, not traffic: their time, measured alone, is
printed and taken off before the comparison.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from typing import Any

import numpy as np
from scipy.linalg.blas import daxpy

from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle, Oracle
from goldstein.solvers import BundlePINGD, Request

#: CPU time of this process, so that a busy machine does not blur the picture.
clock = time.process_time

#: Vectors read or written in one inner iteration; k is the number of gradients in the bundle.
TRAFFIC = {
    "norm of m": 1,
    "trial point x - t m: two passes": 2 + 3,
    "copy of the trial point for the user": 2,
    "norm of x (room for rounding)": 1,
    "Gaussian vector: write": 1,
    "its norm, its product with m": 1 + 2,
    "scale it, subtract the part along m, add x": 2 + 3 + 3,
    "copy of y for the user": 2,
    "gradient: copy, finite?, norm": 2 + 1 + 1,
    "store the gradient as a row": 2,
    "its products with k rows": "k + 1",
    "m = weights times k rows": "k + 1",
}


class Stored(Oracle):
    """Hands out stored gradients: descent always fails, and the bundle always has work."""

    def __init__(self, dim: int, count: int) -> None:
        rng = np.random.default_rng(0)
        self.gradients = rng.standard_normal((count, dim))
        self.gradients[:, 0] += 2.0 * np.sqrt(dim)  # the hull stays away from 0
        self.asked = 0

    def value(self, x: np.ndarray) -> float:
        return 0.0

    def gradient(self, y: np.ndarray) -> np.ndarray:
        self.asked += 1
        return self.gradients[self.asked % len(self.gradients)]


def small_iteration(dim: int = 10, iterations: int = 5000) -> float:
    """Seconds per inner iteration with a full bundle, best of five."""
    best = np.inf
    for _ in range(5):
        solver, state, oracle, request = prepared(dim, 64)
        for _ in range(2 * dim):
            solver.step(oracle, state, request)
        begin = clock()
        for _ in range(iterations):
            solver.step(oracle, state, request)
        best = min(best, (clock() - begin) / iterations)
    return best


def large_round(dim: int, iterations: int) -> float:
    """Seconds per inner iteration at the beginning of a round, best of three."""
    best = np.inf
    for _ in range(3):
        solver, state, oracle, request = prepared(dim, 8)
        begin = clock()
        for _ in range(iterations):
            solver.step(oracle, state, request)
        best = min(best, (clock() - begin) / iterations)
    return best


def prepared(dim: int, count: int) -> tuple[BundlePINGD, Any, CountedOracle, Request]:
    oracle = CountedOracle(Stored(dim, count))
    request = Request(eps=1e-9, delta=0.1, seed=1)
    solver = BundlePINGD()
    return solver, solver.start(oracle, np.zeros(dim), request), oracle, request


def seconds_per_vector(dim: int, rows: int = 40) -> float:
    """Price of moving one vector of d float64 when nothing is in a cache."""
    left, right = np.zeros((rows, dim)), np.ones((rows, dim))
    best = np.inf
    for _ in range(3):
        begin = clock()
        for y, x in zip(left, right):
            daxpy(x, y, a=1.5)
        best = min(best, (clock() - begin) / (3 * rows))
    return best


def seconds_of_gaussians(dim: int) -> float:
    rng = stream(1, 1, "overhead")
    best = np.inf
    for _ in range(3):
        begin = clock()
        rng.standard_normal(dim)
        best = min(best, clock() - begin)
    return best


def vectors_moved(iterations: int) -> float:
    """Average over the iterations, in which k runs from 1 to their number."""
    per_step = [
        sum(eval(str(v), {"k": k}) for v in TRAFFIC.values()) for k in range(1, iterations + 1)
    ]
    return float(np.mean(per_step))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--profile", action="store_true")
    if parser.parse_args().profile:
        profile = cProfile.Profile()
        profile.runcall(small_iteration)
        pstats.Stats(profile).sort_stats("tottime").print_stats(18)
        return
    print(f"d = 10     {small_iteration() * 1e6:6.1f} us per inner iteration (target 40)")
    dim, iterations = 10**6, 40
    measured, gaussians = large_round(dim, iterations), seconds_of_gaussians(dim)
    price, moved = seconds_per_vector(dim), vectors_moved(iterations)
    ratio = (measured - gaussians) / (moved * price)
    print(
        f"d = 10^6   {measured * 1e3:6.1f} ms per inner iteration, "
        f"{gaussians * 1e3:.1f} of them for drawing Gaussians;\n"
        f"           the rest is {ratio:.2f} times its traffic of {moved:.0f} vectors "
        f"at {price * 1e3:.2f} ms (target 2)"
    )


if __name__ == "__main__":
    main()
