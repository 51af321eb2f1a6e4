"""Estimators with the scikit-learn interface whose convergence is proved."""

from goldstein.sklearn.margin_svc import RhoMarginSVC

__all__ = ["RhoMarginSVC"]
