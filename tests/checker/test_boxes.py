"""Pivots that are known by a box: what is proved, and what must be refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import mpmath
import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.enclosed.irrational import Norm2
from goldstein.checker.nodes import Max, Order, Piecewise
from goldstein.checker.sides import point_at
from goldstein.errors import GoldsteinError, InputError, NotCertifiableError

a = gs.atoms
W = gs.Variable(2)
X, Y = W
SIDES = np.array([[1.0, 0.3], [-1.0, 0.2]])


def kinks(F: gs.Expression) -> list[int]:
    """The nodes that have kinks, in order."""
    kinds = Max | Norm2 | Order
    return [
        k for k, n in enumerate(F.program().nodes)
        if isinstance(n, kinds) or (isinstance(n, Piecewise) and any(n.jumps))
    ]  # fmt: skip


def limits(
    F: gs.Expression, centre: Any, radii: Any, switches: Any, directions: Any = SIDES
) -> Any:
    box = np.array(radii, dtype=float), np.array(switches, dtype=np.int64).reshape(-1, 3)
    return point_at(F.program(), np.array(centre), 1, box).limits(np.array(directions))


E = float(np.exp(0.5))
CURVE = gs.abs(X - a.exp(Y)) + 0.1 * X


def test_a_curved_kink_at_an_irrational_point() -> None:
    (k,) = kinks(CURVE)
    found = limits(CURVE, [E, 0.5], [1e-13, 0.0], [[k, 0, 0]])
    expected = [[1.1, -E], [-0.9, E]]
    assert (np.abs(found.mid - expected) <= found.rad + 1e-14).all()
    assert found.rad.max() < 1e-12


def test_the_wider_the_box_the_wider_the_gradients() -> None:
    (k,) = kinks(CURVE)
    F = gs.abs(X - a.exp(Y)) + 0.1 * X**2
    wide = limits(F, [E, 0.5], [0.2, 0.0], [[kinks(F)[0], 0, 0]])
    assert wide.rad[0, 0] >= 0.04
    assert limits(CURVE, [E, 0.5], [0.2, 0.0], [[k, 0, 0]])


REFUSED: dict[str, tuple[gs.Expression, Any, Any, Callable[[list[int]], Any], Any]] = {
    "too small a box": (CURVE, [E, 0.5], [1e-18, 0.0], lambda k: [[k[0], 0, 0]], SIDES),
    "a centre off": (CURVE, [E + 1e-6, 0.5], [1e-13, 0.0], lambda k: [[k[0], 0, 0]], SIDES),
    "no radii": (CURVE, [E, 0.5], [0.0, 0.0], lambda k: [[k[0], 0, 0]], SIDES),
    "no switches": (CURVE, [E, 0.5], [1e-13, 0.0], lambda k: [], SIDES),
    "more variables than kinks": (CURVE, [E, 0.5], [1e-13] * 2, lambda k: [[k[0], 0, 0]], SIDES),
    "along the kink": (CURVE, [E, 0.5], [1e-13, 0.0], lambda k: [[k[0], 0, 0]], [[E, 1.0]]),
    "a root that is none": (
        gs.abs(X**2 + 1e-9) + Y, [0.0, 0.0], [0.1, 0.0], lambda k: [[k[0], 0, 0]], SIDES),
    "a double root": (gs.abs(X**2) + Y, [0.0, 0.0], [0.1, 0.0], lambda k: [[k[0], 0, 0]], SIDES),
    "declared, not solved": (
        gs.abs(X - a.exp(Y)) + gs.abs(Y - a.sin(X) - 1.0), [E, 0.5], [1e-13, 0.0],
        lambda k: [[k[0], 0, 0], [k[1], 0, 0]], SIDES),
    "solved, the other undeclared": (
        gs.abs(X - a.exp(Y)) + gs.abs(X - a.exp(Y) * (1.0 + a.sin(Y - 0.5))), [E, 0.5],
        [1e-13, 0.0], lambda k: [[k[0], 0, 0]], SIDES),
    "tangential, both declared": (
        gs.abs(a.sin(Y)) + gs.abs(a.sin(Y) - a.sin(X) ** 2), [0.0, 0.0], [1e-3, 1e-3],
        lambda k: [[k[0], 0, 0], [k[1], 0, 0]], SIDES),
    "u and -u as independent": (
        gs.abs(X - a.exp(Y)) + gs.abs(a.exp(Y) - X), [E, 0.5], [1e-13, 1e-13],
        lambda k: [[k[0], 0, 0], [k[1], 0, 0]], SIDES),
    "the same switch twice": (
        CURVE, [E, 0.5], [1e-13, 1e-13], lambda k: [[k[0], 0, 0], [k[0], 0, 0]], SIDES),
    "a nested tie, the outer undeclared": (
        gs.abs(gs.abs(X - a.exp(Y)) - a.sin(X - a.exp(Y))), [E, 0.5], [1e-13, 0.0],
        lambda k: [[k[0], 0, 0]], SIDES),
    "a third entry just below": (
        gs.max([X, a.exp(Y), X - 1e-15]), [E, 0.5], [1e-13, 0.0], lambda k: [[k[0], 0, 1]], SIDES),
    "a norm below a kink": (
        gs.abs(gs.norm2(gs.stack([X - a.exp(Y), Y - 0.5])) - a.sin(X - a.exp(Y))), [E, 0.5],
        [1e-13, 1e-13], lambda k: [[k[0], 0, -1], [k[0], 1, -1], [k[1], 0, 0]], SIDES),
    "the edge of a domain": (
        gs.abs(X - a.exp(Y)) + a.sqrt(Y - 0.5), [E, 0.5], [1e-13, 0.0], lambda k: [[k[0], 0, 0]],
        SIDES),
    "a quotient by what may be 0": (
        gs.abs(X - a.exp(Y)) + 1.0 / (X - E), [E, 0.5], [1e-13, 0.0], lambda k: [[k[0], 0, 0]],
        SIDES),
    "numbers that explode": (
        gs.abs(a.sin(1e300 * X) - a.exp(Y)), [E, 0.5], [1e-13, 0.0], lambda k: [[k[0], 0, 0]],
        SIDES),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_it_is_refused(name: str) -> None:
    F, centre, radii, switches, directions = REFUSED[name]
    with pytest.raises(NotCertifiableError):
        limits(F, centre, radii, switches(kinks(F)), directions)


FORGED: dict[str, Any] = {
    "a negative radius": ([-1e-13, 0.0], [[0, 0, 0]]),
    "a NaN": ([np.nan, 0.0], [[0, 0, 0]]),
    "an infinite one": ([np.inf, 0.0], [[0, 0, 0]]),
    "no such entry": ([1e-13, 0.0], [[0, 7, 0]]),
    "no such breakpoint": ([1e-13, 0.0], [[0, 0, 3]]),
    "a negative one": ([1e-13, 0.0], [[0, 0, -1]]),
    "no such node": ([1e-13, 0.0], [[99, 0, 0]]),
    "a node without kinks": ([1e-13, 0.0], [[-1, 0, 0]]),
    "too many radii": ([1e-13, 0.0, 0.0], [[0, 0, 0]]),
}


@pytest.mark.parametrize("name", FORGED)
def test_forgeries_are_refused(name: str) -> None:
    radii, rows = FORGED[name]
    (k,) = kinks(CURVE)
    with pytest.raises((InputError, NotCertifiableError)):
        limits(CURVE, [E, 0.5], radii, [[k + row[0], *row[1:]] for row in rows])


def certificate(scale: float = 1.0) -> tuple[gs.Expression, gs.NearCertificate]:
    F = gs.abs(X - a.exp(Y)) + 0.1 * (X - 2.0) ** 2 + 0.1 * Y**2
    res = gs.minimize(F, [1.0, 1.0], eps=1e-6, delta=1e-5, rng=0, stationarity="near")
    assert res.success
    return F, res.certificate


def test_a_whole_certificate_and_its_forgeries(tmp_path: Any) -> None:
    F, cert = certificate()
    assert cert.label == "certified"
    assert cert.radii is not None
    assert cert.verify(F).ok
    cert.save(tmp_path / "c.npz")
    again = gs.load_certificate(tmp_path / "c.npz")
    assert again.verify(F).ok
    np.testing.assert_array_equal(again.switches, cert.switches)
    below = np.nextafter(cert.delta, 0.0)
    for change in (
        {"delta": below}, {"eps": cert.eps * 1e-3}, {"radii": cert.radii * 1e-6},
        {"radii": cert.radii * 1e12}, {"radii": -cert.radii}, {"radii": np.zeros(2)},
        {"switches": cert.switches + 1}, {"weights": 0.0 * cert.weights},
        {"x": cert.x + 1e-4}, {"radii": None},
    ):  # fmt: skip
        forged = replace(cert, **change)
        assert not forged.verify(F).ok, change


def test_the_ball_reaches_to_the_far_corner() -> None:
    (k,) = kinks(CURVE)
    box = np.array([0.2, 0.0]), np.array([[k, 0, 0]])
    cert = gs.NearCertificate.prove(CURVE, [E, 0.5], [E, 0.5], SIDES, [1.0, 1.0], box=box)
    assert cert.delta == 0.2
    assert cert.verify(CURVE).ok
    assert not replace(cert, delta=np.nextafter(0.2, 0.0)).verify(CURVE).ok


PROVED: dict[str, tuple[gs.Expression, Any, Callable[[list[int]], Any], Any, Any]] = {
    "the same kink twice": (
        gs.abs(X - a.exp(Y)) + gs.relu(X - a.exp(Y)), [1e-13, 0.0],
        lambda k: [[k[0], 0, 0], [k[1], 0, 0]], [[1.0, 0.0], [-1.0, 0.0]],
        [[2.0, -2.0 * E], [-1.0, E]]),
    "u and -2u": (
        gs.abs(X - a.exp(Y)) + gs.relu(2.0 * a.exp(Y) - 2.0 * X), [1e-13, 0.0],
        lambda k: [[k[0], 0, 0], [k[1], 0, 0]], [[1.0, 0.0], [-1.0, 0.0]],
        [[1.0, -E], [-3.0, 3.0 * E]]),
    "nested, constant on one side": (
        gs.abs(gs.relu(X - a.exp(Y))), [1e-13, 0.0], lambda k: [[k[0], 0, 0], [k[1], 0, 0]],
        [[1.0, 0.0], [-1.0, 0.0]], [[1.0, -E], [0.0, 0.0]]),
    "relu of relu": (
        gs.relu(gs.relu(X - a.exp(Y))), [1e-13, 0.0], lambda k: [[k[0], 0, 0], [k[1], 0, 0]],
        [[1.0, 0.0], [-1.0, 0.0]], [[1.0, -E], [0.0, 0.0]]),
    "a maximum of three": (
        gs.max([X, a.exp(Y), 2.0 * X - a.exp(Y)]), [1e-13, 0.0],
        lambda k: [[k[0], 0, 1], [k[0], 2, 1]], [[1.0, 0.0], [-1.0, 0.0]], [[2.0, -E], [0.0, E]]),
    "sorted entries": (
        a.sum_largest(gs.stack([X, a.exp(Y), Y]), 1), [1e-13, 0.0], lambda k: [[k[0], 0, 1]],
        [[1.0, 0.0], [-1.0, 0.0]], [[1.0, 0.0], [0.0, E]]),
    "a norm": (
        gs.norm2(gs.stack([X - a.exp(Y), 2.0 * a.exp(Y) - 2.0 * X])), [1e-13, 0.0],
        lambda k: [[k[0], 0, -1], [k[0], 1, -1]], [[1.0, 0.0], [-1.0, 0.0]],
        [[5**0.5, -E * 5**0.5], [-(5**0.5), E * 5**0.5]]),
}  # fmt: skip


@pytest.mark.parametrize("name", PROVED)
def test_dependent_kinks_are_proved_by_identities(name: str) -> None:
    F, radii, switches, directions, expected = PROVED[name]
    found = limits(F, [E, 0.5], radii, switches(kinks(F)), directions)
    assert (np.abs(found.mid - expected) <= found.rad + 1e-14).all()
    assert found.rad.max() < 1e-11


def test_three_curves_through_a_point_with_exact_values() -> None:
    F = gs.abs(X - a.exp(Y)) + gs.abs(Y) + gs.abs(X + Y - 1.0)
    here = point_at(F.program(), [1.0, 0.0])
    seen = set()
    for v in np.random.default_rng(0).standard_normal((60, 2)):
        (row,) = here.limits(v[None]).mid
        seen.add(tuple(row.round(9)))
    assert len(seen) == 6  # of 8 patterns, two are impossible


def inner(rng: np.random.Generator, depth: int) -> tuple[gs.Expression, Callable[[Any], Any]]:
    """A random smooth function of two variables, and the same with many digits."""
    p, q, r = rng.uniform(-1.0, 1.0, 3).round(3).tolist()
    name = rng.choice(["exp", "sin", "cos", "tanh", "arctan"])
    many = {"arctan": mpmath.atan}.get(name) or getattr(mpmath, name)
    u, f = p * X + q * Y + r, lambda z: p * z[0] + q * z[1] + r
    if depth:
        v, g = inner(rng, depth - 1)
        return getattr(a, name)(u) * v, lambda z: many(f(z)) * g(z)
    return getattr(a, name)(u), lambda z: many(f(z))


@pytest.mark.parametrize("seed", range(30))
def test_random_curves_have_the_gradients_beside_their_kink(seed: int) -> None:
    """The limit along a direction is the gradient at a point beside a root of 60 digits."""
    mpmath.mp.dps = 60
    rng = np.random.default_rng(seed)
    (u, f), (v, g) = inner(rng, 1), inner(rng, 0)
    level = float(u.value(np.zeros(2)))
    F = gs.abs(u - level) * 1.5 + v
    start, direction = np.zeros(2), rng.standard_normal(2)
    slope = u.gradient(start)
    free = int(np.abs(slope).argmax())
    radii = np.zeros(2)
    radii[free] = 1e-12
    (k,) = kinks(F)
    try:
        found = limits(F, start, radii, [[k, 0, 0]], direction[None])
    except GoldsteinError:
        assert abs(slope[free]) < 1e-2 or abs(slope @ direction) < 1e-2
        return
    other = 1 - free

    def on_line(t: Any) -> Any:
        z = [mpmath.mpf(0)] * 2
        z[free], z[other] = t, mpmath.mpf(0)
        return f(z) - mpmath.mpf(level)

    root = mpmath.findroot(on_line, mpmath.mpf(0))
    assert abs(root) <= radii[free]
    y = [mpmath.mpf(0)] * 2
    y[free] = root
    y = [c + mpmath.mpf(10) ** -25 * d for c, d in zip(y, direction.tolist())]

    def whole(*z: Any) -> Any:
        return mpmath.mpf(1.5) * abs(f(z) - mpmath.mpf(level)) + g(z)

    for j in range(2):
        order = [int(i == j) for i in range(2)]
        exact = mpmath.diff(whole, tuple(y), tuple(order), h=mpmath.mpf(10) ** -30)
        assert abs(exact - found.mid[0, j]) <= found.rad[0, j] + 1e-18
