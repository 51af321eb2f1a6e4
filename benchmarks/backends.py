"""The same 64 starts on every kind of worker, with a worker killed in the middle.

    python -m benchmarks.backends [sequential threading loky dask ray] [--starts 64]

Prints, for each backend, whether all answers are those of one worker to the last bit, how many
starts failed, and the seconds; leaves with 1 if they are not. Dask and Ray are local clusters of
two workers. One start kills its worker the first time, in processes that may be killed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from goldstein.parallel import MultiStart, multistart

STARTS, WORKERS = 64, 2

#: The start that kills its worker.
DEADLY = 5
BACKENDS = ("sequential", "threading", "loky", "dask", "ray")


def valleys(x: np.ndarray) -> float:
    """Four minimisers at (+-1, +-1) of different depths, with kinks along axes and valleys."""
    inner = np.abs(np.abs(x) - 1.0)
    return float(inner.sum() + 0.5 * inner.max() + 0.1 * x[0] + 0.03 * x[1])


def slope(x: np.ndarray) -> np.ndarray:
    """The gradient of `valleys`, almost everywhere."""
    inner = np.abs(np.abs(x) - 1.0)
    side = np.sign(np.abs(x) - 1.0) * np.sign(x)
    steep = np.zeros(2)
    steep[inner.argmax()] = 0.5
    return np.asarray(side * (1.0 + steep) + np.array([0.1, 0.03]))


def starts(count: int = STARTS) -> np.ndarray:
    """The first of 64 starts, the same every time."""
    return np.random.default_rng(3).uniform(-2.0, 2.0, (STARTS, 2))[:count]


class Deadly:
    """`valleys`, but the first to ask near one start kills its process, unless that is ours."""

    __name__ = "valleys"

    def __init__(self, marker: Path, near: np.ndarray) -> None:
        self.marker, self.near, self.home = marker, near, os.getpid()

    def __call__(self, x: np.ndarray) -> float:
        if np.array_equal(x, self.near) and os.getpid() != self.home and not self.marker.exists():
            self.marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return valleys(x)


@contextlib.contextmanager
def workers(backend: str) -> Iterator[None]:
    """Let joblib use this backend, on a cluster of this machine where it is one."""
    with contextlib.ExitStack() as stack:
        if backend == "dask":
            from distributed import Client, LocalCluster

            cluster = LocalCluster(
                n_workers=WORKERS, threads_per_worker=1, dashboard_address=None, silence_logs=50
            )
            stack.enter_context(cluster)
            stack.enter_context(Client(cluster))
        elif backend == "ray":
            os.environ.setdefault("RAY_AUTH_MODE", "disabled")  # a cluster of this process alone
            os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
            import ray
            from ray.util.joblib import register_ray

            ray.init(num_cpus=WORKERS, include_dashboard=False, log_to_driver=False)
            stack.callback(ray.shutdown)
            register_ray()
        name = "loky" if backend == "sequential" else backend
        count = 1 if backend == "sequential" else WORKERS
        stack.enter_context(joblib.parallel_config(backend=name, n_jobs=count))
        yield


def run(backend: str, fun: Any, count: int = STARTS) -> MultiStart:
    """The starts on one backend."""
    with workers(backend):
        return multistart(fun, starts(count), slope, eps=1e-4, delta=1e-4, rng=7)


def fingerprint(found: MultiStart) -> list[tuple[bytes, float, str, int]]:
    """Everything that must be equal, bit for bit."""
    return [
        (result.x.tobytes(), result.fun, result.certificate.digest, result.nfev + result.ngev)
        for result in found.results
        if result is not None
    ]


def main(chosen: list[str], count: int) -> int:
    """Compare the backends with one worker that nobody kills."""
    reference = run("sequential", valleys, count)
    print(reference, end="\n\n")
    good = len(fingerprint(reference)) == count
    print(f"{'backend':<12} {'equal':<6} {'failed':>6} {'killed':>7} {'points':>7} {'seconds':>8}")
    for backend in chosen or BACKENDS:
        with tempfile.TemporaryDirectory() as folder:
            marker = Path(folder) / "killed"
            begin = time.perf_counter()
            found = run(backend, Deadly(marker, starts()[DEADLY]), count)
            seconds = time.perf_counter() - begin
            equal = fingerprint(found) == fingerprint(reference)
            # What runs in this process cannot be killed.
            good = good and equal and marker.exists() == (backend in ("loky", "dask", "ray"))
            print(
                f"{backend:<12} {equal!s:<6} {len(found.failures):>6} {marker.exists()!s:>7} "
                f"{len(found.points):>7} {seconds:>8.1f}",
                flush=True,
            )
    return 0 if good else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("backends", nargs="*")
    parser.add_argument("--starts", type=int, default=STARTS)
    asked = parser.parse_args()
    sys.exit(main(asked.backends, asked.starts))
