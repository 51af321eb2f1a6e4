"""False claims about minima that once passed: each is refused now, by the check that names it."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import goldstein as gs
import goldstein_check
from goldstein.checker.enclosed.irrational import Norm2
from goldstein.checker.minimum.curvature import Curvature, Pass, Region, at_least
from goldstein.checker.minimum.spans import Span
from goldstein.checker.minimum.supports import Support
from goldstein.checker.nodes import Piecewise

X, Z = gs.Variable(1), gs.Variable(2)


def claimed(x: list[float], radius: float, **fields: Any) -> gs.MinimumCertificate:
    fields = {"reach": radius, "eps": 0.0, "gap": 0.0, "delta": 0.0, **fields}
    scope = "ball" if math.isfinite(radius) else "global"
    at = tuple(map(Fraction, x))
    return gs.MinimumCertificate(
        x=np.array(x), exact_pivot=at, radius=radius, scope=scope, **fields
    )


def failed(cert: gs.MinimumCertificate, F: Any, **limits: Any) -> set[str]:
    return {check.name for check in cert.verify(F, **limits).checks if not check.ok}


def test_the_lower_end_of_a_norm_is_not_above_it() -> None:
    # |(1, 1)| is below the float64 number nearest to it: f = -1.2e14 |x_1|.
    short = gs.norm2(0 * Z + np.ones(2)) + (gs.sum(0 * Z) - math.sqrt(2.0))
    F = short * abs(2.0**100 * Z[1])
    assert failed(claimed([0.0, 0.0], math.inf), F) == {"curvature"}
    found = gs.certify(F, [0.0, 0.0], delta=1e-6, stationarity="minimum", rng=0)
    assert not (isinstance(found, gs.MinimumCertificate) and found.gap < 1e13)


@pytest.mark.parametrize("n", range(2, 40))
def test_lengths_are_between_their_ends(n: int) -> None:
    F = gs.norm2(0 * Z + np.sqrt([n - 1.0, 1.0]))
    program = F.program()
    k = next(i for i, node in enumerate(program.nodes) if isinstance(node, Norm2))
    found = Pass(program, Region([0, 0], 0.0)).values[k]
    square = sum(Fraction(float(v)) ** 2 for v in np.sqrt([n - 1.0, 1.0]))
    assert Fraction(float(found.lo[0])) ** 2 <= square <= Fraction(float(found.hi[0])) ** 2


def test_a_factorisation_that_overflows_proves_nothing() -> None:
    assert not at_least(np.diag([1e308, -1.5e308]), -1e308)
    hidden = np.diag([1e-10, 1e-10, 1e-10])
    hidden[0, 2] = hidden[2, 0] = 1e308
    assert not at_least(hidden)
    parts = np.array([0.25e308, -0.375e308])
    F = gs.sum(parts * Z**2) + gs.sum(parts * Z**2)
    claim = claimed([0.0, 0.0], 1e-154, gap=0.51, growth=-1e308)
    assert failed(claim, F) == {"curvature"}


def test_an_end_below_all_normal_numbers_is_kept() -> None:
    # f(-2^-1074) = -2^426 is feasible.
    F = 2.0**500 * gs.min(gs.stack([2.0**1000 * X[0], 0 * X[0]]))
    nothing = {"penalties": np.zeros(1), "multipliers": np.zeros(0), "normal": np.zeros(1)}
    claim = claimed([0.5], math.inf, **nothing)
    assert failed(claim, F, bounds=[(-(2.0**-1074), 1.0)]) == {"curvature"}
    assert not failed(claim, F, bounds=[(0.0, 1.0)])
    ends = Span(np.array([-(2.0**-1074)]), np.array([2.0**-1074])).through(np.eye(1))
    assert ends.lo < 0 < ends.hi


@pytest.mark.parametrize(
    ("c", "mid", "rad"),
    [(-0.1, 0.3, 0.1), (-1e300, 1e-200, 1e-201), (-1e-300, 1e-10, 0.0), (-(2.0**-1073), 0.5, 0.0)],
)
def test_products_that_underflow_do_not_raise_the_curvature(
    c: float, mid: float, rad: float
) -> None:
    rows = Span(np.array([[mid - rad, 0.0]]), np.array([[mid + rad, 0.0]]))
    one, two = Curvature(2), Curvature(2)
    one.add(np.array([c]), rows)
    two.add_product(Span(np.array([c])), rows, rows)
    least = Fraction(c) * Fraction(mid + rad) ** 2
    assert Fraction(float(one.lower[0, 0])) <= least
    assert Fraction(float(two.lower[0, 0])) <= 2 * least
    if abs(c) == 0.1:  # another variable is not touched
        assert one.lower[1, 1] == two.lower[1, 1] == 0


def test_of_equal_entries_the_slope_is_that_of_the_one_that_counts() -> None:
    # f = -x on [0, 1]; the substitute 0 of the first entry is tied at 0, and has no slope.
    F = -gs.max(gs.concatenate([-abs(X + 0.125), X]))
    k = next(i for i, node in enumerate(F.program().nodes) if isinstance(node, Piecewise))
    zero = Fraction(0)
    nothing = {"penalties": np.zeros(1), "multipliers": np.zeros(0), "normal": np.zeros(1)}
    claim = claimed([0.0], math.inf, supports=(Support(k, 0, 0, zero, zero, zero),), **nothing)
    assert failed(claim, F, bounds=[(0.0, 1.0)]) == {"bound", "gap"}


def test_lowest_points_of_a_strict_minimum_are_inside_its_own_ball(tmp_path: Path) -> None:
    # Around 0.1 the lowest point of the ball of radius 0.01 is on its boundary.
    F = gs.sum(X**2)
    claim = claimed(
        [0.1], 0.01, reach=1.0, growth=2.0, eps=0.25, gap=0.02, strict=True, within=0.251
    )
    assert failed(claim, F) == {"within"}
    assert goldstein_check.main([str(claim.export(tmp_path / "narrow.json", F))]) == 1
    wide = claimed([0.1], 0.5, reach=1.0, growth=2.0, eps=0.25, gap=0.02, strict=True, within=0.251)
    assert not failed(wide, F)
    path = wide.export(tmp_path / "wide.json", F)
    assert goldstein_check.main([str(path)]) == 0
    assert json.loads(path.read_text())["claim"]["strict"]


def flat(x: Any) -> float:
    return float(max(abs(x[0]) - 1.0, 0.0))


def flat_slope(x: Any) -> Any:
    return np.sign(x) * (np.abs(x) > 1)


def tilted(x: Any) -> float:
    return float(abs(x[0]))


def test_a_box_without_higher_faces_is_not_strict() -> None:
    fields: dict[str, Any] = {
        "x": np.zeros(1), "exact_pivot": (Fraction(0),), "delta": 0.0, "gap": 0.0,
        "scope": "box", "strict": True, "curvature": 0.0, "label": "conditional",
    }  # fmt: skip
    claim = gs.MinimumCertificate(
        **fields, eps=0.0, radius=0.5, within=0.51, widths=np.array([0.5]),
        points=np.zeros((1, 1)), weights=np.ones((3, 1)),
    )  # fmt: skip
    assert {c.name for c in claim.verify(flat, flat_slope).checks if not c.ok} == {"faces"}
    weights = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.25]])
    steep = gs.MinimumCertificate(
        **fields, eps=0.3, radius=0.5, within=0.51, widths=np.array([0.5]),
        points=np.array([[-0.25], [0.25]]), weights=weights,
    )  # fmt: skip
    found = steep.verify(tilted, np.sign)
    assert {c.name for c in found.checks if not c.ok} == {"gap", "bound"}
    assert 1 / 3 <= found.eps <= 0.334


FAR: dict[str, Any] = {
    "x": np.array([1e200]),
    "exact_pivot": (Fraction(10) ** 200,),
    "delta": 1e300,
}
ROUND: dict[str, Any] = {"delta": 0.0, "eps": 0.0, "gap": 0.0, "radius": 1.0, "reach": 1.0}


@pytest.mark.parametrize(
    ("claim", "function", "limits"),
    [
        (
            gs.MinimumCertificate(
                **ROUND | {"x": np.array([1.7e308]), "exact_pivot": (Fraction(1.7e308),)},
                penalties=np.zeros(2), multipliers=np.zeros(1), normal=np.zeros(1),
            ),
            gs.sum(X),
            {"constraints": [gs.sum(X) <= -1.7e308]},
        ),
        (
            gs.Refutation(**FAR, point=np.zeros(1), direction=-np.ones(1), fall=1.0),
            gs.sum(X * X),
            {},
        ),
        (
            gs.Refutation(**FAR, point=np.zeros(1), direction=np.array([-1e200]), slope=-1.0,
                          fall=1.0),
            gs.sum(X * X),
            {},
        ),
    ],
)  # fmt: skip
def test_numbers_beyond_float64_are_a_verdict(claim: Any, function: Any, limits: Any) -> None:
    """Forged points and radii used to end in an OverflowError where a verdict was asked for."""
    assert claim.verify(function, **limits).checks


def test_a_box_as_wide_as_float64_is_a_verdict() -> None:
    claim = gs.MinimumCertificate(
        x=np.zeros(1), exact_pivot=(Fraction(0),), delta=0.0, gap=0.0, scope="box", strict=True,
        curvature=-1.0, label="conditional", eps=0.0, radius=1e200, within=1.1e200,
        widths=np.array([1e200]), points=np.zeros((1, 1)), weights=np.ones((3, 1)),
    )  # fmt: skip
    assert not claim.verify(tilted, np.sign).ok
