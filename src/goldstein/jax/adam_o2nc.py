"""Per-coordinate online-to-nonconvex conversion as an optax transformation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from goldstein.errors import InputError, InputTypeError
from goldstein.jax.pytrees import combine, rate_of, zeros
from goldstein.solvers.adam_schedules import (
    FORESIGHT,
    PRACTICAL_BETAS,
    regret_constant,
    window_of,
)


class AdamO2NCState(NamedTuple):
    """State of `adam_o2nc`; everything that a resumed run needs."""

    step: jax.Array
    average: Any
    square: Any
    direction: Any
    owed: jax.Array
    key: jax.Array

    def center(self, params: Any) -> Any:
        """Return the iterate: evaluate and certify here, not at the query point.

        To resume, save the state and the params themselves: the next gradient is taken there.
        """
        return combine(1.0, params, -self.owed, self.direction)


def adam_o2nc(
    learning_rate: float | Callable[[Any], Any] = 1e-3,
    b1: float = PRACTICAL_BETAS[0],
    b2: float | None = PRACTICAL_BETAS[1],
    *,
    weight_decay: float = 0.0,
    seed: int = 0,
    kappa: float = 1.0,
    foresight: float = FORESIGHT,
) -> optax.GradientTransformationExtraArgs:
    """Return clipped Adam with the O2NC query points as an optax optimizer.

    The same method as `goldstein.torch.AdamO2NC`; the updates include the sign and the learning
    rate.

    Parameters
    ----------
    learning_rate : float or schedule
        `D`, the longest step of a coordinate, about 3 times smaller than a good one of Adam; an
        optax schedule that decays to 0 is the practical choice.
    b1, b2 : float
        Weights of the past in the averages of gradients and of their squares; `b2` is at least
        `b1 ** 2`, which None stands for.
    weight_decay : float
        Decoupled, as in `optax.adamw`: parameters shrink by `learning_rate * weight_decay`.
    seed : int
    kappa : float
        Gain in front of the ratio of the averages.
    foresight : float
        How much of the last gradient is expected to come again; see the PyTorch version.

    Examples
    --------
    >>> import goldstein.jax, jax, jax.numpy as jnp, optax
    >>> optimizer = goldstein.jax.adam_o2nc(optax.linear_schedule(0.1, 0.0, 300))
    >>> x = jnp.array([3.0, -1.0])
    >>> state = optimizer.init(x)
    >>> gradient, update = jax.grad(lambda x: jnp.abs(x).sum()), jax.jit(optimizer.update)
    >>> for _ in range(300):
    ...     updates, state = update(gradient(x), state, x)
    ...     x = optax.apply_updates(x, updates)
    >>> bool(jnp.abs(state.center(x)).max() < 0.1)
    True
    """
    # optax.inject_hyperparams hands over traced numbers, which cannot be looked at.
    if not any(isinstance(number, jax.core.Tracer) for number in (b1, b2, kappa, foresight)):
        window_of(float(b1))  # refuses what is no weight
        regret_constant(float(kappa), float(foresight))
        if b2 is not None and not b1**2 * (1.0 - 1e-6) <= b2 < 1.0:
            raise InputError(
                f"b1 = {b1}, b2 = {b2}: b2 must be at least b1 ** 2 and less than 1, or the bound "
                "on the learner's regret fails. None stands for b1 ** 2."
            )
    squares = b1**2 if b2 is None else b2

    def init(params: Any) -> AdamO2NCState:
        return AdamO2NCState(
            step=jnp.zeros((), jnp.int32),
            average=zeros(params),
            square=zeros(params),
            direction=zeros(params),
            owed=jnp.zeros((), jnp.result_type(float)),
            key=jax.random.key_data(jax.random.key(seed)),
        )

    def update(
        gradients: Any, state: AdamO2NCState, params: Any = None, **extra: Any
    ) -> tuple[Any, AdamO2NCState]:
        if params is None:
            raise InputTypeError("adam_o2nc needs params: call update(gradients, state, params).")
        # `average` is (1 - b1) S and `square` is ((1 - b1) / kappa)^2 V: see the PyTorch version.
        average = combine(b1, state.average, 1.0 - b1, gradients)
        fresh = ((1.0 - b1) / kappa) ** 2
        square = combine(squares, state.square, fresh, jax.tree.map(jnp.square, gradients))
        expected = combine(1.0, average, (1.0 - b1) * foresight, gradients)
        direction = jax.tree.map(_clipped_ratio, expected, square)
        longest = rate_of(learning_rate, state.step)
        key = jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)
        position = jax.random.uniform(key)
        updates = combine(-state.owed, state.direction, -position * longest, direction)
        # The decay acts on the iterate, which is the query point and what is owed.
        shrinking = -longest * weight_decay
        updates = combine(1.0, updates, shrinking, state.center(params))
        updates = jax.tree.map(lambda u, p: u.astype(p.dtype), updates, params)
        owed = jnp.asarray((1.0 - position) * longest).astype(state.owed.dtype)
        return updates, AdamO2NCState(state.step + 1, average, square, direction, owed, state.key)

    return optax.GradientTransformationExtraArgs(init, update)


def _clipped_ratio(average: Any, square: Any) -> Any:
    """`clip(average / sqrt(square), -1, 1)`, where 0 / 0 = 0."""
    tiny = float(jnp.finfo(square.dtype).tiny)  # type: ignore[no-untyped-call]
    return jnp.clip(average / (jnp.sqrt(square) + tiny), -1.0, 1.0)
