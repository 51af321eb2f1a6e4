"""Regressors and classifiers against statsmodels, scikit-learn and skglm, on real data.

    python -m benchmarks.fields robust quantiles sparse held_out networks > benchmarks/fields.md

The protocol was fixed before the first run. Data ship with scikit-learn and statsmodels; features
and targets are standardised; random splits, 70 % of the rows to train. Contamination of 20 % of the
training rows: `targets` adds 10 standard deviations to y, `leverage` adds 10 to every other feature
too. Test rows are always clean. Numbers are means over splits with their standard errors.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn import datasets, linear_model
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import PolynomialFeatures, StandardScaler
from sklearn.svm import LinearSVC

from goldstein.sklearn import (
    QuantileRegressor,
    ReLUNetClassifier,
    RobustRegressor,
    SparseRegressor,
)

#: Rows at most, drawn once: the comparison is about answers, not about size.
ROWS = 400
SPLITS = 5


def regression_data() -> Iterator[tuple[str, Any, Any]]:
    """Yield names, standardised features and targets."""
    import statsmodels.api as sm

    tables: dict[str, tuple[Any, Any]] = {}
    tables["diabetes"] = datasets.load_diabetes(return_X_y=True)
    exercise, body = datasets.load_linnerud(return_X_y=True)
    tables["linnerud"] = exercise, body[:, 0]
    for name in ("stackloss", "engel", "statecrime", "ccard", "cancer", "copper", "star98", "fair"):
        data = getattr(sm.datasets, name).load()
        y = np.asarray(data.endog, dtype=float)
        tables[name] = np.asarray(data.exog, dtype=float), y[:, 0] if y.ndim > 1 else y
    for name, (X, y) in tables.items():
        X = X[:, X.std(axis=0) > 0]
        some = np.random.default_rng(0).permutation(len(y))[:ROWS]
        X, y = X[some], y[some]
        yield name, StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


def contaminated(X: Any, y: Any, how: str, rng: np.random.Generator) -> tuple[Any, Any]:
    X, y = X.copy(), y.copy()
    rows = rng.permutation(len(y))[: len(y) // 5]
    if how != "clean":
        y[rows] += 10.0
    if how == "leverage":
        X[rows, ::2] += 10.0
    return X, y


class _Tukey:
    """The M-estimate of statsmodels with Tukey's loss."""

    def fit(self, X: Any, y: Any) -> _Tukey:
        import statsmodels.api as sm

        model = sm.RLM(y, sm.add_constant(X, has_constant="add"), M=sm.robust.norms.TukeyBiweight())
        self.theta = model.fit(maxiter=200).params
        return self

    def predict(self, X: Any) -> Any:
        return self.theta[0] + X @ self.theta[1:]


