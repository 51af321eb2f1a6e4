"""Calls of SciPy as people write them, with this method in place of theirs."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint, OptimizeResult

import goldstein as gs
import goldstein.scipy
from goldstein.scipy import CODES, Method, method


def valley(x: np.ndarray, a: float = 1.0) -> float:
    return a * abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2


def slope(x: np.ndarray, a: float = 1.0) -> np.ndarray:
    s = a * np.sign(x[1] - x[0] ** 2)
    return np.array([-2 * s * x[0] - 2 * (1 - x[0]), s])


def both(x: np.ndarray, a: float = 1.0) -> tuple[float, np.ndarray]:
    return valley(x, a), slope(x, a)


START = [-1.2, 1.0]
DISK = {"type": "ineq", "fun": lambda x: 1 - x @ x, "jac": lambda x: -2 * x}

#: How it is called, and the minimiser.
IDIOMS: dict[str, tuple[dict[str, Any], list[float]]] = {
    "plain": ({"jac": slope}, [1, 1]),
    "args": ({"jac": slope, "args": (3.0,)}, [1, 1]),
    "one argument": ({"jac": slope, "args": 3.0}, [1, 1]),
    "jac=True": ({"fun": both, "jac": True}, [1, 1]),
    "jac=True and args": ({"fun": both, "jac": True, "args": (0.5,)}, [1, 1]),
    "integers": ({"jac": slope, "x0": [-1, 1]}, [1, 1]),
    "tol": ({"jac": slope, "tol": 1e-3}, [1, 1]),
    "options": ({"jac": slope, "options": {"eps": 1e-3, "delta": 1e-3, "rng": 3}}, [1, 1]),
    "another method": ({"jac": slope, "tol": 1e-2, "options": {"method": "bundle"}}, [1, 1]),
    "pairs": ({"jac": slope, "bounds": [(-2, 0.5), (None, 2)]}, [0.5, 0.25]),
    "Bounds": ({"jac": slope, "bounds": Bounds([-2, -2], [0.5, 2])}, [0.5, 0.25]),
    "fixed": ({"jac": slope, "bounds": [(0.5, 0.5), (None, None)]}, [0.5, 0.25]),
    "linear": (
        {"jac": slope, "constraints": LinearConstraint([[1, 0]], -np.inf, 0.5)},
        [0.5, 0.25],
    ),
    "dict": ({"jac": slope, "constraints": DISK}, [0.7861514, 0.6180340]),
    "nonlinear": (
        {
            "jac": slope,
            "constraints": [NonlinearConstraint(lambda x: x @ x, -np.inf, 1, jac=lambda x: 2 * x)],
        },
        [0.7861514, 0.6180340],
    ),
    "bounds and constraints": (
        {"jac": slope, "bounds": [(0, 0.5), (0, 1)], "constraints": (DISK,)},
        [0.5, 0.25],
    ),
}


@pytest.mark.parametrize("name", IDIOMS)
def test_a_call_of_scipy(name: str) -> None:
    given, minimiser = IDIOMS[name]
    task = {"fun": valley, "x0": START, "method": method, **given}
    res = optimize.minimize(**task)
    assert isinstance(res, OptimizeResult)
    assert res.success, res.message
    assert (res.status, res["success"]) == (0, True)
    assert np.allclose(res.x, minimiser, atol=2e-2)
    arguments = task.get("args", ())
    arguments = arguments if isinstance(arguments, tuple) else (arguments,)
    assert res.fun == valley(res.x, *arguments)
    assert min(res.nit, res.nfev, res.njev) > 0
    limits = {key: task[key] for key in ("bounds", "constraints") if key in task}
    found = res.certificate.verify(valley, slope, arguments, **limits)
    assert found.ok
    assert found.eps <= task.get("options", {}).get("eps", task.get("tol", 1e-5))
    if limits:
        assert res.maxcv <= 1e-9
        assert (res.bound_multipliers.shape, res.multipliers.ndim) == ((2,), 1)
    else:
        # The stored vector, up to the rounding of its sum.
        assert np.linalg.norm(res.jac) <= found.eps + 1e-12


def test_without_a_target_tol_is_the_target() -> None:
    asked = []

    def spy(x: np.ndarray) -> np.ndarray:
        asked.append(x)
        return 1e3 * slope(x / 1e3)

    res = optimize.minimize(lambda x: 1e6 * valley(x / 1e3), 1e3 * np.array(START), jac=spy,
                            method=method, tol=1e-4)  # fmt: skip
    assert res.success
    assert res.certificate.eps <= 1e-4
    assert res.certificate.delta <= 1e-4 * 1.2e3


def test_both_signatures_of_callbacks_and_both_ways_to_stop() -> None:
    points: list[np.ndarray] = []
    values: list[float] = []

    def modern(intermediate_result: OptimizeResult) -> None:
        assert isinstance(intermediate_result, OptimizeResult)
        values.append(intermediate_result["fun"])
        assert intermediate_result.fun == valley(intermediate_result.x)
        if len(values) == 4:
            raise StopIteration

    res = optimize.minimize(valley, START, jac=slope, method=method, callback=points.append)
    assert res.success
    assert len(points) == res.nit > 4
    res = optimize.minimize(valley, START, jac=slope, method=method, callback=modern)
    assert (res.success, res.status, len(values)) == (False, 99, 4)
    res = optimize.minimize(valley, START, jac=slope, method=method, callback=lambda x: True)
    assert (res.success, res.status, res.nit) == (False, 99, 1)


def test_limits_are_statuses() -> None:
    for name in ("maxfev", "maxfun", "max_calls"):
        res = optimize.minimize(valley, START, jac=slope, method=method, options={name: 15})
        assert (res.success, res.status) == (False, CODES[gs.Status.OUT_OF_CALLS])
        assert res.nfev + res.njev <= 15
    res = optimize.minimize(valley, START, jac=slope, method=method, options={"maxiter": 3})
    assert (res.success, res.status, res.nit) == (False, 1, 3)
    assert "maxiter = 3" in res.message


def test_every_status_has_a_number_of_its_own() -> None:
    assert set(CODES) == set(gs.Status)
    assert len(set(CODES.values())) == len(CODES)
    assert [status for status, code in CODES.items() if code == 0] == [gs.Status.VERIFIED]


def test_what_is_not_used_is_said() -> None:
    with pytest.warns(optimize.OptimizeWarning, match="Unknown solver options: ftol, foo"):
        optimize.minimize(valley, START, jac=slope, method=method, options={"ftol": 1, "foo": 2})
    for name in ("hess", "hessp"):
        with pytest.warns(RuntimeWarning, match=name):
            optimize.minimize(
                valley, START, jac=slope, method=method, **{name: lambda x, *p: np.eye(2)}
            )


def test_options_of_the_method_are_understood_and_disp_shows(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        optimize.minimize(
            valley, START, jac=slope, method=method,
            options={"newton": False, "check_gradient": False, "disp": True, "tol": 1e-2},
        )  # fmt: skip
    assert "VERIFIED" in capsys.readouterr().out


def test_bad_targets_are_refused() -> None:
    for options in ({"eps": -1.0}, {"delta": "small"}, {"tol": -1.0}):
        with pytest.raises(gs.GoldsteinError, match=r"eps|delta|tol"):
            optimize.minimize(valley, START, jac=slope, method=method, options=options)


def test_runs_repeat() -> None:
    first, second = (optimize.minimize(valley, START, jac=slope, method=method) for _ in "12")
    assert np.array_equal(first.x, second.x)


def bumps(x: np.ndarray) -> float:
    return valley(x) + 0.5 * np.cos(5 * x[0])


def bump_slope(x: np.ndarray) -> np.ndarray:
    return slope(x) - np.array([2.5 * np.sin(5 * x[0]), 0.0])


#: f as a function of x[0] along the valley's bottom.
BEST = min(valley(np.array([t, t * t])) + 0.5 * np.cos(5 * t) for t in np.linspace(-3, 3, 60001))
BOX = [(-3.0, 3.0), (-1.0, 9.0)]

GLOBAL = {
    "basinhopping": lambda local: optimize.basinhopping(
        bumps, START, niter=12, stepsize=1.0, rng=1, minimizer_kwargs=local
    ),
    "dual_annealing": lambda local: optimize.dual_annealing(
        bumps, BOX, maxiter=50, rng=1, minimizer_kwargs=local
    ),
    "shgo": lambda local: optimize.shgo(bumps, BOX, n=40, minimizer_kwargs=local),
}


@pytest.mark.parametrize("name", GLOBAL)
def test_a_local_search_for_global_methods(name: str) -> None:
    local = {"method": Method(tol=1e-4), "jac": bump_slope}
    res = GLOBAL[name](local)
    assert res.success
    assert res.fun <= BEST + 1e-4
    certificate = gs.certify_result(res, bumps, bump_slope, delta=1e-3, rng=0)
    assert certificate.eps <= 1e-3


def test_the_options_of_a_method_object_are_overruled_by_those_of_the_call() -> None:
    coarse = Method(eps=0.5, delta=0.5)
    assert repr(coarse) == "goldstein.scipy.Method(eps=0.5, delta=0.5)"
    loose = optimize.minimize(valley, START, jac=slope, method=coarse)
    tight = optimize.minimize(valley, START, jac=slope, method=coarse, options={"eps": 1e-6})
    assert loose.certificate.eps <= 0.5
    assert tight.certificate.eps <= 1e-6
    assert gs.scipy.method is goldstein.scipy.method


# --- certify_result ------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Nelder-Mead", "BFGS", "Powell", "COBYLA"])
def test_what_scipy_found_is_certified_or_refuted(name: str) -> None:
    res = optimize.minimize(valley, START, method=name)
    certificate = gs.certify_result(res, valley, slope, delta=1e-2, rng=0)
    assert np.array_equal(certificate.x, res.x)
    assert certificate.verify(valley, slope).ok
    truly = abs(res.x - 1).max() < 1e-3
    assert certificate.eps <= 0.05 if truly else certificate.descent is not None


def test_a_result_with_bounds_and_constraints() -> None:
    limits: dict[str, Any] = {"bounds": [(0, 0.5), (0, 1)], "constraints": DISK}
    res = optimize.minimize(valley, [0.2, 0.2], jac=slope, method="SLSQP", **limits)
    certificate = gs.certify_result(res, valley, slope, delta=1e-3, rng=0, **limits)
    assert certificate.kind == "kkt"
    assert certificate.verify(valley, slope, **limits).ok
    beside = {"x": res.x + [1e-9, 0.0]}
    moved = gs.certify_result(beside, valley, slope, delta=1e-3, rng=0, **limits)
    assert 0 < moved.meta["moved"] <= 1.1e-9
    assert moved.verify(valley, slope, **limits).ok
    with pytest.raises(gs.InputError, match="outside the bounds"):
        gs.certify_result({"x": [2.0, 0.0]}, valley, slope, delta=1e-3, **limits)


def test_what_is_no_result_is_refused() -> None:
    for wrong in (np.zeros(2), {"fun": 1.0}, None):
        with pytest.raises(gs.InputTypeError, match="has no x"):
            gs.certify_result(wrong, valley, slope, delta=1e-3)


# --- values only: what they cost --------------------------------------------------------------


def _counted(calls: list[bytes], unit: float = 1.0) -> Any:
    def f(x: np.ndarray) -> float:
        calls.append(x.tobytes())
        return unit * float(valley(x))

    return f


@pytest.mark.parametrize("most", [1, 2, 3, 60, 500, 2000])
def test_a_limit_on_values_holds_for_all_of_them(most: int) -> None:
    calls: list[bytes] = []
    options = {"maxfev": most, "confidence": 0.95}
    res = optimize.minimize(_counted(calls), START, method=method, options=options)
    assert len(calls) == res.nfev <= most


def test_where_no_claim_can_be_paid_nothing_is_asked_twice() -> None:
    """A claim looks at the same places as its check will; a search has no reason to."""
    for start in (START, [0.3, 2.0], [-2.0, -1.0]):
        calls: list[bytes] = []
        options = {"maxfev": 300, "confidence": 0.95}
        optimize.minimize(_counted(calls), start, method=method, options=options)
        assert len(set(calls)) == len(calls)


def test_a_claim_is_relative_to_the_slope_whatever_the_direction_of_a_look() -> None:
    """One look along a random direction can be short by a factor of fifty: 0.14 of 6.9 it was."""
    length = float(np.linalg.norm(slope(np.array(START))))
    for unit in (1.0, 10.0, 100.0):
        calls: list[bytes] = []
        res = optimize.minimize(
            _counted(calls, unit), START, method=method, options={"confidence": 0.95}
        )
        assert res.success
        assert abs(res.x - 1).max() < 1e-3
        assert res.certificate.eps <= 0.1 * 2**0.5 * unit * length
        assert len(calls) < 2500  # 20,215 in units of 100 before


@pytest.mark.parametrize("most", [600, 3000])
def test_noise_is_no_slope(most: int) -> None:
    """Noise of 0.01 over a step of 1e-5 is no slope of 1,000: a claim of 0.1 is told of."""
    rng = np.random.default_rng(0)

    def simulator(x: np.ndarray) -> float:
        return float(valley(x)) + 0.01 * rng.standard_normal()

    res = optimize.minimize(simulator, START, method=method, options={"maxfev": most})
    assert not res.success
    assert abs(res.fun - valley(res.x)) < 0.012
    assert "fun is the mean of" in res.message
    needed = float(res.message.split("a delta of about ")[1].split(";")[0])
    assert 0.3 < needed < 3.0
