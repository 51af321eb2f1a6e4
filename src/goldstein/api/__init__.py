"""`minimize` and `certify`: the only place where solvers meet certificates."""

from goldstein.api.certify import StationarityCurve, certify, stationarity_curve
from goldstein.api.certify_result import certify_result
from goldstein.api.inputs import PrecisionWarning
from goldstein.api.minimize import minimize
from goldstein.api.search import Question, Search
from goldstein.api.suggest import Target, suggest_target

__all__ = [
    "PrecisionWarning",
    "Question",
    "Search",
    "StationarityCurve",
    "Target",
    "certify",
    "certify_result",
    "minimize",
    "stationarity_curve",
    "suggest_target",
]
