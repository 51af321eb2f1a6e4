"""Claims about minima: the prototype's numbers, forged fields, files, and a hunt for false ones."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.minimum_hunt import FALSE, hunt

import goldstein as gs
from goldstein.checker.minimum.curvature import Curvature, at_least
from goldstein.checker.minimum.spans import Span, plus, power_sum, product, times
from goldstein.construction.minimum import prove_minimum

Z = gs.Variable(2)
F = 10 * abs(Z[1] - Z[0] ** 2) + (1 - Z[0]) ** 2


def proved(F: gs.Expression, x: Any) -> gs.MinimumCertificate:
    found = prove_minimum(F.program(), np.asarray(x, dtype=float), list(x))
    assert found is not None
    assert found.verify(F).ok, found.verify(F)
    return found


def failed(cert: Any, F: Any = F) -> set[str]:
    return {check.name for check in cert.verify(F).checks if not check.ok}


@pytest.fixture(scope="module")
def ball() -> gs.MinimumCertificate:
    """A strict minimum on a ball, at a float point next to it."""
    return proved(F, [1.0 + 2.0**-20, 1.0 + 2.0**-19])


FORGED: list[tuple[dict[str, Any], str]] = [
    ({"gap": 0.0}, "gap"),
    ({"gap": -1.0}, "numbers"),
    ({"eps": 0.0}, "bound"),
    ({"within": 0.0}, "within"),
    ({"within": None}, "within"),
    ({"radius": 10.0}, "scope"),
    ({"radius": math.inf}, "scope"),
    ({"scope": "global"}, "scope"),
    ({"scope": "box"}, "scope"),
    ({"scope": "everywhere"}, "numbers"),
    ({"growth": 10.0}, "curvature"),
    ({"growth": math.nan}, "numbers"),
    ({"reach": 100.0}, "curvature"),
    ({"reach": 0.0}, "numbers"),
    ({"unique": True}, "unique"),
    ({"convexity": 1.0}, "convex"),
    ({"supports": ()}, "curvature"),
    ({"sharp": ()}, "curvature"),
    ({"label": "refuted"}, "label"),
    ({"exact_pivot": (Fraction(1), Fraction(3, 2))}, "ball"),
    ({"x": np.array([1.0, 2.0])}, "ball"),
    ({"delta": -1.0}, "numbers"),
]


@pytest.mark.parametrize(("fields", "name"), FORGED)
def test_forged_fields_are_named(ball: Any, fields: dict[str, Any], name: str) -> None:
    assert ball.strict
    assert name in failed(replace(ball, **fields))


def test_another_function_is_another_claim(ball: Any) -> None:
    assert failed(ball, F - Z[0])
    assert failed(ball, gs.sum(abs(gs.Variable(3))))


def test_files_hold_what_was_claimed(ball: Any, tmp_path: Path) -> None:
    again = gs.load_certificate(ball.save(tmp_path / "minimum"))
    assert failed(again) == set()
    assert again.content_digest() == ball.content_digest()
    everywhere = proved(F, [1.0, 1.0])
    assert gs.load_certificate(everywhere.save(tmp_path / "global")).radius == math.inf


def test_forged_refutations_are_refused() -> None:
    G = abs(Z[0]) - abs(Z[1])
    denied = gs.certify(G, [0.0, 0.0], delta=1e-6, stationarity="minimum", rng=0)
    assert denied.verify(G).ok
    for fields, name in (
        ({"fall": denied.fall * 2}, "fall"),
        ({"fall": 0.0}, "numbers"),
        ({"point": np.array([1.0, 0.0])}, "fall"),
        ({"direction": np.array([1.0, 0.0])}, "slope"),
        ({"slope": -2.0}, "slope"),
        ({"slope": 0.0}, "slope"),
        ({"exact_pivot": (Fraction(1), Fraction(0))}, "ball"),
        ({"label": "certified"}, "label"),
    ):
        assert name in failed(replace(denied, **fields), G), fields


def test_the_example_of_the_readme_is_global() -> None:
    found = proved(abs(Z[1] - Z[0] ** 2) + (1 - Z[0]) ** 2, [1.0, 1.0])
    assert (found.scope, found.gap) == ("global", 0.0)
    found = proved(F, [1.0, 1.0])
    assert (found.scope, found.gap) == ("global", 0.0)


def test_l1_regression_is_strict_and_global() -> None:
    rng = np.random.default_rng(0)
    A, w = rng.standard_normal((40, 5)), gs.Variable(5)
    b = np.round(A @ np.arange(5.0) * 8) / 8
    from scipy.optimize import linprog

    costs = np.concatenate([np.zeros(5), np.ones(40)])
    rows = np.block([[A, -np.eye(40)], [-A, -np.eye(40)]])
    free = [(None, None)] * 5 + [(0, None)] * 40
    x = linprog(costs, A_ub=rows, b_ub=np.concatenate([b, -b]), bounds=free).x[:5]
    found = proved(gs.sum(abs(A @ w - b)), x)
    assert found.scope == "global"
    assert found.strict
    assert found.gap < 1e-9


@pytest.mark.parametrize(("penalty", "shape"), [(gs.mcp, 5.0), (gs.scad, 6.0)])
def test_folded_penalties_are_unique_where_the_data_curve_enough(
    penalty: Any, shape: float
) -> None:
    rng = np.random.default_rng(1)
    A, w = rng.standard_normal((60, 8)), gs.Variable(8)
    b = A @ np.array([3.0, -2.0, 0, 0, 0, 0, 0, 0]) + 0.1 * rng.standard_normal(60)
    G = gs.sum_squares(A @ w - b) / 120 + gs.sum(penalty(w, 0.3, shape))
    res = gs.minimize(G, np.zeros(8), eps=1e-5, delta=1e-5, stationarity="minimum", rng=0)
    assert res.success
    assert res.certificate.unique
    assert res.certificate.scope == "global" or res.certificate.radius > 0.25


def test_saddles_and_maxima_are_no_success() -> None:
    """From points where all gradients vanish, and from next to them."""
    rng = np.random.default_rng(2)
    functions = [
        abs(Z[0]) - abs(Z[1]) + Z[1] ** 2 / 2,
        Z[0] ** 2 - Z[1] ** 2 + Z[1] ** 4 / 4,
        gs.max(gs.stack([Z[0], -Z[0]])) - Z[1] ** 2 + Z[1] ** 4,
        abs(abs(Z[0]) - 1) + Z[1] ** 2,
    ]
    for k in range(6):
        G = functions[k % len(functions)]
        x = rng.standard_normal(2) * (0.0 if k < 4 else 1e-9)
        res = gs.minimize(G, x, eps=1e-4, delta=1e-4, stationarity="minimum", rng=k)
        if res.success:
            assert res.fun < G.value(np.zeros(2)) - 0.1
            assert res.certificate.verify(G).ok


def test_the_hunt_finds_nothing_false() -> None:
    counts: Counter[str] = Counter()
    for seed in range(40):
        hunt(seed, counts, n=12)
    assert counts["functions"] > 30
    assert {name: counts[name] for name in FALSE} == dict.fromkeys(FALSE, 0)


# --- the arithmetic --------------------------------------------------------------------------


def numbers(rng: np.random.Generator, n: int) -> np.ndarray:
    small = rng.integers(-8, 9, n) / 4.0
    return np.where(
        rng.random(n) < 0.5, small, rng.standard_normal(n) * 10.0 ** rng.integers(-9, 9, n)
    )


def test_ends_contain_the_exact_results_and_stay_exact() -> None:
    rng = np.random.default_rng(3)
    a, b = numbers(rng, 400), numbers(rng, 400)
    for exact, rounded in ((Fraction.__add__, plus), (Fraction.__mul__, times)):
        low, high = (rounded(a, b, end) for end in (-np.inf, np.inf))
        for p, q, lo, hi in zip(a.tolist(), b.tolist(), low.tolist(), high.tolist()):
            true = exact(Fraction(p), Fraction(q))
            assert Fraction(lo) <= true <= Fraction(hi)
            assert (lo == hi) == (Fraction(float(true)) == true)


def test_products_of_matrices_are_exact_or_bounded() -> None:
    rng = np.random.default_rng(4)
    for A in (rng.integers(-9, 9, (5, 7)) / 8.0, rng.standard_normal((5, 7))):
        x = numbers(rng, 7)
        value, error = product(A, x)
        for row, v, e in zip(A.tolist(), value.tolist(), error.tolist()):
            true = sum((Fraction(p) * Fraction(q) for p, q in zip(row, x.tolist())), Fraction(0))
            assert abs(true - Fraction(v)) <= Fraction(e)
    assert product(np.eye(3) * 0.5, np.arange(3.0))[1].max() == 0


@pytest.mark.parametrize("degree", [0, 1, 2, 3, 5])
def test_ranges_of_polynomials_contain_their_values(degree: int) -> None:
    rng = np.random.default_rng(degree)
    for _ in range(40):
        c = [Fraction(int(v), 3) for v in rng.integers(-5, 6, degree + 1)]
        lo, hi = np.sort(rng.integers(-8, 9, 2) / 4.0)
        found = power_sum(c, Span(np.array([lo]), np.array([hi])))
        for t in np.linspace(lo, hi, 9).tolist():
            value = sum((a * Fraction(t) ** k for k, a in enumerate(c)), Fraction(0))
            assert Fraction(float(found.lo[0])) <= value <= Fraction(float(found.hi[0]))


def test_sums_of_intervals_of_squares_are_below() -> None:
    """c gg' for g in an interval vector, and alpha (ab' + ba'): against exact members of them."""
    rng = np.random.default_rng(5)
    for _ in range(60):
        c, m = rng.standard_normal(3), rng.standard_normal((3, 2))
        e = rng.random((3, 2)) * rng.choice([0.0, 1e-3, 0.3])
        total = Curvature(2)
        rows = Span(m - e, m + e)
        total.add(c, rows)
        total.add_product(Span(c - 0.1, c + 0.1), rows, rows[::-1])
        g = m + e * rng.uniform(-1, 1, (3, 2))
        f = (m + e * rng.uniform(-1, 1, (3, 2)))[::-1]
        a = c + rng.uniform(-0.1, 0.1, 3)
        h = rng.standard_normal(2)
        true = c @ (g @ h) ** 2 + 2 * a @ ((g @ h) * (f @ h))
        assert h @ total.lower @ h <= true + 1e-12


