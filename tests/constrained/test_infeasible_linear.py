"""Linear constraints without a common point are told before the search; others are stepped back
from where they are not finite."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, linprog

import goldstein as gs

ASKED = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def total(x):
    return abs(x).sum()


@pytest.mark.parametrize("seed", range(3))
def test_the_least_violation_is_that_of_a_linear_program(seed: int) -> None:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((4, 6))
    limits = [LinearConstraint(A, 1.0, 2.0), LinearConstraint(A.sum(axis=0), -np.inf, -4.0)]
    res = gs.minimize(total, np.ones(6), np.sign, constraints=limits, **ASKED)
    assert res.status is gs.Status.INFEASIBLE
    assert not res.success
    # By duality: the sum of four numbers in [1, 2] is 4 at least, and should be -4 at most.
    rows = np.vstack([A, A.sum(axis=0)])
    excess = np.abs(np.clip(rows @ res.x, [1, 1, 1, 1, -np.inf], [2, 2, 2, 2, -4]) - rows @ res.x)
    cost = np.concatenate([np.zeros(6), np.ones(5)])
    sides = np.block([[rows, -np.eye(5)], [-rows[:4], -np.eye(5)[:4]]])
    best = linprog(
        cost, sides, [2, 2, 2, 2, -4, -1, -1, -1, -1], bounds=[(None, None)] * 6 + [(0, None)] * 5
    )
    assert excess.sum() == pytest.approx(best.fun, abs=1e-3)
    assert "feasible;" not in str(res)


def test_constraints_that_can_be_met_are_not_called_hopeless() -> None:
    limit = LinearConstraint([[1.0, 1.0], [1.0, 1.0]], [1.0, 1.0], [1.0, 1.0])  # one row twice
    res = gs.minimize(total, [3.0, -5.0], np.sign, constraints=limit, **ASKED)
    assert res.success
    assert res.x.sum() == pytest.approx(1.0, abs=1e-6)


def test_a_constraint_that_is_not_finite_is_stepped_back_from() -> None:
    root = {
        "type": "ineq",
        "fun": lambda x: np.sqrt(x[0]) - 0.5,
        "jac": lambda x: np.array([0.5 / np.sqrt(x[0]), 0.0]),
    }
    with np.errstate(invalid="ignore"):
        res = gs.minimize(
            lambda x: x[0] ** 2 + abs(x[1]), [1.0, 2.0],
            lambda x: np.array([2 * x[0], np.sign(x[1])]), constraints=root, **ASKED,
        )  # fmt: skip
    assert res.success
    assert res.x == pytest.approx([0.25, 0.0], abs=1e-3)
