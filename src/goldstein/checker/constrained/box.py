"""Bounds on the variables: read as SciPy takes them, compared exactly, never left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Mask, Vector
from goldstein.checker.errors import InputError, InputTypeError
from goldstein.checker.exact_floats import exact_floats


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
        found: Mask = self.lower == self.upper
        return found

    def contains(self, points: NDArray[np.float64]) -> bool:
        return bool(((points >= self.lower) & (points <= self.upper)).all())

    def clip(self, point: Vector, margin: float | Vector = 0.0) -> Vector:
        """Return the nearest point of the box, or of a box with less room on all sides."""
        inner: Vector = np.minimum(np.maximum(point, self.lower + margin), self.upper - margin)
        return inner

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
    if bounds is None:
        return Box(np.full(dim, -np.inf), np.full(dim, np.inf))
    if isinstance(bounds, Box):
        lower, upper = bounds.lower, bounds.upper
    elif hasattr(bounds, "lb") and hasattr(bounds, "ub"):
        lower, upper = _side(bounds.lb, dim, "lb"), _side(bounds.ub, dim, "ub")
    else:
        lower, upper = _from_pairs(bounds, dim)
    if lower.shape != (dim,):
        raise InputError(f"bounds are for {lower.size} variables, but the point has {dim}.")
    bad = np.flatnonzero(~((lower <= upper) & (lower < np.inf) & (upper > -np.inf)))
    if bad.size:
        k = int(bad[0])
        if np.isnan(lower[k]) or np.isnan(upper[k]):
            raise InputError(f"a bound of variable {k} is nan; write None or an infinity for none.")
        raise InputError(
            f"the bounds of variable {k} are empty: {lower[k]:g} <= x[{k}] <= {upper[k]:g} holds "
            "for no number; exchange or mend them."
        )
    return Box(lower, upper)


def _side(values: Any, dim: int, name: str) -> Vector:
    side = np.array(exact_floats(values, f"bounds.{name}", finite=False))
    if side.ndim > 1 or side.size not in (1, dim):
        raise InputError(
            f"bounds.{name} has shape {side.shape}, but the point has {dim} variables; give one "
            "number, or one for each."
        )
    return np.full(dim, side.ravel()[0]) if side.size == 1 else side


def _from_pairs(bounds: Any, dim: int) -> tuple[Vector, Vector]:
    expected = "a scipy.optimize.Bounds, or a list with one pair (low, high) for each variable"
    try:
        pairs = [tuple(pair) for pair in bounds if not isinstance(pair, str)]
    except TypeError:
        pairs = None
    if pairs is None or isinstance(bounds, str):
        raise InputTypeError(f"bounds must be {expected}; got {bounds!r}.")
    if len(pairs) != dim:
        raise InputError(f"bounds hold {len(pairs)} pairs, but the point has {dim} variables.")
    for k, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InputError(f"bounds[{k}] is {pair!r}, expected a pair (low, high).")
    lower = [-np.inf if low is None else low for low, _ in pairs]
    upper = [np.inf if high is None else high for _, high in pairs]
    return _side(lower, dim, "lb"), _side(upper, dim, "ub")


def best_normal(total: Vector, low: Mask, high: Mask) -> Vector:
    """Return the normal vector that cancels most of `total`.

    Its entries may be negative where `low` is true and positive where `high` is.
    """
    found: Vector = np.where(low, np.minimum(-total, 0.0), 0.0)
    return found + np.where(high, np.maximum(-total, 0.0), 0.0) + 0.0


__all__ = ["Box", "as_box", "best_normal"]
