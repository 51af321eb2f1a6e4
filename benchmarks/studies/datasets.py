"""The data sets of the studies: scikit-learn's own, and those that setup.sh fetched."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import datasets as bundled

FOLDER = Path(os.environ.get("GOLDSTEIN_DATA", Path(__file__).parent / "data"))

Data = tuple[NDArray[np.float64], NDArray[Any]]


def load(name: str) -> Data:
    """Return (X, y); y are class numbers 0, 1, ... or real targets."""
    if name == "breast_cancer":
        return bundled.load_breast_cancer(return_X_y=True)
    if name in ("digits", "wine", "iris", "diabetes"):
        return getattr(bundled, f"load_{name}")(return_X_y=True)
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise FileNotFoundError(f"{path} is missing: run sh benchmarks/studies/setup.sh once.")
    with np.load(path) as stored:
        X, y = stored["X"], stored["y"]
    if y.dtype.kind in "USiu" or set(np.unique(y)) <= {0.0, 1.0, 2.0}:
        y = np.unique(y, return_inverse=True)[1]
    return X, y
