"""Several gradients at once: the same run, in fewer rounds."""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint
from tests.functions import valley, valley_gradient

import goldstein as gs
from goldstein.errors import KinkError, OutOfCalls, OutOfTime
from goldstein.oracles import CountedOracle, FunctionOracle

TARGET: dict[str, Any] = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def largest(x: np.ndarray) -> float:
    return float(np.abs(x).max() + 0.1 * x @ x)


def slope_of_largest(x: np.ndarray) -> np.ndarray:
    j = np.abs(x).argmax()
    answer = 0.2 * x
    answer[j] += np.sign(x[j])
    return answer


def both(x: np.ndarray) -> tuple[float, np.ndarray]:
    return valley(x), valley_gradient(x)


def expression() -> Any:
    x = gs.Variable(4)
    return gs.max(abs(x)) + 0.5 * gs.sum(abs(x - 0.3))


PROBLEMS: list[tuple[Any, Any, list[float]]] = [
    (largest, slope_of_largest, [1.0, -2.0, 3.0, 0.5, 1.5]),
    (both, True, [-1.2, 1.0]),
    (expression(), None, [1.0, -2.0, 3.0, 0.5]),
]


class Rounds:
    """Like `map`; remembers how much was asked for at once."""

    def __init__(self) -> None:
        self.sizes: list[int] = []

    def __call__(self, function: Callable[..., Any], items: Any) -> Any:
        self.sizes.append(len(items))
        return map(function, items)


@pytest.fixture(params=["map", "threads", "processes"])
def workers(request: pytest.FixtureRequest) -> Iterator[Any]:
    if request.param == "threads":
        with ThreadPoolExecutor(4) as pool:
            yield pool.map
    else:
        yield map if request.param == "map" else 2


def same(one: Any, other: Any) -> bool:
    names = ("x", "points", "gradients", "weights")
    return one.eps == other.eps and all(
        np.array_equal(getattr(one, name), getattr(other, name)) for name in names
    )


@pytest.mark.parametrize(("fun", "jac", "start"), PROBLEMS)
def test_runs_are_equal_bit_for_bit(fun: Any, jac: Any, start: list[float], workers: Any) -> None:
    alone = gs.minimize(fun, start, jac, **TARGET)
    together = gs.minimize(fun, start, jac, workers=workers, **TARGET)
    assert alone.success
    assert (alone.nfev, alone.ngev, alone.fun) == (together.nfev, together.ngev, together.fun)
    assert same(alone.certificate, together.certificate)
    there = {"delta": 0.1, "rng": 1}
    assert same(
        gs.certify(fun, alone.x, jac, **there),
        gs.certify(fun, alone.x, jac, workers=workers, **there),
    )


@pytest.mark.parametrize(("fun", "jac", "start"), PROBLEMS)
@pytest.mark.parametrize("most", [5, 12, 23, 40, 61])
def test_no_call_more_than_allowed(fun: Any, jac: Any, start: list[float], most: int) -> None:
    alone = gs.minimize(fun, start, jac, max_calls=most, **TARGET)
    together = gs.minimize(fun, start, jac, max_calls=most, workers=map, **TARGET)
    assert together.nfev + together.ngev <= most
    assert (alone.status, alone.nfev, alone.ngev) == (together.status, together.nfev, together.ngev)
    assert np.array_equal(alone.x, together.x)


def test_the_judge_and_the_looks_beside_ask_at_once() -> None:
    fun, jac, start = PROBLEMS[0]
    searching, certifying = Rounds(), Rounds()
    x = gs.minimize(fun, start, jac, workers=searching, **TARGET).x
    gs.certify(fun, x, jac, delta=0.1, rng=0, workers=certifying)
    assert max(searching.sizes) > 1
    assert max(certifying.sizes) > 1


def kinked(x: np.ndarray) -> np.ndarray:
    """The slope of |x|_1, which a third of all points are said not to have."""
    if int(abs(x[0]) * 2.0**40) % 3 == 0:
        raise KinkError("not here", x)
    return np.sign(x) + x


def test_points_without_a_gradient_change_nothing(workers: Any) -> None:
    def f(x: np.ndarray) -> float:
        return float(np.abs(x).sum() + 0.5 * x @ x)

    task: dict[str, Any] = {**TARGET, "method": "bundle", "max_calls": 400}
    alone = gs.minimize(f, [1.0, -2.0, 3.0], kinked, **task)
    together = gs.minimize(f, [1.0, -2.0, 3.0], kinked, workers=workers, **task)
    assert (alone.status, alone.nfev, alone.ngev) == (together.status, together.nfev, together.ngev)
    assert np.array_equal(alone.x, together.x)


