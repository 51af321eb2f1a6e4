"""The triple (delta, eta, kappa) of an outer Lipschitz continuous subdifferential."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from goldstein.errors import InputError


@dataclass(frozen=True)
class OuterLipschitz:
    """A claim about a subdifferential: near every point, one pivot controls a whole ball.

    For every `x` there is a pivot `y` with `|y - x| <= pivot_radius` such that
    `dF(z) subset dF(y) + modulus |z - y| B` for all `z` with `|z - x| <= reach`. Both balls are
    closed. The claim stays true when `pivot_radius` grows, `reach` shrinks or `modulus` grows.

    Parameters
    ----------
    pivot_radius : float
        delta >= 0: how far the pivot may lie from the point.
    reach : float
        eta > 0, possibly infinite: radius of the ball that the pivot controls.
    modulus : float
        kappa >= 0.

    Examples
    --------
    >>> relu = OuterLipschitz(pivot_radius=0.1, reach=0.1, modulus=0.0)
    >>> relu.implies(OuterLipschitz(0.2, 0.05, 1.0))
    True
    >>> delta, eta, kappa = relu
    >>> eta
    0.1
    """

    pivot_radius: float
    reach: float
    modulus: float

    def __post_init__(self) -> None:
        for name in ("pivot_radius", "reach", "modulus"):
            object.__setattr__(self, name, float(getattr(self, name)))
        if not (self.pivot_radius >= 0.0 and math.isfinite(self.pivot_radius)):
            raise InputError(
                f"pivot_radius is {self.pivot_radius}, expected a finite number >= 0; it is the "
                "distance from a point to its pivot."
            )
        if not self.reach > 0.0:
            raise InputError(
                f"reach is {self.reach}, expected a number > 0 (inf for a smooth function); it is "
                "the radius of the ball that a pivot controls."
            )
        if not (self.modulus >= 0.0 and math.isfinite(self.modulus)):
            raise InputError(
                f"modulus is {self.modulus}, expected a finite number >= 0; where no global "
                "bound exists, restrict the function to a bounded domain."
            )

    def __iter__(self) -> Iterator[float]:
        return iter((self.pivot_radius, self.reach, self.modulus))

    def implies(self, weaker: OuterLipschitz) -> bool:
        """Return True when monotonicity alone turns this claim into `weaker`."""
        return (
            self.pivot_radius <= weaker.pivot_radius
            and self.reach >= weaker.reach
            and self.modulus <= weaker.modulus
        )
