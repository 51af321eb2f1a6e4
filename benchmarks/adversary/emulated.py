"""Certificates written and verified under other machines' arithmetic, in processes of their own.

    OPENBLAS_CORETYPE=Prescott python -m benchmarks.adversary.emulated write FOLDER 0:3 0:7
    OPENBLAS_CORETYPE=Haswell python -m benchmarks.adversary.emulated verify FOLDER 0:3 0:7

`write` runs honest searches, instance by instance (seed:index), and keeps the certificates of those
that succeed; `verify` reads them and prints one line each. Other kernels of BLAS and NumPy round
the user's own A @ x - b differently, and what cancels there is another number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import goldstein as gs
from benchmarks.adversary.ask import five

MACHINES: dict[str, dict[str, str]] = {
    "as it is": {},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "no AVX2": {"NPY_DISABLE_CPU_FEATURES": "X86_V3"},
}

Box = tuple[Callable[[Any], float], Callable[[Any], Any]]


def problem(seed: int, index: int) -> tuple[Box, Any, dict[str, Any], str]:
    """Return a function whose gradients cancel, a start, what is asked for, and words for it.

    No product of matrices makes the data: they are the same on every machine.
    """
    rng = np.random.default_rng([seed, index, 20])
    dim = int(10.0 ** rng.uniform(0.7, 2.3))
    rows = int(rng.integers(2, dim + 1)) if rng.random() < 0.7 else 2 * dim
    A = rng.standard_normal((rows, dim)) * (10.0 ** rng.uniform(-2, 2))
    b, weight = rng.standard_normal(rows), float(10.0 ** rng.uniform(-3, 0))
    kind = int(rng.choice([0, 1, 1, 2]))
    boxes: list[Box] = [
        (
            lambda x: float(0.5 * (A @ x - b) @ (A @ x - b) + weight * np.abs(x).sum()),
            lambda x: A.T @ (A @ x - b) + weight * np.sign(x),
        ),
        (
            lambda x: float(0.5 * (A @ x - b) @ (A @ x - b)),
            lambda x: A.T @ (A @ x - b),
        ),
        (
            lambda x: float(np.abs(A @ x - b).sum() + weight * 0.5 * x @ x),
            lambda x: A.T @ np.sign(A @ x - b) + weight * x,
        ),
    ]
    ask = {
        "eps": float(10.0 ** rng.uniform(-6, -2)), "delta": float(10.0 ** rng.uniform(-6, -2)),
        "rng": 0, "max_calls": 600,
    }  # fmt: skip
    words = f"{['lasso', 'least squares', 'least deviations'][kind]}, {rows} x {dim}, {ask}"
    return boxes[kind], np.zeros(dim), ask, words


def _write(folder: Path, seed: int, index: int) -> None:
    (fun, jac), x0, ask, _ = problem(seed, index)
    try:
        result = gs.minimize(fun, x0, jac, **ask)
    except gs.GoldsteinError:
        return
    if result.success:
        result.certificate.save(folder / f"{seed}-{index}.cert")


def _verify(folder: Path, seed: int, index: int) -> dict[str, Any] | None:
    path = folder / f"{seed}-{index}.cert"
    if not path.exists():
        return None
    (fun, jac), _, _, _ = problem(seed, index)
    claim = gs.load_certificate(path)
    accepted, asked, label = five(claim, fun, jac)
    words = f"{claim.summary()}, {accepted} of {asked} seeds verify"
    return {"seed": seed, "index": index, "all": accepted == asked, "label": label, "said": words}


def elsewhere(
    machine: str, deed: str, folder: Path, instances: Sequence[tuple[int, int]]
) -> list[dict[str, Any]]:
    """Write or verify certificates in a process that computes as another machine does."""
    names = [f"{seed}:{index}" for seed, index in instances]
    command = [sys.executable, "-m", "benchmarks.adversary.emulated", deed, str(folder), *names]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", **MACHINES[machine]}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{machine}, {deed}: {done.stderr[-2000:]}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def main(deed: str, folder: str, *names: str) -> None:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for name in names:
            seed, index = map(int, name.split(":"))
            if deed == "write":
                _write(Path(folder), seed, index)
            elif (found := _verify(Path(folder), seed, index)) is not None:
                print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
