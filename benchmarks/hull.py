"""Microseconds of the hull problem, cold and after one new gradient, against `scipy.optimize.nnls`.

Run: ``python -m benchmarks.hull``
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from scipy.optimize import nnls

from goldstein.numerics.hull import Hull, min_norm_weights

SIZES = ((5, 10), (10, 10), (11, 10), (30, 50), (30, 1000), (50, 100), (200, 1000), (30, 100_000))


def microseconds(job: Callable[[], object], budget: float = 0.3) -> float:
    """Typical undisturbed time of a call within a time budget."""
    times = []
    end = time.process_time() + budget
    while len(times) < 5 or (time.process_time() < end and len(times) < 2000):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return typical(times)


def typical(seconds: list[float]) -> float:
    """A low quantile, in microseconds: other processes only ever make a call slower."""
    return 1e6 * float(np.quantile(seconds, 0.2))


def instance(count: int, dim: int, seed: int) -> np.ndarray:
    """Gradients with a common part, so that the answer is neither zero nor one row."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, dim)) + 0.5 * rng.standard_normal(dim) / np.sqrt(dim)


def growing(count: int, dim: int) -> float:
    """Add and solve once per new gradient, as a solver does after a failed descent step.

    Each newcomer has a small product with the shortest vector so far, so that it always enters.
    """
    rng = np.random.default_rng(1)
    times: list[float] = []
    for _ in range(40 if dim < 10_000 else 3):
        draft, hull = Hull(dim, count), Hull(dim, count)
        draft.add(rng.standard_normal(dim))
        while draft.size < count:
            point = draft.solve()[1]
            row = rng.standard_normal(dim)
            draft.add(row + (0.3 - float(row @ point) / float(point @ point)) * point)
        start = time.process_time()
        for row in draft.gradients:
            hull.add(row)
            hull.solve()
        times.append((time.process_time() - start) / count)
    return typical(times)


def by_nnls(rows: np.ndarray) -> np.ndarray:
    scale = np.abs(rows).max()
    system = np.vstack([rows.T / scale, np.ones(len(rows))])
    target = np.zeros(len(system))
    target[-1] = 1.0
    weights = nnls(system, target)[0]
    return weights / weights.sum()


def main() -> None:
    print("k x d            cold    add+solve     one-shot        nnls   nnls/add+solve   gap")
    for count, dim in SIZES:
        rows = instance(count, dim, 0)
        hull = Hull(dim, count)

        def cold(rows: np.ndarray = rows, hull: Hull = hull) -> None:
            hull.clear()
            for row in rows:
                hull.add(row)
            hull.solve()

        add_solve = growing(count, dim)
        cold_time = microseconds(cold)
        one_shot = microseconds(lambda rows=rows: min_norm_weights(rows))
        reference = microseconds(lambda rows=rows: by_nnls(rows))
        exact = np.linalg.norm(by_nnls(rows) @ rows)
        gap = np.linalg.norm(hull.point) / exact - 1.0
        print(
            f"{count:4d} x {dim:<7d} {cold_time:9.1f} {add_solve:12.1f} {one_shot:12.1f} "
            f"{reference:11.1f} {reference / add_solve:12.1f} {gap:15.1e}"
        )


if __name__ == "__main__":
    main()
