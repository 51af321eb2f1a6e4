"""Points of a proof on definite sides of the kinks: each on its own piece, far from the others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.oracles import CountedOracle, FunctionOracle
from goldstein.solvers.base import Evidence
from goldstein.solvers.gather import placed


def largest(rows: np.ndarray) -> CountedOracle:
    """The maximum of linear functions: all of them are active at 0."""
    return CountedOracle(
        FunctionOracle(lambda x: float((rows @ x).max()), lambda x: rows[int((rows @ x).argmax())])
    )


def crowded(rows: np.ndarray) -> Evidence:
    """Gradients that were all found at 0 itself."""
    count, dim = rows.shape
    weights = np.full(count, 1.0 / count)
    return Evidence(np.zeros(dim), np.zeros((count, dim)), weights, np.zeros(count, bool), rows)


@pytest.mark.parametrize("seed", range(5))
def test_each_piece_gets_a_point_where_it_rules_by_far(seed: int) -> None:
    """A simplex: one gradient per piece is all that is asked, and they cancel."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((5, 4))
    rows -= rng.dirichlet(np.ones(5)) @ rows
    oracle, delta = largest(rows), 1e-3
    found = placed(oracle, crowded(rows), delta, 1e-9, rng)
    assert found is not None
    assert oracle.gradients == 5
    assert np.linalg.norm(found.weights @ found.gradients) <= 1e-9
    assert np.linalg.norm(found.points, axis=1).max() <= delta
    for y, g in zip(found.points, found.gradients):
        # Nothing else rules within a part of delta.
        for aside in rng.standard_normal((20, 4)):
            z = y + 1e-3 * delta * aside / np.linalg.norm(aside)
            assert np.array_equal(rows[int((rows @ z).argmax())], g)


def test_pieces_that_nobody_knew_are_found() -> None:
    """|x_1| + ... + |x_d| from two of its gradients: the others are where m points to."""
    dim = 6
    oracle = CountedOracle(FunctionOracle(lambda x: float(np.abs(x).sum()), np.sign))
    signs = np.ones((2, dim))
    signs[1, 0] = -1.0
    found = placed(oracle, crowded(signs), 1e-3, 1e-9, np.random.default_rng(0))
    assert found is not None
    assert np.linalg.norm(found.weights @ found.gradients) <= 1e-9


def test_where_f_falls_there_is_nothing_to_place() -> None:
    oracle = CountedOracle(FunctionOracle(lambda x: float(x.sum()), np.ones_like))
    assert placed(oracle, crowded(np.ones((1, 3))), 1e-3, 1e-3, np.random.default_rng(0)) is None


@pytest.mark.parametrize("name", ["goffin", "k_median", "maxquad"])
def test_a_run_that_has_arrived_is_proved_without_delay(name: str) -> None:
    """Before, these took some thousand calls, or found no proof."""
    problem: Any = gs.problems.get(name)
    res = gs.minimize(problem, problem.x0, eps=1e-6, delta=1e-6, rng=0, max_calls=3000)
    assert res.success
    assert res.certificate.verify(problem).ok