def robust() -> None:
    """Print the mean absolute error on clean rows, in units of that of the training median."""
    own = {
        "tukey": lambda: RobustRegressor(random_state=0),
        "trimmed": lambda: RobustRegressor("trimmed", random_state=0),
        "huber": lambda: RobustRegressor("huber", random_state=0),
        "absolute": lambda: RobustRegressor("absolute", random_state=0),
    }
    peers: dict[str, Callable[[], Any]] = {
        "least squares": linear_model.LinearRegression,
        "sk Huber": lambda: linear_model.HuberRegressor(max_iter=1000),
        "sk RANSAC": lambda: linear_model.RANSACRegressor(random_state=0),
        "sk Theil-Sen": lambda: linear_model.TheilSenRegressor(
            random_state=0, max_subpopulation=300
        ),
        "sm RLM Tukey": _Tukey,
    }
    methods = {**own, **peers}
    print("\n## Robust regression\n\nMean absolute error on clean rows over that of the median.\n")
    print("| data | rows x features | training | " + " | ".join(methods) + " |")
    print("|---" * (3 + len(methods)) + "|")
    proved = minima = fits = 0
    wins: dict[str, list[Any]] = {}
    for name, X, y in regression_data():
        for how in ("clean", "targets", "leverage"):
            cells = []
            for label, make in methods.items():
                errors = []
                for split in range(SPLITS):
                    A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=split)
                    A, a = contaminated(A, a, how, np.random.default_rng(split))
                    base = np.abs(b - np.median(a)).mean()
                    if how != "clean":
                        base = np.abs(b - np.median(b)).mean()
                    try:
                        model = make().fit(A, a)
                        errors.append(np.abs(model.predict(B) - b).mean() / base)
                    except ValueError:
                        errors.append(np.inf)
                        continue
                    if label in own:
                        fits += 1
                        proved += model.near_stationarity_ is not None
                        minima += model.minimum_ is not None
                cells.append((np.mean(errors), np.std(errors) / SPLITS**0.5))
            wins.setdefault(how, []).append(np.argsort(np.argsort([m for m, _ in cells])) + 1)
            text = " | ".join(f"{m:.2f} ± {s:.2f}" for m, s in cells)
            print(f"| {name} | {X.shape[0]} x {X.shape[1]} | {how} | {text} |", flush=True)
    for how, ranks in wins.items():
        text = " | ".join(f"{r:.1f}" for r in np.mean(ranks, axis=0))
        print(f"| mean rank | | {how} | {text} |")
    print(f"\nNear stationarity proved in {proved} of {fits} fits, a minimum in {minima}.")


def quantiles() -> None:
    """Print objectives reached on all rows, and what was proved."""
    import statsmodels.api as sm

    print(
        "\n## Quantile regression\n\nMean pinball loss on the training rows (all of them, clean).\n"
    )
    print("| data | quantile | ours | proved gap | scope | s | statsmodels - ours | s "
          "| scikit-learn - ours | s |")  # fmt: skip
    print("|---" * 10 + "|")
    for name, X, y in regression_data():
        for tau in (0.1, 0.5, 0.9):

            def loss(prediction: Any, y: Any = y, tau: float = tau) -> float:
                r = y - prediction
                return float(np.maximum(tau * r, (tau - 1) * r).mean())

            t = time.process_time()
            own = QuantileRegressor(tau, random_state=0).fit(X, y)
            times = [time.process_time() - t]
            found = loss(own.predict(X))
            t, A = time.process_time(), sm.add_constant(X)
            others = [loss(A @ sm.QuantReg(y, A).fit(q=tau, max_iter=5000).params)]
            times.append(time.process_time() - t)
            t = time.process_time()
            peer = linear_model.QuantileRegressor(quantile=tau, alpha=0.0).fit(X, y)
            others.append(loss(peer.predict(X)))
            times.append(time.process_time() - t)
            gap = "none" if own.gap_ is None else f"{own.gap_:.1e}"
            scope = "" if own.minimum_ is None else own.minimum_.scope
            print(
                f"| {name} | {tau} | {found:.6f} | {gap} | {scope} | {times[0]:.2f} | "
                f"{others[0] - found:.1e} | {times[1]:.2f} | {others[1] - found:.1e} | "
                f"{times[2]:.2f} |", flush=True,
            )  # fmt: skip


