"""`minimize` and `certify`: the only place where solvers meet certificates."""

from goldstein.api.around import LookAround, look_around
from goldstein.api.certify import (
    StationarityCurve,
    Target,
    certify,
    certify_result,
    stationarity_curve,
    suggest_target,
)
from goldstein.api.inputs import PrecisionWarning
from goldstein.api.minimize import minimize
from goldstein.api.search import Question, Search

__all__ = [
    "LookAround",
    "PrecisionWarning", "Question", "Search", "StationarityCurve", "Target", "certify",
    "certify_result",
    "look_around", "minimize", "stationarity_curve", "suggest_target",
]  # fmt: skip
