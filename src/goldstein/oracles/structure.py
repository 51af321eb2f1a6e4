"""Points of any shape: matrices, and dicts, lists and tuples of arrays, as one float64 vector."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.numerics.exact_floats import exact_floats


@dataclass(frozen=True)
class Structure:
    """How a vector is laid out in the user's point.

    Attributes
    ----------
    spec : JSON-able
        A list of numbers is the shape of one array; ["list", ...], ["tuple", ...] and
        ["dict", [key, ...], ...] hold the parts.

    Examples
    --------
    >>> layout, flat = Structure.of({"b": 1.0, "W": np.ones((2, 2))}, "x0")
    >>> flat
    array([1., 1., 1., 1., 1.])
    >>> layout.build(flat)["W"].shape
    (2, 2)
    """

    spec: Any

    @classmethod
    def of(cls, point: Any, name: str, exact: bool = False) -> tuple[Structure, Vector]:
        """Return the layout of a point, and its numbers; refuse to round them where `exact`."""
        spec, arrays = _take_apart(point, name, exact)
        flat = np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)
        return cls(spec), flat

    @classmethod
    def read(cls, spec: Any) -> Structure:
        """Return a layout from what a file says; refuse what is none."""
        if not _is_spec(spec, depth=0):
            raise InputError("the layout of the point in this certificate is not one of ours.")
        return cls(spec)

    @property
    def is_vector(self) -> bool:
        """True when nothing has to be done."""
        return len(self.spec) == 1 and not isinstance(self.spec[0], str)

    @property
    def size(self) -> int:
        """How many numbers a point has."""
        return _size(self.spec)

    def build(self, flat: Vector) -> Any:
        """Return the user's point with these numbers."""
        if flat.shape != (self.size,):
            raise InputError(f"got {flat.size} numbers for a point of {self.size}.")
        return _build(self.spec, iter(np.split(flat, np.cumsum(_sizes(self.spec))[:-1])))

    def flatten(self, point: Any, name: str) -> Vector:
        """Return the numbers of a point that must be laid out like this."""
        other, flat = Structure.of(point, name)
        if other.spec != self.spec:
            raise InputTypeError(
                f"{name} has the layout {other}, expected {self}, that of the point."
            )
        return flat

    def around(
        self, fun: Callable[..., Any], jac: Callable[..., Any] | bool | None
    ) -> tuple[Callable[..., Any], Callable[..., Any] | bool | None]:
        """Return functions of the vector from functions of the user's point."""

        def value(x: Vector, *args: Any) -> Any:
            answer = fun(self.build(x), *args)
            if jac is True and isinstance(answer, tuple) and len(answer) == 2:
                return answer[0], self.flatten(answer[1], "the gradient")
            return answer

        value.__name__ = getattr(fun, "__name__", type(fun).__name__)
        value.called_with = f"{self}, the layout of the point"  # type: ignore[attr-defined]

        def gradient(x: Vector, *args: Any) -> Vector:
            assert callable(jac)
            return self.flatten(jac(self.build(x), *args), "the gradient")

        return value, gradient if callable(jac) else jac

    def callback(self, user: Callable[..., Any]) -> Callable[..., Any]:
        """Return a callback that hands over points as the user wrote them."""
        try:
            modern = "intermediate_result" in inspect.signature(user).parameters
        except (TypeError, ValueError):
            modern = False
        if not modern:
            return lambda x: user(self.build(x))
        return lambda intermediate_result: user(
            intermediate_result=replace(intermediate_result, x=self.build(intermediate_result.x))
        )

    def __str__(self) -> str:
        return _shown(self.spec)


def _take_apart(point: Any, name: str, exact: bool) -> tuple[Any, list[Vector]]:
    if isinstance(point, dict):
        keys = list(point)
        if not all(isinstance(key, str) for key in keys):
            raise InputTypeError(f"the keys of {name} must be strings, got {keys!r}.")
        parts = [_take_apart(point[key], f"{name}[{key!r}]", exact) for key in keys]
        return ["dict", keys, *(spec for spec, _ in parts)], [a for _, part in parts for a in part]
    if isinstance(point, list | tuple) and any(_is_part(entry) for entry in point):
        kind = "list" if isinstance(point, list) else "tuple"
        parts = [_take_apart(entry, f"{name}[{i}]", exact) for i, entry in enumerate(point)]
        return [kind, *(spec for spec, _ in parts)], [a for _, part in parts for a in part]
    array = _as_array(point, name)
    if exact:
        exact_floats(point, name, finite=False)
    return list(array.shape), [array]


def _is_part(entry: Any) -> bool:
    """Is this an array, or something that holds arrays, rather than a number or a row of them?"""
    if isinstance(entry, dict) or getattr(entry, "ndim", 0) >= 1:
        return True
    return isinstance(entry, list | tuple) and any(_is_part(part) for part in entry)


def _as_array(values: Any, name: str) -> Vector:
    try:
        if np.iscomplexobj(values):
            raise TypeError("complex numbers have no order")
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as failure:
        raise InputTypeError(
            f"{name} must be a vector of numbers, or a dict, list or tuple of arrays: {failure}."
        ) from failure


def _parts(spec: Any) -> list[Any]:
    return list(spec[2:] if spec[0] == "dict" else spec[1:])


def _is_array(spec: Any) -> bool:
    return not (spec and isinstance(spec[0], str))


def _sizes(spec: Any) -> list[int]:
    if _is_array(spec):
        return [math.prod(spec)]
    return [size for part in _parts(spec) for size in _sizes(part)]


def _size(spec: Any) -> int:
    return sum(_sizes(spec))


def _build(spec: Any, pieces: Iterator[Vector]) -> Any:
    if _is_array(spec):
        return next(pieces).reshape(spec)
    parts = [_build(part, pieces) for part in _parts(spec)]
    if spec[0] == "dict":
        return dict(zip(spec[1], parts, strict=True))
    return tuple(parts) if spec[0] == "tuple" else parts


def _shown(spec: Any) -> str:
    if _is_array(spec):
        return f"array{tuple(spec)}"
    parts = [_shown(part) for part in _parts(spec)]
    if spec[0] == "dict":
        return "{" + ", ".join(f"{k}: {p}" for k, p in zip(spec[1], parts, strict=True)) + "}"
    return f"{spec[0]}({', '.join(parts)})"


def _is_spec(spec: Any, depth: int) -> bool:
    if not isinstance(spec, list) or depth > 50:
        return False
    if _is_array(spec):
        return all(type(n) is int and n >= 0 for n in spec)
    if spec[0] == "dict":
        keys: Any = spec[1] if len(spec) > 1 else None
        named = isinstance(keys, list) and all(isinstance(key, str) for key in keys)
        if not named or not len(set(keys)) == len(keys) == len(spec) - 2:
            return False
    elif spec[0] not in ("list", "tuple"):
        return False
    return all(_is_spec(part, depth + 1) for part in _parts(spec))
