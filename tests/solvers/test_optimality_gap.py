"""What a certificate promises about a convex function, by brute force."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein.solvers import loop


def cone(rng: np.random.Generator, d: int, pieces: int):
    """max <a_i, x> with unit vectors a_i: piece i is active at every multiple of a_i."""
    a = rng.standard_normal((pieces, d))
    a /= np.linalg.norm(a, axis=1)[:, None]
    return a, lambda z: (z @ a.T).max(axis=-1)


@pytest.mark.parametrize("seed", range(20))
def test_no_point_is_lower_than_promised(seed: int) -> None:
    rng = np.random.default_rng(seed)
    d, pieces = int(rng.integers(1, 6)), int(rng.integers(1, 9))
    a, f = cone(rng, d, pieces)
    x = 0.05 * rng.standard_normal(d)
    points = a * rng.uniform(0.01, 0.1, (pieces, 1))
    weights = rng.dirichlet(np.ones(pieces))
    claim = gs.GoldsteinCertificate.from_gradients(x, points, a, weights)
    start = x + rng.standard_normal(d) * rng.choice([1e-3, 1.0, 100.0])
    way = rng.standard_normal((2000, d))
    reach = np.linalg.norm(x - start)
    way *= (reach * rng.uniform(0, 1, 2000) / np.linalg.norm(way, axis=1))[:, None]
    allowed = loop.optimality_gap(claim, start)
    assert f(x + way).min() >= f(x) - allowed - 1e-12 * (1 + reach)
    # And it is a promise: with small gradients and points close by, there is not much left.
    assert allowed <= claim.eps * max(reach, 0.1 * max(1, np.linalg.norm(start))) + 2 * claim.delta


def claim_at(x, jac) -> gs.GoldsteinCertificate:
    return gs.GoldsteinCertificate.from_gradients(x, x[None], jac(x)[None], np.ones(1))


@pytest.mark.parametrize("d", [1, 3, 400])
def test_gradients_of_a_convex_function_break_no_promise(d: int, monkeypatch) -> None:
    monkeypatch.setattr(loop, "_AT_ONCE", 1000)  # several parts
    rng = np.random.default_rng(d)
    m = rng.standard_normal((d, d))

    def jac(x):
        return m.T @ np.sign(m @ x) + 0.1 * x

    points = rng.standard_normal((200, d))
    gradients = np.array([jac(y) for y in points])
    assert not loop.contradicts_convexity(claim_at(rng.standard_normal(d), jac), points, gradients)


@pytest.mark.parametrize("d", [1, 3, 400])
def test_gradients_that_no_convex_function_has_break_it(d: int) -> None:
    rng = np.random.default_rng(d)

    def jac(x):
        return np.cos(3 * x)

    points = rng.standard_normal((200, d))
    gradients = np.array([jac(y) for y in points])
    claim = claim_at(np.full(d, 0.1), jac)
    assert loop.contradicts_convexity(claim, points, gradients)
    # One of them may be an accident, none is nothing.
    way = (points - claim.x) * (gradients - claim.gradients)
    odd = int(np.argmin(way.sum(axis=1)))
    assert not loop.contradicts_convexity(claim, points[[odd]], gradients[[odd]])
    assert not loop.contradicts_convexity(claim, points[:0], gradients[:0])
