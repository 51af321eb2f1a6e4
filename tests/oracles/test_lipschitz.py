"""The guard of L: doubling on violation (L is never believed, only used)."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from goldstein.errors import InputError
from goldstein.solvers.memory import LipschitzGuard


@given(st.floats(1e-3, 1e3), st.lists(st.floats(0.0, 1e6), max_size=20))
def test_the_guard_is_always_an_upper_bound_of_what_was_seen(
    given_value: float, norms: list[float]
) -> None:
    guard = LipschitzGuard(given_value)
    count = 0
    for norm in norms:
        before = guard.value
        raised = guard.observe(norm)
        count += raised
        assert raised == (norm > before)
        assert guard.value == (max(2 * before, norm) if raised else before)
    assert guard.value >= max(norms, default=0.0)
    assert count <= 1 + math.log2(1e6 / 1e-3)


def test_the_first_gradient_is_the_estimate() -> None:
    guard = LipschitzGuard(None)
    assert guard.observe(2.0)
    assert guard.value == 2.0


@pytest.mark.parametrize("wrong", [0.0, -1.0, math.nan, math.inf, "3", True, [1.0]])
def test_bad_constants_are_refused(wrong: Any) -> None:
    with pytest.raises(InputError, match="lipschitz must be a positive number"):
        LipschitzGuard(wrong)
