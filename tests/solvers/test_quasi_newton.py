"""The metrics and the model of the fast half."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from tests.reference_quadratic import minimise_on_simplex

import goldstein as gs
from goldstein.numerics.hull_problems import quadratic_weights
from goldstein.oracles import CountedOracle, as_oracle
from goldstein.solvers.logic import line_search
from goldstein.solvers.memory import GradientMemory, PointBundle
from goldstein.solvers.quasi_newton import FactorMetric, LimitedMetric, QuasiNewton
from goldstein.solvers.tuning import TUNING

DIM, ROWS = 7, 5


def bfgs(pairs: list[tuple[np.ndarray, np.ndarray]], scale: float) -> np.ndarray:
    """The textbook recursion."""
    h = scale * np.eye(DIM)
    for s, y in pairs:
        rho = 1.0 / (s @ y)
        v = np.eye(DIM) - rho * np.outer(s, y)
        h = v @ h @ v.T + rho * np.outer(s, s)
    return h


def feed(
    metric: LimitedMetric, rows: np.ndarray, count: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(1)
    hessian = np.diag(np.arange(1.0, DIM + 1.0))
    pairs = []
    for slot in range(ROWS):
        metric.replaced(slot)
    for k in range(count):
        s = rng.standard_normal(DIM)
        y = hessian @ s
        metric.products(ROWS)  # so that what is cached has to be updated
        metric.update(s, y, float(s @ y), rows @ s)
        rows[k % ROWS] = rng.standard_normal(DIM)
        metric.replaced(k % ROWS)
        pairs.append((s, y))
    return pairs


def check(metric: LimitedMetric, rows: np.ndarray, h: np.ndarray) -> None:
    assert metric.products(ROWS) == pytest.approx(rows @ h @ rows.T)
    g = np.cos(np.arange(DIM))
    assert metric.apply(g) == pytest.approx(h @ g)
    weights = np.full(ROWS, 1.0 / ROWS)
    image, square = metric.combine(weights)
    assert image == pytest.approx(h @ (weights @ rows))
    assert square == pytest.approx(image @ (weights @ rows))


@pytest.mark.parametrize("updates", [0, 1, 3, 4, 11])
def test_limited_metric_is_bfgs_of_the_last_pairs(updates: int) -> None:
    rows = np.random.default_rng(0).standard_normal((ROWS, DIM))
    metric = LimitedMetric(rows, 4)
    pairs = feed(metric, rows, updates)[-4:]
    scale = 1.0
    if pairs:
        s, y = pairs[-1]
        scale = (s @ y) / (y @ y)
    check(metric, rows, bfgs(pairs, scale))


@pytest.mark.parametrize("count", [ROWS, DIM + 3], ids=["columns kept", "columns made"])
@pytest.mark.parametrize("updates", [1, 3, 12, 40])
def test_factor_metric_is_bfgs_and_solves_the_model(updates: int, count: int) -> None:
    """Its steps follow its own directions, some of them the model's."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((count, DIM))
    metric, hessian = FactorMetric(rows), np.diag(np.arange(1.0, DIM + 1.0))
    pairs = []
    for k in range(updates):
        image = metric.apply(rng.standard_normal(DIM))
        if k % 2:
            image, _ = metric.minimise(rng.random(count))
        s = -rng.random() * image
        pairs.append((s, hessian @ s))
        metric.update(s, pairs[-1][1], float(s @ pairs[-1][1]), rows @ s)
        rows[k % count] = rng.standard_normal(DIM)
        metric.replaced(k % count)
    s, y = pairs[0]
    h = bfgs(pairs, (s @ y) / (y @ y))
    g = np.cos(np.arange(DIM))
    assert metric.apply(g) == pytest.approx(h @ g)
    errors = rng.random(count)
    image, fall = metric.minimise(errors)
    combination = np.linalg.solve(h, image)
    assert fall == pytest.approx(combination @ image)
    gram = rows @ h @ rows.T
    wanted = minimise_on_simplex(gram, errors)
    weights = quadratic_weights(np.linalg.cholesky(h).T @ rows.T, errors)
    assert weights is not None
    assert image == pytest.approx(h @ (weights @ rows), rel=1e-4, abs=1e-6)
    # The programme is solved to a thousandth of its linear part.
    assert fall / 2 + errors @ weights <= wanted @ gram @ wanted / 2 + 1.001 * (errors @ wanted)
    metric.reset()
    assert metric.apply(g) == pytest.approx(g)


