"""Many variables: the ten problems of Haarala, Miettinen and Makela, and an l1 logistic sum.

    python -m benchmarks.many_variables                        # d = 1e3, 1e4, 1e5
    python -m benchmarks.many_variables --dims 1000000 --max-time 300
    python -m benchmarks.many_variables --page                 # the table, into benchmarks/auto.md
    python -m benchmarks.many_variables --elements --starts 1 2 3 --problems chained_lq

Results are kept run by run in `--keep`, with the commit: what is there is not run again, so a run
that was interrupted is continued; `--page` writes the rows of the commit that was run last.

Functions are plain callables; those marked "elements" are `gs.PartiallySeparable` (chained Mifflin
2 always, chained LQ from 1e5 on, all that are sums of elements with `--elements`). `--starts k`
displaces the start by a tenth of a standard normal vector, of seed k. Every run is a process of
its own, so that its peak memory is its own (beyond that of the imports, which is subtracted).
Columns: values + gradients;
CPU seconds of the run, certificate included, and of one `verify`, which has to agree; peak memory;
f, and beside it the f of SciPy's L-BFGS-B and, where it is built (`GOLDSTEIN_PEERS`), of LMBM, each
with as many calls (no fewer than 1000) and CPU seconds (no fewer than 10), which prove nothing.
`--max-time` is wall time, as in `minimize`: on a busy machine it buys fewer CPU seconds.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path
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

#: Sums of elements from this many variables on, `--elements` or not.
AS_ELEMENTS = {"chained_mifflin_2": 1, "chained_lq": 100_000}

#: Where results are kept, and the page with the table between two marks.
KEPT = Path(__file__).parent / "results" / "many_variables.jsonl"
PAGE = Path(__file__).parent / "auto.md"
MARKS = ("<!-- many variables: generated -->", "<!-- many variables: end -->")

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
    parser.add_argument("--peer-time", type=float, default=math.inf, help="CPU s, at most")
    parser.add_argument("--max-memory", type=int, help="bytes, as the option of the search")
    parser.add_argument("--starts", nargs="*", type=int, default=[0], help="0: as it is")
    parser.add_argument("--elements", action="store_true", help="sums of elements where they are")
    parser.add_argument("--keep", type=Path, default=KEPT, help="a file for the results")
    parser.add_argument("--page", action="store_true", help="write the table of what is kept")
    parser.add_argument("--one", choices=["own", "l-bfgs-b", "lmbm"], help="one run, as JSON")
    parser.add_argument("--calls", type=int, default=1000, help="of a peer in one run")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    if chosen.one:
        print(json.dumps(one_run(chosen)))
        return
    kept = Kept(chosen.keep)
    if chosen.page:
        write_page(kept)
        return
    unbuilt = shared_library.missing("lmbm")
    if unbuilt:
        print(unbuilt, file=sys.stderr)
    print(HEADER)
    for d in chosen.dims:
        for start in chosen.starts:
            for name in chosen.problems:
                print(_compared(name, d, start, chosen, not unbuilt, kept), flush=True)


def one_run(chosen: argparse.Namespace) -> dict[str, Any]:
    """Make the run that this process was started for."""
    name, d, start = chosen.problems[0], chosen.dims[0], chosen.starts[0]
    if chosen.one == "own":
        return own_run(name, d, chosen.max_time, start, chosen.elements, chosen.max_memory)
    peer = lbfgsb_run if chosen.one == "l-bfgs-b" else lmbm_run
    return peer(name, d, start, chosen.calls, chosen.max_time)


class Kept:
    """Results in a file, one JSON line each; those of this commit are not made again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.commit = describe_commit()
        lines = path.read_text().splitlines() if path.exists() else []
        self.results = [json.loads(line) for line in lines]

    def run(self, question: dict[str, Any], *args: str) -> dict[str, Any]:
        """Return what is kept of this run, or make it."""
        question = {"commit": self.commit, **question}
        for result in self.results:
            if result["question"] == question:
                answer: dict[str, Any] = result["answer"]
                return answer
        answer = in_a_process(*args)
        if "failed" in answer:
            return answer
        self.results.append({"question": question, "answer": answer})
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a") as file:
            file.write(json.dumps(self.results[-1]) + "\n")
        return answer


def describe_commit() -> str:
    """Return the commit of this clone, with a mark where files differ from it."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=Path(__file__).parent
    )
    return done.stdout.strip() or "unknown"


def _compared(
    name: str, d: int, start: int, chosen: argparse.Namespace, lmbm: bool, kept: Kept
) -> str:
    """Run one problem, ours and theirs."""
    elements = d >= AS_ELEMENTS.get(name, math.inf) or (chosen.elements and name in ELEMENTS)
    asked = {"problem": name, "d": d, "start": start, "elements": elements}
    which = ["--problems", name, "--dims", str(d), "--starts", str(start)]
    own = ["--max-time", str(chosen.max_time), *(["--elements"] if elements else [])]
    if chosen.max_memory:
        own += ["--max-memory", str(chosen.max_memory)]
    limits = {"max_time": chosen.max_time, "max_memory": chosen.max_memory}
    ours = kept.run({**asked, **limits, "who": "own"}, "--one", "own", *which, *own)
    calls = max(LEAST_CALLS, ours.get("calls", 0))
    seconds = max(LEAST_SECONDS, min(chosen.peer_time, math.ceil(ours.get("cpu", 0.0))))
    most = ["--calls", str(calls), "--max-time", str(seconds)]
    peers = []
    for who in ("l-bfgs-b", "lmbm") if lmbm else ("l-bfgs-b",):
        peers.append(kept.run({**asked, "who": who}, "--one", who, *which, *most))
    return row(name, d, start, elements, ours, *peers, *([] if lmbm else [{}]))


def write_page(kept: Kept) -> None:
    """Put the table of the commit that was run last between the marks of the page."""
    commit = kept.results[-1]["question"]["commit"]
    rows: dict[tuple[Any, ...], dict[str, Any]] = {}
    for result in kept.results:
        asked = result["question"]
        if asked["commit"] == commit:
            key = (asked["d"], asked["start"], PROBLEMS.index(asked["problem"]), asked["elements"])
            rows.setdefault(key, {})[asked["who"]] = result["answer"]
    table = [f"Commit {commit}.", "", HEADER]
    for (d, start, which, elements), found in sorted(rows.items()):
        peers = [found.get(who, {}) for who in ("l-bfgs-b", "lmbm")]
        table.append(row(PROBLEMS[which], d, start, elements, found["own"], *peers))
    text = PAGE.read_text()
    before, rest = text.split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    PAGE.write_text("\n".join([before + MARKS[0], "", *table, "", MARKS[1] + after]))


if __name__ == "__main__":
    main()
