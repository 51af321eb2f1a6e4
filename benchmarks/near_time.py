"""What a near proof costs beside the fit: scikit-learn's own data sets, default parameters.

    python -m benchmarks.near_time
    python -m benchmarks.near_time --expressions    # beside a plain run: plain code, and six larger

One row per data set and estimator. `fit` is the time with `certificate="goldstein"`, `with proof`
that with `certificate="near"`, both the CPU seconds of one thread and the fastest of three, and
`ratio` the second over the first; the proof may take as long as the fit and two seconds more.
Prints a Markdown table.

With `--expressions`: the functions of `benchmarks.plain_code` that can be traced, Chebyshev fits,
an enclosing circle and facilities, each searched with `stationarity="goldstein"` and "near", both
with all defaults at eps = delta = 1e-3. A near run must not end with less than the plain one.
"""

from __future__ import annotations

import argparse
import math
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from benchmarks.plain_code import FUNCTIONS
from sklearn import datasets
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import goldstein as gs
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


def larger() -> Iterator[tuple[str, Any, Any]]:
    """Yield names, expressions and starts: pivots where many kinks meet."""
    grid = np.linspace(0.0, math.pi, 440)
    edge = (grid < 1.1) | (grid > 1.3)
    tables = {
        "FIR filter 400 x 21": (np.cos(np.outer(grid[:400], np.arange(21))), grid[:400] < 1.2),
        "FIR filter, no edge": (np.cos(np.outer(grid[edge], np.arange(21))), grid[edge] < 1.2),
    }
    for seed in range(2):
        rng = np.random.default_rng(seed)
        tables[f"Chebyshev fit {seed}"] = rng.standard_normal((400, 21)), rng.standard_normal(400)
    for name, (table, wanted) in tables.items():
        coefficients = gs.Variable(21)
        yield name, gs.max(abs(table @ coefficients - wanted.astype(float))), np.zeros(21)
    rng = np.random.default_rng(0)
    places, x = rng.standard_normal((25, 2)), gs.Variable(2)
    yield "enclosing circle", gs.max([gs.norm2(x - p) for p in places]), np.zeros(2)
    places, x = rng.standard_normal((60, 2)), gs.Variable(6)
    ways = [gs.min([gs.norm2(x[2 * k : 2 * k + 2] - p) for k in range(3)]) for p in places]
    yield "facilities", sum(ways), rng.standard_normal(6)


def expressions() -> Iterator[tuple[str, Any, Any]]:
    for name, (_, f, x0) in FUNCTIONS.items():
        try:
            yield name, gs.trace(f, x0), x0
        except TypeError:
            continue  # refused in words: nothing to be near of
    yield from larger()


def compared(repeats: int) -> Iterator[tuple[list[str], float, bool]]:
    """Yield a row, the seconds of both runs, and whether near gave less than plain."""
    for name, f, x0 in expressions():

        def run(kind: str, f: Any = f, x0: Any = x0) -> Any:
            return gs.minimize(f, x0, eps=1e-3, delta=1e-3, rng=0, stationarity=kind)

        fast, plain = seconds(lambda: run("goldstein"), repeats)
        slow, near = seconds(lambda: run("near"), repeats)
        found, other = near.certificate, plain.certificate
        less = other is not None and (
            found is None
            or found.eps > max(other.eps, 1e-3)
            or found.delta > max(other.delta, 1e-3)
        )
        less = less or not (found is None or found.verify(f).ok)
        said = "proved" if near.success else near.status.name
        yield [name, f"{fast:.2f}", f"{slow:.2f}", f"{slow / fast:.1f}", said,
               "**less**" if less else ""], slow - 2.0 * fast, less  # fmt: skip


def compare(repeats: int) -> None:
    print("| function | plain, s | near, s | ratio | near | |\n|---|---|---|---|---|---|")
    over, less = [], 0
    for row, excess, weaker in compared(repeats):
        print("| " + " | ".join(row) + " |", flush=True)
        over.append(excess)
        less += weaker
    within = sum(e <= 0.5 for e in over)
    print(f"{len(over)} functions: {less} with less than plain; {within} within twice the time "
          f"and half a second, {sum(e <= 2.0 for e in over)} and two seconds")  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--expressions", action="store_true")
    asked = parser.parse_args()
    repeats = asked.repeats
    warnings.simplefilter("ignore", ConvergenceWarning)
    if asked.expressions:
        with threadpool_limits(1):
            return compare(repeats)
    header = ["data", "features", "estimator", "fit, s", "with proof, s", "ratio", "verify, s",
              "near"]  # fmt: skip
    with threadpool_limits(1):
        print("| " + " | ".join(header) + " |")
        print("|" + "---|" * len(header))
        for row in rows(repeats):
            print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    main()
