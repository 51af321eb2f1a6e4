"""How long a search may go on, in steps and in seconds."""

from __future__ import annotations

import math
import time

from goldstein.errors import OutOfBudget


class Budget:
    """Counts steps and watches the clock.

    Parameters
    ----------
    deadline : float, optional
        When to stop, as `time.perf_counter()` tells the time.
    max_work : int, optional
        Steps to allow; a step is about one gradient.

    Examples
    --------
    >>> budget = Budget(max_work=2)
    >>> budget.spend(2)
    >>> budget.spend()
    Traceback (most recent call last):
        ...
    goldstein.errors.OutOfBudget: stopped after 2 steps
    """

    def __init__(self, deadline: float | None = None, max_work: int | None = None) -> None:
        self._whole: Budget | None = None  # of which this one is a part
        self.begin = time.perf_counter()
        self.deadline = math.inf if deadline is None else deadline
        self.max_work = math.inf if max_work is None else max_work
        self.work = 0

    def spend(self, steps: int = 1) -> None:
        """Count steps about to be made; raise `OutOfBudget` when they are too many or too late."""
        if self._whole is not None:
            self._whole.spend(steps)
        elif self.work + steps > self.max_work:
            raise OutOfBudget(f"stopped after {self.work:,} steps")
        self.work += steps
        self.require(0.0)

    def require(self, seconds: float) -> None:
        """Raise `OutOfBudget` unless so many seconds are left."""
        now = time.perf_counter()
        if now + seconds > self.deadline:
            raise OutOfBudget(f"stopped after {now - self.begin:.2g} s")

    def half(self) -> Budget:
        """Return a part of it: half the time that is left, and all the steps."""
        part = Budget((self.deadline + time.perf_counter()) / 2)
        part._whole, part.begin = self, self.begin
        return part


__all__ = ["Budget"]
