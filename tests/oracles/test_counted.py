"""The guard between a user's function and the library."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import goldstein as gs
from goldstein.errors import OutOfCalls
from goldstein.oracles import CountedOracle, as_oracle

X = np.array([1.0, 2.0])


def guard(
    value: Any = lambda x: 0.0, gradient: Any = lambda x: x, limit: int | None = None
) -> CountedOracle:
    return CountedOracle(as_oracle(value, gradient), limit)


@pytest.mark.parametrize(
    "answer", [3.0, 3, np.float32(3.0), np.array(3.0), np.array([[3.0]]), True + 2]
)
def test_anything_that_is_one_number_is_a_value(answer: Any) -> None:
    value = guard(lambda x: answer).value(X)
    assert value == 3.0
    assert type(value) is float


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (math.nan, "value is nan, expected a finite number"),
        (math.inf, "value is inf"),
        (np.array([-math.inf]), "value is -inf"),
        (None, r"value is None \(a missing return\?\)"),
        ("1.0", "value is str"),
        (1j, "value is complex"),
        (np.zeros(2), r"value has shape \(2,\), expected a number"),
        ([], r"value has shape \(0,\)"),
    ],
)
def test_a_bad_value_names_the_point_and_the_call(answer: Any, words: str) -> None:
    oracle = guard(lambda x: answer)
    oracle.gradient(X)
    with pytest.raises(gs.OracleError, match=words) as caught:
        oracle.value(X)
    assert "call 2, at x = [1. 2.]" in str(caught.value)
    assert caught.value.call == 2
    assert np.array_equal(caught.value.point, X)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (np.array([1.0, math.nan]), "gradient is nan at coordinate 1"),
        (np.array([math.inf, 0.0]), "gradient is inf at coordinate 0"),
        (np.zeros(3), r"gradient has shape \(3,\), expected \(2,\)"),
        (np.zeros((2, 1)), r"gradient has shape \(2, 1\)"),
        (0.0, r"gradient has shape \(\), expected"),
        (None, r"gradient is None \(a missing return\?\)"),
        (["a", "b"], "expected an array of numbers"),
        ([[1.0], [1.0, 2.0]], "expected an array of numbers"),
        (np.array([1j, 0j]), "an array of complex128"),
    ],
)
def test_a_bad_gradient_names_the_point_and_the_call(answer: Any, words: str) -> None:
    with pytest.raises(gs.OracleError, match=words) as caught:
        guard(gradient=lambda x: answer).gradient(X)
    assert "call 1" in str(caught.value)


def test_huge_but_finite_gradients_pass() -> None:
    assert guard(gradient=lambda x: np.full(2, 1e200)).gradient(X)[0] == 1e200


def test_other_dtypes_become_float64() -> None:
    for answer in ([1, 2], np.array([1, 2], dtype=np.float32), (1.0, 2.0)):
        assert guard(gradient=lambda x, answer=answer: answer).gradient(X).dtype == np.float64


@pytest.mark.parametrize(
    "error", [ZeroDivisionError("oops"), StopIteration("oops"), KeyError("oops")]
)
def test_an_exception_is_wrapped_with_its_cause(error: Exception) -> None:
    def broken(x: np.ndarray) -> float:
        raise error

    with pytest.raises(gs.OracleError, match=f"value raised {type(error).__name__}") as caught:
        guard(broken).value(X)
    assert caught.value.__cause__ is error


def test_kinks_pass_through_and_count() -> None:
    def kink(x: np.ndarray) -> np.ndarray:
        raise gs.KinkError("corner", x)

    oracle = guard(gradient=kink)
    with pytest.raises(gs.KinkError):
        oracle.gradient(X)
    assert oracle.gradients == 1


def test_the_budget_is_exact() -> None:
    asked = []
    oracle = guard(lambda x: asked.append(0) or 0.0, lambda x: asked.append(1) or x, limit=3)
    oracle.value(X), oracle.gradient(X), oracle.value(X)
    for question in (oracle.value, oracle.gradient):
        with pytest.raises(OutOfCalls):
            question(X)
    assert asked == [0, 1, 0]
    assert (oracle.values, oracle.gradients, oracle.calls) == (2, 1, 3)


def test_a_function_that_works_in_place_cannot_move_our_points() -> None:
    def value(x: np.ndarray) -> float:
        x -= 5.0
        return float(x @ x)

    def gradient(x: np.ndarray) -> np.ndarray:
        x *= 2.0
        return x

    x = X.copy()
    oracle = guard(value, gradient)
    oracle.value(x), oracle.gradient(x)
    assert np.array_equal(x, X)


def test_a_reused_buffer_cannot_change_a_gradient_we_hold() -> None:
    buffer = np.zeros(2)

    def gradient(x: np.ndarray) -> np.ndarray:
        buffer[:] = x
        return buffer

    oracle = guard(gradient=gradient)
    first = oracle.gradient(X)
    oracle.gradient(X + 1)
    assert np.array_equal(first, X)


@pytest.mark.parametrize("dim", [3, 20_000])
def test_a_user_may_keep_the_points_it_was_given(dim: int) -> None:
    kept: list[np.ndarray] = []
    oracle = guard(lambda x: kept.append(x) or 0.0, lambda x: kept.append(x[:2]) or x)
    points = [np.full(dim, float(k)) for k in range(6)]
    for k, point in enumerate(points):
        oracle.gradient(point) if k % 2 else oracle.value(point)
    for given_point, point in zip(kept, points):
        assert np.array_equal(given_point, point[: given_point.size])
    # What nobody keeps is lent again, and still never ours.
    rude = guard(lambda x: x.fill(7.0) or 0.0)
    for point in points:
        rude.value(point)
    assert all((point == k).all() for k, point in enumerate(points))


def test_far_trials_may_overflow() -> None:
    oracle = guard(lambda x: math.nan)
    assert oracle.trial_value(X) == math.inf
    with pytest.raises(gs.OracleError):
        guard(lambda x: None).trial_value(X)


def test_a_point_that_is_not_finite_is_not_blamed_on_the_function() -> None:
    oracle = guard(lambda x: float(x.sum()), lambda x: x)
    for question in (oracle.value, oracle.gradient):
        with pytest.raises(gs.OracleError, match="search itself overflowed"):
            question(np.array([1.0, np.nan]))


PAIR = "pair \\(value, gradient\\)"


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (None, "End the function with `return`"),
        (np.ones(2), r"\.sum\(\) or \.mean\(\)"),
        ((1.0, np.ones(2)), f"returns a {PAIR}: pass jac=True"),
        (1j, "take .real"),
        ("1.0", r"float\(\.\.\.\)"),
        (Fraction(1, 2), "it holds Fraction"),
        ([[1.0], [1.0, 2.0]], "Convert it to floats"),
    ],
)
def test_the_advice_fits_a_bad_value(answer: Any, advice: str) -> None:
    with pytest.raises(gs.OracleError, match=advice) as caught:
        guard(lambda x: answer).value(X)
    assert "finite" not in str(caught.value)


@pytest.mark.parametrize(
    ("answer", "advice"),
    [
        (np.ones((2, 1)), r"row or a column: return it with \.ravel\(\)"),
        (np.ones((1, 2)), r"\.ravel\(\)"),
        (np.ones((2, 2)), "a Hessian, or the Jacobian"),
        (1.0, "one entry for each of the 2 variables"),
        (np.ones(3), "is the point of the right length"),
        (None, "End the function with `return`"),
        ((1.0, np.ones(2)), f"returns a {PAIR}: pass that function as fun with jac=True"),
        (np.ones(2) + 0j, "take .real"),
        ([Fraction(1, 2), None], "it holds Fraction and NoneType"),
        (sparse.csr_array(np.ones((1, 2))), r"\.toarray\(\)\.ravel\(\)"),
    ],
)
def test_the_advice_fits_a_bad_gradient(answer: Any, advice: str) -> None:
    with pytest.raises(gs.OracleError, match=advice) as caught:
        guard(gradient=lambda x: answer).gradient(X)
    assert "finite" not in str(caught.value)


def test_a_scalar_gradient_of_one_variable() -> None:
    with pytest.raises(gs.OracleError, match=r"np\.array\(\[g\]\)"):
        guard(gradient=lambda x: 1.0).gradient(X[:1])


def test_a_tensor_leads_to_goldstein_torch() -> None:
    import torch

    tensor = torch.ones(2, requires_grad=True)
    with pytest.raises(gs.OracleError, match=r"value is a torch tensor.*goldstein\.torch\.oracle"):
        guard(lambda x: tensor.sum()).value(X)
    with pytest.raises(gs.OracleError, match=r"a torch tensor.*gradient\.detach\(\)"):
        guard(gradient=lambda x: tensor).gradient(X)
    with pytest.raises(gs.OracleError, match=r"gets NumPy arrays.*goldstein\.torch\.oracle"):
        guard(lambda x: torch.abs(x).sum()).value(X)


def test_not_finite_at_the_start_and_on_the_way_are_two_things() -> None:
    for question in ("value", "gradient"):
        answers = iter([0.0 * X, 0.0 * X, math.nan * X])
        oracle = guard(lambda x, a=answers: next(a)[0], lambda x, a=answers: next(a))
        with pytest.raises(gs.OracleError, match="finite at the start: start elsewhere"):
            getattr(guard(lambda x: math.inf, lambda x: x * math.inf), question)(X)
        ask = getattr(oracle, question)
        ask(X), ask(X + 1)
        with pytest.raises(gs.OracleError, match="came to a point where the function is not defin"):
            ask(X + 2)


def test_an_exception_is_the_function_s_and_says_how_it_was_called() -> None:
    def broken(x: np.ndarray) -> float:
        return float(x[5])

    with pytest.raises(gs.OracleError, match=r"IndexError.*call 1.*of length 2 ") as caught:
        guard(broken).value(X)
    assert isinstance(caught.value.__cause__, IndexError)
    assert "finite" not in str(caught.value)
    late = guard(lambda x: broken(x) if x[0] > 5 else 0.0)
    late.value(X), late.value(X)
    with pytest.raises(gs.OracleError, match="must answer at every point"):
        late.value(10 * X)
