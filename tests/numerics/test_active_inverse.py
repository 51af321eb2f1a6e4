"""Inverses on changing sets agree with solving afresh."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.numerics.active_inverse import ActiveInverse
from goldstein.numerics.hull import LARGE_SET, Hull, min_norm_weights


def expected(gram: np.ndarray, active: np.ndarray, shift: float) -> np.ndarray:
    return np.linalg.solve(gram[np.ix_(active, active)] + shift, np.ones(len(active)))


@settings(max_examples=30)
@given(st.integers(0, 10**6))
def test_follows_sets_that_grow_and_shrink(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((20, 30))
    gram = rows @ rows.T
    inverse = ActiveInverse(20)
    active = rng.permutation(20)[:8]
    for _ in range(12):
        assert inverse.solve(gram, active, 2.0) == pytest.approx(expected(gram, active, 2.0))
        if rng.random() < 0.5 and len(active) > 2:
            active = np.delete(active, rng.integers(len(active)))
        else:
            rest = np.setdiff1d(np.arange(20), active)
            active = np.append(active, rng.permutation(rest)[: rng.integers(1, 3)])


def test_one_row_more_or_less_needs_no_factorisation(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((40, 60))
    gram = rows @ rows.T
    inverse = ActiveInverse(40)
    inverse.solve(gram, np.arange(20), 1.0)
    monkeypatch.setattr(inverse, "_factorise", lambda *args: pytest.fail("factorised"))
    for active in (np.arange(21), np.arange(22), np.arange(1, 22), np.arange(2, 24)):
        assert inverse.solve(gram, active, 1.0) == pytest.approx(expected(gram, active, 1.0))


def test_follows_a_renumbering() -> None:
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((12, 30))
    inverse = ActiveInverse(12)
    inverse.solve(rows @ rows.T, np.arange(10), 1.0)
    kept = np.array([11, 7, 0, 3, 5, 9])
    inverse.renumber(kept)
    rows = rows[kept]
    gram, active = rows @ rows.T, np.array([1, 2, 3, 5])
    assert inverse.solve(gram, active, 1.0) == pytest.approx(expected(gram, active, 1.0))


def test_survives_singular_sets() -> None:
    rows = np.ones((6, 4))
    answer = ActiveInverse(6).solve(rows @ rows.T, np.arange(6), 4.0)
    assert answer is None or np.isfinite(answer).all()


def test_large_hulls_are_as_good_as_least_squares() -> None:
    rng = np.random.default_rng(0)
    rows = np.where(rng.random((LARGE_SET + 60, 220)) < 0.25, 3.0, -1.0)
    hull = Hull(220, 16)
    for row in rows:
        hull.add(row)
        hull.solve()
    hull.keep(np.union1d(hull.support, [0, 1]))
    point = hull.solve()[1]
    assert len(hull.support) > LARGE_SET
    best = min_norm_weights(rows) @ rows
    assert np.linalg.norm(point) == pytest.approx(np.linalg.norm(best), rel=1e-8)
