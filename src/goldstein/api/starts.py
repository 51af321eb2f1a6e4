"""Several starts, and the best of what came of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import TypeVar

from goldstein.numerics.streams import stream
from goldstein.result import Result
from goldstein.solvers.base import CTRL_C

S = TypeVar("S")
T = TypeVar("T")


def best_of(answers: Iterable[T], value: Callable[[T], float]) -> T:
    """Return the answer of smallest value; of equal ones the first, and never one without value.

    Examples
    --------
    >>> best_of([3.0, math.nan, -1.0], value=float)
    -1.0
    """

    def key(answer: T) -> float:
        found = float(value(answer))
        return math.inf if math.isnan(found) else found

    return min(answers, key=key)


def search_from(starts: Iterable[S], search: Callable[[S], T], value: Callable[[T], float]) -> T:
    """Search from every start in turn, and return the best answer.

    Examples
    --------
    >>> search_from([-3, 2], search=abs, value=float)
    2
    """
    return best_of(map(search, starts), value)


def uninterrupted(result: Result) -> Result:
    """Return a result, unless Ctrl-C ended its run: then whatever it is a part of ends as well."""
    if result.stopped_by == CTRL_C:
        raise KeyboardInterrupt
    return result


def start_seed(seed: int, index: int) -> int:
    """Return the seed of one start: it depends on nothing but these two.

    Examples
    --------
    >>> start_seed(0, 1) == start_seed(0, 1) != start_seed(0, 2)
    True
    """
    return int(stream(seed, index, "seed of a start").integers(2**63))
