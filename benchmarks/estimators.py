"""Speed, growth, memory and accuracy of RhoMarginSVC against LinearSVC, in one run.

    python -m benchmarks.estimators dense text genes

Every fit runs in a process of its own, one thread, the two machines in turn. Seconds are CPU
seconds of the fit, best of the repeats. Memory is the peak of the process during the fit minus what
it held before the data, in units of the data. The fit of RhoMarginSVC includes its certificate and
its proof; `verify` is an independent check of it, from the data. Test rows carry clean labels.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

RESULTS = Path(__file__).parent / "studies" / "results" / "estimators.jsonl"

#: Name of a set of cases: (kind, rows, features) each.
CASES = {
    "dense": [("dense", n, 50) for n in (1_000, 10_000, 100_000)],
    "growth": [("dense", n, 50) for n in (300_000, 1_000_000)],
    "text": [("text", 5_000, 20_000), ("text", 20_000, 20_000), ("text", 100_000, 100_000)],
    "genes": [("genes", 72, 7129), ("genes", 500, 500), ("genes", 1000, 1000)],
}

#: The machines; the last number is the truncation s of the ramp loss, None for LinearSVC.
MACHINES: dict[str, tuple[str, float | None]] = {
    "LinearSVC": ("", None),
    "near": ("near", 0.0),
    "goldstein": ("goldstein", 0.0),
    "near, s = -1": ("near", -1.0),
}


def dense_data(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes with a soft border, and 3 % of the labels flipped."""
    X, _, spoiled = dense_rows(n, d, seed)
    return X, spoiled


def dense_rows(n: int, d: int, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return rows, clean labels and labels of which 3 % are flipped."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    X = rng.standard_normal((n, d))
    y = (X @ w / np.linalg.norm(w) + 0.1 * rng.standard_normal(n) > 0).astype(int)
    return X, y, np.where(rng.random(n) < 0.03, 1 - y, y)


def text_rows(n: int, d: int, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Bags of some 75 words: Zipf frequencies, tf-idf, unit length; 5 % of the labels flipped.

    The clean labels are those of a linear rule in which a fifth of the words take part.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / np.arange(1, d + 1)
    lengths = np.maximum(rng.poisson(75, n), 5)
    ladder = np.cumsum(frequency) / frequency.sum()
    words = np.minimum(np.searchsorted(ladder, rng.random(int(lengths.sum()))), d - 1)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    X = sparse.csr_matrix((np.ones(words.size), words, starts), shape=(n, d))
    X.sum_duplicates()
    rarity = np.log((1 + n) / (1 + np.bincount(X.indices, minlength=d))) + 1
    X.data = (1 + np.log(X.data)) * rarity[X.indices]
    X = (sparse.diags(1.0 / sparse.linalg.norm(X, axis=1)) @ X).tocsr()
    score = X @ (rng.standard_normal(d) * (rng.random(d) < 0.2))
    y = (score > np.median(score)).astype(int)
    return X, y, np.where(rng.random(n) < 0.05, 1 - y, y)


def gene_rows(n: int, d: int, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Standardised expression levels: ten common factors, 2 % of the genes tell the class."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 2)
    X = rng.standard_normal((n, d))
    X += 0.5 * rng.standard_normal((n, 10)) @ rng.standard_normal((10, d))
    X[:, : d // 50] += 0.8 * (2 * y - 1)[:, None]
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    return X, y, y


ROWS = {"dense": dense_rows, "text": text_rows, "genes": gene_rows}


def cpu(action: Any) -> tuple[float, Any]:
    begin = time.process_time()
    answer = action()
    return time.process_time() - begin, answer


def with_peak(action: Any) -> tuple[int, Any]:
    """Return the peak of this process while something runs; Linux can forget the earlier one."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    answer = action()
    return _status("VmHWM") - before, answer


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith(field)).split()[1])


def measure(kind: str, n: int, d: int, machine: str, repeats: int) -> dict[str, Any]:
    """Fit one machine, in this process."""
    from sklearn.svm import LinearSVC

    from goldstein.sklearn import RhoMarginSVC

    extra = max(n // 5, 1000)
    everything, clean, spoiled = ROWS[kind](n + extra, d)
    X, y = everything[:n].copy(), spoiled[:n]
    test, labels = everything[n:].copy(), clean[n:]
    del everything
    certificate, s = MACHINES[machine]

    def fit() -> Any:
        if s is None:
            return LinearSVC(dual="auto").fit(X, y)
        return RhoMarginSVC.from_ramp(s, C=1.0, certificate=certificate, random_state=0).fit(X, y)

    warnings.simplefilter("ignore")
    fit_small = ROWS["dense"](200, 5)
    RhoMarginSVC().fit(fit_small[0], fit_small[2])  # imports and caches do not count
    # Memory of the first fit: later ones reuse what it freed.
    peak, (seconds, fitted) = with_peak(lambda: cpu(fit))
    seconds = min([seconds, *(cpu(fit)[0] for _ in range(repeats - 1))])
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    row = {
        "data": kind, "rows": n, "features": d, "machine": machine, "fit": seconds,
        "train": fitted.score(X, y), "test": fitted.score(test, labels),
        "memory": 1.0 + peak / size,
    }  # fmt: skip
    if s is not None:
        row["verify"], found = cpu(lambda: fitted.certificate_.verify(fitted.objective(X, y)))
        row |= {"eps": found.eps, "delta": found.delta, "verified": found.ok, "label": found.label}
        row["outliers"] = float(fitted.outliers_.mean())
    return row


def in_own_process(case: tuple[str, int, int], machine: str, repeats: int) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.estimators", "--one", json.dumps([*case, machine])]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [*command, "--repeats", str(repeats)], env=environment, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=["dense", "text", "genes"])
    parser.add_argument("--machines", nargs="*", default=list(MACHINES))
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        kind, n, d, machine = json.loads(arguments.one)
        print(json.dumps(measure(kind, n, d, machine, arguments.repeats)))
        return
    RESULTS.parent.mkdir(exist_ok=True)
    with RESULTS.open("a") as file:
        for name in arguments.cases:
            for case in CASES[name]:
                base: dict[str, Any] = {}
                for machine in arguments.machines:
                    row = in_own_process(case, machine, arguments.repeats)
                    base = base or row
                    row["ratio"] = row["fit"] / base["fit"]
                    print(json.dumps(row), file=file, flush=True)
                    print(table_line(row, base), flush=True)


def table_line(row: dict[str, Any], base: dict[str, Any]) -> str:
    """One line of the table in docs/estimator_studies.md."""
    proof = "" if "eps" not in row else f"{row['label']}, {row['eps']:.1e}"
    check = "" if "eps" not in row else f"{row['verify']:.2f}"
    return (
        f"| {row['data']} | {row['rows']:,} x {row['features']:,} | {row['machine']} "
        f"| {row['fit']:.2f} | {row['fit'] / base['fit']:.2f} | {check} | {row['memory']:.1f} "
        f"| {proof} | {row['train']:.3f} | {row['test']:.3f} |"
    )


if __name__ == "__main__":
    main()
