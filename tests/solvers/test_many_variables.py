"""From a thousand variables on: the third search, hulls of long rows, time and memory."""

import math
import time
import tracemalloc

import numpy as np
import pytest
from tests.functions import norm1

import goldstein as gs
from goldstein.errors import InputError, OutOfTime
from goldstein.numerics import hull as hulls
from goldstein.numerics.hull import Hull, gram_of_long_rows, min_norm_weights
from goldstein.oracles import CountedOracle, as_oracle
from goldstein.result import Status
from goldstein.solvers import Auto


class Watched(Auto):
    """Keeps the state of its run, to be looked at."""

    def start(self, oracle, x0, request):
        self.state = super().start(oracle, x0, request)
        return self.state


def run(name, d, solver=None, **options):
    problem = gs.problems.get(name, d=d)
    return problem, gs.minimize(
        problem, problem.x0, eps=1e-2, delta=1e-2, rng=0, method=solver or Auto(), **options
    )


# ---------------------------------------------------------------- the third search


@pytest.mark.parametrize("name", ["chained_lq", "chained_cb3_1", "chained_crescent_2", "brown_2"])
def test_sums_of_small_terms_are_certified_and_verify(name):
    problem, res = run(name, 3000, max_calls=6000)
    assert res.success
    assert all(res.certificate.verify(problem, seed=seed).ok for seed in (11, 12, 13))


@pytest.mark.slow
def test_it_finds_what_the_other_two_do_not():
    problem = gs.problems.get("chained_lq", d=3000)
    found = []
    for sweep in (True, False):
        found.append(run("chained_lq", 3000, Auto(sweep=sweep), max_calls=2500)[1])
    assert found[0].success
    assert not found[1].success
    assert found[0].fun <= found[1].fun + 1e-3 * abs(problem.best_value)


def test_it_is_dropped_where_gradients_speak_of_one_coordinate_at_a_time():
    solver = Watched()
    run("maxq", 1000, solver, max_calls=4000)
    sweep = solver.state.sweep
    assert sweep.losses == 2
    assert sweep.sweeps == 2


def test_it_never_takes_f_up():
    _, res = run("chained_mifflin_2", 1500, max_calls=4000)
    assert (np.diff(res.history.fun) <= 0).all()


def test_few_variables_have_two_searches():
    solver = Watched()
    run("chained_lq", 999, solver, max_calls=20)
    assert solver.state.sweep is None
    solver = Watched()
    run("chained_lq", 1000, solver, max_calls=20)
    assert solver.state.sweep is not None


def test_the_same_seed_gives_the_same_run():
    one, other = (run("chained_cb3_1", 2000, max_calls=1200)[1] for _ in range(2))
    assert np.array_equal(one.x, other.x)
    assert one.ngev == other.ngev


# ---------------------------------------------------------------- hulls of long rows


