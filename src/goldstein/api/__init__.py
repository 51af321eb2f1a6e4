"""`minimize` and `certify`: the only place where solvers meet certificates."""

from goldstein.api.certify import StationarityCurve, certify, stationarity_curve
from goldstein.api.minimize import PrecisionWarning, minimize

__all__ = ["PrecisionWarning", "StationarityCurve", "certify", "minimize", "stationarity_curve"]
