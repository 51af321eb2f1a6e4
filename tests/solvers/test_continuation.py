"""With a certificate in hand a run goes on while f falls cheaply, and loses nothing by it."""

from __future__ import annotations

import numpy as np
import pytest

import goldstein as gs
from goldstein.solvers import loop


def solve(name: str, level: float, d: int | None = None, **more) -> gs.Result:
    problem = gs.problems.get(name, d=d)
    res = gs.minimize(problem, problem.x0, eps=level, delta=level, rng=0, **more)
    if res.certificate is not None:
        assert res.certificate.verify(problem).ok
        np.testing.assert_array_equal(res.certificate.x, res.x)
        assert res.fun == problem.fun(res.x)
    return res


def test_small_gradients_far_from_the_bottom_are_not_the_end() -> None:
    """At d = 10,000 gradients of active faces are hardly longer than eps where f is 9.2."""
    problem = gs.problems.get("active_faces", d=10_000)
    assert problem.fun(problem.x0) > 9.0
    assert np.linalg.norm(problem.jac(problem.x0)) <= 1.1e-2
    res = solve("active_faces", 1e-2, 10_000)
    assert res.success
    assert res.fun < 9e-3
    assert res.nfev + res.ngev < loop.LONGEST * 20 + loop.SHORTEST


@pytest.mark.parametrize("scale", [1e-2, 1e-3])
@pytest.mark.parametrize("name", ["maxquad", "chained_lq", "brown_2"])
def test_gradients_below_eps_everywhere_lead_to_the_bottom_all_the_same(
    name: str, scale: float
) -> None:
    """Whatever the scale of f, a certificate of it is not the end far from the minimum."""
    problem = gs.problems.get(name)
    steepest = np.linalg.norm(problem.jac(problem.x0))
    share = scale / steepest
    res = gs.minimize(
        lambda x: share * problem.fun(x), problem.x0, lambda x: share * problem.jac(x),
        eps=2 * scale, delta=1e-2, rng=0,
    )  # fmt: skip
    assert res.success
    start, best = problem.fun(problem.x0), problem.best_value
    assert problem.fun(res.x) - best <= 1e-2 * (start - best)


@pytest.mark.parametrize("name", ["evd61", "nesterov_worst", "chebyshev_rational"])
def test_what_closing_in_and_flat_valleys_hide_is_found(name: str) -> None:
    """On the way to a proof f does not fall; where f is not convex, little is not nothing."""
    problem = gs.problems.get(name)
    fall = problem.fun(problem.x0) - problem.best_value
    stopped = solve(name, 1e-2, options={"go_on": False})
    res = solve(name, 1e-2)
    assert stopped.fun - problem.best_value > 2e-3 * fall
    assert res.fun - problem.best_value <= 1e-3 * fall


@pytest.mark.parametrize("name", ["maxquad", "dc_4", "goffin"])
def test_a_certificate_that_promises_enough_is_the_end(name: str) -> None:
    """What is left, were f convex, is less than a thousandth of the fall, though f still falls."""
    plain = solve(name, 1e-2, options={"go_on": False})
    res = solve(name, 1e-2)
    problem = gs.problems.get(name)
    promised = loop.optimality_gap(plain.certificate, problem.x0)
    assert plain.fun - problem.best_value <= promised
    assert promised <= loop.SHARE * (problem.fun(problem.x0) - plain.fun)
    assert (res.nfev, res.ngev) == (plain.nfev, plain.ngev)


@pytest.mark.parametrize("name", ["crescent", "maxquad", "chained_cb3_1", "hinge_svm"])
def test_where_f_has_stopped_falling_the_certificate_is_the_end(name: str) -> None:
    plain = solve(name, 1e-4, options={"go_on": False})
    res = solve(name, 1e-4)
    assert res.success
    assert res.fun <= plain.fun
    assert res.nfev + res.ngev <= 1.5 * (plain.nfev + plain.ngev) + loop.EARLY


