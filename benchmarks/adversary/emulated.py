"""Certificates written and verified under other machines' arithmetic, in processes of their own.

    OPENBLAS_CORETYPE=Prescott python -m benchmarks.adversary.emulated write FOLDER 0:3 0:7
    OPENBLAS_CORETYPE=Haswell python -m benchmarks.adversary.emulated verify FOLDER 0:3 0:7

`write` makes honest runs, instance by instance (seed:index), and keeps the certificates of those
that succeed; `verify` reads them and prints one line each. Other kernels of BLAS and NumPy round
the user's own A @ x - b differently, and what cancels there is another number.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.adversary.ask import five
from benchmarks.adversary.runs import KINDS, Run, cancelling, drawn

import goldstein as gs

MACHINES: dict[str, dict[str, str]] = {
    "as it is": {},
    "Prescott": {"OPENBLAS_CORETYPE": "Prescott"},
    "Nehalem": {"OPENBLAS_CORETYPE": "Nehalem"},
    "Haswell": {"OPENBLAS_CORETYPE": "Haswell"},
    "Zen": {"OPENBLAS_CORETYPE": "Zen"},
    "no AVX2": {"NPY_DISABLE_CPU_FEATURES": "X86_V3"},
}

#: Where products of matrices cancel, machines differ.
SHARES = {**KINDS, cancelling: sum(KINDS.values())}


def instance(seed: int, index: int) -> tuple[Run, str]:
    return drawn(np.random.default_rng([seed, index, 20]), SHARES)


def _write(folder: Path, seed: int, index: int) -> None:
    try:
        result = instance(seed, index)[0].call()
    except gs.GoldsteinError:
        return
    if getattr(result, "success", True):
        certificate = getattr(result, "certificate", result)
        certificate.save(folder / f"{seed}-{index}.cert")


def _verify(folder: Path, seed: int, index: int) -> dict[str, Any] | None:
    path = folder / f"{seed}-{index}.cert"
    if not path.exists():
        return None
    run, _ = instance(seed, index)
    claim = gs.load_certificate(path)
    accepted, asked, label = five(claim, *run.function, **run.limits)
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
