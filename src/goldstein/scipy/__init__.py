"""SciPy: `scipy.optimize.minimize(..., method=goldstein.scipy.method)`."""

from goldstein.scipy.minimizer import CODES, Method, method

__all__ = ["CODES", "Method", "method"]
