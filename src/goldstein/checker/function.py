"""The function in question, as a check asks it: copies go out, finite numbers come back.

Points of any shape as one float64 vector: the layout in which a function is called.

A layout is plain data: a list of numbers is the shape of one array; ["list", ...], ["tuple", ...]
and ["dict", [key, ...], ...] hold parts.
"""

import math
from collections.abc import Callable, Sequence
from itertools import starmap, zip_longest
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.errors import GoldsteinError, InputError, InputTypeError
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
        raise InputTypeError(f"{name} has the layout {shown(found)}, expected {shown(layout)}.")
    return np.concatenate([array.ravel() for array in arrays])


def _in_order(point: Any, layout: Layout) -> Any:
    """Return a point with its keys in the order of the layout, as far as they are the same."""
    if isinstance(point, dict) and layout[:1] == ["dict"] and set(layout[1]) == set(point):
        return {key: _in_order(point[key], part) for key, part in zip(layout[1], layout[2:])}
    if isinstance(point, list | tuple) and layout[:1] in (["list"], ["tuple"]):
        parts: Any = zip_longest(point, layout[1 : 1 + len(point)], fillvalue=[])
        return (list if isinstance(point, list) else tuple)(starmap(_in_order, parts))
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


#: f among the functions of a problem; components of the constraints are counted from 0.
OBJECTIVE = -1


class BlackBox:
    """`fun(x, *args)` and `jac(x, *args)`, or one `fun` that returns both, over a vector.

    Parameters
    ----------
    fun : callable
        Returns f(x), or the pair (f(x), gradient) when `jac` is True.
    jac : callable or True
    args : sequence
    layout : list, optional
        The layout of the points that both are written for; a vector by default.
    """

    def __init__(
        self, fun: Any, jac: Any, args: Sequence[Any] = (), layout: Layout | None = None
    ) -> None:
        self.fun, self.jac, self.args, self.layout = fun, jac, tuple(args), layout
        # One call answers both questions at a point: the pair is kept as a whole.
        self._last: tuple[bytes, tuple[Any, Any]] = b"", (None, None)

    def _call(self, function: Any, x: Vector) -> Any:
        return function(x if self.layout is None else put_together(self.layout, x), *self.args)

    def _both(self, x: Vector) -> tuple[Any, Any]:
        key = x.tobytes()  # before anybody writes into x
        if self._last[0] != key:
            answer = self._call(self.fun, x)
            if not (isinstance(answer, tuple | list) and len(answer) == 2):
                raise InputTypeError(
                    "jac=True says that the function returns a pair (value, gradient), but it "
                    f"returned {type(answer).__name__}; return both, or pass jac=your_gradient."
                )
            # A buffer that the user's code reuses must not change under us.
            self._last = key, (answer[0], np.array(self._flat(answer[1])))
        return self._last[1]

    def _flat(self, gradient: Any) -> Any:
        if self.layout is None:
            return gradient
        return flattened(gradient, self.layout, "the gradient")

    def value(self, x: Vector) -> Any:
        return self._both(x)[0] if self.jac is True else self._call(self.fun, x)

    def gradient(self, y: Vector) -> Any:
        return self._both(y)[1] if self.jac is True else self._flat(self._call(self.jac, y))


class Asked:
    """A function with `value` and `gradient`, whose answers are looked at before they are used."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.has_value: bool = getattr(function, "has_value", True)
        #: The name of a precision below float64 in which gradients arrive.
        self.coarse = ""

    def value(self, x: Vector) -> float:
        raw = np.asarray(self._answer(self.function.value, x))
        if raw.size != 1 or raw.dtype.kind not in "fiub" or not np.isfinite(raw).all():
            raise InputError(f"a value is {str(raw)[:40]}, expected one finite number.")
        return float(raw.item())

    def gradient(self, y: Vector) -> Vector:
        raw = np.asarray(self._answer(self.function.gradient, y))
        if raw.shape != y.shape or raw.dtype.kind not in "fiub" or not np.isfinite(raw).all():
            raise InputError(f"a gradient of shape {raw.shape} is not {y.size} finite numbers.")
        if raw.dtype.kind == "f" and raw.dtype.itemsize < 8:
            self.coarse = raw.dtype.name
        return np.array(raw, dtype=np.float64)

    def _answer(self, question: Callable[[Vector], Any], x: Vector) -> Any:
        try:
            return question(x.copy())
        except GoldsteinError:
            raise
        except Exception as failure:
            raise InputError(f"it raised {type(failure).__name__}: {failure}") from failure
