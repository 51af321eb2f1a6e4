"""Near certificates at pivots on curved kinks, checked by exact difference quotients."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from benchmarks.plain_code import FUNCTIONS, run

import goldstein as gs
from goldstein.construction.near.flats import CurvedKinks
from goldstein.construction.near.kinks import Kinks

#: Functions of the coordinates, for expressions and for Fractions; `top` is the maximum of a list.
Function = Callable[[Any, Callable[[list[Any]], Any]], Any]


def chain(x: Any, top: Any) -> Any:
    pairs = list(zip(list(x)[:-1], list(x)[1:]))
    return sum(abs(b - a**2) + (1 - a) ** 2 for a, b in pairs)


CASES: dict[str, tuple[Function, list[float]]] = {
    "valley": (lambda x, top: abs(x[1] - x[0] ** 2) + (1 - x[0]) ** 2, [-1.2, 1.0]),
    "two kinks": (lambda x, top: 10 * abs(x[1] - x[0] ** 2) + abs(1 - x[0]), [-1.2, 1.0]),
    "chain": (chain, [-1.2, 1.0] * 3),
    "chebyshev": (
        lambda x, top: abs(x[0] - 1) / 4 + abs(x[1] - 2 * x[0] ** 2 + 1),
        [-1.0, 1.0],
    ),
    "circle": (
        lambda x, top: 2 * (x[0] ** 2 + x[1] ** 2 - 1) - x[0] + 2 * abs(x[0] ** 2 + x[1] ** 2 - 1),
        [-1.0, -1.0],
    ),
    "three pieces": (
        lambda x, top: top([5 * x[0] + x[1], x[1] - 5 * x[0], x[0] ** 2 + x[1] ** 2 + 4 * x[1]]),
        [1.0, 1.0],
    ),
    "crescent": (
        lambda x, top: top(
            [
                x[0] ** 2 + (x[1] - 1) ** 2 + x[1] - 1,
                x[1] + 1 - x[0] ** 2 - (x[1] - 1) ** 2,
            ]
        ),
        [-1.5, 2.0],
    ),
    "product": (
        lambda x, top: abs(x[0] * x[1] - x[2]) + (x[0] - 1) ** 2 + (x[1] - 2) ** 2 + x[2] ** 2,
        [0.5, 1.0, 1.0],
    ),
}


def one_sided(
    f: Callable[..., Fraction],
    y: list[Fraction],
    v: list[Fraction],
    step: Fraction = Fraction(1, 2**100),
) -> list[Fraction]:
    """The gradient just beside y along v, up to 1e-25 or so."""
    beside = [a + step * b for a, b in zip(y, v)]
    h = Fraction(1, 2**300)
    there = f(beside)
    return [
        (f([b + (h if i == k else 0) for i, b in enumerate(beside)]) - there) / h
        for k in range(len(y))
    ]


@pytest.mark.parametrize("case", CASES)
def test_near_certificates_are_found_and_true(case: str) -> None:
    function, x0 = CASES[case]
    F = function(gs.Variable(len(x0)), gs.max)
    res = gs.minimize(F, x0, eps=1e-3, delta=1e-3, stationarity="near", rng=0, max_calls=5000)
    assert res.success
    cert = res.certificate
    assert cert.verify(F).ok
    assert cert.eps <= 1e-3
    y = list(cert.exact_pivot)
    shares = [Fraction(a) for a in cert.weights.tolist()]
    total = [Fraction(0)] * len(y)
    # A pivot that is known up to a box: looked at from farther away, where the box is a point.
    step, room = (Fraction(1, 2**100), 1e-12) if cert.radii is None else (Fraction(1, 2**24), 1e-5)
    for share, way in zip(shares, cert.directions / np.abs(cert.directions).max()):
        v = [Fraction(b) for b in way.tolist()]
        g = one_sided(lambda z: function(z, builtins.max), y, v, step)
        total = [t + share * a for t, a in zip(total, g)]
    length = float(sum(t * t for t in total)) ** 0.5 / float(sum(shares))
    assert length <= cert.eps + room
    assert sum((a - Fraction(b)) ** 2 for a, b in zip(y, res.x.tolist())) <= Fraction(1e-3) ** 2


def test_the_function_of_the_readme_with_its_own_spelling() -> None:
    w = gs.Variable(2)
    F = gs.abs(w[1] - w[0] ** 2) + (1 - w[0]) ** 2
    res = gs.minimize(F, [-1.2, 1.0], eps=1e-3, delta=1e-3, stationarity="near", rng=0)
    assert res.success
    assert res.certificate.label == "certified"


def test_pivots_lie_on_the_surfaces_exactly() -> None:
    x, y, z = gs.Variable(3)
    F = gs.abs(y - x**2) + gs.abs(z - y**2) + gs.max([x + 9.0, y * z])
    curved = CurvedKinks(Kinks(F))
    at = np.array([0.7, 0.5, 0.2])
    surfaces = curved.close(at, 1.0)
    assert len(surfaces) == 2
    place = curved.meeting(surfaces, at)
    assert place is not None
    a, b, c = next(curved.exactly(surfaces, place))
    assert b == a**2
    assert c == b**2


def test_a_network_with_two_hidden_layers_gets_a_near_certificate() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((6, 2))
    theta = gs.Variable(10)
    hidden = gs.relu(gs.relu(X @ theta[:4].reshape(2, 2)) @ theta[4:8].reshape(2, 2))
    F = gs.sum_squares(hidden @ theta[8:] - X[:, 0]) + 0.05 * gs.sum_squares(theta)
    res = gs.minimize(
        F, rng.standard_normal(10), eps=1e-3, delta=1e-3, stationarity="near", rng=0, max_calls=3000
    )
    assert res.success
    assert res.certificate.verify(F).ok


def test_a_circle_without_a_rational_point_has_a_pivot_in_a_box_or_beside() -> None:
    w = gs.Variable(2)
    F = abs(w[0] ** 2 + w[1] ** 2 - 2) + 0.1 * w[0]
    res = gs.minimize(F, [1.0, 0.5], eps=1e-3, delta=1e-3, stationarity="near", rng=0)
    assert res.success
    assert res.certificate.label == "certified"
    assert res.certificate.eps <= 1e-3
    assert res.certificate.delta <= 1e-3
    assert res.certificate.verify(F).ok


def test_ties_of_a_median_with_many_entries_are_found() -> None:
    """Four moduli of residuals tie: two neighbours of the middle, and one beyond."""
    res = run("least median")
    assert res.success
    assert res.certificate.kind == "near"
    assert res.certificate.verify(FUNCTIONS["least median"][1]).ok
