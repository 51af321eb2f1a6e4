"""What an estimator says about the stationarity it reached."""

from __future__ import annotations

import warnings
from typing import Any

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
