"""Near claims, true ones and forged ones: rational arithmetic leaves no room on either side."""

from __future__ import annotations

import math
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import goldstein as gs
from goldstein.checker import near
from goldstein.checker.near import bound, combined_upper, unusable
from goldstein.checker.sides import Limits
from goldstein.checker.verification import Verification
from goldstein.errors import NotCertifiableError

W = gs.Variable(2)
#: |w_1| + 2 |w_2| + w_2
F = gs.abs(W[0]) + 2.0 * gs.abs(W[1]) + W[1]
HONEST: dict[str, Any] = {
    "x": np.array([0.375, 0.5]),
    "exact_pivot": [Fraction(0), Fraction(0)],
    "directions": np.array([[1.0, 1.0], [-1.0, -1.0]]),
    "weights": np.array([1.0, 3.0]),
    "eps": 0.5 * math.sqrt(1.0),
    "delta": 0.625,
    "label": "certified",
}


def check(F: gs.Expression = F, **fields: Any) -> Verification:
    return near.check(SimpleNamespace(**(HONEST | fields)), F.program())


def failed(**fields: Any) -> set[str]:
    return {c.name for c in check(**fields).checks if not c.ok}


def test_the_honest_claim_is_true() -> None:
    """Gradients (1, 3) and (-1, -1), with weights 1 and 3: (-1/2, 0)."""
    found = check()
    assert found.ok
    assert (found.eps, found.delta, found.label) == (0.5, 0.625, "certified")
    names = ["numbers", "dimension", "ball", "subgradients", "bound", "label"]
    assert [c.name for c in found.checks] == names


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("name", ["x", "directions", "weights"])
def test_arrays_are_finite(name: str, bad: float) -> None:
    array = HONEST[name].copy()
    array.flat[-1] = bad
    assert failed(**{name: array}) == {"numbers"}


@pytest.mark.parametrize("bad", [math.nan, -(2.0**-1074), -math.inf])
@pytest.mark.parametrize("name", ["eps", "delta"])
def test_numbers_are_not_negative(name: str, bad: float) -> None:
    assert failed(**{name: bad}) == {"numbers"}


@pytest.mark.parametrize("weights", [[0.0, 0.0], [1.0, -(2.0**-1074)], [1e308, 1e308]])
def test_weights(weights: list[float]) -> None:
    assert failed(weights=np.array(weights), eps=9.0) == {"numbers"}


def test_unusable_evidence_is_named() -> None:
    x, ways = np.zeros(1), np.ones((2, 1))
    assert unusable(x, ways, np.array([1.0, 0.0])) == ""
    assert "finite" in unusable(x, ways, np.array([1.0, math.nan]))
    assert "negative" in unusable(x, ways, np.array([1.0, -1e-300]))
    assert "all 0" in unusable(x, ways, np.zeros(2))
    assert "scale" in unusable(x, ways, np.full(2, 1e308))


def test_dimensions() -> None:
    assert failed(exact_pivot=[Fraction(0)]) == {"dimension"}
    assert failed(x=np.zeros(3)) == {"dimension"}
    assert failed(F=gs.sum(gs.Variable(1))) == {"dimension"}


def test_the_ball_is_closed_and_no_larger() -> None:
    assert failed(delta=math.nextafter(0.625, 0.0)) == {"ball"}
    assert failed(x=np.array([0.375, math.nextafter(0.5, 1.0)])) == {"ball"}
    assert check(delta=math.inf).ok
    assert check(delta=1.0).delta == 0.625


def test_the_bound_is_exact() -> None:
    assert failed(eps=math.nextafter(0.5, 0.0)) == {"bound"}
    assert check(eps=math.inf).eps == 0.5


def test_directions_without_weight_say_nothing() -> None:
    ways = [*HONEST["directions"], [1.0, 0.0]]  # stays on a kink
    assert check(directions=np.array(ways), weights=np.array([1.0, 3.0, 0.0])).ok
    found = check(directions=np.array(ways), weights=np.array([1.0, 3.0, 2.0**-1074]))
    assert {c.name for c in found.checks if not c.ok} == {"subgradients"}
    assert found.eps == math.inf


def test_labels() -> None:
    for label in ("certified", "conditional", "estimated"):
        assert check(label=label).ok
    assert failed(label="refuted") == {"label"}
    assert check(eps=0.25).label == "conditional"


def test_exact_combinations_are_rounded_up() -> None:
    third = [[Fraction(1, 3)], [Fraction(-1)]]
    bound = combined_upper(np.array([3.0, 1.0]), [[Fraction(1, 3)], [Fraction(-1)]])
    assert bound == 0.0
    bound = combined_upper(np.array([1.0, 0.0]), third)
    assert Fraction(1, 3) <= Fraction(bound) <= Fraction(1, 3) * (1 + Fraction(1, 2**50))
    # One limit: its weight cancels, whatever it is.
    assert combined_upper(np.array([5.0]), [[Fraction(3), Fraction(4)]]) == 5.0
    assert combined_upper(np.array([1.0, 1.0]), [[Fraction(3)], [Fraction(4)]]) == 3.5


def test_radii_of_enclosures_count() -> None:
    """Two limits 3 and 5 with radii 0.25 and 0.5, weights 1 : 1, and the largest radius counts."""
    boxes = Limits(None, np.array([[3.0], [5.0]]), np.array([[0.25], [0.5]]))
    for weights in ([1.0, 1.0], [0.3, 0.3], [1e-300, 1e-300], [2.0**-1074, 2.0**-1074]):
        assert 4.5 <= bound(boxes, np.array(weights)) <= 4.5 * (1 + 1e-12)
        assert 6.0 <= bound(boxes, np.array(weights), 4) <= 6.0 * (1 + 1e-12)


def stated(exact: Any, mid: Any) -> gs.NearCertificate:
    limits, two = Limits(exact, mid, np.zeros(mid.shape)), np.ones(2)
    size = mid.shape[1]
    pivot = (Fraction(0),) * size
    return gs.NearCertificate.from_limits(np.zeros(size), pivot, np.ones(mid.shape), two, limits)


def test_errors_of_rounded_limits_are_stated() -> None:
    exact = [[Fraction(1, 3), Fraction(2)], [Fraction(-1, 2), Fraction(5)]]
    mid = np.array([[1 / 3, 2.0], [-0.5, 5.0]])
    shown = stated(exact, mid)
    error = abs(Fraction(1 / 3) - Fraction(1, 3))
    assert error <= Fraction(shown.errors[0]) <= error * (1 + Fraction(1, 2**50))
    assert shown.errors[1] == 0.0
    assert np.array_equal(shown.gradients, mid)


@pytest.mark.parametrize("beyond", [math.inf, -math.inf])
def test_a_limit_beyond_float64_is_refused(beyond: float) -> None:
    exact = [[Fraction(10) ** 400], [Fraction(1)]]
    with pytest.raises(NotCertifiableError, match="rescale"):
        stated(exact, np.array([[beyond], [1.0]]))
