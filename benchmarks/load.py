"""Many small runs in one process: memory, files, threads and processes must not grow.

python -m benchmarks.load --runs 10000
"""

from __future__ import annotations

import argparse
import gc
import os
import sys
import threading
import time
from pathlib import Path

import numpy as np

import goldstein as gs


def f(x: np.ndarray) -> float:
    return float(np.abs(x).sum() + abs(x[0] - 2 * x[1]))


def slope(x: np.ndarray) -> np.ndarray:
    s = np.sign(x[0] - 2 * x[1])
    return np.sign(x) + np.array([s, -2 * s, *[0.0] * (x.size - 2)])


def run(number: int) -> bool:
    """One run of one of several kinds."""
    x0 = np.linspace(1.0, 2.0, 2 + number % 4)
    method = ("auto", "auto", "bundle")[number % 3]
    limits = {"bounds": [(-3, 3)] * x0.size} if number % 10 == 0 else {}
    found = gs.minimize(f, x0, slope, eps=0.05, delta=0.05, rng=number, method=method, **limits)
    return found.success


def memory() -> int:
    """Bytes of this process that are in memory."""
    gc.collect()
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def kept() -> tuple[int, int, int]:
    """Open files, threads, child processes."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=10_000)
    asked = parser.parse_args(arguments)
    warm = asked.runs // 10
    good = sum(run(k) for k in range(warm))
    first, things, begin = memory(), kept(), time.process_time()
    good += sum(run(k) for k in range(warm, asked.runs))
    last = memory()
    growth = (last - first) / first
    print(f"{asked.runs} runs, {good} verified, {time.process_time() - begin:.0f} s of processor")
    print(f"memory {first / 2**20:.1f} MiB after {warm} runs, {last / 2**20:.1f} MiB at the end: "
          f"{growth:+.2%}")  # fmt: skip
    print(f"files, threads, children: {things} then {kept()}")
    return 0 if growth <= 0.05 and kept() == things and good == asked.runs else 1


if __name__ == "__main__":
    sys.exit(main())
