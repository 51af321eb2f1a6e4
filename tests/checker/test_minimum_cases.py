"""Trees of cases: bounds of f everywhere, against brute force; forged trees."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker.errors import NotCertifiableError
from goldstein.checker.minimum.cases import Cases, _least
from goldstein.checker.nodes import Piecewise
from goldstein.construction import cases
from goldstein.construction.cases import with_cases
from goldstein.construction.minimum import prove_minimum, with_gap
from goldstein.sklearn import RhoMarginSVC


def ramp(rows: np.ndarray, ridge: float = 0.1) -> Any:
    w = gs.Variable(rows.shape[1])
    loss = gs.sum(gs.ramp(rows @ w, rho=1.0)) / len(rows)
    return loss + ridge / 2 * gs.sum(gs.square(w))


def data(n: int, d: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X, w = rng.standard_normal((n, d)), rng.standard_normal(d)
    return X * np.sign(X @ w + 0.8 * rng.standard_normal(n))[:, None]


def hinge(rows: np.ndarray, n: int, ridge: float = 0.1) -> np.ndarray:
    """The minimiser of ridge/2 |w|^2 + sum of hinges / n, by the dual, one multiplier at a time."""
    a, w = np.zeros(len(rows)), np.zeros(rows.shape[1])
    for _ in range(400):
        for i, z in enumerate(rows):
            new = min(1 / n, max(0.0, a[i] + (1 - z @ w) * ridge / (z @ z)))
            w, a[i] = w + (new - a[i]) * z / ridge, new
    return w


def brute_force(F: Any, rows: np.ndarray) -> float:
    """All choices of outliers, one convex problem each."""
    n = len(rows)
    inside = (np.array(flags, dtype=bool) for flags in product([False, True], repeat=n))
    return min(F.value(hinge(rows[some], n)) for some in inside)


def local(F: Any, x0: Any) -> gs.MinimumCertificate:
    x = gs.minimize(F, x0, eps=1e-6, delta=1e-6, rng=0).x
    found = prove_minimum(F.program(), x, x.tolist())
    assert found is not None
    return found


@pytest.mark.parametrize("seed", [0, 3])
def test_seven_rows_against_all_sets_of_outliers(seed: int) -> None:
    rows = data(7, 2, seed)
    F = ramp(rows)
    best = brute_force(F, rows)
    found, lower = with_cases(F.program(), local(F, [0.1, 0.1]), 300)
    if lower is not None:  # the first local minimum was not the lowest one
        found, lower = with_cases(F.program(), local(F, lower), 300)
    assert lower is None
    assert (found.scope, found.strict) == ("global", False)
    assert found.verify(F).ok
    assert found.gap <= 1e-5
    assert F.value(found.x) - found.gap <= best + 1e-9


@pytest.fixture(scope="module")
def closed() -> tuple[Any, gs.MinimumCertificate]:
    F = ramp(data(20, 2, 1))
    res = gs.minimize(F, [0.5, 0.5], eps=1e-5, delta=1e-5, stationarity="minimum", rng=0)
    assert res.success
    assert res.certificate.scope == "global"
    return F, res.certificate


def failed(F: Any, cert: Any) -> set[str]:
    return {check.name for check in cert.verify(F).checks if not check.ok}


def test_a_run_ends_with_a_global_claim(closed: Any) -> None:
    F, cert = closed
    assert failed(F, cert) == set()
    rng = np.random.default_rng(0)
    for z in rng.standard_normal((300, 2)) * 4:
        assert F.value(z) >= F.value(cert.x) - cert.gap


def test_a_budget_that_ends_leaves_its_gap(closed: Any) -> None:
    F, cert = closed
    ball = prove_minimum(F.program(), cert.x, cert.x.tolist())
    assert ball is not None
    gaps = []
    for most in (1, 6, 12):
        found, _ = with_cases(F.program(), ball, most)
        assert failed(F, found) == set()
        assert found.scope in ("ball", "global")
        assert "everywhere" in found.summary() or found.scope == "global"
        gaps.append(found.global_gap)
    assert gaps == sorted(gaps, reverse=True)
    assert gaps[0] > cert.gap


def test_forged_trees_are_refused(closed: Any) -> None:
    F, cert = closed
    points, slopes, splits = (
        np.array(a) for a in (cert.case_points, cert.case_slopes, cert.case_splits)
    )
    at = int(np.flatnonzero(splits[:, 0] >= 0)[0])
    beyond, cut = splits.copy(), splits.copy()
    beyond[at, 0], cut[at] = slopes.shape[1], (-1, 0)
    forged: list[dict[str, Any]] = [
        {"global_gap": cert.global_gap / 1e6},
        {"case_growth": cert.case_growth * 1.01},
        {"case_points": points[:-1], "case_slopes": slopes[:-1], "case_splits": splits[:-1]},
        {"case_points": np.vstack([points, points[-1:]]),
         "case_slopes": np.vstack([slopes, slopes[-1:]]),
         "case_splits": np.vstack([splits, splits[-1:]])},
        {"case_splits": beyond},
        {"case_splits": cut},
        {"case_splits": None},
        {"case_points": points + 1.0},
        {"case_slopes": slopes[:, :-1]},
        {"case_slopes": slopes + 0.5},
        {"case_slopes": slopes * math.nan},
        {"case_slopes": slopes + math.inf},
        {"case_points": points * math.nan},
    ]  # fmt: skip
    for fields in forged:
        assert "cases" in failed(F, replace(cert, **fields)), fields.keys()
    assert "scope" in failed(F, replace(cert, strict=True, within=1.0))
    # The lowest point of the ball may be another one than the lowest of all.
    assert failed(F, replace(cert, within=1e9)) == {"scope"}
    assert "scope" in failed(F, replace(cert, global_gap=None))
    assert "scope" in failed(F, replace(cert, gap=cert.global_gap / 2))
    assert "numbers" in failed(F, replace(cert, global_gap=math.nan))


def test_lines_are_below_pieces() -> None:
    """The least phi(u) - s u on an interval, against many points of it."""
    rng = np.random.default_rng(2)
    half = Fraction(1, 2)
    pieces = ((Fraction(1), Fraction(0), Fraction(0)), (Fraction(1), Fraction(-1), half),
              (half, Fraction(0), Fraction(0)))  # fmt: skip
    node = Piecewise((0,), (1,), 1, (Fraction(0), Fraction(1)), pieces)
    for _ in range(60):
        lo, hi = sorted(Fraction(int(v), 8) for v in rng.integers(-24, 25, 2))
        s, sign = Fraction(int(rng.integers(-8, 9)), 4), int(rng.choice([-1, 1]))
        least = _least(node, sign, s, float(lo), float(hi))
        values = []
        for k in range(257):
            u = lo + (hi - lo) * Fraction(k, 256)
            piece = pieces[int(u > 0) + int(u > 1)]
            values.append(sign * (sum(c * u**j for j, c in enumerate(piece)) - s * u))
        assert least <= min(values) <= least + Fraction(1, 100)
    with pytest.raises(NotCertifiableError):
        _least(node, 1, half, -1.0, math.inf)


def test_what_is_no_sum_of_pieces_is_refused() -> None:
    z = gs.Variable(2)
    ridge = gs.sum(gs.square(z))
    refused = (abs(z[0]) * z[1] + ridge, gs.max(z) + ridge, abs(z[0] ** 2 - z[1]) + ridge)
    for F in (*refused, abs(abs(z[0]) - 1) + ridge):
        with pytest.raises(NotCertifiableError):
            Cases(F.program())
    flat = Cases((abs(z[0]) + z[1] ** 2).program())
    with pytest.raises(NotCertifiableError, match="strongly convex"):
        flat.require(1e-9)


def test_a_lower_point_is_met_and_the_lowest_is_global() -> None:
    """(x - 3)^2 / 8 - ramp(x): minima at 0, of value 1/8, and at 3, of value 0."""
    x = gs.Variable(1)
    F = gs.sum(gs.square(x - 3)) / 8 - gs.sum(gs.ramp(x, rho=1.0))
    high, low = (prove_minimum(F.program(), np.array([v]), [v]) for v in (0.0, 3.0))
    assert high is not None
    assert low is not None
    found, lower = with_cases(F.program(), high, 50)
    assert (found.scope, failed(F, found)) == ("ball", set())
    assert found.global_gap >= 0.125
    assert lower == pytest.approx([3.0])
    found, lower = with_cases(F.program(), low, 50)
    assert (found.scope, failed(F, found), lower) == ("global", set(), None)
    how: dict[str, Any] = {"eps": 1e-4, "delta": 1e-4, "stationarity": "minimum", "rng": 0}
    res = gs.minimize(F, [0.0], **how)  # goes on to the lower one
    assert res.success
    assert res.x == pytest.approx([3.0], abs=1e-3)
    assert res.certificate.scope == "global"


def test_margin_machines_of_few_rows_are_global() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 2))
    y = (X @ [1.0, -1.0] + 0.3 * rng.standard_normal(20) > 0).astype(int)
    machine = RhoMarginSVC(rho=1.0, C=1.0, fit_intercept=False, random_state=0).fit(X, y)
    assert machine.minimum_ is not None
    assert machine.minimum_.verify(machine.objective(X, y)).ok
    assert machine.minimum_.global_gap is not None


def test_tables_of_many_kinks_are_not_made(monkeypatch: Any) -> None:
    """Memory is quadratic in the entries that have kinks: 50,000 rows would be 20 GB."""
    monkeypatch.setattr(cases, "Quadratic", None)
    rng, w = np.random.default_rng(0), gs.Variable(2)
    ridge = gs.sum(gs.square(w))
    for F in (
        gs.sum(gs.ramp(rng.standard_normal((50, 2)) @ w, rho=1.0)) + ridge,
        gs.sum(abs(rng.standard_normal((1200, 2)) @ w)) - gs.sum(abs(w)) / 8 + ridge,
    ):
        cert = with_gap(F.program(), np.ones(2), [1, 1], 1e-9)
        assert with_cases(F.program(), cert) == (cert, None)
