"""Arithmetic on pytrees of arrays, with one norm over all leaves."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp


def global_norm(tree: Any) -> Any:
    """Return the Euclidean norm of all entries."""
    return jnp.sqrt(sum(jnp.sum(jnp.square(leaf)) for leaf in jax.tree.leaves(tree)))


def combine(a: Any, x: Any, b: Any, y: Any) -> Any:
    """Return `a x + b y`, leaf by leaf, in the dtype of x."""
    return jax.tree.map(lambda p, q: (a * p + b * q).astype(p.dtype), x, y)


def scale(a: Any, x: Any) -> Any:
    """Return `a x`."""
    return jax.tree.map(lambda p: (a * p).astype(p.dtype), x)


def zeros(tree: Any) -> Any:
    """Return zeros of the same structure."""
    return jax.tree.map(jnp.zeros_like, tree)


def rate_of(value: Any, count: Any) -> Any:
    """Return the learning rate of a step: a number, or an optax schedule of the count."""
    return value(count) if callable(value) else value
