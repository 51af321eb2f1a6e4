"""Estimators with the scikit-learn interface whose convergence is proved."""

try:
    import sklearn as _sklearn  # noqa: F401
except ImportError as missing:
    from goldstein.extras import missing_extra

    raise missing_extra("goldstein.sklearn", "scikit-learn", "sklearn") from missing

from goldstein.sklearn.linear import QuantileRegressor, RobustRegressor, SparseRegressor
from goldstein.sklearn.margin_svc import RhoMarginSVC
from goldstein.sklearn.networks import ReLUNetClassifier, ReLUNetRegressor

__all__ = [
    "QuantileRegressor", "ReLUNetClassifier", "ReLUNetRegressor", "RhoMarginSVC", "RobustRegressor",
    "SparseRegressor",
]  # fmt: skip
