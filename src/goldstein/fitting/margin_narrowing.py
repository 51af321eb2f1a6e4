"""Where the minimiser goes when the rounding of the kinks shrinks.

A row within the rounding of its convex kink carries a share of its slope, which its distance from
the kink tells. The shares balance the gradient, and hardly change when the rounding shrinks: what
changes is that each row moves towards its kink, in proportion. One Newton step with the old set of
rows and the new rounding leads there. Newton's method from the old point does not: to it most of
these rows look settled on one side.
"""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.fitting.margin_truncated import conjugate_gradients, curvature_product
from goldstein.models.margin_problem import MarginProblem

#: Residual in units of the tolerance. Shares are gradients times the number of rows: a residual
#: that is small for a gradient can be all of a share.
ACCURACY = 0.05

#: Most products with the curvature.
MOST_PRODUCTS = 200


def narrowed(
    problem: MarginProblem, v: Vector, u: Vector, old: float, new: float, tolerance: float
) -> Vector:
    """Predict the minimiser for the rounding `new` from v, the minimiser for `old`.

    Parameters
    ----------
    problem : MarginProblem
    v, u : ndarray
        The point and Z v.
    old, new : float
        Widths of the rounding.
    tolerance : float
        Norm of a gradient that counts as zero.

    Examples
    --------
    One row, v = u: with width w the share is (1 + w - v) / (2 w), and v is the share.

    >>> P = MarginProblem.from_rows(np.ones((1, 1)), np.ones(1), np.ones(1), rho=1.0)
    >>> old, new = 0.5, 0.05
    >>> v = np.array([(1 + old) / (1 + 2 * old)])
    >>> narrowed(P, v, v, old, new, 1e-12), round((1 + new) / (1 + 2 * new), 8)
    (array([0.95454545]), 0.95454545)
    """
    margin = u - problem.shift
    rows = np.flatnonzero(np.abs(margin - problem.rho) < old)
    pull = np.where((margin > 0) & (margin < problem.rho), problem.weights / problem.rho, 0.0)
    # Not cut off at 0 and 1: this is the quadratic model of these rows.
    shares = (problem.rho + new - margin[rows]) / (2.0 * new)
    pull[rows] = shares * problem.weights[rows] / problem.rho
    gradient = problem.ridge * v + problem.slope - problem.transposed_product(pull)
    multiply = curvature_product(problem, rows, problem.weights[rows] / (2.0 * new * problem.rho))
    return v + conjugate_gradients(multiply, -gradient, ACCURACY * tolerance, MOST_PRODUCTS)
