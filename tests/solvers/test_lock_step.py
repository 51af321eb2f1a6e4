"""Interpreted and compiled, `auto` is one search: the same questions in the same order.

The two differ in arithmetic alone, so here they get the same random numbers and matrices of the
same kind. What is left is rounding, which functions with kinks blow up sooner or later: the first
questions agree closely, and what is asked for (value or gradient) agrees exactly.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
from tests.reference_quadratic import minimise_on_simplex

import goldstein as gs
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers import Auto, Request
from goldstein.solvers.auto import AutoState
from goldstein.solvers.compiled import CompiledAuto
from goldstein.solvers.compiled.newton import BENDS
from goldstein.solvers.compiled.vectors import normal_numbers, uniform
from goldstein.solvers.logic import bundle_member, line_search, portfolio
from goldstein.solvers.quasi_newton import FactorMetric
from goldstein.solvers.tuning import TUNING

#: The most questions of a run.
MOST = 3000
SEED = 5


@numba.njit
def next_uniform(words: Any) -> Any:
    return uniform(words)


@numba.njit
def next_normal(words: Any, target: Any) -> Any:
    return normal_numbers(words, target)


class SameDraws:
    """The generator of compiled code, behind the names of NumPy's."""

    def __init__(self, seed: int) -> None:
        self.words = stream(seed, 0, "compiled").bit_generator.random_raw(4)
        self.spare = 0.0

    def random(self) -> float:
        return next_uniform(self.words)

    def standard_normal(self, size: int | None = None) -> Any:
        if size is None:
            return self.spare
        target = np.empty(size)
        self.spare = next_normal(self.words, target)
        return target


class Bent(FactorMetric):
    """A factor of the matrix, and the model of compiled code."""

    def minimise(self, errors: np.ndarray) -> tuple[np.ndarray, float]:
        assert self.factor is not None
        columns = self.rows[: errors.size].dot(self.factor)
        gram = columns.dot(columns.T)
        if errors.max() > 0.0:
            gram += np.outer(errors, errors) / (BENDS * errors.max())
        weights = minimise_on_simplex(gram, errors)
        self._behind = weights.dot(columns)
        return self.factor.dot(self._behind), float(self._behind.dot(self._behind))


class Interpreted(Auto):
    """`auto`, with the draws and the metric of compiled code."""

    def start(self, oracle: CountedOracle, x0: np.ndarray, request: Request) -> AutoState:
        state = super().start(oracle, x0, request)
        state.rng = state.newton.rng = SameDraws(request.seed)  # type: ignore[assignment]
        state.newton.metric = Bent(state.newton.gradients)
        return state


@numba.njit
def note(log: Any, x: Any, kind: Any) -> None:
    row = int(log[0, 0])
    log[row + 1, 0] = kind
    log[row + 1, 1:] = x
    log[0, 0] = row + 1


@numba.njit
def crescent(x: Any, log: Any) -> Any:
    """Chained Crescent I (Haarala): the larger of two sums."""
    note(log, x, 0)
    one, other = 0.0, 0.0
    for i in range(x.size - 1):
        square = x[i] ** 2 + (x[i + 1] - 1.0) ** 2
        one += square + x[i + 1] - 1.0
        other += -square + x[i + 1] + 1.0
    return max(one, other)


@numba.njit
def crescent_gradient(x: Any, log: Any) -> Any:
    note(log, x, 1)
    one, other = 0.0, 0.0
    for i in range(x.size - 1):
        square = x[i] ** 2 + (x[i + 1] - 1.0) ** 2
        one += square + x[i + 1] - 1.0
        other += -square + x[i + 1] + 1.0
    sign = 1.0 if one >= other else -1.0
    g = np.zeros(x.size)
    for i in range(x.size - 1):
        g[i] += sign * 2.0 * x[i]
        g[i + 1] += sign * 2.0 * (x[i + 1] - 1.0) + 1.0
    return g


@numba.njit
def maxq(x: Any, log: Any) -> Any:
    note(log, x, 0)
    return np.max(x * x)


