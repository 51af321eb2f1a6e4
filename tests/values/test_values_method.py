"""Runs on values alone: never outside the bounds, never beyond the budget, one verdict."""

from __future__ import annotations

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from tests.functions import VALLEY_START as START
from tests.functions import valley

import goldstein as gs
import goldstein.scipy
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.oracles.differences import Differences, Stencil, noise_level
from goldstein.oracles.function import ValueOracle
from goldstein.solvers.values import TwoPoints, second_moment

PROBLEMS = ["crescent", "cb3", "dem", "mifflin_2", "dc_1", "rosenbrock", "wf", "rosen_suzuki"]


@pytest.mark.parametrize("name", PROBLEMS)
@pytest.mark.parametrize("method", ["values", "zeroth-order"])
def test_invariants(name: str, method: str) -> None:
    p = gs.problems.get(name)
    asked = []

    def f(x: np.ndarray) -> float:
        asked.append(x)
        return p.value(x)

    task = {"eps": 0.3, "delta": 0.05, "method": method, "rng": 3, "max_calls": 4000}
    res = gs.minimize(f, p.x0, **task)
    assert res.success == (res.status is gs.Status.VERIFIED)
    assert res.nfev == len(asked) <= 4001
    assert res.ngev == 0
    assert res.fun == p.value(res.x) <= p.value(p.x0)
    assert res.history.calls == sorted(res.history.calls)
    assert res.history.calls[-1] <= res.nfev
    if res.certificate is not None:
        assert np.array_equal(res.certificate.x, res.x)
        assert (res.certificate.label, res.certificate.kind) == ("estimated", "values")
        found = res.certificate.verify(p.value)
        assert found.ok, found
        assert found.label == "estimated"
        assert not res.success or (found.eps <= 0.3 and found.delta <= 0.05)
        # The gradient, which the run did not have, agrees.
        truth = gs.certify(p, res.x, delta=0.05, eps=res.certificate.eps, rng=0, max_calls=5000)
        assert truth.eps <= res.certificate.eps
    again = gs.minimize(p.value, p.x0, **task)
    assert np.array_equal(again.x, res.x)
    assert again.nfev == res.nfev


def test_most_of_them_succeed() -> None:
    solved = [
        gs.minimize(p.value, p.x0, "2-point", eps=0.3, delta=0.05, rng=1, max_calls=60_000).success
        for p in map(gs.problems.get, PROBLEMS)
    ]
    assert sum(solved) >= len(PROBLEMS) - 2


def test_all_ways_to_say_that_there_are_only_values() -> None:
    task: dict[str, Any] = {"eps": 0.3, "delta": 1e-2, "rng": 0}

    def both(x: np.ndarray) -> tuple[float, np.ndarray]:
        return valley(x), np.full(2, np.nan)  # the gradient is never looked at

    ways = [
        gs.minimize(valley, START, method="values", **task),
        gs.minimize(valley, START, "2-point", **task),
        gs.minimize(valley, START, "3-point", **task),
        gs.minimize(both, START, True, method="values", **task),
        gs.minimize(lambda x, a: a * valley(x), START, args=(1.0,), method=gs.Values(), **task),
        gs.minimize(lambda p: valley(np.array([p["a"], p["b"]])), {"a": -1.2, "b": 1.0},
                    method="values", **task),
        gs.minimize(valley, START, method="values", rel_eps=0.05, delta=1e-2, rng=0),
    ]  # fmt: skip
    assert all(res.success for res in ways)
    assert ways[5].x.keys() == {"a", "b"}
    assert np.array_equal(ways[0].x, ways[1].x)
    assert not np.array_equal(ways[0].x, ways[2].x)


REFUSED = [
    ({"stationarity": "near"}, "structure of an Expression"),
    ({"checkpoint": "x", "workers": map}, "drop checkpoint= or workers="),
    ({"workers": "many"}, "function like map"),
    ({"options": {"confidence": 1.5}}, "between 0 and 1"),
    ({"options": {"search_eps": -1.0}}, "search_eps"),
    ({"method": "bundle"}, "goes with method='auto' or 'values'"),
]


