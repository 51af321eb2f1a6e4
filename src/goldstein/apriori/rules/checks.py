"""Argument checks shared by the rules."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from goldstein.apriori.outer_lipschitz import OuterLipschitz
from goldstein.errors import InputError


def nonnegative(value: float, name: str) -> float:
    """Return a finite nonnegative number as a float, or refuse it by name."""
    number = float(value)
    if not (number >= 0.0 and math.isfinite(number)):
        raise InputError(
            f"{name} is {number}, expected a finite number >= 0; where no global bound exists, "
            "give one that holds on a bounded domain."
        )
    return number


def positive(value: float, name: str) -> float:
    """Return a finite positive number as a float, or refuse it by name."""
    if nonnegative(value, name) == 0.0:
        raise InputError(f"{name} is 0, expected a number > 0.")
    return float(value)


def nonnegatives(values: Iterable[float], name: str) -> list[float]:
    """Return finite nonnegative numbers as floats, or refuse the first bad one."""
    return [nonnegative(value, f"entry {index} of {name}") for index, value in enumerate(values)]


def some_triples(triples: Sequence[OuterLipschitz]) -> list[OuterLipschitz]:
    """Return a nonempty list of triples."""
    parts = list(triples)
    if not parts:
        raise InputError("got no triples, expected at least one summand.")
    return parts
