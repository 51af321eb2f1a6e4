"""Three hundred small models: every certified eps is at least the true distance at the pivot.

The truth is computed here from scratch: kinks through the pivot in rational arithmetic, all cells
around it, closed formulas for the gradients of the cells, shortest vector of their hull.
"""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest

import goldstein as gs
from goldstein.construction.near.pivot import near_certificate
from goldstein.models import margin_svm, relu_one_layer, relu_two_layer
from goldstein.numerics.hull import min_norm_weights

EPS, DELTA = 1e-3, 5e-2
CHUNKS = 6
PER_CHUNK = 52


def instance(seed):
    """A model, its kink rows (a, t), and a function (y, sides) -> gradient."""
    rng = np.random.default_rng(seed)
    integer = seed % 2 == 0
    n, d = [(3, 5), (12, 3), (8, 2)][(seed // 6) % 3]
    A = rng.integers(-3, 4, size=(n, d)).astype(float) if integer else rng.standard_normal((n, d))
    if seed % 5 == 0:
        A[1] = A[-1] = A[0]
    y = rng.integers(-2, 3, size=n).astype(float) if integer else rng.standard_normal(n)
    kind = seed % 6
    if kind < 2:
        return svm(A, [1.0, 0.3][kind])
    if kind == 2:
        return net(A, y, relu_one_layer(A, y, 2, bias=False, ridge=0.1), 0.1, False, "squared")
    ones = np.hstack([A, np.ones((n, 1))])
    if kind == 3:
        return net(ones, y, relu_one_layer(A, y, 2, loss="huber"), 0.0, False, "huber")
    if kind == 4:
        return net(A, y, relu_two_layer(A, y, 2, bias=False), 0.0, True, "squared")
    labels = np.where(y > 0, 1, -1)
    F = relu_two_layer(A, labels, 2, loss="logistic", ridge=0.05)
    return net(ones, labels, F, 0.05, True, "logistic")


def svm(Z, lam):
    n = len(Z)
    rows = np.vstack([Z, Z])
    levels = np.repeat([0.0, 1.0], n)

    def gradient(w, sides):
        inside = (sides[:n] > 0) & (sides[n:] < 0)
        return lam * w - Z[inside].sum(axis=0)

    return margin_svm(Z, 1.0, lam), rows, levels, gradient


def net(X, y, F, ridge, trained, loss):
    n, d = X.shape
    m = 2
    rows = np.zeros((n * m, F.dim))
    for i, j in itertools.product(range(n), range(m)):
        rows[i * m + j, j * d : (j + 1) * d] = X[i]

    def gradient(theta, sides):
        W = theta[: m * d].reshape(m, d)
        mask = (sides > 0).reshape(n, m)
        hidden = mask * (X @ W.T)
        a = theta[m * d :] if trained else np.array([1.0, -1.0])
        out = hidden @ a
        if loss == "squared":
            slope = out - y
        elif loss == "huber":
            slope = np.clip(out - y, -1.0, 1.0)
        else:
            slope = -y / (1.0 + np.exp(y * out))
        inner = (mask * np.outer(slope, a)).T @ X
        parts = [inner.ravel(), hidden.T @ slope] if trained else [inner.ravel()]
        return np.concatenate(parts) + ridge * theta

    return F, rows, np.zeros(n * m), gradient


def cells(active, rng):
    """Signs of the active rows in all cells around the point (all that many directions show)."""
    unique = np.unique(active, axis=0)
    ways = [rng.standard_normal((3000, active.shape[1]))]
    if len(unique) <= 9:
        signs = np.array(list(itertools.product([-1.0, 1.0], repeat=len(unique))))
        ways.append((np.linalg.pinv(unique) @ signs.T).T)
    rates = np.vstack(ways) @ active.T
    sure = (np.abs(rates) > 1e-9).all(axis=1)
    return np.unique(np.sign(rates[sure]), axis=0)


def true_distance(pivot, rows, levels, gradient, rng):
    exact = [
        sum((Fraction(a) * q for a, q in zip(row, pivot) if a), Fraction(0)) - Fraction(t)
        for row, t in zip(rows.tolist(), levels.tolist())
    ]
    sides = np.array([float(np.sign(float(c))) if c else 0.0 for c in exact])
    zero = np.array([c == 0 for c in exact]) & (np.abs(rows).sum(axis=1) > 0)
    y = np.array([float(q) for q in pivot])
    if not zero.any():
        return float(np.linalg.norm(gradient(y, sides)))
    found = []
    for signs in cells(rows[zero], rng):
        here = sides.copy()
        here[zero] = signs
        found.append(gradient(y, here))
    found = np.array(found)
    return float(np.linalg.norm(min_norm_weights(found) @ found))


def solve(F, seed):
    for delta in (1e-3, 1e-4, 1e-5):
        run = gs.minimize(F, F.start(seed), eps=EPS, delta=delta, rng=seed, max_calls=20_000)
        proof = near_certificate(F, run.certificate, DELTA, EPS)
        if proof is not None and proof.eps <= EPS:
            return proof
    return proof


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_certified_never_below_the_truth_and_nearly_always_found(chunk):
    reached = 0
    for seed in range(chunk * PER_CHUNK, (chunk + 1) * PER_CHUNK):
        F, rows, levels, gradient = instance(seed)
        proof = solve(F, seed)
        if proof is None:
            continue
        found = proof.verify(F)
        assert found.ok, (seed, found)
        assert found.label == "certified"
        assert proof.delta <= DELTA
        truth = true_distance(
            proof.exact_pivot, rows, levels, gradient, np.random.default_rng(seed)
        )
        assert proof.eps >= truth - 1e-11, (seed, proof.eps, truth)
        reached += proof.eps <= EPS
    assert reached >= 0.9 * PER_CHUNK
