"""Loops over vectors that Numba turns into vector instructions."""

from __future__ import annotations

import math
from typing import Any

from goldstein.solvers.compiled.jit import kernel


@kernel
def dot(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.size):
        total += a[i] * b[i]
    return total


@kernel
def length(a: Any) -> Any:
    return math.sqrt(dot(a, a))


@kernel
def distance(a: Any, b: Any) -> Any:
    total = 0.0
    for i in range(a.size):
        total += (a[i] - b[i]) * (a[i] - b[i])
    return math.sqrt(total)


@kernel
def copy(source: Any, target: Any) -> None:
    for i in range(source.size):
        target[i] = source[i]


@kernel
def fill(value: Any, target: Any) -> None:
    for i in range(target.size):
        target[i] = value


@kernel
def add_multiple(factor: Any, a: Any, target: Any) -> None:
    for i in range(a.size):
        target[i] += factor * a[i]


@kernel
def scale(factor: Any, target: Any) -> None:
    for i in range(target.size):
        target[i] *= factor


@kernel
def move(x: Any, factor: Any, direction: Any, target: Any) -> None:
    """Set target = x + factor direction."""
    for i in range(x.size):
        target[i] = x[i] + factor * direction[i]


@kernel
def largest(a: Any) -> Any:
    """Return the largest absolute value."""
    top = 0.0
    for i in range(a.size):
        if abs(a[i]) > top:
            top = abs(a[i])
    return top
