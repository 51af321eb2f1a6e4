"""A loss that is computed in less than float64 cannot resolve a small ball: it is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import goldstein as gs
import goldstein.jax
from goldstein.errors import InputTypeError


def identity(u: jax.Array) -> jax.Array:
    """Slope 1; automatic differentiation says something else at 0."""
    return (jax.nn.relu(u) - jax.nn.relu(-u)).sum()


def coarse(u: jax.Array) -> jax.Array:
    return u.astype(jnp.float32)


def in_a_scan(x: jax.Array) -> jax.Array:
    """The cast hides in a loop, and in its second turn only what it carries depends on x."""

    def turn(carry, _):
        first, second = carry
        return (x.sum(), second + first.astype(jnp.float32).astype(jnp.float64)), None

    return jax.lax.scan(turn, (0.0, 0.0), None, length=3)[0][1]


def in_a_while(x: jax.Array) -> jax.Array:
    def going(state):
        return (state[1].astype(jnp.float32) > 1.0) & (state[0] < 3)

    return jax.lax.while_loop(going, lambda s: (s[0] + 1, s[1] * 0.5), (0, x.sum()))[1]


@jax.custom_vjp
def rough_backward(x):
    return jnp.abs(x).sum()


rough_backward.defvjp(
    lambda x: (rough_backward(x), x),
    lambda x, g: ((g * jnp.sign(x)).astype(jnp.float32).astype(jnp.float64),),
)

CASTS = {
    "answer": lambda x: identity(coarse(x) - 1.0),
    "bfloat16": lambda x: identity(x.astype(jnp.bfloat16) - 1.0),
    "up again": lambda x: identity(coarse(x) - 1.0).astype(jnp.float64),
    "half inside": lambda x: identity(x.astype(jnp.float16).astype(jnp.float64) - 1.0),
    "a kink decided in float32": lambda x: jnp.where(coarse(x) > 1.0, x, 0.5 * x).sum(),
    "compiled": lambda x: jax.jit(lambda u: identity(coarse(u)).astype(jnp.float64))(x),
    "a branch": lambda x: jax.lax.cond(
        True, lambda u: coarse(u).astype(jnp.float64), lambda u: u, x
    ).sum(),
    "a scan": in_a_scan,
    "a while": in_a_while,
    "vectorised": lambda x: jax.vmap(lambda u: coarse(u).astype(jnp.float64) ** 2)(x).sum(),
    "recomputed": lambda x: jax.checkpoint(lambda u: coarse(u).astype(jnp.float64))(x).sum(),
    "backward only": rough_backward,
}


@pytest.mark.parametrize("kind", sorted(CASTS))
def test_a_coarse_step_is_refused(kind: str) -> None:
    oracle = goldstein.jax.oracle(CASTS[kind])
    with pytest.raises(InputTypeError, match=r"float(32|16)"):
        oracle.gradient(np.ones(2))
    with pytest.raises(InputTypeError, match=r"float(32|16)"):
        goldstein.jax.oracle(CASTS[kind]).value(np.ones(2))


def test_a_certificate_of_a_coarse_loss_is_refused() -> None:
    """In float32 every point of the ball is 1, where automatic differentiation says 0."""
    oracle = goldstein.jax.oracle(CASTS["up again"])
    with pytest.raises(gs.GoldsteinError, match="float32"):
        gs.certify(oracle, [1.0], delta=1e-9, rng=0)
    double = goldstein.jax.oracle(lambda x: identity(x - 1.0))
    assert gs.certify(double, [1.0], delta=1e-9, rng=0).eps >= 1.0


CONSTANTS = jnp.asarray([[1.0, -2.0], [0.5, 3.0]], jnp.float32)


@pytest.mark.parametrize(
    "fine",
    [
        lambda x: jnp.abs(CONSTANTS @ x).sum(),
        lambda x: jnp.abs(CONSTANTS.astype(jnp.bfloat16) @ x).sum(),
        lambda x: (x * (x > 0).astype(jnp.float32)).sum(),
        lambda x: jax.lax.scan(lambda c, a: (c + jnp.abs(a @ x), None), 0.0, CONSTANTS)[0],
        lambda x: jax.lax.cond(CONSTANTS[0, 0] > 0, jnp.sum, jnp.max, x),
        lambda x: jax.lax.fori_loop(0, 3, lambda i, s: s + jnp.abs(CONSTANTS[0, 0] * x), x).sum(),
        lambda x: jnp.sort(x)[0] + jnp.linalg.norm(x),
        lambda x: jnp.linalg.solve(jnp.eye(2) + jnp.outer(x, x), CONSTANTS[0]).sum(),
    ],
)
def test_constants_of_any_precision_are_fine(fine) -> None:
    oracle = goldstein.jax.oracle(fine)
    assert gs.check_gradient(oracle.value, oracle.gradient, np.array([0.3, -0.7])).ok


def test_whole_numbers_are_no_loss() -> None:
    with pytest.raises(InputTypeError, match="int"):
        goldstein.jax.oracle(lambda x: (x > 0).sum()).gradient(np.ones(2))
