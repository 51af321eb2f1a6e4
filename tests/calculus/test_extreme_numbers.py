"""Atoms with extreme parameters at extreme points: an answer, or an error in words."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from tests.limits import gradient_enclosure, limiting_gradients

import goldstein as gs
from goldstein.calculus import row_max

Build = Callable[[Any, float], Any]


def each(atom: Build) -> Build:
    return lambda w, p: gs.sum(atom(w, p))


ATOMS: dict[str, Build] = {
    "relu": each(lambda u, p: p * gs.relu(u)),
    "leaky_relu": each(gs.leaky_relu),
    "hinge": each(lambda u, p: gs.hinge(p * u)),
    "pinball": each(gs.pinball),
    "ramp": each(gs.ramp),
    "hard_tanh": each(lambda u, p: gs.hard_tanh(u / p)),
    "soft_threshold": each(gs.soft_threshold),
    "eps_insensitive": each(gs.eps_insensitive),
    "capped_l1": each(gs.capped_l1),
    "scad lam": each(gs.scad),
    "scad a": each(lambda u, p: gs.scad(u, 1.0, p)),
    "mcp lam": each(gs.mcp),
    "mcp gamma": each(lambda u, p: gs.mcp(u, 1.0, p)),
    "log_sum lam": each(gs.log_sum),
    "log_sum eps": each(lambda u, p: gs.log_sum(u, 1.0, p)),
    "huber": each(gs.huber),
    "square": each(lambda u, p: gs.square(p * u)),
    "logistic": each(lambda u, p: gs.logistic(p * u)),
    "pseudo_huber": each(gs.pseudo_huber),
    "sum_squares": lambda w, p: p * gs.sum_squares(w),
    "norm2": lambda w, p: gs.norm2(p * w),
    "norm2 of relu": lambda w, p: p * gs.norm2(gs.relu(w)) + w[0],
    "norm2 of 0": lambda w, p: p * gs.norm2(0.0 * w) + gs.norm1(w),
    "norm2 of squares": lambda w, p: p * gs.norm2(gs.square(w)),
    "max": lambda w, p: gs.max(p * w),
    "row_max": lambda w, p: gs.sum(row_max((p * w).reshape(1, 2))),
    "max_affine": lambda w, p: gs.max_affine([[p, 0.0], [0.0, 1.0]], [0.0, -p], w),
    "gated_relu": lambda w, p: gs.gated_relu(w[0], p * w[1]),
    "softmax": lambda w, p: gs.softmax_cross_entropy((p * w).reshape(1, 2), [1]),
    "relu of relu": each(lambda u, p: gs.relu(p * gs.relu(u))),
    "product": lambda w, p: p * w[0] * w[1] * gs.abs(w[0]),
    "matmul": lambda w, p: (w.reshape(1, 2) @ gs.relu(p * w))[0],
}
PARAMETERS = [5e-324, 1e-310, 1e-200, 1e-30, 0.3, 2.5, 1e30, 1e160, 1e200, 1e308, 1.7e308]
POINTS = list(itertools.product([0.0, 5e-324, -1e-160, -1e155, 1.7e308], [0.0, 1.0]))
atoms = pytest.mark.parametrize("atom", ATOMS)


def built(atom: str) -> list[Any]:
    made = []
    for p in PARAMETERS:
        with suppress(gs.InputError):
            made.append(ATOMS[atom](gs.Variable(2), p))
    assert made
    return made


@atoms
def test_every_question_is_answered_or_refused_in_words(atom: str) -> None:
    for F, x in itertools.product(built(atom), map(np.array, POINTS)):
        F.value(x)
        F.lipschitz((x, 0.5))
        overflows = not np.isfinite(F.evaluation.tape(x)).all()
        try:
            g = F.gradient(x)
            assert overflows or not np.isnan(g).any()
            mid, rad = gradient_enclosure(F, x)
            if np.isfinite(g).all() and np.isfinite(rad).all():
                scale = np.abs(mid).max(initial=1.0)
                assert (np.abs(g - mid) <= rad + 1e-9 * scale).all()
            limiting_gradients(F, x, [[1.0, 0.5], [-1.0, 0.25]])
        except gs.GoldsteinError:
            continue


@atoms
@pytest.mark.parametrize("at", [(0.0, 0.0), (5e-324, -1e30)])
def test_near_certificates_are_found_or_refused_in_words(atom: str, at: tuple[float, ...]) -> None:
    for F in built(atom)[::3]:
        delta = max(1e-3, 1e-6 * abs(at[1]))
        if not F.lipschitz((np.array(at), delta)) < 1e100:
            continue  # squares of gradients must not overflow in the solvers
        with suppress(gs.GoldsteinError):
            found = gs.certify(F, at, delta=delta, stationarity="near", rng=0, max_calls=20)
            assert found.verify(F).ok


def test_a_norm_of_what_stays_rectified_to_zero() -> None:
    w = gs.Variable(2)
    F = gs.norm2(gs.relu(w)) + w[0]
    assert gs.certify(F, [0.0, 0.0], delta=1e-3, stationarity="near", rng=0).eps <= 1.0 + 1e-12


@pytest.mark.parametrize("build", [lambda w: gs.huber(w, 1e200), lambda w: gs.ramp(w, 1e-310)])
def test_parameters_beyond_the_range_are_refused_in_words(build: Any) -> None:
    with pytest.raises(gs.InputError, match="beyond the range of float64"):
        build(gs.Variable(1))


@pytest.mark.parametrize("scale", [1e-310, 5e-324, 1e-200, 1e200, 1e308])
def test_a_norm_keeps_its_slope_where_its_argument_underflows(scale: float) -> None:
    F = gs.norm2(scale * gs.Variable(2))
    g = F.gradient(np.array([3e-20, 4e-20]))
    np.testing.assert_allclose(g, [0.6 * scale, 0.8 * scale], rtol=1e-9, atol=5e-324)