def test_definiteness_is_never_overstated() -> None:
    rng = np.random.default_rng(6)
    for d in (1, 3, 30):
        B = rng.standard_normal((d, d + 2))
        M = B @ B.T
        M = (M + M.T) / 2
        least = float(np.linalg.eigvalsh(M)[0])
        assert at_least(M, least * 0.99)
        assert not at_least(M, least * 1.01)
    assert at_least(np.array([[1.0, 1.0], [1.0, 1.0]]))
    assert not at_least(np.array([[1.0, 1.0 + 2.0**-52], [1.0 + 2.0**-52, 1.0]]))
    assert not at_least(np.array([[np.nan]]))


def test_sizes_and_middles_of_intervals() -> None:
    ends = np.array([[-2.0, 1.0, -3.0, -math.inf, 0.0], [1.0, 2.0, -1.0, 5.0, 0.0]])
    span = Span(*ends)
    assert span.least.tolist() == [0.0, 1.0, 1.0, 0.0, 0.0]
    assert span.size.tolist() == [2.0, 2.0, 3.0, math.inf, 0.0]
    assert span.mid.tolist() == [-0.5, 1.5, -2.0, 0.0, 0.0]
    assert span.rad.tolist() == [1.5, 0.5, 1.0, math.inf, 0.0]
    rng = np.random.default_rng(0)
    wide = Span(
        *np.sort(rng.standard_normal((2, 1000)) * 10.0 ** rng.integers(-9, 9, 1000), axis=0)
    )
    for mid, rad, low, high in zip(*(a.tolist() for a in (wide.mid, wide.rad, wide.lo, wide.hi))):
        assert Fraction(mid) - Fraction(rad) <= Fraction(low)
        assert Fraction(mid) + Fraction(rad) >= Fraction(high)


def test_what_is_only_convex_does_not_grow() -> None:
    total = Curvature(2)
    total.add(np.ones(1), Span(np.array([[1.0, 0.1]])))
    assert total.convex
    assert total.at_least(0.0)
    assert not total.at_least(1e-9)


def test_rounding_of_sums_is_in_the_curvature() -> None:
    rng = np.random.default_rng(0)
    for k in range(100):
        c, m = rng.random(7) if k % 2 else np.ones(7), rng.standard_normal((7, 1))
        total = Curvature(1)
        total.add(c, Span(m))
        exact = sum(Fraction(a) * Fraction(g) ** 2 for a, g in zip(c.tolist(), m[:, 0].tolist()))
        assert Fraction(float(total.lower[0, 0])) <= exact
