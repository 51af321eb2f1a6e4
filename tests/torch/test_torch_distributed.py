"""Two processes under torchrun: the same trajectory, the same certificate, and a loud alarm."""

from __future__ import annotations

import json
import os
import runpy
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "train_distributed.py"
WORKER = Path(__file__).with_name("distributed_worker.py")
SHARDED = Path(__file__).with_name("sharded_worker.py")


def torchrun(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "--master-addr", "127.0.0.1", "--master-port", str(port), str(script), *arguments,
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["psingd", "adam-o2nc"])
def test_example_trains_and_certifies_like_one_process(
    optimizer: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    common = ["--steps", "40", "--samples", "240", "--max-calls", "20", "--optimizer", optimizer]
    many, one = tmp_path / "many.json", tmp_path / "one.json"
    finished = torchrun(EXAMPLE, *common, "--out", str(many))
    assert finished.returncode == 0, finished.stderr
    monkeypatch.setattr(sys, "argv", [str(EXAMPLE), *common, "--out", str(one)])
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    runpy.run_path(str(EXAMPLE), run_name="__main__")

    distributed, single = json.loads(many.read_text()), json.loads(one.read_text())
    np.testing.assert_allclose(distributed["losses"], single["losses"], rtol=0, atol=1e-12)
    np.testing.assert_allclose(distributed["x"], single["x"], rtol=0, atol=1e-12)
    assert distributed["losses"][-1] < distributed["losses"][0]
    assert abs(distributed["eps"] - single["eps"]) <= 1e-12
    assert distributed["meta"]["samples"] == single["meta"]["samples"] == 240
    assert distributed["meta"]["processes"] == 2


@pytest.mark.slow
@pytest.mark.parametrize("worker", [WORKER, SHARDED], ids=lambda path: path.stem)
def test_workers_are_content(worker: Path) -> None:
    """Certificates agree, drift is reported; sharded models train, and are refused by certify."""
    finished = torchrun(worker)
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("all good") == 2
