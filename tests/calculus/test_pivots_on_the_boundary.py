"""The ball that a pivot controls is closed: a kink exactly at the reach is met, exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from tests import theorems
from tests.theorems import max_pivot

import goldstein as gs
from goldstein.apriori.explain import Arrangement

#: Rows of rational length, so that the boundary can be hit exactly.
ROWS: list[tuple[list[float], Any]] = [
    ([1.0], 1),
    ([-2.0], 2),
    ([3.0, 4.0], 5),
    ([0.75, -1.0], Fraction(5, 4)),
    ([2.0, 3.0, 6.0], 7),
]
SIDES = {"inside": -1, "on the boundary": 0, "outside": 1}
TINY = Fraction(1, 2**80)


def in_two_floats(value: Fraction) -> tuple[float, float]:
    """Write a number as the sum of two floats, if it has few enough digits."""
    first = float(value)
    rest = float(value - Fraction(first))
    assert Fraction(first) + Fraction(rest) == value
    return first, rest


def with_value(row: list[float], x: np.ndarray, target: Fraction) -> Any:
    """Return row . w + b, with b such that its value at x is the target, exactly."""
    value = sum((Fraction(a) * Fraction(v) for a, v in zip(row, x.tolist())), Fraction(0))
    # Digits of the sum beyond two floats go into a third.
    first = float(target - value)
    second, third = in_two_floats(target - value - Fraction(first))
    return np.array([row]) @ gs.Variable(len(row)) + first + second + third


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize(("row", "length"), ROWS)
@pytest.mark.parametrize("seed", range(4))
def test_a_kink_is_met_up_to_the_boundary_and_no_further(
    seed: int, row: list[float], length: Any, side: str
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(len(row))
    radius = float(rng.uniform(0.05, 0.2))
    plain = gs.sum(gs.relu(np.array([row]) @ gs.Variable(len(row))))
    reach = Fraction(plain.outer_lipschitz(pivot_radius=radius).reach)
    sign = rng.choice([-1, 1]).item()
    target = sign * (reach * length + SIDES[side] * TINY)
    F = gs.sum(gs.relu(with_value(row, x, target)))
    assert Fraction(F.outer_lipschitz(pivot_radius=radius).reach) == reach
    y = F.pivot(x, pivot_radius=radius)
    if side == "outside":
        np.testing.assert_array_equal(y, x)
    else:
        assert abs(with_value(row, x, target)(y)[0]) <= 1e-14
        assert np.linalg.norm(y - x) <= radius * (1 + 1e-12)


@pytest.mark.parametrize("side", SIDES)
def test_kinks_that_are_no_floats(side: str) -> None:
    # The kink at 1/3 is that of the function, not the float next to it.
    F = gs.sum(gs.capped_l1(gs.Variable(1), Fraction(1, 3)))
    reach = F.outer_lipschitz(pivot_radius=0.1).reach
    low = math.nextafter(float(Fraction(1, 3) - Fraction(reach)), 0.0)
    while Fraction(1, 3) - Fraction(low) > Fraction(reach):
        low = math.nextafter(low, 1.0)
    # `low` is the first float whose ball meets the kink.
    x = {"inside": math.nextafter(low, 1.0), "on the boundary": low}.get(side, 0.0)
    x = x or math.nextafter(low, 0.0)
    moved = F.pivot(np.array([x]), pivot_radius=0.1)[0] != x
    assert moved == (side != "outside")


@pytest.mark.parametrize("side", SIDES)
def test_entries_of_a_maximum_that_just_tie_in_the_ball(side: str) -> None:
    F = gs.max(gs.Variable(2))
    reach = F.outer_lipschitz(pivot_radius=0.2).reach
    (group,) = (g for part in Arrangement(F).components for g in part.groups)
    # Gap^2 = 2 reach^2 |A|^2 has no rational solution; the next floats on either side have.
    gap = math.sqrt(2.0) * reach * group.norm
    while Fraction(gap) ** 2 <= 2 * (Fraction(reach) * Fraction(group.norm)) ** 2:
        gap = math.nextafter(gap, 1.0)
    inside = math.nextafter(gap, 0.0)
    gap = gap if side == "outside" else inside
    x = np.array([0.0, -gap])
    assert (F.pivot(x, pivot_radius=0.2)[0] != 0.0) == (side != "outside")


@pytest.mark.parametrize("seed", range(30))
def test_the_rules_on_numbers_decide_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    u, kink = rng.standard_normal(2)
    for radius in _around(abs(Fraction(u) - Fraction(kink))):
        met = abs(Fraction(u) - Fraction(kink)) <= Fraction(radius)
        assert theorems.nearest_kink_pivot(u, [kink], radius) == (kink if met else u)
    gap = Fraction(max(u, kink)) - Fraction(min(u, kink))
    for reach in _around(gap / Fraction(math.sqrt(2.0))):
        met = gap**2 <= 2 * Fraction(reach) ** 2
        assert (max_pivot(np.array([u, kink]), reach).min() != min(u, kink)) == met


def _around(number: Fraction) -> list[float]:
    near = float(number)
    return [math.nextafter(near, 0.0), near, math.nextafter(near, math.inf)]
