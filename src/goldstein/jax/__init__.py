"""JAX: oracles by automatic differentiation, and optax transformations of both methods."""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401
except ImportError as missing:
    from goldstein.errors import MissingExtraError

    raise MissingExtraError(
        "goldstein.jax needs JAX and optax; pip install 'goldstein[jax]'."
    ) from missing

from goldstein.jax.o2nc import O2NCState, o2nc
from goldstein.jax.oracle import JaxOracle, oracle
from goldstein.jax.psingd import PSINGDState, psingd

__all__ = ["JaxOracle", "O2NCState", "PSINGDState", "o2nc", "oracle", "psingd"]
