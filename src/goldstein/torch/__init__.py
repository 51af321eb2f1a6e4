"""PyTorch: optimizers with a finite-time guarantee, oracles, certificates for trained models."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from goldstein.extras import from_extra

with from_extra("goldstein.torch", "PyTorch", "torch"):
    import torch as _torch  # noqa: F401

from goldstein.torch.optimizers import O2NC, PSINGD, AdamO2NC
from goldstein.torch.oracle import DataOracle, TensorOracle, certify, constraint, oracle
from goldstein.torch.replicas import DesynchronisedError, RankSum, check_replicas, sum_over_ranks
from goldstein.torch.tracing import trace
from goldstein.torch.watching import GoldsteinStopping, Monitor, Observation

if TYPE_CHECKING:
    from goldstein.torch.watching.lightning import LightningMonitor
    from goldstein.torch.watching.trainer import TrainerMonitor

__all__ = [
    "O2NC", "PSINGD", "AdamO2NC", "DataOracle", "DesynchronisedError", "GoldsteinStopping",
    "LightningMonitor", "Monitor", "Observation", "RankSum", "TensorOracle", "TrainerMonitor",
    "certify", "check_replicas", "constraint", "oracle", "sum_over_ranks", "trace",
]  # fmt: skip

#: Callbacks, each imported with the package it is for when it is asked for.
_CALLBACKS = {"LightningMonitor": "lightning", "TrainerMonitor": "trainer"}


def __getattr__(name: str) -> Any:
    if name in _CALLBACKS:
        return getattr(import_module(f"goldstein.torch.watching.{_CALLBACKS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
