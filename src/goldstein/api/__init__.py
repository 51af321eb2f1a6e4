"""`minimize` and `certify`: the only place where solvers meet certificates."""

from goldstein.api.certify import (
    LookAround,
    StationarityCurve,
    Target,
    certify,
    certify_result,
    look_around,
    stationarity_curve,
    suggest_target,
)
from goldstein.api.inputs import PrecisionWarning
from goldstein.api.minimize import Question, Search, minimize

__all__ = [
    "LookAround",
    "PrecisionWarning", "Question", "Search", "StationarityCurve", "Target", "certify",
    "certify_result",
    "look_around", "minimize", "stationarity_curve", "suggest_target",
]  # fmt: skip
