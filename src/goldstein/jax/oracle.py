"""Any JAX scalar as an oracle over one float64 vector."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from numpy.typing import ArrayLike

from goldstein.checker.arrays import Vector
from goldstein.errors import InputTypeError
from goldstein.jax.compiled import Compiled, raveled
from goldstein.oracles import Oracle


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
        self._rebuild: Callable[[Any], Any] | None = None
        if params is not None:
            self.start, self._rebuild = raveled(params)
            self.dim = self.start.size
        self._compiled = Compiled(lambda x: fn(self._tree(x)), self.name)

    @property
    def name(self) -> str:
        return getattr(self._fn, "__name__", type(self._fn).__name__)

    def how_called(self) -> str:
        """What to do about an exception in the function."""
        return (
            "The error is in that function; it is called with arrays of JAX, traced ones for the "
            "gradient: use jax.numpy in it, not NumPy, and jnp.where or lax.cond in place of if."
        )

    def value(self, x: Vector) -> float:
        return self._compiled.value(x)

    def gradient(self, y: Vector) -> Vector:
        return self._compiled.gradient(y)

    def unflatten(self, x: ArrayLike) -> Any:
        """Return a point as `fn` takes it: a pytree like `params`, in float64.

        Examples
        --------
        >>> import goldstein, goldstein.jax, jax.numpy as jnp
        >>> params = {"a": jnp.ones((2, 1)), "b": jnp.ones(())}
        >>> f = goldstein.jax.oracle(lambda p: jnp.abs(p["a"]).sum() + abs(p["b"] - 2), params)
        >>> res = goldstein.minimize(f, f.start, eps=1e-3, delta=1e-3, rng=0)
        >>> f.unflatten(res.x)["a"].shape
        (2, 1)
        """
        with jax.enable_x64(True):
            return self._tree(np.asarray(x, dtype=np.float64))

    def _tree(self, x: Any) -> Any:
        return x if self._rebuild is None else self._rebuild(x)


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