@numba.njit
def maxq_gradient(x: Any, log: Any) -> Any:
    note(log, x, 1)
    top = np.argmax(np.abs(x))
    g = np.zeros(x.size)
    g[top] = 2.0 * x[top]
    return g


@numba.njit
def weighted(x: Any, log: Any) -> Any:
    """A weighted sum of kinks, one between the ends, and a quadratic."""
    note(log, x, 0)
    total = abs(x[0] - x[-1])
    for i in range(x.size):
        total += (i + 1.0) * abs(x[i]) + x[i] * x[i]
    return total


@numba.njit
def weighted_gradient(x: Any, log: Any) -> Any:
    note(log, x, 1)
    g = np.sign(x) * np.arange(1.0, x.size + 1.0) + 2.0 * x
    between = np.sign(x[0] - x[-1])
    g[0] += between
    g[-1] -= between
    return g


FUNCTIONS = {
    "crescent": (crescent, crescent_gradient),
    "maxq": (maxq, maxq_gradient),
    "weighted": (weighted, weighted_gradient),
}


def questions(name: str, dim: int, method: Any, max_calls: int = MOST) -> np.ndarray:
    """All questions of a run: a row each, what is asked for and where.

    Without those of the check of gradients, which follow every digit of the last points.
    """
    fun, jac = FUNCTIONS[name]
    log = np.zeros((MOST + 1, dim + 1))
    gs.minimize(
        fun, np.linspace(-1.5, 2.0, dim), jac, args=(log,), eps=1e-3, delta=1e-3, rng=SEED,
        method=method, max_calls=max_calls, options={"check_gradient": False},
    )  # fmt: skip
    return log[1 : int(log[0, 0]) + 1]


def in_step(one: np.ndarray, other: np.ndarray) -> int:
    """How many questions, from the first one on, are the same."""
    count = min(len(one), len(other))
    same = one[:count, 0] == other[:count, 0]
    same &= np.abs(one[:count, 1:] - other[:count, 1:]).max(axis=1) <= 1e-6
    return count if same.all() else int(same.argmin())


def both(name: str, dim: int, **options: Any) -> tuple[np.ndarray, np.ndarray]:
    calls = options.pop("max_calls", MOST)
    return tuple(
        questions(name, dim, kind(**options), calls) for kind in (Interpreted, CompiledAuto)
    )


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dim", [2, 10])
def test_the_half_with_the_guarantee_asks_the_same(name: str, dim: int) -> None:
    """No matrix is involved: all of the run, but for its end next to a kink."""
    one, other = both(name, dim, newton=False)
    assert in_step(one, other) >= 0.8 * max(len(one), len(other))


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dim", [10, 80])
def test_both_halves_ask_the_same(name: str, dim: int) -> None:
    """Turns, null steps, line searches, free certificates: some dozen questions of each kind."""
    one, other = both(name, dim)
    assert in_step(one, other) >= min(60, len(one), len(other))


@pytest.mark.parametrize("calls", [3, 6, 9, 14, 20, 33])
def test_calls_that_run_out_end_both_runs_alike(calls: int) -> None:
    """The last word included."""
    one, other = both("crescent", 10, max_calls=calls)
    assert len(one) == len(other) == in_step(one, other) == calls


@pytest.mark.parametrize(
    ("module", "change", "newton"),
    [
        (line_search, {"curvature": 0.1}, True),
        (portfolio, {"shortest": 30, "far_share": 0.2}, True),
        # It begins late where the other member is there.
        (bundle_member, {"displaced": 0.1}, False),
    ],
)
def test_another_decision_is_noticed(
    module: Any, change: dict[str, float], newton: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compiled code has its constants already; the interpreted search gets other ones."""
    whole = len(questions("maxq", 10, CompiledAuto(newton=newton)))
    monkeypatch.setattr(module, "TUNING", TUNING._replace(**change))
    one, other = both("maxq", 10, newton=newton)
    assert len(other) == whole
    assert in_step(one, other) < min(60, whole)
