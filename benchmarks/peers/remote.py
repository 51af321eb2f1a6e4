"""Competitors that live in `.venv-peers`: they compute there, the function is answered here."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import threading
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.answer import Answer
from benchmarks.recorder import OutOfBudget

PYTHON = Path(__file__).parents[2] / ".venv-peers" / "bin" / "python"
WORKER = Path(__file__).with_name("worker.py")


class PeerProcess:
    """One worker for many jobs, so that imports are paid for once."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            if not PYTHON.exists():
                raise SystemExit("No competitors here: run `sh benchmarks/peers/setup.sh` first.")
            self._process = subprocess.Popen(
                [PYTHON, WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""},
            )
        return self._process

    def solve(
        self,
        method: str,
        oracle: Any,
        x0: np.ndarray,
        eps: float,
        delta: float,
        seed: int,
        limits: tuple[int, int] = (0, 0),
    ) -> Answer:
        """Run one job. When the budget ends it, the worker is thrown away.

        With `limits` (numbers of inequalities and equalities) the oracle has `rows`: what `both`
        says of f, and of every constraint.
        """
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        job = {"method": method, "x0": x0.tolist(), "eps": eps, "delta": delta, "seed": seed}
        job["limits"] = limits
        process.stdin.write(b"J" + json.dumps(job).encode() + b"\n")
        process.stdin.flush()
        # A competitor that stops asking would hold us up for ever.
        watchdog = threading.Timer(20.0 * oracle.max_cpu + 300.0, process.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            while True:
                kind = process.stdout.read(1)
                if kind not in (b"E", b"R"):
                    self.close()
                    return Answer(oracle.best_x, "worker died")
                numbers = np.frombuffer(process.stdout.read(8 * (1 + x0.size)))
                oracle.remote_cpu = float(numbers[0])
                if kind == b"R":
                    text = process.stdout.readline().decode().strip()
                    return Answer(numbers[1:].copy(), text)
                if any(limits):
                    rows = oracle.rows(numbers[1:])
                else:
                    value, gradient = oracle.both(numbers[1:])
                    rows = np.concatenate([[value], gradient])
                process.stdin.write(np.ascontiguousarray(rows, dtype=np.float64).tobytes())
                process.stdin.flush()
        except OutOfBudget:
            self.close()
            raise
        except BrokenPipeError:
            with contextlib.suppress(OSError):
                self.close()
            return Answer(oracle.best_x, "worker died")
        finally:
            watchdog.cancel()
