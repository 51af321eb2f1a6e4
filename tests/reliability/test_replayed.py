"""Instances of the adversary that once failed: false claims, successes that a check refused."""

from __future__ import annotations

import pytest
from benchmarks.adversary.suite import attacks


@pytest.mark.parametrize(
    ("attack", "seed", "index"),
    [
        # Two points with all the weight were chosen after the look at how fine f is.
        ("success", 426101, 110),
        # Heavy points were as near to a kink as a check displaces them.
        ("success", 880003, 213),
        ("success", 880004, 47),
        # Another rounding of A @ x changed gradients by more than a hundredth of eps.
        ("machines", 1905000, 23),
        # A gradient that vanishes in a thin cone refused the claim of whoever met it by chance.
        ("thin-cones", 1903000, 115),
        # A point of a lie was left behind as one next to a kink, and displaced within the lie.
        ("wrong-gradients", 880001, 28),
        # A claim about f + h was not checked as a whole before it was stated.
        ("success", 771001, 421),
        # 3e-11 was stated where 0.09 was asked for: one check of 40 found four times as much.
        ("success", 31601, 19),
        # A slope that overflows raised ValueError, in `verify` as well.
        ("minimum-nodes", 7111902, 97),
        # A curvature that overflows had no eigenvalues: LinAlgError.
        ("minimum-nodes", 26112008, 15),
        # Boxes around points of a claim from values that float64 does not see.
        ("success", 26112301, 807),
    ],
)
def test_what_once_failed(attack: str, seed: int, index: int) -> None:
    for one in attacks()[attack].run(seed, [index]):
        assert not one.faults, str(one)
