"""Every deterministic solver on every small problem: what a result must never get wrong.

A new solver in the registry, or a new name in PROBLEMS, is picked up by itself.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest

import goldstein as gs
from goldstein.solvers import REGISTRY

#: These promise something in expectation only, and have their own contract.
STOCHASTIC = {"psingd", "o2nc", "values", "zeroth-order"}
SOLVERS = sorted(set(REGISTRY) - STOCHASTIC)
PROBLEMS = [
    "crescent", "cb3", "dem", "lq", "mifflin_1", "mifflin_2", "maxq_20", "clarke_trap",
    "kornowski_shamir", "dc_1", "nonsmooth_rosenbrock", "wf", "rosenbrock", "active_faces",
    "chained_lq", "polak_6",
]  # fmt: skip
TARGETS = [(0.3, 0.1), (1e-3, 1e-2)]


@functools.cache
def problem(name: str) -> gs.problems.Problem:
    return gs.problems.get(name)


def solve(solver: str, name: str, target: tuple[float, float], seed: int) -> gs.Result:
    eps, delta = target
    p = problem(name)
    return gs.minimize(p, p.x0, eps=eps, delta=delta, method=solver, rng=seed, max_calls=1500)


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")
@pytest.mark.parametrize("target", TARGETS, ids=["easy", "hard"])
@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("solver", SOLVERS)
def test_invariants(solver: str, name: str, target: tuple[float, float]) -> None:
    eps, delta = target
    p = problem(name)
    res = solve(solver, name, target, seed=3)

    assert res.success == (res.status is gs.Status.VERIFIED)
    assert res.method == solver
    assert res.nfev + res.ngev <= 1500
    assert res.fun == p.value(res.x)
    assert res.fun <= p.value(p.x0)
    assert (np.diff(res.history.fun) <= 0).all()
    assert res.history.fun[-1] == res.fun

    if res.certificate is not None:
        assert np.array_equal(res.certificate.x, res.x)
        found = res.certificate.verify(p)
        meets = found.ok and found.eps <= eps * (1 + 1e-9) and found.delta <= delta
        # Success exactly when verified and good enough; without a call left it stays unverified.
        assert found.ok, found
        assert not res.success or meets
        assert res.success or not meets or res.status is gs.Status.OUT_OF_CALLS
    else:
        assert not res.success

    again = solve(solver, name, target, seed=3)
    assert np.array_equal(again.x, res.x)
    assert again.status is res.status
    assert (again.nfev, again.ngev) == (res.nfev, res.ngev)


@pytest.mark.parametrize("solver", sorted(set(SOLVERS) - {"pingd"}))
def test_the_practical_solvers_solve_the_easy_grid(solver: str) -> None:
    """Not a promise of the theory, but a fall would be news."""
    solved = [solve(solver, name, TARGETS[0], seed=1).success for name in PROBLEMS]
    assert sum(solved) >= len(PROBLEMS) - 2
