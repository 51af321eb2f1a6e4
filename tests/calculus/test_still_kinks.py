"""A kink whose argument does not change near a point is none there; every other one counts."""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests.limits import gradient_enclosure, limiting_gradients

import goldstein as gs
from goldstein.calculus import row_max

Exact = Callable[[list[Fraction]], list[Fraction]]


def test_a_rectified_rectifier_is_flat_on_the_left_and_kinked_at_zero() -> None:
    F = gs.sum(gs.relu(gs.relu(gs.Variable(1))))
    assert F.gradient(np.array([-1.0])) == [0.0]
    assert F.gradient(np.array([1.0])) == [1.0]
    with pytest.raises(gs.KinkError):
        F.gradient(np.array([0.0]))
    limits = limiting_gradients(F, [0.0], [[1.0], [-1.0]])
    assert [g for g, _ in limits] == [[1], [0]]
    assert limiting_gradients(F, [-1.0], [[1.0]])[0][0] == [0]


@pytest.mark.parametrize(
    ("build", "at", "slope"),
    [
        (lambda w: gs.norm2(0.0 * w), [1.0, 2.0], [0.0, 0.0]),
        (lambda w: gs.norm2(w - w), [1.0, 2.0], [0.0, 0.0]),
        (lambda w: gs.norm2(0.0 * w) + gs.norm1(w), [1.0, -2.0], [1.0, -1.0]),
        (lambda w: gs.norm2(gs.relu(w)) + w[0], [-1.0, -2.0], [1.0, 0.0]),
        (lambda w: gs.norm1(gs.relu(w)), [-1.0, 2.0], [0.0, 1.0]),
        (lambda w: gs.max(0.0 * w), [1.0, 2.0], [0.0, 0.0]),
        (lambda w: gs.max(gs.relu(w)) + w[1], [-1.0, -2.0], [0.0, 1.0]),
        (lambda w: gs.sum(row_max(gs.relu(w).reshape(1, 2))), [-1.0, -2.0], [0.0, 0.0]),
        (lambda w: gs.sum(gs.abs(w * gs.relu(w - 3.0))), [1.0, 2.0], [0.0, 0.0]),
        (lambda w: gs.sum(gs.relu(gs.abs(w) - w)), [1.0, -2.0], [0.0, -2.0]),
        (lambda w: gs.sum(gs.hinge(gs.hard_tanh(w))), [5.0, -5.0], [0.0, 0.0]),
        (lambda w: gs.abs(gs.relu(w) @ w), [-1.0, -2.0], [0.0, 0.0]),
        (lambda w: gs.sum(gs.log_sum(gs.relu(w))), [-1.0, -2.0], [0.0, 0.0]),
        (lambda w: gs.sum(gs.relu(gs.squared_hinge(gs.relu6(w) - 5.0))), [9.0, 8.0], [0.0, 0.0]),
    ],
)
def test_known_slopes_of_parts_that_stay(build: Any, at: list[float], slope: list[float]) -> None:
    F = build(gs.Variable(2))
    np.testing.assert_array_equal(F.gradient(np.array(at)), slope)
    mid, rad = gradient_enclosure(F, np.array(at))
    assert (np.abs(mid - slope) <= rad + 1e-300).all()
    ((exact, error),) = limiting_gradients(F, at, [[1.0, 0.5]])
    assert all(abs(g - Fraction(s)) <= e for g, e, s in zip(exact, error, slope))


@pytest.mark.parametrize("seed", range(5))
def test_networks_without_biases_have_gradients_at_random_points(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, 3))
    theta = gs.Variable(9 + 9 + 3)
    first = gs.relu(X @ theta[:9].reshape(3, 3))
    second = gs.relu(first @ theta[9:18].reshape(3, 3))
    F = gs.sum_squares(second @ theta[18:] - X[:, 0])
    dead = 0
    for _ in range(5):
        x = rng.standard_normal(21)
        dead += (np.maximum(X @ x[:9].reshape(3, 3), 0.0) == 0.0).all(axis=1).any()
        g, v = F.gradient(x), rng.standard_normal(21)
        quotient = (F.value(x + 1e-7 * v) - F.value(x - 1e-7 * v)) / 2e-7
        assert g @ v == pytest.approx(quotient, rel=1e-5, abs=1e-5)
        mid, rad = gradient_enclosure(F, x)
        assert (np.abs(g - mid) <= rad + 1e-9 * np.abs(mid).max()).all()
    assert dead  # a sample that no neuron of the first layer sees


# --- random compositions against exact difference quotients --------------------------------------


