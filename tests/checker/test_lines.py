"""Lines below large functions: compared with exact values, and forged entry by entry."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction as Q
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker import nodes
from goldstein.checker.minimum import minimum
from goldstein.checker.minimum.lines import is_large, line_below
from goldstein.checker.minimum.supports import Support
from goldstein.checker.sides import Program
from goldstein.construction.minimum import kinks_near
from goldstein.construction.rows import Rows, minimum_by_rows, with_lines
from goldstein.errors import GoldsteinError, InputError, NotCertifiableError


def exact(program: Any, z: Any) -> Q:
    """The value at a point, in rationals."""
    low, high = minimum.point_at(program, z).between()
    assert low == high
    return low


def some_function(rng: np.random.Generator, d: int) -> Any:
    """A convex function: weighted kinks, squares and maxima of affine rows."""
    x = gs.Variable(d)

    def rows(n: int) -> Any:
        return rng.integers(-4, 5, (n, d)) @ x / 2 + rng.integers(-4, 5, n) / 2

    parts = [
        gs.sum(abs(rows(3))), gs.sum(gs.relu(rows(3))), gs.max(rows(4)),
        gs.sum(gs.square(rows(2))), -gs.min(rows(3)), gs.sum(gs.pinball(rows(3), 0.25)),
        gs.sum(gs.huber(rows(2))), gs.sum(rows(2)), gs.sum(rows(2)) - gs.sum(-abs(rows(2))),
    ]  # fmt: skip
    chosen = rng.choice(len(parts), rng.integers(1, 4), replace=False)
    out = parts[chosen[0]]
    for k in chosen[1:]:
        out = out + float(rng.integers(1, 4)) / 2 * parts[k]
    return out


def some_supports(rng: np.random.Generator, program: Any, y: Any) -> list[Support]:
    """Slopes and weights of kinks at y or next to it, drawn at random."""
    found: list[Support] = []
    kinks = kinks_near(program, y)
    rows: dict[Any, list[int]] = {}
    for j, g in enumerate(kinks.supports):
        rows.setdefault((g.node, g.row), []).append(j)
    for places in rows.values():
        own = [kinks.supports[j] for j in places]
        if isinstance(program.nodes[own[0].node], gs.checker.nodes.Max):
            parts = rng.integers(0, 4, len(own)) + (np.arange(len(own)) == 0)
            found += [g._replace(s=Q(int(p), int(parts.sum()))) for g, p in zip(own, parts)]
        else:
            low, high = (Q(float(end[places[0]])) for end in (kinks.low, kinks.high))
            part = Q(int(rng.integers(0, 5)), 4)
            found.append(own[0]._replace(s=low + part * (high - low)))
    return found


def test_nothing_is_below_a_line() -> None:
    """f(z) >= f(y) - loss + slope.(z - y) - rounding, near and far, decided in rationals."""
    refused = sum(refused_or_true(np.random.default_rng(seed)) for seed in range(120))
    assert refused < 6


def refused_or_true(rng: np.random.Generator) -> bool:
    d = int(rng.integers(1, 4))
    program = some_function(rng, d).program()
    y = rng.integers(-3, 4, d) / 2
    try:
        line = line_below(program, y, some_supports(rng, program, y))
    except NotCertifiableError:
        return True
    (slope, rad), (eps, most) = (line.slope.mid, line.slope.rad), line.ends
    assert np.linalg.norm(slope) <= eps
    top = exact(program, y) - most
    for scale in (0.01, 0.5, 3.0, 1e3):
        for _ in range(6):
            h = np.round(scale * rng.standard_normal(d) * 64) / 64
            moved = sum((Q(float(a)) * Q(float(b)) for a, b in zip(slope, h)), Q(0))
            room = sum((Q(float(a)) * abs(Q(float(b))) for a, b in zip(rad, h)), Q(0))
            assert exact(program, y + h) >= top + moved - room
    return False


def test_a_line_through_another_point_loses_what_it_is_below() -> None:
    x = gs.Variable(1)
    program = gs.sum(abs(x)).program()
    for y in (0.25, -3.0):
        line = line_below(program, np.array([y]), [Support(1, 0, 0, Q(0), Q(1, 2), Q(0))])
        assert Q(abs(y) - y / 2) <= line.ends[1] <= Q(abs(y) - y / 2) + Q(1, 10**12)
        assert abs(line.slope.mid[0] - 0.5) <= line.slope.rad[0] < 1e-12


TIE = Support(1, 0, 0, Q(0), Q(0), Q(0))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"s": Q(1) + Q(1, 2**60)}, NotCertifiableError),
        ({"s": -Q(1) - Q(1, 2**60)}, NotCertifiableError),
        ({"p": Q(1, 2**60)}, NotCertifiableError),
        ({"t": Q(1, 2**60)}, NotCertifiableError),  # there the slope is 1
        ({"place": 1}, InputError),
        ({"row": 2, "place": 2}, InputError),
        ({"node": 0}, InputError),
        ({"node": 9}, InputError),
    ],
)
def test_a_forged_slope_is_refused(change: dict[str, Any], why: Any) -> None:
    program, y = gs.sum(abs(gs.Variable(2))).program(), np.zeros(2)
    assert line_below(program, y, [TIE]).ends[0] < 1 + 1e-9  # the slope of the other entry
    with pytest.raises(why):
        line_below(program, y, [TIE._replace(**change)])


@pytest.mark.parametrize(
    "weights", [(Q(1, 2), Q(1, 2) + Q(1, 2**60)), (Q(3, 2), -Q(1, 2)), (Q(1),)]
)
def test_forged_weights_of_a_maximum_are_refused(weights: tuple[Q, ...]) -> None:
    program, y = gs.max(gs.Variable(2)).program(), np.zeros(2)
    given = [Support(1, 0, j, Q(0), w, Q(0)) for j, w in enumerate(weights)]
    if weights == (Q(1),):
        assert line_below(program, y, given).ends[1] < Q(1, 10**200)
    else:
        with pytest.raises(NotCertifiableError):
            line_below(program, y, given)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: -gs.sum(abs(x)), lambda x: gs.sum(gs.ramp(x, rho=1.0)),
        lambda x: gs.sum(gs.square(x)) - gs.sum(abs(x)) / 8, lambda x: -gs.max(x),
        lambda x: gs.max(-abs(x)), lambda x: gs.sum(gs.relu(1 - abs(x))),
        lambda x: x[0] * x[1], lambda x: gs.sum(x**3), lambda x: gs.sum(-gs.square(x)),
        lambda x: gs.max(gs.stack([x[0] * x[1], 0 * x[0] - 100])),
        lambda x: gs.sum(abs(abs(x) - 1)), lambda x: gs.sum(gs.relu(abs(x) - 1)),
        lambda x: gs.max(abs(x)), lambda x: gs.norm2(x), lambda x: gs.sum(0 * gs.ramp(x, rho=1.0)),
    ],
)  # fmt: skip
def test_what_is_not_convex_or_nested_is_refused(make: Any) -> None:
    with pytest.raises(NotCertifiableError):
        line_below(make(gs.Variable(2)).program(), np.array([0.25, -0.5]), [])


def test_concave_entries_with_weights_of_both_signs_are_refused() -> None:
    """-|x0| + |x1|, written with the concave -|u|."""
    below = nodes.Piecewise((0,), (2,), 2, (Q(0),), ((Q(0), Q(1)), (Q(0), Q(-1))))
    for weights, right in (([-1.0, -2.0], True), ([1.0, -1.0], False), ([1.0, 1.0], False)):
        total = nodes.Affine((1,), (2,), 1, np.array([weights]))
        program = Program([nodes.Variable((), (), 2), below, total])
        if right:
            assert line_below(program, np.ones(2), []).ends[0] <= 5**0.5 + 1e-9
        else:
            with pytest.raises(NotCertifiableError):
                line_below(program, np.ones(2), [])


def test_weights_of_a_maximum_lose_what_they_are_below() -> None:
    program = gs.max(gs.Variable(2)).program()
    given = [Support(1, 0, j, Q(0), Q(1, 2), Q(0)) for j in range(2)]
    lost = line_below(program, np.array([0.25, 0.0]), given).ends[1]
    assert Q(1, 8) <= lost <= Q(1, 8) + Q(1, 10**12)


def test_numbers_that_overflow_are_refused() -> None:
    x = gs.Variable(1)
    program = gs.sum(gs.square(1e300 * x)).program()
    with pytest.raises(NotCertifiableError):
        assert line_below(program, np.array([1e300]), []).ends


def large(seed: int = 0) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((2048, 64)), rng.standard_normal(2048)
    return gs.sum(abs(A @ gs.Variable(64) - b)) / 2048, A


def test_a_forged_claim_about_a_large_function_is_refused_by_name() -> None:
    F, _ = large()
    program = F.program()
    assert is_large(program)
    cert, _ = minimum_by_rows(program, np.zeros(64), np.inf, False)
    assert cert.verify(F).ok
    assert 0 < cert.gap < 1e-8
    first = cert.supports[0]
    other = (first._replace(s=first.s + Q(1, 10**6)), *cert.supports[1:])
    x = cert.x + 1e-6
    forged = {
        "gap": {"gap": cert.gap / 100}, "bound": {"eps": cert.eps / 100},
        "scope": {"radius": cert.radius * 2}, "curvature": {"growth": 1e-6},
        "strict": {"strict": True, "within": 1.0}, "unique": {"unique": True},
        "ball": {"x": x},
    }  # fmt: skip
    for name, change in forged.items():
        failed = [c.name for c in replace(cert, **change).verify(F).checks if not c.ok]
        assert name in failed, (name, failed)
    assert not replace(cert, supports=other).verify(F).ok
    assert not replace(cert, scope="global", radius=np.inf).verify(F).ok
    assert not replace(cert, reach=np.inf, radius=np.inf, scope="global").verify(F).ok


def test_the_claim_holds_against_an_independent_minimum() -> None:
    """HiGHS solves the same linear program; nothing it finds is lower than the gap allows."""
    from scipy.optimize import linprog

    rng, n, d = np.random.default_rng(1), 300, 40
    A, b = rng.standard_normal((n, d)), rng.standard_normal(n)
    F = gs.sum(abs(A @ gs.Variable(d) - b)) / n
    cert, _ = minimum_by_rows(F.program(), np.ones(d), np.inf, False)
    cost = np.r_[np.zeros(d), np.ones(n) / n]
    rows = np.block([[A, -np.eye(n)], [-A, -np.eye(n)]])
    found = linprog(cost, rows, np.r_[b, -b], bounds=[(None, None)] * d + [(0, None)] * n)
    assert abs(found.fun - F.value(cert.x)) <= 1e-9
    lower = Q(F.value(cert.x)) - Q(cert.gap)
    assert np.linalg.norm(found.x[:d] - cert.x) < cert.radius
    assert F.value(found.x[:d]) >= float(lower)


def test_other_points_have_the_gap_they_have() -> None:
    F, _ = large(2)
    program, rng = F.program(), np.random.default_rng(0)
    best, _ = minimum_by_rows(program, np.zeros(64), np.inf, False)
    x = best.x + 1e-3 * rng.standard_normal(64)
    cert, _ = minimum_by_rows(program, x, np.inf, True)
    above = F.value(x) - F.value(best.x)
    assert cert.verify(F).ok
    assert above <= cert.gap <= above + 1e-8


@pytest.mark.parametrize(
    "make",
    [
        lambda x: gs.sum(abs(abs(x) - 1)), lambda x: gs.sum(gs.ramp(x, rho=1.0)),
        lambda x: gs.sum(gs.huber(x)), lambda x: gs.norm2(x), lambda x: gs.sum(x**3),
    ],
)  # fmt: skip
def test_other_functions_have_no_rows(make: Any) -> None:
    with pytest.raises(GoldsteinError):
        Rows(make(gs.Variable(3)).program())


def test_the_public_surface_ends_with_a_minimum_or_a_lower_point() -> None:
    F, _ = large(3)
    target = {"eps": 1e-4, "delta": 1e-4, "stationarity": "minimum"}
    res = gs.minimize(F, np.zeros(64), **target)
    assert res.success
    assert res.certificate.gap < 1e-8
    assert res.certificate.verify(F).ok
    other = res.x + 1e-3
    denied = gs.certify(F, other, delta=1e-4, stationarity="minimum")
    assert denied.kind == "refutation"
    assert denied.verify(F).ok
    assert F.value(denied.point) < F.value(other)


def test_a_tall_or_wide_table_of_any_rank_is_solved() -> None:
    """Dependent columns, rows of zeros, ties, more variables than rows: the gap stays small."""
    rng = np.random.default_rng(5)
    A, b, x = rng.standard_normal((60, 40)), rng.standard_normal(60), gs.Variable(40)
    A[:, 5], A[:, 7], A[:9] = A[:, 3], 0.0, 0.0
    wide = gs.Variable(5000)
    B = rng.standard_normal((20, 5000))
    closed = np.vstack([B, -B.sum(axis=0)])
    for F in (
        gs.sum(abs(A @ x - b)), gs.sum(abs(np.round(A) @ x - np.round(b))),
        gs.max(A[9:] @ x + b[9:]) + gs.sum(abs(x)), gs.sum(gs.square(A @ x - b)) + gs.sum(abs(x)),
        gs.sum(abs(B @ wide - b[:20])), gs.max(closed @ wide + b[:21]),
        gs.sum(abs(B @ wide - b[:20])) + 20 * gs.sum(abs(wide)),
    ):  # fmt: skip
        cert, _ = minimum_by_rows(F.program(), np.zeros(F.dim), np.inf, False)
        assert cert.gap <= 1e-7 * max(1.0, abs(F.value(cert.x)))


def test_functions_without_a_minimum_end_the_method_early(monkeypatch: Any) -> None:
    """Only sides that all look one way: f falls for ever, and so would the method."""
    rng, steps = np.random.default_rng(0), []
    rows = Rows(gs.max(rng.standard_normal((20, 60)) @ gs.Variable(60)).program())
    solver = rows.solver
    monkeypatch.setattr(rows, "solver", lambda *given: steps.append(1) or solver(*given))
    with np.errstate(all="ignore"):
        rows.minimise(np.ones(60), np.inf)
    assert 0 < len(steps) < 15


@pytest.mark.parametrize("far", [1e305, np.inf, np.nan])
def test_points_without_a_ball_are_refused_in_words(far: float) -> None:
    with pytest.raises(NotCertifiableError):
        with_lines(gs.sum(abs(gs.Variable(2))).program(), np.array([far, 1.0]), [])


def test_large_functions_without_kinks_are_no_accident() -> None:
    """Squares alone are solved; an affine function has no minimum to be found."""
    rng, x = np.random.default_rng(0), gs.Variable(64)
    A, b = rng.standard_normal((1100, 64)), rng.standard_normal(1100)
    F, G = gs.sum(gs.square(A @ x - b)), gs.sum(A @ x - b)
    assert is_large(F.program())
    assert is_large(G.program())
    cert, best = minimum_by_rows(F.program(), np.zeros(64), np.inf, False)
    assert np.linalg.norm(best - np.linalg.lstsq(A, b)[0]) < 1e-10
    assert cert.verify(F).ok
    assert cert.gap < 1e-7
    assert gs.certify(G, np.ones(64), delta=1e-6, stationarity="minimum").verify(G).ok


@pytest.mark.parametrize("size", [5e-324, 2.0**-500, 1e160, 1e300])
@pytest.mark.parametrize("weight", [0.0, 5e-324, 1.0, 1e200])
def test_numbers_without_products_are_refused_in_words(size: float, weight: float) -> None:
    A, x = size * np.array([[1.0, 2], [1, 2], [0, 0], [-2, 1]]), gs.Variable(2)
    for F in (
        weight * gs.sum(abs(A @ x - size)) + gs.sum(abs(x)),
        gs.max(A @ x) + weight * gs.sum(abs(x)),
        gs.sum(gs.square(A @ x - 1)) + weight * gs.max(x),
    ):  # fmt: skip
        try:
            program = F.program()
            cert, _ = minimum_by_rows(program, np.ones(2), np.inf, True)
        except GoldsteinError:
            continue
        line = line_below(program, cert.x, cert.supports)
        for z in ([0.0, 0.0], [1.0, -1.0], [0.25, 3.0]):
            assert exact(program, z) >= exact(program, cert.x) - Q(cert.gap)
        assert Q(line.ends[1]) <= Q(cert.gap)
