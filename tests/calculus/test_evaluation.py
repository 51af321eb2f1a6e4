"""Values and gradients in float64 against the checker, on functions drawn at random."""

from __future__ import annotations

import pickle
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.limits import gradient_enclosure

import goldstein as gs
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.calculus.evaluation import Evaluation
from goldstein.calculus.operators import rational_scale
from goldstein.checker.sides import point_at
from goldstein.errors import KinkError, NotCertifiableError

DIM = 6


STEPS = [
    lambda u, v, n, A, pick: u[::-1] * A[0],
    lambda u, v, n, A, pick: u[pick],
    lambda u, v, n, A, pick: u[:n] + v[:n] - 0.25,
    lambda u, v, n, A, pick: u[:n] - 2.0 * v[:n],
    lambda u, v, n, A, pick: u[:n] * v[:n],
    lambda u, v, n, A, pick: (u[:2].reshape(2, 1) @ v[:2].reshape(1, 2)).reshape(4)[:3],
    lambda u, v, n, A, pick: (u[:1].reshape(1, 1) @ v[:2].reshape(1, 2)).reshape(2),
    lambda u, v, n, A, pick: (u[:2].reshape(1, 2) @ v[:2]) / 3.0 + u[:2],
    lambda u, v, n, A, pick: A @ u + 0.1,
    lambda u, v, n, A, pick: sparse.csr_array(np.where(np.abs(A) > 0.7, A, 0.0)) @ u,
    lambda u, v, n, A, pick: gs.concatenate([u[:2], 0.5 * v[:1], [0.3]]),
    lambda u, v, n, A, pick: gs.stack([gs.abs(u[0]), gs.abs(v[0] + 1.0), u[0] * v[0], u[1]]),
    lambda u, v, n, A, pick: gs.stack([gs.max([u[0], v[0]]), gs.max([u[1], v[1] + 0.1]), 0.2]),
    lambda u, v, n, A, pick: gs.relu(u - 0.2) + gs.hard_tanh(u),
    lambda u, v, n, A, pick: gs.huber(u, 0.7) / 7,
    lambda u, v, n, A, pick: gs.row_max(gs.concatenate([u[:n], v[:n]]).reshape(-1, 2)),
    lambda u, v, n, A, pick: gs.softplus(u[:2]) - gs.log_sum(u[:2], 0.5),
    lambda u, v, n, A, pick: gs.stack([gs.norm2(u[:2]), gs.sum_squares(v), gs.max(u), gs.sum(v)]),
]


def grown(rng: np.random.Generator, steps: int = 14) -> Any:
    """A scalar function of some vectors that are made of one another."""
    parts = [gs.Variable(DIM)]
    for _ in range(steps):
        u, v = (parts[i] for i in rng.integers(len(parts), size=2))
        A, pick = np.round(rng.standard_normal((4, u.size)), 2), rng.integers(u.size, size=3)
        parts.append(STEPS[rng.integers(len(STEPS))](u, v, min(u.size, v.size), A, pick))
    return gs.sum(gs.abs(parts[-1])) + gs.max(parts[-2]) + 0.5 * gs.sum_squares(parts[-3])


@pytest.mark.parametrize("seed", range(60))
def test_values_and_gradients_are_those_of_the_checker(seed: int) -> None:
    rng = np.random.default_rng(seed)
    F = grown(rng)
    for _ in range(3):
        x = rng.uniform(-1, 1, DIM)
        value = F.value(x)
        try:
            g = F.gradient(x)
        except KinkError:  # one entry picked twice ties with itself
            with pytest.raises(NotCertifiableError):
                gradient_enclosure(F, x)
            continue
        if not (abs(value) < 1e12 and np.abs(g).max() < 1e12):
            continue
        low, high = point_at(F.program(), x).between()
        largest = np.abs(F.evaluation.tape(x)).max()
        assert float(low) - 1e-9 * largest <= value <= float(high) + 1e-9 * largest
        mid, rad = gradient_enclosure(F, x)
        scale = np.abs(F.evaluation.cotangents(F.evaluation.tape(x))).max() * (1.0 + largest)
        assert (np.abs(g - mid) <= rad + 1e-10 * scale).all()


@pytest.mark.parametrize("seed", range(20))
def test_sides_that_are_called_clear_are_those_of_the_checker(seed: int) -> None:
    """Points next to a kink: the pieces in float64 are right, or the checker was asked."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((3, DIM))
    F = gs.sum(gs.abs(A @ gs.Variable(DIM) - 1.0))
    x = np.linalg.lstsq(A, np.ones(3), rcond=None)[0]  # on all three kinks, up to rounding
    for shift in (0.0, 1e-17, 1e-16, 1e-15, 1e-12):
        y = x + shift * rng.standard_normal(DIM)
        gaps = [sum((Fraction(a) * Fraction(t) for a, t in zip(r, y)), Fraction(-1)) for r in A]
        if all(gaps):
            signs = np.array([1.0 if gap > 0 else -1.0 for gap in gaps])
            np.testing.assert_allclose(F.gradient(y), signs @ A, rtol=1e-12, atol=1e-12)
        else:
            with pytest.raises(KinkError):
                F.gradient(y)


def test_rows_and_cotangents_of_inner_nodes() -> None:
    w = gs.Variable(3)
    A = np.array([[1.0, -2.0, 0.5], [0.0, 3.0, 1.0]])
    F = gs.sum(gs.abs(A @ w / 3.0 + 1.0)) + gs.sum(gs.relu(w[:2] * w[1:]))
    found, x = Evaluation(F.program().nodes), np.array([0.3, -0.4, 0.7])
    t = found.tape(x)
    kinked = [node.of[0] for node in found.nodes if node.name == "piecewise" and node.breakpoints]
    rows = [found.rows(k, [0, 1], t, None) for k in kinked]
    both = {tuple(map(tuple, table.round(12))) for table in rows}
    product = np.array([[x[1], x[0], 0.0], [0.0, x[2], x[1]]])
    assert both == {tuple(map(tuple, table.round(12))) for table in (A / 3.0, product)}
    g = found.cotangents(t, found.pieces(t))
    np.testing.assert_allclose(g[:3], F.gradient(x))


def test_a_copy_in_another_process_is_the_same_function() -> None:
    F = grown(np.random.default_rng(3))
    x = np.full(DIM, 0.3)
    F.gradient(x)
    again = pickle.loads(pickle.dumps(F))
    assert again.value(x) == F.value(x)
    assert np.array_equal(again.gradient(x), F.gradient(x))


def test_constants_and_slopes_that_are_one_number() -> None:
    """What does not depend on the entry is written as one number, and stands for all of them."""
    w, A = gs.Variable(3), np.array([[1.0, 2.0, 0.0], [0.5, -1.0, 1.0]])
    constant = Elementwise(PiecewisePolynomial("constant", [], [[2]]), A @ w)
    third = rational_scale(A @ w, Fraction(1, 3))
    F = gs.max(gs.concatenate([constant, w])) + gs.sum(third) + gs.sum(constant * w[:2]) + third[0]
    x = np.array([0.5, 3.0, -1.0])
    assert F.value(x) == pytest.approx(3.0 + (A @ x).sum() / 3.0 + 7.0 + 6.5 / 3.0)
    expected = np.array([2.0, 2.0, 0.0]) + A.sum(axis=0) / 3.0 + A[0] / 3.0 + [0.0, 1.0, 0.0]
    np.testing.assert_allclose(F.gradient(x), expected)
    np.testing.assert_allclose(F.evaluation.gradient(F.evaluation.tape(x)), expected)
