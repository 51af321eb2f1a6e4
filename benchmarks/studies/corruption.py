"""Ways to spoil training data: gross feature outliers and label flips."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

KINDS = ("feature_outliers", "one_sided_flips", "symmetric_flips")


def corrupt(
    X: NDArray[np.float64], y: NDArray[Any], kind: str, level: float, rng: np.random.Generator
) -> tuple[NDArray[np.float64], NDArray[Any]]:
    """Return spoiled copies of standardised features and 0/1 labels.

    feature_outliers: a share of the rows is replaced by uniform points of the sphere of radius 20,
    labels kept. one_sided_flips: a share of class 0 gets label 1. symmetric_flips: a share of all
    labels is flipped.
    """
    X, y = X.copy(), y.copy()
    if kind == "feature_outliers":
        rows = rng.choice(len(y), round(level * len(y)), replace=False)
        points = rng.standard_normal((len(rows), X.shape[1]))
        X[rows] = 20.0 * points / np.linalg.norm(points, axis=1, keepdims=True)
    elif kind == "one_sided_flips":
        pool = np.flatnonzero(y == 0)
        y[rng.choice(pool, round(level * len(pool)), replace=False)] = 1
    elif kind == "symmetric_flips":
        rows = rng.choice(len(y), round(level * len(y)), replace=False)
        y[rows] = 1 - y[rows]
    else:
        raise ValueError(f"unknown kind of corruption: {kind!r}")
    return X, y
