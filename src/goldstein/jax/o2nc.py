"""Online-to-nonconvex conversion as an optax transformation."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from goldstein.errors import InputError, InputTypeError
from goldstein.jax.pytrees import combine, global_norm, rate_of, scale, zeros


class O2NCState(NamedTuple):
    """State of `o2nc`; everything that a resumed run needs."""

    step: jax.Array
    direction: Any
    owed: jax.Array
    square_sum: jax.Array
    key: jax.Array

    def center(self, params: Any) -> Any:
        """Return the iterate: evaluate and certify here, not at the query point.

        To resume, save the state and the params themselves: the next gradient is taken there.
        """
        return combine(1.0, params, self.owed, self.direction)


def o2nc(
    learning_rate: float | Callable[[Any], Any] = 1.0,
    *,
    seed: int = 0,
    radius: float = 0.15,
    window: int = 21,
    restart: bool = False,
    gradient_scale: float | None = None,
) -> optax.GradientTransformationExtraArgs:
    """Return O2NC as an optax optimizer; the updates include the sign and the learning rate.

    The same method as `goldstein.torch.O2NC`.

    Parameters
    ----------
    learning_rate : float or schedule
        Factor of the radius; an optax schedule that decays to 0 is the practical choice.
    seed : int
    radius : float
        Longest step at learning rate 1, in the norm of all parameters together.
    window : int
        `M`, how many gradients the learner's step size remembers.
    restart : bool
        Forget them all at once every `window` steps, as in the theory, instead of gradually.
    gradient_scale : float, optional
        `G`: selects the optimal-rate learner instead of the parameter-free AdaGrad.

    Examples
    --------
    >>> import goldstein.jax, jax, jax.numpy as jnp, optax
    >>> optimizer = goldstein.jax.o2nc(optax.linear_schedule(1.0, 0.0, 300))
    >>> x = jnp.array([3.0, -1.0])
    >>> state = optimizer.init(x)
    >>> gradient, update = jax.grad(lambda x: jnp.abs(x).sum()), jax.jit(optimizer.update)
    >>> for _ in range(300):
    ...     updates, state = update(gradient(x), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(jnp.abs(state.center(x)).max() < 0.1)
    True
    """
    if not radius > 0.0:
        raise InputError(f"radius = {radius} must be positive.")
    if isinstance(window, bool) or not window >= 1:
        raise InputError(f"window = {window} must be a positive integer.")
    if gradient_scale is not None and not gradient_scale > 0.0:
        raise InputError(f"gradient_scale = {gradient_scale} must be positive, or None.")

    def init(params: Any) -> O2NCState:
        dtype = jnp.result_type(float)
        return O2NCState(
            step=jnp.zeros((), jnp.int32),
            direction=zeros(params),
            owed=jnp.zeros((), dtype),
            square_sum=jnp.zeros((), dtype),
            key=jax.random.key_data(jax.random.key(seed)),
        )

    def update(
        gradients: Any, state: O2NCState, params: Any = None, **extra: Any
    ) -> tuple[Any, O2NCState]:
        if params is None:
            raise InputTypeError("o2nc needs params: call update(gradients, state, params).")
        square = global_norm(gradients) ** 2
        kept = jnp.where(state.step % window == 0, 0.0, 1.0) if restart else 1.0 - 1.0 / window
        square_sum = kept * state.square_sum + square
        if gradient_scale is not None:
            gain = jnp.asarray(1.0 / (gradient_scale * math.sqrt(window)))
        else:
            safe = jnp.where(square_sum > 0.0, square_sum, 1.0)
            gain = jnp.where(square_sum > 0.0, 1.0 / jnp.sqrt(safe), 0.0)
        direction = combine(1.0, state.direction, -gain, gradients)
        direction = scale(1.0 / jnp.maximum(1.0, global_norm(direction)), direction)
        longest = rate_of(learning_rate, state.step) * radius
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)
        position = jax.random.uniform(key)
        updates = combine(state.owed, state.direction, position * longest, direction)
        owed = jnp.asarray((1.0 - position) * longest).astype(state.owed.dtype)
        return updates, O2NCState(
            state.step + 1, direction, owed, square_sum.astype(state.square_sum.dtype), state.key
        )

    return optax.GradientTransformationExtraArgs(init, update)
