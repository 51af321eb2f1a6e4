"""Algorithm 2 as an optax transformation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from goldstein.errors import InputError, InputTypeError
from goldstein.jax.pytrees import combine, global_norm, rate_of, scale, zeros

#: Weight of the past in the measured scale of the gradients.
SCALE_MEMORY = 0.98


class PSINGDState(NamedTuple):
    """State of `psingd`; everything that a resumed run needs."""

    step: jax.Array
    average: Any
    owed: jax.Array
    square_mean: jax.Array
    key: jax.Array

    def center(self, params: Any) -> Any:
        """Return the iterate: evaluate and certify here, not at the query point.

        To resume, save the state and the params themselves: the next gradient is taken there.
        """
        return combine(1.0, params, -self.owed, self.average)


def psingd(
    learning_rate: float | Callable[[Any], Any] = 1.0,
    *,
    seed: int = 0,
    averaging: float = 0.9,
    slope: float = 1.0,
    offset: float | None = None,
    perturbation: float = 1e-3,
) -> optax.GradientTransformationExtraArgs:
    """Return PSINGD as an optax optimizer; the updates include the sign and the learning rate.

    The same method as `goldstein.torch.PSINGD`, with the perturbation of the paper's law: the first
    d coordinates of a uniform point of the sphere in d + 1 dimensions.

    Parameters
    ----------
    learning_rate : float or schedule
        Factor of every step; an optax schedule that decays to 0 is the practical choice.
    seed : int
    averaging, slope, offset, perturbation : float
        `beta`, `p`, `q` (None: p times the measured scale of the gradients), and `zeta` as a share
        of the longest step.

    Examples
    --------
    >>> import goldstein.jax, jax, jax.numpy as jnp, optax
    >>> optimizer = goldstein.jax.psingd(optax.linear_schedule(0.3, 0.0, 300))
    >>> x = jnp.array([3.0, -1.0])
    >>> state = optimizer.init(x)
    >>> gradient, update = jax.grad(lambda x: jnp.abs(x).sum()), jax.jit(optimizer.update)
    >>> for _ in range(300):
    ...     updates, state = update(gradient(x), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(jnp.abs(state.center(x)).max() < 0.1)
    True
    """
    if not 0.0 <= averaging < 1.0:
        raise InputError(f"averaging = {averaging} must lie in [0, 1).")
    for name, number in (("slope", slope), ("offset", offset)):
        if number is not None and not number > 0.0:
            raise InputError(f"{name} = {number} must be positive.")
    if not perturbation >= 0.0:
        raise InputError(f"perturbation = {perturbation} must be zero or more.")

    def init(params: Any) -> PSINGDState:
        dtype = jnp.result_type(float)
        return PSINGDState(
            step=jnp.zeros((), jnp.int32),
            average=zeros(params),
            owed=jnp.zeros((), dtype),
            square_mean=jnp.zeros((), dtype),
            key=jax.random.key_data(jax.random.key(seed)),
        )

    def update(
        gradients: Any, state: PSINGDState, params: Any = None, **extra: Any
    ) -> tuple[Any, PSINGDState]:
        if params is None:
            raise InputTypeError("psingd needs params: call update(gradients, state, params).")
        first = state.step == 0
        weight = jnp.where(first, 0.0, averaging)
        average = combine(weight, state.average, 1.0 - weight, gradients)
        square = global_norm(gradients) ** 2
        memory = jnp.where(first, 0.0, SCALE_MEMORY)
        square_mean = memory * state.square_mean + (1.0 - memory) * square
        level = slope * jnp.sqrt(square_mean) if offset is None else offset
        total = slope * global_norm(average) + level
        rate = rate_of(learning_rate, state.step)
        gain = rate * jnp.where(total > 0.0, 1.0 / jnp.where(total > 0.0, total, 1.0), 0.0)

        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)
        position = jax.random.uniform(jax.random.fold_in(key, 0))
        updates = combine(-state.owed, state.average, -position * gain, average)
        if perturbation > 0.0:
            noise = _sphere_shadow(jax.random.fold_in(key, 1), gradients)
            updates = combine(1.0, updates, rate * perturbation / slope, noise)
        owed = ((1.0 - position) * gain).astype(state.owed.dtype)
        return updates, PSINGDState(
            state.step + 1, average, owed, square_mean.astype(state.square_mean.dtype), state.key
        )

    return optax.GradientTransformationExtraArgs(init, update)


def _sphere_shadow(key: jax.Array, like: Any) -> Any:
    leaves, structure = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves) + 1)
    drawn = [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys[1:], leaves)]
    last = jax.random.normal(keys[0])
    length = jnp.sqrt(last**2 + sum(jnp.sum(jnp.square(v)) for v in drawn))
    return scale(1.0 / length, jax.tree.unflatten(structure, drawn))
