"""The gap bound of convex problems, against linear programming."""

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint, linprog

import goldstein as gs


@pytest.mark.parametrize("seed", range(4))
def test_gap_of_l1_fits_with_a_budget(seed):
    rng = np.random.default_rng(seed)
    A, b, d = rng.standard_normal((12, 3)), rng.standard_normal(12), 3
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * d)).reshape(d, -1).T
    rows = [np.hstack([A, -np.eye(12)]), np.hstack([-A, -np.eye(12)])]
    rows.append(np.hstack([signs, np.zeros((8, 12))]))
    right = np.concatenate([b, -b, np.full(8, 0.3)])
    free = [(None, None)] * d + [(0, None)] * 12
    best = linprog(np.repeat([0.0, 1.0], [d, 12]), np.vstack(rows), right, bounds=free)
    budget = NonlinearConstraint(lambda x: np.abs(x).sum(), -np.inf, 0.3, jac=np.sign)
    fun, jac = (lambda x: np.abs(A @ x - b).sum()), (lambda x: A.T @ np.sign(A @ x - b))
    # Solutions, and points that are none: the bound holds for all.
    for x in (best.x[:d], 0.9 * best.x[:d], np.zeros(d)):
        certificate = gs.certify(fun, x, jac, delta=1e-3, rng=0, constraints=budget)
        radius = float(np.linalg.norm(x - best.x[:d]))
        gap = certificate.gap(fun, jac, radius=radius, constraints=budget)
        assert fun(x) - best.fun <= gap + 1e-9


def test_gap_is_small_at_a_solution():
    limits = LinearConstraint([[1.0, 1.0]], 1.0, np.inf)
    fun, jac = (lambda x: np.abs(x).max()), (lambda x: np.sign(x) * (np.abs(x) == np.abs(x).max()))
    res = gs.minimize(fun, [2.0, 0.0], jac, eps=1e-6, delta=1e-4, rng=0, constraints=limits)
    assert res.success
    gap = res.certificate.gap(fun, jac, radius=10.0, constraints=limits)
    assert res.fun - 0.5 <= gap <= 1e-3


def test_radius_must_be_a_length():
    certificate = gs.certify(lambda x: x[0], [0.0], np.ones_like, delta=1, rng=0, bounds=[(0, 1)])
    with pytest.raises(gs.InputError, match="radius"):
        certificate.gap(lambda x: x[0], np.ones_like, radius=-1.0)
