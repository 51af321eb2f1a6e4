"""The rho-margin support vector machine on the breast-cancer data (Tian, Zhou, So 2022, sec. 5).

    goldstein solve breast_cancer_svm.py:problem --stationarity near --eps 1e-3 --delta 1e-3

f(w) = |w|^2/2 + sum_i min(1, max(0, 1 - y_i x_i.w)) has kinks and is not convex: a misclassified
patient far from the margin stops pulling on w.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer

import goldstein as gs

X, y = load_breast_cancer(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
labels = 2.0 * y - 1.0
Z = labels[:, None] * np.column_stack([X, np.ones(len(X))])

problem = gs.models.margin_svm(Z, rho=1.0, lam=1.0)
x0 = Z.mean(axis=0)


def accuracy(w: np.ndarray) -> float:
    """Share of patients on the right side of the hyperplane w."""
    return float((Z @ w > 0).mean())
