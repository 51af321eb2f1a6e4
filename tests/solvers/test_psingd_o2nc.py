"""The stochastic solvers inside `minimize`: windows, honesty, replay."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import goldstein as gs
from goldstein.errors import InputError
from goldstein.numerics.streams import stream
from goldstein.oracles import CountedOracle
from goldstein.solvers import O2NC, PSINGD, AdamO2NC, Request

METHODS = ["psingd", "o2nc", "adam-o2nc"]
methods = pytest.mark.parametrize("method", METHODS)


class Recorder(gs.Oracle):
    """A hostile stream: arbitrary gradients, and a note of every point that was asked."""

    has_value = False
    has_gradient = False

    def __init__(self, scale: float, aligned: bool = False) -> None:
        self.scale = scale
        self.aligned = aligned
        self.points: list[np.ndarray] = []

    def value(self, x: np.ndarray) -> float:
        raise AssertionError("no values here")

    def gradient(self, y: np.ndarray) -> np.ndarray:
        raise AssertionError("no full gradients here")

    def sample(self, x: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        self.points.append(x.copy())
        fresh = np.ones(x.size) if self.aligned else rng.standard_normal(x.size)
        return self.scale * fresh


def walk(
    solver, scale: float, dim: int, delta: float, seed: int, steps: int, aligned: bool = False
):
    """Run the bare solver and return its state, query points and iterates."""
    recorder = Recorder(scale, aligned)
    oracle = CountedOracle(recorder)
    request = Request(eps=0.5, delta=delta, seed=seed)
    state = solver.start(oracle, np.zeros(dim), request)
    before = len(recorder.points)
    iterates = [state.iterate.copy()]
    for _ in range(min(steps, state.stop)):
        solver.step(oracle, state, request)
        iterates.append(state.iterate.copy())
    return state, recorder.points[before:], iterates


@settings(max_examples=30, deadline=None)
@given(
    dim=st.integers(1, 6),
    scale=st.sampled_from([1e-3, 1.0, 1e3]),
    radius=st.floats(0.01, 10.0),
    beta=st.floats(0.0, 0.95),
    seed=st.integers(0, 10**6),
    aligned=st.booleans(),
)
def test_psingd_windows_lie_in_the_ball(dim, scale, radius, beta, seed, aligned) -> None:
    """The K query points after x lie within K/p + zeta of x, whatever the gradients are."""
    solver = PSINGD(steps=200, radius=radius, averaging=beta)
    state, queries, iterates = walk(solver, scale, dim, 0.1, seed, 130, aligned)
    window = state.schedule.window
    for t in range(0, len(queries) - window, max(1, window // 3)):
        for y in queries[t : t + window]:
            assert np.linalg.norm(y - iterates[t]) <= state.schedule.radius * (1 + 1e-12)


@settings(max_examples=20, deadline=None)
@given(
    lipschitz=st.floats(0.5, 3.0), ratio=st.floats(0.8, 1.0), delta=st.floats(0.01, 1.0),
    seed=st.integers(0, 10**6),
)  # fmt: skip
def test_psingd_theory_windows_lie_in_the_delta_ball(lipschitz, ratio, delta, seed) -> None:
    solver = PSINGD(schedule="theory", lipschitz=lipschitz, gap=1.0)
    recorder = Recorder(lipschitz)
    oracle = CountedOracle(recorder)
    request = Request(eps=ratio * lipschitz, delta=delta, seed=seed)
    state = solver.start(oracle, np.zeros(3), request)
    plan, start, iterates = state.schedule, len(recorder.points), [state.iterate.copy()]
    for _ in range(plan.window + 40):
        solver.step(oracle, state, request)
        iterates.append(state.iterate.copy())
    queries = recorder.points[start:]
    for t in (0, 17, 39):
        for y in queries[t : t + plan.window]:
            assert np.linalg.norm(y - iterates[t]) <= delta


@settings(max_examples=30, deadline=None)
@given(
    dim=st.integers(1, 6), scale=st.sampled_from([1e-3, 1.0, 1e3]), radius=st.floats(0.01, 10.0),
    window=st.integers(1, 30), seed=st.integers(0, 10**6), aligned=st.booleans(),
)  # fmt: skip
def test_o2nc_windows_lie_in_the_ball_of_their_mean(
    dim, scale, radius, window, seed, aligned
) -> None:
    solver = O2NC(steps=200, radius=radius, window=window)
    state, queries, _ = walk(solver, scale, dim, 0.1, seed, 120, aligned)
    for first in range(0, len(queries) - window, window):
        points = np.array(queries[first : first + window])
        away = np.linalg.norm(points - points.mean(axis=0), axis=1)
        assert away.max() <= state.schedule.radius * (1 + 1e-12)


def test_o2nc_returns_the_mean_of_its_last_window() -> None:
    solver = O2NC(steps=60, radius=1.0, window=20)
    state, queries, _ = walk(solver, 1.0, 3, 0.1, 0, 60)
    np.testing.assert_allclose(state.x, np.mean(queries[40:60], axis=0), atol=1e-14)


def test_psingd_theory_computes_nothing_beyond_its_output() -> None:
    """The index i is drawn first and the run ends at x_max(1, i - K)."""
    solver = PSINGD(schedule="theory", lipschitz=1.0, gap=1e-3)
    request = Request(eps=1.0, delta=10.0, seed=0)
    stops, expected = [], []
    for seed in range(40):
        request = Request(eps=1.0, delta=10.0, seed=seed)
        oracle = CountedOracle(Recorder(1.0))
        state = solver.start(oracle, np.zeros(2), request)
        index = int(stream(seed, 0, "output").integers(1, state.schedule.steps + 1))
        stops.append(state.stop)
        expected.append(max(1, index - state.schedule.window) - 1)
    assert stops == expected
    assert len(set(stops)) > 5
    while state.status is None:
        solver.step(oracle, state, request)
    # One gradient at the start, and none for the step whose average nobody reads.
    assert oracle.gradients <= max(1, state.stop)


def test_psingd_needs_no_run_when_eps_exceeds_every_gradient() -> None:
    f = gs.FiniteSum(lambda x, i: np.sign(x), n=4, batch_size=2)
    solver = PSINGD(schedule="theory", lipschitz=1.0, gap=1.0)
    res = gs.minimize(f, [3.0], eps=1.5, delta=0.1, method=solver, rng=0)
    assert res.success
    np.testing.assert_array_equal(res.x, [3.0])


def medians(n: int = 30, d: int = 3, batch: int = 5, values: bool = True):
    rng = np.random.default_rng(7)
    targets = rng.normal(size=(n, d))
    value_i = (lambda x, i: np.abs(x - targets[i]).sum(axis=1)) if values else None
    f = gs.FiniteSum(
        lambda x, i: np.sign(x - targets[i]), n, batch, value_i=value_i, vectorized=True
    )
    return f, targets


@methods
def test_finite_sum_gets_a_full_data_certificate(method: str) -> None:
    f, targets = medians()
    res = gs.minimize(f, np.full(3, 2.0), eps=0.2, delta=0.2, method=method, rng=1)
    assert res.success, res
    assert res.certificate.label == "conditional"
    assert res.certificate.eps <= 0.2
    assert res.certificate.verify(f).ok
    assert np.abs(res.x - np.median(targets, axis=0)).max() < 0.5
    assert res.nfev + res.ngev <= 50_300


@methods
def test_values_are_not_needed(method: str) -> None:
    f, _ = medians(values=False)
    res = gs.minimize(f, np.full(3, 2.0), eps=0.2, delta=0.2, method=method, rng=1)
    assert res.success
    assert np.isnan(res.fun)
    assert res.nfev == 0


@methods
def test_a_stream_is_estimated_and_never_certified(method: str) -> None:
    def gradient(x, rng):
        return np.sign(x - rng.normal(size=x.size))

    res = gs.minimize(
        gradient, [3.0, -2.0], eps=0.1, delta=0.1, method=method, rng=0, max_calls=4000
    )
    assert res.status is gs.Status.ESTIMATED
    assert not res.success
    assert res.certificate is None
    assert np.abs(res.x).max() < 0.5
    assert res.ngev <= 4000


@methods
def test_value_and_noisy_gradient_side_by_side(method: str) -> None:
    def gradient(x, rng):
        return np.sign(x) + 0.1 * rng.normal(size=x.size)

    res = gs.minimize(
        lambda x: float(np.abs(x).sum()), [3.0, -2.0], gradient,
        eps=0.1, delta=0.1, method=method, rng=0, max_calls=3000,
    )  # fmt: skip
    assert res.fun == pytest.approx(np.abs(res.x).sum())
    assert res.fun < 0.5


@methods
def test_ordinary_functions_work_too(method: str) -> None:
    res = gs.minimize(
        lambda x: abs(x[0]) + 2 * abs(x[1]), [3.0, -1.0],
        lambda x: np.array([np.sign(x[0]), 2 * np.sign(x[1])]),
        eps=1e-2, delta=1e-2, method=method, rng=0,
    )  # fmt: skip
    assert res.success
    assert res.fun < 0.05


@methods
def test_same_seed_same_result_and_budget_is_kept(method: str) -> None:
    f, _ = medians()
    runs = [
        gs.minimize(f, np.ones(3), eps=1e-6, delta=1e-6, method=method, rng=seed, max_calls=900)
        for seed in (3, 3, 4)
    ]
    np.testing.assert_array_equal(runs[0].x, runs[1].x)
    assert not np.array_equal(runs[0].x, runs[2].x)
    for run in runs:
        assert run.nfev + run.ngev <= 900
        assert not run.success
        assert run.certificate is not None
        assert run.certificate.eps > 1e-6


@methods
def test_checkpoint_resumes_to_the_same_point(method: str, tmp_path) -> None:
    f, _ = medians()
    settings = {"eps": 0.2, "delta": 0.2, "method": method, "rng": 5}
    straight = gs.minimize(f, np.full(3, 2.0), **settings)
    journal = tmp_path / "journal"
    asked = 0

    def dying(x, i):
        nonlocal asked
        asked += 1
        if asked > 200:
            raise KeyboardInterrupt
        return f._grad_i(x, i)

    mortal = gs.FiniteSum(dying, f.n, f.batch_size, value_i=f._value_i, vectorized=True)
    with pytest.raises(KeyboardInterrupt):
        gs.minimize(mortal, np.full(3, 2.0), checkpoint=journal, **settings)
    resumed = gs.minimize(f, np.full(3, 2.0), checkpoint=journal, **settings)
    np.testing.assert_array_equal(resumed.x, straight.x)


def test_the_parameter_free_learner_runs_with_no_constant_at_all() -> None:
    f, _ = medians()
    res = gs.minimize(
        f, np.full(3, 0.5), eps=0.3, delta=0.5, rng=0, max_calls=4000,
        method=O2NC(schedule="parameter-free"),
    )  # fmt: skip
    assert res.success, res


def test_the_optimal_rate_schedule_reaches_its_promise() -> None:
    f, _ = medians()
    solver = O2NC(schedule="optimal", lipschitz=np.sqrt(3.0), noise=np.sqrt(3.0), gap=3.0)
    res = gs.minimize(
        f, np.full(3, 0.5), eps=0.5, delta=0.5, rng=2, max_calls=20_000, method=solver
    )
    assert res.success, res


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: PSINGD(schedule="theory"), "gap"),
        (lambda: PSINGD(schedule="best"), "schedule"),
        (lambda: PSINGD(steps=0), "steps"),
        (lambda: O2NC(schedule="optimal"), "gap"),
        (lambda: O2NC(schedule="x"), "schedule"),
        (lambda: O2NC(radius=-1.0), "radius"),
        (lambda: O2NC(window=0), "window"),
    ],
)
def test_bad_options_are_named(build, word: str) -> None:
    with pytest.raises(gs.InputError, match=word):
        build()


def test_theory_without_a_lipschitz_constant_says_so() -> None:
    f, _ = medians()
    with pytest.raises(gs.InputError, match="lipschitz"):
        gs.minimize(
            f, np.ones(3), eps=0.1, delta=0.1, method=PSINGD(schedule="theory", gap=1.0), rng=0
        )


@settings(max_examples=20, deadline=None)
@given(
    dim=st.integers(1, 6),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
    averaging=st.sampled_from([0.0, 0.5, 0.9]),
    seed=st.integers(0, 1000),
    aligned=st.booleans(),
)
def test_adam_o2nc_windows_lie_in_the_box(dim, scale, averaging, seed, aligned) -> None:
    """In the sup norm, around the iterate; the ball around the box is what is reported."""
    solver = AdamO2NC(steps=120, radius=0.5, betas=(averaging, averaging))
    state, queries, iterates = walk(solver, scale, dim, 0.1, seed, 120, aligned)
    plan = state.schedule
    room = plan.step_radius * 1e-5 * len(queries)  # the jitter
    for t in range(plan.window, len(queries)):
        window = np.array(queries[t - plan.window + 1 : t + 1])
        assert np.abs(window - iterates[t + 1]).max() <= plan.radius + room
    assert plan.radius * np.sqrt(dim) == pytest.approx(0.5)


def test_adam_o2nc_theory_reaches_its_promise() -> None:
    """sum |x_i| from (0.2, 0.1): scale 2, gap 0.3; the box of the output must hold a kink."""
    solver = AdamO2NC(schedule="theory", scale=2.0, noise=0.0, gap=0.3)
    res = gs.minimize(
        lambda x, rng: np.sign(x), [0.2, 0.1], eps=1.0, delta=0.5, method=solver, rng=2
    )
    assert res.status.name == "ESTIMATED"
    assert np.abs(res.x).max() <= 0.5
    with pytest.raises(InputError, match="scale"):
        AdamO2NC(schedule="theory")
    with pytest.raises(InputError, match="schedule"):
        AdamO2NC(schedule="hope")
    with pytest.raises(InputError, match="averaging"):
        AdamO2NC(betas=(1.0, 1.0))


def test_adam_o2nc_does_not_mind_uneven_scales() -> None:
    """A sum over data whose coordinates differ by 1e4 in scale: per-coordinate steps win."""
    rng = np.random.default_rng(0)
    widths = np.array([1e-2, 1.0, 1e2])
    rows = rng.normal(size=(60, 3)) * widths
    targets = rows @ (np.array([1.0, -2.0, 3.0]) / widths)

    def grad_i(x, i):
        return np.sign(rows[i] @ x - targets[i]) * rows[i]

    def loss(x):
        return np.abs(rows @ x - targets).mean()

    found = {}
    for method in ("o2nc", "adam-o2nc"):
        f = gs.FiniteSum(grad_i, n=60, batch_size=8)
        options = {"steps": 4000, "radius": 100.0}
        res = gs.minimize(f, np.zeros(3), eps=1e-9, delta=1e-6, method=method, rng=0,
                          options=options, max_calls=6000)  # fmt: skip
        found[method] = loss(res.x)
    assert found["adam-o2nc"] < 0.5 * found["o2nc"]
