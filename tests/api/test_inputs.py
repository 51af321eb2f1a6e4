"""Every bad input is an error of ours that says what was given and what to do."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pandas
import pytest
from scipy.optimize import OptimizeResult
from tests.functions import norm1

import goldstein as gs

GOOD: dict[str, Any] = {
    "fun": norm1, "x0": [1.0, -2.0], "jac": np.sign, "eps": 0.1, "delta": 0.1, "rng": 0,
}  # fmt: skip

BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"eps": 0.0}, ValueError, "eps must be a positive finite number, got 0.0"),
    ({"eps": -1}, ValueError, "eps must be a positive finite number"),
    ({"eps": math.nan}, ValueError, "eps must be a positive finite number"),
    ({"eps": math.inf}, ValueError, "eps must be a positive finite number"),
    ({"eps": "0.1"}, TypeError, "eps must be a number, got str"),
    ({"eps": True}, TypeError, "eps must be a number, got bool"),
    ({"eps": None}, TypeError, "eps must be a number, got NoneType"),
    ({"delta": 0}, ValueError, "delta must be a positive finite number"),
    ({"delta": [0.1]}, TypeError, "delta must be a number, got list"),
    ({"delta": 1e-14}, ValueError, "smallest ball float64 can sample.*raise delta or rescale"),
    ({"x0": [1e9, 0.0], "delta": 1e-6}, ValueError, "smallest ball float64 can sample"),
    ({"x0": []}, ValueError, "x0 must be a non-empty vector"),
    ({"x0": [1.0, math.nan]}, ValueError, r"x0 must be finite, but x0\[1\] is nan"),
    ({"x0": [math.inf]}, ValueError, r"x0\[0\] is inf"),
    ({"x0": "start"}, TypeError, "x0 must be a vector of numbers"),
    ({"x0": [1j, 0]}, TypeError, "x0 must be a vector of numbers"),
    ({"x0": np.array([1j, 0])}, TypeError, "x0 must be a vector of numbers"),
    ({"x0": [[1.0], [1.0, 2.0]]}, TypeError, "x0 must be a vector of numbers, or a dict, list"),
    ({"x0": ["1", "2"]}, TypeError, "x0 must be a vector of numbers: got text"),
    ({"x0": None}, TypeError, "x0 must be a vector of numbers: got None"),
    ({"x0": norm1}, TypeError, "got a function; the order is fun, x0, jac"),
    (
        {"jac": None, "fun": lambda x: float(np.floor(x[0]))},
        TypeError,
        "no gradient: jac is None. None could be derived from the code.*jumps.*jac=your_gradient",
    ),
    ({"jac": False}, TypeError, "no gradient: jac is False"),
    ({"jac": "4-point"}, TypeError, "no gradient: jac is '4-point'"),
    ({"fun": 3.0}, TypeError, "fun must be a callable"),
    ({"fun": None}, TypeError, "fun must be a callable"),
    ({"method": "bundel"}, ValueError, "unknown method 'bundel'.*Did you mean 'bundle'"),
    ({"method": ""}, ValueError, "unknown method ''; known: "),
    ({"method": 7}, TypeError, "method must be a name or a solver object, got int"),
    ({"method": "bundle", "options": {"gama": 0.1}}, TypeError, "options of method 'bundle'.*gama"),
    (
        {"method": "bundle", "options": {"gama": 0.1}},
        TypeError,
        "unknown option 'gama'; known: capacity, .*gamma.*Did you mean 'gamma'",
    ),
    ({"options": {"compild": True}}, TypeError, "Did you mean 'compiled'"),
    (
        {"options": {"capacity": "3"}},
        TypeError,
        r"option 'capacity' of method 'auto' must be an integer or None, got '3' \(str\)",
    ),
    ({"options": {"capacity": 7.5}}, TypeError, "'capacity'.*an integer or None, got 7.5"),
    ({"options": {"memory": True}}, TypeError, "'memory'.*an integer or None, got True"),
    ({"options": {"newton": "no"}}, TypeError, "'newton' of method 'auto' must be True or False"),
    ({"options": {"line": 3}}, TypeError, "'line' of method 'auto' must be a string, got 3"),
    ({"options": {"check_gradient": 1}}, TypeError, "'check_gradient' must be True or False"),
    ({"options": {"maxiter": 9}}, TypeError, "known: capacity, check_gradient.*max_calls=..."),
    ({"method": "pingd", "options": {"gamma": None}}, TypeError, "'gamma'.*a number, got None"),
    ({"tol": 1e-6}, TypeError, r"minimize\(\) has no argument 'tol'. Here accuracy is eps=.*delta"),
    ({"hess": None}, TypeError, "no argument 'hess'. Here second derivatives are not used"),
    ({"max_call": 9}, TypeError, "no argument 'max_call'. Did you mean 'max_calls'"),
    ({"delta": None}, TypeError, "delta is missing: .*gs.suggest_target proposes"),
    ({"method": "bundle", "options": {"gamma": 2.0}}, ValueError, "gamma must lie strictly"),
    ({"method": "bundle", "options": {"gap": -1.0}}, ValueError, "gap must be a nonnegative"),
    ({"method": "bundle", "options": {"capacity": 1}}, ValueError, "capacity must be at least 3"),
    ({"method": "pingd", "options": {"round_failure": 0.0}}, ValueError, "round_failure must lie"),
    ({"method": "pingd", "options": [1]}, TypeError, "options of method 'pingd'"),
    ({"method": "pingd", "options": {"lipschitz": -1.0}}, ValueError, "lipschitz must be a pos"),
    ({"method": gs.PINGD(), "options": {"gamma": 0.1}}, TypeError, "set them on the solver object"),
    ({"method": "bundle", "lipschitz": 0.0}, ValueError, "lipschitz must be a positive number"),
    ({"method": "bundle", "lipschitz": "3"}, ValueError, "lipschitz must be a positive number"),
    ({"rng": -1}, ValueError, "rng must be a non-negative integer"),
    (
        {"rng": "seed"},
        TypeError,
        "rng must be None, a non-negative int or a numpy.random.Generator",
    ),
    ({"rng": 1.5}, TypeError, "got float"),
    ({"max_calls": 0}, ValueError, "max_calls must be a positive integer or None, got 0"),
    ({"max_calls": 10.5}, ValueError, "max_calls must be a positive integer"),
    ({"max_calls": True}, ValueError, "max_calls must be a positive integer"),
    ({"max_time": 0}, ValueError, "max_time must be positive"),
    ({"max_time": "1h"}, ValueError, "max_time must be positive"),
    (
        {"stationarity": "clarke"},
        ValueError,
        "stationarity must be 'goldstein' or 'minimum'",
    ),
    ({"callback": 5}, TypeError, "callback must be callable, got int"),
]


@pytest.mark.parametrize(("changes", "kind", "words"), BAD)
def test_bad_input(changes: dict[str, Any], kind: type[Exception], words: str) -> None:
    asked = {**GOOD, **changes}
    with pytest.raises(kind, match=words) as caught:
        gs.minimize(asked.pop("fun"), asked.pop("x0"), asked.pop("jac"), **asked)
    assert isinstance(caught.value, gs.GoldsteinError)


def test_eps_and_delta_have_no_default() -> None:
    with pytest.raises(TypeError, match="eps"):
        gs.minimize(norm1, [1.0], np.sign, delta=0.1)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="delta"):
        gs.minimize(norm1, [1.0], np.sign, eps=0.1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ({"eps": -0.1}, ValueError, "eps must be finite and not negative"),
        ({"eps": "a"}, TypeError, "eps must be a number"),
        ({"eps": math.nan}, ValueError, "eps must be finite"),
        ({"delta": 0.0}, ValueError, "delta must be a positive finite number"),
        ({"delta": None}, TypeError, "delta must be a number"),
        ({"x": [math.nan, 1.0]}, ValueError, r"x must be finite, but x\[0\] is nan"),
        ({"jac": "wrong"}, TypeError, "no gradient"),
        ({"max_calls": -3}, ValueError, "max_calls must be a positive integer"),
        ({"rng": object()}, TypeError, "rng must be None"),
        ({"tol": 1e-6}, TypeError, r"certify\(\) has no argument 'tol'. Here accuracy is eps"),
        ({"bounds": "positive"}, TypeError, "bounds must be .* got 'positive'"),
        ({"x": OptimizeResult(x=[1.0, 2.0])}, TypeError, "OptimizeResult, a result; pass its x"),
    ],
)
def test_bad_input_of_certify(changes: dict[str, Any], kind: type[Exception], words: str) -> None:
    asked: dict[str, Any] = {"x": [1.0, -2.0], "jac": np.sign, "delta": 0.1, **changes}
    with pytest.raises(kind, match=words) as caught:
        gs.certify(norm1, asked.pop("x"), asked.pop("jac"), **asked)
    assert isinstance(caught.value, gs.GoldsteinError)


def test_the_radius_is_asked_for_in_words() -> None:
    told = "delta is missing: the radius, in the units of x.*gs.stationarity_curve"
    with pytest.raises(gs.InputTypeError, match=told):
        gs.certify(norm1, [1.0], np.sign)  # type: ignore[call-overload]
    with pytest.raises(gs.InputTypeError, match=told):
        gs.certify_result(OptimizeResult(x=[1.0]), norm1, np.sign)  # type: ignore[call-arg]


def test_a_function_that_fails_on_a_matrix_hears_that_it_was_one() -> None:
    with pytest.raises(gs.OracleError, match=r"called with array\(1, 2\), the layout of the point"):
        gs.minimize(lambda x: x[1], [[1.0, 2.0]], np.sign, eps=0.1, delta=0.1)
    with pytest.raises(gs.OracleError, match="called with a NumPy vector of length 2"):
        gs.minimize(lambda x: x[2], [1.0, 2.0], np.sign, eps=0.1, delta=0.1)


def test_a_dimension_that_does_not_fit() -> None:
    problem = gs.problems.get("chained_crescent_1", d=5)
    with pytest.raises(ValueError, match="has 5 variables, but the point has 3"):
        gs.minimize(problem, np.zeros(3), eps=0.1, delta=0.1)


def test_curve_input() -> None:
    with pytest.raises(ValueError, match="delta must be a positive"):
        gs.stationarity_curve(norm1, [1.0], np.sign, deltas=[0.1, -1.0])
    with pytest.raises(ValueError, match="deltas must be a non-empty vector"):
        gs.stationarity_curve(norm1, [1.0], np.sign, deltas=[])


@pytest.mark.parametrize("method", ["bundle", "pingd", "auto"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: math.nan, "value is nan"),
        (lambda x: np.zeros(2), r"value has shape \(2,\)"),
        (lambda x: 1 / 0, "value raised ZeroDivisionError: division by zero"),
    ],
)
def test_a_bad_value_in_minimize(answer: Any, words: str, method: str) -> None:
    with pytest.raises(gs.OracleError, match=rf"{words}.*\(call \d+, at x = \["):
        gs.minimize(answer, [1.0, 2.0], np.sign, eps=0.1, delta=0.1, method=method, rng=0)


@pytest.mark.parametrize("method", ["bundle", "pingd", "auto"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda x: np.full(2, math.inf), "gradient is inf at coordinate 0"),
        (lambda x: np.ones(3), r"gradient has shape \(3,\), expected \(2,\)"),
        (lambda x: None, "gradient is None"),
        (lambda x: {}["missing"], "gradient raised KeyError"),
    ],
)
def test_a_bad_gradient_in_minimize(answer: Any, words: str, method: str) -> None:
    with pytest.raises(gs.OracleError, match=rf"{words}.*\(call \d+, at x = \["):
        gs.minimize(norm1, [1.0, 2.0], answer, eps=0.1, delta=0.1, method=method, rng=0)
    with pytest.raises(gs.OracleError, match=words):
        gs.certify(norm1, [1.0, 2.0], answer, delta=0.1)


def test_other_dtypes_are_converted_and_said_so() -> None:
    ask: dict[str, Any] = {"eps": 0.1, "delta": 0.1, "method": "bundle", "rng": 0}
    res = gs.minimize(norm1, np.array([1.0, -2.0], dtype=np.float32), np.sign, **ask)
    assert res.x.dtype == np.float64
    assert res.certificate.meta["converted_from"] == "float32"
    same = gs.minimize(norm1, np.array([1.0, -2.0]), np.sign, **ask)
    assert "converted_from" not in same.certificate.meta
    assert np.array_equal(res.x, same.x)


def test_x0_is_not_touched() -> None:
    x0 = np.array([1.0, -2.0])
    gs.minimize(norm1, x0, np.sign, eps=0.1, delta=0.1, rng=0)
    assert np.array_equal(x0, [1.0, -2.0])


def test_a_request_below_the_resolution_of_the_values_warns() -> None:
    with pytest.warns(gs.PrecisionWarning, match="raise eps or delta, or shift f"):
        gs.minimize(
            lambda x: 1e12 + norm1(x), [1.0], np.sign, eps=1e-9, delta=1e-3, method="bundle",
            rng=0, max_calls=3,
        )  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gs.minimize(norm1, [1.0], np.sign, eps=1e-3, delta=1e-3, method="bundle", rng=0)


def test_vectors_of_other_libraries() -> None:
    import torch

    ask: dict[str, Any] = {"eps": 0.1, "delta": 0.1, "rng": 0}
    plain = gs.minimize(norm1, [1.0, -2.0], np.sign, **ask)
    trained = torch.tensor([1.0, -2.0], requires_grad=True)
    for x0 in (pandas.Series([1.0, -2.0]), torch.tensor([1.0, -2.0]), trained, (1, -2)):
        assert np.array_equal(gs.minimize(norm1, x0, np.sign, **ask).x, plain.x)


@pytest.mark.parametrize("size", [1e160, 1e200, 1e300])
def test_numbers_without_squares_are_refused_in_words(size: float) -> None:
    """Without a warning on the way: nothing is computed from an overflow."""

    def tall(x: np.ndarray) -> float:
        return size * float(np.abs(x).sum())

    def steep(x: np.ndarray) -> np.ndarray:
        return size * np.sign(x)

    far = [size, -2 * size]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in (
            lambda: gs.minimize(norm1, far, np.sign, eps=1e-3, delta=1e-3 * size),
            lambda: gs.certify(norm1, far, np.sign, delta=1e-3 * size),
            lambda: gs.stationarity_curve(norm1, far, np.sign, deltas=[1e-3 * size]),
            lambda: gs.suggest_target(norm1, far, np.sign),
            lambda: gs.certify(norm1, [1.0], np.sign, delta=size),
        ):
            with pytest.raises(gs.InputError, match=r"overflow in float64; rescale the variables"):
                ask()
        for ask in (
            lambda: gs.minimize(tall, [1.0, 2.0], steep, eps=1e-3 * size, delta=1e-3),
            lambda: gs.certify(tall, [1.0, 2.0], steep, delta=1e-3),
            lambda: gs.stationarity_curve(tall, [1.0, 2.0], steep),
            lambda: gs.suggest_target(tall, [1.0, 2.0], steep),
        ):
            with pytest.raises(gs.OracleError, match="overflow in float64: divide the function"):
                ask()