def test_where_least_squares_give_up_the_step_is_that_of_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(3)
    rows, errors = rng.standard_normal((ROWS, DIM)), rng.random(ROWS)
    monkeypatch.setattr("goldstein.solvers.quasi_newton.quadratic_weights", lambda *_: None)
    for metric in (FactorMetric(rows), LimitedMetric(rows, 5)):
        s = -metric.apply(rows[0])
        metric.update(s, 2.0 * s, float(2.0 * s @ s), rows @ s)
        assert metric.minimise(errors)[0] == pytest.approx(metric.apply(rows[errors.argmin()]))


@pytest.mark.parametrize("limit", [0, 100], ids=["limited", "dense"])
def test_minimises_a_maximum_of_quadratics(limit: int) -> None:
    rng = np.random.default_rng(2)
    shifts = rng.standard_normal((4, DIM))

    def value(x: np.ndarray) -> float:
        return float(((x - shifts) ** 2).sum(1).max())

    def gradient(x: np.ndarray) -> np.ndarray:
        return 2.0 * (x - shifts[((x - shifts) ** 2).sum(1).argmax()])

    oracle = CountedOracle(as_oracle(value, gradient))
    newton = QuasiNewton(DIM, rng, dense_limit=limit)
    newton.restart(np.full(DIM, 5.0), value(np.full(DIM, 5.0)))
    values = [newton.fx]
    for _ in range(60):
        if not newton.step(oracle):
            break
        values.append(newton.fx)
    assert (np.diff(values) < 0).all()
    # The optimum by another road: the smallest ball around the shifts (dual, brute force).
    weights = rng.dirichlet(np.ones(4) * 0.7, 200_000)
    centres = weights @ shifts
    dual = (weights * ((shifts**2).sum(1))).sum(1) - (centres**2).sum(1)
    assert values[-1] == pytest.approx(dual.max(), rel=1e-2)
    assert values[-1] >= dual.max() - 1e-9


def test_memory_finds_what_is_near() -> None:
    rng = np.random.default_rng(0)
    memory = GradientMemory(3, 10)
    x = np.zeros(3)
    points = []
    for k in range(25):
        points.append(rng.standard_normal(3))
        memory.add(points[-1], points[-1], perturbed=k % 2 == 0)
        x = x + 0.2 * rng.standard_normal(3)
        since = k // 2
        want = [
            i for i in range(k, max(since, k - 9) - 1, -1) if np.linalg.norm(points[i] - x) <= 1.5
        ]
        assert memory.near(x, 1.5, since).tolist() == [i % 10 for i in want]
    memory.drop_unperturbed()
    assert memory.perturbed[memory.near(x, 100.0)].all()


def test_bundle_keeps_exactly_what_stays_in_the_ball() -> None:
    rng = np.random.default_rng(0)
    bundle = PointBundle(3, 50)
    points = rng.standard_normal((30, 3))
    for k, y in enumerate(points):
        bundle.add(y, y + 5.0, perturbed=k % 2 == 0)
    centre = np.zeros(3)
    inside = np.ones(30, dtype=bool)
    for _ in range(6):
        step = 0.3 * rng.standard_normal(3)
        centre = centre + step
        bundle.recentre(centre, float(np.linalg.norm(step)), 1.6)
        inside &= np.linalg.norm(points - centre, axis=1) <= 1.6
        assert np.array_equal(bundle.hull.gradients, points[inside] + 5.0)
    bundle.drop_unperturbed()
    inside[1::2] = False
    assert np.array_equal(bundle.hull.gradients, points[inside] + 5.0)


def test_merged_rows_remember_their_points() -> None:
    rng = np.random.default_rng(0)
    bundle = PointBundle(8, 3)
    points = rng.standard_normal((7, 8))
    for y in points:
        bundle.add(y, y)
        bundle.shortest()
    m = bundle.shortest()
    evidence = bundle.evidence(np.zeros(8))
    assert evidence.weights.sum() == pytest.approx(1.0)
    assert evidence.weights @ evidence.points == pytest.approx(m)
    assert len(evidence.points) > 3


def test_a_full_bundle_of_aggregates_gives_up_points_before_memory() -> None:
    rng = np.random.default_rng(0)
    bundle = PointBundle(40, 6, max_points=20)
    most = 0
    for y in rng.standard_normal((80, 40)):
        bundle.add(y, y + 1.0)
        m = bundle.shortest()
        evidence = bundle.evidence(np.zeros(40))
        # Whatever was given up, the rest still lists points and weights of what it claims.
        assert evidence.weights @ (evidence.points + 1.0) == pytest.approx(m)
        most = max(most, len(evidence.points))
    assert 6 < most <= 20


