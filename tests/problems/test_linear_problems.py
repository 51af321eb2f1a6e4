"""Minima of piecewise linear problems, against linear programming on what the problems tell.

The pieces are not read from the data: a gradient and a value give a piece, and a program of all
pieces met so far gives a lower bound, which Kelley's method raises to the minimum.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from goldstein import problems


def minimum(problem: problems.Problem, size: float, rounds: int) -> float:
    """Kelley's method in a box around the start."""
    d = problem.dim
    rows, levels = [], []
    x = problem.x0.copy()
    box = [*zip(problem.x0 - size, problem.x0 + size), (None, None)]
    lowest = np.inf
    for _ in range(rounds):
        value, gradient = problem.fun_and_jac(x)
        lowest = min(lowest, value)
        rows.append(np.append(gradient, -1.0))
        levels.append(gradient @ x - value)
        answer = linprog(np.append(np.zeros(d), 1.0), np.array(rows), np.array(levels), bounds=box)
        x = answer.x[:d]
        if lowest - answer.fun < 1e-9:
            return float(answer.fun)
    raise AssertionError(f"no minimum after {rounds} rounds: {lowest - answer.fun}")


@pytest.mark.parametrize("name", ["max_affine", "chebyshev_polynomial", "quantile_regression"])
def test_the_best_value_is_the_minimum(name: str) -> None:
    problem = problems.get(name)
    found = minimum(problem, 50.0, 400)
    assert found == pytest.approx(problem.best_value, abs=1e-8)
