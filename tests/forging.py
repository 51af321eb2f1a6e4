"""Claims that are changed by hand, and what a check says of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from goldstein.checker.verification import Verification

#: What no array, and what no number of a claim may hold.
bad_entries = pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
bad_numbers = pytest.mark.parametrize("bad", [math.nan, math.inf, -(2.0**-1074)])


class Forgery:
    """An honest claim, and the check that is to find out what was done to it."""

    def __init__(self, honest: Any, check: Callable[..., Verification]) -> None:
        self.honest, self.check = honest, check

    def forged(self, claim: Any = None, **fields: Any) -> Any:
        """Return a claim, the honest one by default, with other fields and a seal that fits."""
        return replace(self.honest if claim is None else claim, digest="", **fields)

    def spoiled(self, name: str, bad: float) -> Any:
        """Return the honest claim with a bad entry in one of its arrays."""
        array = getattr(self.honest, name).copy()
        array.flat[-1] = bad
        return self.forged(**{name: array})

    def failed(self, *claim: Any, **how: Any) -> set[str]:
        """Return the names of the checks that a claim fails."""
        return {check.name for check in self.check(*claim, **how).checks if not check.ok}
