"""The problems of `benchmarks.constrained` that are not part of the library: their data."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.constrained import geometric
from benchmarks.constrained.problems import all_problems
from scipy.optimize import Bounds, minimize

import goldstein as gs

MADE = {p.name: p for p in geometric.made()}


def test_names_differ_and_starts_are_where_functions_are_defined():
    problems = all_problems()
    assert len({p.name for p in problems}) == len(problems) == 36
    for p in problems:
        assert np.isfinite(p.fun(p.x0))


@pytest.mark.parametrize("name", MADE)
def test_gradients_are_derivatives(name):
    p = MADE[name]
    rng = np.random.default_rng(0)
    for _ in range(10):
        x = p.x0 * (1 + 0.02 * rng.standard_normal(p.x0.size))
        way = p.x0 * rng.standard_normal(p.x0.size)
        slope = (p.fun(x + 1e-7 * way) - p.fun(x - 1e-7 * way)) / 2e-7
        assert slope == pytest.approx(p.jac(x) @ way, rel=1e-5, abs=1e-4)


@pytest.mark.parametrize("name", [name for name, p in MADE.items() if p.program is not None])
def test_the_smooth_program_has_the_value_of_the_literature(name):
    """min p_0 subject to p_k <= 1 in logarithms, by SLSQP: the penalty in the minimax is exact."""
    p = MADE[name]
    program, A = p.program, p.limits["constraints"].A
    box = p.limits["bounds"]
    scale = program.values(p.x0)[0]

    def rows(u):
        x = np.exp(u)
        curved = [program.gradient(x, k) for k in range(1, program.size)]
        return -np.vstack([*curved, A]) * x

    found = minimize(
        lambda u: program.values(np.exp(u))[0] / scale,
        np.log(np.clip(p.x0, box.lb, box.ub)),
        jac=lambda u: program.gradient(np.exp(u), 0) * np.exp(u) / scale,
        method="SLSQP",
        bounds=Bounds(np.log(box.lb), np.log(box.ub)),
        constraints={
            "type": "ineq", "jac": rows,
            "fun": lambda u: 1 - np.append(program.values(np.exp(u))[1:], A @ np.exp(u)),
        },
        options={"ftol": 1e-13, "maxiter": 2000},
    )  # fmt: skip
    assert found.fun * scale == pytest.approx(p.best, rel=1e-5)
    assert p.fun(np.clip(np.exp(found.x), box.lb, box.ub)) == pytest.approx(p.best, rel=1e-3)


@pytest.mark.parametrize("name", ["EQUIL", "MAD8"])
def test_the_value_of_the_literature_is_found(name):
    p = MADE[name]
    res = gs.minimize(p.fun, p.x0, p.jac, eps=1e-3, delta=1e-4, rng=0, **p.limits)
    assert res.success
    assert res.fun == pytest.approx(p.best, abs=1e-3)
    assert res.fun >= p.best - 1e-8


def test_heat_exchanger_at_a_printed_solution():
    """That of Hock and Schittkowski's problem 106, seven digits, times a weight of 1e5."""
    x = np.array([579.3167, 1359.943, 5110.071, 182.0174, 295.5985, 217.9799, 286.4162, 395.5979])
    assert MADE["DEMBO5"].fun(x) == pytest.approx(7049.25, abs=2.0)
