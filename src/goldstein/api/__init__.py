"""`minimize` and `certify`: the only place where solvers meet certificates."""

from goldstein.api.certify import StationarityCurve, certify, stationarity_curve
from goldstein.api.minimize import PrecisionWarning, minimize
from goldstein.api.suggest import Target, suggest_target

__all__ = [
    "PrecisionWarning",
    "StationarityCurve",
    "Target",
    "certify",
    "minimize",
    "stationarity_curve",
    "suggest_target",
]
