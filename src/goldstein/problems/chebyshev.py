"""Nesterov's Chebyshev-Rosenbrock functions: one smooth, two not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import sign, signs, together
from goldstein.problems.problem import Instance
from goldstein.problems.registry import AnyDimension, family

problem = family(
    "chebyshev-rosenbrock",
    "Gurbuzbalaban, Overton (2012), Nonlinear Anal. 75, 1282-1289 (functions by Nesterov)",
)
ANY = AnyDimension(2)
#: The sum of a term of neighbours, what x_i loses and x_{i+1} gains in the gradient.
Tail = Callable[[Vector, Vector], tuple[Any, Vector, Vector]]


def _instance(d: int, head: Callable[[float], tuple[float, float]], tail: Tail) -> Instance:
    """head(x1) + sum tail(x_i, x_{i+1}), from (-1, 1, ..., 1)."""

    def both(x: Vector) -> Any:
        first, slope = head(x[0])
        rest, left, right = tail(x[:-1], x[1:])
        g = np.zeros(x.size)
        g[0] = slope
        g[1:] += right
        g[:-1] -= left
        return first + rest, g

    x0 = np.ones(d)
    x0[0] = -1.0
    return Instance(x0, together(both))


def _parabola(t: float) -> tuple[float, float]:
    return 0.25 * (t - 1.0) ** 2, 0.5 * (t - 1.0)


@problem(
    ANY, "(x1-1)^2/4+sum_{i<d} (x_{i+1}-2x_i^2+1)^2", smooth=True,
    reference=4.6407207939954835e-29, note="very long curved valley",
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_smooth(d: int = 5) -> Instance:
    """The smooth variant; unique minimiser at all ones."""

    def tail(a: Vector, b: Vector) -> tuple[Any, Vector, Vector]:
        r = b - 2.0 * a**2 + 1.0
        return r @ r, 8.0 * r * a, 2.0 * r

    return _instance(d, _parabola, tail)


@problem(
    ANY, "(x1-1)^2/4+sum_{i<d} |x_{i+1}-2x_i^2+1|", reference=2.2193366726374907e-08,
    note="one stationary point; x0 lies on every kink",
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_1(d: int = 3) -> Instance:
    """First nonsmooth variant: regular, one stationary point."""

    def tail(a: Vector, b: Vector) -> tuple[Any, Vector, Vector]:
        r = b - 2.0 * a**2 + 1.0
        return np.sum(np.abs(r)), 4.0 * signs(r) * a, signs(r)

    return _instance(d, _parabola, tail)


@problem(
    ANY, "|x1-1|/4+sum_{i<d} |x_{i+1}-2|x_i|+1|", reference=2.7755575615628914e-17,
    note="2^(d-1) Clarke stationary points, one minimiser",
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_2(d: int = 3) -> Instance:
    """Second nonsmooth variant: many Clarke stationary points that are no minimisers."""

    def tail(a: Vector, b: Vector) -> tuple[Any, Vector, Vector]:
        r = b - 2.0 * np.abs(a) + 1.0
        return np.sum(np.abs(r)), 2.0 * signs(r) * signs(a), signs(r)

    return _instance(d, lambda t: (0.25 * abs(t - 1.0), 0.25 * sign(t - 1.0)), tail)
