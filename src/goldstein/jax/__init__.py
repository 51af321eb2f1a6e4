"""JAX: oracles by automatic differentiation, certificates, optax transformations."""

from __future__ import annotations

try:
    import jax as _jax  # noqa: F401
    import optax as _optax  # noqa: F401
except ImportError as missing:
    from goldstein.extras import missing_extra

    raise missing_extra("goldstein.jax", "JAX and optax", "jax") from missing

from goldstein.jax.adam_o2nc import AdamO2NCState, adam_o2nc
from goldstein.jax.certificate import certify
from goldstein.jax.data_oracle import DataOracle
from goldstein.jax.o2nc import O2NCState, o2nc
from goldstein.jax.oracle import JaxOracle, oracle
from goldstein.jax.psingd import PSINGDState, psingd

__all__ = [
    "AdamO2NCState",
    "DataOracle",
    "JaxOracle",
    "O2NCState",
    "PSINGDState",
    "adam_o2nc",
    "certify",
    "o2nc",
    "oracle",
    "psingd",
]
