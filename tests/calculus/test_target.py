"""Goldstein targets: the constants of the applications, and that they keep their promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

import goldstein.calculus as gc
from goldstein.apriori.explain import MissingAssumption
from goldstein.apriori.rules import near_from_goldstein
from goldstein.errors import InputError
from goldstein.models import margin_svm, relu_one_layer, relu_two_layer

Z = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])


def test_svm_target_of_the_example():
    fun = margin_svm(Z)
    eps, delta = gc.goldstein_target(fun, eps=0.1, delta=0.1)
    assert eps == 0.05
    assert delta == pytest.approx(0.0150028, abs=1e-7)
    # With a generous eps the pivot radius is what binds.
    _, loose = gc.goldstein_target(fun, eps=10.0, delta=0.1)
    assert loose == pytest.approx(0.0428687, abs=1e-7)


def cases():
    domain = [gc.Block(slice(0, 9), 3.0), gc.Block(slice(9, 12), 2.0)]
    return {
        "svm": (margin_svm(Z, rho=0.5, lam=0.3), None),
        "one layer": (relu_one_layer(Z, [1.0, 0.0], 3, bias=False, ridge=0.1), None),
        "two layers": (
            relu_two_layer(Z, np.array([1, -1]), 3, loss="logistic", bias=False),
            domain,
        ),
        "l1": (gc.norm1(gc.Variable(3)), None),
        "eps-insensitive": (gc.sum(gc.eps_insensitive(Z @ gc.Variable(3), 0.02)), None),
        "smooth": (gc.sum_squares(gc.Variable(3)), None),
    }


@pytest.mark.parametrize("name", cases())
@pytest.mark.parametrize(("eps", "delta"), [(0.1, 0.1), (1e-3, 5e-2), (5.0, 1e-3)])
def test_target_keeps_its_promise(name, eps, delta):
    fun, domain = cases()[name]
    inner, radius = gc.goldstein_target(fun, eps=eps, delta=delta, domain=domain)
    assert 0 < inner <= eps
    assert radius > 0
    full = fun.outer_lipschitz(pivot_radius=delta, domain=domain)
    # Scale the pivot radius down with the reach: the factor between them is fixed.
    shrunk = full.pivot_radius * (radius / full.reach if math.isfinite(full.reach) else 0.0)
    triple = fun.outer_lipschitz(pivot_radius=max(shrunk, 1e-300) * (1 + 1e-12), domain=domain)
    near_eps, near_delta = near_from_goldstein(inner, triple, radius=min(radius, triple.reach))
    assert near_eps <= eps * (1 + 1e-9)
    assert near_delta <= delta * (1 + 1e-9)


def test_one_layer_formula():
    fun = relu_one_layer(Z, [1.0, 0.0], 3, bias=False)
    _, radius = gc.goldstein_target(fun, eps=0.1, delta=0.1)
    factor = math.sqrt(6) * 1.6494724
    assert radius == pytest.approx(min(0.1 / factor, 0.05 / (18 * (1 + factor))), rel=1e-6)


def test_linear_pieces_lose_nothing():
    assert gc.goldstein_target(gc.norm1(gc.Variable(1)), eps=0.1, delta=0.2) == pytest.approx(
        (0.1, 0.2)
    )


def test_strict_limits_stay_strict():
    fun = gc.sum(gc.eps_insensitive(gc.Variable(1), 0.25))
    _, radius = gc.goldstein_target(fun, eps=0.1, delta=3.0)
    assert radius < 0.25


def test_refusals():
    with pytest.raises(MissingAssumption, match="rank"):
        gc.goldstein_target(margin_svm(np.ones((3, 2))), eps=0.1, delta=0.1)
    with pytest.raises(InputError, match="eps"):
        gc.goldstein_target(margin_svm(Z), eps=0.0, delta=0.1)
    with pytest.raises(InputError, match="delta"):
        gc.goldstein_target(margin_svm(Z), eps=0.1, delta=-1.0)