def sparse() -> None:
    """Print objectives at the same penalties, products of features included."""
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Quadratic
    from skglm.penalties import L1, SCAD, MCPenalty
    from skglm.solvers import AndersonCD

    kinds = {
        "l1": lambda a: L1(a),
        "mcp": lambda a: MCPenalty(a, 3.0),
        "scad": lambda a: SCAD(a, 3.7),
    }
    print("\n## Sparse regression\n\nObjective at a tenth of the least alpha that leaves nothing; "
          "features and their squares and products (60 columns at most).\n")  # fmt: skip
    print(
        "| data | rows x columns | penalty | ours | nonzero | proved | s | skglm - ours | nonzero |"
    )
    print("|---" * 9 + "|")
    for name, X, y in regression_data():
        Z = PolynomialFeatures(2, include_bias=False).fit_transform(X)[:, :60]
        Z = StandardScaler().fit_transform(Z[:, Z.std(axis=0) > 1e-9])
        alpha = 0.1 * float(np.abs(Z.T @ (y - y.mean())).max()) / len(y)
        for kind, make in kinds.items():
            t = time.process_time()
            own = SparseRegressor(alpha, penalty=kind, random_state=0).fit(Z, y)
            spent = time.process_time() - t
            solver = AndersonCD(tol=1e-10, fit_intercept=True, max_iter=200)
            peer = GeneralizedLinearEstimator(Quadratic(), make(alpha), solver).fit(Z, y)
            function = own.objective(Z, y)
            at = function.value(np.append(np.ravel(peer.coef_), peer.intercept_))
            claim = "stationary" if own.minimum_ is None else own.minimum_.said()
            print(
                f"| {name} | {Z.shape[0]} x {Z.shape[1]} | {kind} | {own.objective_:.6f} | "
                f"{np.count_nonzero(own.coef_)} | {claim} | {spent:.2f} | "
                f"{at - own.objective_:.1e} | {np.count_nonzero(peer.coef_)} |", flush=True,
            )  # fmt: skip


def held_out() -> None:
    """Print errors on clean test rows after clean and contaminated training, peer beside peer.

    Quantiles: pinball loss over that of the quantile of the clean test targets. Sparse: mean
    absolute error over that of their median, at a tenth of the least alpha that leaves nothing.
    """
    import statsmodels.api as sm
    from skglm import GeneralizedLinearEstimator
    from skglm.datafits import Quadratic
    from skglm.penalties import L1, MCPenalty
    from skglm.solvers import AndersonCD

    def quantile_losses(A: Any, a: Any, B: Any, b: Any) -> Iterator[float]:
        for tau in (0.5, 0.9):

            def loss(prediction: Any, tau: float = tau) -> float:
                return float(
                    np.maximum(tau * (b - prediction), (tau - 1) * (b - prediction)).mean()
                )

            base = loss(np.quantile(b, tau))
            own = QuantileRegressor(tau, certificate="goldstein", random_state=0).fit(A, a)
            yield loss(own.predict(B)) / base
            theta = sm.QuantReg(a, np.column_stack([np.ones(len(a)), A])).fit(q=tau, max_iter=5000)
            yield loss(theta.params[0] + B @ theta.params[1:]) / base
            peer = linear_model.QuantileRegressor(quantile=tau, alpha=0.0).fit(A, a)
            yield loss(peer.predict(B)) / base

    def sparse_errors(A: Any, a: Any, B: Any, b: Any) -> Iterator[float]:
        base = np.abs(b - np.median(b)).mean()
        make = PolynomialFeatures(2, include_bias=False).fit(A)
        A, B = make.transform(A)[:, :60], make.transform(B)[:, :60]
        some = A.std(axis=0) > 1e-9
        scale = StandardScaler().fit(A[:, some])
        A, B = scale.transform(A[:, some]), scale.transform(B[:, some])
        alpha = 0.1 * float(np.abs(A.T @ (a - a.mean())).max()) / len(a)
        solver = AndersonCD(tol=1e-8, fit_intercept=True, max_iter=200)
        for model in (
            SparseRegressor(alpha, penalty="l1", certificate="goldstein", random_state=0),
            GeneralizedLinearEstimator(Quadratic(), L1(alpha), solver),
            SparseRegressor(alpha, certificate="goldstein", random_state=0),
            GeneralizedLinearEstimator(Quadratic(), MCPenalty(alpha, 3.0), solver),
            SparseRegressor(alpha, loss="huber", certificate="goldstein", random_state=0),
        ):
            yield float(np.abs(model.fit(A, a).predict(B) - b).mean() / base)

    tables = {
        "Quantile regression": (
            quantile_losses,
            [f"{who}, {tau}" for tau in (0.5, 0.9) for who in ("ours", "statsmodels", "sklearn")],
        ),
        "Sparse regression": (
            sparse_errors, ["l1", "l1, skglm", "mcp", "mcp, skglm", "mcp, huber"],
        ),
    }  # fmt: skip
    for title, (errors, labels) in tables.items():
        print(f"\n## {title}, clean test rows\n\n| data | training | " + " | ".join(labels) + " |")
        print("|---" * (2 + len(labels)) + "|")
        for name, X, y in regression_data():
            for how in ("clean", "targets", "leverage"):
                rows = []
                for split in range(SPLITS):
                    A, B, a, b = train_test_split(X, y, test_size=0.3, random_state=split)
                    A, a = contaminated(A, a, how, np.random.default_rng(split))
                    rows.append(list(errors(A, a, B, b)))
                mean, spread = np.mean(rows, axis=0), np.std(rows, axis=0) / SPLITS**0.5
                text = " | ".join(f"{m:.3f} ± {s:.3f}" for m, s in zip(mean, spread))
                print(f"| {name} | {how} | {text} |", flush=True)


