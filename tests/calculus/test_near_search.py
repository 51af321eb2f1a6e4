"""The search for pivots: known answers, real data, and honest failure."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

import goldstein as gs
import goldstein.calculus as gc
from goldstein.certificates.goldstein import GoldsteinCertificate
from goldstein.construction.near.kinks import Kinks
from goldstein.construction.near.pivot import near_certificate
from goldstein.errors import NotCertifiableError
from goldstein.models import margin_svm, relu_two_layer


def around(F, x, radius, count, seed=0):
    """Goldstein evidence from random points of a ball."""
    rng = np.random.default_rng(seed)
    x = np.asarray(x, dtype=float)
    steps = rng.standard_normal((count, x.size))
    steps *= radius * rng.random((count, 1)) / np.linalg.norm(steps, axis=1, keepdims=True)
    points = x + steps
    return GoldsteinCertificate.from_gradients(x, points, np.array([F.gradient(p) for p in points]))


def test_absolute_value_at_a_twentieth():
    F = gc.sum(gc.abs(gc.Variable(1)))
    found = near_certificate(F, around(F, [0.05], 0.1, 8), 0.05, 0.0)
    assert (found.eps, found.delta) == (0.0, 0.05)


def test_max_example_reaches_the_origin_only_with_room():
    F = gc.max_affine([[2.0, 0.0], [-2.0, 0.0], [0.0, 1.0]], 0.0, gc.Variable(2))
    evidence = around(F, [0.0, 0.2], 0.15, 60)
    wide = near_certificate(F, evidence, 0.25, 1e-6)
    assert wide.eps <= 1e-12
    assert wide.delta == pytest.approx(0.2)
    narrow = near_certificate(F, evidence, 0.1, 1e-6)
    # Goldstein stationary, but no point of the ball is near stationary: at least 2/sqrt(5).
    assert narrow is None or narrow.eps >= 2 / math.sqrt(5) - 1e-12


def test_norm_pivot():
    w = gc.Variable(3)
    F = gc.norm2(w) + 0.1 * gc.sum(w)
    found = near_certificate(F, around(F, [1e-3, 0.0, 0.0], 5e-3, 40), 1e-2, 1e-6)
    assert found.eps <= 1e-9
    assert found.verify(F).ok


def test_traps_are_not_certified():
    s1 = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    found = near_certificate(s1, around(s1, [0.01, 0.99], 0.02, 60), 0.0142, 1e-3)
    assert found is None or found.eps >= 0.4
    w = gc.Variable(1)
    n1 = 0.5 * gc.sum_squares(gc.relu(w) + 1.0) + 0.5 * gc.sum_squares(gc.relu(-w) - 1.0)
    found = near_certificate(n1, around(n1, [0.0], 0.01, 20), 0.01, 1e-3)
    assert found is None or found.eps >= 0.9


def test_active_kinks_and_pivot_of_s1():
    F = margin_svm([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    form = Kinks(F)
    active = form.active(form.examine([0, 1]))
    assert {(k.entry, k.level) for k in active} == {(0, 0), (1, 1), (2, 1)}


def test_mean_of_points_moves_the_gradient_by_lam_times_the_distance():
    # u(y) = m + lam (y - ybar) when the pieces share the Hessian lam I.
    rng = np.random.default_rng(3)
    lam = 0.7
    F = margin_svm(rng.standard_normal((6, 4)), 1.0, lam)
    evidence = around(F, F.start(1), 0.05, 5)
    share = evidence.weights / evidence.weights.sum()
    mean = share @ evidence.points
    form = Kinks(F)
    pieces = [form.pieces(p) for p in evidence.points]
    y = mean + 0.01 * rng.standard_normal(4)
    moved = share @ np.array([form.gradient(y, p) for p in pieces])
    m = share @ evidence.gradients
    np.testing.assert_allclose(moved, m + lam * (y - mean), atol=1e-12)


def test_piece_hessian_of_a_product():
    # (2 relu(w))^2 / 2 has second derivative 4 on its piece.
    w = gc.Variable(1)
    F = 0.5 * gc.sum_squares(2.0 * gc.relu(w))
    slopes = [F.gradient(np.array([t]))[0] for t in (1.0, 2.0)]
    assert slopes[1] - slopes[0] == 4.0


def test_operators_are_refused():
    from scipy.sparse.linalg import aslinearoperator

    F = gc.sum(gc.abs(gc.linear(aslinearoperator(np.eye(2)), gc.Variable(2))))
    evidence = GoldsteinCertificate.from_gradients(np.ones(2), np.ones((1, 2)), np.ones((1, 2)))
    with pytest.raises(NotCertifiableError, match="LinearOperator"):
        near_certificate(F, evidence, 0.1, 0.1)


@pytest.mark.parametrize("loss", ["squared", "logistic"])
def test_smooth_points_need_no_kink(loss):
    rng = np.random.default_rng(0)
    y = np.where(rng.standard_normal(9) > 0, 1.0, -1.0)
    F = relu_two_layer(rng.standard_normal((9, 2)), y.astype(int), 2, loss=loss, ridge=0.1)
    theta = F.start(2)
    found = near_certificate(F, around(F, theta, 1e-9, 1), 1e-6, 0.0)
    assert found.eps <= np.linalg.norm(F.gradient(theta)) * (1 + 1e-5)


def test_support_vector_machine_on_breast_cancer():
    X, y = load_breast_cancer(return_X_y=True)
    X = np.hstack([StandardScaler().fit_transform(X), np.ones((len(X), 1))])
    F = margin_svm(X * (2.0 * y - 1.0)[:, None], rho=1.0, lam=1.0)
    run = gs.minimize(F, F.start(0), eps=1e-3, delta=1e-2, rng=0)
    found = near_certificate(F, run.certificate, 5e-2, 1e-3)
    assert found.eps <= 1e-3
    assert found.delta <= 5e-2
    assert found.verify(F).label == "certified"


@pytest.mark.parametrize("options", [{"ridge": 1.0}, {"mean": True}], ids=str)
def test_two_layer_network_on_diabetes(options):
    X, y = load_diabetes(return_X_y=True)
    X, y = StandardScaler().fit_transform(X), (y - y.mean()) / y.std()
    F = relu_two_layer(X, y, 5, **options)
    run = gs.minimize(F, F.start(0), eps=1e-3, delta=1e-2, rng=0, max_calls=40_000)
    found = near_certificate(F, run.certificate, 5e-2, 1e-3)
    assert found.eps <= 1e-3
    assert found.delta <= 5e-2
    assert found.verify(F).label == "certified"


def test_a_slope_that_does_not_change_has_no_stationary_point() -> None:
    """SciPy's Krylov method raises there: along straight pieces of many variables it is usual."""
    from goldstein.construction.near.flats import stationary

    start = np.zeros(600)
    assert np.array_equal(stationary(lambda z: np.ones(600), start, 1e-9), start)
