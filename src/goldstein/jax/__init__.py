"""JAX: oracles by automatic differentiation, certificates, optax transformations."""

from goldstein.extras import from_extra

with from_extra("goldstein.jax", "JAX and optax", "jax"):
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401

from goldstein.jax.optimizers import AdamO2NCState, O2NCState, PSINGDState, adam_o2nc, o2nc, psingd
from goldstein.jax.oracle import DataOracle, JaxOracle, certify, oracle
from goldstein.jax.tracing import trace

__all__ = [
    "AdamO2NCState", "DataOracle", "JaxOracle", "O2NCState", "PSINGDState", "adam_o2nc",
    "certify", "o2nc", "oracle", "psingd", "trace",
]  # fmt: skip
