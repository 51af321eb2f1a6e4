"""Kill runs at random moments and resume them: every answer must be that of an undisturbed run.

    python -m benchmarks.kill --kills 200

Each run is a process of its own, ended by SIGKILL at a random moment of its life, begun again from
its checkpoint, killed again, and so on until it comes to its end. What it ends with (x, value,
status, counts, certificate) must be, bit for bit, what a run without a checkpoint ends with. The
tasks are runs of `minimize` and `multistart`, fits of the estimators and the command line.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import random
import select
import shutil
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
    solve: Callable[..., Any]
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


def _many_starts(slow: float, checkpoint: Path | None) -> Any:
    from goldstein.parallel import multistart

    return multistart(
        _slowly(_valley, slow), lambda rng: rng.uniform(-2, 2, 3), _slowly(_valley_slope, slow),
        n_starts=6, eps=1e-2, delta=1e-2, rng=3, folder=checkpoint,
    )  # fmt: skip


def _fitted(estimator: str, data: str, **parameters: Any) -> Callable[..., Any]:
    """The fit of an estimator to one of scikit-learn's data sets, standardised."""

    def solve(slow: float, checkpoint: Path | None) -> Any:
        from sklearn import datasets

        X, y = getattr(datasets, f"load_{data}")(return_X_y=True)
        X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
        made = getattr(importlib.import_module("goldstein.sklearn"), estimator)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*not reached")  # some runs end early
            return made(random_state=3, checkpoint=checkpoint, **parameters).fit(X, y)

    return solve


def _command(slow: float, checkpoint: Path | None) -> dict[str, Any]:
    """`goldstein solve`, and what it leaves in its folder."""
    from goldstein.cli.app import app

    with tempfile.TemporaryDirectory() as elsewhere:
        out = Path(elsewhere, "run") if checkpoint is None else checkpoint
        problem = out.with_name("slow_valley.py")
        text = _PROBLEM.format(slow=slow)
        if not problem.exists() or problem.read_text() != text:
            problem.write_text(text)
        words = ["solve", str(problem), "--eps", "1e-3", "--delta", "1e-3", "--out", str(out)]
        unfinished = (out / "checkpoint.journal").exists()
        with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere):
            if unfinished or not (out / "result.json").exists():
                app(words + ["--resume"] * unfinished, standalone_mode=False)
        facts = json.loads((out / "result.json").read_text())
        lines = (out / "history.csv").read_text().splitlines()
    return {
        **{name: facts[name] for name in ("x", "fun", "status", "nit", "nfev", "ngev")},
        "certificate": facts["certificate"]["digest"],
        "history": [line.rpartition(",")[0] for line in lines],  # without the seconds
    }


_PROBLEM = """
import time
import numpy as np

x0 = np.linspace(-1.2, 1.0, 5)


def f(x):
    time.sleep({slow})
    s = np.sign(x[1] - x[0] ** 2)
    slope = np.concatenate([[-2 * s * x[0] - 2 * (1 - x[0]), s], np.sign(x[2:])])
    return float(abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2 + np.abs(x[2:]).sum()), slope
"""


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
    Task("multistart, 6 starts", _many_starts, 2e-4),
    Task("command line, solve", _command, 5e-4),
)

#: Those that need scikit-learn.
FITS = (
    # Without a limit a near proof may take as long as the fit, and a fit that resumes is short: the
    # clock decides which certificate there is. Near proofs are left out where they take long.
    Task(
        "network, 3 starts",
        _fitted("ReLUNetRegressor", "diabetes", width=4, n_init=3, certificate="goldstein"),
    ),
    Task(
        "network, mini-batches",
        _fitted("ReLUNetClassifier", "breast_cancer", width=4, solver="o2nc", max_calls=1500),
    ),
    Task(
        "network, stopped early",
        _fitted("ReLUNetClassifier", "breast_cancer", width=8, early_stopping=True, n_init=2),
    ),
    Task("margin machines, 10", _fitted("RhoMarginSVC", "digits", multi_class="ovr", n_init=2)),
    Task(
        "margin, all classes",
        _fitted("RhoMarginSVC", "wine", n_init=2, certificate="goldstein"),
    ),
    Task(
        "margin, guaranteed search",
        _fitted("RhoMarginSVC", "breast_cancer", eps=1e-9, delta=1e-7, max_calls=400),
    ),
)


def outcome(found: Any) -> dict[str, Any]:
    """What must not depend on interruptions."""
    if isinstance(found, dict):
        return found
    if isinstance(found, gs.Result):
        certificate = found.certificate
        return {
            "x": _hash(found.x),
            "fun": float(found.fun).hex(),
            "status": found.status.name,
            "counts": [found.nit, found.nfev, found.ngev],
            "certificate": None if certificate is None else certificate.content_digest(),
            "history": hashlib.sha256(repr(found.history.fun).encode()).hexdigest(),
        }
    if hasattr(found, "results"):  # of many starts
        return {"status": "of each", "results": [outcome(result) for result in found.results]}
    weights = (getattr(found, name, None) for name in ("coef_", "intercept_", "parameters_"))
    return {
        "status": found.certificate_.kind,
        "weights": [None if part is None else _hash(part) for part in weights],
        "fun": float(found.objective_).hex(),
        "counts": found.n_iter_,
        "claims": [found.near_stationarity_, found.goldstein_stationarity_],
        "certificates": [
            certificate.content_digest()
            for certificate in getattr(found, "certificates_", [found.certificate_])
        ],
    }


def _hash(array: np.ndarray) -> str:
    return hashlib.sha256(array.tobytes()).hexdigest()


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
            found = outcome(task.solve(task.slow, checkpoint))
            told = json.dumps(found)
        except BaseException as failure:
            told = json.dumps({"failed": f"{type(failure).__name__}: {failure}"})
        with open(writing, "wb") as file:
            file.write(told.encode())
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
        told = b"".join(iter(lambda: os.read(reading, 2**16), b""))
        return json.loads(told) if told else None


def killed_until_done(task: Task, folder: Path, rng: random.Random, whole: float) -> Any:
    """Kill and resume a run; return its outcome and how often it was killed."""
    checkpoint = folder / f"{rng.getrandbits(60):x}"
    kills = 0
    while True:
        # Short lives first, so that many kills fall into one run; a long one ends it.
        life = rng.uniform(0.0, 1.2 * whole) if kills < 12 else PATIENCE
        told = finished(task, checkpoint, life)
        if told is not None:
            shutil.rmtree(checkpoint) if checkpoint.is_dir() else checkpoint.unlink(missing_ok=True)
            return told, kills
        kills += 1


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="at least so many, over all tasks")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    rng = random.Random(asked.seed)
    tasks = (*TASKS, *FITS)
    wrong = kills = 0
    with tempfile.TemporaryDirectory() as name:
        for number, task in enumerate(tasks):
            begin = time.perf_counter()
            expected = finished(task, None, PATIENCE)
            whole = time.perf_counter() - begin
            runs = dead = bad = 0
            aim = asked.kills * (number + 1) // len(tasks) - asked.kills * number // len(tasks)
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
