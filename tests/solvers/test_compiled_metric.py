"""What the fast half of compiled code keeps up to date: a factor of the metric, its products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.solvers.base import Request
from goldstein.solvers.compiled import CompiledAuto
from goldstein.solvers.compiled.solver import CompiledState


class Checked(CompiledAuto):
    """Looks at the memory after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.looked = 0

    def step(self, oracle: Any, state: CompiledState, request: Request) -> None:
        super().step(oracle, state, request)
        newton, model = state.memory.newton, state.memory.model
        record = state.memory.record.newton
        fresh = np.flatnonzero(newton["stale"].view(np.int64)[: record.model.count] == 0)
        if not record.scaled or fresh.size == 0:
            return
        self.looked += 1
        pieces, columns = newton["rows"][fresh], model["rows"][fresh]
        wanted = pieces @ newton["factor"]
        assert columns == pytest.approx(wanted, rel=1e-6, abs=1e-6 * np.abs(wanted).max())
        gram = model["gram"][np.ix_(fresh, fresh)]
        products = wanted @ wanted.T
        assert gram == pytest.approx(products, rel=1e-6, abs=1e-6 * products.max())


@pytest.mark.parametrize("name", ["maxq", "chained_cb3_1", "chained_mifflin_2"])
def test_columns_and_products_follow_the_factor(name: str) -> None:
    problem, solver = gs.problems.get(name, d=12), Checked()
    gs.minimize(
        problem.value, problem.x0, problem.gradient, eps=1e-3, delta=1e-3, rng=0, method=solver
    )
    assert solver.looked > 10


def test_a_quadratic_function_is_learnt() -> None:
    """After steps in d directions J J' is close to the inverse of the second derivatives."""
    size = 6
    hessian = np.diag(np.arange(1.0, size + 1.0)) + 0.3

    seen: list[np.ndarray] = []

    class Watched(CompiledAuto):
        def step(self, oracle: Any, state: CompiledState, request: Request) -> None:
            super().step(oracle, state, request)
            seen.append(state.memory.newton["factor"].copy())

    res = gs.minimize(
        lambda x: 0.5 * x @ hessian @ x, np.arange(1.0, size + 1.0), lambda x: hessian @ x,
        eps=1e-10, delta=1e-6, rng=0, method=Watched(),
    )  # fmt: skip
    assert np.linalg.norm(res.x) <= 1e-8
    errors = [np.abs(factor @ factor.T @ hessian - np.eye(size)).max() for factor in seen]
    assert min(errors) <= 0.2 * errors[0]
