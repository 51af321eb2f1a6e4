"""Points of any shape as one float64 vector: the layout in which a function is called.

A layout is plain data: a list of numbers is the shape of one array; ["list", ...], ["tuple", ...]
and ["dict", [key, ...], ...] hold parts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import InputError, InputTypeError
from goldstein.checker.exact_floats import exact_floats

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
        keys = list(point)
        if not all(isinstance(key, str) for key in keys):
            raise InputTypeError(f"the keys of {name} must be strings, got {keys!r}.")
        head, entries = ["dict", keys], [(f"{name}[{key!r}]", point[key]) for key in keys]
    elif isinstance(point, list | tuple) and any(map(_is_part, point)):
        head = ["list" if isinstance(point, list) else "tuple"]
        entries = [(f"{name}[{i}]", entry) for i, entry in enumerate(point)]
    else:
        array = _as_array(point, name)
        if exact:
            exact_floats(point, name, finite=False)
        return list(array.shape), [array]
    parts = [taken_apart(entry, label, exact) for label, entry in entries]
    return [*head, *(layout for layout, _ in parts)], [a for _, arrays in parts for a in arrays]


def flattened(point: Any, layout: Layout, name: str) -> Vector:
    """Return the numbers of a point that must be laid out like this."""
    found, arrays = taken_apart(point, name)
    if found != layout:
        raise InputTypeError(
            f"{name} has the layout {shown(found)}, expected {shown(layout)}, that of the point."
        )
    return np.concatenate([array.ravel() for array in arrays])


def put_together(layout: Layout, flat: Vector) -> Any:
    """Return the point with these numbers."""
    sizes = list(_sizes(layout))
    if flat.shape != (sum(sizes),):
        raise InputError(f"got {flat.size} numbers for a point of {sum(sizes)}.")
    return _built(layout, iter(np.split(flat, np.cumsum(sizes)[:-1])))


def is_vector(layout: Layout) -> bool:
    """Is the point a vector as it is?"""
    return len(layout) == 1 and not isinstance(layout[0], str)


def is_layout(data: Any, depth: int = 0) -> bool:
    """Is this plain data a layout?"""
    if not isinstance(data, list) or depth > 50:
        return False
    if _is_array(data):
        return all(type(n) is int and n >= 0 for n in data)
    if data[0] == "dict":
        keys = data[1] if len(data) > 1 and isinstance(data[1], list) else [None]
        named = all(isinstance(key, str) for key in keys)
        if not (named and len(set(keys)) == len(keys) == len(data) - 2):
            return False
    return data[0] in ("dict", "list", "tuple") and all(
        is_layout(p, depth + 1) for p in _parts(data)
    )


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


def _sizes(layout: Layout) -> Iterator[int]:
    if _is_array(layout):
        yield math.prod(layout)
    else:
        for part in _parts(layout):
            yield from _sizes(part)


def _built(layout: Layout, pieces: Iterator[Vector]) -> Any:
    if _is_array(layout):
        return next(pieces).reshape(layout)
    parts = [_built(part, pieces) for part in _parts(layout)]
    if layout[0] == "dict":
        return dict(zip(layout[1], parts))
    return tuple(parts) if layout[0] == "tuple" else parts


__all__ = ["Layout", "flattened", "is_layout", "is_vector", "put_together", "shown", "taken_apart"]
