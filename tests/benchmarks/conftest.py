"""Hand-made runs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from benchmarks.results import Run

MakeRun = Callable[..., Run]


@pytest.fixture
def make_run() -> MakeRun:
    """Return a maker of runs: a certified run of the default solver, save what is said."""

    def make(**said: Any) -> Run:
        usual: dict[str, Any] = {
            "problem": "p-2", "dim": 2, "convex": True, "bounded": True, "locally_lipschitz": True,
            "method": "auto", "group": "ours", "level": 1e-3, "seed": 0, "status": "VERIFIED",
            "certified": True, "certified_eps": 5e-4, "values": 30, "gradients": 20,
            "own_cpu": 0.25, "oracle_cpu": 0.25, "wall": 0.5, "certify_values": 3,
            "certify_gradients": 4, "certify_ok": True, "start_fun": 10.0, "fun": 0.0,
            "best_value": 0.0, "progress": [],
        }  # fmt: skip
        return Run(**(usual | said))

    return make
