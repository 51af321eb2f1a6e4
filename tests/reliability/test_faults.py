"""What a user's function may do, and what becomes of the run: the rows of docs/reliability.md."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs

X0 = np.array([3.0, -2.0, 1.0])
TASK: dict[str, Any] = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def f(x: np.ndarray) -> float:
    return float(np.abs(x).sum() + abs(x[0] - 2 * x[1]) + 0.1 * x @ x)


def grad(x: np.ndarray) -> np.ndarray:
    s = np.sign(x[0] - 2 * x[1])
    return np.sign(x) + np.array([s, -2 * s, 0.0]) + 0.2 * x


@pytest.fixture(scope="module")
def plain() -> gs.Result:
    found = gs.minimize(f, X0, grad, **TASK)
    assert found.success
    return found


def equal(found: gs.Result, plain: gs.Result) -> None:
    assert np.array_equal(found.x, plain.x)
    assert found.certificate.digest == plain.certificate.digest or (
        np.array_equal(found.certificate.points, plain.certificate.points)
        and found.certificate.eps == plain.certificate.eps
    )


# Hanging.

#: By default the test runner sets the alarm clock that the watchdog needs.
OWN_ALARM = pytest.mark.timeout(60, method="thread")


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("goldstein.api.driver.LEAST", 0.5)


class Hangs:
    """Answers for a while, then never again."""

    def __init__(self, calls: int) -> None:
        self.left = calls

    def __call__(self, x: np.ndarray) -> float:
        self.left -= 1
        if self.left < 0:
            time.sleep(1000)
        return f(x)


@OWN_ALARM
def test_a_function_that_hangs_is_interrupted(impatient: None) -> None:
    begin = time.perf_counter()
    found = gs.minimize(Hangs(10), X0, grad, max_time=0.2, **TASK)
    assert found.status is gs.Status.OUT_OF_TIME
    assert time.perf_counter() - begin < 30
    assert found.fun <= f(X0)  # the best point that was met
    assert signal.getsignal(signal.SIGALRM) == signal.SIG_DFL
    assert signal.getitimer(signal.ITIMER_REAL)[0] == 0.0


@OWN_ALARM
def test_a_constrained_run_is_interrupted_too(impatient: None) -> None:
    found = gs.minimize(Hangs(6), X0, grad, max_time=0.2, bounds=[(-5, 5)] * 3, **TASK)
    assert found.status is gs.Status.OUT_OF_TIME
    assert not found.success


@OWN_ALARM
def test_a_constraint_that_hangs_for_ever_is_named(impatient: None) -> None:
    limit = {"type": "ineq", "fun": Hangs(0), "jac": grad}
    with pytest.raises(gs.GoldsteinError, match="does not return"):
        gs.minimize(f, X0, grad, max_time=0.2, constraints=limit, **TASK)
    limit["fun"] = Hangs(5)
    found = gs.minimize(f, X0, grad, max_time=0.2, constraints=limit, **TASK)
    assert found.status is gs.Status.OUT_OF_TIME


@OWN_ALARM
def test_a_hanging_function_keeps_its_journal(
    tmp_path: Path, plain: gs.Result, impatient: None
) -> None:
    path = tmp_path / "run.journal"
    named = Hangs(10)
    gs.minimize(named, X0, grad, max_time=0.2, checkpoint=path, **TASK)
    named.left = 10**6
    resumed = gs.minimize(named, X0, grad, checkpoint=path, **TASK)
    assert np.array_equal(resumed.x, plain.x)


@OWN_ALARM
def test_slow_calls_are_not_cut(impatient: None) -> None:
    """One that ends soon is waited for, also those that state what is known at the end."""
    asked = 0

    def slow(x: np.ndarray) -> float:
        nonlocal asked
        time.sleep(0.3)
        asked += 1
        return f(x)

    found = gs.minimize(slow, X0, grad, max_time=0.1, **TASK)
    assert found.status is gs.Status.OUT_OF_TIME
    assert found.nfev == asked  # every call came to its end


@OWN_ALARM
def test_an_alarm_of_the_user_is_left_alone() -> None:
    rang = []
    previous = signal.signal(signal.SIGALRM, lambda number, frame: rang.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        found = gs.minimize(f, X0, grad, max_time=10, **TASK)
        assert found.success
        time.sleep(0.1)
        assert rang
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, previous)


def test_in_other_threads_time_is_looked_at_between_calls() -> None:
    def run() -> gs.Result:
        return gs.minimize(
            lambda x: time.sleep(0.05) or f(x), X0, grad, max_time=0.2, **TASK
        )  # fmt: skip

    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run).result(timeout=60).status is gs.Status.OUT_OF_TIME


# Answers of other kinds.


def test_float32_values_and_gradients_are_converted(plain: gs.Result) -> None:
    found = gs.minimize(
        lambda x: np.float32(f(x)), X0, lambda x: grad(x).astype(np.float32),
        eps=1e-2, delta=1e-2, rng=0,
    )  # fmt: skip
    assert not found.success or found.certificate.verify(f, grad).eps <= 1.1e-2


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: f(x) + 0j, "complex"),
        (lambda x: np.array([f(x), 0.0]), "shape"),
        (lambda x: float("nan"), "nan"),
        (lambda x: float("inf"), "inf"),
        (lambda x: None, "missing return"),
        (lambda x: 1 / 0, "ZeroDivisionError"),
    ],
)
def test_bad_values_are_named(answer: Any, words: str) -> None:
    with pytest.raises(gs.OracleError, match=words):
        gs.minimize(answer, X0, grad, **TASK)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: grad(x) + 0j, "complex"),
        (lambda x: grad(x)[:2], "shape"),
        (lambda x: grad(x) * np.nan, "nan"),
        (lambda x: grad(x)[None], "shape"),
        (lambda x: [][0], "IndexError"),
    ],
)
def test_bad_gradients_are_named(answer: Any, words: str) -> None:
    with pytest.raises(gs.OracleError, match=words):
        gs.minimize(f, X0, answer, **TASK)


def test_nan_in_the_middle_is_stepped_back_from(plain: gs.Result) -> None:
    """Where a trial step leaves the domain the search comes back, and says nothing false."""

    def walled(x: np.ndarray) -> float:
        return float("nan") if np.abs(x).max() > 3.5 else f(x)

    found = gs.minimize(walled, X0, grad, **TASK)
    assert found.certificate is None or found.certificate.verify(walled, grad).ok


# Memory that is shared.


def test_a_view_that_is_overwritten_later(plain: gs.Result) -> None:
    buffer = np.zeros(3)

    def reused(x: np.ndarray) -> np.ndarray:
        buffer[:] = grad(x)
        return buffer

    equal(gs.minimize(f, X0, reused, **TASK), plain)


def test_a_function_that_changes_x(plain: gs.Result) -> None:
    def clobbers(x: np.ndarray) -> float:
        value = f(x)
        x[:] = np.nan
        return value

    def clobbers_too(x: np.ndarray) -> np.ndarray:
        value = grad(x)
        x *= 0
        return value

    equal(gs.minimize(clobbers, X0, clobbers_too, **TASK), plain)
    verdict = plain.certificate.verify(clobbers, clobbers_too)
    assert verdict.ok


def test_constraints_that_change_x_or_reuse_buffers() -> None:
    rows = np.zeros((1, 3))

    def fun(x: np.ndarray) -> float:
        value = float(x @ x)
        x[:] = 7.0
        return value

    def jac(x: np.ndarray) -> np.ndarray:
        rows[0] = 2 * x
        x[:] = 7.0
        return rows

    def limit(reused: bool) -> Any:
        return {"type": "ineq", "fun": lambda x: 4.0 - (fun(x) if reused else x @ x),
                "jac": lambda x: -(jac(x) if reused else 2 * x[None])}  # fmt: skip

    one, other = (
        gs.minimize(f, X0, grad, constraints=limit(reused), **TASK) for reused in (True, False)
    )
    assert np.array_equal(one.x, other.x)
    assert one.success


# Processes and threads.


@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")  # beside threads of the runner
@pytest.mark.filterwarnings("ignore:.*fork:RuntimeWarning")  # and of JAX, where it is loaded
def test_a_function_that_forks(plain: gs.Result) -> None:
    def forks(x: np.ndarray) -> float:
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(writing, np.float64(f(x)).tobytes())
            os._exit(0)
        value = np.frombuffer(os.read(reading, 8))[0]
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
        return float(value)

    equal(gs.minimize(forks, X0, grad, **TASK), plain)


def test_a_function_that_uses_threads(plain: gs.Result) -> None:
    with ThreadPoolExecutor(3) as pool:

        def threaded(x: np.ndarray) -> np.ndarray:
            return np.array([*pool.map(lambda i: grad(x)[i], range(3))])

        equal(gs.minimize(f, X0, threaded, **TASK), plain)


def test_a_worker_that_dies_is_an_error_of_the_function() -> None:
    """What a pool of processes raises when one is killed is wrapped, with the point."""
    from concurrent.futures.process import BrokenProcessPool

    def dead(x: np.ndarray) -> float:
        raise BrokenProcessPool("A process in the process pool was terminated abruptly")

    with pytest.raises(gs.OracleError, match="BrokenProcessPool") as caught:
        gs.minimize(dead, X0, grad, **TASK)
    assert np.array_equal(caught.value.point, X0)


def test_a_function_that_calls_minimize(plain: gs.Result) -> None:
    inner: list[gs.Result] = []

    def nested(x: np.ndarray) -> float:
        if len(inner) < 2:
            inner.append(gs.minimize(f, X0, grad, **TASK))
        return f(x)

    equal(gs.minimize(nested, X0, grad, **TASK), plain)
    for one in inner:
        equal(one, plain)


def test_sixteen_threads_give_the_answers_of_one(plain: gs.Result) -> None:
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(lambda _: gs.minimize(f, X0, grad, **TASK), range(32)))
    for one in found:
        equal(one, plain)


SPAWNED = """
import multiprocessing, sys
import numpy as np, goldstein as gs
def f(x): return float(np.abs(x).sum())
def solve(seed):
    res = gs.minimize(f, [3.0, -1.0], np.sign, eps=1e-3, delta=1e-3, rng=seed)
    return res.success, res.x.tobytes(), res.certificate.eps
