"""A quarter of one class is mislabelled: the rho-margin loss points these rows out.

python examples/robust_svm.py
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from goldstein.sklearn import RhoMarginSVC


def main() -> RhoMarginSVC:
    X, y = load_breast_cancer(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    rng = np.random.default_rng(0)
    malignant = np.flatnonzero(y_train == 0)
    wrong = rng.choice(malignant, len(malignant) // 4, replace=False)
    spoiled = y_train.copy()
    spoiled[wrong] = 1

    hinge = make_pipeline(StandardScaler(), LinearSVC(loss="hinge", C=0.1, max_iter=100_000))
    ramp = make_pipeline(StandardScaler(), RhoMarginSVC(rho=1.0, C=0.1))
    print("a quarter of the malignant training labels is flipped")
    print(
        f"  hinge loss       test accuracy {hinge.fit(X_train, spoiled).score(X_test, y_test):.3f}"
    )
    print(
        f"  rho-margin loss  test accuracy {ramp.fit(X_train, spoiled).score(X_test, y_test):.3f}"
    )

    machine = ramp[-1]
    flagged = np.flatnonzero(machine.outliers_)
    hits = np.isin(flagged, wrong).sum()
    print(
        f"  {len(flagged)} rows flagged as outliers, {hits} of them flipped ({len(wrong)} flipped)"
    )
    objective = machine.objective(ramp[0].transform(X_train), spoiled)
    print(" ", machine.certificate_.summary())
    print("  verified from the data:", machine.certificate_.verify(objective).ok)
    return machine


if __name__ == "__main__":
    main()
