"""Searches for near proofs end: by steps, by the clock, and with a word on why."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import StandardScaler

import goldstein as gs
import goldstein.calculus as gc
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.construction.near.pivot import MAX_WORK, near_certificate, search_near
from goldstein.errors import OutOfBudget
from goldstein.models import margin_svm, relu_two_layer
from goldstein.numerics import budget as budget_module
from goldstein.numerics.budget import Budget
from goldstein.reductions.stationarity import attempt_near
from goldstein.solvers import Request


def crowded(seed=0, rows=60, dim=12):
    """A sum of kinks through nearly every point, and evidence around one of them."""
    rng = np.random.default_rng(seed)
    F = margin_svm(rng.standard_normal((rows, dim)), 1.0, 0.3)
    x = F.start(seed)
    points = x + 0.05 * rng.standard_normal((30, dim))
    return F, GoldsteinCertificate.from_gradients(
        x, points, np.array([F.gradient(p) for p in points])
    )


@pytest.fixture(scope="module")
def digits():
    """The network of ReLUNetClassifier() on digits, and a far from stationary point of it."""
    X, y = load_digits(return_X_y=True)
    F = relu_two_layer(
        StandardScaler().fit_transform(X), y, 16, loss="logistic", ridge=1e-3, mean=True,
        output_bias=True,
    )  # fmt: skip
    x = F.start(0)
    rng = np.random.default_rng(0)
    points = x + 1e-3 * rng.standard_normal((4, x.size)) / np.sqrt(x.size)
    return F, GoldsteinCertificate.from_gradients(
        x, points, np.array([F.gradient(p) for p in points])
    )


def test_a_short_gradient_is_a_pivot_of_its_own_and_takes_a_few_steps(digits):
    F, _ = digits
    run = gs.minimize(F, F.start(0), eps=1e-2, delta=1e-2, rng=0, max_calls=10_000)
    shortest = np.linalg.norm(run.certificate.gradients, axis=1).min()
    assert shortest <= 1e-2
    found = search_near(F, run.certificate, 1e-2, 1e-2, budget=Budget(None, 10))
    assert found.note == "proved"
    assert found.certificate.eps <= 1e-2
    assert found.certificate.verify(F).label == "certified"


def test_a_limit_in_seconds_ends_the_search_in_a_large_function(digits):
    F, evidence = digits
    begin = time.perf_counter()
    found = search_near(F, evidence, 1.0, 1e-6, budget=Budget(begin + 0.5))
    # Without the limit it takes minutes.
    assert time.perf_counter() - begin < 10.0
    assert "the search for a pivot stopped after 0." in found.note
    assert found.note.startswith("not proved: ")


def test_a_limit_in_steps_is_kept_and_said():
    F, evidence = crowded()
    for most in (0, 1, 7, 40):
        found = search_near(F, evidence, 0.1, 1e-12, budget=Budget(None, most))
        assert f"stopped after {most} steps" in found.note or found.note.startswith(
            "not proved: the "
        )
    assert search_near(F, evidence, 0.1, 1e-12, budget=Budget(None, 0)).certificate is None


def curved(seed=0):
    """Curved kinks of a small network with two hidden layers, and evidence around a point."""
    rng = np.random.default_rng(seed)
    A, B, data = (rng.standard_normal(shape) for shape in ((3, 2), (2, 3), (6, 2)))
    w = gc.Variable(4)
    hidden = gc.relu(data @ w.reshape(2, 2) @ A.T + 0.1)
    F = gc.sum(gc.abs(gc.relu(hidden @ B.T) @ np.ones(2) - 1.0)) + 0.1 * gc.sum_squares(w)
    F = F + gc.sum(gc.abs(w[0] * w[1] - w[2]))
    x = 0.3 * rng.standard_normal(4)
    points = x + 0.2 * rng.standard_normal((20, 4))
    return F, GoldsteinCertificate.from_gradients(
        x, points, np.array([F.gradient(p) for p in points])
    )


@pytest.mark.parametrize("problem", [crowded, curved])
def test_every_step_looks_at_the_clock(monkeypatch, problem):
    """With a clock that runs by itself, any deadline is met after as many looks."""
    F, evidence = problem()
    looks = 0

    class Clock:
        @staticmethod
        def perf_counter():
            nonlocal looks
            looks += 1
            return float(looks)

    monkeypatch.setattr(budget_module, "time", Clock)
    free = search_near(F, evidence, 0.1, 1e-12, budget=Budget(1e9, MAX_WORK))
    whole = looks
    assert "stopped" not in free.note
    for share in (0.1, 0.5, 0.9):
        looks = 0
        found = search_near(F, evidence, 0.1, 1e-12, budget=Budget(share * whole, MAX_WORK))
        assert "stopped after" in found.note
        assert looks <= share * whole + 2


def test_what_was_proved_before_the_end_is_kept():
    w = gc.Variable(2)
    F = gc.sum(gc.abs(w)) + 0.3 * gc.sum_squares(w)
    rng = np.random.default_rng(0)
    points = 0.05 * rng.standard_normal((12, 2))
    x = np.array([0.01, -0.02])
    evidence = GoldsteinCertificate.from_gradients(
        x, points, np.array([F.gradient(p) for p in points])
    )
    whole = near_certificate(F, evidence, 0.1, 1e-3)
    assert whole.eps <= 1e-3
    best = [
        np.inf if found is None else found.eps
        for found in (
            near_certificate(F, evidence, 0.1, 1e-3, max_work=k) for k in range(0, 200, 5)
        )
    ]
    assert best[0] == np.inf
    assert best[-1] == whole.eps
    assert all(later <= earlier for earlier, later in itertools.pairwise(best))


def test_a_proof_cut_short_claims_nothing():
    F = gc.sum(gc.abs(gc.Variable(2)))
    ways = [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    hasty = Budget(max_work=2).spend
    with pytest.raises(OutOfBudget):
        gs.NearCertificate.prove(F, np.zeros(2), [0, 0], ways, np.full(4, 0.25), pause=hasty)
    patient = Budget().spend
    slow = gs.NearCertificate.prove(F, np.zeros(2), [0, 0], ways, np.full(4, 0.25), pause=patient)
    plain = gs.NearCertificate.prove(F, np.zeros(2), [0, 0], ways, np.full(4, 0.25))
    assert slow.content_digest() == plain.content_digest()
    assert slow.verify(F).ok


@pytest.mark.parametrize("rows", [30, 400])
def test_paced_proofs_are_the_plain_ones_to_the_last_bit(rows):
    """In rationals and in enclosures: what is claimed must not depend on how it was asked."""
    rng = np.random.default_rng(rows)
    X, y = rng.standard_normal((rows, 8)), rng.standard_normal(rows)
    F = relu_two_layer(X, y, 6, ridge=0.1)
    x = F.start(1)
    ways = rng.standard_normal((20, x.size))
    plain = gs.NearCertificate.prove(F, x, x, ways, np.ones(20))
    paced = gs.NearCertificate.prove(F, x, x, ways, np.ones(20), pause=Budget().spend)
    assert paced.content_digest() == plain.content_digest()


def test_the_api_says_why_there_is_no_near_certificate():
    F, evidence = crowded()
    late = time.perf_counter() - 1.0
    found = attempt_near(F, evidence, Request(1e-12, 0.1, 0), deadline=late)
    assert found.certificate is None
    assert "stopped after" in found.note
    from scipy.sparse.linalg import aslinearoperator

    G = gc.sum(gc.abs(gc.linear(aslinearoperator(np.eye(2)), gc.Variable(2))))
    around = GoldsteinCertificate.from_gradients(np.ones(2), np.ones((1, 2)), np.ones((1, 2)))
    assert "LinearOperator" in attempt_near(G, around, Request(0.1, 0.1, 0), deadline=np.inf).note