def by_factorisation(rows, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(hulls, "MANY_VARIABLES", 10**9)
        return min_norm_weights(rows)


@pytest.mark.parametrize("kind", ["plain", "short", "shorter", "dependent", "repeated", "uneven"])
@pytest.mark.parametrize("count", [3, 40, 150])
def test_the_gram_matrix_does_as_well_as_the_rows(kind, count, monkeypatch):
    rng = np.random.default_rng(count)
    rows = rng.standard_normal((count, 1500))
    if kind in ("short", "shorter"):
        rows += -rows.mean(0) + (1e-6 if kind == "short" else 1e-9) * rng.standard_normal(1500)
    elif kind == "dependent":
        rows = np.vstack([rows, 0.5 * (rows[:-1] + rows[1:])]) - rows.mean(0) + 1e-4
    elif kind == "repeated":
        rows = np.vstack([rows, rows + 1e-13 * rng.standard_normal(rows.shape)])
    elif kind == "uneven":
        rows *= np.logspace(0, 3, count)[:, None]
    weights = min_norm_weights(rows)
    assert (weights >= 0).all()
    assert math.isclose(weights.sum(), 1.0, rel_tol=1e-12)
    found = np.linalg.norm(weights @ rows)
    best = np.linalg.norm(by_factorisation(rows, monkeypatch) @ rows)
    # Many rows get a ridge, which is felt where they are dependent.
    slack = 1e-2 if kind == "dependent" and count >= 100 else 1e-6
    assert found <= best * (1 + slack) + 1e-12 * np.linalg.norm(rows, axis=1).max()


def test_a_hull_that_is_late_still_answers():
    rng = np.random.default_rng(0)
    hull = Hull(1200, 50, deadline=time.perf_counter() - 1.0)
    for row in rng.standard_normal((50, 1200)):
        hull.add(row)
    weights, point = hull.solve()
    assert math.isclose(weights.sum(), 1.0, rel_tol=1e-12)
    assert np.linalg.norm(point) <= min(np.linalg.norm(hull.gradients, axis=1)) * (1 + 1e-12)
    with pytest.raises(OutOfTime):
        gram_of_long_rows(hull.gradients, lambda: True)


# ---------------------------------------------------------------- time


def test_no_call_begins_after_the_deadline():
    oracle = CountedOracle(as_oracle(lambda x: 0.0, np.sign))
    with oracle.until(time.perf_counter() - 1.0):
        with pytest.raises(OutOfTime):
            oracle.value(np.ones(2))
        with pytest.raises(OutOfTime):
            oracle.gradient(np.ones(2))
    assert oracle.calls == 0
    assert oracle.value(np.ones(2)) == 0.0


@pytest.mark.parametrize("d", [5, 1000])
def test_a_slow_function_is_not_asked_beyond_the_limit(d):
    began = []

    def slow(answer):
        began.append(time.perf_counter())
        time.sleep(0.02)
        return answer

    start = time.perf_counter()
    res = gs.minimize(
        lambda x: slow(float(np.abs(x).sum() + x @ x)),
        np.linspace(-1, 2, d),
        lambda x: slow(np.sign(x) + 2 * x),
        eps=1e-6, delta=1e-6, rng=0, max_time=0.4,
    )  # fmt: skip
    assert res.status is Status.OUT_OF_TIME
    assert res.certificate is not None
    # The last word: a few looks beside the last point, within a twentieth of a second.
    assert sum(t > start + 0.4 for t in began) <= 5


# ---------------------------------------------------------------- memory


@pytest.mark.slow
@pytest.mark.parametrize("megabytes", [20, 60])
def test_the_search_stays_within_what_is_allowed(megabytes):
    limit = megabytes * 1_000_000
    problem = gs.problems.get("chained_cb3_1", d=20_000)
    start = problem.x0
    tracemalloc.start()
    try:
        gs.minimize(
            problem, start, eps=1e-2, delta=1e-2, rng=0, max_calls=1500,
            options={"max_memory": limit},
        )  # fmt: skip
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= limit


@pytest.mark.parametrize("n", [14, 20])
def test_what_is_found_beside_points_stays_within_what_is_allowed(n):
    # Gradients that change with every digit: about n of them cancel, and beside every point there
    # is another one whenever the judge looks.
    d, limit = 20_000, 40_000_000
    size = 1e-2 * math.sqrt(2 * n / d)

    def rough(x):
        return x + size * np.sin(1e15 * x)

    def peak(calls):
        tracemalloc.start()
        try:
            gs.minimize(
                lambda x: float(0.5 * x @ x), np.linspace(0.5, 1.5, d), rough, eps=1e-2,
                delta=1e-2, rng=0, max_calls=calls, options={"max_memory": limit},
            )  # fmt: skip
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(5)  # modules are loaded
    assert peak(600) <= limit


def test_a_bundle_that_made_room_has_what_the_judge_was_told():
    solver = Watched(max_memory=40_000_000)
    problem = gs.problems.get("chained_cb3_2", d=20_000)
    run("chained_cb3_2", 20_000, solver, max_calls=20)
    state = solver.state
    state.bundle.release()
    points = np.tile(state.x, (3, 1)) + 1e-4 * np.eye(3, problem.dim)
    state.rejected = points, np.array([problem.gradient(y) for y in points])
    state.remember_fresh()
    assert state.short_of_memory
    assert state.bundle.size == 3
    assert state.offered == state.added
    assert np.array_equal(state.bundle.hull.gradients, state.rejected[1])


@pytest.mark.parametrize("limit", [0, -5, 1000])
def test_too_little_memory_is_refused(limit):
    with pytest.raises(InputError, match="max_memory"):
        gs.minimize(
            norm1, np.ones(50), np.sign, eps=1e-2, delta=1e-2,
            options={"max_memory": limit},
        )  # fmt: skip
