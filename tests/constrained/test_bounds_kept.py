"""Nothing is asked outside the bounds: not by any search, not by a check, not by a hair."""

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import goldstein as gs


class Guarded:
    """A minimax problem with a curved constraint that remembers where a bound was crossed."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.A, self.b = rng.standard_normal((5, 3)), rng.standard_normal(5)
        low = np.where(rng.random(3) < 0.3, -np.inf, -rng.uniform(0.1, 1.0, 3))
        high = np.where(rng.random(3) < 0.3, np.inf, rng.uniform(0.1, 1.0, 3))
        if seed % 3 == 0:
            high[0] = low[0] = 0.05  # a variable that cannot move
        self.low, self.high = low, high
        self.crossed = []
        self.limits = {
            "bounds": list(zip(low, high)),
            "constraints": NonlinearConstraint(self.c, -np.inf, 2.0, jac=self.rows),
        }

    def inside(self, x):
        if not ((x >= self.low) & (x <= self.high)).all():
            self.crossed.append(x.copy())
        return x

    def fun(self, x):
        return float(np.max(self.A @ self.inside(x) + self.b) - 0.3 * np.sqrt(1 + x @ x))

    def jac(self, x):
        top = np.argmax(self.A @ self.inside(x) + self.b)
        return self.A[top] - 0.3 * x / np.sqrt(1 + x @ x)

    def c(self, x):
        return self.inside(x) @ x

    def rows(self, x):
        return 2 * self.inside(x)[None]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("method", "options"),
    [("auto", {}), ("auto", {"feasible": True}), ("bundle", {}), ("pingd", {})],
)
def test_searches_and_checks_stay_inside(seed, method, options):
    problem = Guarded(seed)
    more = {"lipschitz": 5.0} if method == "pingd" else {}
    res = gs.minimize(
        problem.fun, np.full(3, 0.05), problem.jac, eps=1e-2, delta=1e-2, rng=seed, method=method,
        options=options, max_calls=3000, **problem.limits, **more,
    )  # fmt: skip
    assert ((res.x >= problem.low) & (res.x <= problem.high)).all()
    if method == "auto":
        assert res.success, res.message
    if res.certificate is not None:
        found = res.certificate.verify(problem.fun, problem.jac, seed=seed, **problem.limits)
        assert found.ok or not res.success
    assert not problem.crossed


@pytest.mark.parametrize("seed", range(6))
def test_certify_on_corners_and_faces_stays_inside(seed):
    problem = Guarded(seed)
    rng = np.random.default_rng(seed)
    corner = np.where(np.isfinite(problem.low), problem.low, 0.0)
    face = np.clip(rng.uniform(-1, 1, 3), problem.low, problem.high)
    for x in (corner, face):
        certificate = gs.certify(problem.fun, x, problem.jac, delta=0.05, rng=0, **problem.limits)
        assert certificate.verify(problem.fun, problem.jac, **problem.limits).ok
    assert not problem.crossed
