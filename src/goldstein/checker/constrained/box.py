"""Bounds on the variables: read as SciPy takes them, compared exactly, never left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Mask, Vector
from goldstein.checker.errors import InputError, InputTypeError
from goldstein.checker.rationals import exact_floats


@dataclass(frozen=True, eq=False)
class Box:
    """lower <= x <= upper, either side possibly infinite.

    Examples
    --------
    >>> box = Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]))
    >>> box.clip(np.array([2.0, 5.0])), box.reflect(np.array([1.25, 5.0]))
    (array([1., 5.]), array([0.75, 5.  ]))
    """

    lower: Vector
    upper: Vector

    @property
    def fixed(self) -> Mask:
        """Coordinates that cannot move."""
        return self.lower == self.upper

    def contains(self, points: NDArray[Any]) -> bool:
        """Are all points inside? Rationals are compared exactly."""
        return bool(((points >= self.lower) & (points <= self.upper)).all())

    def clip(self, point: Vector, margin: float | Vector = 0.0) -> Vector:
        """Return the nearest point of the box, or of a box with less room on all sides."""
        return np.minimum(np.maximum(point, self.lower + margin), self.upper - margin)

    def reflect(self, point: Vector) -> Vector:
        """Reflect a point at the bounds it has crossed.

        Unlike a clipped point it does not stick to a face, where functions like to have kinks; and
        it is no further from any point of the box than before.
        """
        crossed = self.clip(point)
        return self.clip(np.where(crossed == point, point, 2.0 * crossed - point))

    def normal_fits(self, normal: Vector, at: Any) -> tuple[bool, str]:
        """Is a vector normal to the bounds at a point, given in floats or rationals?"""
        for k, (n, q) in enumerate(zip(normal.tolist(), at)):
            if (n < 0 and q != self.lower[k]) or (n > 0 and q != self.upper[k]):
                return False, f"entry {k} is {n:g}, but the point is not on that bound"
        return True, "normal to the bounds"

    def normal_signs(self, x: Vector) -> tuple[Mask, Mask]:
        """Return where the normal cone at x allows negative and where positive entries."""
        return x == self.lower, x == self.upper


def as_box(bounds: Any, dim: int) -> Box:
    """Read bounds as SciPy takes them: `Bounds`, or one pair (low, high) per variable."""
    if isinstance(bounds, Box):
        sides: Any = bounds.lower, bounds.upper
        if bounds.lower.shape != (dim,):
            raise InputError(f"bounds are for {bounds.lower.size} variables, the point has {dim}.")
    elif bounds is None or (hasattr(bounds, "lb") and hasattr(bounds, "ub")):
        sides = getattr(bounds, "lb", -np.inf), getattr(bounds, "ub", np.inf)
    else:
        sides = _from_pairs(bounds, dim)
    return Box(*read_sides(sides[0], sides[1], dim, "the bounds", "variable"))


def read_sides(lower: Any, upper: Any, size: int, name: str, entry: str) -> tuple[Vector, Vector]:
    """Read lower and upper limits of so many entries, exactly: one for all, or one for each."""
    sides = []
    for side, given in (("lb", lower), ("ub", upper)):
        values = exact_floats(given, f"{name}: {side}", finite=False)
        if values.size not in (1, size):
            raise InputError(
                f"{name}: {side} has shape {values.shape}; give one number, or one for each of the "
                f"{size} {entry}s."
            )
        sides.append(np.array(np.broadcast_to(values.ravel(), size)))
    low, high = sides
    bad = np.flatnonzero(~((low <= high) & (low < np.inf) & (high > -np.inf)))
    if bad.size:
        k = int(bad[0])
        raise InputError(
            f"{name}: {entry} {k} has lb = {low[k]:g} and ub = {high[k]:g}, which no number "
            "satisfies; exchange or mend them (None or an infinity is no limit)."
        )
    return low, high


def _from_pairs(bounds: Any, dim: int) -> tuple[list[Any], list[Any]]:
    try:
        pairs = [(low, high) for low, high in bounds]
    except (TypeError, ValueError):
        raise InputTypeError(
            "bounds must be a scipy.optimize.Bounds, or a list with one pair (low, high) for each "
            f"variable; got {bounds!r}."
        ) from None
    if len(pairs) != dim:
        raise InputError(f"bounds hold {len(pairs)} pairs, but the point has {dim} variables.")
    lower = [-np.inf if low is None else low for low, _ in pairs]
    return lower, [np.inf if high is None else high for _, high in pairs]


def best_normal(total: Vector, low: Mask, high: Mask) -> Vector:
    """Return the normal vector that cancels most of `total`.

    Its entries may be negative where `low` is true and positive where `high` is.
    """
    found: Vector = np.where(low, np.minimum(-total, 0.0), 0.0)
    return found + np.where(high, np.maximum(-total, 0.0), 0.0) + 0.0
