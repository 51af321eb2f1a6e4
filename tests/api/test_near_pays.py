"""Near never gives less than plain: the weaker claim comes first, and pivots have a budget."""

from __future__ import annotations

import time

import numpy as np
import pytest
from scipy.optimize import linprog

import goldstein as gs
from goldstein.certificates.near import Attempt
from goldstein.construction.near.flats import CurvedKinks
from goldstein.construction.near.kinks import Kinks
from goldstein.reductions import stationarity

TARGET = {"eps": 1e-3, "delta": 1e-3, "rng": 0}


def enclosing_circle():
    places, x = np.random.default_rng(0).normal(size=(25, 2)), gs.Variable(2)
    return gs.max([gs.norm2(x - p) for p in places]), np.zeros(2)


def filter_design(points=100, taps=9):
    w = np.linspace(0, np.pi, points)
    table, wanted = np.cos(np.outer(w, np.arange(taps))), (w < 1.2).astype(float)
    return gs.max(abs(table @ gs.Variable(taps) - wanted)), np.zeros(taps)


def long_filter_design():
    return filter_design(400, 21)


def design_without_its_edge():
    """As many kinks as variables and one more meet, seen in small balls alone."""
    w = np.linspace(0, np.pi, 440)
    w = w[(w < 1.1) | (w > 1.3)]
    table = np.cos(np.outer(w, np.arange(21)))
    return gs.max(abs(table @ gs.Variable(21) - (w < 1.2).astype(float))), np.zeros(21)


def facilities():
    rng = np.random.default_rng(0)
    customers, x = rng.normal(size=(20, 2)), gs.Variable(6)
    ways = [gs.min([gs.norm2(x[2 * j : 2 * j + 2] - p) for j in range(3)]) for p in customers]
    return gs.max(ways), rng.normal(size=6)


PIVOTS = [enclosing_circle, filter_design, long_filter_design, design_without_its_edge, facilities]


@pytest.mark.parametrize("make", PIVOTS)
def test_pivots_of_maxima_of_norms_and_chebyshev_fits_are_found(make):
    f, x0 = make()
    plain = gs.minimize(f, x0, **TARGET)
    near = gs.minimize(f, x0, **TARGET, stationarity="near", max_time=60)
    assert near.success, near.message
    assert near.certificate.kind == "near"
    assert near.certificate.verify(f).label == "certified"
    assert near.fun <= plain.fun + 1e-3 * (1 + abs(plain.fun))


@pytest.mark.parametrize("calls", [8, 15, 30, 60, 120, 240])
@pytest.mark.parametrize("make", [enclosing_circle, filter_design])
def test_a_run_that_is_cut_short_has_what_plain_would_have(make, calls):
    f, x0 = make()
    plain = gs.minimize(f, x0, **TARGET, max_calls=calls)
    near = gs.minimize(f, x0, **TARGET, max_calls=calls, stationarity="near")
    if plain.certificate is None:
        return
    found = near.certificate
    assert found.eps <= max(plain.certificate.eps, TARGET["eps"])
    assert found.delta <= plain.certificate.delta
    assert found.verify(f).ok


def test_without_time_for_a_pivot_the_plain_claim_stays_and_the_message_says_what_helps(
    monkeypatch,
):
    monkeypatch.setattr(stationarity, "PATIENT_SECONDS", -1e3)
    f, x0 = enclosing_circle()
    near = gs.minimize(f, x0, **TARGET, stationarity="near")
    assert not near.success
    assert near.certificate.kind == "goldstein"
    assert near.certificate.eps <= TARGET["eps"]
    assert "max_time=" in near.message


def test_those_who_watch_are_told_that_a_pivot_is_looked_for():
    f, x0 = enclosing_circle()
    seen = []
    gs.minimize(
        f, x0, **TARGET, stationarity="near",
        progress=lambda state, calls: seen.append(state.notes.get("doing")),
    )  # fmt: skip
    assert "looking for a pivot" in seen


def test_an_attempt_in_the_largest_ball_does_not_take_the_time_of_the_next(monkeypatch):
    begin, tried = stationarity.attempt_near, []

    def stuck_at_first(oracle, hint, request, *, deadline):
        tried.append(hint.delta)
        if len(tried) > 1:
            return begin(oracle, hint, request, deadline=deadline)
        time.sleep(max(deadline - time.perf_counter(), 0.0))
        return Attempt(None, "not proved: it took too long")

    monkeypatch.setattr(stationarity, "attempt_near", stuck_at_first)
    f, x0 = enclosing_circle()
    near = gs.minimize(f, x0, **TARGET, stationarity="near", max_time=20)
    assert near.success, near.message
    assert tried == sorted(tried, reverse=True)
    assert near.certificate.verify(f).ok


@pytest.mark.parametrize("seed", range(3))
def test_ties_that_hold_a_maximum_are_those_of_its_minimum(seed):
    """Of a Chebyshev fit, in a ball that reaches from x to its minimum, and beyond."""
    rng = np.random.default_rng(seed)
    table, wanted = rng.standard_normal((60, 5)), rng.standard_normal(60)
    rows, levels = np.vstack([table, -table]), np.append(wanted, -wanted)
    lines = np.column_stack([rows, -np.ones(120)])
    best = linprog(np.append(np.zeros(5), 1.0), lines, levels, bounds=[(None, None)] * 6)
    active = np.flatnonzero(best.ineqlin.marginals < 0.0) % 60
    f = gs.max(abs(table @ gs.Variable(5) - wanted))
    found = CurvedKinks(Kinks(f)).holding(best.x[:5] + 1e-4 * rng.standard_normal(5), 1e-3)
    assert {i for s in found for i, _ in s.terms} == set(active)
    assert CurvedKinks(Kinks(gs.norm1(gs.Variable(2)))).holding(np.ones(2), 1.0) == []


def test_a_chebyshev_fit_is_proved_in_the_ball_that_was_asked_for():
    rng = np.random.default_rng(0)
    f = gs.max(abs(rng.standard_normal((400, 21)) @ gs.Variable(21) - rng.standard_normal(400)))
    plain = gs.minimize(f, np.zeros(21), **TARGET)
    near = gs.minimize(f, np.zeros(21), **TARGET, stationarity="near", max_time=60)
    assert near.success, near.message
    assert near.nfev + near.ngev <= plain.nfev + plain.ngev  # no search in a smaller one
