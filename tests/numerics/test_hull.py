"""The shortest vector of a hull: optimality, agreement with least squares, hard cases."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import nnls

from goldstein.errors import InputError
from goldstein.numerics import hull as hull_module
from goldstein.numerics.hull import Hull, min_norm_weights


def filled(rows, capacity=4):
    hull = Hull(rows.shape[1], capacity)
    for row in rows:
        hull.add(row)
    return hull


def assert_on_simplex(weights, count):
    assert weights.shape == (count,)
    assert (weights >= 0.0).all()
    assert abs(weights.sum() - 1.0) <= 1e-12


def assert_shortest(weights, rows):
    """The optimality condition <m, g_j> >= |m|^2, up to rounding at the gradients' scale."""
    assert_on_simplex(weights, len(rows))
    point = weights @ rows
    scale = np.linalg.norm(rows, axis=1).max()
    slack = 1e-12 * scale * np.linalg.norm(point) + 1e-14 * scale**2
    assert (rows @ point).min() >= point @ point - slack


def reference_length(rows):
    """Straight from SciPy, without any of our reductions."""
    lengths = np.linalg.norm(rows, axis=1)
    if lengths.min() == 0.0:
        return 0.0  # SciPy's solver can cycle on a zero row
    scale = lengths.max()
    system = np.vstack([rows.T / scale, np.ones(len(rows))])
    weights = nnls(system, np.append(np.zeros(rows.shape[1]), 1.0))[0]
    return np.linalg.norm(weights @ rows) / weights.sum()


