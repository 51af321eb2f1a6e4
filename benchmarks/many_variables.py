"""Many variables: the ten problems of Haarala, Miettinen and Makela, and an l1 logistic sum.

    python -m benchmarks.many_variables                        # d = 1e3, 1e4, 1e5
    python -m benchmarks.many_variables --dims 1000000 --problems chained_cb3_2 brown_2

Every run is a process of its own, so that its peak memory is its own (beyond that of the imports,
which is subtracted). Columns: values + gradients; CPU seconds of the run, certificate included; and
of one `verify`, which has to agree; peak memory; f, and beside it the f of SciPy's L-BFGS-B with at
most as many calls (and at least 1000), which proves nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
import warnings
from typing import Any

import numpy as np
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


def pose(name: str, d: int) -> tuple[Any, Any, np.ndarray]:
    """Return f, its gradient and a start."""
    if name == "l1_logistic":
        return l1_logistic(d)
    problem = gs.problems.get(name, d=d)
    return problem.value, problem.gradient, np.array(problem.x0, dtype=float)


def own_run(name: str, d: int, max_time: float, seed: int) -> dict[str, Any]:
    """Minimise, and verify with a seed that the run did not use."""
    f, g, x0 = pose(name, d)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    wall, cpu = time.perf_counter(), time.process_time()
    res = gs.minimize(f, x0, g, eps=1e-2, delta=1e-2, rng=seed, max_time=max_time)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    again = time.process_time()
    verified = res.certificate is not None and res.certificate.verify(f, g, seed=seed + 1).ok
    return {
        "success": bool(res.success), "verified": bool(verified), "calls": res.nfev + res.ngev,
        "cpu": cpu, "wall": wall, "verify": time.process_time() - again, "fun": res.fun,
        "eps": None if res.certificate is None else res.certificate.eps,
        "rows": 0 if res.certificate is None else len(res.certificate.weights),
        "peak": (peak - before) * 1024,
    }  # fmt: skip


def peer_run(name: str, d: int, calls: int) -> dict[str, Any]:
    """L-BFGS-B as it is, with this many calls at most."""
    f, g, x0 = pose(name, d)
    options = {"maxfun": calls, "maxiter": calls, "ftol": 1e-15, "gtol": 1e-10}
    cpu = time.process_time()
    res = scipy_minimize(f, x0, jac=g, method="L-BFGS-B", options=options)
    return {"fun": float(res.fun), "calls": int(res.nfev), "cpu": time.process_time() - cpu}


def in_a_process(*args: str) -> dict[str, Any]:
    """Run this file anew and read what it prints."""
    command = [sys.executable, "-m", "benchmarks.many_variables", *args]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"failed": done.stderr.strip().splitlines()[-1:]}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def row(name: str, d: int, ours: dict[str, Any], peer: dict[str, Any]) -> str:
    if "failed" in ours:
        return f"| {name} | {d:,} | failed: {ours['failed']} |"
    said = "yes" if ours["success"] and ours["verified"] else f"no ({ours['eps']:.2g})"
    if ours["success"] and not ours["verified"]:
        said = "CONTRADICTED"
    return (
        f"| {name} | {d:,} | {said} | {ours['rows']} | {ours['calls']:,} | {ours['cpu']:.1f} "
        f"| {ours['verify']:.1f} | {ours['peak'] / 1e6:.0f} MB | {ours['fun']:.8g} "
        f"| {peer.get('fun', float('nan')):.8g} ({peer.get('calls', 0):,}) |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--dims", nargs="*", type=int, default=[1000, 10_000, 100_000])
    parser.add_argument("--problems", nargs="*", default=list(PROBLEMS))
    parser.add_argument("--max-time", type=float, default=60.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one", action="store_true", help="one run, as JSON")
    parser.add_argument("--peer", type=int, help="one run of L-BFGS-B with so many calls, as JSON")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    name, d = chosen.problems[0], chosen.dims[0]
    if chosen.one:
        print(json.dumps(own_run(name, d, chosen.max_time, chosen.seed)))
        return
    if chosen.peer:
        print(json.dumps(peer_run(name, d, chosen.peer)))
        return
    print(
        "| problem | d | certified | gradients | calls | CPU s | verify s | memory | f | L-BFGS-B |"
    )
    print("|---|---|---|---|---|---|---|---|---|---|")
    for d in chosen.dims:
        for name in chosen.problems:
            which = ("--problems", name, "--dims", str(d), "--seed", str(chosen.seed))
            ours = in_a_process("--one", *which, "--max-time", str(chosen.max_time))
            calls = max(1000, ours.get("calls", 0))
            print(row(name, d, ours, in_a_process("--peer", str(calls), *which)), flush=True)


if __name__ == "__main__":
    main()
