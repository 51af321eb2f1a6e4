"""Goldstein claims, true ones and forged ones: each threshold just inside and just outside.

All claims are about a black box on the line: 1 or -1, a side of a kink at 0 each, where nothing
else is said. A forged claim is refused by the check that names the lie, and by no other.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tests.forging import Forgery, bad_entries, bad_numbers

import goldstein as gs
from goldstein.certificates import GoldsteinCertificate
from goldstein.checker import sampled
from goldstein.checker.constrained.limits import as_box
from goldstein.checker.function import Asked
from goldstein.checker.verification import Verification
from goldstein.errors import GoldsteinError, KinkError

HONEST = GoldsteinCertificate(
    x=[0.0], delta=0.125, eps=0.0, points=[[-0.125], [0.125]], gradients=[[-1.0], [1.0]],
    weights=[0.5, 0.5],
)  # fmt: skip
SLOPE = GoldsteinCertificate([0.0], 0.5, 1.0, [[0.25]], [[1.0]], [1.0])


def even(rows: Any, cone: Any) -> Any:
    return np.full(len(rows), 1.0 / len(rows)), np.zeros(len(cone))


class Slopes:
    """A black box of which nothing is known but gradients."""

    has_value = False

    def __init__(self, gradient: Any) -> None:
        self.gradient = gradient


def check(
    claim: GoldsteinCertificate, gradient: Any = np.sign, known: gs.Expression | None = None
) -> Verification:
    """Check a claim about a black box, or about a function that is known."""
    f = sampled.asked(known) if known is not None else Asked(Slopes(gradient))
    d = claim.x.size
    return sampled.check(claim, sampled.Problem(f, as_box(None, d), even, [d]), 0)


FORGERY = Forgery(HONEST, check)
forged, failed = FORGERY.forged, FORGERY.failed


def test_the_honest_claims_are_true() -> None:
    found = check(HONEST)
    assert found.ok
    assert (found.eps, found.delta, found.label) == (0.0, 0.125, "conditional")
    names = ["numbers", "content", "weights", "label", "layout", "ball"]
    names += ["gradients", "bound", "kinks"]
    assert [c.name for c in found.checks] == names
    assert check(SLOPE).ok


@bad_entries
@pytest.mark.parametrize("name", ["x", "points", "gradients", "weights"])
def test_arrays_are_finite(name: str, bad: float) -> None:
    assert failed(FORGERY.spoiled(name, bad)) == {"numbers"}


@bad_numbers
@pytest.mark.parametrize("name", ["eps", "delta"])
def test_numbers_are_finite_and_not_negative(name: str, bad: float) -> None:
    assert failed(forged(**{name: bad})) == {"numbers"}


def test_a_claim_needs_a_gradient() -> None:
    nothing = np.zeros((0, 1))
    empty = forged(points=nothing, gradients=nothing, weights=[])
    assert failed(empty) == {"numbers"}


def test_a_changed_field_shows() -> None:
    assert failed(replace(HONEST, eps=0.5)) == {"content"}


@pytest.mark.parametrize(
    "weights", [[0.5, 0.5 + 1.01e-9], [0.5, 0.5 - 1.01e-9], [1.0, -(2.0**-1074)], [1e308, 1e308]]
)
def test_weights_that_are_not_convex(weights: list[float]) -> None:
    assert failed(forged(weights=weights, eps=1.0)) == {"weights"}


@pytest.mark.parametrize("weights", [[0.5, 0.5 + 0.99e-9], [0.5, 0.5 - 0.99e-9]])
def test_weights_that_are_convex_up_to_rounding(weights: list[float]) -> None:
    assert check(forged(weights=weights, eps=1e-8)).ok


def test_labels() -> None:
    assert check(forged(label="estimated")).ok
    for label in ("certified", "refuted"):
        assert failed(forged(label=label)) == {"label"}


def test_the_ball_is_closed_and_no_larger() -> None:
    assert failed(forged(delta=math.nextafter(0.125, 0.0))) == {"ball"}
    far = [[-0.125], [math.nextafter(0.125, 1.0)]]
    assert failed(forged(points=far)) == {"ball"}
    assert failed(forged(points=[[math.nextafter(-0.125, -1.0)], [0.125]])) == {"ball"}
    assert failed(forged(points=[[-0.0625], [0.25]])) == {"ball"}
    assert failed(forged(points=[[-0.25], [0.0625]])) == {"ball"}
    assert check(forged(delta=0.25)).delta < 0.126  # what was found, not what was claimed


def test_the_radius_is_decided_exactly() -> None:
    """No float bound tells these two apart: 3-4-5 on a grid of 2^-60."""
    side = 2.0**-60
    claim = GoldsteinCertificate(
        [0.0, 0.0], 5 * side, 0.0, [[3 * side, 4 * side], [-3 * side, -4 * side]],
        [[1.0, 1.0], [-1.0, -1.0]], [0.5, 0.5],
    )  # fmt: skip
    assert check(claim).ok
    assert check(claim).delta == 5 * side
    assert failed(forged(claim, delta=math.nextafter(5 * side, 0.0))) == {"ball"}


def test_points_without_weight_say_nothing() -> None:
    extra = forged(
        points=[*HONEST.points, [9.0]],
        gradients=[*HONEST.gradients, [7.0]],
        weights=[0.5, 0.5, 0.0],
    )
    assert check(extra).ok


def test_gradients_asked_again_are_the_same() -> None:
    """A hundredth of eps, and 1e-9 of their length, are allowed: machines round differently."""
    for off in (0.00999, -0.00999):
        assert check(forged(SLOPE, gradients=[[1.0 + off]])).ok
    for off in (0.0101, -0.0101):
        assert failed(forged(SLOPE, gradients=[[1.0 + off]])) == {"gradients"}
    for off, allowed in ((0.99e-9, True), (1.01e-9, False)):
        claim = forged(gradients=[[-1.0 - off], [1.0 + off]])
        assert failed(claim) == (set() if allowed else {"gradients"})


def test_the_bound_is_recomputed() -> None:
    assert check(forged(SLOPE, eps=1.0 - 1e-14)).ok  # another machine sums in another order
    assert failed(forged(SLOPE, eps=1.0 - 1e-12)) == {"bound"}
    found = check(forged(SLOPE, eps=0.5))
    assert {c.name for c in found.checks if not c.ok} == {"bound"}
    assert found.eps == pytest.approx(1.0)
    assert [c.name for c in found.checks][-1] == "bound"  # nothing is asked after that


def on_and_off(on: float, off: float) -> Any:
    """A gradient that is something else at the stored point than beside it."""
    return lambda y: np.array([on if y[0] == 0.25 else off])


def test_what_holds_at_a_point_holds_beside_it() -> None:
    """A part of 2^-40 is curvature."""
    found = check(SLOPE, on_and_off(1.0, 1.0 + 0.9 * 2.0**-40))
    assert found.ok
    assert found.eps < 1.0 + 2.0**-41  # that of the stored points
    found = check(SLOPE, on_and_off(1.0, 1.0 + 1.3 * 2.0**-40))
    assert {c.name for c in found.checks if not c.ok} == {"kinks"}
    found = check(forged(SLOPE, eps=0.0, gradients=[[0.0]]), on_and_off(0.0, 2.0))
    assert {c.name for c in found.checks if not c.ok} == {"kinks"}
    assert found.eps == pytest.approx(2.0)


def test_a_ball_without_room() -> None:
    """Where no float is left to look beside a point, only a function that knows is believed."""
    claim = forged(SLOPE, x=[2.0**44], points=[[2.0**44]], delta=1.0)
    assert failed(claim) == {"kinks"}
    assert check(claim, known=gs.sum(gs.abs(gs.Variable(1)))).ok
    wide = forged(claim, delta=1.0 + 2.0**-40)
    assert check(wide).ok


def test_a_point_as_its_own_ball() -> None:
    claim = forged(SLOPE, x=[0.0], points=[[0.0]], delta=0.0)
    always_one: Any = np.ones_like
    assert failed(claim, always_one) == {"kinks"}
    assert check(claim, known=gs.sum(gs.Variable(1))).ok
    # At a kink a function that is known has no gradient.
    assert failed(claim, known=gs.sum(gs.abs(gs.Variable(1)))) == {"gradients"}


@pytest.mark.parametrize("error", [KinkError, GoldsteinError])
def test_a_function_that_does_not_answer(error: type[Exception]) -> None:
    def gradient(y: Any) -> Any:
        raise error("no")

    found = check(SLOPE, gradient)
    assert {c.name for c in found.checks if not c.ok} == {"gradients"}
    assert found.eps == math.inf


def test_another_layout() -> None:
    found = check(replace(HONEST, layout=[1, 1], digest=""))
    assert {c.name for c in found.checks if not c.ok} == {"layout"}


def test_a_function_that_is_known_answers_with_exact_gradients() -> None:
    """factor |w| where 1 is stored: a hundredth of eps is allowed, and 1e-9 of the length."""

    def known(factor: float, **fields: Any) -> Verification:
        return check(forged(SLOPE, **fields), known=factor * gs.sum(gs.abs(gs.Variable(1))))

    assert known(1.0).ok
    assert {c.name for c in known(1.0, eps=1.0 - 1e-12).checks if not c.ok} == {"bound"}
    for factor, names in ((1.0099, set()), (1.0103, {"gradients"})):
        lost = known(factor, eps=1.02)
        assert {c.name for c in lost.checks if not c.ok} == names
        assert lost.eps == pytest.approx(factor)
    assert not known(2.0, eps=0.0, gradients=[[0.0]]).ok
    nothing = known(0.0, eps=0.0, gradients=[[0.0]])
    assert nothing.ok
    assert nothing.eps == 0.0


def test_a_point_without_weight_does_not_hide_a_wrong_gradient() -> None:
    """It is on a kink, where nothing can be compared."""
    two = {"points": [[0.25], [0.0]], "gradients": [[1.0], [0.0]], "weights": [1.0, 0.0]}
    steep = gs.sum(gs.abs(gs.Variable(1)))
    assert check(forged(SLOPE, **two), known=steep).ok
    assert not check(forged(SLOPE, **two), known=2.0 * steep).ok
