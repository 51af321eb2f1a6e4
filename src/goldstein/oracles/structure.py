"""Points of any shape: matrices, and dicts, lists and tuples of arrays, as one float64 vector."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from goldstein.checker.arrays import Vector
from goldstein.checker.layout import (
    flattened,
    is_vector,
    put_together,
    shown,
    taken_apart,
)  # fmt: skip


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
        spec, arrays = taken_apart(point, name, exact)
        flat = np.concatenate([array.ravel() for array in arrays]) if arrays else np.zeros(0)
        return cls(spec), flat

    @property
    def is_vector(self) -> bool:
        """True when nothing has to be done."""
        return is_vector(self.spec)

    def build(self, flat: Vector) -> Any:
        """Return the user's point with these numbers."""
        return put_together(self.spec, flat)

    def flatten(self, point: Any, name: str) -> Vector:
        """Return the numbers of a point that must be laid out like this."""
        return flattened(point, self.spec, name)

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
        return shown(self.spec)
