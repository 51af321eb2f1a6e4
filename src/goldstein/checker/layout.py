"""Points of any shape as one float64 vector: the layout in which a function is called.

A layout is plain data: a list of numbers is the shape of one array; ["list", ...], ["tuple", ...]
and ["dict", [key, ...], ...] hold parts.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError, InputTypeError
from goldstein.checker.rationals import exact_floats

Layout = list[Any]


def taken_apart(point: Any, name: str, exact: bool = False) -> tuple[Layout, list[Vector]]:
    """Return the layout of a point, and its arrays in order; refuse to round where `exact`.

    Examples
    --------
    >>> layout, arrays = taken_apart({"b": 1.0, "W": np.ones((2, 2))}, "x0")
    >>> layout, put_together(layout, np.arange(5.0))["W"]
    (['dict', ['b', 'W'], [], [2, 2]], array([[1., 2.],
           [3., 4.]]))
    """
    if isinstance(point, dict):
        head, entries = ["dict", list(point)], point
        if not all(isinstance(key, str) for key in point):
            raise InputTypeError(f"the keys of {name} must be strings, got {list(point)!r}.")
    elif isinstance(point, list | tuple) and any(map(_is_part, point)):
        head = ["list" if isinstance(point, list) else "tuple"]
        entries = dict(enumerate(point))
    else:
        array = _as_array(point, name)
        if exact:
            exact_floats(point, name, finite=False)
        return list(array.shape), [array]
    parts = [taken_apart(part, f"{name}[{key!r}]", exact) for key, part in entries.items()]
    return [*head, *(layout for layout, _ in parts)], [a for _, arrays in parts for a in arrays]


def flattened(point: Any, layout: Layout, name: str) -> Vector:
    """Return the numbers of a point that must be laid out like this, keys in any order."""
    found, arrays = taken_apart(_in_order(point, layout), name)
    if found != layout:
        raise InputTypeError(
            f"{name} has the layout {shown(found)}, expected {shown(layout)}, that of the point."
        )
    return np.concatenate([array.ravel() for array in arrays])


def _in_order(point: Any, layout: Layout) -> Any:
    """Return a point with its keys in the order of the layout, as far as they are the same."""
    if isinstance(point, dict) and layout[:1] == ["dict"] and set(layout[1]) == set(point):
        return {key: _in_order(point[key], part) for key, part in zip(layout[1], layout[2:])}
    if isinstance(point, list | tuple) and layout[:1] in (["list"], ["tuple"]):
        return type(point)(_in_order(part, spec) for part, spec in zip(point, layout[1:]))
    return point


def put_together(layout: Layout, flat: Vector) -> Any:
    """Return the point with these numbers."""
    if flat.shape != (size_of(layout),):
        raise InputError(f"got {flat.size} numbers for a point of {size_of(layout)}.")
    if _is_array(layout):
        return flat.reshape(layout)
    ends = np.cumsum([size_of(part) for part in _parts(layout)])
    parts = list(map(put_together, _parts(layout), np.split(flat, ends[:-1])))
    if layout[0] == "dict":
        return dict(zip(layout[1], parts))
    return tuple(parts) if layout[0] == "tuple" else parts


def size_of(layout: Layout) -> int:
    """Return how many numbers a point has."""
    return math.prod(layout) if _is_array(layout) else sum(map(size_of, _parts(layout)))


def is_vector(layout: Layout) -> bool:
    """Is the point a vector as it is?"""
    return len(layout) == 1 and not isinstance(layout[0], str)


def shown(layout: Layout) -> str:
    """Return a layout in words."""
    if _is_array(layout):
        return f"array{tuple(layout)}"
    parts = list(map(shown, _parts(layout)))
    if layout[0] == "dict":
        return "{" + ", ".join(f"{k}: {p}" for k, p in zip(layout[1], parts)) + "}"
    return f"{layout[0]}({', '.join(parts)})"


def _is_part(entry: Any) -> bool:
    """Is this an array, or something that holds arrays, rather than a number or a row of them?"""
    if isinstance(entry, dict) or getattr(entry, "ndim", 0) >= 1:
        return True
    return isinstance(entry, list | tuple) and any(map(_is_part, entry))


def _as_array(values: Any, name: str) -> Vector:
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers have no order")
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise InputTypeError(
            f"{name} must be a vector of numbers, or a dict, list or tuple of arrays: {failure}."
        ) from failure


def _is_array(layout: Layout) -> bool:
    return not (layout and isinstance(layout[0], str))


def _parts(layout: Layout) -> list[Layout]:
    return list(layout[2:] if layout[0] == "dict" else layout[1:])
