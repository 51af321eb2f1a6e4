"""Defaults of RhoMarginSVC: truncation, penalty, class weights, all classes at once or one by one.

    python -m benchmarks.studies.defaults

The sets are none of those of the robust study. On the sets of choice the defaults were chosen; the
sets of confirmation were looked at once they were. Every method has its default parameters, but for
the variants, which differ from the default RhoMarginSVC in one thing:

* Half of the rows train (at most 400), the rest (at most 2000) test; features are standardised by
  the training rows. A share of the training labels is exchanged for another class, at random.
* Reported: test accuracy minus that of LinearSVC on the same split.

Finished runs are kept in results/defaults.jsonl; `python -m benchmarks.studies.condense` writes the
numbers of the tables to results/defaults.csv, and `python -m benchmarks.studies.report` puts the
tables into the docs.
"""

from __future__ import annotations

import argparse
import collections
import json
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from benchmarks.studies.datasets import Data, load
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from goldstein.sklearn import RhoMarginSVC

MADE = {
    "made": {"n_features": 20, "n_informative": 5},
    "made, wide": {"n_features": 100, "n_informative": 10},
    "made, rare class": {"n_features": 20, "n_informative": 5, "weights": [0.8]},
    "made, hard": {"n_features": 50, "n_informative": 20, "class_sep": 0.7},
    "made, four classes": {
        "n_features": 20, "n_informative": 8, "n_classes": 4, "n_clusters_per_class": 1,
    },
}  # fmt: skip
GROUPS = {
    "two classes, choice": (
        "musk", "mammographic", "saheart", "bands", "spam", "ring", "housevotes", "bupa", "magic",
        "chess", "made", "made, wide", "made, rare class",
    ),
    "two classes, confirmation": (
        "mushroom", "monk-2", "breast", "tic-tac-toe", "titanic", "made, hard",
    ),
    "more classes, choice": (
        "wine", "vehicle", "segment", "contraceptive", "vowel", "texture", "made, four classes",
    ),
    "more classes, confirmation": ("iris", "digits", "letter", "satimage", "splice", "penbased"),
}  # fmt: skip
LEVELS = (0.0, 0.1, 0.2, 0.3)
MOST_ROWS = 400
FIRST_SEED = 100
RESULTS = Path(__file__).parent / "results" / "defaults.jsonl"

PEERS = {
    "LinearSVC": LinearSVC(random_state=0),
    "LinearSVC(loss='hinge')": LinearSVC(loss="hinge", random_state=0),
    "LogisticRegression": LogisticRegression(max_iter=1000),
}

#: What each variant changes; C is in units of the default one.
VARIANTS: dict[str, dict[str, Any]] = {
    "before: rho=1, C=1, one against the rest": {"rho": 1.0, "C": None, "multi_class": "ovr"},
    "truncation 0": {"rho": 1.0},
    "truncation -2": {"shift": -2.0},
    "C / 4": {"factor": 0.25},
    "C x 4": {"factor": 4.0},
    "class_weight='balanced'": {"class_weight": "balanced"},
    "one against the rest": {"multi_class": "ovr"},
}


def data(name: str, seed: int) -> Data:
    if name in MADE:
        return make_classification(1500, random_state=seed, **MADE[name])
    return load(name)


def split(name: str, level: float, seed: int) -> tuple[Data, Data]:
    """Return standardised training rows with some wrong labels, and test rows."""
    X, y = data(name, seed)
    rng = np.random.default_rng([seed, round(100 * level)])
    order = rng.permutation(len(y))
    half = min(len(y) // 2, MOST_ROWS)
    train, test = order[:half], order[half : half + 2000]
    centre, size = X[train].mean(axis=0), X[train].std(axis=0)
    size[size == 0] = 1.0
    classes, labels = np.unique(y, return_inverse=True)
    spoiled = labels[train].copy()
    wrong = rng.choice(half, round(level * half), replace=False)
    spoiled[wrong] = (spoiled[wrong] + rng.integers(1, len(classes), len(wrong))) % len(classes)
    return ((X[train] - centre) / size, spoiled), ((X[test] - centre) / size, labels[test])


def variant(name: str, default: RhoMarginSVC) -> RhoMarginSVC:
    """Return the machine of a variant, given the fitted default one."""
    options: dict[str, Any] = {"certificate": "goldstein", "random_state": 0} | VARIANTS[name]
    if "factor" in options:
        options["C"] = options.pop("factor") * default.C_
    if name.startswith("before"):
        options["C"] = 1.0
    return RhoMarginSVC(**options)


def run(
    name: str, level: float, seed: int, known: set[str], variants: bool
) -> list[dict[str, object]]:
    (A, a), (B, b) = split(name, level, seed)
    rows = []

    def score(title: str, machine: Any) -> Any:
        begin = time.process_time()
        machine.fit(A, a)
        if title not in known:
            rows.append(
                {"set": name, "level": level, "seed": seed, "method": title,
                 "accuracy": machine.score(B, b), "cpu": time.process_time() - begin}
            )  # fmt: skip
        return machine

    wanted = [v for v in VARIANTS if variants and v not in known]
    if len(np.unique(a)) == 2:
        wanted = [v for v in wanted if v != "one against the rest"]
    if set(PEERS) | {"RhoMarginSVC"} <= known and not wanted:
        return []
    for title, peer in PEERS.items():
        score(title, clone(peer))
    default = score("RhoMarginSVC", RhoMarginSVC(certificate="goldstein", random_state=0))
    for title in wanted:
        score(title, variant(title, default))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=6)
    parser.add_argument("--variant-repeats", type=int, default=3, help="on the sets of choice")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    done: dict[object, set[str]] = collections.defaultdict(set)
    if RESULTS.exists():
        for r in map(json.loads, RESULTS.read_text().splitlines()):
            done[r["set"], r["level"], r["seed"]].add(r["method"])
    with RESULTS.open("a") as file:
        for repeat in range(arguments.repeats):
            for group, names in GROUPS.items():
                variants = "choice" in group and repeat < arguments.variant_repeats
                for name in names:
                    for level in LEVELS:
                        seed = FIRST_SEED + repeat
                        known = done[name, level, seed]
                        for row in run(name, level, seed, known, variants):
                            file.write(json.dumps(row) + "\n")
                        file.flush()


if __name__ == "__main__":
    main()
