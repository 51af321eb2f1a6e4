"""Points that are Goldstein stationary, yet far from any stationary point."""

from __future__ import annotations

import math
from typing import Any

from goldstein.errors import InputError
from goldstein.problems.forms import plane_pair, sign
from goldstein.problems.problem import Instance
from goldstein.problems.registry import family

problem = family("counterexamples")


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

    def both(a: float, b: float) -> Any:
        return (2.0 * abs(a), (2.0 * sign(a), 0.0)) if 2.0 * abs(a) >= b else (b, (0.0, 1.0))

    return Instance([0.0, 2.0 * delta], plane_pair(both))


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

    def both(a: float, b: float) -> Any:
        sine, along = math.sin(rate * b), 2.0 * delta + a
        return along * sine, (sine, rate * along * math.cos(rate * b))

    return Instance([0.0, 0.0], plane_pair(both))
