"""ReLU networks against scikit-learn's at equal width.

    python -m benchmarks.studies.networks --repeats 12

Half of the rows train (at most 400 rows), the rest test; features standardised; each method chooses
its penalty by 3-fold cross-validation. MLP: Adam, at most 1000 epochs, targets standardised.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from benchmarks.studies.datasets import load
from sklearn.compose import TransformedTargetRegressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor

REGRESSION = ("diabetes", "puma32h")
CLASSIFICATION = ("wine", "pima", "ionosphere", "heart")
WIDTH = 8
PENALTIES = [1e-3, 1e-2, 1e-1]
RESULTS = Path(__file__).parent / "results" / "networks.jsonl"


def run(name: str, seed: int) -> list[dict[str, object]]:
    X, y = load(name)
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(y))
    half = min(len(y) // 2, 400)
    train, test = order[:half], order[half : half + 2000]
    scaler = StandardScaler().fit(X[train])
    A, B = scaler.transform(X[train]), scaler.transform(X[test])
    options = {"max_iter": 1000, "random_state": seed}
    ours: object
    theirs: object
    if name in REGRESSION:
        ours = ReLUNetRegressor(WIDTH, certificate="goldstein", random_state=seed)
        inner = MLPRegressor(hidden_layer_sizes=(WIDTH,), **options)
        theirs = TransformedTargetRegressor(inner, transformer=StandardScaler())
        grid = {"regressor__alpha": [half * p for p in PENALTIES]}
    else:
        ours = ReLUNetClassifier(WIDTH, certificate="goldstein", random_state=seed)
        theirs = MLPClassifier(hidden_layer_sizes=(WIDTH,), **options)
        grid = {"alpha": [half * p for p in PENALTIES]}
    rows = []
    for method, estimator, choices in (
        ("ReLUNet", ours, {"ridge": PENALTIES}),
        ("MLP", theirs, grid),
    ):
        begin = time.process_time()
        search = GridSearchCV(estimator, choices, cv=3, refit=False).fit(A, y[train])
        estimator.set_params(**search.best_params_)
        if method == "ReLUNet":
            estimator.set_params(certificate="near")
        estimator.fit(A, y[train])
        row = {
            "set": name, "seed": seed, "method": method, "score": estimator.score(B, y[test]),
            "cpu": time.process_time() - begin,
        }  # fmt: skip
        if method == "ReLUNet":
            found = estimator.certificate_.verify(estimator.objective(A, y[train]))
            row |= {"verified": found.ok, "label": found.label, "eps": found.eps}
        rows.append(row)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    RESULTS.parent.mkdir(exist_ok=True)
    done = set()
    if RESULTS.exists():
        done = {(r["set"], r["seed"]) for r in map(json.loads, RESULTS.open())}
    with RESULTS.open("a") as file:
        for seed in range(arguments.repeats):
            for name in (*REGRESSION, *CLASSIFICATION):
                if (name, seed) in done:
                    continue
                for row in run(name, seed):
                    file.write(json.dumps(row) + "\n")
                file.flush()


if __name__ == "__main__":
    main()
