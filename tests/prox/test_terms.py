"""Proximal maps, subgradients and bounds of the Fenchel gap, against their definitions."""

from __future__ import annotations

import math

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.fenchel import fenchel_gap, singular_upper
from goldstein.prox.term import term_from_record

GROUPS = [[0, 1, 2], [4, 5], [7]]
TERMS = {
    "l1": gs.prox.l1(0.7),
    "weighted l1": gs.prox.l1([0.5, 0.0, 1.0, 2.0, 0.1, 0.3, 0.0, 1.5]),
    "groups": gs.prox.group_l2([0.5, 1.0, 0.0], GROUPS),
    "box": gs.prox.box([-1.0, -math.inf, 0, 0, -1, -1, -1, 2.0], [1, 0.5, math.inf, 1, 1, 1, 1, 2]),
    "l1 in a box": gs.prox.l1(0.7).bounded(
        np.array([-1.0, -math.inf, 0, 0.5, -1, -2, -1, 2.0]),
        np.array([1, 0.5, math.inf, 1, 0, -0.5, 1, 2]),
    ),
    "simplex": gs.prox.simplex(2.0),
    "nuclear": gs.prox.nuclear(0.8, (4, 2)),
    "wide nuclear": gs.prox.nuclear(0.8, (2, 4)),
}
EACH = pytest.mark.parametrize("term", TERMS.values(), ids=TERMS.keys())


def draws(count=40):
    rng = np.random.default_rng(5)
    return [10.0 ** rng.uniform(-1, 1) * rng.standard_normal(8) for _ in range(count)]


def gap(term, x, v):
    return fenchel_gap(term.to_record(), x, v)


@EACH
def test_the_proximal_map_is_the_minimiser(term):
    rng = np.random.default_rng(1)
    for x in draws():
        step = float(rng.uniform(0.1, 2.0))
        z = term.prox(x, step)
        here = term.value(z) + (z - x) @ (z - x) / (2 * step)
        assert math.isfinite(here)
        for scale in (1.0, 1e-3):
            y = term.prox(z + scale * rng.standard_normal(8), 0.0)  # in the domain
            there = term.value(y) + (y - x) @ (y - x) / (2 * step)
            assert here <= there + 1e-9
        # The optimality condition: (x - z) / step is a subgradient at z, up to rounding.
        v = (x - z) / step
        near = term.subgradient(z, v)
        assert np.linalg.norm(near - v) <= 1e-9 * (1 + np.linalg.norm(v))


@EACH
def test_computed_subgradients_have_a_gap_of_rounding_and_are_nearest(term):
    rng = np.random.default_rng(2)
    for x in draws():
        x = term.prox(x, 0.5)
        wish = 2.0 * rng.standard_normal(8)
        v = term.subgradient(x, wish)
        excess, away = gap(term, x, v)
        assert excess <= 1e-12 * (1 + np.abs(x).max())
        assert away <= 1e-12
        for _ in range(5):
            other = term.subgradient(x, wish + rng.standard_normal(8))
            assert np.linalg.norm(v - wish) <= np.linalg.norm(other - wish) + 1e-9


@EACH
def test_the_gap_is_never_understated(term):
    """h(y) >= h(x) + <v, y - x> - gap for all y: the definition, tried on many y."""
    rng = np.random.default_rng(3)
    finite = 0
    for x in draws():
        x = term.prox(x, 0.5)
        v = term.subgradient(x, rng.standard_normal(8))
        # Neither v nor x is what belongs to the other.
        for w in (v, 0.5 * v, v + 0.1 * rng.standard_normal(8), term.subgradient(-x, v)):
            for z in (x, term.prox(x + 1e-3 * rng.standard_normal(8), 0.0)):
                excess, away = gap(term, z, w)
                if excess == math.inf:
                    continue
                finite += 1
                for scale in (1e-2, 1.0, 100.0):
                    y = term.prox(z + scale * rng.standard_normal(8), 0.0)
                    slack = 1e-9 + away * (np.abs(w).max() + 1)
                    assert term.value(y) >= term.value(z) + w @ (y - z) - excess - slack
    assert finite > 40


@EACH
def test_vectors_too_long_and_points_outside_are_refused(term):
    rng = np.random.default_rng(4)
    for x in draws(10):
        x = term.prox(x, 0.5)
        long = 1e3 * rng.standard_normal(8)
        excess, _ = gap(term, x, long)
        assert excess > 1.0  # infinite for norms; for sets the distance to the face
    outside = {
        "box": np.full(8, 3.0),
        "simplex": np.array([2.5, -0.5, 0, 0, 0, 0, 0, 0]),
    }.get(term.name)
    if outside is not None:
        assert gap(term, outside, np.zeros(8))[0] == math.inf


