"""Data sets: shipped arrays, and the ones scikit-learn bundles."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.extras import missing_extra

FOLDER = Path(__file__).parent / "data"


def shipped(name: str) -> dict[str, Vector]:
    """Load the arrays of a shipped file as float64."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as archive:
        return {key: archive[key].astype(np.float64) for key in archive.files}


def bundled(name: Literal["iris", "breast_cancer", "diabetes"]) -> tuple[Vector, Vector]:
    """Load inputs and targets of a data set that comes with scikit-learn."""
    try:
        from sklearn import datasets
    except ImportError:
        raise missing_extra(
            f"the problem with the {name} data", "scikit-learn", "sklearn"
        ) from None
    inputs, targets = getattr(datasets, f"load_{name}")(return_X_y=True)
    return np.asarray(inputs, dtype=np.float64), np.asarray(targets, dtype=np.float64)


def standardised(inputs: Vector) -> Vector:
    """Return columns of mean 0 and variance 1; a constant column becomes 0."""
    spread = inputs.std(axis=0)
    return np.asarray((inputs - inputs.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0))
