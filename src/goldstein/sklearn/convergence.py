"""What an estimator says about the stationarity it reached."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning


def weakest(certificates: list[Any]) -> tuple[float, float] | None:
    """Return the (eps, delta) that holds for all, or None when one of them is missing."""
    if any(c is None for c in certificates):
        return None
    return max(c.eps for c in certificates), max(c.delta for c in certificates)


def warn_unless_reached(estimator: Any, certificates: list[Any]) -> None:
    """Say what was reached and what to change when the target was missed."""
    reached = max(c.eps for c in certificates)
    if reached > estimator.eps:
        limits = "max_calls" if estimator.max_time is None else "max_calls, max_time"
        warnings.warn(
            f"reached eps = {reached:.3g} at delta = {estimator.delta:g}, asked for "
            f"eps = {estimator.eps:g}; raise {limits}, eps or delta, or scale the features.",
            ConvergenceWarning,
            stacklevel=3,
        )


def remember_parameters(estimator: Any) -> None:
    """Keep what a fit was made with: `set_params` is about the next one."""
    estimator._fitted_with = estimator.get_params(deep=False)


def as_fitted(estimator: Any) -> Any:
    """Return the estimator with the parameters of its fit."""
    other = copy.copy(estimator)
    for name, value in estimator._fitted_with.items():
        setattr(other, name, value)
    return other


def warn_if_moved(now: ArrayLike, fitted: ArrayLike) -> None:
    """Say so where the coefficients that predict are not those that the certificate is about."""
    if not np.array_equal(now, fitted):
        warnings.warn(
            "the coefficients were changed after the fit: the certificate is about those that were "
            "fitted. gs.certify(machine.objective(X, y), x, delta=...) looks at others.",
            UserWarning,
            stacklevel=3,
        )
