"""The indicator function of a simplex: shares that sum to a total."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.prox.term import Term, plain, weight_of

#: Sums of shares are exact up to this part of the total.
ROUNDING = 2.0**-40


class Simplex(Term):
    """h(x) = 0 where x >= 0 and sum x = total, infinity elsewhere."""

    name = "simplex"

    def __init__(self, total: float = 1.0) -> None:
        self.total = weight_of("total", total)
        if self.total.size != 1 or self.total[0] == 0.0:
            raise InputError(f"simplex: total must be one positive number, got {total!r}.")

    def value(self, x: Vector) -> float:
        total = float(self.total[0])
        exact = abs(math.fsum([*x.tolist(), -total])) <= ROUNDING * total
        return 0.0 if exact and (x >= 0).all() else math.inf

    def prox(self, x: Vector, step: float) -> Vector:
        total = float(self.total[0])
        falling = np.sort(x)[::-1]
        levels = (np.cumsum(falling) - total) / np.arange(1, x.size + 1)
        last = int(np.flatnonzero(falling > levels)[-1]) if (falling > levels).any() else 0
        z: Vector = np.maximum(x - levels[last], 0.0) + 0.0
        # What rounding left over goes to the largest entry.
        largest = int(z.argmax())
        z[largest] += total - math.fsum(z.tolist())
        return z

    def subgradient(self, x: Vector, wish: Vector) -> Vector:
        support = x > 0
        common = list(wish[support].tolist())
        # Entries that are 0 may have less than the others, not more.
        for other in sorted(wish[~support].tolist(), reverse=True):
            if other <= math.fsum(common) / max(len(common), 1):
                break
            common.append(other)
        level = math.fsum(common) / max(len(common), 1)
        return np.where(support, level, np.minimum(wish, level))

    def record(self) -> dict[str, Any]:
        return {"total": plain(self.total)}

    def check(self, size: int) -> None:
        pass

    def limits(self, size: int) -> dict[str, Any]:
        total = float(self.total[0])
        whole = {
            "type": "eq",
            "fun": lambda x: np.array([x.sum() - total]),
            "jac": lambda x: np.ones((1, x.size)),
        }
        return {"bounds": [(0.0, None)] * size, "constraints": [whole]}

    def structure(self, x: Vector) -> str:
        return f"{int((x == 0.0).sum())} of {x.size} shares are 0"


def simplex(total: float = 1.0) -> Term:
    """Return the indicator function of x >= 0, sum x = total.

    Parameters
    ----------
    total : float

    Examples
    --------
    >>> import goldstein as gs
    >>> gs.prox.simplex().prox(np.array([0.75, 0.75, -3.0]), 1.0)
    array([0.5, 0.5, 0. ])
    """
    return Simplex(total)
