"""Minima among feasible points: known answers, traps of the Lagrangian, forged fields."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.optimize import LinearConstraint

import goldstein as gs
from goldstein.certificates.minimum import limits_of
from goldstein.checker.minimum.feasible import Feasible
from goldstein.checker.minimum.minimum import minorant
from goldstein.checker.minimum.supports import Support
from goldstein.construction.minimum import prove_minimum, refuted, with_gap

Z = gs.Variable(2)
ZERO = Fraction(0)


def proved(F: Any, x: list[float], **limits: Any) -> Any:
    at = np.array(x)
    problem = limits_of(at, limits.get("bounds"), limits.get("constraints", ()))
    found = prove_minimum(F.program(), at, x, problem=problem)
    assert found is None or found.verify(F, **limits).ok, found.verify(F, **limits)
    return found


def held_to(
    F: Any, x: list[float], weight: float, slope: Any, constraint: Any, at: float
) -> tuple[Feasible, Any]:
    """f with one penalty that is held by a support of a slope, at a limit of the constraint."""
    problem = limits_of(np.array(x), None, constraint)
    assert problem is not None
    limits = Feasible(F.program(), problem, np.array([weight, *np.zeros(len(x))]))
    support = Support(limits.at[0], 0, 0, Fraction(at), Fraction(slope), ZERO)
    return limits, minorant(limits.program, x, 1.0, [support])


DISC = {"constraints": [Z[0] ** 2 + Z[1] ** 2 <= 1]}
CORNER = {"bounds": [(0, 1), (0, 1)]}
LINE = {"constraints": [Z[0] + Z[1] == 1]}
ROWS = {"constraints": LinearConstraint(np.array([[1.0, 2.0], [3.0, 1.0]]), -np.inf, [2.0, 3.0])}

KNOWN: list[tuple[Any, list[float], dict[str, Any], float, str, bool]] = [
    (gs.sum(abs(Z - 2)), [1.0, 1.0], CORNER, 2.0, "global", True),
    (-gs.sum(gs.square(Z)), [1.0, 1.0], CORNER, -2.0, "global", True),  # concave, at a corner
    (gs.square(Z[0] - 3) + Z[1] ** 2, [1.0, 0.0], DISC, 4.0, "global", True),
    (abs(Z[0]) + abs(Z[1] - 2), [0.0, 1.0], LINE, 1.0, "global", False),  # a segment is as low
    (Z[0] ** 2 - Z[1] ** 2, [0.0, 0.0], {"constraints": [Z[1] == 0]}, 0.0, "ball", True),
    (gs.sum(abs(Z - 3)) + Z[0] ** 2 / 2, [0.5, 0.75], ROWS, 4.875, "global", True),
    (-Z[0] + gs.max(Z) ** 2, [0.5, 0.25], CORNER, -0.25, "global", False),
]


@pytest.mark.parametrize(("F", "x", "limits", "best", "scope", "strict"), KNOWN)
def test_known_minima(
    F: Any, x: list[float], limits: Any, best: float, scope: str, strict: bool
) -> None:
    found = proved(F, x, **limits)
    assert F.value(np.array(x)) == best
    assert (found.scope, found.strict, found.violation) == (scope, strict, 0.0)
    assert found.gap <= 1e-12
    assert "among feasible points" in found.summary()


def test_runs_end_with_the_proof() -> None:
    F, limits = gs.max(gs.stack([Z[0] ** 2 - Z[1], Z[1] - Z[0]])), {"bounds": [(0.25, 1), (0, 1)]}
    how: dict[str, Any] = {"eps": 1e-3, "delta": 1e-3, "stationarity": "minimum", "rng": 0}
    res = gs.minimize(F, [0.3, 0.2], **how, **limits)
    assert res.success
    assert res.certificate.scope == "global"
    assert res.certificate.verify(F, **limits).ok
    assert res.fun - res.certificate.gap <= -0.125 <= res.fun  # at x0 = 1/2, x1 = 3/8
    assert res.bound_multipliers.shape == (2,)


def test_a_near_kkt_point_need_not_be_a_minimum() -> None:
    """1/2 - [-1, 1] + [-1, 1] contains 0, the Lagrangian is affine, and f(-1) = f(0) - 3/2."""
    F, limits = Z[0] / 2 - abs(Z[0]) + Z[1] ** 2, {"constraints": [abs(Z[0]) <= 1]}
    assert proved(F, [0.0, 0.0], **limits) is None
    problem = limits_of(np.zeros(2), None, limits["constraints"])
    denied = refuted(F.program(), np.zeros(2), [0, 0], 0.0, problem=problem)
    assert denied is not None
    assert abs(denied.point[0]) <= 1
    assert denied.verify(F, **limits).ok
    outside = replace(denied, point=np.array([-4.0, 0.0]))
    assert outside.verify(F).checks[1].ok  # lower, but nobody may go there
    assert not outside.verify(F, **limits).ok
    assert proved(F, [-1.0, 0.0], **limits).strict


def test_what_the_lagrangian_misses_is_in_the_loss() -> None:
    f = gs.sum(gs.square(Z))
    # an equality that is missed by 1e-6, with the multiplier 1e6
    _, near = held_to(f, [1e-6, 0.0], 2e6, Fraction(-1, 2), [Z[0] == 0], 0.0)
    assert near.loss >= 1
    # a constraint that is not active, with a multiplier
    _, far = held_to(f, [-1.0, 0.0], 4.0, Fraction(1, 2), [Z[0] <= 0], 0.0)
    assert far.loss >= 2
    # a multiplier of the wrong sign is no support at all
    with pytest.raises(gs.NotCertifiableError, match="slope"):
        held_to(f, [0.0, 0.0], 4.0, Fraction(-1, 2), [Z[0] <= 0], 0.0)
    # a bound that is 1e-3 away, with a normal of length 2
    found = proved(gs.square(Z[0] - 2) + Z[1] ** 2, [0.999, 0.0], bounds=[(0, 1), (-1, 1)])
    assert found is None or found.gap >= 1.001**2 - 1


def test_only_feasible_points_count() -> None:
    F, limits = -Z[0] + abs(Z[1]), {"bounds": [(-1, 1), (None, None)]}
    assert proved(F, [1.0, 0.0], **limits).gap == 0  # f(5, 0) is lower, and outside


def test_a_pivot_that_is_not_feasible_is_never_strict() -> None:
    F = gs.square(Z[0] - 3) + Z[1] ** 2
    found = proved(F, [1.0 + 2.0**-30, 0.0], **DISC)
    assert found.violation >= 2.0**-29
    assert not found.strict
    assert found.gap >= 2.0**-29  # what the penalty charges for it
    forged = replace(found, strict=True, within=1.0)
    assert "pivot" in {c.name for c in forged.verify(F, **DISC).checks if not c.ok}


@pytest.fixture(scope="module")
def corner() -> gs.MinimumCertificate:
    limits = {**CORNER, **LINE}
    return proved(gs.square(Z[0] - 2) + abs(Z[1]), [1.0, 0.0], **limits)


FORGED: list[tuple[dict[str, Any], str]] = [
    ({"penalties": None}, "penalties"),
    ({"penalties": np.ones(2)}, "penalties"),
    ({"penalties": np.array([-1.0, 1.0, 1.0])}, "penalties"),
    ({"penalties": np.array([2.0**-9, 2.0**-9, 2.0**-9])}, "multipliers"),
    ({"multipliers": np.array([7.0])}, "multipliers"),
    ({"multipliers": None}, "multipliers"),
    ({"normal": np.array([7.0, 0.0])}, "multipliers"),
    ({"violation": -1.0}, "numbers"),
    ({"supports": ()}, "curvature"),
    ({"x": np.array([1.0 + 2.0**-20, 0.0]), "delta": 1.0}, "bounds"),
    ({"x": np.array([0.5, 0.25]), "delta": 1.0}, "feasibility"),
]


@pytest.mark.parametrize(("fields", "name"), FORGED)
def test_forged_fields_are_named(corner: Any, fields: dict[str, Any], name: str) -> None:
    F, limits = gs.square(Z[0] - 2) + abs(Z[1]), {**CORNER, **LINE}
    assert corner.verify(F, **limits).ok
    found = replace(corner, **fields).verify(F, **limits)
    assert name in {check.name for check in found.checks if not check.ok}


def test_a_claim_belongs_to_its_limits(corner: Any, tmp_path: Path) -> None:
    F, limits = gs.square(Z[0] - 2) + abs(Z[1]), {**CORNER, **LINE}
    assert gs.load_certificate(corner.save(tmp_path / "c")).verify(F, **limits).ok
    assert not corner.verify(F).ok
    assert not corner.verify(F, **CORNER).ok
    assert not corner.verify(F, bounds=[(0, 3), (0, 1)], **LINE).ok
    with pytest.raises(gs.InputError, match="not about these bounds and constraints"):
        corner.export(tmp_path / "proof", F)
    assert Path(corner.export(tmp_path / "proof", F, **limits)).exists()


def test_unique_needs_a_convex_feasible_set() -> None:
    F, ring = gs.sum(gs.square(Z)), {"constraints": [Z[0] ** 2 >= 1]}
    found = proved(F, [1.0, 0.0], **ring)  # (-1, 0) is as low
    assert found is None or not found.unique
    assert proved(F, [0.5, 0.5], **LINE).unique


def test_no_feasible_point_is_lower_than_claimed() -> None:
    """Random problems inside random limits, attacked at random feasible points."""
    rng, claims = np.random.default_rng(5), 0
    for _ in range(2):
        A, b = rng.integers(-2, 3, (3, 2)).astype(float), rng.integers(-2, 3, 3).astype(float)
        signs = rng.choice([-1.0, 1.0, 2.0], 3)
        F = gs.sum(signs * abs(A @ Z + b)) + rng.choice([-0.5, 0.5, 1.0]) * Z[0] * Z[1]
        row = rng.integers(-2, 3, 2).astype(float)
        limits = {
            "bounds": [(-1, 1), (-1, 1)],
            "constraints": [gs.sum(row * Z) <= 1, Z[0] ** 2 + Z[1] ** 2 <= 1.5],
        }
        points = rng.uniform(-1, 1, (400, 2))
        points = np.concatenate([points, rng.choice([-1.0, 0.0, 0.5, 1.0], (40, 2))])
        good = points[(points @ row <= 1) & ((points**2).sum(axis=1) <= 1.5)]
        values = np.array([F.value(z) for z in good])
        best = good[values.argmin()]
        for x in (best, np.round(best), np.clip(np.round(2 * best) / 2, -1, 1)):
            problem = limits_of(x, limits["bounds"], limits["constraints"])
            for found in (
                prove_minimum(F.program(), x, x.tolist(), problem=problem),
                with_gap(F.program(), x, x.tolist(), 0.5, problem),
            ):
                if found is None:
                    continue
                claims += 1
                assert found.verify(F, **limits).ok
                near = np.linalg.norm(good - x, axis=1) <= min(found.radius, math.inf)
                assert (values[near] >= F.value(x) - found.gap - 1e-12).all()
    assert claims > 2
