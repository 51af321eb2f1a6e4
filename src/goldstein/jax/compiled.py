"""A JAX scalar compiled in float64: its value and its gradient in the first argument."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree

from goldstein.checker.arrays import Vector
from goldstein.errors import InputError, InputTypeError
from goldstein.jax.precision import require_double


class Compiled:
    """Evaluates in float64 whatever the global setting of JAX is.

    A function that computes in less anything that depends on its first argument is refused when it
    is first asked.
    """

    def __init__(self, fn: Callable[..., Any], name: str) -> None:
        def scalar(x: Any, *rest: Any) -> Any:
            out = fn(x, *rest)
            if getattr(out, "size", 1) != 1:
                raise InputTypeError(
                    f"{name} returned shape {out.shape}, expected one number; reduce it with a sum "
                    "or a mean."
                )
            return out.reshape(()) if hasattr(out, "reshape") else out

        self._name = name
        self._value = jax.jit(scalar)
        self._gradient = jax.jit(jax.grad(scalar))
        self._checked = False

    def value(self, x: Vector, *rest: Any) -> float:
        with jax.enable_x64(True):
            self._check_once(x, *rest)
            return float(self._value(x, *rest))

    def gradient(self, y: Vector, *rest: Any) -> Vector:
        with jax.enable_x64(True):
            self._check_once(y, *rest)
            return np.array(self._gradient(y, *rest), dtype=np.float64)

    def _check_once(self, *arguments: Any) -> None:
        if not self._checked:
            require_double(self._value.trace(*arguments).jaxpr, self._name)
            require_double(self._gradient.trace(*arguments).jaxpr, self._name)
            self._checked = True


def raveled(params: Any) -> tuple[Vector, Callable[[Any], Any]]:
    """Return the numbers of a pytree as a float64 vector, and the way back."""
    with jax.enable_x64(True):
        doubled = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), params)
        flat, rebuild = ravel_pytree(doubled)
        start: Vector = np.array(flat)
    if start.size == 0:
        raise InputError("params has no numbers in it; nothing to differentiate by.")
    return start, rebuild
