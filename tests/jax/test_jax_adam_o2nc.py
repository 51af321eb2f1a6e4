"""adam_o2nc under the conventions of optax's own tests of its optimizers, and its formulas."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import torch

import goldstein.jax
import goldstein.torch


def parabola(dtype):
    end = jnp.array([1.0, -1.0, 1.0], dtype)
    return jnp.array([-1.0, 10.0, 1.0], dtype), end, lambda p: jnp.sum(jnp.square(p - end))


def rosenbrock(dtype):
    def objective(p):
        return (1.0 - p[0]) ** 2 + 100.0 * (p[1] - p[0] ** 2) ** 2

    return jnp.zeros(2, dtype), jnp.ones(2, dtype), objective


@pytest.mark.parametrize(("target", "rate"), [(parabola, 0.02), (rosenbrock, 0.004)])
def test_optimization(target, rate: float) -> None:
    start, end, objective = target(jnp.float32)
    optimizer = goldstein.jax.adam_o2nc(optax.linear_schedule(rate, 0.0, 10_000))
    state = optax.tree_utils.tree_map_params(optimizer, lambda v: v, optimizer.init(start))

    def step(carry, _):
        params, state = carry
        updates, state = optimizer.update(jax.grad(objective)(params), state, params)
        return (optax.apply_updates(params, updates), state), None

    (params, state), _ = jax.jit(lambda c: jax.lax.scan(step, c, length=10_000))((start, state))
    np.testing.assert_allclose(params, end, rtol=3e-2, atol=3e-2)
    np.testing.assert_allclose(state.center(params), end, rtol=3e-2, atol=3e-2)


def test_extra_arguments_are_accepted() -> None:
    optimizer = goldstein.jax.adam_o2nc()
    params = jnp.ones(2)
    optimizer.update(params, optimizer.init(params), params, value=1.0, nobody_expects=2)


@pytest.mark.parametrize("jitted", [False, True])
def test_inject_hyperparams(jitted: bool) -> None:
    settings = {"learning_rate": 0.1, "b1": 0.9, "weight_decay": 0.01, "kappa": 2.0}
    plain = goldstein.jax.adam_o2nc(**settings)
    injected = optax.inject_hyperparams(goldstein.jax.adam_o2nc, static_args=("seed",))(**settings)
    params = [jnp.negative(jnp.ones((2, 3))), jnp.ones((2, 5, 2))]
    gradients = [jnp.ones((2, 3)), jnp.negative(jnp.ones((2, 5, 2)))]
    wrap = jax.jit if jitted else (lambda f: f)
    expected, expected_state = wrap(plain.update)(gradients, plain.init(params), params)
    updates, state = wrap(injected.update)(gradients, injected.init(params), params)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), updates, expected)
    jax.tree.map(
        lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-4), state.inner_state, expected_state
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("jitted", [False, True])
def test_dtypes_are_preserved(dtype: str, jitted: bool) -> None:
    optimizer = goldstein.jax.adam_o2nc(optax.linear_schedule(0.1, 0.0, 9), weight_decay=0.1)
    params = jnp.array([1.0, 2.0], dtype)
    state = optimizer.init(params)
    gradients = jax.grad(lambda x: jnp.sum(x**2))(params)

    def step(params, state):
        return jax.lax.cond(  # refuses a state that changes its types
            params[0] > 0,
            lambda: optimizer.update(gradients, state, params),
            lambda: (params, state),
        )

    updates, after = (jax.jit(step) if jitted else step)(params, state)
    assert updates.dtype == gradients.dtype
    assert [a.dtype for a in jax.tree.leaves(after)] == [a.dtype for a in jax.tree.leaves(state)]
    assert jnp.isfinite(after.center(updates)).all()


def test_gradient_accumulation() -> None:
    optimizer = optax.MultiSteps(goldstein.jax.adam_o2nc(0.1), every_k_schedule=4)
    params = jnp.array([1.0, 2.0])
    updates, _ = optimizer.update(params, optimizer.init(params), params)
    np.testing.assert_array_equal(updates, 0.0)


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_the_centre_of_jax_is_the_centre_of_torch(decay: float) -> None:
    """Given the gradients, the iterates do not depend on the query points: one formula, twice."""
    rng = np.random.default_rng(0)
    start = rng.normal(size=5)
    gradients = rng.normal(size=(30, 5)) * 10.0 ** rng.uniform(-3, 3, size=(30, 1))
    gradients[:, 4] = 0.0
    w = torch.nn.Parameter(torch.tensor(start, dtype=torch.float32))
    ours = goldstein.torch.AdamO2NC([w], 0.1, betas=(0.9, 0.85), weight_decay=decay, kappa=0.7)
    optimizer = goldstein.jax.adam_o2nc(0.1, 0.9, 0.85, weight_decay=decay, kappa=0.7)
    params, update = jnp.asarray(start, jnp.float32), jax.jit(optimizer.update)
    state = optimizer.init(params)
    for g in gradients:
        w.grad = torch.tensor(g, dtype=torch.float32)
        ours.step()
        updates, state = update(jnp.asarray(g, jnp.float32), state, params)
        params = optax.apply_updates(params, updates)
        with ours.at_center():
            np.testing.assert_allclose(state.center(params), w.detach().numpy(), atol=2e-5)
    if not decay:
        assert state.center(params)[4] == np.float32(start[4])


def test_the_window_lies_in_its_box() -> None:
    optimizer = goldstein.jax.adam_o2nc(0.1, 0.7)
    params, queries = jnp.zeros(4), []
    state, update = optimizer.init(params), jax.jit(optimizer.update)
    for _ in range(16):
        queries.append(np.asarray(params))
        updates, state = update(jnp.ones(4), state, params)  # the longest steps there are
        params = optax.apply_updates(params, updates)
        away = np.abs(np.array(queries[-7:]) - np.asarray(state.center(params))).max()
        assert away <= 0.8 * (1 + 1e-5)


def test_many_runs_at_once_are_the_runs_one_by_one() -> None:
    optimizer = goldstein.jax.adam_o2nc(0.1, weight_decay=0.1)
    starts = {"w": jnp.arange(6.0).reshape(3, 2), "b": jnp.array([1.0, -1.0, 0.5])}

    def run(params):
        state = optimizer.init(params)
        for _ in range(4):
            updates, state = optimizer.update(jax.tree.map(jnp.sin, params), state, params)
            params = optax.apply_updates(params, updates)
        return state.center(params)

    together = jax.jit(jax.vmap(run))(starts)
    for i in range(3):
        alone = run(jax.tree.map(lambda leaf, i=i: leaf[i], starts))
        jax.tree.map(
            lambda a, b, i=i: np.testing.assert_allclose(a[i], b, rtol=1e-5), together, alone
        )


def test_masked_and_missing_leaves_are_left_alone() -> None:
    """None is an empty subtree in JAX: `optax.masked` and partial trees rest on it."""
    optimizer = goldstein.jax.adam_o2nc(0.1)
    params = {"moved": jnp.ones(2), "missing": None}
    gradients = {"moved": jnp.ones(2), "missing": None}
    state = optimizer.init(params)
    for _ in range(3):
        updates, state = optimizer.update(gradients, state, params)
    assert updates["missing"] is None
    assert state.center(params)["missing"] is None
    chain = optax.chain(
        optax.clip_by_global_norm(1.0), optax.masked(optimizer, {"moved": True, "fixed": False})
    )
    params = {"moved": jnp.ones(2), "fixed": jnp.ones(2)}
    updates, _ = chain.update(jax.tree.map(jnp.zeros_like, params), chain.init(params), params)
    jax.tree.map(lambda u: np.testing.assert_array_equal(u, 0.0), updates)
    updates, _ = chain.update(params, chain.init(params), params)
    assert (updates["moved"] < 0).all()
    np.testing.assert_allclose(updates["fixed"], 0.5)  # not ours: handed on as it came
