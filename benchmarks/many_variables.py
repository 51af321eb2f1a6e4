"""Many variables: the ten problems of Haarala, Miettinen and Makela, and an l1 logistic sum.

    python -m benchmarks.many_variables                        # d = 1e3, 1e4, 1e5
    python -m benchmarks.many_variables --dims 1000000 --problems chained_cb3_2 brown_2
    python -m benchmarks.many_variables --elements --starts 1 2 3 --problems chained_lq

Functions are plain callables; those marked "elements" are `gs.PartiallySeparable` (chained Mifflin
2 always, all that are sums of elements with `--elements`). `--starts k` displaces the start by a
tenth of a standard normal vector, of seed k. Every run is a process of its own, so that its peak
memory is its own (beyond that of the imports, which is subtracted). Columns: values + gradients;
CPU seconds of the run, certificate included, and of one `verify`, which has to agree; peak memory;
f, and beside it the f of SciPy's L-BFGS-B and, where it is built (`GOLDSTEIN_PEERS`), of LMBM, each
with as many calls (no fewer than 1000) and CPU seconds (no fewer than 10), which prove nothing.
`--max-time` is wall time, as in `minimize`: on a busy machine it buys fewer CPU seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import subprocess
import sys
import time
import warnings
from types import SimpleNamespace
from typing import Any

import numpy as np
from benchmarks.peers import shared_library
from benchmarks.recorder import OutOfBudget, Recorder
from scipy.optimize import minimize as scipy_minimize
from scipy.sparse import csr_array
from scipy.special import expit

import goldstein as gs

HAARALA = [
    "maxq",
    "mxhilb",
    "chained_lq",
    "chained_cb3_1",
    "chained_cb3_2",
    "active_faces",
    "brown_2",
    "chained_mifflin_2",
    "chained_crescent_1",
    "chained_crescent_2",
]

PROBLEMS = (*HAARALA, "l1_logistic")

#: A peer has as many calls and CPU seconds as we needed, and no fewer than these.
LEAST_CALLS, LEAST_SECONDS = 1000, 10.0


def l1_logistic(d: int) -> tuple[Any, Any, np.ndarray]:
    """sum_i log(1 + exp(-b_i a_i'x)) + |x|_1 / 2; d rows with ten Gaussian entries each."""
    rng = np.random.default_rng(7)
    columns = rng.integers(0, d, 10 * d)
    A = csr_array((rng.standard_normal(10 * d), columns, np.arange(0, 10 * d + 1, 10)), (d, d))
    truth = np.where(rng.random(d) < 0.1, rng.standard_normal(d) * 3.0, 0.0)
    b = np.where(rng.random(d) < expit(A @ truth), 1.0, -1.0)
    B = csr_array(A.multiply(b[:, None]))
    Bt = csr_array(B.T)

    def value(x: np.ndarray) -> float:
        return float(np.logaddexp(0.0, -(B @ x)).sum() + 0.5 * np.abs(x).sum())

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.asarray(0.5 * np.sign(x) - Bt @ expit(-(B @ x)))

    return value, gradient, np.ones(d)


def _lq(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = u.T
    excess = a * a + b * b - 1.0
    outside = 2.0 * (excess > 0.0)
    return np.maximum(excess, 0.0) - a - b, np.stack([outside * a - 1.0, outside * b - 1.0], 1)


def _cb3(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = u.T
    p, q, r = a**4 + b * b, (2.0 - a) ** 2 + (2.0 - b) ** 2, 2.0 * np.exp(b - a)
    first, second = (p >= q) & (p >= r), (q > p) & (q >= r)
    left = np.where(first, 4.0 * a**3, np.where(second, 2.0 * a - 4.0, -r))
    right = np.where(first, 2.0 * b, np.where(second, 2.0 * b - 4.0, r))
    return np.maximum(np.maximum(p, q), r), np.stack([left, right], 1)


def _brown(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = u.T
    v, w, p, q = np.abs(a), np.abs(b), b * b + 1.0, a * a + 1.0
    log_v, log_w = np.log(np.where(v > 0.0, v, 1.0)), np.log(np.where(w > 0.0, w, 1.0))
    left = p * v ** (p - 1.0) * np.sign(a) + 2.0 * a * w**q * log_w
    right = q * w ** (q - 1.0) * np.sign(b) + 2.0 * b * v**p * log_v
    return v**p + w**q, np.stack([left, right], 1)


def _mifflin(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = u.T
    y = a * a + b * b - 1.0
    slope = np.where(y >= 0.0, 7.5, 0.5)
    return 2.0 * y + 1.75 * np.abs(y) - a, np.stack([slope * a - 1.0, slope * b], 1)


def _crescent(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    a, b = u.T
    q = a * a + (b - 1.0) ** 2 - 1.0
    s = np.where(q >= 0.0, 2.0, -2.0)
    return b + np.abs(q), np.stack([s * a, s * (b - 1.0) + 1.0], 1)


#: Those that are sums of elements in two neighbours.
ELEMENTS = {
    "chained_lq": _lq,
    "chained_cb3_1": _cb3,
    "brown_2": _brown,
    "chained_mifflin_2": _mifflin,
    "chained_crescent_2": _crescent,
}


def pose(name: str, d: int, start: int = 0) -> tuple[Any, Any, np.ndarray]:
    """Return f, its gradient and a start: that of the problem, or displaced at random."""
    if name == "l1_logistic":
        f, g, x0 = l1_logistic(d)
    else:
        problem = gs.problems.get(name, d=d)
        f, g, x0 = problem.value, problem.gradient, np.array(problem.x0, dtype=float)
    if start:
        x0 = x0 + 0.1 * np.random.default_rng(start).standard_normal(d)
    return f, g, x0


def sum_of_elements(name: str, d: int) -> gs.PartiallySeparable:
    """Return the same function as a sum of elements."""
    both = ELEMENTS[name]
    neighbours = np.arange(d - 1)[:, None] + [0, 1]
    return gs.PartiallySeparable((lambda u: both(u)[0], lambda u: both(u)[1]), neighbours)


def own_run(
    name: str, d: int, max_time: float, start: int, elements: bool, max_memory: int | None = None
) -> dict[str, Any]:
    """Minimise, and verify with a seed that the run did not use."""
    f, g, x0 = pose(name, d, start)
    if elements:
        f, g = sum_of_elements(name, d), None
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    options = {} if max_memory is None else {"max_memory": max_memory}
    res = gs.minimize(f, x0, g, eps=1e-2, delta=1e-2, rng=start, max_time=max_time, options=options)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    again = time.process_time()
    verified = res.certificate is not None and res.certificate.verify(f, g, seed=start + 1).ok
    return {
        "success": bool(res.success), "verified": bool(verified), "calls": res.nfev + res.ngev,
        "cpu": cpu, "wall": wall, "verify": time.process_time() - again, "fun": res.fun,
        "eps": None if res.certificate is None else res.certificate.eps,
        "rows": 0 if res.certificate is None else len(res.certificate.weights),
        "peak": (peak - before) * 1024,
    }  # fmt: skip


def _recorder(name: str, d: int, start: int, calls: int, seconds: float) -> Recorder:
    """What a peer sees: each call is a value and a gradient; it ends when the budget does."""
    f, g, x0 = pose(name, d, start)
    problem = SimpleNamespace(
        name=name, dim=d, x0=x0, value=f, gradient=g, fun_and_jac=lambda x: (f(x), g(x))
    )
    return Recorder(problem, max_calls=2 * calls, max_cpu=seconds)  # type: ignore[arg-type]


def lbfgsb_run(name: str, d: int, start: int, calls: int, seconds: float) -> dict[str, Any]:
    """L-BFGS-B as it is, with this many calls and seconds at most."""
    oracle = _recorder(name, d, start, calls, seconds)
    options = {"maxfun": calls, "maxiter": calls, "ftol": 1e-15, "gtol": 1e-10}
    with contextlib.suppress(OutOfBudget):
        scipy_minimize(oracle.both, oracle.problem.x0, jac=True, method="L-BFGS-B", options=options)
    return {"fun": float(oracle.best_fun), "calls": oracle.values}


def lmbm_run(name: str, d: int, start: int, calls: int, seconds: float) -> dict[str, Any]:
    """LMBM, with this many calls and seconds at most."""
    oracle = _recorder(name, d, start, calls, seconds)
    with contextlib.suppress(OutOfBudget):
        shared_library.solve("lmbm", oracle, oracle.problem.x0, 1e-2, 1e-2, 0)
    return {"fun": float(oracle.best_fun), "calls": oracle.values}


def in_a_process(*args: str) -> dict[str, Any]:
    """Run this file anew and read what it prints."""
    command = [sys.executable, "-m", "benchmarks.many_variables", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def row(
    name: str, d: int, start: int, elements: bool, ours: dict[str, Any], *peers: dict[str, Any]
) -> str:
    first = f"| {name.replace('_', ' ')} | {d:,} | {start} | {'elements' if elements else 'plain'} "
    if "failed" in ours:
        return f"{first}| failed: {ours['failed']} |"
    said = "yes" if ours["success"] and ours["verified"] else f"no ({ours['eps']:.2g})"
    if ours["success"] and not ours["verified"]:
        said = "CONTRADICTED"
    found = [f"{peer['fun']:.8g} ({peer['calls']:,})" if "fun" in peer else "-" for peer in peers]
    return (
        f"{first}| {said} | {ours['rows']} | {ours['calls']:,} | {ours['cpu']:.1f} "
        f"| {ours['verify']:.1f} | {ours['peak'] / 1e6:.0f} MB | {ours['fun']:.8g} "
        f"| {' | '.join(found)} |"
    )


HEADER = """\
| problem | d | start | f is | certified | gradients | calls | CPU s | verify s | memory | f \
| L-BFGS-B | LMBM |
|---|---|---|---|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", nargs="*", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--max-time", type=float, default=60.0)
    parser.add_argument("--max-memory", type=int, help="bytes, as the option of the search")
    parser.add_argument("--starts", nargs="*", type=int, default=[0], help="0: as it is")
    parser.add_argument("--elements", action="store_true", help="sums of elements where they are")
    parser.add_argument("--one", choices=["own", "l-bfgs-b", "lmbm"], help="one run, as JSON")
    parser.add_argument("--calls", type=int, default=1000, help="of a peer in one run")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    name, d, start = chosen.problems[0], chosen.dims[0], chosen.starts[0]
    if chosen.one == "own":
        memory = chosen.max_memory
        print(json.dumps(own_run(name, d, chosen.max_time, start, chosen.elements, memory)))
        return
    if chosen.one == "l-bfgs-b":
        print(json.dumps(lbfgsb_run(name, d, start, chosen.calls, chosen.max_time)))
        return
    if chosen.one == "lmbm":
        print(json.dumps(lmbm_run(name, d, start, chosen.calls, chosen.max_time)))
        return
    unbuilt = shared_library.missing("lmbm")
    if unbuilt:
        print(unbuilt, file=sys.stderr)
    print(HEADER)
    for d in chosen.dims:
        for start in chosen.starts:
            for name in chosen.problems:
                print(_compared(name, d, start, chosen, not unbuilt), flush=True)


def _compared(name: str, d: int, start: int, chosen: argparse.Namespace, lmbm: bool) -> str:
    """Run one problem, ours and theirs."""
    elements = name == "chained_mifflin_2" or (chosen.elements and name in ELEMENTS)
    which = ["--problems", name, "--dims", str(d), "--starts", str(start)]
    own = ["--max-time", str(chosen.max_time), *(["--elements"] if elements else [])]
    if chosen.max_memory:
        own += ["--max-memory", str(chosen.max_memory)]
    ours = in_a_process("--one", "own", *which, *own)
    most = ["--calls", str(max(LEAST_CALLS, ours.get("calls", 0)))]
    most += ["--max-time", str(max(LEAST_SECONDS, ours.get("cpu", 0.0)))]
    peers = [in_a_process("--one", "l-bfgs-b", *which, *most)]
    peers.append(in_a_process("--one", "lmbm", *which, *most) if lmbm else {})
    return row(name, d, start, elements, ours, *peers)


if __name__ == "__main__":
    main()
