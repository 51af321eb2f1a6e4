"""Points that are Goldstein stationary, yet far from any stationary point."""

from __future__ import annotations

import math

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError
from goldstein.problems.problem import Instance, Objective
from goldstein.problems.registry import problem

FAMILY = "counterexamples"


def _positive(name: str, delta: float) -> float:
    if not (math.isfinite(delta) and delta > 0.0):
        raise InputError(f"{name}: delta = {delta!r} is not possible; use a number > 0.")
    return float(delta)


@problem(
    2, "max{2x1, -2x1, x2}", "Tian, Zhou, So (2022), ICML, PMLR 162, Prop. 2.7", convex=True,
    reference=0.0,
    note="(0, 2 delta) is (0, delta)-Goldstein stationary; every Clarke subgradient in its"
    " delta-ball has norm at least 2/sqrt(5)",
)  # fmt: skip
def convex_polyhedron(delta: float = 0.5) -> Instance:
    """Even a convex polyhedral function separates the two notions, at x0 = (0, 2 delta)."""
    delta = _positive("convex_polyhedron", delta)

    def value(x: Vector) -> float:
        a, b = x.tolist()
        return float(max(2.0 * abs(a), b))

    def gradient(x: Vector) -> Vector:
        a, b = x.tolist()
        if 2.0 * abs(a) >= b:
            return np.array([2.0 if a >= 0.0 else -2.0, 0.0])
        return np.array([0.0, 1.0])

    return Instance(np.array([0.0, 2.0 * delta]), Objective(value, gradient))


@problem(
    2, "(2 delta+x1) sin(pi x2/(2 delta))",
    "Kornowski, Shamir (2022), J. Mach. Learn. Res. 23(314), Prop. 21", smooth=True, bounded=False,
    best=None, kind="none",
    note="0 is (0, delta)-Goldstein stationary: the gradients at (0, delta) and (0, -delta)"
    " cancel; the gradient has norm at least 1 on the delta-ball",
)  # fmt: skip
def kornowski_shamir(delta: float = 0.5) -> Instance:
    """A smooth function that separates the two notions at x0 = 0; for certificates only."""
    delta = _positive("kornowski_shamir", delta)
    rate = math.pi / (2.0 * delta)

    def value(x: Vector) -> float:
        a, b = x.tolist()
        return float((2.0 * delta + a) * math.sin(rate * b))

    def gradient(x: Vector) -> Vector:
        a, b = x.tolist()
        return np.array([math.sin(rate * b), rate * (2.0 * delta + a) * math.cos(rate * b)])

    return Instance(np.zeros(2), Objective(value, gradient))
