"""Bounds on the variables: exact comparisons of floats, and points that never leave them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError


@dataclass(frozen=True, eq=False)
class Box:
    """lower <= x <= upper, either side possibly infinite.

    Examples
    --------
    >>> box = Box(np.array([0.0, -np.inf]), np.array([1.0, np.inf]))
    >>> box.clip(np.array([2.0, 5.0])), box.fold(np.array([1.25, 5.0]))
    (array([1., 5.]), array([0.75, 5.  ]))
    """

    lower: Vector
    upper: Vector

    @property
    def fixed(self) -> NDArray[np.bool_]:
        """Coordinates that cannot move."""
        found: NDArray[np.bool_] = self.lower == self.upper
        return found

    def contains(self, points: NDArray[np.float64]) -> bool:
        return bool(((points >= self.lower) & (points <= self.upper)).all())

    def clip(self, point: Vector) -> Vector:
        clipped: Vector = np.minimum(np.maximum(point, self.lower), self.upper)
        return clipped

    def fold(self, point: Vector) -> Vector:
        """Reflect a point at the bounds it has crossed.

        Unlike a clipped point it does not stick to a face, where functions like to have kinks; and
        it is no further from any point of the box than before.
        """
        outside = (point < self.lower) | (point > self.upper)
        if not outside.any():
            return point
        folded = point.copy()
        folded[outside] = 2.0 * self.clip(point)[outside] - point[outside]
        return self.clip(folded)

    def normal_signs(self, x: Vector) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
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
    for name, side in (("lower", lower), ("upper", upper)):
        if np.isnan(side).any():
            bad = int(np.flatnonzero(np.isnan(side))[0])
            raise InputError(
                f"the {name} bound of variable {bad} is nan; write None or an infinity for none."
            )
    empty = np.flatnonzero((lower > upper) | (lower == np.inf) | (upper == -np.inf))
    if empty.size:
        k = int(empty[0])
        raise InputError(
            f"the bounds of variable {k} are empty: {lower[k]:g} <= x[{k}] <= {upper[k]:g} holds "
            "for no number; exchange or mend them."
        )
    return Box(lower, upper)


def _side(values: Any, dim: int, name: str) -> Vector:
    try:
        side = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise InputTypeError(f"bounds.{name} must hold numbers: {failure}.") from failure
    if side.ndim > 1 or side.size not in (1, dim):
        raise InputError(
            f"bounds.{name} has shape {side.shape}, but the point has {dim} variables; give one "
            "number, or one for each."
        )
    return np.full(dim, side.ravel()[0]) if side.size == 1 else side


def _from_pairs(bounds: Any, dim: int) -> tuple[Vector, Vector]:
    expected = "a scipy.optimize.Bounds, or a list with one pair (low, high) for each variable"
    try:
        pairs = [tuple(pair) for pair in bounds]
    except TypeError:
        raise InputTypeError(f"bounds must be {expected}; got {bounds!r}.") from None
    if len(pairs) != dim:
        raise InputError(f"bounds hold {len(pairs)} pairs, but the point has {dim} variables.")
    for k, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InputError(f"bounds[{k}] is {pair!r}, expected a pair (low, high).")
    try:
        lower = [-np.inf if low is None else float(low) for low, _ in pairs]
        upper = [np.inf if high is None else float(high) for _, high in pairs]
    except (TypeError, ValueError) as failure:
        raise InputTypeError(f"bounds must be {expected}: {failure}.") from failure
    return np.array(lower), np.array(upper)
