"""Kill runs at random moments and resume them: every answer must be that of an undisturbed run.

    python -m benchmarks.kill --kills 200

Each run is a process of its own, ended by SIGKILL at a random moment of its life, begun again from
its checkpoint, killed again, and so on until it comes to its end. What it ends with (x, value,
status, counts, certificate) must be, bit for bit, what a run without a checkpoint ends with.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import random
import select
import signal
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import goldstein as gs

#: Seconds after which a run that does not end is a failure.
PATIENCE = 120.0


@dataclass(frozen=True)
class Task:
    """One run; `slow` seconds per call make room for kills between two of them."""

    name: str
    solve: Callable[..., gs.Result]
    slow: float = 0.0


def _slowly(answer: Callable[[Any], Any], seconds: float) -> Callable[[Any], Any]:
    def ask(x: Any) -> Any:
        if seconds:
            time.sleep(seconds)
        return answer(x)

    return ask


def _valley(x: np.ndarray) -> float:
    return float(abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2 + np.abs(x[2:]).sum())


def _valley_slope(x: np.ndarray) -> np.ndarray:
    s = np.sign(x[1] - x[0] ** 2)
    first = [-2 * s * x[0] - 2 * (1 - x[0]), s]
    return np.concatenate([first, np.sign(x[2:])])


def _free(method: str, d: int, **more: Any) -> Callable[..., gs.Result]:
    def solve(slow: float, checkpoint: Path | None) -> gs.Result:
        x0 = np.concatenate([[-1.2, 1.0], np.linspace(0.5, 1.5, d - 2)])
        return gs.minimize(
            _slowly(_valley, slow), x0, _slowly(_valley_slope, slow),
            delta=1e-2, method=method, rng=3, checkpoint=checkpoint, **more,
        )  # fmt: skip

    return solve


def _large(slow: float, checkpoint: Path | None) -> gs.Result:
    """Gradients of some megabytes: kills fall into the writing of one."""
    x0 = np.linspace(1.0, 2.0, 300_000)
    return gs.minimize(
        lambda x: np.abs(x).sum(), x0, np.sign,
        eps=1e-3, delta=1e-2, rng=3, max_calls=60, checkpoint=checkpoint,
    )  # fmt: skip


def _limited(**more: Any) -> Callable[..., gs.Result]:
    def solve(slow: float, checkpoint: Path | None) -> gs.Result:
        disc = NonlinearConstraint(
            _slowly(lambda x: x @ x, slow), -np.inf, 0.5,
            jac=_slowly(lambda x: 2.0 * x[None], slow),
        )  # fmt: skip
        plane = LinearConstraint(np.ones((1, 4)), -1.0, 1.0)
        return gs.minimize(
            _slowly(_valley, slow), [0.1, 0.2, 0.1, 0.1], _slowly(_valley_slope, slow),
            eps=1e-2, delta=1e-2, rng=3, bounds=Bounds(-np.ones(4), np.ones(4)),
            constraints=[disc, plane], checkpoint=checkpoint, **more,
        )  # fmt: skip

    return solve


def _near(slow: float, checkpoint: Path | None) -> gs.Result:
    z = gs.Variable(3)
    f = gs.sum(gs.abs(np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]]) @ z)) + 0.5 * gs.sum_squares(z)
    return gs.minimize(
        f, [1.0, -2.0, 0.5], eps=1e-3, delta=1e-3, rng=3, stationarity="near",
        checkpoint=checkpoint,
    )  # fmt: skip


TASKS = (
    Task("auto, 5 variables", _free("auto", 5, eps=1e-3), 5e-4),
    Task("bundle, 5 variables", _free("bundle", 5, eps=1e-1, max_calls=400), 2e-4),
    Task("pingd, 3 variables", _free("pingd", 3, eps=1e-1, max_calls=400), 2e-4),
    Task("auto, rel_eps, 12 variables", _free("auto", 12, rel_eps=1e-3), 5e-4),
    Task("auto, 300,000 variables", _large),
    Task("constrained, auto", _limited(), 5e-4),
    Task("constrained, bundle", _limited(method="bundle", max_calls=800), 1e-4),
    Task("constrained, feasible", _limited(options={"feasible": True}), 2e-4),
    Task("near, expression", _near),
)


def outcome(result: gs.Result) -> dict[str, Any]:
    """What must not depend on interruptions."""
    certificate = result.certificate
    return {
        "x": hashlib.sha256(result.x.tobytes()).hexdigest(),
        "fun": float(result.fun).hex(),
        "status": result.status.name,
        "counts": [result.nit, result.nfev, result.ngev],
        "certificate": None if certificate is None else certificate.content_digest(),
        "history": hashlib.sha256(repr(result.history.fun).encode()).hexdigest(),
    }


@contextlib.contextmanager
def _started(task: Task, checkpoint: Path | None) -> Any:
    """Run the task in a process of its own; yield its id and where its outcome can be read."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking beside threads of BLAS, or of JAX
        child = os.fork()
    if child == 0:
        try:
            os.close(reading)
            warnings.simplefilter("ignore", gs.CheckpointWarning)
            told = json.dumps(outcome(task.solve(task.slow, checkpoint)))
        except BaseException as failure:
            told = json.dumps({"failed": f"{type(failure).__name__}: {failure}"})
        os.write(writing, told.encode())
        os._exit(0)
    os.close(writing)
    try:
        yield child, reading
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)


def finished(task: Task, checkpoint: Path | None, life: float) -> dict[str, Any] | None:
    """Return the outcome of a run, None if it was killed after `life` seconds."""
    with _started(task, checkpoint) as (_, reading):
        if not select.select([reading], [], [], life)[0]:
            return None
        told = os.read(reading, 2**16)
        return json.loads(told) if told else None


def killed_until_done(task: Task, folder: Path, rng: random.Random, whole: float) -> Any:
    """Kill and resume a run; return its outcome and how often it was killed."""
    checkpoint = folder / f"{rng.getrandbits(60):x}.journal"
    kills = 0
    while True:
        # Short lives first, so that many kills fall into one run; a long one ends it.
        life = rng.uniform(0.0, 1.2 * whole) if kills < 12 else PATIENCE
        told = finished(task, checkpoint, life)
        if told is not None:
            checkpoint.unlink(missing_ok=True)
            return told, kills
        kills += 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="at least so many, over all tasks")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    rng = random.Random(asked.seed)
    wrong = kills = 0
    with tempfile.TemporaryDirectory() as name:
        for number, task in enumerate(TASKS):
            begin = time.perf_counter()
            expected = finished(task, None, PATIENCE)
            whole = time.perf_counter() - begin
            runs = dead = bad = 0
            aim = asked.kills * (number + 1) // len(TASKS) - asked.kills * number // len(TASKS)
            while dead < aim or not runs:
                told, times = killed_until_done(task, Path(name), rng, whole)
                runs, dead = runs + 1, dead + times
                if told != expected or "failed" in told:
                    bad += 1
                    print(f"  DIFFERENT: {task.name}: {told} instead of {expected}")
            status = (expected or {}).get("status", expected)
            print(
                f"{task.name:28s} {status!s:14s} {whole:6.2f} s alone; killed {dead:3d} times in "
                f"{runs:2d} runs, different {bad}"
            )
            wrong, kills = wrong + bad, kills + dead
    print(f"{kills} kills, {wrong} runs that ended differently")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
