"""Sums whose last bit does not depend on the order of the terms, freak cases aside."""

from __future__ import annotations

import torch


class LongSum:
    """A float64 sum carried to twice the precision (Knuth's two-sum, the errors added apart).

    One process and many processes add the same terms in different orders; with 106 bits the rounded
    totals agree.
    """

    def __init__(self, size: int, device: torch.device) -> None:
        self.high = torch.zeros(size, dtype=torch.float64, device=device)
        self.low = torch.zeros(size, dtype=torch.float64, device=device)

    def add(self, term: torch.Tensor) -> None:
        """Add a float64 vector."""
        total = self.high + term
        shadow = total - self.high
        self.low += (self.high - (total - shadow)) + (term - shadow)
        self.high = total

    def total(self) -> torch.Tensor:
        """Return the rounded sum."""
        return self.high + self.low