def piecewise(breaks: list[int], pieces: list[list[Any]]) -> Callable[[Fraction], Fraction]:
    def apply(u: Fraction) -> Fraction:
        total = Fraction(0)
        for a in reversed(pieces[sum(u > t for t in breaks)]):
            total = total * u + a
        return total

    return apply


HALF = Fraction(1, 2)
ATOMS: list[tuple[Callable[[Any], Any], Callable[[Fraction], Fraction]]] = [
    (gs.relu, piecewise([0], [[0], [0, 1]])),
    (gs.abs, piecewise([0], [[0, -1], [0, 1]])),
    (gs.hard_tanh, piecewise([-1, 1], [[-1], [0, 1], [1]])),
    (gs.hinge, piecewise([1], [[1, -1], [0]])),
    (lambda u: gs.capped_l1(u, 1), piecewise([-1, 0, 1], [[1], [0, -1], [0, 1], [1]])),
    (lambda u: gs.soft_threshold(u, 1), piecewise([-1, 1], [[1, 1], [0], [-1, 1]])),
    (gs.square, piecewise([], [[0, 0, 1]])),
    (gs.squared_hinge, piecewise([1], [[1, -2, 1], [0]])),
    (lambda u: gs.leaky_relu(u, 0.5), piecewise([0], [[0, HALF], [0, 1]])),
    (lambda u: gs.huber(u, 1), piecewise([-1, 1], [[-HALF, -1], [0, 0, HALF], [-HALF, 1]])),
]


def random_composition(rng: random.Random, d: int) -> tuple[Any, Callable[..., Fraction]]:
    """An expression, and the same function written with Fractions."""
    pool: list[tuple[Any, Exact]] = [(gs.Variable(d), list)]
    for _ in range(rng.randint(2, 6)):
        u, f = rng.choice(pool[-2:])
        other, g = rng.choice(pool)
        move = rng.random()
        if move < 0.5:
            atom, same = rng.choice(ATOMS)
            pool.append((atom(u), lambda x, f=f, same=same: [same(v) for v in f(x)]))
        elif move < 0.75:
            rows = range(rng.randint(1, 3))
            A = np.array([[rng.choice([-1, 0, 0, 1, 2]) for _ in range(u.size)] for _ in rows])
            pool.append((A @ u, lambda x, f=f, A=A: [_dot(row, f(x)) for row in A.tolist()]))
        elif move < 0.9 and other.size == u.size:
            pool.append((u * other, lambda x, f=f, g=g: [a * b for a, b in zip(f(x), g(x))]))
        else:
            table = row_max(u.reshape(1, u.size))
            pool.append((table, lambda x, f=f: [max(f(x))]))
    u, f = pool[-1]
    return gs.sum(u), lambda x: sum(f(x), Fraction(0))


def _dot(row: list[int], entries: list[Fraction]) -> Fraction:
    return sum((a * v for a, v in zip(row, entries)), Fraction(0))


def one_sided(f: Callable[..., Fraction], y: list[Fraction], v: list[Fraction]) -> Fraction:
    """The derivative of f at y along v, up to 1e-60 or so."""
    t = Fraction(1, 2**250)
    return (f([a + t * b for a, b in zip(y, v)]) - f(y)) / t


@pytest.mark.parametrize("seed", range(150))
def test_gradients_and_their_limits_are_those_of_exact_quotients(seed: int) -> None:
    rng = random.Random(seed)
    d = rng.randint(1, 3)
    F, f = random_composition(rng, d)
    y = [Fraction(rng.randint(-4, 4), rng.choice([1, 1, 2])) for _ in range(d)]
    x = np.array([float(a) for a in y])
    ways = [[Fraction(rng.randint(1, 99) * rng.choice([-1, 1])) for _ in y] for _ in range(6)]
    units = [[Fraction(int(i == k)) for k in range(d)] for i in range(d)]
    close = Fraction(1, 10**9)
    try:
        g = [Fraction(a) for a in F.gradient(x).tolist()]
    except gs.KinkError:
        g = []
    for v in ways if g else []:
        slope, back = one_sided(f, y, v), one_sided(f, y, [-b for b in v])
        assert abs(_dot(g, v) - slope) <= close * (1 + abs(slope))
        assert abs(_dot(g, v) + back) <= close * (1 + abs(back))
    for v in ways[:3]:
        try:
            ((mid, rad),) = limiting_gradients(F, y, [v])
        except gs.NotCertifiableError:
            continue
        beside = [a + Fraction(1, 2**100) * b for a, b in zip(y, v)]
        for m, r, e in zip(mid, rad, units, strict=True):
            slope = one_sided(f, beside, e)
            assert abs(m - slope) <= r + close * (1 + abs(slope))
