"""The counterexample search finds what is false and leaves alone what is true."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from tests.falsify import (
    distance_to_hull,
    falsify,
    falsify_modulus,
    sampled_subdifferential,
)
from tests.functions import gated_vertices
from tests.theorems import gated_pivot, nearest_kink_pivot

import goldstein as gs
from goldstein.apriori.rules import OuterLipschitz, rescale
from goldstein.calculus.atoms.piecewise import Elementwise, PiecewisePolynomial
from goldstein.checker import nodes
from goldstein.errors import InputError, KinkError


def margin_slopes(z, rho=1.0):
    """Slopes of min(1, max(0, 1 - u/rho))."""
    u = float(z[0])
    if u in (0.0, rho):
        return [[0.0], [-1.0 / rho]]
    return [[-1.0 / rho if 0.0 < u < rho else 0.0]]


def huber_slope(scale):
    """Derivative of Huber(scale * x)."""
    return lambda z: [[scale * np.clip(scale * z[0], -1.0, 1.0)]]


def test_finds_the_false_rescaling_rule():
    """E1: the printed modulus beta L1 + kappa L2 = 10 fails for every pivot; 100 holds."""
    printed = OuterLipschitz(0.05, 0.01, 10.0)
    violation = falsify(huber_slope(10.0), printed, centers=[0.0], trials=0)
    assert violation is not None
    assert violation.found > violation.allowed
    sound = rescale(OuterLipschitz(0.05, 0.01, 0.0), 10.0, 1.0, 1.0)
    assert falsify(huber_slope(10.0), sound, lambda x: x) is None


@pytest.mark.parametrize("radius", [0.1, 0.5])
def test_finds_the_false_margin_pivot(radius):
    """E2: the printed pivot fails for delta < rho/2 (distance) and at delta = rho/2 (inclusion)."""

    def printed(x):
        u = float(x[0])
        if abs(u) <= 0.5:
            return [0.0]
        return [1.0] if abs(u - 1.0) < 0.5 else [u]

    claim = OuterLipschitz(radius, radius, 0.0)
    violation = falsify(margin_slopes, claim, printed, kinks=[0.0, 1.0])
    assert violation is not None
    assert (violation.element is None) == (radius < 0.5)
    sound = lambda x: [nearest_kink_pivot(float(x[0]), [0.0, 1.0], radius)]  # noqa: E731
    assert falsify(margin_slopes, claim, sound, kinks=[0.0, 1.0]) is None


def test_finds_the_false_gated_pivot():
    """E3: |x| where |x_2| is meant."""

    def printed(x):
        return (x[0], 0.0) if np.linalg.norm(x) <= 0.1 else x

    claim = OuterLipschitz(0.1, 0.1, 1.0)
    violation = falsify(gated_vertices, claim, printed, dim=2, centers=[[5.0, 0.05]], trials=0)
    assert violation is not None
    assert violation.found > 4.9
    sound = lambda x: gated_pivot((float(x[0]), float(x[1])), 0.1)  # noqa: E731
    kinks = [[5.0, 0.0], [0.0, 0.0], [-1.0, 0.0]]
    assert falsify(gated_vertices, claim, sound, dim=2, kinks=kinks) is None


def one_layer_slopes(z):
    """Vertices of dF for F(w) = (sum_j relu(w_j))^2 / 2: one datum x = 1, squared loss."""
    masks = [[0.0, 1.0] if w == 0 else [float(w > 0)] for w in z]
    slope = np.maximum(z, 0.0).sum()
    return [slope * np.array(mask) for mask in itertools.product(*masks)]


def test_finds_the_false_one_layer_modulus():
    """E25: m = 4, n = d = 1: printed beta sqrt(mn)|X|^2 = 2, sound beta m |X|^2 = 4."""

    def pivot(x):
        return np.where(np.abs(x) <= 0.05, 0.0, x)

    centers = [np.full(4, 0.05)]
    printed = OuterLipschitz(0.1, 0.05, 2.0)
    violation = falsify(one_layer_slopes, printed, pivot, dim=4, centers=centers, trials=0)
    assert violation is not None
    at_center = falsify_modulus(one_layer_slopes, np.zeros(4), centers, 2.0)
    assert at_center.found == pytest.approx(0.4)
    assert at_center.allowed == pytest.approx(0.2)
    sound = OuterLipschitz(np.nextafter(0.1, 1.0), 0.05, 4.0)
    assert falsify(one_layer_slopes, sound, pivot, dim=4, centers=centers, trials=30) is None


def test_a_pivot_search_accepts_a_claim_that_some_pivot_satisfies():
    assert falsify(margin_slopes, OuterLipschitz(0.25, 0.25, 0.0), kinks=[0.0, 1.0]) is None
    assert falsify(lambda z: [[1.0]], OuterLipschitz(0.0, float("inf"), 0.0)) is None


def test_points_outside_the_closed_ball_are_no_violation():
    """The kink sits a hair outside the ball: the slope there must not count."""
    just = np.nextafter(0.1, 1.0)
    claim = OuterLipschitz(0.0, 0.1, 0.0)
    slopes = lambda z: [[0.0], [1.0]] if z[0] == 0 else [[float(z[0] > 0)]]  # noqa: E731
    assert falsify(slopes, claim, lambda x: x, centers=[just], kinks=[], trials=0) is None
    assert falsify(slopes, claim, lambda x: x, centers=[0.1], kinks=[0.0], trials=0) is not None


def test_sampled_gradients_refute_a_wrong_modulus_of_a_black_box():
    def gradient(y):
        return np.sign(y) + 3.0 * y

    sampled = sampled_subdifferential(gradient, samples=24)

    def pivot(x):
        return np.where(np.abs(x) <= 0.1, 0.0, x)

    honest = OuterLipschitz(0.15, 0.1, 3.0)
    assert falsify(sampled, honest, pivot, dim=2, trials=15, tolerance=1e-5) is None
    wrong = OuterLipschitz(0.15, 0.1, 2.0)
    assert falsify(sampled, wrong, pivot, dim=2, trials=15, tolerance=1e-5) is not None


def test_sampling_on_nothing_but_kinks_is_refused():
    def gradient(y):
        raise KinkError("everywhere", y)

    with pytest.raises(InputError, match="kinks"):
        sampled_subdifferential(gradient)(np.zeros(2))


def test_distance_to_hull_agrees_with_geometry():
    square = [[0.0, 0.0], [1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    assert distance_to_hull([0.5, 0.5], square) == pytest.approx(0.0, abs=1e-12)
    assert distance_to_hull([2.0, 2.0], square) == pytest.approx(2**0.5)
    assert distance_to_hull([3.0], [[1.0], [2.0]]) == 1.0


def _slopes_of(node: nodes.Piecewise, z: np.ndarray) -> list[list[float]]:
    """The derivatives on both sides of a number, exactly."""
    t = Fraction(float(z[0]))
    sides = {sum(s < t for s in node.breakpoints), sum(s <= t for s in node.breakpoints)}
    return [[float(sum(c * t**k for k, c in enumerate(node.slopes[i])))] for i in sides]


def _random_atom(rng: np.random.Generator) -> PiecewisePolynomial:
    """A continuous function of up to four kinks, linear or quadratic between them."""
    levels = np.unique(rng.integers(-8, 9, rng.integers(1, 5))) / 4.0
    value, at, pieces = Fraction(0), Fraction(float(levels[0])), []
    for t in [*levels.tolist(), math.inf]:
        slope, bend = Fraction(int(rng.integers(-2, 3))), Fraction(int(rng.integers(-1, 2)), 4)
        # value + slope (u - at) + bend (u - at)^2
        pieces.append([value - slope * at + bend * at**2, slope - 2 * bend * at, bend])
        if t < math.inf:
            # The next piece begins where this one ends.
            at, value = Fraction(t), sum(c * Fraction(t) ** k for k, c in enumerate(pieces[-1]))
    return PiecewisePolynomial("random", levels.tolist(), pieces)


DEAD_ZONE = PiecewisePolynomial("dead_zone", [-1, 1], [[-1, -1], [0], [-1, 1]])


@pytest.mark.parametrize("seed", range(8))
def test_triples_of_atoms_follow_from_their_breakpoints(seed: int) -> None:
    """Among them the one of CONTRIBUTING, which has two kinks and says nothing but its pieces."""
    rng = np.random.default_rng(seed)
    atom = DEAD_ZONE if seed == 0 else _random_atom(rng)
    F = gs.sum(Elementwise(atom, gs.Variable(1)))
    node = nodes.Piecewise((0,), (1,), 1, atom.breakpoints, atom.pieces)
    kinks = [float(t) for t in atom.breakpoints]
    for radius in (0.25, 1.0, 3.0):
        claim = F.outer_lipschitz(pivot_radius=radius)

        def pivot(x: np.ndarray, radius: float = radius) -> list[float]:
            y = float(F.pivot(x, pivot_radius=radius)[0])  # rounded, and meant to be on a kink
            return [next((t for t in kinks if abs(t - y) < 1e-12), y)]

        found = falsify(
            lambda z: _slopes_of(node, z), claim, pivot, kinks=kinks, trials=10, rng=seed
        )
        assert found is None, f"{atom}: {claim}: {found}"
    assert seed or F.outer_lipschitz(pivot_radius=3.0).reach < 1.0
