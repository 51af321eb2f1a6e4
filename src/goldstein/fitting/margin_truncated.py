"""Newton's method for many variables: its system is solved by conjugate gradients, and roughly.

The curvature comes from the rows within reach of their convex kink alone; concave curvature is left
out, so that every direction leads downhill. No matrix is formed, and rows are copied only when they
are few: one product with them costs less than one with all the data.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.models.margin_problem import MarginProblem, Smoothing

#: A Newton system is solved to this part of its right-hand side.
FORCING = 0.1

#: Most products with the curvature per step.
MOST_PRODUCTS = 60

#: The residual of a prediction in units of the tolerance, and its most products. Shares are
#: gradients times the number of rows: a small residual can be all of a share.
ACCURACY, PREDICTION_PRODUCTS = 0.05, 200

#: Rows are copied when they are at most this part of all.
FEW = 0.4

#: Curvature given to a variable without penalty, in units of the largest penalty.
_FLOOR = 1e-3


def truncated_direction(
    problem: MarginProblem, u: Vector, gradient: Vector, s: Smoothing, tolerance: float
) -> Vector:
    """Return a direction of descent, close to Newton's, of the smoothed objective.

    Parameters
    ----------
    problem : MarginProblem
    u, gradient : ndarray
        Z v and the gradient at the present point v.
    s : Smoothing
    tolerance : float
        Norm of a gradient that counts as zero: no need to solve more accurately than that.

    Examples
    --------
    >>> import numpy as np
    >>> P = MarginProblem.from_rows(np.eye(2), np.ones(2) / 2, np.ones(2), rho=1.0)
    >>> truncated_direction(P, np.ones(2), np.array([1.0, 0.0]), Smoothing(0.5), 1e-9)
    array([-0.66666667,  0.        ])
    """
    rows, c = problem.curvature(u, s)
    convex = c > 0
    multiply = curvature_product(problem, rows[convex], c[convex])
    goal = max(FORCING * float(np.sqrt(gradient @ gradient)), 0.5 * tolerance)
    return conjugate_gradients(multiply, -gradient, goal, MOST_PRODUCTS)


def conjugate_gradients(
    multiply: Callable[[Vector], Vector], right: Vector, goal: float, most: int
) -> Vector:
    """Solve A x = right, A positive definite, until the residual is at most `goal` long."""
    answer, rest = np.zeros_like(right), right
    step, square = rest, float(rest @ rest)
    for _ in range(most):
        if np.sqrt(square) <= goal:
            break
        bent = multiply(step)
        length = square / float(step @ bent)
        answer += length * step
        rest = rest - length * bent
        before, square = square, float(rest @ rest)
        step = rest + (square / before) * step
    return answer


def curvature_product(
    problem: MarginProblem, rows: NDArray[np.intp], c: Vector
) -> Callable[[Vector], Vector]:
    """Return the product with the penalty's curvature plus sum_i c_i z_i z_i' over some rows."""
    floor = _FLOOR * max(float(problem.ridge.max()), 1e-8)
    diagonal = np.maximum(problem.ridge, floor)
    if rows.size <= FEW * problem.rows:
        Z = problem.Z[rows]
        across = Z.T
        return lambda x: diagonal * x + across @ (c * (Z @ x))
    weights = np.zeros(problem.rows)
    weights[rows] = c
    return lambda x: diagonal * x + problem.transposed_product(weights * problem.product(x))


def narrowed(
    problem: MarginProblem, v: Vector, u: Vector, old: float, new: float, tolerance: float
) -> Vector:
    """Predict the minimiser for the rounding `new` from v, the minimiser for `old`.

    A row within the rounding of its convex kink carries a share of its slope, which its distance
    from the kink tells. The shares balance the gradient, and hardly change when the rounding
    shrinks: what changes is that each row moves towards its kink, in proportion. One Newton step
    with the old set of rows and the new rounding leads there. Newton's method from the old point
    does not: to it most of these rows look settled on one side.

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
    return v + conjugate_gradients(multiply, -gradient, ACCURACY * tolerance, PREDICTION_PRODUCTS)
