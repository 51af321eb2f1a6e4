"""Estimators with the scikit-learn interface whose convergence is proved."""

from goldstein.sklearn.margin_svc import RhoMarginSVC
from goldstein.sklearn.networks import ReLUNetClassifier, ReLUNetRegressor

__all__ = ["ReLUNetClassifier", "ReLUNetRegressor", "RhoMarginSVC"]
