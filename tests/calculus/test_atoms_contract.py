"""Every atom in the registry keeps the same contract."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from tests.atoms import ELEMENTWISE, EXAMPLES
from tests.limits import gradient_enclosure, limiting_gradients

from goldstein.apriori.modulus import scalar_of
from goldstein.calculus import Variable
from goldstein.calculus import sum as sum_entries
from goldstein.calculus.atoms.piecewise import PiecewisePolynomial
from goldstein.checker.nodes import Piecewise
from goldstein.errors import InputError, KinkError

names = pytest.mark.parametrize("name", sorted(EXAMPLES))
scalar_names = pytest.mark.parametrize("name", sorted(ELEMENTWISE))


def scalar_function(name: str):
    found = scalar_of(ELEMENTWISE[name](Variable(1)))
    assert found is not None
    return found


def breakpoints(name: str):
    """Where the pieces of an atom meet, and by how much its derivative jumps there."""
    node = next(n for n in EXAMPLES[name](Variable(3)).program().nodes[1:] if n.name != "affine")
    return list(zip(node.breakpoints, node.jumps)) if isinstance(node, Piecewise) else []


@names
def test_gradient_is_the_derivative(name):
    F = EXAMPLES[name](Variable(3))
    rng = np.random.default_rng(1)
    for _ in range(20):
        x = 2.0 * rng.standard_normal(3)
        h = 1e-6
        slopes = [(F.value(x + h * e) - F.value(x - h * e)) / (2 * h) for e in np.eye(3)]
        np.testing.assert_allclose(F.gradient(x), slopes, atol=2e-5)


@names
def test_enclosure_holds_the_gradient_and_is_tight(name):
    F = EXAMPLES[name](Variable(3))
    rng = np.random.default_rng(2)
    for _ in range(10):
        x = 2.0 * rng.standard_normal(3)
        mid, rad = gradient_enclosure(F, x)
        (exact, slack), *_ = limiting_gradients(F, x, [np.ones(3)])
        gap = [abs(Fraction(m) - g) - Fraction(r) - s for m, r, g, s in zip(mid, rad, exact, slack)]
        assert max(gap) <= 0
        assert rad.max() < 1e-13 * (1 + np.abs(mid).max())


@names
def test_lipschitz_bound_on_a_ball_dominates_sampled_gradients(name):
    F = EXAMPLES[name](Variable(3))
    rng = np.random.default_rng(3)
    for radius in (0.1, 1.0, 4.0):
        centre = rng.standard_normal(3)
        bound = F.lipschitz((centre, radius))
        for _ in range(30):
            step = rng.standard_normal(3)
            y = centre + radius * rng.random() * step / np.linalg.norm(step)
            assert np.linalg.norm(F.gradient(y)) <= bound * (1 + 1e-12)
        assert bound <= F.lipschitz() * (1 + 1e-12)


@scalar_names
def test_kinks_are_where_the_derivative_jumps(name):
    F, f = EXAMPLES[name](Variable(3)), ELEMENTWISE[name](Variable(1))
    assert tuple(t for t, jump in breakpoints(name) if jump) == scalar_function(name).kinks
    for t, jump in breakpoints(name):
        if Fraction(float(t)) != t:
            continue
        left, right = (f(np.array([float(t) + s])) for s in (-1e-7, 1e-7))
        assert abs(left - right)[0] <= 1e-5
        at = np.array([float(t), 0.123, -0.321])
        (below, _), (above, _) = limiting_gradients(F, at, -np.eye(3)[:1]) + (
            limiting_gradients(F, at, np.eye(3)[:1])
        )
        assert abs(float(above[0] - below[0] - jump)) <= 1e-12
        if jump:
            with pytest.raises(KinkError):
                F.gradient(at)
        else:
            F.gradient(at)


@scalar_names
def test_stated_constants_are_true_and_sharp(name):
    f = scalar_function(name)
    u = np.linspace(-8.0, 8.0, 40001) + 1e-5 * math.sqrt(2.0)  # off the kinks
    slope = sum_entries(ELEMENTWISE[name](Variable(u.size))).gradient(u)
    top = np.abs(slope).max()
    if math.isfinite(f.lipschitz):
        assert top <= f.lipschitz * (1 + 1e-12)
        assert top >= 0.97 * f.lipschitz
    piece = np.searchsorted([float(t) for t in f.kinks], u)
    same = piece[1:] == piece[:-1]
    bend = (np.abs(np.diff(slope))[same] / np.diff(u)[same]).max()
    assert bend <= f.curvature * (1 + 1e-6) + 1e-9
    if math.isfinite(f.curvature):
        assert bend >= 0.97 * f.curvature - 1e-9
    local = f.sharpest(-8.0, 8.0)
    assert 0.97 * local - 1e-9 <= bend <= local * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize(
    ("name", "curvature", "lipschitz"),
    [
        ("scad", 10 / 27, 1.0),
        ("mcp", 0.5, 1.0),
        ("log_sum", 4.0, 2.0),
        ("logistic", 0.25, 1.0),
        ("pinball", 0.0, 0.7),
    ],
)
def test_table_of_constants(name, curvature, lipschitz):
    f = scalar_function(name)
    assert math.isclose(f.curvature, curvature, rel_tol=1e-12)
    assert math.isclose(f.lipschitz, lipschitz, rel_tol=1e-12)


def test_pieces_that_do_not_join_are_refused():
    with pytest.raises(InputError, match="must have one value there"):
        PiecewisePolynomial("step", [Fraction(1, 3)], [[0], [0, 1]])
    with pytest.raises(InputError, match="ascend"):
        PiecewisePolynomial("fold", [1, 0], [[0], [0], [0]])
