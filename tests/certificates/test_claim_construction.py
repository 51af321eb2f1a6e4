"""Claims that are stated where calls run out, and how they are checked in advance."""

from collections import Counter
from typing import Any

import numpy as np

import goldstein as gs
from goldstein.certificates import GoldsteinCertificate
from goldstein.certificates.verifying import Rehearsed
from goldstein.checker.blackbox.perturbed import radius
from goldstein.construction.goldstein_claim import Construction
from goldstein.errors import OutOfCalls, UnresolvedError
from goldstein.oracles import CountedOracle, FunctionOracle, Oracle
from goldstein.oracles.diagnose import resolution_of


class Silent(Oracle):
    """An oracle without a call left."""

    def value(self, x):
        raise OutOfCalls("value")

    def gradient(self, y):
        raise OutOfCalls("gradient")


def test_a_claim_outlives_what_was_forgotten_beside_its_points():
    """The first claim rests on what was told; nearer looks find no call, the next is worse."""
    gradients = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 10.0]])
    points = 0.5 * np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0]])
    built = Construction(Silent(), np.zeros(2), 1.0, points, gradients, seed=0)
    for j, told in enumerate([[1.0, 0.5], [-1.0, 0.5], [0.0, 10.0]]):
        built.tell(j, np.array(told), 0.1)
    claim = built.claim(enough=1e-3)
    assert claim is not None
    assert 0.5 <= claim.eps < 10.0
    assert claim.weights.sum() == 1.0


class Ledge(Oracle):
    """A bowl with its minimum on a steep ledge."""

    steep = 8.0

    def value(self, x):
        return 0.1 * (x[0] - 5.0) ** 2 + 0.1 * x[1] ** 2 + self.steep * max(0.0, -x[1])

    def gradient(self, y):
        return np.array([0.2 * y[0] - 1.0, 0.2 * y[1] - (self.steep if y[1] < 0.0 else 0.0)])


def test_claims_of_short_and_long_gradients_hold_for_every_seed():
    """The weight of a long gradient is rounded: what that leaves is long against the short ones."""
    ledge, x, delta = Ledge(), np.array([5.0, 4.5e-12]), 1e-6
    ways = np.array([[0.002, 0.03], [-0.05, 0.86], [0.0003, -0.001]])
    claims = []
    for seed in range(600):
        points = x + delta * ways * np.random.default_rng(seed).uniform(0.5, 1.0, ways.shape)
        gradients = np.array([ledge.gradient(y) for y in points])
        claims.append(Construction(ledge, x, delta, points, gradients, seed).claim(1e-10))
    claims.sort(key=lambda claim: claim.eps)
    for boldest in claims[:5]:
        assert boldest.eps < 1e-12
        assert all(boldest.verify(ledge, seed=again).ok for again in range(20))


class Edge(Oracle):
    """|x - 1e6|: at this size a perturbation is wide."""

    def value(self, x):
        return float(abs(x[0] - 1e6))

    def gradient(self, y):
        return np.array([1.0 if y[0] >= 1e6 else -1.0])


def test_claims_next_to_a_kink_are_not_left_to_luck():
    """Points within a perturbation of a kink change sides: what is stated holds for every seed."""
    edge, delta = Edge(), 1e-3
    x = np.array([1e6 + 0.5 * delta])
    points = 1e6 + 0.1 * radius(x, delta) * np.array([[-1.0], [1.0]])
    gradients = np.array([[-1.0], [1.0]])
    for seed in range(60):
        known = list(zip(points, gradients))
        try:
            step = resolution_of(CountedOracle(edge), x, delta, seed, known)
        except UnresolvedError:
            continue  # nothing is stated
        built = Construction(edge, x, delta, points, gradients, seed)
        built.place.resolution = step
        claim = built.claim(0.5)
        if claim is not None and claim.eps <= 0.5:
            assert all(claim.verify(edge, seed=again).ok for again in range(10))


def test_checks_in_a_row_ask_about_a_point_once_and_still_see_noise() -> None:
    """What an earlier check was told is served once; who asks twice looks for noise."""
    rng = np.random.default_rng(0)
    noisy = FunctionOracle(lambda x: float(rng.normal()), lambda x: rng.normal(size=2))
    counted = CountedOracle(noisy)
    f, x = Rehearsed(counted), np.ones(2)
    points, rows = np.array([[2.0, 1.0], [1.0, 2.0]]), np.eye(2)
    claim = GoldsteinCertificate(x, 2.0, 1.0, points, rows, np.array([0.4, 0.6]))
    first = f.gradient(x)
    assert not np.array_equal(f.gradient(x), first)
    assert counted.gradients == 2
    f.begin(claim)
    again = f.gradient(x)
    assert counted.gradients == 2
    again[:] = np.nan  # nobody writes into the memory
    f.gradient(x)
    assert counted.gradients == 3
    f.begin(claim)
    assert np.isfinite(f.gradient(x)).all()
    assert (counted.gradients, counted.values) == (3, 0)
    f.begin(claim)  # what the claim says is served, but for its heaviest point
    assert np.array_equal(f.gradient(points[0]), rows[0])
    assert not np.array_equal(f.gradient(points[1]), rows[1])
    assert (counted.gradients, counted.values) == (4, 0)


def test_a_run_inside_bounds_asks_no_question_more_than_twice() -> None:
    """Once for the claim, and once when it is checked; three checks do not make it four."""
    asked: Counter[bytes] = Counter()

    def gradient(x: Any) -> Any:
        asked[x.tobytes()] += 1
        return np.sign(x - [2.0, 0.3])

    res = gs.minimize(
        lambda x: np.abs(x - [2.0, 0.3]).sum(), [0.0, 0.0], gradient, eps=1e-3, delta=1e-3, rng=0,
        bounds=[(0, 1), (0, 1)],
    )  # fmt: skip
    assert res.success
    assert max(asked.values()) <= 2
