"""What `scipy.optimize.minimize` promises of its methods holds of ours."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import LinearConstraint, OptimizeResult, minimize

import goldstein as gs
from goldstein.scipy import method


def valley(x):
    return abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2


def slope(x):
    s = np.sign(x[1] - x[0] ** 2)
    return np.array([-2 * s * x[0] - 2 * (1 - x[0]), s])


START = [-1.2, 1.0]
#: Nothing but values: a function that can be read as a formula would be.
VALUES = {"method": "values"}
ASKED = {"eps": 0.1, "delta": 1e-2, "rng": 0}


class UserError(Exception):
    """An exception of the user's own."""


def test_a_number_will_do_for_the_derivative_in_one_variable() -> None:
    for x0 in (3.0, [3.0]):
        res = minimize(lambda x: abs(x[0] - 1), x0, jac=lambda x: np.sign(x[0] - 1), method=method)
        assert res.success
        assert res.x == pytest.approx([1.0], abs=1e-4)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_function_that_is_not_finite_at_the_start_is_a_failure_that_the_result_tells(
    value,
) -> None:
    res = minimize(lambda x: value, START, jac=slope, method=method)
    assert isinstance(res, OptimizeResult)
    assert not res.success
    assert res.status != 0
    np.testing.assert_array_equal(res.x, START)
    np.testing.assert_equal(res.fun, value)
    assert res.nit == 0
    assert "finite" in res.message


@pytest.mark.parametrize("where", ["fun", "jac"])
def test_the_users_exceptions_keep_their_type(where: str) -> None:
    def fails(x):
        raise UserError("mine")

    given = {"fun": valley, "jac": slope, where: fails}
    with pytest.raises(UserError, match="mine"):
        minimize(x0=START, method=method, **given)


def test_stop_iteration_is_said_as_scipy_says_it() -> None:
    def stop(intermediate_result):
        raise StopIteration

    res = minimize(valley, START, jac=slope, method=method, callback=stop)
    assert (res.status, res.success) == (99, False)
    assert res.message == "`callback` raised `StopIteration`."
    reference = minimize(valley, START, jac=slope, method="BFGS", callback=stop)
    assert reference.status == res.status


def test_no_iterations_are_no_iterations() -> None:
    res = minimize(valley, START, jac=slope, method=method, options={"maxiter": 0})
    assert (res.nit, res.success, res.fun) == (0, False, valley(START))
    np.testing.assert_array_equal(res.x, START)


def test_a_tolerance_of_zero_asks_for_all_there_is() -> None:
    res = minimize(valley, START, jac=slope, method=method, tol=0, options={"maxfev": 2000})
    assert res.fun < 1e-6


def test_gtol_is_the_bound_on_the_gradient() -> None:
    res = minimize(valley, START, jac=slope, method=method, options={"gtol": 1e-3})
    assert res.success
    assert 1e-5 < res.certificate.meta.get("asked_eps", 1e-3) <= 1e-3
    assert res.certificate.eps <= 1e-3


def test_the_violation_has_both_of_its_names() -> None:
    limit = LinearConstraint([[1.0, 0.0]], -np.inf, 0.5)
    res = minimize(valley, START, jac=slope, method=method, constraints=limit)
    assert res.success
    assert res.constr_violation == res.maxcv <= 1e-8
    assert {"nfev", "njev", "nit", "constr_nfev", "constr_njev"} <= set(res)


def test_variables_that_are_all_fixed_have_nowhere_to_go() -> None:
    for method_ in (method, "L-BFGS-B"):
        res = minimize(valley, START, method=method_, bounds=[(x, x) for x in START])
        assert res.success
        np.testing.assert_array_equal(res.x, START)
        assert res.fun == valley(START)
    with pytest.raises(gs.errors.InputError, match="fixed"):
        gs.minimize(valley, START, method="values", bounds=[(x, x) for x in START], **ASKED)


def test_calls_are_counted() -> None:
    calls = {"fun": 0}

    def counted(x):
        calls["fun"] += 1
        return abs(x - 1.0).sum() + x @ x

    res = minimize(counted, [3.0, 1.0], method=method, options=VALUES)
    assert res.success
    assert res.nfev == calls["fun"]


def test_values_alone_cost_the_same_in_other_units() -> None:
    def run(unit: float):
        return minimize(
            lambda x: unit * (abs(x[0] - 1) + abs(x[1] + 2) + x @ x), [3.0, 1.0], method=method,
            options=VALUES,
        )  # fmt: skip

    plain, steep = run(1.0), run(100.0)
    assert plain.success
    assert steep.success
    assert steep.nfev <= 2 * plain.nfev