# --- the guard ------------------------------------------------------------------------------------


def counted(jac: Any, **how: Any) -> CountedOracle:
    return CountedOracle(FunctionOracle(largest, jac), **how)


POINTS = np.arange(1.0, 13.0).reshape(6, 2)


def test_none_stands_for_a_kink_and_counts() -> None:
    def jac(x: np.ndarray) -> np.ndarray:
        if x[0] == 3.0:
            raise KinkError("here", x)
        return x

    for how in (None, map):
        oracle = counted(jac, workers=how)
        answers = list(oracle.gradients_at(POINTS))
        assert [g is None for g in answers] == [False, True, False, False, False, False]
        assert np.array_equal(answers[5], POINTS[5])
        assert oracle.gradients == 6


def test_the_last_calls_are_used_and_no_more() -> None:
    rounds = Rounds()
    oracle = counted(np.sign, max_calls=4, workers=rounds)
    answers = oracle.gradients_at(POINTS)
    assert [next(answers) is not None for _ in range(4)] == [True] * 4
    with pytest.raises(OutOfCalls):
        next(answers)
    assert rounds.sizes == [4]
    assert oracle.calls == 4


def test_nothing_is_asked_after_the_deadline() -> None:
    rounds = Rounds()
    oracle = counted(np.sign, workers=rounds)
    with oracle.until(-1.0), pytest.raises(OutOfTime):
        list(oracle.gradients_at(POINTS))
    assert rounds.sizes == []


def raises(x: np.ndarray) -> np.ndarray:
    if x[0] == 5.0:
        raise ZeroDivisionError("by zero")
    return x


def not_finite(x: np.ndarray) -> np.ndarray:
    return x if x[0] != 5.0 else x * np.nan


def too_short(x: np.ndarray) -> np.ndarray:
    return x if x[0] != 5.0 else x[:1]


@pytest.mark.parametrize("wrong", [raises, not_finite, too_short])
def test_errors_are_those_of_one_after_the_other(wrong: Any, workers: Any) -> None:
    from goldstein.oracles.separable import mapped

    with pytest.raises(gs.OracleError) as alone:
        list(counted(wrong).gradients_at(POINTS))
    with mapped(workers) as ask, pytest.raises(gs.OracleError) as together:
        list(counted(wrong, workers=ask).gradients_at(POINTS))
    assert str(alone.value) == str(together.value)
    assert np.array_equal(together.value.point, POINTS[2])


def test_a_checkpoint_goes_without_workers() -> None:
    with pytest.raises(gs.InputError, match="drop checkpoint= or workers="):
        gs.minimize(lambda x: abs(x[0]), [1.0], np.sign, workers=map, checkpoint="x", **TARGET)


LIMITS: list[dict[str, Any]] = [
    {"bounds": [(-3.0, -0.5), (0.25, 2.0)]},
    {"constraints": LinearConstraint([[1.0, 2.0]], 1.0, np.inf)},
    {"plus": gs.prox.l1(0.25)},
]


@pytest.mark.parametrize("limits", LIMITS)
def test_workers_change_nothing_with_limits_and_terms(limits: dict[str, Any]) -> None:
    def fun(x: Any) -> float:
        return float(np.abs(x - 1.0).sum() + np.square(x).sum())

    def jac(x: Any) -> Any:
        return np.sign(x - 1.0) + 2.0 * x

    rounds = Rounds()
    alone = gs.minimize(fun, [-2.0, 1.5], jac, **TARGET, **limits)
    together = gs.minimize(fun, [-2.0, 1.5], jac, workers=rounds, **TARGET, **limits)
    assert np.array_equal(alone.x, together.x)
    assert (alone.nfev, alone.ngev) == (together.nfev, together.ngev)
    assert alone.certificate.digest == together.certificate.digest


def test_certify_takes_them_with_bounds() -> None:
    there: dict[str, Any] = {"delta": 0.1, "bounds": [(0, 1)], "rng": 0}
    alone = gs.certify(lambda x: abs(x[0]), [0.5], np.sign, **there)
    together = gs.certify(lambda x: abs(x[0]), [0.5], np.sign, workers=map, **there)
    assert alone.eps == together.eps


def test_certify_hands_values_to_workers_too() -> None:
    rounds = Rounds()
    there: dict[str, Any] = {"delta": 0.1, "eps": 0.5, "rng": 0}
    alone = gs.certify(lambda x: abs(x[0]), [0.0], "2-point", **there)
    together = gs.certify(lambda x: abs(x[0]), [0.0], "2-point", workers=rounds, **there)
    assert alone.eps == together.eps
    assert max(rounds.sizes) > 1
