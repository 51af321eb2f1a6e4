"""Minima that are written on one machine verify on another, which adds in another order."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np

import goldstein as gs

AGAIN = """
import sys
import goldstein as gs
from test_minimum_machines import problem
for k, path in enumerate(sys.argv[1:]):
    assert gs.load_certificate(path).verify(problem(k)[0]).ok, k
"""


def problem(seed: int) -> tuple[gs.Expression, np.ndarray]:
    rng = np.random.default_rng(seed)
    A, b, x = rng.standard_normal((40, 6)), rng.standard_normal(40), gs.Variable(6)
    return gs.sum(abs(A @ x - b)) / 40 + 0.05 * gs.sum_squares(x), rng.standard_normal(6)


def test_room_for_other_machines(tmp_path: Path) -> None:
    paths = []
    for seed in range(3):
        F, start = problem(seed)
        found = gs.minimize(F, start, eps=1e-4, delta=1e-4, stationarity="minimum", rng=0)
        assert found.success
        found.certificate.save(tmp_path / f"{seed}.gsc")
        paths += sorted(map(str, tmp_path.glob(f"{seed}.*")))
    path = os.pathsep.join([str(Path(__file__).parent), *sys.path])
    machine = {**os.environ, "OPENBLAS_CORETYPE": "Prescott", "PYTHONPATH": path}
    subprocess.run([sys.executable, "-c", AGAIN, *paths], check=True, env=machine)