def networks() -> None:
    """Print the accuracy on rightly labelled rows, with right and wrong labels in training."""
    choices = {
        "ReLUNetClassifier()": {},
        "ridge=1e-3 (before)": {"ridge": 1e-3},
        "ridge=3e-2": {"ridge": 3e-2},
        "width=32": {"width": 32},
    }
    print("\n## Classification networks\n\nAccuracy on rightly labelled rows; `wrong` is the share "
          "of wrong training labels.\n")  # fmt: skip
    print(
        "| data | wrong | MLPClassifier() | LinearSVC() | " + " | ".join(choices)
        + " | s, ours | s, MLP |"
    )  # fmt: skip
    print("|---" * (6 + len(choices)) + "|")
    for load in (
        datasets.load_digits, datasets.load_wine, datasets.load_breast_cancer, datasets.load_iris,
    ):  # fmt: skip
        X, y = load(return_X_y=True)
        for wrong in (0.0, 0.2):
            rows: dict[str, list[float]] = {}
            spent: dict[str, float] = {}
            for split in range(3):
                A, B, a, b = train_test_split(X, y, random_state=split, stratify=y, test_size=0.3)
                scale = StandardScaler().fit(A)
                A, B, rng = scale.transform(A), scale.transform(B), np.random.default_rng(split)
                flipped = rng.random(len(a)) < wrong
                count = len(np.unique(y))
                a[flipped] = (a[flipped] + rng.integers(1, count, flipped.sum())) % count
                models: dict[str, Any] = {
                    "MLP": MLPClassifier(random_state=split), "SVC": LinearSVC(random_state=split),
                }  # fmt: skip
                for label, how in choices.items():
                    models[label] = ReLUNetClassifier(
                        random_state=split, certificate="goldstein", **how
                    )
                for label, model in models.items():
                    t = time.process_time()
                    rows.setdefault(label, []).append(model.fit(A, a).score(B, b))
                    spent[label] = spent.get(label, 0.0) + (time.process_time() - t) / 3
            text = " | ".join(f"{np.mean(v):.3f} ± {np.std(v) / 3**0.5:.3f}" for v in rows.values())
            seconds = f"{spent['ReLUNetClassifier()']:.1f} | {spent['MLP']:.1f}"
            print(f"| {load.__name__[5:]} | {wrong} | {text} | {seconds} |", flush=True)


def main() -> None:
    warnings.simplefilter("ignore")
    parts = {
        "robust": robust, "quantiles": quantiles, "sparse": sparse, "held_out": held_out,
        "networks": networks,
    }  # fmt: skip
    for part in sys.argv[1:] or parts:
        parts[part]()


if __name__ == "__main__":
    main()
