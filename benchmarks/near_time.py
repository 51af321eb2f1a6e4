"""What a near proof costs beside the fit: scikit-learn's own data sets, default parameters.

    python -m benchmarks.near_time

One row per data set and estimator. `fit` is the time with `certificate="goldstein"`, `with proof`
that with `certificate="near"`, both the CPU seconds of one thread and the fastest of three, and
`ratio` the second over the first; the proof may take as long as the fit and two seconds more.
Prints a Markdown table.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from sklearn import datasets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from goldstein.sklearn import ReLUNetClassifier, ReLUNetRegressor, RhoMarginSVC

CLASSIFIERS: dict[str, Any] = {
    "RhoMarginSVC()": RhoMarginSVC(random_state=0),
    "RhoMarginSVC(multi_class='ovr')": RhoMarginSVC(multi_class="ovr", random_state=0),
    "ReLUNetClassifier()": ReLUNetClassifier(random_state=0),
}
REGRESSORS: dict[str, Any] = {"ReLUNetRegressor()": ReLUNetRegressor(random_state=0)}
SETS = {
    "digits": CLASSIFIERS,
    "wine": CLASSIFIERS,
    "breast_cancer": {k: v for k, v in CLASSIFIERS.items() if "ovr" not in k},
    "diabetes": REGRESSORS,
}


def seconds(work: Callable[[], Any], repeats: int) -> tuple[float, Any]:
    """Return the fewest CPU seconds of some repeats, and the last answer."""
    taken = []
    for _ in range(repeats):
        begin = time.process_time()
        answer = work()
        taken.append(time.process_time() - begin)
    return min(taken), answer


def rows(repeats: int) -> Iterator[list[str]]:
    for name, estimators in SETS.items():
        raw, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        for scaled in (True, False):
            X = StandardScaler().fit_transform(raw) if scaled else raw
            for title, estimator in estimators.items():
                plain = clone(estimator).set_params(certificate="goldstein")
                fit, _ = seconds(lambda: plain.fit(X, y), repeats)  # noqa: B023
                both, found = seconds(lambda: clone(estimator).fit(X, y), repeats)  # noqa: B023
                certificate = found.certificate_
                check, ok = seconds(
                    lambda: certificate.verify(found.objective(X, y)).ok,  # noqa: B023
                    repeats,
                )
                yield [
                    name, "standardised" if scaled else "as they are", title, f"{fit:.2f}",
                    f"{both:.2f}", f"{both / fit:.1f}", f"{check:.2f}" + ("" if ok else " FAILED"),
                    certificate.meta["near"],
                ]  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", ConvergenceWarning)
    header = ["data", "features", "estimator", "fit, s", "with proof, s", "ratio", "verify, s",
              "near"]  # fmt: skip
    with threadpool_limits(1):
        print("| " + " | ".join(header) + " |")
        print("|" + "---|" * len(header))
        for row in rows(repeats):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