if __name__ == "__main__":
    here = [solve(k) for k in range(3)]
    with multiprocessing.get_context(sys.argv[1]).Pool(2) as pool:
        assert pool.map(solve, range(3)) == here
    print("same")
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_fork_and_spawn(how: str, tmp_path: Path) -> None:
    script = tmp_path / "spawned.py"
    script.write_text(SPAWNED)
    told = subprocess.run(
        [sys.executable, str(script), how], capture_output=True, text=True, timeout=120, check=False
    )
    assert told.stdout == "same\n", told.stderr


# Memory.


def test_memory_that_runs_low_is_said(tmp_path: Path) -> None:
    """In a process of its own, with an address space that is too small for the run."""
    script = tmp_path / "low.py"
    script.write_text("""
import resource
import numpy as np, goldstein as gs
d = 2_000_000
def f(x): return float(np.abs(x).sum())
warm = gs.minimize(f, np.ones(3), np.sign, eps=1e-3, delta=1e-3, rng=0)
x0 = np.linspace(1.0, 2.0, d)
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 12 * 8 * d, used + 12 * 8 * d))
try:
    res = gs.minimize(f, x0, np.sign, eps=1e-6, delta=1e-3, rng=0, max_calls=200)
    print("ended", res.status.name)
except (MemoryError, gs.GoldsteinError) as failure:
    print("said", type(failure).__name__)
again = gs.minimize(f, np.ones(3), np.sign, eps=1e-3, delta=1e-3, rng=0)
print(np.array_equal(again.x, warm.x))
""")
    told = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    first, second = told.stdout.splitlines()
    assert first.startswith(("said ", "ended ")), told.stderr
    assert second == "True"


def test_nothing_is_left_behind() -> None:
    """Files, threads, child processes and memory, after some hundred runs of several kinds."""

    def run(seed: int) -> None:
        gs.minimize(f, X0, grad, eps=1e-2, delta=1e-2, rng=seed)
        if seed % 10 == 0:
            gs.minimize(f, X0, grad, eps=1e-2, delta=1e-2, rng=seed, bounds=[(-5, 5)] * 3)

    for seed in range(30):
        run(seed)
    before = open_files(), threading.active_count()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for seed in range(200):
        run(seed)
    assert (open_files(), threading.active_count()) == before
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 20 * 1024


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))
