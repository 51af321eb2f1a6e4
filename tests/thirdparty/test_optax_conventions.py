"""What optax promises of its optimizers holds of ours."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import goldstein as gs
import goldstein.jax as gj

OPTIMIZERS = {"o2nc": gj.o2nc, "psingd": gj.psingd, "adam_o2nc": gj.adam_o2nc}


@pytest.fixture(params=OPTIMIZERS)
def make(request):
    return OPTIMIZERS[request.param]


def loss(params):
    return jnp.abs(params["w"]).sum() + jnp.abs(params["b"] - 1.0)


PARAMS = {"w": jnp.array([3.0, -1.0]), "b": jnp.array(0.5)}


def trained(optimizer, steps: int, jit: bool = True):
    step = jax.jit(optimizer.update) if jit else optimizer.update
    params, state = PARAMS, optimizer.init(PARAMS)
    for _ in range(steps):
        updates, state = step(jax.grad(loss)(params), state, params)
        params = optax.apply_updates(params, updates)
    return params, state


def same(one, other) -> bool:
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return all(np.allclose(a, b, rtol=1e-5, atol=1e-6) for a, b in pairs)


def test_jit_takes_the_same_steps(make) -> None:
    assert same(trained(make(0.05), 2)[0], trained(make(0.05), 2, jit=False)[0])


def test_hyperparameters_may_be_injected_under_jit(make) -> None:
    injected = optax.inject_hyperparams(make)(learning_rate=0.05)
    params, state = trained(injected, 3)
    assert same(params, trained(make(0.05), 3)[0])
    state.hyperparams["learning_rate"] = jnp.asarray(0.0)
    updates, _ = jax.jit(injected.update)(jax.grad(loss)(params), state, params)
    settled = optax.apply_updates(params, updates)
    assert same(settled, state.inner_state.center(params))  # what is owed, and nothing more


def test_injected_values_are_still_checked(make) -> None:
    for bad in ({"radius": -1.0}, {"slope": 0.0}, {"b2": 2.0}):
        if next(iter(bad)) in make.__kwdefaults__ or ("b2" in bad and make is gj.adam_o2nc):
            with pytest.raises(gs.errors.InputError):
                make(0.05, **bad)


def test_it_goes_with_other_transformations(make) -> None:
    chained = optax.chain(optax.clip_by_global_norm(1.0), make(0.05))
    masked = optax.multi_transform(
        {"train": make(0.05), "freeze": optax.set_to_zero()}, {"w": "train", "b": "freeze"}
    )
    assert loss(trained(chained, 30)[0]) < loss(PARAMS)
    params, _ = trained(masked, 20)
    assert params["b"] == PARAMS["b"]
    assert jnp.abs(params["w"]).sum() < 4.0


def test_complex_parameters_are_refused(make) -> None:
    with pytest.raises(gs.errors.InputTypeError, match="complex"):
        make(0.1).init({"z": jnp.zeros(2, dtype=jnp.complex64)})


def test_params_are_asked_for(make) -> None:
    optimizer = make(0.1)
    with pytest.raises(gs.errors.InputTypeError, match="params"):
        optimizer.update(PARAMS, optimizer.init(PARAMS))


def test_an_oracle_takes_the_pytree_it_was_made_from() -> None:
    f = gj.oracle(loss, PARAMS)
    asked = {"eps": 1e-3, "delta": 1e-3, "rng": 0}
    turned = {"w": np.array([3.0, -1.0]), "b": np.array(0.5)}
    found = gs.minimize(f, turned, **asked)
    assert found.success
    assert f.unflatten(found.x)["b"] == pytest.approx(1.0, abs=1e-2)
    assert "fun.unflatten(x)" in str(found)
    assert gs.certify(f, f.unflatten(found.x), delta=1e-2, rng=0).verify(f).ok


def test_gradients_may_have_their_keys_sorted() -> None:
    """`jax.grad` sorts the keys of a dict; nobody else need know."""
    point = {"w": np.array([3.0, -1.0]), "b": np.array([0.5])}

    def value(p):
        return abs(p["w"]).sum() + abs(p["b"] - 1.0).sum()

    def gradient(p):
        return {"b": np.sign(p["b"] - 1.0), "w": np.sign(p["w"])}

    res = gs.minimize(value, point, gradient, eps=1e-3, delta=1e-3, rng=0)
    assert res.success
    assert list(res.x) == ["w", "b"]
    assert res.certificate.verify(value, gradient, like=point).ok