def test_a_minimiser_costs_a_few_calls_only() -> None:
    res = gs.minimize(
        lambda x: np.abs(x).sum(), np.full(3, 1e-9), np.sign, eps=1e-2, delta=1e-2, rng=0
    )
    assert res.success
    assert res.nfev + res.ngev < 2 * loop.EARLY


@pytest.mark.parametrize("name", ["crescent", "network_1321_mse", "evd61", "chained_cb3_1"])
def test_a_warm_start_costs_a_few_calls_only(name: str) -> None:
    problem = gs.problems.get(name)
    warm = solve(name, 1e-5, options={"go_on": False}).x
    calls = []
    for on in (False, True):
        res = gs.minimize(problem, warm, eps=1e-2, delta=1e-2, rng=1, options={"go_on": on})
        assert res.success
        calls.append(res.nfev + res.ngev)
    assert calls[1] <= max(calls[0], loop.EARLY) + loop.EARLY


def test_a_proof_that_does_not_come_ends_with_the_one_in_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = solve("network_1321_mse", 1e-2, options={"go_on": False})
    monkeypatch.setattr(loop, "SHORTEST", 1)
    monkeypatch.setattr(loop, "LONGEST", 1.1)
    res = solve("network_1321_mse", 1e-2)
    assert res.success
    assert res.fun == first.fun
    assert res.nfev + res.ngev < 1.5 * (first.nfev + first.ngev)


@pytest.mark.parametrize("calls", range(60, 260, 20))
def test_a_budget_that_ends_on_the_way_returns_the_certificate_in_hand(calls: int) -> None:
    first = solve("nesterov_chebyshev_rosenbrock_smooth", 1e-2, options={"go_on": False})
    assert first.nfev + first.ngev < 60
    res = solve("nesterov_chebyshev_rosenbrock_smooth", 1e-2, max_calls=calls)
    assert res.success
    assert res.certificate.eps <= 1e-2
    assert res.nfev + res.ngev <= calls
    assert res.fun <= first.fun


def test_a_callback_that_stops_the_run_keeps_the_certificate_in_hand() -> None:
    first = solve("nesterov_chebyshev_rosenbrock_smooth", 1e-2, options={"go_on": False})
    seen: list[float] = []

    def stop(intermediate_result) -> bool:
        seen.append(intermediate_result.fun)
        return intermediate_result.calls > first.nfev + first.ngev + 20

    res = solve("nesterov_chebyshev_rosenbrock_smooth", 1e-2, callback=stop)
    assert res.success
    assert res.fun >= min(seen)


def test_the_option_is_checked() -> None:
    with pytest.raises(gs.errors.InputTypeError, match="'go_on' must be True or False"):
        solve("crescent", 1e-2, options={"go_on": 1})


def test_compiled_runs_go_on_whatever_their_stretch() -> None:
    numba = pytest.importorskip("numba")
    d = 200

    @numba.njit
    def fun(x):
        return np.log(np.maximum(np.abs(np.sum(x)), np.max(np.abs(x))) + 1.0)

    @numba.njit
    def jac(x):
        g = np.zeros(x.size)
        total, i = np.sum(x), np.argmax(np.abs(x))
        if np.abs(total) >= np.abs(x[i]):
            g[:] = np.sign(total) / (np.abs(total) + 1.0)
        else:
            g[i] = np.sign(x[i]) / (np.abs(x[i]) + 1.0)
        return g

    runs = [
        gs.minimize(
            fun, np.ones(d), jac, eps=0.1, delta=0.1, rng=0,
            options={"compiled": True, "go_on": on, "stretch": stretch},
        )
        for on, stretch in ((False, 100), (True, 100), (True, 7))
    ]  # fmt: skip
    assert all(res.success and res.certificate.verify(fun, jac).ok for res in runs)
    assert runs[1].fun < 0.1 * runs[0].fun
    np.testing.assert_array_equal(runs[1].x, runs[2].x)
    assert runs[1].nfev == runs[2].nfev
