"""Gene expression, fewer samples than genes: a guarantee that is known before the fit.

The data matrix is onto, so the calculus knows in advance which Goldstein target makes a near
stationary point: ask for (eps, delta)-near, get (eps', delta'), solve for that, verify. The proof
that is checked afterwards, kink by kink, confirms it with much smaller numbers.

    python examples/robust_svm_gene_expression.py
"""

from __future__ import annotations

from importlib import resources

import numpy as np

import goldstein as gs
from goldstein.sklearn import RhoMarginSVC

EPS, DELTA = 1e-2, 1e-1


def gene_data() -> tuple[np.ndarray, np.ndarray]:
    """38 leukaemia samples, 200 genes, scaled to unit variance but not centred (Golub 1999)."""
    with resources.files("goldstein.problems").joinpath("data/golub200.npz").open("rb") as file:
        stored = np.load(file)
        X, y = stored["X"], stored["y"]
    return X / X.std(axis=0), y


def main() -> RhoMarginSVC:
    X, y = gene_data()
    n = len(y)
    print(f"{n} samples, {X.shape[1]} genes, rank {np.linalg.matrix_rank(X)}: the data are onto")

    # The mean objective of the machine below, as an expression whose kinks are known.
    signs = np.where(y == np.unique(y)[1], 1.0, -1.0)
    F = gs.models.margin_svm(signs[:, None] * X, 1.0, 1.0 / n, weights=np.full(n, 1.0 / n))
    target = gs.goldstein_target(F, eps=EPS, delta=DELTA)
    print(f"wanted: ({EPS:g}, {DELTA:g})-near stationary")
    print(f"so ask: ({target.eps:.3g}, {target.delta:.3g})-Goldstein stationary")

    machine = RhoMarginSVC(
        rho=1.0, C=1.0, eps=target.eps, delta=target.delta, fit_intercept=False
    ).fit(X, y)
    eps, delta = machine.goldstein_stationarity_
    assert eps <= target.eps
    assert delta <= target.delta
    print(f"got:    ({eps:.3g}, {delta:.3g})-Goldstein stationary, hence the near point exists")

    found = machine.certificate_.verify(F)
    assert found.ok
    print(f"proved: ({found.eps:.3g}, {found.delta:.3g})-near stationary, {found.label}")
    print(f"training accuracy {machine.score(X, y):.3f}, {machine.outliers_.sum()} outliers")
    return machine


if __name__ == "__main__":
    main()
