"""The optax transformations: windows, replay, agreement with the formulas, real optax tools."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import goldstein as gs
import goldstein.jax
from goldstein.errors import InputError, InputTypeError

KINDS = {
    "psingd": lambda *a, **kw: goldstein.jax.psingd(*a, **kw),
    "o2nc": lambda *a, **kw: goldstein.jax.o2nc(*a, **kw),
    "o2nc-ogd": lambda *a, **kw: goldstein.jax.o2nc(*a, gradient_scale=2.0, **kw),
    "o2nc-restart": lambda *a, **kw: goldstein.jax.o2nc(*a, restart=True, **kw),
    "adam-o2nc": lambda rate=1.0, **kw: goldstein.jax.adam_o2nc(rescaled(rate), **kw),
}


def rescaled(rate):
    """The largest step of one coordinate is a fraction of that of all together."""
    return (lambda count: 0.05 * rate(count)) if callable(rate) else 0.05 * rate


kinds = pytest.mark.parametrize("kind", sorted(KINDS))


def loss(params: dict, inputs: jax.Array, targets: jax.Array) -> jax.Array:
    hidden = jax.nn.relu(inputs @ params["w"] + params["b"])
    return jnp.abs(hidden @ params["v"] - targets).mean()


def start() -> dict:
    rng = np.random.default_rng(0)
    return {
        "w": jnp.asarray(rng.normal(size=(3, 5)), jnp.float32),
        "b": jnp.zeros(5),
        "v": jnp.asarray(rng.normal(size=5), jnp.float32),
    }


def data() -> tuple[jax.Array, jax.Array]:
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(40, 3))
    return jnp.asarray(inputs, jnp.float32), jnp.asarray(np.abs(inputs).sum(axis=1), jnp.float32)


@functools.cache
def compiled(kind: str):
    """One training step; the seed lives in the state, so every seed shares it."""
    optimizer = KINDS[kind](optax.linear_schedule(1.0, 0.0, 300))
    inputs, targets = data()

    @jax.jit
    def one(params, state):
        gradients = jax.grad(loss)(params, inputs, targets)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state

    return one


def train(kind: str, steps: int, seed: int = 0, params=None, state=None):
    params = start() if params is None else params
    state = KINDS[kind](seed=seed).init(params) if state is None else state
    for _ in range(steps):
        params, state = compiled(kind)(params, state)
    return params, state


@kinds
def test_defaults_train(kind: str) -> None:
    params, state = train(kind, 300)
    assert loss(state.center(params), *data()) < 0.3 * loss(start(), *data())


@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_o2nc_window_lies_in_its_ball(scale: float, aligned: bool) -> None:
    optimizer = goldstein.jax.o2nc(radius=0.1, window=7)
    params = jnp.zeros(4)
    state = optimizer.init(params)
    rng = np.random.default_rng(60)
    queries = []
    for _ in range(16):
        queries.append(np.asarray(params))
        gradient = np.ones(4) if aligned else rng.normal(size=4)
        updates, state = optimizer.update(jnp.asarray(scale * gradient, jnp.float32), state, params)
        params = optax.apply_updates(params, updates)
        away = np.linalg.norm(np.array(queries[-7:]) - np.asarray(state.center(params)), axis=1)
        assert away.max() <= 0.8 * (1 + 1e-4)


def test_psingd_steps_are_never_longer_than_promised() -> None:
    optimizer = goldstein.jax.psingd(0.5, slope=2.0, perturbation=1e-3)
    params, update = jnp.zeros(3), jax.jit(optimizer.update)
    state = optimizer.init(params)
    rng = np.random.default_rng(0)
    for _ in range(30):
        before = state.center(params)
        gradient = jnp.asarray(10.0 ** rng.uniform(-3, 3) * rng.normal(size=3), jnp.float32)
        updates, state = update(gradient, state, params)
        params = optax.apply_updates(params, updates)
        assert jnp.linalg.norm(state.center(params) - before) <= 0.25 * (1 + 1e-3) * (1 + 1e-4)


def test_first_steps_are_the_formulas() -> None:
    gradient, origin = jnp.array([3.0, 4.0]), jnp.zeros(2)
    optimizer = goldstein.jax.psingd(offset=10.0, perturbation=0.0)
    updates, state = optimizer.update(gradient, optimizer.init(origin), origin)
    np.testing.assert_allclose(state.center(updates), [-3 / 15, -4 / 15], rtol=1e-5)
    optimizer = goldstein.jax.o2nc(radius=0.5)
    updates, state = optimizer.update(gradient, optimizer.init(origin), origin)
    np.testing.assert_allclose(state.center(updates), [-0.3, -0.4], rtol=1e-5)


@kinds
def test_resume_and_seed(kind: str) -> None:
    straight, _ = train(kind, 20, seed=3)
    params, state = train(kind, 8, seed=3)
    saved = jax.tree.map(np.asarray, (params, state))
    params, state = jax.tree.map(jnp.asarray, saved)
    resumed, _ = train(kind, 12, params=params, state=state)
    other, _ = train(kind, 20, seed=4)
    for name in straight:
        np.testing.assert_array_equal(resumed[name], straight[name])
    assert not np.array_equal(other["w"], straight["w"])


@kinds
def test_works_in_an_optax_chain(kind: str) -> None:
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), KINDS[kind](0.3))
    assert isinstance(KINDS[kind](), optax.GradientTransformationExtraArgs)
    params = jnp.array([3.0, -4.0])
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    after = optax.apply_updates(params, updates)
    assert jnp.linalg.norm(after) < 5.0


@kinds
def test_zero_gradients_leave_everything_finite(kind: str) -> None:
    optimizer = KINDS[kind]()
    params = jnp.ones(2)
    updates, _ = optimizer.update(jnp.zeros(2), optimizer.init(params), params)
    assert jnp.isfinite(updates).all()


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (lambda: goldstein.jax.psingd(averaging=1.0), "averaging"),
        (lambda: goldstein.jax.psingd(slope=0.0), "slope"),
        (lambda: goldstein.jax.psingd(perturbation=-1.0), "perturbation"),
        (lambda: goldstein.jax.o2nc(radius=0.0), "radius"),
        (lambda: goldstein.jax.o2nc(window=0), "window"),
        (lambda: goldstein.jax.o2nc(gradient_scale=0.0), "gradient_scale"),
        (lambda: goldstein.jax.adam_o2nc(b1=1.0), "averaging"),
        (lambda: goldstein.jax.adam_o2nc(b1=0.9, b2=0.5), "b2 must be at least"),
        (lambda: goldstein.jax.adam_o2nc(kappa=-1.0), "kappa"),
    ],
)
def test_bad_settings_are_named(build, word: str) -> None:
    with pytest.raises(InputError, match=word):
        build()


@kinds
def test_params_are_required(kind: str) -> None:
    optimizer = KINDS[kind]()
    with pytest.raises(InputTypeError, match="needs params"):
        optimizer.update(jnp.ones(2), optimizer.init(jnp.ones(2)))


def test_oracle_is_float64_over_pytrees_whatever_jax_is_set_to() -> None:
    params = {"a": jnp.array([1.0, -2.0], jnp.float32), "b": jnp.array(3.0, jnp.float32)}
    oracle = goldstein.jax.oracle(lambda p: jnp.abs(p["a"] * p["b"]).sum(), params)
    assert oracle.dim == 3
    np.testing.assert_array_equal(oracle.start, [1.0, -2.0, 3.0])
    x = np.array([1.0 / 3.0, -1.0, 0.1])
    assert oracle.value(x) == pytest.approx(0.1 * (1.0 / 3.0 + 1.0), rel=1e-15)
    np.testing.assert_allclose(oracle.gradient(x), [0.1, -0.1, 4.0 / 3.0], rtol=1e-15)
    assert jnp.ones(1).dtype == jnp.float32


def test_oracle_certificate_is_not_fooled_at_a_tie() -> None:
    """jnp.maximum(x, 0) - jnp.maximum(-x, 0) is x; at the tie x = 0 a program may say anything."""
    oracle = goldstein.jax.oracle(lambda x: (jax.nn.relu(x) - jax.nn.relu(-x)).sum())
    assert oracle.gradient(np.zeros(1))[0] != 1.0
    certificate = gs.certify(oracle, [0.0], delta=1e-3, rng=0)
    assert certificate.eps == pytest.approx(1.0, rel=1e-12)


def test_oracle_mistakes_are_explained() -> None:
    with pytest.raises(InputTypeError, match="callable"):
        goldstein.jax.oracle(3)
    with pytest.raises(InputTypeError, match="one number"):
        goldstein.jax.oracle(lambda x: x).value(np.zeros(2))
    with pytest.raises(InputError, match="no numbers"):
        goldstein.jax.oracle(lambda x: 0.0, {})
