"""O2NC, PSINGD (Algorithm 2) and AdamO2NC as optax transformations."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from goldstein.errors import InputError, InputTypeError
from goldstein.solvers import stochastic_schedules


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
    _require(radius > 0.0, f"radius = {radius} must be positive.")
    whole = window >= 1 and not isinstance(window, bool) if _is_known(window) else window >= 1
    _require(whole, f"window = {window} must be a positive integer.")
    scaled = gradient_scale is None or gradient_scale > 0.0
    _require(scaled, f"gradient_scale = {gradient_scale} must be positive, or None.")

    def update(gradients: Any, state: O2NCState, params: Any) -> tuple[Any, O2NCState]:
        square = optax.tree.norm(gradients) ** 2
        kept = jnp.where(state.step % window == 0, 0.0, 1.0) if restart else 1.0 - 1.0 / window
        square_sum = kept * state.square_sum + square
        if gradient_scale is not None:
            root = math.sqrt(window) if _is_known(window) else jnp.sqrt(window)
            gain = jnp.asarray(1.0 / (gradient_scale * root))
        else:
            safe = jnp.where(square_sum > 0.0, square_sum, 1.0)
            gain = jnp.where(square_sum > 0.0, 1.0 / jnp.sqrt(safe), 0.0)
        direction = combine(1.0, state.direction, -gain, gradients)
        direction = scale(1.0 / jnp.maximum(1.0, optax.tree.norm(direction)), direction)
        longest = rate_of(learning_rate, state.step) * radius
        updates, owed = _half_way(state, _draw(state), (state.direction, direction), longest, 1.0)
        return updates, O2NCState(
            state.step + 1, direction, owed, square_sum.astype(state.square_sum.dtype), state.key
        )

    return _optimizer("o2nc", O2NCState, seed, update)


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
    inside = (averaging >= 0.0) & (averaging < 1.0)
    _require(inside, f"averaging = {averaging} must lie in [0, 1).")
    for name, number in (("slope", slope), ("offset", offset)):
        _require(number is None or number > 0.0, f"{name} = {number} must be positive.")
    _require(perturbation >= 0.0, f"perturbation = {perturbation} must be zero or more.")

    def update(gradients: Any, state: PSINGDState, params: Any) -> tuple[Any, PSINGDState]:
        first = state.step == 0
        weight = jnp.where(first, 0.0, averaging)
        average = combine(weight, state.average, 1.0 - weight, gradients)
        square = optax.tree.norm(gradients) ** 2
        memory = jnp.where(first, 0.0, SCALE_MEMORY)
        square_mean = memory * state.square_mean + (1.0 - memory) * square
        level = slope * jnp.sqrt(square_mean) if offset is None else offset
        total = slope * optax.tree.norm(average) + level
        rate = rate_of(learning_rate, state.step)
        gain = rate * jnp.where(total > 0.0, 1.0 / jnp.where(total > 0.0, total, 1.0), 0.0)

        draw, more = (jax.random.fold_in(_draw(state), k) for k in (0, 1))
        updates, owed = _half_way(state, draw, (state.average, average), gain, -1.0)
        if not _is_known(perturbation) or perturbation > 0.0:
            noise = _sphere_shadow(more, gradients)
            updates = combine(1.0, updates, rate * perturbation / slope, noise)
        return updates, PSINGDState(
            state.step + 1, average, owed, square_mean.astype(state.square_mean.dtype), state.key
        )

    return _optimizer("psingd", PSINGDState, seed, update)


def _sphere_shadow(key: jax.Array, like: Any) -> Any:
    leaves, structure = jax.tree.flatten(like)
    keys = jax.random.split(key, len(leaves) + 1)
    drawn = [jax.random.normal(k, leaf.shape, leaf.dtype) for k, leaf in zip(keys[1:], leaves)]
    length = jnp.sqrt(jax.random.normal(keys[0]) ** 2 + sum(jnp.sum(jnp.square(v)) for v in drawn))
    return scale(1.0 / length, jax.tree.unflatten(structure, drawn))


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
    b1: float = stochastic_schedules.PRACTICAL_BETAS[0],
    b2: float | None = stochastic_schedules.PRACTICAL_BETAS[1],
    *,
    weight_decay: float = 0.0,
    seed: int = 0,
    kappa: float = 1.0,
    foresight: float = stochastic_schedules.FORESIGHT,
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
    if _is_known(b1, b2, kappa, foresight):
        stochastic_schedules.window_of(float(b1))  # refuses what is no weight
        stochastic_schedules.regret_constant(float(kappa), float(foresight))
        if b2 is not None and not b1**2 * (1.0 - 1e-6) <= b2 < 1.0:
            raise InputError(
                f"b1 = {b1}, b2 = {b2}: b2 must be at least b1 ** 2 and less than 1, or the bound "
                "on the learner's regret fails. None stands for b1 ** 2."
            )
    squares = b1**2 if b2 is None else b2

    def update(gradients: Any, state: AdamO2NCState, params: Any) -> tuple[Any, AdamO2NCState]:
        # `average` is (1 - b1) S and `square` is ((1 - b1) / kappa)^2 V: see the PyTorch version.
        average = combine(b1, state.average, 1.0 - b1, gradients)
        fresh = ((1.0 - b1) / kappa) ** 2
        square = combine(squares, state.square, fresh, jax.tree.map(jnp.square, gradients))
        expected = combine(1.0, average, (1.0 - b1) * foresight, gradients)
        direction = jax.tree.map(_clipped_ratio, expected, square)
        longest = rate_of(learning_rate, state.step)
        updates, owed = _half_way(state, _draw(state), (state.direction, direction), longest, -1.0)
        # The decay acts on the iterate, which is the query point and what is owed.
        updates = combine(1.0, updates, -longest * weight_decay, state.center(params))
        updates = jax.tree.map(lambda u, p: u.astype(p.dtype), updates, params)
        return updates, AdamO2NCState(state.step + 1, average, square, direction, owed, state.key)

    return _optimizer("adam_o2nc", AdamO2NCState, seed, update)


def _clipped_ratio(average: Any, square: Any) -> Any:
    """`clip(average / sqrt(square), -1, 1)`, where 0 / 0 = 0."""
    tiny = float(jnp.finfo(square.dtype).tiny)  # type: ignore[no-untyped-call]
    return jnp.clip(average / (jnp.sqrt(square) + tiny), -1.0, 1.0)


def combine(a: Any, x: Any, b: Any, y: Any) -> Any:
    """Return `a x + b y`, leaf by leaf, in the dtype of x."""
    return jax.tree.map(lambda p, q: (a * p + b * q).astype(p.dtype), x, y)


def scale(a: Any, x: Any) -> Any:
    """Return `a x`."""
    return jax.tree.map(lambda p: (a * p).astype(p.dtype), x)


def rate_of(value: Any, count: Any) -> Any:
    """Return the learning rate of a step: a number, or an optax schedule of the count."""
    return value(count) if callable(value) else value


def _draw(state: Any) -> Any:
    """Return the key of this step."""
    return jax.random.fold_in(jax.random.wrap_key_data(state.key), state.step)


def _half_way(state: Any, key: Any, steps: tuple[Any, Any], longest: Any, sign: float) -> Any:
    """Finish the last step, and go a random part of the next one; the rest of it is owed."""
    position = jax.random.uniform(key)
    updates = combine(sign * state.owed, steps[0], sign * position * longest, steps[1])
    return updates, jnp.asarray((1.0 - position) * longest).astype(state.owed.dtype)


#: The parts of states that are trees like the parameters; the others are numbers.
_TREES = ("average", "square", "direction")


def _optimizer(
    name: str, state_of: Any, seed: int, step: Any
) -> optax.GradientTransformationExtraArgs:
    """Return the optax pair of a state of zeros and a step, for real parameters only."""

    def begin(params: Any) -> Any:
        for leaf in jax.tree.leaves(params):
            if jnp.issubdtype(jnp.asarray(leaf).dtype, jnp.complexfloating):
                raise InputTypeError(
                    f"{name}: a parameter is complex, expected real ones; pass its real and "
                    "imaginary parts, or optax.contrib.split_real_and_imaginary."
                )
        number = jnp.zeros((), jnp.result_type(float))
        tree = optax.tree.zeros_like(params)
        parts = {part: tree if part in _TREES else number for part in state_of._fields}
        key = jax.random.key_data(jax.random.key(seed))
        return state_of(**{**parts, "step": jnp.zeros((), jnp.int32), "key": key})

    def update(gradients: Any, state: Any, params: Any = None, **extra: Any) -> tuple[Any, Any]:
        if params is None:
            raise InputTypeError(f"{name} needs params: call update(gradients, state, params).")
        return step(gradients, state, params)

    return optax.GradientTransformationExtraArgs(begin, update)


def _is_known(*numbers: Any) -> bool:
    """Whether numbers can be looked at: optax.inject_hyperparams hands over traced ones."""
    return not any(isinstance(number, jax.core.Tracer) for number in numbers)


def _require(allowed: Any, words: str) -> None:
    if _is_known(allowed) and not allowed:
        raise InputError(words)
