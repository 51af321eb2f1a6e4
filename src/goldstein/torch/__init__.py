"""PyTorch: optimizers with a finite-time guarantee, oracles, certificates for trained models."""

from __future__ import annotations

try:
    import torch as _torch  # noqa: F401
except ImportError as missing:
    from goldstein.extras import missing_extra

    raise missing_extra("goldstein.torch", "PyTorch", "torch") from missing

from goldstein.torch.adam_o2nc import AdamO2NC
from goldstein.torch.certificate import certify
from goldstein.torch.data_oracle import DataOracle
from goldstein.torch.o2nc import O2NC
from goldstein.torch.oracle import TensorOracle, oracle
from goldstein.torch.psingd import PSINGD
from goldstein.torch.rank_sum import RankSum, sum_over_ranks
from goldstein.torch.replicas import DesynchronisedError, check_replicas

__all__ = [
    "O2NC",
    "PSINGD",
    "AdamO2NC",
    "DataOracle",
    "DesynchronisedError",
    "RankSum",
    "TensorOracle",
    "certify",
    "check_replicas",
    "oracle",
    "sum_over_ranks",
]
