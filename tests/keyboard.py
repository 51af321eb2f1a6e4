"""Ctrl-C at a chosen moment of a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from goldstein.oracles import CountedOracle


class Keyboard:
    """Presses Ctrl-C once, during the call of this number."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls, self.at = 0, 0
        for name in ("value", "_gradient"):
            monkeypatch.setattr(CountedOracle, name, self._watched(getattr(CountedOracle, name)))

    def _watched(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise KeyboardInterrupt
            return method(*args)

        return call
