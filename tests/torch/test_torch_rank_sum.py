"""Models whose rows are spread over the processes of torchrun."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKER = Path(__file__).with_name("rank_sum_worker.py")


@pytest.mark.slow
def test_two_processes_fit_networks_and_the_machine_like_one() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [
        sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2",
        "--master-addr", "127.0.0.1", "--master-port", str(port), str(WORKER),
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT / "src")}
    finished = subprocess.run(
        command, capture_output=True, text=True, timeout=240, env=environment, check=False
    )
    assert finished.returncode == 0, finished.stderr
    assert finished.stdout.count("all good") == 2