def test_one_unit_in_the_last_place_too_long_is_too_long():
    x = np.array([1.0, 0.0])
    assert gap(gs.prox.l1(0.1), x, np.array([0.1, 0.1])) == (0.0, 0.0)
    assert gap(gs.prox.l1(0.1), x, np.array([0.1, math.nextafter(0.1, 1)]))[0] == math.inf
    groups = gs.prox.group_l2(1.0, [[0, 1]])
    assert gap(groups, x, np.array([1.0, 1e-7]))[0] == math.inf
    assert gap(gs.prox.nuclear(1.0, (2, 1)), x, np.array([1.0, 1e-7]))[0] == math.inf
    assert gap(gs.prox.box(0.0, 1.0), x, np.array([0.0, -1.0])) == (0.0, 0.0)
    assert gap(gs.prox.box(0.0, 1.0), x, np.array([0.0, 1.0]))[0] >= 1.0


def test_a_tiny_entry_costs_what_it_is():
    """x is next to a zero, v belongs to the zero: the gap is weight |x|, no less."""
    tiny = np.array([1.0, 1e-9])
    excess, _ = gap(gs.prox.l1(0.5), tiny, np.array([0.5, 0.0]))
    assert 0.5e-9 <= excess <= 0.5001e-9


def test_singular_values_are_bounded_from_above():
    rng = np.random.default_rng(6)
    for shape in [(3, 5), (40, 7), (30, 30)]:
        U = np.linalg.qr(rng.standard_normal((shape[0], shape[0])))[0]
        W = np.linalg.qr(rng.standard_normal((shape[1], shape[1])))[0]
        s = 10.0 ** rng.uniform(-12, 2, min(shape))
        A = (U[:, : s.size] * s) @ W[: s.size]
        largest, everything = singular_upper(A)
        # The matrix is off by its own rounding, a few units of its size.
        assert s.max() * (1 - 1e-13) <= largest <= s.max() * (1 + 1e-11)
        assert s.sum() * (1 - 1e-13) <= everything <= s.sum() * (1 + 1e-10)


@EACH
def test_records_make_the_same_term(term):
    assert term_from_record(term.to_record()) == term
    assert hash(term_from_record(term.to_record())) == hash(term)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: gs.prox.l1(-1.0), "at least 0"),
        (lambda: gs.prox.l1(math.nan), "weight"),
        (lambda: gs.prox.l1(math.inf), "finite"),
        (lambda: gs.prox.l1("a"), "numbers"),
        (lambda: gs.prox.group_l2(1.0, [[0], [0]]), "overlap"),
        (lambda: gs.prox.group_l2(1.0, [[0], []]), "empty"),
        (lambda: gs.prox.group_l2(1.0, [[0.5]]), "indices"),
        (lambda: gs.prox.group_l2([1.0, 2.0], [[0], [1], [2]]), "one for each"),
        (lambda: gs.prox.box(1.0, 0.0), "above"),
        (lambda: gs.prox.box([0.0, 0.0], [1.0, 1.0, 1.0]), "2 lower and 3 upper"),
        (lambda: gs.prox.simplex(0.0), "positive"),
        (lambda: gs.prox.nuclear(1.0, (2,)), "rows, columns"),
        (lambda: term_from_record({"name": "l0"}), "must be one of"),
        (lambda: term_from_record({"name": "l1", "strength": 1.0}), "wrong parameters"),
    ],
)
def test_bad_parameters_are_named(make, words):
    with pytest.raises((gs.InputError, gs.InputTypeError), match=words):
        make()


def test_the_gap_of_l1_in_a_box_is_that_of_a_fine_grid():
    """h(x) + sup_z (v z - h(z)) - v x in one variable, with bounds on either side of 0."""
    rng = np.random.default_rng(11)
    for _ in range(300):
        low, high = np.sort(rng.uniform(-1, 1, 2))
        weight = float(rng.choice([0.0, rng.uniform(0, 2)]))
        x, v = rng.uniform(low, high), 2.0 * rng.standard_normal()
        x = float(rng.choice([x, low, high, 0.0 if low <= 0 <= high else x]))
        grid = np.concatenate([np.linspace(low, high, 2001), [0.0] if low <= 0 <= high else []])
        truth = weight * abs(x) - v * x + (v * grid - weight * np.abs(grid)).max()
        term = {"name": "l1_box", "weight": weight, "lower": low, "upper": high}
        bound = fenchel_gap(term, np.array([x]), np.array([v]))[0]
        assert truth - 1e-12 <= bound <= truth + 1e-12
    assert fenchel_gap({"name": "l1_box", "weight": 1.0, "lower": 0.0, "upper": math.inf},
                       np.array([1.0]), np.array([1.5]))[0] == math.inf  # fmt: skip
