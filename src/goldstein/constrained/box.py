"""Bounds on the variables, read as SciPy takes them."""

from __future__ import annotations

from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.box import Box
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_floats


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
    side = np.array(exact_floats(values, f"bounds.{name}", finite=False))
    if side.ndim > 1 or side.size not in (1, dim):
        raise InputError(
            f"bounds.{name} has shape {side.shape}, but the point has {dim} variables; give one "
            "number, or one for each."
        )
    return np.full(dim, side.ravel()[0]) if side.size == 1 else side


def _from_pairs(bounds: Any, dim: int) -> tuple[Vector, Vector]:
    expected = "a scipy.optimize.Bounds, or a list with one pair (low, high) for each variable"
    wrong = InputTypeError(f"bounds must be {expected}; got {bounds!r}.")
    if isinstance(bounds, str):
        raise wrong
    try:
        pairs = [tuple(pair) for pair in bounds]
    except TypeError:
        raise wrong from None
    if len(pairs) != dim:
        raise InputError(f"bounds hold {len(pairs)} pairs, but the point has {dim} variables.")
    for k, pair in enumerate(pairs):
        if len(pair) != 2:
            raise InputError(f"bounds[{k}] is {pair!r}, expected a pair (low, high).")
    lower = [-np.inf if low is None else low for low, _ in pairs]
    upper = [np.inf if high is None else high for _, high in pairs]
    return _side(lower, dim, "lb"), _side(upper, dim, "ub")


def off_bounds(x: Vector, way: float | Vector, box: Box) -> Vector:
    """Move coordinates off bounds: functions like to have kinks there."""
    inner = np.where(x == box.lower, x + way, np.where(x == box.upper, x - way, x))
    return box.clip(inner)


__all__ = ["Box", "as_box", "off_bounds"]