@st.composite
def bundles(draw):
    """Bundles of all ranks, with repeated, zero, opposite, tiny and huge rows."""
    count = draw(st.integers(1, 14))
    dim = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    rank = draw(st.integers(1, dim))
    rows = rng.standard_normal((count, rank)) @ rng.standard_normal((rank, dim))
    rows += draw(st.sampled_from([0.0, 0.3, 3.0])) * rng.standard_normal(dim)
    kind = draw(st.sampled_from(["plain", "duplicates", "zero", "near", "opposite", "integers"]))
    if kind == "duplicates":
        rows[rng.integers(count, size=count // 2)] = rows[0]
    elif kind == "zero":
        rows[rng.integers(count)] = 0.0
    elif kind == "near":
        rows[1:] = rows[0] + 1e-9 * rows[1:]
    elif kind == "opposite":
        rows[count // 2 :] = -rows[: count - count // 2][::-1]
    elif kind == "integers":
        rows = np.round(rows)
    return rows * 10.0 ** draw(st.integers(-8, 8))


@given(bundles())
@settings(max_examples=300, deadline=None)
def test_one_shot_is_optimal(rows):
    assert_shortest(min_norm_weights(rows), rows)


@given(bundles())
@settings(max_examples=300, deadline=None)
def test_incremental_is_optimal_after_every_row(rows):
    hull = Hull(rows.shape[1], 2)
    shortest = np.inf
    for count, row in enumerate(rows, 1):
        assert hull.add(row) == count - 1
        weights, point = hull.solve()
        assert_shortest(weights, rows[:count])
        scale = np.linalg.norm(rows, axis=1).max()
        np.testing.assert_allclose(point, weights @ rows[:count], rtol=0, atol=1e-14 * scale)
        length = np.linalg.norm(point)
        assert length <= shortest + 1e-13 * scale
        shortest = length


@given(bundles())
@settings(max_examples=200, deadline=None)
def test_all_ways_agree_with_least_squares(rows):
    scale = np.linalg.norm(rows, axis=1).max()
    expected = reference_length(rows)
    for weights in (min_norm_weights(rows), filled(rows).solve()[0]):
        assert abs(np.linalg.norm(weights @ rows) - expected) <= 1e-12 * scale


@pytest.mark.parametrize("seed", range(6))
def test_agrees_with_enumeration_of_all_faces(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((6, 4)) + 0.4
    best = np.inf
    for size in range(1, 6):
        for face in itertools.combinations(range(6), size):
            block = rows[list(face)]
            border = np.ones((size, 1))
            system = np.block([[block @ block.T, border], [border.T, np.zeros((1, 1))]])
            weights = np.linalg.lstsq(system, np.append(np.zeros(size), 1.0))[0][:size]
            if (weights >= -1e-12).all():
                best = min(best, np.linalg.norm(weights @ block))
    assert np.linalg.norm(filled(rows).solve()[1]) == pytest.approx(best, rel=1e-10)


@pytest.mark.parametrize("ratio", [1e-5, 1e-6, 1e-8, 1e-10, 1e-12])
@pytest.mark.parametrize("dim", [3, 40])
def test_short_answers_keep_their_digits(ratio, dim):
    # The hull of these rows is a flat simplex at distance `ratio` from the origin.
    rng = np.random.default_rng(7)
    basis = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
    flat = rng.standard_normal((dim, dim - 1))
    flat -= flat.mean(axis=0)
    rows = np.column_stack([flat, np.full(dim, ratio)]) @ basis
    hull = filled(rows)
    weights, point = hull.solve()
    assert_on_simplex(weights, dim)
    assert abs(np.linalg.norm(point) - ratio) <= 1e-13 * np.linalg.norm(rows, axis=1).max()
    assert np.linalg.norm(min_norm_weights(rows) @ rows) == pytest.approx(ratio, abs=1e-13 * dim)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=100, deadline=None)
def test_wildly_different_scales_never_lose_to_a_vertex(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((9, 5)) * 10.0 ** rng.uniform(-8, 8, (9, 1))
    shortest = np.linalg.norm(rows, axis=1).min()
    for weights in (min_norm_weights(rows), filled(rows).solve()[0]):
        assert_on_simplex(weights, 9)
        assert np.linalg.norm(weights @ rows) <= shortest * (1 + 1e-12)


@pytest.mark.parametrize(
    "rows",
    [
        np.zeros((3, 2)),
        np.ones((5, 1)),
        np.array([[1.0], [-1.0]]),
        np.array([[1e200, 0.0], [-1e200, 1e200]]),
        np.array([[1e-200, 0.0], [1e-200, 1e-201]]),
        np.eye(3)[[0, 0, 1, 1, 2]],
        np.array([[3.0, 4.0]]),
    ],
)
def test_degenerate_bundles(rows):
    size = np.abs(rows).max() or 1.0
    shortest = np.linalg.norm(rows / size, axis=1).min()
    with np.errstate(over="ignore", invalid="ignore"):  # squares of 1e200
        incremental = filled(rows).solve()[0]
    for weights in (min_norm_weights(rows), incremental):
        assert_on_simplex(weights, len(rows))
        assert np.linalg.norm(weights @ (rows / size)) <= shortest * (1 + 1e-12)


@pytest.mark.parametrize(("count", "dim"), [(60, 8), (80, 200), (40, 39), (120, 3)])
def test_many_rows_at_once(count, dim):
    rng = np.random.default_rng(count)
    for offset in (0.0, 0.5, 4.0):
        rows = rng.standard_normal((count, dim)) + offset * rng.standard_normal(dim)
        weights, point = filled(rows).solve()
        assert_shortest(weights, rows)
        scale = np.linalg.norm(rows, axis=1).max()
        assert abs(np.linalg.norm(point) - reference_length(rows)) <= 1e-12 * scale


@given(bundles(), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_any_history_of_changes_ends_at_the_same_point(rows, seed):
    rng = np.random.default_rng(seed)
    hull = Hull(rows.shape[1], 1)
    mirror = []
    for row in rows:
        hull.add(row)
        mirror.append(row)
        action = rng.integers(3)
        if action == 0:
            hull.solve()
        elif action == 1:
            kept = rng.permutation(len(mirror))[: rng.integers(1, len(mirror) + 1)]
            hull.keep(kept)
            mirror = [mirror[i] for i in kept]
    expected = np.array(mirror)
    np.testing.assert_array_equal(hull.gradients, expected)
    weights, _ = hull.solve()
    assert_shortest(weights, expected)
    assert set(hull.support) == set(np.flatnonzero(weights))


def test_clear_starts_anew():
    hull = filled(np.eye(3))
    hull.solve()
    hull.clear()
    assert hull.size == 0
    hull.add(np.array([0.0, 2.0, 0.0]))
    weights, point = hull.solve()
    np.testing.assert_array_equal(weights, [1.0])
    np.testing.assert_array_equal(point, [0.0, 2.0, 0.0])


def test_a_new_row_has_weight_zero_until_solved():
    hull = filled(np.eye(3)[:2])
    hull.solve()
    hull.add(np.array([-1.0, -1.0, 0.0]))
    np.testing.assert_allclose(hull.weights, [0.5, 0.5, 0.0])


def test_survives_a_failing_linear_algebra(monkeypatch):
    def broken(*args, **kwargs):
        raise RuntimeError("too many iterations")

    def failed_cholesky(block, ones, **kwargs):
        return block, np.full_like(ones, np.nan), 1

    def failed_least_squares(system, target, *args, **kwargs):
        return np.full(system.shape[1], np.nan), None, 0, None

    rows = np.random.default_rng(1).standard_normal((6, 3)) + 0.5
    monkeypatch.setattr("goldstein.numerics.hull.nnls", broken)
    assert_shortest(min_norm_weights(rows), rows)
    monkeypatch.setattr(hull_module, "dposv", failed_cholesky)
    assert_shortest(filled(rows).solve()[0], rows)
    monkeypatch.setattr(hull_module, "lstsq", failed_least_squares)
    for weights in (min_norm_weights(rows), filled(rows).solve()[0]):
        assert_on_simplex(weights, 6)
        assert np.linalg.norm(weights @ rows) <= np.linalg.norm(rows, axis=1).min()


@pytest.mark.parametrize(
    "rows", [np.zeros((0, 3)), np.zeros(3), [[np.nan, 1.0]], [[np.inf], [1.0]]]
)
def test_refuses_what_is_not_a_bundle(rows):
    with pytest.raises(InputError):
        min_norm_weights(rows)


def test_refuses_misuse():
    with pytest.raises(InputError, match="empty"):
        Hull(2).solve()
    with pytest.raises(InputError, match="at least 1"):
        Hull(0)


@pytest.mark.parametrize("seed", range(40))
def test_more_rows_never_make_the_vector_longer(seed):
    """Whatever their lengths: least squares see only those near the longest."""
    rng = np.random.default_rng(seed)
    hull, before = Hull(3, 4), np.inf
    for _ in range(12):
        for _ in range(rng.integers(1, 4)):
            hull.add(rng.standard_normal(3) * 10.0 ** rng.integers(-24, 1))
        norm = float(np.linalg.norm(hull.solve()[1]))
        assert norm <= before * (1 + 1e-12)
        before = norm


def test_long_newcomers_do_not_hide_short_rows():
    t = 1e-20
    hull = Hull(2, 8)
    for row in ([t, 0.0], [-t, t]):
        hull.add(np.array(row))
        hull.solve()
    for row in ([0.0, 1.0], [1.0, 1.0]):
        hull.add(np.array(row))
    assert np.linalg.norm(hull.solve()[1]) == pytest.approx(t / np.sqrt(5.0))


@pytest.mark.parametrize(("count", "dim"), [(2, 5), (4, 10), (9, 40), (30, 200)])
def test_the_triangle_has_the_lengths_and_angles_of_the_columns(count: int, dim: int) -> None:
    columns = np.random.default_rng(count).standard_normal((dim, count))
    factor = hull_module._triangle(columns)
    assert np.array_equal(factor, np.triu(factor))
    assert factor.T @ factor == pytest.approx(columns.T @ columns)
