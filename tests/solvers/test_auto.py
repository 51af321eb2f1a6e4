"""`auto`: the guarantee holds whatever the fast half does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.functions import norm1

import goldstein as gs
from goldstein.errors import KinkError
from goldstein.oracles import CountedOracle, as_oracle
from goldstein.solvers import Auto, Request
from goldstein.solvers.memory import GradientMemory
from goldstein.solvers.quasi_newton import QuasiNewton

PROBLEMS = [
    ("maxq", 6),
    ("chained_crescent_1", 10),
    ("chained_cb3_2", 8),
    ("active_faces", 12),
    ("brown_2", 6),
]


class Saboteur(QuasiNewton):
    """Proposes directions that a careless caller would regret."""

    def __init__(self, kind: str, *given: Any) -> None:
        super().__init__(*given)
        self.kind = kind

    def follow_metric(self) -> float:
        g = self.g
        self.p, slope = 1e3 * np.cos(np.arange(g.size) + self.fx), -1.0
        if self.kind == "ascent":
            self.p, slope = g, -float(g @ g)  # claims to go down
        if self.kind == "nan":
            self.p = np.full(g.size, np.nan)
        if self.kind == "zero":
            self.p, slope = np.zeros(g.size), 0.0
        return slope

    minimise_model = follow_gradient = follow_metric


class Climber(QuasiNewton):
    """Ends every step at a higher point and calls that progress."""

    def step(self, oracle: CountedOracle) -> bool:
        self.x = self.x + self.rng.standard_normal(self.x.size)
        self.fx = oracle.value(self.x)
        self.length = 1e-9
        self.moved = True
        return True


class SabotagedAuto(Auto):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    def _quasi_newton(
        self, dim: int, rng: np.random.Generator, memory: GradientMemory
    ) -> QuasiNewton:
        if self.kind == "climb":
            return Climber(dim, rng, memory)
        return Saboteur(self.kind, dim, rng, memory)


def solved(name: str, dim: int, method: Any, seed: int = 0) -> gs.Result:
    p = gs.problems.get(name, d=dim)
    res = gs.minimize(p, p.x0, eps=1e-2, delta=1e-2, method=method, rng=seed)
    assert res.success, (name, res.message)
    assert res.certificate.verify(p).ok
    assert res.certificate.eps <= 1e-2
    assert (np.diff(res.history.fun) <= 0).all()
    return res


@pytest.mark.parametrize(("name", "dim"), PROBLEMS)
def test_certifies_without_the_fast_half(name: str, dim: int) -> None:
    solved(name, dim, Auto(newton=False))


@pytest.mark.parametrize("kind", ["ascent", "nan", "zero", "noise", "climb"])
@pytest.mark.parametrize(("name", "dim"), PROBLEMS[:3])
def test_certifies_with_a_sabotaged_fast_half(name: str, dim: int, kind: str) -> None:
    solved(name, dim, SabotagedAuto(kind))


@pytest.mark.parametrize(("name", "dim"), PROBLEMS)
def test_the_fast_half_pays(name: str, dim: int) -> None:
    """Few calls; a fall of the whole would be news."""
    res = solved(name, dim, "auto")
    assert res.nfev + res.ngev <= 700


@pytest.mark.parametrize("name", ["chained_crescent_2", "chained_cb3_1", "brown_2"])
def test_a_thousand_variables(name: str) -> None:
    """Beyond the dense limit: the limited metric, and bundles that survive small moves."""
    p = gs.problems.get(name, d=1000)
    res = gs.minimize(p, p.x0, eps=1e-2, delta=1e-2, rng=0, max_calls=6000)
    assert res.success
    assert res.certificate.verify(p).ok


def test_a_kink_at_an_iterate_is_answered_by_a_step_aside() -> None:
    asked: list[np.ndarray] = []

    def gradient(x: np.ndarray) -> np.ndarray:
        asked.append(x)
        if not x.all():
            raise KinkError(x)
        return np.sign(x)

    oracle = CountedOracle(as_oracle(norm1, gradient))
    memory = GradientMemory(2, 10)
    x = np.array([0.0, 1.0])
    newton = QuasiNewton(2, np.random.default_rng(0), memory)
    newton.restart(x, norm1(x))
    newton.step(oracle)
    point = memory.points[0]
    assert np.array_equal(asked[0], x)
    assert np.array_equal(asked[1], point)
    assert np.array_equal(memory.gradients[0], np.sign(point))  # of that point, not of x
    assert 0 < np.abs(point - x).max() < 1e-9

    res = gs.minimize(norm1, [0.0, 1.0], gradient, eps=1e-3, delta=1e-3, rng=0)
    assert res.success


def test_unperturbed_points_do_not_certify() -> None:
    """At the kink this gradient claims stationarity; nothing near it does."""

    def value(x: np.ndarray) -> float:
        return float(x[0] + 2.0 * max(x[0], 0.0))

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.array([0.0 if x[0] == 0.0 else 1.0 + 2.0 * (x[0] > 0)])

    # The calls run out on the way to minus infinity; what was gained until then is kept.
    with pytest.warns(gs.PrecisionWarning):
        res = gs.minimize(value, [0.0], gradient, eps=0.5, delta=1e-2, rng=0, max_calls=300)
    assert not res.success
    assert res.fun < -1e6


def test_ends_where_float64_does() -> None:
    """A descent test far below the spacing of the values can never be decided."""

    def value(x: np.ndarray) -> float:
        return 1e9 + 1e-9 * float(np.tanh(x[0]))  # the slope is lost in rounding

    def gradient(x: np.ndarray) -> np.ndarray:
        return np.array([1e-6, 0.0])

    with pytest.warns(gs.PrecisionWarning):
        res = gs.minimize(value, [1e-3, 1e-3], gradient, eps=1e-8, delta=1e-8, rng=0)
    assert res.status is gs.Status.STALLED
    assert res.nfev + res.ngev < 20_000


def test_capacities_are_checked() -> None:
    with pytest.raises(gs.InputError, match="capacity"):
        Auto(capacity=2)
    with pytest.raises(gs.InputError, match="memory"):
        Auto(memory=2)


@pytest.mark.parametrize("capacity", [3, 5])
def test_a_small_bundle_still_certifies(capacity: int) -> None:
    """Rows are merged into aggregates that keep their points."""
    solved("maxq", 6, Auto(newton=False, capacity=capacity))


def test_what_was_refuted_is_not_offered_again() -> None:
    p = gs.problems.get("chained_crescent_1", d=6)
    oracle, request = CountedOracle(p), Request(eps=1e-9, delta=1e-2, seed=0)
    solver = Auto()
    state = solver.start(oracle, p.x0, request)
    for _ in range(5):
        solver.step(oracle, state, request)
    assert not state.memory.perturbed[state.memory.near(state.x, 1e9)].all()
    nothing = np.zeros((0, 6))
    state.rejected = (nothing, nothing)
    for _ in range(30):
        solver.step(oracle, state, request)
        assert state.memory.perturbed[state.memory.near(state.x, 1e9)].all()
        assert state.evidence is None or state.evidence.perturbed.all()


@pytest.mark.parametrize("seed", range(4, 9))
def test_a_function_that_explodes_far_away_teaches_nothing_there(seed: int) -> None:
    """TEST29-24 grows like exp(10 |x|): gradients at rejected trials overflow when squared."""
    problem = gs.problems.get("test29_24")
    longest = 0.0

    def gradient(x: np.ndarray) -> np.ndarray:
        nonlocal longest
        g = problem.gradient(x)
        longest = max(longest, float(np.abs(g).max()))
        return g

    # Warnings are errors here: an overflow would end the run.
    res = gs.minimize(problem.value, problem.x0, gradient, eps=1e-2, delta=1e-2, rng=seed)
    assert res.success
    assert longest < 1e100


@pytest.mark.parametrize("seed", range(4))
def test_a_function_without_a_lower_bound_is_called_so(seed: int) -> None:
    """Far down the pieces of the model differ by many powers of ten."""
    problem = gs.problems.get("kornowski_shamir")
    res = gs.minimize(problem, problem.x0, eps=1e-3, delta=1e-3, rng=seed, max_calls=5000)
    assert res.status is gs.Status.UNBOUNDED


@pytest.mark.parametrize("dim", [1, 100, 600], ids=["factored", "dense", "limited"])
def test_changes_of_the_gradient_whose_squares_underflow(dim: int) -> None:
    def value(x: np.ndarray) -> float:
        return float(-5e-149 * x[0] + 1.5e-26 * x[0] ** 2)

    def gradient(x: np.ndarray) -> np.ndarray:
        g = np.zeros(dim)
        g[0] = -5e-149 + 3e-26 * x[0]
        return g

    res = gs.minimize(value, np.zeros(dim), gradient, eps=1e-200, delta=1e-3, rng=0, max_calls=300)
    assert not res.success


@pytest.mark.parametrize("name", ["wong_1", "polak_3", "rosen_suzuki", "davidon_2"])
@pytest.mark.parametrize("seed", [0, 1])
def test_tiny_balls_around_sharp_kinks_survive_verification(name: str, seed: int) -> None:
    """Points of the certificate lie next to kinks; they must not lie on the verifier's hair."""
    problem = gs.problems.get(name)
    res = gs.minimize(problem, problem.x0, eps=1e-6, delta=1e-6, rng=seed)
    assert res.success
    assert res.certificate is not None
    assert res.certificate.verify(problem).ok
