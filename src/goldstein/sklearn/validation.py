"""Checks of estimator parameters and sample weights, through public scikit-learn functions only."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_array, check_consistent_length

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError


def positive(name: str, value: Any) -> float:
    """Return a positive finite number or say what is wrong with it."""
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    if not real or not 0.0 < float(value) < math.inf:
        raise InputError(f"{name} must be a positive finite number, got {value!r}.")
    return float(value)


def finite(name: str, value: Any) -> float:
    """Return a finite number or say what is wrong with it."""
    if not isinstance(value, numbers.Real) or isinstance(value, bool) or not math.isfinite(value):
        raise InputError(f"{name} must be a finite number, got {value!r}.")
    return float(value)


def nonnegative(name: str, value: Any) -> float:
    """Return a finite number that is not negative."""
    if finite(name, value) < 0:
        raise InputError(f"{name} must not be negative, got {value!r}.")
    return float(value)


def at_least(name: str, value: Any, least: int) -> int:
    """Return an integer that is at least `least`."""
    if not isinstance(value, numbers.Integral) or isinstance(value, bool) or value < least:
        raise InputError(f"{name} must be an integer >= {least}, got {value!r}.")
    return int(value)


def seconds(name: str, value: Any) -> float | None:
    """Return a limit in seconds, or None."""
    return None if value is None else positive(name, value)


def one_of(name: str, value: Any, allowed: tuple[Any, ...]) -> Any:
    """Return a value that is among the allowed ones."""
    if value not in allowed:
        raise InputError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    return value


def checked_sample_weight(sample_weight: Any, n: int) -> Vector:
    """Return nonnegative weights with a positive sum."""
    if sample_weight is None:
        return np.ones(n)
    if isinstance(sample_weight, numbers.Real):
        return np.full(n, positive("sample_weight", sample_weight))
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.ndim != 1:
        raise InputError(f"sample_weight must be one number per row, got shape {weights.shape}.")
    if weights.size != n:
        raise InputError(f"sample_weight has {weights.size} entries for {n} rows.")
    check_consistent_length(weights, np.empty(n))
    if (weights < 0).any() or not weights.any():
        raise InputError("sample_weight must be nonnegative and not all zero.")
    weights = np.asarray(weights, dtype=np.float64)
    with np.errstate(over="ignore"):
        total = float(weights.sum())
    if not 1e-300 < total < 1e300:
        raise InputError(f"sample_weight sums to {total:g}; scale the weights to a moderate size.")
    return weights


def drop_weightless(X: Any, y: NDArray[Any], weights: Vector) -> tuple[Any, NDArray[Any], Vector]:
    """Return the rows of positive weight: the others are as good as absent."""
    kept = weights > 0
    return (X, y, weights) if kept.all() else (X[kept], y[kept], weights[kept])


def unless_equal(weights: Vector) -> Vector | None:
    """Return None for equal weights: they are the same as none, to the last bit."""
    if not weights.any():
        raise InputError("no row has a positive weight; check sample_weight and class_weight.")
    return None if (weights == weights[0]).all() else weights


def class_weights(class_weight: Any, classes: NDArray[Any], y: NDArray[Any], w: Vector) -> Vector:
    """Return the factor of each class; "balanced" takes the sample weights into account."""
    if class_weight == "balanced":
        totals = np.array([w[y == c].sum() for c in classes])
        return np.asarray(w.sum() / (len(classes) * totals))
    return np.asarray(compute_class_weight(class_weight, classes=classes, y=y), dtype=np.float64)
