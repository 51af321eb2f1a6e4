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