@pytest.mark.parametrize(("changes", "words"), REFUSED)
def test_what_does_not_go_together_is_said(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(gs.GoldsteinError, match=words):
        gs.minimize(valley, START, "2-point", **{"eps": 0.1, "delta": 0.1, **changes})


# --- bounds --------------------------------------------------------------------------------------

BOXES = [
    [(-2.0, 0.5), (None, None)],
    [(-1.2, 0.3), (0.0, 1.0)],
    [(0.5, 0.5), (-1.0, 3.0)],
    [(-2.0, 2.0), (1.0, 1.0 + 1e-6)],
]


@pytest.mark.parametrize("bounds", BOXES)
def test_nothing_is_asked_outside_the_bounds(bounds: Any) -> None:
    low = np.array([-np.inf if a is None else a for a, _ in bounds])
    high = np.array([np.inf if b is None else b for _, b in bounds])

    def f(x: np.ndarray) -> float:
        assert (x >= low).all()
        assert (x <= high).all()
        return valley(x)

    res = gs.minimize(f, START, "2-point", eps=0.3, delta=1e-2, rng=0, bounds=bounds)
    assert res.success
    assert res.certificate.verify(f, bounds=bounds).ok
    t = np.linspace(max(low[0], -2), min(high[0], 2), 4001)
    best = min(valley(np.array([a, np.clip(a * a, low[1], high[1])])) for a in t)
    assert res.fun <= best + 0.1
    # Without the bounds the same certificate claims too much.
    if np.abs(res.bound_multipliers).max() > 2 * res.certificate.eps:
        assert not res.certificate.verify(valley).ok


# --- noise, workers, questions -------------------------------------------------------------------


@pytest.mark.parametrize("level", [1e-9, 1e-5, 1e-2])
def test_the_noise_is_measured(level: float) -> None:
    rng = np.random.default_rng(0)
    found = []
    for seed in range(10):
        noisy = CountedOracle(
            ValueOracle(lambda x: np.sin(x).sum() + level * rng.standard_normal())
        )
        step = np.full(4, 1e-8)
        found.append(noise_level(noisy, np.ones(4), step, np.random.default_rng(seed)))
    assert level / 4 <= np.median(found) <= 2 * level


def test_smooth_functions_have_no_noise() -> None:
    for seed in range(10):
        exact = CountedOracle(ValueOracle(lambda x: float(np.exp(x).sum())))
        rng = np.random.default_rng(seed)
        assert noise_level(exact, rng.standard_normal(4), np.full(4, 1e-7), rng) == 0.0


@pytest.mark.parametrize("noise", [1e-8, 1e-4])
def test_a_noisy_function_is_minimised_and_judged(noise: float) -> None:
    rng = np.random.default_rng(0)

    def f(x: np.ndarray) -> float:
        return float(np.abs(x).sum() + noise * rng.standard_normal())

    res = gs.minimize(f, [1.0, -2.0, 0.5], "2-point", eps=0.5, delta=0.05, rng=0, max_calls=20_000)
    assert np.abs(res.x).sum() < 0.05
    assert res.success
    assert res.certificate.verify(lambda x: np.abs(x).sum()).ok


def test_differences_are_asked_for_through_the_map() -> None:
    threads = set()

    def f(x: np.ndarray) -> float:
        threads.add(threading.get_ident())
        return valley(x)

    task: dict[str, Any] = {"eps": 0.3, "delta": 1e-2, "rng": 0, "method": "values"}
    alone = gs.minimize(valley, START, **task)
    with ThreadPoolExecutor(4) as pool:
        together = gs.minimize(f, START, workers=pool.map, **task)
    assert np.array_equal(alone.x, together.x)
    assert alone.nfev == together.nfev
    assert len(threads) > 1


def test_a_number_of_processes_is_joblib() -> None:
    p = gs.problems.get("crescent")
    task: dict[str, Any] = {"eps": 0.5, "delta": 0.1, "rng": 0, "method": "values"}
    res = gs.minimize(lambda x: p.value(x), p.x0, workers=2, **task)
    assert np.array_equal(res.x, gs.minimize(p.value, p.x0, **task).x)


def test_a_failure_in_a_worker_names_the_point() -> None:
    def f(x: np.ndarray) -> float:
        if x[0] < 0.9:
            raise ZeroDivisionError("no wind")
        return float(np.abs(x).sum())

    with pytest.raises(gs.OracleError, match="no wind") as caught:
        gs.minimize(f, [1.0, 1.0], eps=0.1, delta=0.1, method="values", rng=0)
    assert caught.value.point[0] < 0.9


def test_a_checkpoint_resumes(tmp_path: Path) -> None:
    asked = []

    def f(x: np.ndarray) -> float:
        asked.append(x)
        return valley(x)

    path = tmp_path / "run.journal"
    task: dict[str, Any] = {"eps": 0.3, "delta": 1e-3, "rng": 2, "method": "values"}
    cut = gs.minimize(f, START, max_calls=60, checkpoint=path, **task)
    assert cut.status is gs.Status.OUT_OF_CALLS
    asked.clear()
    res = gs.minimize(f, START, checkpoint=path, **task)
    whole = gs.minimize(valley, START, **task)
    assert res.success
    assert np.array_equal(res.x, whole.x)
    assert res.nfev == whole.nfev
    with pytest.raises(gs.InputError, match="another"):
        gs.minimize(lambda x: valley(x) + x[0], START, checkpoint=path, **task)


def test_a_search_asks_for_values_only() -> None:
    task: dict[str, Any] = {"eps": 0.3, "delta": 1e-2, "method": "values", "rng": 2}
    res = gs.minimize(valley, START, **task)
    search = gs.Search(START, **task)
    count = 0
    while (question := search.ask()) is not None:
        assert question.value
        assert not question.gradient
        search.tell(value=valley(question.point))
        count += 1
        if count == 50:
            search = pickle.loads(pickle.dumps(search))
    assert np.array_equal(search.result.x, res.x)
    assert count <= res.nfev


def test_the_basis_of_differences_is_turned_and_they_are_right() -> None:
    p = gs.problems.get("maxq_20")
    y = p.x0 + 1e-3 * stream(0, 0, "test").standard_normal(20)
    everywhere = np.full(20, np.inf)
    for central, tolerance in ((False, 1e-5), (True, 1e-6)):
        values = CountedOracle(ValueOracle(p.value))
        asked = Differences(values, Stencil(-everywhere, everywhere, 0, central=central))
        assert np.abs(asked.gradient(y) - p.gradient(y)).max() <= tolerance * np.abs(y).max()
        assert values.values == (40 if central else 21)
        asked.value(y)
        asked.gradient(y)
        assert values.values == (81 if central else 41)  # f(y) was known


# --- the reference -------------------------------------------------------------------------------


def test_two_point_estimates_are_unbiased_and_not_too_long() -> None:
    slope = np.array([1.0, -2.0, 0.5, 0.0, 3.0])
    oracle = TwoPoints(CountedOracle(ValueOracle(lambda x: float(slope @ x))), 0.1)
    rng = np.random.default_rng(0)
    draws = np.array([oracle.sample(np.zeros(5), rng) for _ in range(20_000)])
    assert np.abs(draws.mean(axis=0) - slope).max() < 0.15
    root = np.sqrt((draws**2).sum(axis=1).mean())
    assert root == pytest.approx(np.sqrt(5) * np.linalg.norm(slope), rel=0.05)
    assert root <= second_moment(5, float(np.linalg.norm(slope)))


@pytest.mark.parametrize("dim", [1, 2, 3, 20])
def test_no_function_has_longer_estimates_than_the_bound(dim: int) -> None:
    """Kinks through y and beside it, curved and straight ones; all have Lipschitz constant 1."""
    rng = np.random.default_rng(dim)
    way = rng.standard_normal(dim)
    way /= np.linalg.norm(way)
    functions = [
        lambda x: float(way @ x),
        lambda x: abs(float(way @ x) + 0.02),
        lambda x: float(np.linalg.norm(x - 0.05 * way)),
        lambda x: float(np.abs(x).max()) + 0.0 * x[0],
        lambda x: max(0.0, float(x[0]) - 0.01),
    ]
    for f in functions:
        oracle = TwoPoints(CountedOracle(ValueOracle(f)), 0.1)
        draws = np.array([oracle.sample(np.zeros(dim), rng) for _ in range(4000)])
        squares = (draws**2).sum(axis=1)
        noise = squares.std() / np.sqrt(len(draws))
        assert squares.mean() <= second_moment(dim, 1.0) ** 2 + 4.0 * noise + 1e-12
    # A linear function comes close to it.
    assert second_moment(dim, 1.0) ** 2 <= max(1.0, 2.0 * dim)


def test_the_schedule_of_the_theorem_knows_the_size_of_the_estimates() -> None:
    scaled = gs.ZerothOrder(schedule="optimal", gap=1.0, lipschitz=2.0).scaled(9, None)
    assert scaled.lipschitz == second_moment(9, 2.0)
    res = gs.minimize(
        lambda x: float(np.abs(x).sum()), [0.3], eps=0.9, delta=0.5, rng=0, max_calls=40_000,
        method=gs.ZerothOrder(schedule="optimal", gap=0.1, lipschitz=1.0),
    )  # fmt: skip
    assert res.certificate is not None
    with pytest.raises(gs.InputError, match="knows no bounds"):
        gs.minimize(valley, START, eps=0.1, delta=0.1, method="zeroth-order", bounds=[(0, 2)] * 2)


# --- SciPy ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("jac", [None, "2-point", "3-point", False])
def test_scipy_without_a_gradient(jac: Any) -> None:
    res = optimize.minimize(valley, START, jac=jac, method=goldstein.scipy.method)
    assert res.success
    assert abs(res.x - 1).max() < 1e-3
    # A tenth of the slope at the start, which looks along a few directions tell up to sqrt(d).
    tenth = 0.1 * 2**0.5 * np.hypot(6.8, 1.0)
    assert res.certificate.eps <= tenth
    assert np.linalg.norm(res.jac) <= tenth
    bounded = optimize.minimize(
        valley, START, jac=jac, method=goldstein.scipy.method, bounds=[(-2, 0.5), (None, None)],
        options={"eps": 0.2, "delta": 1e-2, "confidence": 0.99, "workers": map},
    )  # fmt: skip
    assert bounded.success
    assert bounded.certificate.confidence == 0.99
    assert bounded.bound_multipliers[0] > 0.5


def test_basinhopping_and_certify_result_without_a_gradient() -> None:
    res = optimize.basinhopping(
        valley, START, niter=2, rng=0, minimizer_kwargs={"method": goldstein.scipy.Method(tol=1e-3)}
    )
    assert res.lowest_optimization_result.success
    found = gs.certify_result(res, valley, "2-point", delta=1e-2, eps=0.2, rng=0)
    assert found.eps <= 0.2
    assert found.verify(valley).ok


# --- noise ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["rosen_suzuki", "maxq_20", "maxquad"])
def test_noise_does_not_keep_the_search_from_the_minimum(name: str) -> None:
    """Noise of 1e-4, and values within 1e-3 of the way from the start to the minimum."""
    p = gs.problems.get(name)
    rng = np.random.default_rng(0)

    def noisy(x: np.ndarray) -> float:
        return p.value(x) + 1e-4 * rng.standard_normal()

    res = gs.minimize(noisy, p.x0, eps=1e-6, delta=1e-6, method="values", rng=0,
                      max_calls=500 * (p.dim + 1))  # fmt: skip
    assert not res.success  # 1e-6 cannot be claimed of such values
    gap = p.value(p.x0) - p.best_value
    assert p.value(res.x) - p.best_value <= 1e-3 * gap


def test_looking_for_noise_costs_four_values_where_there_is_none() -> None:
    for scale, noisy in ((1.0, False), (1e6, False), (1.0, True)):
        rng = np.random.default_rng(0)
        level = 1e-5 if noisy else 0.0
        counted = CountedOracle(
            ValueOracle(
                lambda x, s=scale, a=level, r=rng: s * float(x @ x) + a * r.standard_normal()
            )
        )
        found = noise_level(counted, np.ones(3), np.full(3, 1e-7), np.random.default_rng(1))
        assert counted.values == (13 if noisy else 4)
        assert 1e-6 < found < 1e-4 if noisy else found == 0.0


def test_steps_follow_the_metric_of_a_search_where_values_are_noisy() -> None:
    free = np.full(2, np.inf)
    factor = np.diag([1.0, 1e-3])  # f changes a thousand times faster along the second axis

    def spread(stencil: Stencil) -> np.ndarray:
        return np.abs(np.array([stencil.at(np.array([0.1 * k, 0.0]))[1] for k in range(9)])).max(
            axis=(0, 1)
        )

    quiet, noisy, bounded = (Stencil(-a, a, 0) for a in (free, free, np.full(2, 5.0)))
    noisy.noise = bounded.noise = 1e-6
    for stencil in (quiet, noisy, bounded):
        stencil.saw(np.array([1.0, 1e3]))
        stencil.fit(factor, np.array([1.0, 1e3]))
    assert spread(noisy)[0] > 300 * spread(noisy)[1]
    for stencil in (quiet, bounded):
        assert spread(stencil)[0] < 3 * spread(stencil)[1]
    # The step is such that noise is a fixed part of the gradient, in its own measure.
    before = spread(noisy)
    noisy.fit(factor, np.array([10.0, 1e4]))
    assert np.allclose(before / spread(noisy), 10.0, rtol=0.5)
    # A metric that is no number is none.
    noisy.fit(factor * np.nan, None)
    assert spread(noisy)[0] < 3 * spread(noisy)[1]


def test_differences_in_a_metric_are_gradients() -> None:
    rng = np.random.default_rng(0)
    free = np.full(3, np.inf)
    stencil = Stencil(-free, free, 0)
    counted = CountedOracle(
        ValueOracle(lambda x: float(x @ [1.0, 100.0, 0.01]) + 1e-8 * rng.standard_normal())
    )
    differences = Differences(counted, stencil)
    stencil.noise = 1e-8
    slope = np.array([1.0, 100.0, 0.01])
    stencil.fit(np.diag([1.0, 1e-2, 1e2]), slope)
    error = differences.gradient(np.zeros(3)) - slope
    assert np.abs(error / slope).max() < 0.05


def test_a_long_axis_of_the_metric_does_not_bury_a_short_one_in_noise() -> None:
    rng = np.random.default_rng(0)
    free, slope = np.full(2, np.inf), np.array([1e-6, 100.0])
    counted = CountedOracle(ValueOracle(lambda x: float(x @ slope) + 1e-8 * rng.standard_normal()))
    errors = []
    for seed in range(10):
        stencil = Stencil(-free, free, seed)
        stencil.noise = 1e-8
        stencil.fit(np.diag([1e6, 1e-2]), slope)
        place, ways = stencil.at(np.zeros(2))
        assert np.linalg.norm(ways, axis=1).max() <= 0.1 * (1 + 1e-12)
        errors.append(Differences(counted, stencil).gradient(place)[1] - slope[1])
    assert np.abs(errors).max() < 0.03 * slope[1]


@pytest.mark.parametrize("seed", range(4))
def test_under_noise_fun_is_a_mean_and_the_message_says_what_would_help(seed):
    """The luckiest of thousands of values would be four deviations too low."""
    noise = np.random.default_rng(seed)

    def f(x):
        return float(x @ x) + 0.01 * noise.normal()

    res = gs.minimize(f, [1.0, 1.0], jac="2-point", eps=0.1, delta=0.1, rng=0, max_calls=2000)
    assert not res.success
    assert "fun is the mean of" in res.message
    assert "delta of about" in res.message
    assert abs(res.fun - float(res.x @ res.x)) <= 0.02


def helical(x: np.ndarray) -> float:
    """Fletcher and Powell's helical valley: its start, on the negative axis, is hard to leave."""
    turn = np.arctan2(x[1], x[0]) / (2.0 * np.pi)
    return float(
        100.0 * ((x[2] - 10.0 * turn) ** 2 + (np.hypot(x[0], x[1]) - 1.0) ** 2) + x[2] ** 2
    )


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_coarse_noise_does_not_keep_a_search_at_its_start(seed: int) -> None:
    rng = np.random.default_rng(seed)

    def noisy(x: np.ndarray) -> float:
        f = helical(x)
        return f + 1e-3 * max(1.0, abs(f)) * rng.standard_normal()

    res = optimize.minimize(
        noisy, [-1.0, 0.0, 0.0], method=goldstein.scipy.method, options={"maxfev": 600}
    )
    assert helical(res.x) < 1.0  # 2500 at the start


def test_values_too_few_for_a_claim_are_spent_on_a_lower_place() -> None:
    t = np.array([9.0, 14, 21, 28, 42, 57, 63, 70, 79])
    y = np.array([8.93, 10.8, 18.59, 22.33, 39.35, 56.11, 61.73, 64.62, 67.08])

    def growth(b: np.ndarray) -> float:  # NIST, RAT42: a first step leads to where it is flat
        with np.errstate(over="ignore"):
            r = y - b[0] / (1.0 + np.exp(b[1] - b[2] * t))
        return float(r @ r)

    calls = []

    def counted(b: np.ndarray) -> float:
        calls.append(b)
        return growth(b)

    options = {"maxfev": 600, "confidence": 0.95}
    res = optimize.minimize(
        counted, [100.0, 1.0, 0.1], method=goldstein.scipy.method, options=options
    )
    assert res.nfev == len(calls) <= 600
    assert not res.success
    assert res.fun == growth(res.x) < 1000.0  # 18,000 where it is flat


def test_values_that_drift_are_remarked_on() -> None:
    """A steady drift looks like a smooth function: only the same point asked again tells it."""
    calls = []

    def drifting(x: np.ndarray) -> float:
        calls.append(x)
        return float(abs(x[0]) + abs(x[1] - 1)) + 1e-4 * len(calls)

    res = gs.minimize(drifting, [1.0, 3.0], "2-point", eps=0.1, delta=1e-2, rng=0, max_calls=5000)
    assert not res.success
    assert "drift" in res.message
    steady = gs.minimize(valley, START, "2-point", eps=1e-6, delta=1e-6, rng=0, max_calls=5000)
    assert "drift" not in steady.message