def cut_run(far: float, calls: int) -> tuple[gs.Result, list[float]]:
    """The distance from a far point: the step is doubled until the calls run out."""
    seen: list[float] = []

    def value(x: np.ndarray) -> float:
        seen.append(float(np.abs(x - far).sum()))
        return seen[-1]

    res = gs.minimize(
        value, [0.0, 0.0], lambda x: np.sign(x - far), eps=0.1, delta=1e-3, rng=0, max_calls=calls
    )
    assert not res.success
    return res, seen


def test_calls_that_run_out_in_a_line_search_lose_nothing() -> None:
    res, seen = cut_run(1e6, 26)  # two of them are kept for the last word
    # What the last word asks for in the ball around x may be a little lower; no step was lost.
    assert res.fun <= min(seen) + 2e-3 < 1e6


@pytest.mark.filterwarnings("ignore::goldstein.PrecisionWarning")
def test_calls_that_run_out_before_the_last_gradient_lose_nothing() -> None:
    """Forty doublings are the most; the last value has not been judged when the gradient is due."""
    res, seen = cut_run(2.0**45, 48)  # four of them are kept for the last word
    assert res.fun == min(seen[:-1]) < seen[0]


# ---------------------------------------------------------------- who makes the first trial


def searcher(**fields: Any) -> SimpleNamespace:
    """What the decision about the first trial looks at, after a steady fall."""
    known = {
        "dim": 10,
        "limited": False,
        "fx": 1.0,
        "best_value": 0.0,
        "trials": 1,
        "looks": 0,
    }
    scores = {"whole_fall": 1.0, "recent_fall": 1.0, "model_misses": 0.4, "plain_misses": 0.4}
    return SimpleNamespace(**known | scores | fields)


def searches(n: SimpleNamespace, count: int, *, model: bool, plain: bool) -> list[bool]:
    """Say of each line search whether the plain step went first; `model`, `plain`: who is right."""
    taken = []
    for _ in range(count):
        n.first = line_search._choose(n)
        taken.append(n.first == line_search._PLAIN)
        n.attempt = 0 if (plain if taken[-1] else model) else 1
        line_search._keep_score(n)
    return taken


def test_whoever_is_right_more_often_makes_the_first_trial() -> None:
    n = searcher()
    assert not any(searches(n, 30, model=True, plain=False))
    later = searches(n, 60, model=False, plain=True)
    assert all(later[-40:])
    # The other one is asked again now and then, so the verdict can change once more.
    assert not any(searches(n, 200, model=True, plain=False)[-20:])


def test_where_both_fail_both_are_tried() -> None:
    taken = searches(searcher(), 100, model=False, plain=False)
    assert 20 < sum(taken) < 80


@pytest.mark.parametrize("fields", [{"dim": 2}, {"limited": True}, {"whole_fall": 1e6}])
def test_the_model_goes_first_where_it_is_complete_limited_or_near_the_end(fields: Any) -> None:
    assert not any(searches(searcher(**fields), 50, model=False, plain=True))


def calls_to_the_bottom(problem: Any) -> int:
    """Calls until f has come down to 1e-4 of the way."""
    goal = 1e-4 * problem.value(problem.x0)
    res = gs.minimize(
        problem,
        problem.x0,
        eps=1e-8,
        delta=1e-8,
        rng=0,
        max_calls=1000,
        callback=lambda intermediate_result: intermediate_result.fun <= goal,
    )
    assert res.fun <= goal
    return res.nfev + res.ngev


def test_a_function_that_looks_smooth_costs_what_bfgs_costs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    problem = gs.problems.get("active_faces", d=50)  # log of 1 + |x_i|, far from its kinks at first
    calls = calls_to_the_bottom(problem)
    monkeypatch.setattr(line_search, "TUNING", TUNING._replace(few_variables=10**6))
    assert calls < 0.75 * calls_to_the_bottom(problem)


def test_a_start_on_a_kink_costs_few_trials() -> None:
    """-g is no direction of descent there; the other half knows what to do."""
    problem = gs.problems.get("nesterov_worst", d=50)
    oracle = CountedOracle(as_oracle(problem))
    search = QuasiNewton(50, np.random.default_rng(0))
    search.restart(np.array(problem.x0), oracle.value(np.array(problem.x0)))
    before = oracle.calls
    assert not search.step(oracle)
    assert oracle.calls - before <= TUNING.no_descent + 1
