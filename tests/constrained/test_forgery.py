"""Forged KKT certificates, each refused by the check that names the lie."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import goldstein as gs

CONSTRAINTS = NonlinearConstraint(
    lambda x: np.array([x[0] - 1.0, x[1] - 5.0]),
    [-np.inf, -np.inf],
    [0.0, 0.0],
    jac=lambda x: np.eye(3)[:2],
)
BOUNDS = [(None, None), (0.0, None), (None, None)]
PROBLEM = {"bounds": BOUNDS, "constraints": CONSTRAINTS}
X = np.array([1.0, 0.0, 0.0])


def fun(x):
    return -2 * x[0] + 3 * x[1] + abs(x[2])


def jac(x):
    return np.array([-2.0, 3.0, np.sign(x[2])])


@pytest.fixture(scope="module")
def honest():
    certificate = gs.certify(fun, X, jac, delta=1e-3, rng=0, **PROBLEM)
    assert certificate.verify(fun, jac, **PROBLEM).ok
    assert certificate.multipliers == pytest.approx([2.0, 0.0])
    assert certificate.normal == pytest.approx([0.0, -3.0, 0.0])
    return certificate


def failed(certificate):
    return {c.name for c in certificate.verify(fun, jac, **PROBLEM).checks if not c.ok}


def with_row(certificate, index, weight):
    """The certificate with a further row, its gradient true."""
    return replace(
        certificate,
        constraint_points=np.vstack([certificate.constraint_points, X]),
        constraint_index=np.append(certificate.constraint_index, index),
        constraint_gradients=np.vstack([certificate.constraint_gradients, np.eye(3)[index]]),
        constraint_weights=np.append(certificate.constraint_weights, weight),
        multipliers=certificate.multipliers + weight * np.eye(2)[index],
        eps=certificate.eps + abs(weight),
        digest="",
    )


def test_multiplier_on_an_inactive_constraint(honest):
    assert failed(with_row(honest, 1, 0.1)) == {"activity"}


def test_wrong_sign(honest):
    assert "multipliers" in failed(with_row(honest, 1, -0.1))


def test_both_signs_on_one_constraint(honest):
    assert "multipliers" in failed(with_row(honest, 0, -0.1))


def test_weights_of_f_that_sum_to_zero(honest):
    forged = replace(
        honest, weights=0 * honest.weights, constraint_weights=0 * honest.constraint_weights,
        multipliers=0 * honest.multipliers, normal=0 * honest.normal, eps=0.0, digest="",
    )  # fmt: skip
    assert failed(forged) == {"weights"}


def test_scaled_residual():
    """At a point that is no KKT point the true residual is found."""
    x = np.array([0.0, 1.0, 0.0])
    certificate = gs.certify(fun, x, jac, delta=1e-3, rng=0, **PROBLEM)
    assert certificate.eps > 3.0
    assert failed(replace(certificate, eps=1e-6 * certificate.eps, digest="")) == {"bound"}


def test_point_outside_the_bounds(honest):
    points = honest.points.copy()
    points[0, 1] = -1e-9
    assert failed(replace(honest, points=points, digest="")) == {"bounds"}


def test_x_outside_the_bounds(honest):
    assert "bounds" in failed(replace(honest, x=X - [0.0, 1e-12, 0.0], digest=""))


def test_normal_where_x_is_not_on_a_bound(honest):
    x = X + [0.0, 1e-6, 0.0]
    assert "normal" in failed(replace(honest, x=x, delta=2e-3, digest=""))


def test_normal_of_the_wrong_sign(honest):
    assert "normal" in failed(replace(honest, normal=-honest.normal, digest=""))


def test_hidden_violation(honest):
    x = X + [1e-6, 0.0, 0.0]
    assert failed(replace(honest, x=x, delta=2e-3, digest="")) == {"feasibility"}


def test_point_outside_the_ball(honest):
    assert "ball" in failed(replace(honest, delta=1e-9, digest=""))


def test_altered_after_it_was_made(honest):
    assert failed(replace(honest, eps=0.5)) == {"content"}


def test_gradients_of_another_constraint(honest):
    other = 2.0 * honest.constraint_gradients
    assert "gradients" in failed(replace(honest, constraint_gradients=other, digest=""))


def test_stated_multipliers_are_those_used(honest):
    assert "multipliers" in failed(replace(honest, multipliers=[1.0, 0.0], digest=""))


def test_a_gradient_on_a_kink_proves_nothing():
    """Automatic differentiation says 0 at the kink of relu(x) - relu(-x), whose slope is 1."""

    def slope(x):
        return np.array([float(x[0] != 0.0)])

    certificate = gs.certify(lambda x: x[0], [1.0], slope, delta=1e-3, rng=0, bounds=[(-1.0, 2.0)])
    forged = replace(
        certificate, x=[0.0], points=[[0.0]], gradients=[[0.0]], weights=[1.0], eps=0.0, digest=""
    )
    found = forged.verify(lambda x: x[0], slope, bounds=[(-1.0, 2.0)])
    assert [c.name for c in found.checks if not c.ok] == ["kinks"]


def test_file_round_trip(honest, tmp_path):
    loaded = gs.load_certificate(honest.save(tmp_path / "point"))
    assert isinstance(loaded, gs.KKTCertificate)
    assert loaded.verify(fun, jac, **PROBLEM).ok
    assert loaded.reduce().verify(fun, jac, **PROBLEM).ok
    assert "multipliers constraints[0], component 0 = 2" in loaded.summary()
    assert "1 slack" in loaded.summary()


def test_multiplier_on_an_equality_that_is_not_reached():
    """Far from the sphere a multiplier of its equation proves nothing."""
    sphere = NonlinearConstraint(lambda x: x @ x, 1.0, 1.0, jac=lambda x: 2 * x[None])
    far = np.array([0.0, 3.0])
    plain = gs.certify(
        lambda x: x[1], far, lambda x: np.array([0.0, 1.0]), delta=1e-3, rng=0, constraints=sphere
    )
    assert plain.eps == pytest.approx(1.0)
    assert plain.feasibility == pytest.approx(8.0)
    forged = replace(
        plain, constraint_points=[far], constraint_index=[0], constraint_gradients=[[0.0, 6.0]],
        constraint_weights=[-1 / 6], multipliers=[-1 / 6], eps=1e-9, digest="",
    )  # fmt: skip
    found = forged.verify(lambda x: x[1], lambda x: np.array([0.0, 1.0]), constraints=sphere)
    assert [c.name for c in found.checks if not c.ok] == ["activity"]
