"""d + 1 points are enough, and prove no less."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from goldstein.numerics.hull_problems import sparse_weights


@settings(max_examples=100, deadline=None)
@given(
    count=st.integers(1, 40),
    dim=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    shape=st.sampled_from(["generic", "repeated", "flat", "integer", "scaled"]),
)
def test_few_points_and_no_longer_a_combination(
    count: int, dim: int, seed: int, shape: str
) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((count, dim))
    if shape == "repeated":
        rows[:] = rows[rng.integers(0, max(1, count // 3), count)]
    elif shape == "flat":
        rows[:, 1:] = rows[:, :1]
    elif shape == "integer":
        rows = rng.integers(-2, 3, (count, dim)).astype(float)
    elif shape == "scaled":
        rows *= 10.0 ** rng.integers(-8, 9, (count, 1))
    weights = rng.random(count)
    weights /= weights.sum()
    sparse = sparse_weights(weights, rows)
    assert (sparse >= 0).all()
    assert abs(sparse.sum() - 1.0) <= 1e-12
    assert (sparse > 0).sum() <= dim + 1
    scale = np.abs(rows).max(initial=1.0)
    assert np.linalg.norm(sparse @ rows) <= np.linalg.norm(weights @ rows) + 1e-9 * scale


def test_unused_rows_stay_unused() -> None:
    rows = np.array([[1.0], [-1.0], [0.0]])
    sparse = sparse_weights(np.array([0.5, 0.5, 0.0]), rows)
    assert sparse[2] == 0.0
    assert abs(sparse @ rows[:, 0]) <= 1e-15
