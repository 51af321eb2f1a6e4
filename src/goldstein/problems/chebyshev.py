"""Nesterov's Chebyshev-Rosenbrock functions: one smooth, two not."""

from __future__ import annotations

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.problems.forms import signs
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import AnyDimension, problem

FAMILY = "chebyshev-rosenbrock"
SOURCE = "Gurbuzbalaban, Overton (2012), Nonlinear Anal. 75, 1282-1289 (functions by Nesterov)"
ANY = AnyDimension(2)


def _start(d: int) -> Vector:
    x = np.ones(d)
    x[0] = -1.0
    return x


def _chebyshev(x: Vector) -> Vector:
    return np.asarray(x[1:] - 2.0 * x[:-1] ** 2 + 1.0)


def _folded(x: Vector) -> Vector:
    return np.asarray(x[1:] - 2.0 * np.abs(x[:-1]) + 1.0)


@problem(
    ANY, "(x1-1)^2/4+sum_{i<d} (x_{i+1}-2x_i^2+1)^2", SOURCE, smooth=True,
    reference=4.6407207939954835e-29, note="very long curved valley",
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_smooth(d: int = 5) -> Instance:
    """The smooth variant; unique minimiser at all ones."""

    def value(x: Vector) -> float:
        r = _chebyshev(x)
        return float(0.25 * (x[0] - 1.0) ** 2 + r @ r)

    def gradient(x: Vector) -> Vector:
        r = _chebyshev(x)
        g = np.zeros(x.size)
        g[0] = 0.5 * (x[0] - 1.0)
        g[1:] += 2.0 * r
        g[:-1] -= 8.0 * r * x[:-1]
        return g

    return Instance(_start(d), Objective(value, gradient))


@problem(
    ANY, "(x1-1)^2/4+sum_{i<d} |x_{i+1}-2x_i^2+1|", SOURCE, reference=2.2193366726374907e-08,
    note="one stationary point; x0 lies on every kink",
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_1(d: int = 3) -> Instance:
    """First nonsmooth variant: regular, one stationary point."""

    def value(x: Vector) -> float:
        return float(0.25 * (x[0] - 1.0) ** 2 + np.sum(np.abs(_chebyshev(x))))

    def gradient(x: Vector) -> Vector:
        s = signs(_chebyshev(x))
        g = np.zeros(x.size)
        g[0] = 0.5 * (x[0] - 1.0)
        g[1:] += s
        g[:-1] -= 4.0 * s * x[:-1]
        return g

    return Instance(_start(d), Objective(value, gradient))


@problem(
    ANY, "|x1-1|/4+sum_{i<d} |x_{i+1}-2|x_i|+1|", SOURCE, reference=2.7755575615628914e-17,
    note="2^(d-1) Clarke stationary points, one minimiser",
)  # fmt: skip
def nesterov_chebyshev_rosenbrock_2(d: int = 3) -> Instance:
    """Second nonsmooth variant: many Clarke stationary points that are no minimisers."""

    def value(x: Vector) -> float:
        return float(0.25 * abs(x[0] - 1.0) + np.sum(np.abs(_folded(x))))

    def gradient(x: Vector) -> Vector:
        s = signs(_folded(x))
        g = np.zeros(x.size)
        g[0] = 0.25 if x[0] >= 1.0 else -0.25
        g[1:] += s
        g[:-1] -= 2.0 * s * signs(x[:-1])
        return g

    return Instance(_start(d), Objective(value, gradient))
