"""Triples of whole expressions: known constants, attacks, proofs and refusals."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator
from tests.atoms import ELEMENTWISE, EXAMPLES
from tests.falsify import falsify
from tests.limits import limiting_gradients
from tests.theorems import nearest_kink_pivot

import goldstein.calculus as gc
from goldstein.apriori.explain import (
    Arrangement,
    MissingAssumption,
    explain,
    outer_lipschitz,
    pivot,
)
from goldstein.apriori.modulus import Block, piece_modulus, scalar_of
from goldstein.apriori.rules import OuterLipschitz
from goldstein.errors import InputError, KinkError, NotCertifiableError
from goldstein.models import margin_svm, relu_one_layer, relu_two_layer

Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])


# --- every atom


def scalar_slopes(name):
    """Vertices of the subdifferential of a scalar atom, exact at its kinks."""
    F = gc.sum(ELEMENTWISE[name](gc.Variable(1)))

    def slopes(z):
        try:
            return [F.gradient(z)]
        except KinkError:
            return [[float(g)] for (g,), _ in limiting_gradients(F, z, [[1.0], [-1.0]])]

    return slopes


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_no_atom_claim_can_be_falsified(name):
    function, slopes = scalar_of(ELEMENTWISE[name](gc.Variable(1))), scalar_slopes(name)
    kinks, (limit, attained) = [float(t) for t in function.kinks], function.pivot_limit
    for radius in (0.05, 0.3, 4.0):
        if radius > limit or (radius == limit and not attained):
            continue
        bend = function.sharpest(-8.0 - radius, 8.0 + radius)  # where centres and their balls lie
        claim = OuterLipschitz(radius, radius, bend)
        snap = lambda x, r=radius: [nearest_kink_pivot(float(x[0]), kinks, r)]  # noqa: E731
        violation = falsify(slopes, claim, snap, kinks=kinks, trials=30, spread=8.0)
        assert violation is None, str(violation)
        if bend > 0.0 and radius == 0.05:
            tight = OuterLipschitz(radius, radius, 0.8 * bend)
            centers = np.linspace(-8, 8, 161)
            assert falsify(slopes, tight, snap, kinks=kinks, centers=centers) is not None


@pytest.mark.parametrize(
    ("name", "limit"), [("eps_insensitive", (0.3, False)), ("capped_l1", (0.4, True))]
)
def test_limits_of_atoms_are_sharp(name, limit):
    function = scalar_of(ELEMENTWISE[name](gc.Variable(1)))
    assert function.pivot_limit == pytest.approx(limit)
    kinks = [float(t) for t in function.kinks]
    radius = function.pivot_limit[0] * (1.02 if function.pivot_limit[1] else 1.0)
    snap = lambda x: [nearest_kink_pivot(float(x[0]), kinks, radius)]  # noqa: E731
    claim = OuterLipschitz(radius, radius, 0.0)
    assert falsify(scalar_slopes(name), claim, snap, kinks=kinks) is not None


@pytest.mark.parametrize("name", ["hard_tanh", "ramp", "soft_threshold", "relu6", "scad", "mcp"])
def test_kinks_with_the_same_slopes_on_both_sides_share_any_ball(name):
    assert scalar_of(ELEMENTWISE[name](gc.Variable(1))).pivot_limit == (math.inf, True)


def test_ties_in_many_rows_have_no_triple_and_the_answer_says_what_to_do():
    fun = EXAMPLES["row_max"](gc.Variable(3))
    proof = explain(fun, pivot_radius=0.05, domain=(np.zeros(3), 2.0))
    assert not proof.ok
    assert "transported certificate" in str(proof)


@pytest.mark.parametrize("name", sorted(set(EXAMPLES) - {"norm2", "max_affine", "row_max"}))
def test_every_atom_has_a_triple_on_a_bounded_domain(name):
    fun = EXAMPLES[name](gc.Variable(3))
    proof = explain(fun, pivot_radius=0.05, domain=(np.zeros(3), 2.0))
    assert proof.ok, str(proof)
    assert proof.triple.pivot_radius <= 0.05
    assert proof.obstacle() is None


# --- the modulus


def numeric_modulus(fun, centre, radius, seed=0):
    """Largest difference quotient of gradients inside one smooth piece, sampled."""
    rng = np.random.default_rng(seed)
    worst = 0.0
    for _ in range(300):
        step = rng.standard_normal(centre.size)
        x = centre + radius * rng.random() * step / np.linalg.norm(step)
        nudge = rng.standard_normal(centre.size) * 1e-6
        try:
            moved = fun.gradient(x + nudge) - fun.gradient(x)
        except NotCertifiableError:
            continue
        quotient = np.linalg.norm(moved) / np.linalg.norm(nudge)
        if quotient < 1e4:  # larger: a kink was crossed
            worst = max(worst, quotient)
    return worst


def networks():
    rng = np.random.default_rng(1)
    X, y = rng.standard_normal((4, 3)), rng.standard_normal(4)
    labels = np.array([1, -1, 1, 1])
    yield relu_one_layer(X, y, 3)
    yield relu_one_layer(X, labels, 2, loss="logistic", ridge=0.3)
    yield relu_two_layer(X, y, 3, ridge=0.1)
    yield relu_two_layer(X, labels, 2, loss="logistic", mean=True)
    yield relu_two_layer(X, np.array([0, 1, 2, 0]), 2, loss="logistic")
    yield relu_two_layer(X, rng.standard_normal((4, 2)), 2, loss="huber")
    w = gc.Variable(4)
    yield gc.sum(gc.square(w[:2]) * gc.relu(w[2:])) + gc.sum(gc.scad(w))


@pytest.mark.parametrize("number", range(7))
def test_modulus_bounds_the_sampled_curvature(number):
    fun = next(itertools.islice(networks(), number, None))
    centre = np.random.default_rng(2).standard_normal(fun.dim) * 0.7
    bound = piece_modulus(fun, (centre, 0.5)).total
    found = numeric_modulus(fun, centre, 0.5)
    assert 0.01 * bound < found <= bound * (1 + 1e-4)


def test_modulus_of_the_one_layer_network_is_attained():
    fun = relu_one_layer([[1.0]], [0.0], 4, output_weights=np.ones(4), bias=False)
    assert piece_modulus(fun).total == pytest.approx(4.0)
    assert numeric_modulus(fun, np.full(4, 2.0), 0.5) == pytest.approx(4.0, rel=0.02)


def test_domains():
    w = gc.Variable(4)
    fun = gc.sum(w[:2] * w[2:])
    assert piece_modulus(fun).total == pytest.approx(1.0)  # bilinear: bounded everywhere
    assert piece_modulus(gc.sum(w * w)).total == pytest.approx(2.0)  # shared variables count twice
    cube = gc.sum(gc.square(w) * w)
    assert math.isinf(piece_modulus(cube).total)
    assert math.isfinite(piece_modulus(cube, gc.Ball(np.zeros(4), 1.0)).total)
    small = piece_modulus(cube, [Block(slice(0, 2), 0.5), Block([2, 3], 0.5)]).total
    assert small < piece_modulus(cube, (np.zeros(4), 1.0)).total
    assert math.isinf(piece_modulus(cube, [Block(slice(0, 2), 0.5)]).total)
    with pytest.raises(InputError, match="disjoint"):
        piece_modulus(cube, [Block(slice(0, 3), 1.0), Block(slice(2, 4), 1.0)])
    with pytest.raises(InputError, match="pair"):
        piece_modulus(cube, (np.zeros(4), 1.0, 2.0))


# --- pivots


def test_pivots_lie_on_every_kink_in_reach():
    rng = np.random.default_rng(3)
    fun = margin_svm(Z)
    for _ in range(200):
        x = rng.uniform(-1, 1, 3)
        triple = fun.outer_lipschitz(pivot_radius=0.3)
        y = fun.pivot(x, pivot_radius=0.3)
        assert np.linalg.norm(y - x) <= 0.3 * (1 + 1e-12)
        for row in Z:
            gaps = [abs(row @ x - level) for level in (0.0, 1.0)]
            if min(gaps) <= triple.reach * np.linalg.norm(row):
                assert min(abs(row @ y), abs(row @ y - 1.0)) < 1e-12
            else:
                assert row @ y == pytest.approx(row @ x, abs=1e-12)


def svm_vertices(w):
    """dF of the ramp SVM on independent rows: the sum rule is exact."""
    parts = []
    for u in Z @ w:
        near = min(abs(u), abs(u - 1.0)) < 1e-11
        parts.append([0.0, -1.0] if near else [-1.0 if 0.0 < u < 1.0 else 0.0])
    return [w + Z.T @ np.array(s) for s in itertools.product(*parts)]


@pytest.mark.parametrize("radius", [0.1, 1.0])
def test_svm_triple_survives_the_attack(radius):
    fun = margin_svm(Z)
    triple = outer_lipschitz(fun, pivot_radius=radius)
    inverse = np.linalg.pinv(Z)
    kinks = [inverse @ np.array(u) for u in itertools.product([0.0, 0.5, 1.0], repeat=2)]
    claim = replace(triple, pivot_radius=radius * (1 + 1e-9))
    attack = {"dim": 3, "kinks": kinks, "trials": 20, "tolerance": 1e-7}
    find = lambda x: pivot(fun, x, pivot_radius=radius)  # noqa: E731
    assert falsify(svm_vertices, claim, find, **attack) is None
    wrong = OuterLipschitz(claim.pivot_radius, triple.reach, 0.9)
    assert falsify(svm_vertices, wrong, find, **attack) is not None


def test_max_of_independent_rows_has_pivots():
    fun = gc.max(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 0.0]]) @ gc.Variable(3))
    y = pivot(fun, np.array([1.0, 0.01, 5.0]), pivot_radius=0.5)
    assert y[1] == pytest.approx(0.0, abs=1e-12)
    assert y[2] == 5.0


def test_smooth_expressions_are_their_own_pivot():
    fun = gc.sum_squares(gc.Variable(2))
    assert outer_lipschitz(fun, pivot_radius=0.1) == OuterLipschitz(0.0, math.inf, 2.0)
    assert pivot(fun, np.array([1.0, 2.0]), pivot_radius=0.1).tolist() == [1.0, 2.0]


def test_constant_arguments_are_no_kinks():
    w = gc.Variable(2)
    fun = gc.sum(gc.abs(np.array([[0.0, 0.0], [1.0, 0.0]]) @ w))
    assert len(Arrangement(fun).components) == 1


# --- the proof tree


def test_explanation_of_the_svm():
    proof = margin_svm(Z).explain()
    text = str(proof)
    assert proof.ok
    assert proof.triple.modulus == 1.0
    for words in ("ramp: kinks at 0, 1, any radius", "1.64947241", "E19", "reach = 0.0428686638"):
        assert words in text


def test_explanation_of_the_two_layer_network():
    fun = relu_two_layer(Z, np.array([1, -1]), 3, loss="logistic", bias=False)
    domain = [Block(slice(0, 9), 3.0), Block(slice(9, 12), 2.0)]
    proof = fun.explain(domain=domain)
    assert proof.triple.modulus == pytest.approx(22.9641016, abs=1e-7)


def test_explanation_of_the_one_layer_network():
    fun = relu_one_layer(Z, [1.0, 0.0], 3, bias=False)
    proof = fun.explain()
    assert proof.triple.modulus == pytest.approx(18.0)
    factor = math.sqrt(6) * 1.649472
    assert proof.triple.reach == pytest.approx(0.1 / factor, rel=1e-6)
    assert "copies = 3" in str(proof)


def test_missing_rank_is_named():
    rng = np.random.default_rng(0)
    proof = margin_svm(rng.standard_normal((9, 3))).explain()
    assert not proof.ok
    assert proof.triple is None
    assert "ramp" in proof.obstacle().claim
    assert "9 x 3 with rank at most 3, but rank 9 is needed" in proof.obstacle().claim
    with pytest.raises(MissingAssumption, match="rank 2 is needed"):
        margin_svm([[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]).outer_lipschitz(pivot_radius=0.1)


def test_missing_domain_is_named():
    fun = relu_two_layer(Z, np.array([1, -1]), 3, loss="logistic", bias=False)
    proof = fun.explain()
    assert "mat_mul: its derivative has no bound here" in proof.obstacle().claim
    assert "domain" in proof.obstacle().claim


def test_curved_kinks_are_named():
    w = gc.Variable(2)
    proof = explain(gc.abs(gc.sum_squares(w) - 1.0))
    assert "not affine" in proof.obstacle().claim
    assert "abs" in proof.obstacle().claim
    assert "grows without bound" in explain(gc.norm2(w)).obstacle().claim


def test_nearly_dependent_rows_are_refused():
    rows = np.array([[1.0, 0.0], [1.0, 2.0**-52]])
    with pytest.raises(MissingAssumption, match="too close to rank 1"):
        Arrangement(gc.sum(gc.abs(rows @ gc.Variable(2))))


def test_matrix_free_operators_are_refused():
    free = gc.linear(aslinearoperator(np.eye(2)), gc.Variable(2))
    for fun in (gc.sum_squares(free), gc.sum(gc.abs(free))):
        proof = explain(fun)
        assert "LinearOperator" in proof.obstacle().claim


def test_sparse_data_gives_the_same_triple():
    dense, thin = margin_svm(Z), margin_svm(sparse.csr_array(Z))
    assert dense.outer_lipschitz(pivot_radius=0.1) == thin.outer_lipschitz(pivot_radius=0.1)
