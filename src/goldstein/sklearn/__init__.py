"""Estimators with the scikit-learn interface whose convergence is proved."""

from goldstein.extras import from_extra

with from_extra("goldstein.sklearn", "scikit-learn", "sklearn"):
    import sklearn as _sklearn  # noqa: F401

from goldstein.sklearn.linear import QuantileRegressor, RobustRegressor, SparseRegressor
from goldstein.sklearn.margin_svc import RhoMarginSVC
from goldstein.sklearn.networks import ReLUNetClassifier, ReLUNetRegressor

__all__ = [
    "QuantileRegressor", "ReLUNetClassifier", "ReLUNetRegressor", "RhoMarginSVC", "RobustRegressor",
    "SparseRegressor",
]  # fmt: skip
