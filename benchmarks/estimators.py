"""Speed, growth and memory of RhoMarginSVC against LinearSVC, in one run.

    python -m benchmarks.estimators --rows 100000 1000000 --sparse

CPU seconds of this process, best of the repeats; the two machines take turns. The fit of
RhoMarginSVC includes its certificate; the column `verify` is an independent check of it, from the
data. Memory is X and the peak of what the fit allocated, in units of X.
"""

from __future__ import annotations

import argparse
import json
import time
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from goldstein.sklearn import RhoMarginSVC

RESULTS = Path(__file__).parent / "studies" / "results" / "estimators.jsonl"


def dense_data(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes with a soft border, and 3 % of the labels flipped."""
    rng = np.random.default_rng(seed)
    w = rng.standard_normal(d)
    X = rng.standard_normal((n, d))
    y = (X @ w / np.linalg.norm(w) + 0.1 * rng.standard_normal(n) > 0).astype(int)
    flipped = rng.random(n) < 0.03
    y[flipped] = 1 - y[flipped]
    return X, y


def text_data(n: int, d: int, per_row: int, seed: int = 0) -> tuple[Any, np.ndarray]:
    """Rows of few words with falling frequencies, unit length; some words tell the class."""
    rng = np.random.default_rng(seed)
    words = np.minimum((d * rng.random((n, per_row)) ** 3).astype(np.int64), d - 1)
    X = sparse.csr_matrix(
        (np.ones(n * per_row), words.ravel(), np.arange(0, n * per_row + 1, per_row)), shape=(n, d)
    )
    X.sum_duplicates()
    X = sparse.diags(1.0 / sparse.linalg.norm(X, axis=1)) @ X
    w = rng.standard_normal(d) * (rng.random(d) < 0.2)
    score = X @ w
    y = (score + 0.3 * score.std() * rng.standard_normal(n) > 0).astype(int)
    return X.tocsr(), y


def cpu(fit: Any) -> tuple[float, Any]:
    begin = time.process_time()
    answer = fit()
    return time.process_time() - begin, answer


def compare(label: str, X: Any, y: np.ndarray, repeats: int, certificate: str) -> dict[str, Any]:
    ours, theirs = [], []
    for _ in range(repeats):
        theirs.append(cpu(lambda: LinearSVC(dual="auto").fit(X, y)))
        ours.append(cpu(lambda: RhoMarginSVC(certificate=certificate, random_state=0).fit(X, y)))
    machine, peer = ours[0][1], theirs[0][1]
    check, found = cpu(lambda: machine.certificate_.verify(machine.objectives(X, y)[0]))
    row = {
        "data": label, "rows": X.shape[0], "features": X.shape[1], "certificate": certificate,
        "fit": min(t for t, _ in ours), "LinearSVC": min(t for t, _ in theirs), "verify": check,
        "eps": found.eps, "delta": found.delta, "verified": found.ok, "label": found.label,
        "accuracy": machine.score(X, y), "LinearSVC_accuracy": peer.score(X, y),
    }  # fmt: skip
    row["ratio"] = row["fit"] / row["LinearSVC"]
    size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    tracemalloc.start()
    RhoMarginSVC(certificate=certificate, random_state=0).fit(X, y)
    row["memory"] = 1.0 + tracemalloc.get_traced_memory()[1] / size
    tracemalloc.stop()
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000])
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--sparse", action="store_true")
    parser.add_argument("--certificates", nargs="*", default=["near", "goldstein"])
    arguments = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    with threadpool_limits(1), RESULTS.open("a") as file:
        for certificate in arguments.certificates:
            for n in arguments.rows:
                X, y = dense_data(n, arguments.features)
                row = compare("dense", X, y, arguments.repeats, certificate)
                print(json.dumps(row), file=file, flush=True)
                print(row)
            if arguments.sparse:
                row = compare("text", *text_data(100_000, 100_000, 60), 1, certificate)
                print(json.dumps(row), file=file, flush=True)
                print(row)


if __name__ == "__main__":
    main()
