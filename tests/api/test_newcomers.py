"""What newcomers met: each of these was too long, too silent, or said something untrue."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint

import goldstein as gs
from goldstein.oracles.differences import SHORT, Stencil

TARGET = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def plant(seed):
    """The largest real part of eigenvalues of A + B K C, and its gradient."""
    rng = np.random.default_rng(seed)
    A, B, C = (rng.standard_normal(shape) for shape in ((6, 6), (6, 2), (2, 6)))

    def eigenvalues(k):
        return np.linalg.eig(A + B @ k.reshape(2, 2) @ C)

    def gradient(k):
        values, right = eigenvalues(k)
        i = np.argmax(values.real)
        return np.outer(np.linalg.inv(right)[i] @ B, C @ right[:, i]).real.ravel()

    return lambda k: float(eigenvalues(k)[0].real.max()), gradient


def test_a_search_that_fails_far_away_is_told_to_begin_elsewhere():
    f, gradient = plant(3)
    res = gs.minimize(f, np.zeros(4), gradient, **TARGET, max_calls=6000)
    assert not res.success
    assert np.abs(res.x).max() > 100
    assert "other starts" in res.message
    assert "multistart" in res.message
    near = gs.minimize(lambda x: abs(x).sum(), [3.0, 1.0], np.sign, **TARGET, max_calls=5)
    assert "other starts" not in near.message


def test_a_ball_that_f_does_not_resolve_is_not_blamed_on_a_large_x():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((30, 10)), rng.standard_normal(30)
    res = gs.minimize(
        lambda x: 0.5 * float(((A @ x - b) ** 2).sum()), np.zeros(10), lambda x: A.T @ (A @ x - b),
        plus=gs.prox.l1(0.5), eps=1e-9, delta=1e-9, rng=0,
    )  # fmt: skip
    assert res.success or "so large" not in res.message
    assert ".;" not in res.message


def test_noise_of_values_beside_an_exact_gradient_is_no_success():
    rng = np.random.default_rng(1)
    noisy = gs.minimize(
        lambda x: float(abs(x).sum()) + 1e-3 * rng.standard_normal(), [2.0, -1.0, 1.0], np.sign,
        **TARGET,
    )  # fmt: skip
    assert not noisy.success
    assert "does not resolve" in noisy.message or "deterministic" in noisy.message


@pytest.mark.parametrize("noise", [1e-8, 1e-2, 1.0, 4e12])
def test_steps_of_differences_stay_near_their_point_whatever_the_noise(noise):
    stencil = Stencil(np.full(2, -np.inf), np.full(2, np.inf), 0)
    stencil.noise, y = noise, np.array([200.0, 1e-3])
    assert (stencil.step(y) <= SHORT * np.maximum(1.0, np.abs(y))).all()


def test_an_infeasible_result_says_what_its_certificate_is_about():
    circle = NonlinearConstraint(lambda x: x @ x, -np.inf, -1.0, jac=lambda x: 2 * x)
    res = gs.minimize(
        lambda x: abs(x[0]) + x[1] ** 2, [1.0, 1.0], lambda x: np.array([np.sign(x[0]), 2 * x[1]]),
        constraints=circle, **TARGET,
    )  # fmt: skip
    assert res.status is gs.Status.INFEASIBLE
    line = next(line for line in str(res).splitlines() if line.startswith("certificate"))
    assert "about the violation of the constraints" in line
    assert ", feasible" not in line


def test_linear_rows_that_contradict_each_other_cost_a_few_calls():
    rows = LinearConstraint([[1, 1], [1, 1]], [3, -np.inf], [np.inf, 1])
    res = gs.minimize(lambda x: x @ x, [1.0, 1.0], lambda x: 2 * x, constraints=rows, **TARGET)
    assert res.status is gs.Status.INFEASIBLE
    assert res.nfev + res.ngev < 100


def test_equality_rows_that_are_said_twice_are_no_degeneracy():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((4, 4))
    A = A + A.T

    def product(v):
        return (v.reshape(4, 2).T @ v.reshape(4, 2) - np.eye(2)).ravel()

    def rows(v):
        V, found = v.reshape(4, 2), np.zeros((2, 2, 4, 2))
        for i in range(2):
            for j in range(2):
                found[i, j, :, i] += V[:, j]
                found[i, j, :, j] += V[:, i]
        return found.reshape(4, 8)

    res = gs.minimize(
        lambda v: -float(np.sum((A @ v.reshape(4, 2)) * v.reshape(4, 2))) + abs(v).sum(),
        np.linalg.qr(rng.standard_normal((4, 2)))[0].ravel(),
        lambda v: (-2 * A @ v.reshape(4, 2)).ravel() + np.sign(v),
        constraints=NonlinearConstraint(product, 0, 0, jac=rows), **TARGET,
    )  # fmt: skip
    assert res.success, res.message


def test_womflet_takes_about_as_much_as_slsqp():
    """Its minimum, 0, is where three curves meet; the search used to take 7,621 calls."""

    def curves(x, y):
        bend = 10 * x / (x + 0.1)
        return 0.5 * np.array([x + bend, -x + bend, x - bend]) + y * y

    def rows(z):
        x, y = z[:2]
        bend = 1.0 / (x + 0.1) ** 2
        first = 0.5 * np.array([1 + bend, -1 + bend, 1 - bend])
        return np.column_stack([-first, np.full(3, -2 * y), np.ones(3)])

    above = NonlinearConstraint(lambda z: z[2] - curves(*z[:2]), 0, np.inf, jac=rows)
    res = gs.minimize(
        lambda z: z[2], np.ones(3), lambda z: np.array([0.0, 0.0, 1.0]), constraints=above,
        eps=1e-5, delta=1e-5, rng=0,
    )  # fmt: skip
    assert res.success, res.message
    assert abs(res.fun) < 1e-4
    assert res.nfev + res.ngev + res.constr_nfev < 1000


def test_eigenvalues_that_meet_are_no_wrong_gradient():
    f, gradient = plant(1)
    res = gs.minimize(f, np.zeros(4), gradient, **TARGET)
    assert gs.check_gradient(f, gradient, res.x)
    assert res.status is not gs.Status.WRONG_GRADIENT, res.message
    assert not res.success
    assert "not Lipschitz" in res.message
    assert "goldstein.parallel.multistart" in res.message


def test_a_gradient_that_is_wrong_is_still_called_wrong():
    wrong = gs.minimize(
        lambda x: float(np.sqrt(abs(x)).sum()), [2.0, -1.0], lambda x: np.sign(x), **TARGET
    )
    assert wrong.status is gs.Status.WRONG_GRADIENT
    assert "coordinate" in wrong.message


@pytest.mark.parametrize("method", ["auto", "ralg"])
def test_a_norm_whose_gradient_is_nan_at_its_minimum(method):
    with np.errstate(invalid="ignore"):
        res = gs.minimize(
            lambda x: float(np.linalg.norm(x)), [1.0, 0.0], lambda x: x / np.linalg.norm(x),
            method=method, **TARGET,
        )  # fmt: skip
    assert res.success, res.message
    assert abs(res.x).max() < 1e-2


@pytest.mark.parametrize("answer", [np.nan, np.inf, 1e155])
def test_a_search_steps_back_from_where_the_gradient_is_not_finite(answer):
    def gradient(x):
        return np.sign(x) if x[0] > -0.5 else np.full(2, answer)

    res = gs.minimize(lambda x: float(abs(x).sum()), [1.4, 0.2], gradient, **TARGET)
    assert res.success, res.message
    assert res.fun < 1e-2
    with pytest.raises(gs.OracleError, match="gradient"):  # nowhere to step back to
        gs.minimize(
            lambda x: float(abs(x).sum()), [1.4, 0.2],
            lambda x: gradient(x - 1.9 - 1e-12), **TARGET,
        )  # fmt: skip


@pytest.mark.parametrize("steep", [1.0, 6.0])
def test_a_search_steps_back_from_where_a_constraint_has_no_gradient(steep):
    disk = NonlinearConstraint(
        lambda x: x @ x, -np.inf, 1.0,
        jac=lambda x: 2 * x if x[0] > -1.1 else np.full(2, np.nan),
    )  # fmt: skip
    res = gs.minimize(
        lambda x: steep * x[0] + abs(x[1]), [0.5, 0.4],
        lambda x: np.array([steep, np.sign(x[1])]), constraints=disk, **TARGET,
    )  # fmt: skip
    assert res.success, res.message
    assert res.fun == pytest.approx(-steep, abs=1e-4)


def test_a_ball_with_too_few_points_is_said_to_have_too_few_for_this_x():
    res = gs.minimize(
        lambda x: abs(x[0] - 1e8), [0.0], lambda x: np.sign(x - 1e8), eps=1e-3, delta=1e-9, rng=0
    )
    assert res.status is gs.Status.BALL_TOO_SMALL
    assert "within 1e-09 of an x of size 1e+08" in res.message or "resolve" in res.message


def test_variables_of_different_sizes_are_told_to_be_scaled():
    """Meyer's problem: 28,542 values and as many gradients as it stands; scaled, a thousand."""
    y = np.array([34780, 28610, 23650, 19630, 16370, 13720, 11540, 9744, 8261, 7030, 6005, 5147,
                  4427, 3820, 3307, 2872.0])  # fmt: skip
    t, start = 45.0 + 5.0 * np.arange(1, 17), np.array([0.02, 4000.0, 250.0])

    def misfit(x):
        return x[0] * np.exp(x[1] / (t + x[2])) - y

    def gradient(x):
        rise = np.exp(x[1] / (t + x[2]))
        rows = [rise, x[0] * rise / (t + x[2]), -x[0] * x[1] * rise / (t + x[2]) ** 2]
        return 2.0 * np.array(rows) @ misfit(x)

    asked = {"eps": 1.0, "delta": 1e-3, "rng": 0, "max_calls": 2500}
    res = gs.minimize(lambda x: float((misfit(x) ** 2).sum()), start, gradient, **asked)
    assert res.status is gs.Status.OUT_OF_CALLS
    assert "s = abs(x0)" in res.message
    scaled = gs.minimize(
        lambda z: float((misfit(start * z) ** 2).sum()), np.ones(3),
        lambda z: start * gradient(start * z), **asked,
    )  # fmt: skip
    assert scaled.success, scaled.message
    assert scaled.fun == pytest.approx(87.9458, abs=1e-3)
    even = gs.minimize(lambda x: abs(x).sum(), [3.0, 1.0], np.sign, **TARGET, max_calls=5)
    assert "abs(x0)" not in even.message
