"""Reproduce the ramp column of Fujiwara, Takeda and Kanamori (2017) on pima.

    python -m benchmarks.studies.pima_ramp --trials 30

The ramp loss min(1 - s, max(0, 1 - u)) is (1 - s) phi_{1-s}(u - s): `RhoMarginSVC.from_ramp(s, C)`.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from benchmarks.studies.corruption import corrupt
from benchmarks.studies.datasets import load
from sklearn.svm import LinearSVC

from goldstein.sklearn import RhoMarginSVC

PUBLISHED = {0.0: (0.765, 0.764), 0.05: (0.738, 0.754), 0.10: (0.682, 0.742), 0.15: (0.658, 0.730)}
GRID = 5.0 ** np.arange(-4, 5)
RESULTS = Path(__file__).parent / "results" / "pima_ramp.jsonl"


def trial(level: float, seed: int) -> dict[str, float]:
    """One split: choose C and s on the validation part, report clean test accuracy."""
    X, y = load("pima")
    rng = np.random.default_rng([seed, round(1000 * level)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    order = rng.permutation(len(y))
    train, valid, test = np.split(order, [307, 537])
    A, a = corrupt(X[train], y[train], "feature_outliers", level, rng)
    B, b = corrupt(X[valid], y[valid], "feature_outliers", level, rng)
    pairs = [(s, C) for s in (-1.0, 0.0, 0.5) for C in GRID]
    machines = [RhoMarginSVC.from_ramp(s, C, certificate="goldstein") for s, C in pairs]
    ramp = _best(machines, A, a, B, b)
    hinge = _best([LinearSVC(loss="hinge", C=C, max_iter=2000) for C in GRID], A, a, B, b)
    final = ramp.set_params(certificate="near").fit(A, a)
    verified = final.certificate_.verify(final.objective(A, a))
    return {
        "level": level, "seed": seed, "hinge": hinge.score(X[test], y[test]),
        "ramp": final.score(X[test], y[test]), "verified": verified.ok, "label": verified.label,
        "near": final.near_stationarity_ is not None, "eps": verified.eps,
    }  # fmt: skip


def _best(machines, A, a, B, b):  # type: ignore[no-untyped-def]
    return max((m.fit(A, a) for m in machines), key=lambda m: m.score(B, b))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=30)
    arguments = parser.parse_args()
    RESULTS.parent.mkdir(exist_ok=True)
    done = set()
    if RESULTS.exists():
        rows = [json.loads(line) for line in RESULTS.read_text().splitlines()]
        done = {(r["level"], r["seed"]) for r in rows}
    with RESULTS.open("a") as file:
        for seed in range(arguments.trials):
            for level in PUBLISHED:
                if (level, seed) not in done:
                    file.write(json.dumps(trial(level, seed)) + "\n")
                    file.flush()


if __name__ == "__main__":
    main()
