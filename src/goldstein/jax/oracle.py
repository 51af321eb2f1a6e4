"""Any JAX scalar as an oracle over one float64 vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jax.flatten_util import ravel_pytree
from numpy.typing import NDArray

from goldstein.errors import InputError, InputTypeError
from goldstein.jax.precision import require_double
from goldstein.oracles import Oracle

Vector = NDArray[np.float64]


class JaxOracle(Oracle):
    """Values and gradients of `fn`, compiled once and computed in float64.

    Attributes
    ----------
    start : ndarray or None
        The flattened `params`, where they were given.
    """

    def __init__(self, fn: Callable[..., Any], params: Any = None) -> None:
        if not callable(fn):
            raise InputTypeError(f"fn is {type(fn).__name__}, expected a callable.")
        self._fn = fn
        self.start: Vector | None = None
        rebuild: Callable[[Any], Any] | None = None
        if params is not None:
            with jax.enable_x64(True):
                doubled = jax.tree.map(lambda leaf: np.asarray(leaf, dtype=np.float64), params)
                flat, rebuild = ravel_pytree(doubled)
                self.start = np.asarray(flat)
            if self.start.size == 0:
                raise InputError("params has no numbers in it; nothing to differentiate by.")
            self.dim = self.start.size

        def scalar(x: Any) -> Any:
            out = fn(x if rebuild is None else rebuild(x))
            if getattr(out, "size", 1) != 1:
                raise InputTypeError(
                    f"fn returned shape {out.shape}, expected one number; reduce it with a sum "
                    "or a mean."
                )
            return out.reshape(()) if hasattr(out, "reshape") else out

        self._value = jax.jit(scalar)
        self._gradient = jax.jit(jax.grad(scalar))
        self._checked = False

    @property
    def name(self) -> str:
        return getattr(self._fn, "__name__", type(self._fn).__name__)

    def value(self, x: Vector) -> float:
        with jax.enable_x64(True):
            self._check_once(x)
            return float(self._value(x))

    def gradient(self, y: Vector) -> Vector:
        with jax.enable_x64(True):
            self._check_once(y)
            return np.array(self._gradient(y), dtype=np.float64)

    def _check_once(self, x: Vector) -> None:
        if not self._checked:
            require_double(self._value.trace(x).jaxpr, self.name)
            require_double(self._gradient.trace(x).jaxpr, self.name)
            self._checked = True


def oracle(fn: Callable[..., Any], params: Any = None) -> JaxOracle:
    """Make an oracle of a JAX function, for `goldstein.minimize` and `goldstein.certify`.

    Evaluation is in float64 whatever the global setting of JAX is. A function that computes in less
    anything that depends on its argument is refused, also when it casts the answer up again; arrays
    that `fn` closes over may have any precision, they are constants.

    Parameters
    ----------
    fn : callable
        A traceable function that returns one number, of one vector, or of a pytree like `params`.
    params : pytree, optional
        Structure and current values; the oracle's `start` is its flattened float64 copy.

    Examples
    --------
    >>> import goldstein, goldstein.jax, jax.numpy as jnp
    >>> f = goldstein.jax.oracle(lambda x: jnp.abs(x).sum())
    >>> goldstein.minimize(f, [3.0, -1.0], eps=1e-3, delta=1e-3, rng=0).success
    True
    """
    return JaxOracle(fn, params)
