"""What people see of a constrained run: history, progress, callbacks, counts."""

import numpy as np
import pytest
from scipy.optimize import NonlinearConstraint

import goldstein as gs

TARGET = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


class Counted:
    """min |x| + |y - 2| in the disc of radius 1, every call counted."""

    def __init__(self):
        self.calls = {"fun": 0, "jac": 0, "c": 0, "rows": 0}
        self.limit = NonlinearConstraint(self.c, -np.inf, 1.0, jac=self.rows)

    def fun(self, x):
        self.calls["fun"] += 1
        return abs(x[0]) + abs(x[1] - 2)

    def jac(self, x):
        self.calls["jac"] += 1
        return np.array([np.sign(x[0]), np.sign(x[1] - 2)])

    def c(self, x):
        self.calls["c"] += 1
        return x @ x

    def rows(self, x):
        self.calls["rows"] += 1
        return 2 * x[None]

    def solve(self, **more):
        return gs.minimize(
            self.fun, [0.5, -0.5], self.jac, constraints=self.limit, **TARGET, **more
        )


@pytest.mark.parametrize("options", [{}, {"feasible": True}])
def test_history_tells_f_and_the_violation(options):
    problem, seen = Counted(), []
    res = problem.solve(callback=lambda intermediate_result: seen.append(intermediate_result),
                        options=options)  # fmt: skip
    assert res.success
    history = res.history.as_arrays()
    assert len(set(map(len, history.values()))) == 1
    assert (np.diff(history["calls"]) >= 0).all()
    assert history["calls"][-1] <= res.nfev + res.ngev
    assert seen
    for one in seen:
        assert one.fun == abs(one.x[0]) + abs(one.x[1] - 2)
        assert one.violation == max(0.0, one.x @ one.x - 1.0)
    told = set(zip(history["fun"].tolist(), history["violation"].tolist()))
    assert {(one.fun, one.violation) for one in seen} <= told
    if options:
        assert not history["violation"].any()


def test_without_constraints_there_is_no_such_column():
    res = gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, **TARGET)
    assert "violation" not in res.history.as_arrays()
    assert res.constr_nfev is None


def test_progress_tells_points_of_the_problem():
    shown = []
    problem = Counted()
    problem.solve(
        progress=lambda state, calls: shown.append((state.x, state.fx, state.violation, calls)),
        method="bundle",
    )
    assert shown
    for x, fx, violation, calls in shown:
        assert fx == abs(x[0]) + abs(x[1] - 2)
        assert violation == max(0.0, x @ x - 1.0)
        assert calls > 0


def test_constraints_are_counted():
    problem = Counted()
    res = problem.solve()
    assert 0 < res.constr_nfev <= problem.calls["c"] <= res.constr_nfev + 1
    assert res.constr_njev == problem.calls["rows"]
    assert f"{res.constr_nfev} values + {res.constr_njev} Jacobians" in repr(res)


def test_callbacks_can_stop_the_head_start():
    res = Counted().solve(callback=lambda x: True)
    assert res.status is gs.Status.STOPPED
    assert res.nit == 1


def test_head_start_is_for_auto_only():
    """Other methods are asked for by name, and do the whole work."""
    res = gs.minimize(
        lambda x: (x[0] - 2) ** 2, [0.0], lambda x: 2 * (x - 2), bounds=[(0, 1)], method="bundle",
        **TARGET,
    )  # fmt: skip
    assert res.success
    assert res.x == pytest.approx([1.0])


def test_a_smooth_problem_takes_few_calls():
    """Rosen-Suzuki: solved by the head start, and certified."""
    c = np.array([[-1, 1, -1, 1], [1, 0, 0, 1], [-2, 1, 0, 1.0]])
    q = np.array([[1, 1, 1, 1], [1, 2, 1, 2], [2, 1, 1, 0.0]])
    lin, quad = np.array([-5, -5, -21, 7.0]), np.array([1, 1, 2, 1.0])
    limit = NonlinearConstraint(
        lambda x: q @ x**2 - c @ x, -np.inf, [8.0, 10.0, 5.0], jac=lambda x: 2 * q * x - c
    )
    res = gs.minimize(
        lambda x: quad @ x**2 + lin @ x, np.zeros(4), lambda x: 2 * quad * x + lin,
        constraints=limit, **TARGET,
    )  # fmt: skip
    assert res.success
    assert res.fun == pytest.approx(-44.0, abs=1e-4)
    # Half of it is the check of the claim: values are compared with the gradients of three points.
    assert res.nfev + res.ngev <= 85


def test_noise_is_named():
    rng = np.random.default_rng(0)
    res = gs.minimize(
        lambda x: abs(x).sum(), [1.0, 1.0], lambda x: np.sign(x) + 1e-3 * rng.standard_normal(2),
        eps=1e-4, delta=1e-3, rng=0, bounds=[(-1, 2)] * 2, max_calls=2000,
    )  # fmt: skip
    assert res.status is gs.Status.NOT_DETERMINISTIC


def test_a_check_without_the_constraints_says_what_to_pass():
    x = gs.Variable(2)
    F, limit = gs.sum(gs.abs(x)), gs.sum(x) >= 1.0
    for kind in ("goldstein", "near"):
        res = gs.minimize(
            F, [1.0, 1.0], eps=1e-3, delta=1e-3, rng=0, constraints=limit, stationarity=kind
        )
        assert res.success
        (failed,) = [check for check in res.certificate.verify(F).checks if not check.ok]
        assert "pass the constraints=" in failed.message
