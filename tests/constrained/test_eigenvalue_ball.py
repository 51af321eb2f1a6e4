"""The largest eigenvalue over a ball: curved kinks, a curved constraint that is level at x0 = 0."""

import numpy as np
import pytest
from scipy.optimize import minimize

import goldstein as gs

D, N = 10, 8


def largest_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    parts = rng.normal(size=(D + 1, N, N))
    parts = (parts + parts.transpose(0, 2, 1)) / 2

    def fun(x):
        return np.linalg.eigvalsh(parts[0] + np.tensordot(x, parts[1:], 1))[-1]

    def jac(x):
        v = np.linalg.eigh(parts[0] + np.tensordot(x, parts[1:], 1))[1][:, -1]
        return np.einsum("i,kij,j->k", v, parts[1:], v)

    return fun, jac


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("level", [1e-4, 1e-6])
def test_it_is_proved_at_its_minimum(seed, level) -> None:
    """The penalty begins with the size that the constraint has, not with the one that it has at 0;
    and a claim does not rest on points next to the kinks that x is on."""
    fun, jac = largest_eigenvalue(seed)
    ball = {"type": "ineq", "fun": lambda x: 0.25 - x @ x, "jac": lambda x: -2 * x}
    peer = minimize(fun, np.zeros(D), jac=jac, method="SLSQP", constraints=[ball],
                    options={"maxiter": 500, "ftol": 1e-15})  # fmt: skip
    res = gs.minimize(
        fun, np.zeros(D), jac, constraints=[ball], eps=level, delta=level, rng=seed, max_calls=3000
    )
    assert res.success
    assert res.fun <= peer.fun + level
    for again in range(3):
        assert res.certificate.verify(fun, jac, constraints=[ball], seed=again).ok
