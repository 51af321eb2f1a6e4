"""torch and JAX functions at their ties, where automatic differentiation says what it likes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from benchmarks.adversary.ask import below, honest
from benchmarks.adversary.suite import Attack, Rng, Seen

import goldstein as gs

#: Ways to write r z for z > 0 and l z for z < 0, each with its own derivative at 0.
WAYS: tuple[Callable[[Any, Any, float, float], Any], ...] = (
    lambda ops, z, l, r: r * ops["relu"](z) - l * ops["relu"](-z),
    lambda ops, z, l, r: r * ops["clip"](z, 0.0, None) + l * ops["clip"](z, None, 0.0),
    lambda ops, z, l, r: 0.5 * (r - l) * ops["abs"](z) + 0.5 * (r + l) * z,
    lambda ops, z, l, r: r * ops["maximum"](z, 0.0 * z) + l * ops["minimum"](z, 0.0 * z),
    lambda ops, z, l, r: ops["where"](z > 0, r * z, l * z),
    lambda ops, z, l, r: l * z + (r - l + 1) * ops["relu"](z) - ops["clip"](z, 0.0, None),
)  # fmt: skip


def _torch() -> dict[str, Any]:
    import torch

    return {
        "relu": torch.relu, "abs": torch.abs, "maximum": torch.maximum, "minimum": torch.minimum,
        "where": torch.where, "clip": torch.clamp, "tensor": torch.tensor,
    }  # fmt: skip


def _jax() -> dict[str, Any]:
    import jax
    import jax.numpy as jnp

    return {
        "relu": jax.nn.relu, "abs": jnp.abs, "maximum": jnp.maximum, "minimum": jnp.minimum,
        "where": jnp.where, "clip": jnp.clip,
    }  # fmt: skip


def autodiff(rng: Rng, seen: Seen) -> None:
    dim, way = int(rng.integers(1, 4)), WAYS[int(rng.integers(len(WAYS)))]
    left, right = (rng.choice([1.0, 2.0, 0.5], dim) for _ in range(2))
    kinks = rng.choice([0.0, 1.0, -0.25], dim)
    in_torch = rng.random() < 0.6
    seen.note(
        f"{'torch' if in_torch else 'JAX'}, way {WAYS.index(way)}, slopes {left.tolist()} and "
        f"{right.tolist()}, kinks {kinks.tolist()}"
    )
    F = _in_torch(way, left, right, kinks) if in_torch else _in_jax(way, left, right, kinks)
    true = float(np.linalg.norm(np.minimum(left, right)))

    def false(claim: Any) -> str:
        return f"no slope below {true!r}" if below(claim.eps, true) else ""

    delta = float(10.0 ** rng.uniform(-8, -2))
    at = kinks.copy()
    if dim > 1 and rng.random() < 0.3:  # one coordinate beside its kink
        at[0] += float(rng.choice([delta / 2, 1.0]))
    if rng.random() < 0.5:
        honest(seen, lambda: gs.certify(F, at, delta=delta, rng=0), (F,), false)
    else:
        ask: dict[str, Any] = {"eps": 0.1, "delta": delta, "rng": 0, "max_calls": 60}
        honest(seen, lambda: gs.minimize(F, at, **ask), (F,), false)


def _in_torch(way: Any, left: Any, right: Any, kinks: Any) -> Any:
    import goldstein.torch

    ops = _torch()
    tensor = ops["tensor"]

    def fun(x: Any) -> Any:
        return way(ops, x - tensor(kinks), tensor(left), tensor(right)).sum()

    return goldstein.torch.oracle(fun, tensor(kinks))


def _in_jax(way: Any, left: Any, right: Any, kinks: Any) -> Any:
    import goldstein.jax

    ops = _jax()
    return goldstein.jax.oracle(lambda x: way(ops, x - kinks, left, right).sum())


ATTACK = Attack(
    "autodiff",
    "torch and JAX oracles at ties: relu(x) - relu(-x), clamps, maxima, where",
    weight=1.5,
    one=autodiff,
)
